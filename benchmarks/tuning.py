"""How fast, and how well, each tuner searches one matmul; docs/tuning_speed.md made of it.

    python benchmarks/tuning.py                          # all tuners, some ten minutes
    python benchmarks/tuning.py --only register-tiles --again
    python benchmarks/tuning.py --table                  # only write the page again

Each search is a process of its own, which calls the tuner as the course does. It is the longest
of --trials, and what it had found after fewer trials or after --seconds is read from its log; a
tuner that is done sooner searches once more, for --seconds. The schedules found are then built
and timed in turns with torch.matmul, all of an engine in one process.

A tuner that is in the report is not run again. One that is interrupted begins anew next time: a
search in two parts would not be timed.
"""

import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice import engines

if TYPE_CHECKING:
    from tvm_practice.tvm_export.tuners import Trial

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tuning_speed.md"
PICTURE = ROOT / "docs" / "pictures" / "tuning_speed.svg"
SHAPE = (1024, 1024, 1024)
TRIALS = (32, 64)
_GOAL = 30  # seconds for the longest of --trials with MetaSchedule
_SPARE = 1.3  # of the trials that a search for --seconds should need, so that time ends it


@dataclass(frozen=True)
class Contender:
    """A tuner and what it searches.

    Attributes:
        label: what the page calls it.
        engine: that it belongs to.
        tuner: the module of `tvm_export.tuners` that reads its log.
        finals: whether its best records are timed in turns before one is taken, as in an export.
    """

    label: str
    engine: engines.Engine
    tuner: str
    finals: bool = False


CONTENDERS = {
    "register-tiles": Contender(
        "MetaSchedule, register tiles", "current", "metaschedule", finals=True
    ),
    "metaschedule": Contender(
        "MetaSchedule, its own space", "current", "metaschedule", finals=True
    ),
    "stock": Contender("MetaSchedule, default settings", "current", "metaschedule"),
    "ansor": Contender("Ansor", "classic", "ansor"),
    "autotvm": Contender("AutoTVM, the course's template", "classic", "autotvm"),
    "autotvm-packed": Contender("AutoTVM, packed template", "classic", "autotvm"),
}
# Each engine's process measures torch.matmul too. Apart by more than this, something else ran.
_QUIET = 1.4
_BY_HAND = "by hand"
_NO_BUILD = (
    "Its builders import TVM's tensor intrinsics before they build, in new processes every round. "
    "Where that takes longer than the 30 s that a build is given, all builds fail."
)
_HEAD = """# How fast the tuners search

Made by `python benchmarks/tuning.py`: every tuner of the project searches one float32 matmul once,
each in its own process.

- **MetaSchedule, register tiles**: the packed blocking of the export's own rules, their tile and
  its order searched.
- **MetaSchedule, its own space**: "post-order-apply", with the course's builder, runner and
  population (256).
- **MetaSchedule, default settings**: `tune_tir` with nothing set but the trials. A round has 64
  trials, and there is no result before a round's end.
- **Ansor** and **AutoTVM, the course's template**: phase 5.
- **AutoTVM, packed template**: the blocking of phase 2's `packed_matmul` with knobs, on the
  classic engine.
"""


# In a child process with the contender's engine.


def search(
    name: str, shape: Sequence[int], trials: int, seconds: float | None, log: str
) -> dict[str, Any]:
    """One search.

    Args:
        name: of the contender.
        shape: m, n, k of an m x k by k x n product, float32.
        trials: after which it ends.
        seconds: after which it ends; None: with the trials.
        log: of the tuner.

    Returns:
        {"seconds" (from the task's making to the last record), "trials" (`Trial.to_dict`)}.
    """
    from tvm_practice.tvm_export.tuners.search import Search, searching

    started = time.time()
    with searching(Search(seconds=seconds), most=trials):
        if CONTENDERS[name].engine == engines.CLASSIC:
            _search_classic(name, shape, trials, log)
        else:
            _search_current(name, shape, trials, log)
    spent = time.time() - started
    found = [each.to_dict() for each in _history(name, log, started)]
    for each in found:
        if (
            each["elapsed"] is None
        ):  # the default settings keep no times: a round is all of its trials
            each["elapsed"] = spent
    return {"seconds": spent, "trials": found}


def _search_current(name: str, shape: Sequence[int], trials: int, log: str) -> None:
    from tvm.s_tir import meta_schedule as ms

    from solutions.auto_tune import tune_metaschedule
    from tvm_practice.tvm_export.tuners.metaschedule import make_context

    if name == "stock":
        ms.tune_tir(_module(shape), engines.host_target(), log, trials)
        return
    space = "register-tiles" if name == "register-tiles" else "post-order-apply"
    context = make_context(_module(shape), engines.host_target(), space=space)
    tune_metaschedule([context], [1.0], trials=trials, work_dir=log)


def _search_classic(name: str, shape: Sequence[int], trials: int, log: str) -> None:
    from solutions import auto_tune

    task = _classic_task(name, shape)
    if name == "ansor":
        auto_tune.tune_ansor([task], [1.0], trials=trials, log=log)
    else:
        auto_tune.tune_autotvm(task, trials=trials, log=log)


def _module(shape: Sequence[int]) -> Any:
    import tvm
    from tvm import te

    from solutions.te_basics import matmul

    function = te.create_prim_func(matmul(*shape)).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": function})


def _classic_task(name: str, shape: Sequence[int]) -> Any:
    from solutions.auto_tune import matmul_template
    from solutions.te_basics import matmul
    from tvm_practice.tvm_export.tuners import ansor, autotvm
    from tvm_practice.tvm_export.tuners.matmul_template import packed_matmul_template

    target = engines.host_target()
    if name == "ansor":
        return ansor.make_task(matmul, shape, target)
    template = matmul_template if name == "autotvm" else packed_matmul_template
    return autotvm.make_task(template, shape, target)


def _history(name: str, log: str, started: float) -> "list[Trial]":
    import importlib

    tuner = importlib.import_module(f"tvm_practice.tvm_export.tuners.{CONTENDERS[name].tuner}")
    found: list[Trial] = tuner.history(log, started=started)
    return found


def compare(
    shape: Sequence[int], chosen: Sequence[tuple[str, str, int]], seconds: float
) -> dict[str, Any]:
    """Build schedules that one engine's searches found, and time them in turns.

    Args:
        shape: m, n, k.
        chosen: contender, its log, and after how many trials it is to give its best schedule.
        seconds: for measuring.

    Returns:
        `measure.Comparison.to_dict` with "max_error", to numpy; the baseline is "torch", and
        "by hand" is phase 2's blocking with the tile of its worked example. The others are in the
        order of `chosen`, named "0", "1", ...
    """
    import functools

    import numpy as np
    import torch
    import tvm

    from tvm_practice.measure import compare_interleaved

    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), "float32"), rng.standard_normal((k, n), "float32")
    classic = engines.active() == engines.CLASSIC
    functions = {_BY_HAND: _by_hand_classic(shape) if classic else _by_hand_current(shape)}
    build = _build_classic if classic else _build_current
    for number, (name, log, trials) in enumerate(chosen):
        with tempfile.TemporaryDirectory() as folder:
            beginning = _beginning(Path(log), trials, Path(folder))
            functions[str(number)] = build(name, shape, beginning)

    on_device = tvm.nd.array if classic else tvm.runtime.tensor
    torch.set_num_threads(engines.thread_count())
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    runs = {"torch": functools.partial(torch.matmul, left, right, out=torch.zeros(m, n))}
    errors = {}
    inputs = [on_device(each) for each in (a, b)]
    for name, function in functions.items():
        product = on_device(np.full((m, n), np.nan, "float32"))
        runs[name] = functools.partial(function, *inputs, product)
        runs[name]()
        errors[name] = float(np.abs(product.numpy() - a @ b).max())
        if not errors[name] <= 1e-5 * k:  # NaN is an error too
            raise RuntimeError(f"schedule {name} of {chosen} is wrong by {errors[name]:.3g}")
    compared = compare_interleaved(runs, baseline="torch", rounds=200, warmup=5, time_limit=seconds)
    return {**compared.to_dict(), "max_error": errors}


def _beginning(log: Path, trials: int, folder: Path) -> str:
    """A copy of `log` with its first trials only."""
    copy = folder / log.name
    records = copy
    if log.is_dir():
        shutil.copytree(log, copy)
        records = copy / "database_tuning_record.json"
    else:
        shutil.copy(log, copy)
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:trials]))
    return str(copy)


def _build_current(name: str, shape: Sequence[int], log: str) -> Any:
    import tvm

    from solutions.auto_tune import apply_metaschedule
    from tvm_practice.tvm_export.compiling import compiling
    from tvm_practice.tvm_export.rules.cpu import schedule_defaults
    from tvm_practice.tvm_export.tuners.finals import fastest_records
    from tvm_practice.tvm_export.tuners.metaschedule import open_database

    target, module, database = engines.host_target(), _module(shape), open_database(log)
    if CONTENDERS[name].finals:
        # An export may take the default schedule instead; the table is of what was searched.
        database = fastest_records(module, database, target).best
    tuned = apply_metaschedule(module, database, target)
    with compiling(target):
        return tvm.compile(schedule_defaults(tuned, target), target=target)["main"]


def _build_classic(name: str, shape: Sequence[int], log: str) -> Any:
    import tvm

    from solutions.auto_tune import apply_ansor, apply_autotvm

    apply = apply_ansor if name == "ansor" else apply_autotvm
    return tvm.build(*apply(_classic_task(name, shape), log), target=engines.host_target())


def _by_hand_current(shape: Sequence[int]) -> Any:
    import tvm

    from solutions.manual_schedule import packed_matmul
    from tvm_practice.engines.blocking import packed_blocking

    m, n, k = shape
    schedule = packed_matmul(m, n, k, **packed_blocking(n))
    return tvm.compile(schedule.mod, target=engines.host_target())["main"]


def _by_hand_classic(shape: Sequence[int]) -> Any:
    """The same blocking on the classic engine."""
    import tvm

    from tvm_practice.engines.blocking import packed_blocking
    from tvm_practice.tvm_export.tuners.matmul_template import packed_matmul

    m, n, k = shape
    target = engines.host_target()
    schedule, tensors = packed_matmul(m, n, k, unroll_k=4, **packed_blocking(n))
    return tvm.build(schedule, tensors, target=target)


# In the process of the command line.


def run(
    name: str, shape: Sequence[int], trials: int, seconds: float, folder: Path
) -> dict[str, dict[str, Any]]:
    """A contender's searches: "trials", and "seconds" where the first was over before them.

    Each is what `search` returns, with its "log".
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def once(kind: str, count: int, limit: float | None) -> dict[str, Any]:
        log = folder / kind
        arguments = {
            "name": name, "shape": shape, "trials": count, "seconds": limit, "log": str(log),
        }  # fmt: skip
        own = (folder / "output.txt").open("w") if name == "stock" else nullcontext()
        with own as output, engines.Session(CONTENDERS[name].engine, output=output) as session:
            found = session.call("benchmarks.tuning:search", arguments)
        return {**found, "log": str(log)}

    if name == "stock":  # tables, and not how far it is
        click.echo(f"   what it prints goes to {folder / 'output.txt'}; it takes some minutes")

    found = {"trials": once("trials", trials, None)}
    spent = found["trials"]["seconds"]
    if spent < seconds:
        needed = math.ceil(_SPARE * trials * seconds / spent)
        click.echo(f"   {trials} trials took {spent:.0f} s; again, for {seconds:g} s")
        found["seconds"] = once("seconds", needed, seconds)
    return found


def milestones(
    searches: dict[str, dict[str, Any]], trials: Sequence[int], seconds: float
) -> dict[str, tuple[str, int] | None]:
    """What a contender had measured: after so many trials, and after `seconds`.

    Returns:
        By the milestone's name the log and how many of its trials; None where none had run.
    """
    from tvm_practice.tvm_export.tuners import Trial, best_trial

    def done(kind: str, count: int, limit: float) -> tuple[str, int] | None:
        first = [Trial(**each) for each in searches[kind]["trials"][:count]]
        first = [each for each in first if (each.elapsed or 0) <= limit]
        return (searches[kind]["log"], len(first)) if best_trial(first) else None

    longest = "seconds" if "seconds" in searches else "trials"
    return {
        **{f"{count} trials": done("trials", count, math.inf) for count in trials},
        f"{seconds:g} s": done(longest, sys.maxsize, seconds),
    }


def judge(report: dict[str, Any], engine: engines.Engine, seconds: float) -> dict[str, Any] | None:
    """What `compare` says of an engine's schedules, and which of them is which milestone's.

    Returns:
        `compare`'s with "names": {contender: {milestone: name there, None without one}}; None if
        the engine has no search.
    """
    chosen: list[tuple[str, str, int]] = []
    names: dict[str, dict[str, str | None]] = {}
    for name, searches in report["searches"].items():
        if CONTENDERS[name].engine != engine:
            continue
        names[name] = {}
        for milestone, done in milestones(searches, report["trials"], report["seconds"]).items():
            if done is not None and (name, *done) not in chosen:
                chosen.append((name, *done))
            names[name][milestone] = None if done is None else str(chosen.index((name, *done)))
    if not names:
        return None
    click.echo(f"== {len(chosen)} schedules of the {engine} engine, in turns with torch.matmul")
    arguments = {"shape": report["shape"], "chosen": chosen, "seconds": seconds}
    return {**engines.call(engine, "benchmarks.tuning:compare", arguments), "names": names}


def tables(report: dict[str, Any]) -> str:
    """The tables of the page."""
    searched = {name: report["searches"][name] for name in CONTENDERS if name in report["searches"]}
    size, most = " × ".join(map(str, report["shape"])), max(report["trials"])
    lines = [f"## {most} trials\n", "| | s | trials/s | first result, s | failed |"]
    lines.append("|---|---|---|---|---|")
    for name, searches in searched.items():
        trials, spent = searches["trials"]["trials"], searches["trials"]["seconds"]
        first = min(each["elapsed"] for each in trials)
        failed = sum(each["error"] is not None for each in trials)
        lines.append(
            f"| {CONTENDERS[name].label} | {spent:.1f} | {len(trials) / spent:.2f} "
            f"| {first:.1f} | {failed or ''} |"
        )
    if {"stock", "register-tiles"} <= set(searched):
        stock, ours = (searched[each]["trials"]["seconds"] for each in ("stock", "register-tiles"))
        lines.append(
            f"| {most} MetaSchedule trials of one {size} matmul on {report['threads']} threads "
            f"(stock: {stock:.0f} s): at most {_GOAL} s | {ours:.1f} | {most / ours:.2f} | | |"
        )
    for name, searches in searched.items():
        reasons = {each["error"] for each in searches["trials"]["trials"]}
        if None not in reasons:
            lines += ["", f"{CONTENDERS[name].label}: every trial failed: {'; '.join(reasons)}."]
            lines += [_NO_BUILD] if name == "stock" else []
    lines += ["", *_quality(report)]
    return "\n".join(lines)


def _quality(report: dict[str, Any]) -> list[str]:
    """The lines of the table of the schedules found."""
    heads = [*(f"{count} trials" for count in report["trials"]), f"{report['seconds']:g} s"]
    lines = ["## What they had found\n", f"| time / torch, after | {' | '.join(heads)} |"]
    lines.append(f"|---|{'---|' * len(heads)}")
    m, n, k = report["shape"]
    by_hand, rates = [], {}
    for name, contender in CONTENDERS.items():
        judged = report["judged"].get(contender.engine, {"names": {}})
        if name in judged["names"]:
            found = judged["names"][name]
            cells = [_cell(judged, found[head]) if found[head] else "none yet" for head in heads]
            lines.append(f"| {contender.label} | {' | '.join(cells)} |")
    for engine, judged in sorted(report["judged"].items()):
        by_hand.append(f"{_cell(judged, _BY_HAND)} on the {engine} engine")
        rates[engine] = 2 * m * n * k / judged["latency"]["torch"]["p50"] / 1e6
    if by_hand:
        beside = ", ".join(f"{rate:.0f} beside the {each} engine" for each, rate in rates.items())
        lines += [
            "",
            f"Written by hand, phase 2's packed blocking: {', '.join(by_hand)}. "
            f"GFLOP/s of torch.matmul: {beside}.",
        ]
        if max(rates.values()) > _QUIET * min(rates.values()):
            lines += ["", "The machine was not quiet: do not trust the times."]
    return lines


def _cell(judged: dict[str, Any], name: str) -> str:
    from tvm_practice.viz.tables import with_interval

    ratio = judged["ratio"][name]
    return with_interval(ratio["value"], ratio["ci95"])


def page(report: dict[str, Any]) -> str:
    """docs/tuning_speed.md from what was measured."""
    machine = report["environment"]
    m, n, k = report["shape"]
    return "\n".join(
        [
            _HEAD,
            f"m × n × k: {m} × {n} × {k}. Machine: {machine['processor']}, {report['threads']} "
            f"threads; torch {machine['packages']['torch']}, apache-tvm "
            f"{machine['packages']['apache-tvm']}, bitblas {machine['packages']['bitblas']}; "
            f"{machine['date'][:10]}.",
            "",
            "Seconds count from the making of the task, in a process that has imported TVM. "
            "`time / torch` is of the schedule found, timed afterwards in turns with "
            "`torch.matmul` on the same threads: the median with its 95% interval; under 1 is "
            "faster than PyTorch. As in an export, the first two tuners' eight best schedules are "
            "timed in turns once more before one is taken, in some ten seconds that are not "
            "counted; where the export's default schedule is faster than all of them, the best "
            "trial's is timed here. AutoTVM's search for few trials would update its model sooner "
            "than the longer one that is read here.",
            "",
            tables(report),
            "",
            f"![Best speed so far by trial and by second](pictures/{PICTURE.name})",
            "",
        ]
    )


def picture(report: dict[str, Any]) -> str:
    """The best speed so far of each tuner, as SVG."""
    from tvm_practice.tvm_export.tuners import Trial
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.tuning import best_svg

    m, n, k = report["shape"]
    flop = 2.0 * m * n * k
    histories = {}
    for name, searches in report["searches"].items():
        if name == "stock":
            continue  # a single result, far to the right
        found = searches.get("seconds", searches["trials"])
        histories[CONTENDERS[name].label] = [Trial(**each) for each in found["trials"]]
    levels = {
        f"torch.matmul beside {engine}": flop / judged["latency"]["torch"]["p50"] / 1e6
        for engine, judged in report["judged"].items()
    }
    title = f"Tuning a matmul of {m} × {n} × {k}, float32"
    return standalone(best_svg(histories, flop=flop, title=title, levels=levels))


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/tuning.py\n"
    "  python benchmarks/tuning.py --only register-tiles --only stock --again\n"
    "  python benchmarks/tuning.py --shape 512 512 512 --trials 16 --out runs/tuning-512.json\n"
    "  python benchmarks/tuning.py --table"
)
@click.option("--shape", type=click.IntRange(min=1), nargs=3, default=SHAPE, show_default=True)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    multiple=True,
    default=TRIALS,
    show_default=True,
    help="After which the best is compared; the most of them are searched.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=30,
    show_default=True,
    help="After which the best is compared.",
)
@click.option(
    "--compare-seconds",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    help="For timing an engine's schedules in turns.",
)
@click.option("--only", multiple=True, type=click.Choice(list(CONTENDERS)), help="[all]")
@click.option("--again", is_flag=True, help="Also what the report has.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/tuning.json"))
@click.option("--table", is_flag=True, help="Write the page from what is there.")
def main(
    shape: tuple[int, int, int],
    trials: tuple[int, ...],
    seconds: float,
    compare_seconds: float,
    only: tuple[str, ...],
    again: bool,
    out: Path,
    table: bool,
) -> None:
    """Compare the tuners on one matmul; write docs/tuning_speed.md."""
    if table:
        if not out.exists():
            raise click.UsageError(f"there is no {out}; run it without --table")
        report = json.loads(out.read_text())
        PAGE.write_text(page(report))
        PICTURE.write_text(picture(report))
        click.echo(f"written: {PAGE} and {PICTURE}")
        return
    settings = {"shape": list(shape), "trials": sorted(set(trials)), "seconds": seconds}
    report = _opened(out, settings, again=again and not only)
    try:
        failed = _measure(report, only or tuple(CONTENDERS), again, out, compare_seconds)
    except KeyboardInterrupt:
        kept = f"what was finished is in {out}" if out.exists() else "nothing was finished"
        click.echo(f"\nstopped; {kept}", err=True)
        sys.exit(130)
    click.echo("\n" + tables(report))
    sys.exit(1 if failed else 0)


def _opened(out: Path, settings: dict[str, Any], *, again: bool) -> dict[str, Any]:
    """The report in `out` if it is of the same settings, a new one if there is none or `again`."""
    if out.exists() and not again:
        report: dict[str, Any] = json.loads(out.read_text())
        differing = [name for name, value in settings.items() if report[name] != value]
        if differing:
            raise click.UsageError(
                f"{out} has {differing[0]} {report[differing[0]]}, not {settings[differing[0]]}; "
                "name another --out, or --again without --only to begin anew"
            )
        return report
    from tvm_practice.measure import environment

    out.parent.mkdir(parents=True, exist_ok=True)
    return {
        "environment": environment(), "threads": engines.thread_count(), **settings,
        "searches": {}, "judged": {},
    }  # fmt: skip


def _measure(
    report: dict[str, Any], names: Sequence[str], again: bool, out: Path, compare_seconds: float
) -> bool:
    """Measure what the report lacks, and write it after each; whether anything failed."""
    from tvm_practice.tvm_export.writing import write_json

    os.environ["PYTHONPATH"] = str(ROOT)  # where a child process finds this file
    failed = False
    for number, name in enumerate(names, start=1):
        contender = CONTENDERS[name]
        if name in report["searches"] and not again:
            continue
        if reason := engines.unavailable_reason(contender.engine):
            click.echo(f"== {contender.label}: {reason}")
            continue
        click.echo(f"== {number} of {len(names)}: {contender.label}")
        folder = out.with_suffix("").absolute() / name
        try:
            found = run(name, report["shape"], max(report["trials"]), report["seconds"], folder)
        except engines.EngineError as error:
            click.echo(f"{contender.label}: {str(error).splitlines()[0]}", err=True)
            failed = True
            continue
        report["searches"][name] = found
        report["judged"].pop(contender.engine, None)
        write_json(out, report)
    for engine in engines.ENGINES:
        if engine in report["judged"]:
            continue
        try:
            judged = judge(report, engine, compare_seconds)
        except engines.EngineError as error:
            click.echo(f"{engine} engine: {str(error).splitlines()[0]}", err=True)
            failed = True
            continue
        if judged is not None:
            report["judged"][engine] = judged
            write_json(out, report)
    return failed


if __name__ == "__main__":
    main()
