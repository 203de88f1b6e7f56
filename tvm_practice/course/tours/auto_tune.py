"""What phase 5 shows: the tuners on one matmul, beside the schedule written by hand."""

import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import number_table, say, show, show_code


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Tune one matmul with the active engine's tuners, and compare with the hand-written one.

    Returns:
        See `_Tuning.figures`.
    """
    from tvm_practice import engines

    size, trials = (512, 16) if quick else (1024, 64)
    # A folder of its own for each run: a log that exists would be continued.
    folder = steps.folder / time.strftime("%Y%m%d-%H%M%S")
    tuning = _Tuning(steps, size, trials, folder)
    if engines.active() == engines.CLASSIC:
        _tune_with_autotvm(tuning)
        _tune_with_ansor(tuning)
        _add_tile_classic(tuning)
    else:
        _show_random_search(steps, size, 6 if quick else 16)
        _tune_with_metaschedule(tuning, quick)
        _add_packed_matmul(tuning)
    return tuning.figures()


class _Tuning:
    """One engine's tuners on one matmul: their trials, and what their best schedules do.

    Attributes:
        steps: phase 5's.
        size: rows and columns of A, B and C.
        trials: what each tuner is given.
        folder: of the records.
    """

    def __init__(self, steps: Steps, size: int, trials: int, folder: Path):
        import numpy as np

        self.steps = steps
        self.size = size
        self.trials = trials
        self.folder = folder
        self._inputs = np.random.default_rng().standard_normal((2, size, size), dtype="float32")
        self._tuners: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, Callable[[], Any]] = {}
        self._hand_written = ""

    def done(self, name: str, *arguments: Any, **options: Any) -> bool:
        """Call a step that returns nothing; whether it is written and ran."""
        self.steps.attempt(name, *arguments, **options)
        return self.steps.ran(name)

    def best(self, tuned: str, applied: str, *arguments: Any) -> Any:
        """Call the step `applied` on the records of the step `tuned`; None if either is wrong."""
        return self.steps.attempt(applied, *arguments) if self.steps.ran(tuned) else None

    @property
    def a_round(self) -> int:
        """Trials between two updates of a tuner's cost model."""
        from tvm_practice.tvm_export.tuners.budget import trials_per_round

        return trials_per_round(self.trials)

    def keep(
        self, tuner: str, records: Path, history: Sequence[Any], predictions: Sequence[Any]
    ) -> None:
        """Keep a tuner's trials, and what its cost model said of them before."""
        self._tuners[tuner] = {
            "records": str(records),
            "history": [trial.to_dict() for trial in history],
            "predictions": [each.to_dict() for each in predictions],
        }

    def add(self, tuner: str, step: str, function: Callable[..., Any]) -> None:
        """Run a tuner's best schedule once and keep it if its values are numpy's."""
        error = self._add(tuner, function)
        if error is not None:
            self.steps.failed[step] = error
            print(f"fails  {step}: {error}")

    def add_hand_written(self, name: str, function: Callable[..., Any]) -> None:
        """Keep phase 2's schedule, which the tuners are compared with."""
        if error := self._add(name, function):
            raise RuntimeError(f"phase 2's {name} is wrong: {error}")
        self._hand_written = name

    def _add(self, name: str, function: Callable[..., Any]) -> str | None:
        from tvm_practice.course.tours.products import Product

        product = Product(*self._inputs)
        function(*product.arguments)
        if not product.is_right():
            return f"its values differ from numpy's by {product.difference():.3g}"
        self._runs[name] = lambda: function(*product.arguments)
        return None

    def figures(self) -> dict[str, Any]:
        """Time all in turns, and give everything as JSON.

        Returns:
            {"size", "trials", "hand_written": its name, "tuners": {name: {"records", "history",
            "predictions"}}, "comparison": see Comparison.to_dict, or None for one alone}.
        """
        from tvm_practice.measure import Comparison, compare_interleaved

        comparison: Comparison | None = None
        if len(self._runs) > 1:
            print("\nTheir best schedules and the hand-written one, timed in turns ...")
            comparison = compare_interleaved(
                self._runs, baseline=self._hand_written, rounds=30, warmup=3, time_limit=10
            )
        return {
            "size": self.size,
            "trials": self.trials,
            "hand_written": self._hand_written,
            "tuners": self._tuners,
            "comparison": None if comparison is None else comparison.to_dict(),
        }


def _show_random_search(steps: Steps, size: int, trials: int) -> None:
    print(
        f"\nA tuner without a model: {trials} random tiles of phase 2's schedule, matmul of "
        f"{size}³."
    )
    best: float | None = None
    for tile_m, tile_n, milliseconds in steps.chapter.random_search(size, trials):
        best = milliseconds if best is None else min(best, milliseconds)
        print(f"  tile {tile_m:>2} x {tile_n:<3}  {milliseconds:8.2f} ms   best {best:8.2f} ms")
    say(
        "Only the order of the operations differs, yet the times differ this much. A real tuner "
        "varies more than two numbers, measures in worker processes, and learns from the results."
    )


def _tune_with_metaschedule(tuning: _Tuning, quick: bool) -> None:
    import tvm

    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import metaschedule, prediction

    target, module = host_target(), _matmul_module(tuning.size)
    for name, space in _spaces(tuning, module, quick).items():
        work_dir = tuning.folder / name.replace(" ", "-").lower()
        context = metaschedule.make_context(module, target, space=space, name="matmul")
        started = time.time()
        database = tuning.steps.attempt(
            "tune_metaschedule", [context], [1.0], trials=tuning.trials, work_dir=str(work_dir)
        )
        if database is None:
            break
        with tuning.steps.blaming("tune_metaschedule"):
            foreseen = prediction.predict_metaschedule(context, work_dir, size=tuning.a_round)
            tuning.keep(name, work_dir, metaschedule.history(work_dir, started=started), foreseen)
            _print_code(name, metaschedule.best_code(database, module, target))
        tuned = tuning.best("tune_metaschedule", "apply_metaschedule", module, database, target)
        if tuned is not None:
            with tuning.steps.blaming("apply_metaschedule"):
                tuning.add(name, "apply_metaschedule", tvm.compile(tuned, target=target)["main"])


def _matmul_module(size: int) -> Any:
    import tvm
    from tvm import te

    from tvm_practice.course.stack import earlier

    matmul = earlier("te_basics.matmul")
    function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": function})


def _spaces(tuning: _Tuning, module: Any, quick: bool) -> dict[str, Any]:
    """MetaSchedule's design spaces by name: the learner's, of which a sample is shown, or stock."""
    import tvm

    from tvm_practice.viz.loop_nest import loop_nest, print_nest

    print("\nMetaSchedule: a design space is a schedule whose numbers are sampled.")
    stock = {"MetaSchedule stock": "post-order-apply"}
    sampled = tvm.s_tir.Schedule(module)
    if not tuning.done("metaschedule_space", sampled):
        return stock
    print_nest("one sample of metaschedule_space", loop_nest(sampled.mod["main"]))
    own = {"MetaSchedule": tuning.steps.function("metaschedule_space")}
    return own if quick else {**own, **stock}


def _add_packed_matmul(tuning: _Tuning) -> None:
    from tvm_practice.course.stack import earlier
    from tvm_practice.course.tours.products import compiled
    from tvm_practice.engines.blocking import packed_blocking

    size = tuning.size
    packed = earlier("manual_schedule.packed_matmul")(size, size, size, **packed_blocking(size))
    tuning.add_hand_written("packed_matmul", compiled(packed, ())["main"])


def _tune_with_autotvm(tuning: _Tuning) -> None:
    from tvm import autotvm

    from solutions.auto_tune import matmul_template as reference_template
    from tvm_practice.course.tours.products import compiled
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import autotvm as autotvm_tuner
    from tvm_practice.tvm_export.tuners import prediction

    target, sizes = host_target(), (tuning.size,) * 3
    print("\nAutoTVM: you write a template with open numbers (knobs); it picks their values.")
    with target, autotvm.task.ApplyConfig(autotvm.task.ConfigSpace()):
        template = tuning.steps.attempt("matmul_template", *sizes)
    task = None
    if template is not None:
        with tuning.steps.blaming("matmul_template"):
            own = tuning.steps.function("matmul_template")
            task = autotvm_tuner.make_task(own, sizes, target)
    if task is None:  # the tuner can be tried before the template is written
        print("It tunes the reference template until yours works.")
        task = autotvm_tuner.make_task(reference_template, sizes, target)
    knobs = [f"{name} ({len(knob)})" for name, knob in task.config_space.space_map.items()]
    print(f"{len(task.config_space)} configurations of {', '.join(knobs)}")
    log = tuning.folder / "autotvm.json"
    started = time.time()
    if tuning.done("tune_autotvm", task, trials=tuning.trials, log=str(log)):
        with tuning.steps.blaming("tune_autotvm"):
            foreseen = prediction.predict_autotvm(task, log, size=tuning.a_round)
            tuning.keep("AutoTVM", log, autotvm_tuner.history(log, started=started), foreseen)
            _print_code("AutoTVM", autotvm_tuner.best_code(task, log))
        applied = tuning.best("tune_autotvm", "apply_autotvm", task, str(log))
        if applied is not None:
            with tuning.steps.blaming("apply_autotvm"):
                tuning.add("AutoTVM", "apply_autotvm", compiled(*applied)["main"])


def _tune_with_ansor(tuning: _Tuning) -> None:
    from tvm_practice.course.stack import earlier
    from tvm_practice.course.tours.products import compiled
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import ansor, prediction

    print("\nAnsor: no template; it derives sketches (loop nests without numbers) itself.")
    task = ansor.make_task(earlier("te_basics.matmul"), (tuning.size,) * 3, host_target())
    log = tuning.folder / "ansor.json"
    started = time.time()
    if tuning.done("tune_ansor", [task], [1.0], trials=tuning.trials, log=str(log)):
        with tuning.steps.blaming("tune_ansor"):
            foreseen = prediction.predict_ansor(task, log, size=tuning.a_round)
            tuning.keep("Ansor", log, ansor.history(log, started=started), foreseen)
            _print_code("Ansor", ansor.best_code(task, log))
        applied = tuning.best("tune_ansor", "apply_ansor", task, str(log))
        if applied is not None:
            with tuning.steps.blaming("apply_ansor"):
                tuning.add("Ansor", "apply_ansor", compiled(*applied)["main"])


def _add_tile_classic(tuning: _Tuning) -> None:
    from tvm_practice.course.stack import earlier
    from tvm_practice.course.tours.products import compiled
    from tvm_practice.engines.blocking import register_tile

    tensors = earlier("te_basics.matmul")(tuning.size, tuning.size, tuning.size)
    by_hand = earlier("manual_schedule.tile_classic")(tensors, *register_tile())
    tuning.add_hand_written("tile_classic", compiled(by_hand, tensors)["main"])


def _print_code(tuner: str, code: str | None) -> None:
    if code is None:
        print(f"{tuner}'s log has no valid record")
        return
    lines = []
    for line in code.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += textwrap.wrap(line, 74, subsequent_indent=indent, break_long_words=False)
    show_code(f"the schedule that {tuner} found", lines, "python")


def report(results: Mapping[str, Any], folder: Path) -> None:
    """Compare all tuners in a table and as curves, and say what the figures show."""
    lanes = [lane["figures"] for lane in results.values() if "figures" in lane]
    tuners = {name: each for lane in lanes for name, each in lane["tuners"].items()}
    if not tuners:
        return
    _print_table(lanes)
    _plot(lanes, folder / "best_so_far.png")
    _show_predictions(tuners, folder)
    for name, each in tuners.items():
        print(f"records of {name}: {each['records']}")
    say(
        "\nA hand-written schedule is one point, reasoned out for one processor; a tuner measures "
        "many. It can only find what its space holds: packing A and B, which packed_matmul does, "
        "is in none of these spaces. And a record holds for one size on one processor: change "
        "either, and you pay for the trials again."
    )


def _print_table(lanes: Sequence[Mapping[str, Any]]) -> None:
    from rich import box

    size = lanes[0]["size"]
    table = number_table(
        "schedule",
        *("trials", "failed", "seconds", "ms", "GFLOP/s", "x by hand"),
        title=f"matmul {size}x{size}x{size}, float32",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    notes = []
    for lane in lanes:
        for name in [lane["hand_written"], *lane["tuners"]]:
            table.add_row(name, *_spent(lane, name), *_reached(lane, name))
            ratio = (lane["comparison"] or {"ratio": {}})["ratio"].get(name, {})
            decided = ratio.get("verdict", "faster") in ("faster", "slower")
            if not decided and name != lane["hand_written"]:
                notes.append(f"{name} and {lane['hand_written']}: {ratio['verdict']}.")
        table.add_section()
    print()
    show(table)
    say(
        "seconds: from the start of tuning to the last trial. ms: median of calls taken in turns. "
        "x by hand: how many times as fast as phase 2's schedule on the same engine, with its 95% "
        "interval: the median of the rounds' ratios, not the quotient of two medians. The engines "
        "ran one after the other: compare across them with care."
    )
    for note in notes:
        say(note)


def _spent(lane: Mapping[str, Any], name: str) -> tuple[str, str, str]:
    """For the table: trials, how many failed, seconds."""
    from tvm_practice.tvm_export.tuners import Trial, count_errors

    if name not in lane["tuners"]:
        return "", "", ""
    trials = [Trial(**each) for each in lane["tuners"][name]["history"]]
    seconds = f"{trials[-1].elapsed:.0f}" if trials else ""
    return str(len(trials)), str(count_errors(trials).total()), seconds


def _reached(lane: Mapping[str, Any], name: str) -> tuple[str, str, str]:
    """For the table: milliseconds, GFLOP/s, times as fast as by hand."""
    from tvm_practice.measure import NO_RATIO

    by_hand = "1" if name == lane["hand_written"] else ""
    comparison = lane["comparison"]
    if comparison is None or name not in comparison["latency"]:
        return "", "", by_hand
    median = comparison["latency"][name]["p50"]
    if not by_hand:
        ratio = comparison["ratio"][name]
        by_hand = NO_RATIO
        if ratio["value"] is not None:
            low, high = ratio["ci95"]
            by_hand = f"{1 / ratio['value']:.2f} [{1 / high:.2f}, {1 / low:.2f}]"
    return f"{median:.3f}", f"{2 * lane['size'] ** 3 / median / 1e6:.0f}", by_hand


def _plot(lanes: Sequence[Mapping[str, Any]], path: Path) -> None:
    from tvm_practice.tvm_export.tuners import Trial
    from tvm_practice.viz.tuning import plot_tuning

    size = lanes[0]["size"]
    flop = 2 * size**3
    histories, levels = {}, {}
    for lane in lanes:
        for name, each in lane["tuners"].items():
            histories[name] = [Trial(**trial) for trial in each["history"]]
        if lane["comparison"]:
            by_hand = lane["comparison"]["latency"][lane["hand_written"]]
            levels[f"{lane['hand_written']} (hand-written)"] = flop / by_hand["p50"] / 1e6
    plot_tuning(
        path, histories, flop=flop, levels=levels, title=f"Tuning a matmul of {size}³, float32"
    )
    print(f"\nplot: {path}")


def _show_predictions(tuners: Mapping[str, Any], folder: Path) -> None:
    """Say how well each cost model ranked trials before they were measured, and draw it."""
    from tvm_practice.tvm_export.tuners.prediction import Prediction, rank_correlation
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.tuning import prediction_svg

    found = {
        name: [Prediction(**made) for made in each["predictions"]]
        for name, each in tuners.items()
        if each["predictions"]
    }
    if not found:
        return
    say(
        "\nHow well did the cost models predict? Each trial is ranked by a model that knows only "
        "the trials before it. Kendall's tau compares this order with the measured one: 1 for the "
        "same, 0 for chance."
    )
    for name, predictions in found.items():
        tau = rank_correlation(predictions)
        told = "too few trials" if tau is None else f"{tau:+.2f}"
        print(f"  {name}: {told} over {len(predictions)} trials")
    picture = folder / "predictions.svg"
    picture.write_text(standalone(prediction_svg(found, flop=1.0, title="Predicted and measured")))
    print(f"picture: {picture}")
