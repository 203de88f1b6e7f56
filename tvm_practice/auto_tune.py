"""Phase 5: auto-tuning.

Phase 2 chose tile sizes by reasoning about registers and caches. A tuner chooses by measuring:

    propose a schedule -> build it -> run it -> record how long it took -> propose the next

The record makes the work durable: a log outlives the process, is used for every later build, and
a search can go on from it. What differs between tuners is who writes the schedule, and how the
next one is proposed:

    AutoTVM       classic   you write a template with knobs; the tuner picks their values
    Ansor         classic   nobody: it derives whole schedules ("sketches") from the expression
    MetaSchedule  current   either: derived from the expression, or a function of yours that
                            asks for samples where it could decide

All three train a model on what they have measured (XGBoost, on features of the loops) and
measure only candidates that it likes. A trial costs half a second; a prediction, microseconds.

The worked example is a tuner without a model. Write the functions below it, then run

    python -m tvm_practice.auto_tune --quick        16 trials each, about a minute
    python -m tvm_practice.auto_tune                64 trials each, on a larger matmul
    pytest -m phase5

Tuners measure in worker processes, so that a candidate that crashes or hangs costs one trial and
not the search. Their defaults are made for hours of it; tvm_practice/tvm_export/tuners holds
what makes a few dozen trials useful: builders that start quickly, small search populations, and
rounds short enough that the model learns before the trials are spent.
"""

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    from tvm_practice.course import Steps
    from tvm_practice.measure import Comparison


def random_search(size: int, trials: int) -> list[tuple[int, int, float]]:
    """Worked example: a tuner without a model, on the tiles of phase 2.

    Propose the sizes of a tile at random, build the schedule, run it, keep the time. The runs are
    in this process, so that a candidate which crashes would end the search.

    Args:
        size: rows and columns of A, B and C.
        trials: schedules to measure.

    Returns:
        (tile_m, tile_n, milliseconds) of each trial, in the order they were tried.
    """
    import numpy as np
    import tvm
    from tvm import te

    from solutions.manual_schedule import parallelize, tile, vectorize
    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target

    rng = np.random.default_rng()
    inputs = [tvm.runtime.tensor(rng.random((size, size), "float32")) for _ in range(2)]
    output = tvm.runtime.tensor(np.zeros((size, size), "float32"))
    records = []
    for _ in range(trials):
        tile_m, tile_n = (int(2**power) for power in rng.integers([0, 3], [6, 8]))  # propose
        function = te.create_prim_func(matmul(size, size, size))
        schedule = tvm.s_tir.Schedule(function.with_attr("global_symbol", "main"))
        block = schedule.get_sblock("C")
        tile(schedule, block, tile_m, tile_n)
        vectorize(schedule, block)
        parallelize(schedule, block)
        library = tvm.compile(schedule.mod, target=host_target())  # build
        timer = library.mod.time_evaluator("main", tvm.cpu(), number=1, repeat=3, min_repeat_ms=10)
        records.append((tile_m, tile_n, timer(*inputs, output).mean * 1e3))  # run, record
    return records


def matmul_template(m: int, n: int, k: int) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """AutoTVM: a matmul whose schedule leaves numbers open, as knobs of `autotvm.get_config()`.

    Declare C[i, j] = sum over k of A[i, k] * B[k, j], define a knob for each number that you
    would otherwise guess (rows and columns of a tile, say, or how many steps of k are unrolled),
    and schedule with the values that the configuration holds. The innermost loop is vectorized
    and the tiles are shared among the threads. Every configuration must give the right product,
    also where it does not divide the sizes.

    While a task is made the configuration is the whole space and each knob has its first value;
    while it is tuned the function is called once a trial, with that trial's values.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.

    Returns:
        The te.Schedule and the tensors [A, B, C] of shapes (m, k), (k, n) and (m, n), float32.
    """
    raise NotImplementedError("declare the matmul, define knobs, and schedule with their values")


def tune_autotvm(task: Any, *, trials: int, log: str) -> None:
    """AutoTVM: measure configurations of a template, guided by a cost model.

    Make an autotvm.tuner.XGBTuner that learns during so few trials (budget.plan_size) and call
    its `tune` with a measure option that works and with the callbacks that append each record to
    the log and show progress (`autotvm.measuring` has what is needed but the record's callback).

    Args:
        task: an autotvm.task.Task; it carries its target.
        trials: configurations to measure.
        log: file to append the records to, one line of JSON a trial.
    """
    raise NotImplementedError(
        "an XGBTuner, its plan size, and tune() with the measure option and callbacks"
    )


def apply_autotvm(task: Any, log: str) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """AutoTVM: the schedule of the fastest valid record of a task.

    Args:
        task: an autotvm.task.Task.
        log: file with records, of this task and maybe of others.

    Returns:
        The te.Schedule and the tensors, as the task's template returns them for the
        configuration of the record.

    Raises:
        ValueError: the log has no valid record of the task.
    """
    raise NotImplementedError("autotvm.apply_history_best, then the task's instantiate")


def tune_ansor(tasks: list[Any], weights: list[float], *, trials: int, log: str) -> None:
    """Ansor: make schedules without a template, and measure those its cost model likes.

    An auto_scheduler.TaskScheduler divides the trials among the tasks, more to those where the
    weighted sum of latencies gains most. Give its `tune` the TuningOptions with a builder, a
    runner and callbacks that append each record to the log and show progress
    (`ansor.measuring`), a round small enough that the cost model learns before the trials are
    spent (budget.trials_per_round), and a small search population (`ansor.fast_search_params`).
    If the log exists, the search goes on from it.

    Args:
        tasks: auto_scheduler.SearchTask objects; each carries its target.
        weights: how often each task runs.
        trials: schedules to measure in total, rounded up to whole rounds.
        log: file to append the records to, one line of JSON a trial.
    """
    raise NotImplementedError("an auto_scheduler.TaskScheduler and its tune() with TuningOptions")


def apply_ansor(task: Any, log: str) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """Ansor: the schedule of the fastest valid record of a task.

    Args:
        task: an auto_scheduler.SearchTask.
        log: file with records, of this task and maybe of others.

    Returns:
        The te.Schedule and the tensors of the record's state.

    Raises:
        RuntimeError: the log has no valid record of the task.
    """
    raise NotImplementedError("the task's apply_best")


def metaschedule_space(schedule: Any) -> None:
    """MetaSchedule: a design space, as a schedule that asks for samples where it could decide.

    The workload is phase 1's matmul, its block named "C" with loops i, j and k. Schedule it as in
    phase 2, but take the factors of the splits from `schedule.sample_perfect_tile`: the search
    replays your calls with other samples. The innermost loop is vectorized, the outer tile loops
    are fused and parallel, k is neither.

    Args:
        schedule: a tvm.s_tir.Schedule of the matmul, changed in place.
    """
    raise NotImplementedError("the schedule of phase 2, its factors from sample_perfect_tile")


def tune_metaschedule(
    contexts: list[Any], weights: list[float], *, trials: int, work_dir: str
) -> Any:  # a meta_schedule.Database
    """MetaSchedule: measure schedules of one or many tasks, guided by a cost model.

    Call meta_schedule.tune.tune_tasks with a builder and a runner that start quickly and a
    callback that shows progress (`metaschedule.measuring`; tune_tasks needs MetaSchedule's
    default measure callbacks before it), a cost model set for few trials
    (`metaschedule.cost_model`), and a round small enough that it learns before the trials are
    spent (budget.trials_per_round).

    Args:
        contexts: meta_schedule.TuneContext objects; each carries its design space and target.
        weights: how often each task runs.
        trials: schedules to measure in total, rounded up to whole rounds.
        work_dir: folder of the database, which a later call goes on from.

    Returns:
        The meta_schedule.Database with the records.
    """
    raise NotImplementedError("meta_schedule.tune.tune_tasks with what `measuring` gives")


def apply_metaschedule(mod: Any, database: Any, target: Any) -> Any:  # an IRModule
    """MetaSchedule: a module with the fastest valid record of each of its functions applied.

    Args:
        mod: an IRModule of PrimFuncs: one matmul, or all operators of a Relax model.
        database: a meta_schedule.Database.
        target: the tvm.target.Target that was tuned for.

    Returns:
        The IRModule; functions without a record are as they were.
    """
    raise NotImplementedError("MetaScheduleApplyDatabase, inside `with target, database`")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Tune one matmul with the active engine's tuners, and compare with the hand-written one."""
    from tvm_practice import engines

    size, trials = (512, 16) if quick else (1024, 64)
    # A folder of its own for each run: a log that exists would be continued.
    folder = steps.folder / time.strftime("%Y%m%d-%H%M%S")
    tuning = _Tuning(steps, size, trials, folder)
    if engines.active() == engines.CLASSIC:
        _classic_lane(tuning)
    else:
        _current_lane(tuning, quick)
    return tuning.figures()


def _current_lane(tuning: "_Tuning", quick: bool) -> None:
    import tvm
    from tvm import te

    from solutions.manual_schedule import packed_matmul
    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target
    from tvm_practice.manual_schedule import packed_blocking
    from tvm_practice.tvm_export.tuners import metaschedule, prediction

    size = tuning.size
    _show_random_search(size, 6 if quick else 16)

    target = host_target()
    function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    module = tvm.IRModule({"main": function})

    print("\nMetaSchedule: a design space is a schedule whose numbers are sampled.")
    spaces = {"MetaSchedule": tuning.own("metaschedule_space")}
    if tuning.done("metaschedule_space", sampled := tvm.s_tir.Schedule(module)):
        from tvm_practice.viz.loop_nest import loop_nest, print_nest

        print_nest("one sample of metaschedule_space", loop_nest(sampled.mod["main"]))
        if not quick:
            spaces["MetaSchedule stock"] = "post-order-apply"
    else:
        spaces = {"MetaSchedule stock": "post-order-apply"}

    for name, space in spaces.items():
        work_dir = tuning.folder / name.replace(" ", "-").lower()
        context = metaschedule.make_context(module, target, space=space, name="matmul")
        started = time.time()
        database = tuning.steps.attempt(
            "tune_metaschedule", [context], [1.0], trials=tuning.trials, work_dir=str(work_dir)
        )
        if database is None:
            break
        foreseen = prediction.predict_metaschedule(context, work_dir, size=tuning.a_round)
        tuning.keep(name, work_dir, metaschedule.history(work_dir, started=started), foreseen)
        _print_code(name, metaschedule.best_code(database, module, target))
        tuned = tuning.steps.attempt("apply_metaschedule", module, database, target)
        if tuned is not None:
            tuning.add(name, "apply_metaschedule", tvm.compile(tuned, target=target)["main"])

    packed = packed_matmul(size, size, size, **packed_blocking(size))
    tuning.add_hand_written("packed_matmul", tvm.compile(packed.mod, target=target)["main"])


def _show_random_search(size: int, trials: int) -> None:
    print(
        f"\nA tuner without a model: {trials} random tiles of phase 2's schedule, matmul of "
        f"{size}³."
    )
    best: float | None = None
    for tile_m, tile_n, milliseconds in random_search(size, trials):
        best = milliseconds if best is None else min(best, milliseconds)
        print(f"  tile {tile_m:>2} x {tile_n:<3}  {milliseconds:8.2f} ms   best {best:8.2f} ms")
    print(
        "The same sums in another order, and the times differ this much. A tuner does\n"
        "this with more numbers than two, in worker processes, and learns as it goes."
    )


def _classic_lane(tuning: "_Tuning") -> None:
    import tvm
    from tvm import autotvm

    from solutions.auto_tune import matmul_template as reference_template
    from solutions.manual_schedule import tile_classic
    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target
    from tvm_practice.manual_schedule import register_tile
    from tvm_practice.tvm_export.tuners import ansor, prediction
    from tvm_practice.tvm_export.tuners import autotvm as autotvm_tuner

    size, target = tuning.size, host_target()
    sizes = (size, size, size)

    def compiled(schedule: Any, tensors: list[Any]) -> Any:
        return tvm.build(schedule, tensors, target=target)

    print("\nAutoTVM: you write the template, it picks the values of the knobs.")
    with target, autotvm.task.ApplyConfig(autotvm.task.ConfigSpace()):
        template = tuning.steps.attempt("matmul_template", *sizes)
    # The tuner can be tried before the template is written.
    declare = reference_template if template is None else tuning.own("matmul_template")
    task = autotvm_tuner.make_task(declare, sizes, target)
    knobs = [f"{name} ({len(knob)})" for name, knob in task.config_space.space_map.items()]
    print(f"{len(task.config_space)} configurations of {', '.join(knobs)}")
    log = tuning.folder / "autotvm.json"
    started = time.time()
    if tuning.done("tune_autotvm", task, trials=tuning.trials, log=str(log)):
        foreseen = prediction.predict_autotvm(task, log, size=tuning.a_round)
        tuning.keep("AutoTVM", log, autotvm_tuner.history(log, started=started), foreseen)
        _print_code("AutoTVM", autotvm_tuner.best_code(task, log))
        applied = tuning.steps.attempt("apply_autotvm", task, str(log))
        if applied is not None:
            tuning.add("AutoTVM", "apply_autotvm", compiled(*applied))

    print("\nAnsor: no template; sketches are derived from the expression.")
    search_task = ansor.make_task(matmul, sizes, target)
    log = tuning.folder / "ansor.json"
    started = time.time()
    if tuning.done("tune_ansor", [search_task], [1.0], trials=tuning.trials, log=str(log)):
        foreseen = prediction.predict_ansor(search_task, log, size=tuning.a_round)
        tuning.keep("Ansor", log, ansor.history(log, started=started), foreseen)
        _print_code("Ansor", ansor.best_code(search_task, log))
        applied = tuning.steps.attempt("apply_ansor", search_task, str(log))
        if applied is not None:
            tuning.add("Ansor", "apply_ansor", compiled(*applied))

    tensors = matmul(*sizes)
    by_hand = tile_classic(tensors, *register_tile())
    tuning.add_hand_written("tile_classic", compiled(by_hand, tensors))


class _Tuning:
    """One engine's tuners on one matmul: their trials, and what their best schedules do.

    Attributes:
        size: rows and columns of A, B and C.
        trials: what each tuner is given.
        folder: of the records.
    """

    def __init__(self, steps: "Steps", size: int, trials: int, folder: Path):
        import numpy as np

        self.steps = steps
        self.size = size
        self.trials = trials
        self.folder = folder
        self._inputs = np.random.default_rng().standard_normal((2, size, size), dtype="float32")
        self._tuners: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, Callable[[], Any]] = {}
        self._hand_written = ""

    def own(self, name: str) -> Any:
        """The function of that name itself, for a tuner to call."""
        return getattr(importlib.import_module(f"{self.steps.source}.{self.steps.phase}"), name)

    def done(self, name: str, *arguments: Any, **options: Any) -> bool:
        """Call a step that returns nothing; whether it is written and ran."""
        self.steps.attempt(name, *arguments, **options)
        return name not in self.steps.todo and name not in self.steps.failed

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
            raise RuntimeError(f"{name} of solutions/manual_schedule.py is wrong: {error}")
        self._hand_written = name

    def _add(self, name: str, function: Callable[..., Any]) -> str | None:
        import numpy as np
        import tvm

        from tvm_practice import engines

        a, b = self._inputs
        on_device = tvm.nd.array if engines.active() == engines.CLASSIC else tvm.runtime.tensor
        output = on_device(np.zeros_like(a))
        arguments = [on_device(a), on_device(b), output]
        function(*arguments)
        largest = np.abs(output.numpy() - a @ b).max()
        if not largest <= 1e-5 * self.size:  # NaN is an error too
            return f"its values differ from numpy's by {largest:.3g}"
        self._runs[name] = lambda: function(*arguments)
        return None

    def figures(self) -> dict[str, Any]:
        """Time all in turns, and give everything as JSON."""
        from tvm_practice.measure import compare_interleaved

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


def _print_code(tuner: str, code: str | None) -> None:
    import textwrap

    from rich.console import Console
    from rich.panel import Panel
    from rich.syntax import Syntax

    if code is None:
        print(f"{tuner}'s log has no valid record")
        return
    lines = []
    for line in code.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += textwrap.wrap(line, 74, subsequent_indent=indent, break_long_words=False)
    shown = Syntax("\n".join(lines), "python", background_color="default")
    Console().print(Panel(shown, title=f"the schedule that {tuner} found", title_align="left"))


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
    print(
        "\nA hand-written schedule is one point, reasoned out for one processor; a tuner\n"
        "measures many. It can only find what its space holds: packing A and B, which\n"
        "packed_matmul does, is in none of these spaces. And a record is of one size on\n"
        "one processor: change either and the trials are paid again."
    )


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
    print(
        "\nDid the cost models know? Each trial as the model of the trials before it\n"
        "ranked it, and as it was measured: Kendall's tau, 1 for the same order, 0 for\n"
        "chance."
    )
    for name, predictions in found.items():
        tau = rank_correlation(predictions)
        print(
            f"  {name}: "
            + ("too few trials" if tau is None else f"{tau:+.2f}")
            + f" over {len(predictions)} trials"
        )
    picture = folder / "predictions.svg"
    picture.write_text(standalone(prediction_svg(found, flop=1.0, title="Predicted and measured")))
    print(f"picture: {picture}")


def _print_table(lanes: Sequence[Mapping[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tvm_practice.tvm_export.tuners import Trial, count_errors

    size, flop = lanes[0]["size"], 2 * lanes[0]["size"] ** 3
    table = Table(
        title=f"matmul {size}x{size}x{size}, float32",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("schedule")
    for heading in ("trials", "failed", "seconds", "ms", "GFLOP/s", "x by hand"):
        table.add_column(heading, justify="right", no_wrap=True)
    notes = []
    for lane in lanes:
        comparison = lane["comparison"] or {"latency": {}, "ratio": {}}
        for name in [lane["hand_written"], *lane["tuners"]]:
            cells = ["", "", ""]
            if name in lane["tuners"]:
                trials = [Trial(**each) for each in lane["tuners"][name]["history"]]
                spent = trials[-1].elapsed if trials else None
                cells = [
                    str(len(trials)),
                    str(count_errors(trials).total()),
                    "" if spent is None else f"{spent:.0f}",
                ]
            latency = comparison["latency"].get(name)
            cells += ["", ""]
            if latency is not None:
                cells[3:] = [f"{latency['p50']:.3f}", f"{flop / latency['p50'] / 1e6:.0f}"]
            ratio = comparison["ratio"].get(name)
            cells.append("1" if name == lane["hand_written"] else "")
            if ratio is not None and name != lane["hand_written"]:
                low, high = ratio["ci95"]
                cells[-1] = f"{1 / ratio['value']:.2f} [{1 / high:.2f}, {1 / low:.2f}]"
                if ratio["verdict"] == "no significant difference":
                    notes.append(f"{name} and {lane['hand_written']}: {ratio['verdict']}.")
            table.add_row(name, *cells)
        table.add_section()
    Console().print()
    Console().print(table)
    print(
        "seconds: from the start of tuning to the last trial. ms: median of calls taken\n"
        "in turns. x by hand: how many times as fast as phase 2's schedule on the same\n"
        "engine, with its 95% interval. The engines ran one after the other: compare\n"
        "across them with care."
    )
    for note in notes:
        print(note)


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


main = phase_command("auto_tune", "Phase 5: auto-tuning, schedules found by measuring.")

if __name__ == "__main__":
    main()
