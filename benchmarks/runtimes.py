"""Every model beside ONNX Runtime and OpenVINO; docs/runtimes.md says who is first.

    python benchmarks/runtimes.py                                # all, 40 minutes on two cores
    python benchmarks/runtimes.py --model lstm --model lstm-batch-8 --seconds 30
    python benchmarks/runtimes.py --rival compile-max            # minutes more for each model
    python benchmarks/runtimes.py --trials 200                   # tuned too, minutes for each
    python benchmarks/runtimes.py --curve                        # after some of those trials
    python benchmarks/runtimes.py --exports                      # only the seconds of each export
    python benchmarks/runtimes.py --table                        # only write the page again

Each model is measured in a process of its own, all runtimes in turns on the same threads. What was
measured is kept in benchmarks/runtimes.json: the page has a part for each kind of machine.
"""

import contextlib
import json
import shutil
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "runtimes.md"
KEPT = ROOT / "benchmarks" / "runtimes.json"
RIVALS = {
    "onnx": "ONNX Runtime",
    "openvino": "OpenVINO",
    "eager": "PyTorch eager",
    "compile-max": "torch.compile, max-autotune",
}
PACKAGES = ("apache-tvm", "torch", "onnxruntime", "openvino")
_DEFAULT = ("onnx", "openvino", "eager")
_SHOWN = 8  # functions of a profile
_LONG = 10  # seconds of an export
_LOGS = Path("runs") / "runtimes"  # of searches, which go on there
_PARTS = (8, 4, 2, 1)  # of a search's trials, for the curve
_HEAD = """# Runtimes, model by model

Made by `python benchmarks/runtimes.py`: float32 exports of the current engine beside the other
runtimes as their users run them. The first table's exports are untuned; with `--trials` a tuned one
takes turns with the others, and has a table of its own. Each has as many threads as TVM, gets its
inputs once, and is called in turns with the others in one process per model. OpenVINO has its
latency hint. A rival that was asked for later (`--rival`) took turns with the export in a run of
its own; the row's milliseconds are of its last run.

With `--curve`, the exports after the first eighth, quarter and half of those trials take turns with
the untuned one. A trial is one schedule measured; an export keeps the untuned build where the
records do not make the model faster.

A ratio is the rival's time over ours, with its 95% interval: over 1, TVM is faster. The last column
names the fastest, and its time over that of the fastest other one. A model that a rival is faster
on has the functions that take most of its time below.

The export's seconds are those of `compile_pytorch_module` in a new process: they include TVM's
import, and no verification. Each was exported once, so that a busy moment counts. Where the seconds
of exports of more than ten go is in a table of its own.
"""


def measure(
    factory: str, rivals: list[str], seconds: float, trials: int = 0, log: str = ""
) -> dict[str, Any]:
    """One model on all runtimes.

    Args:
        factory: "module:factory" of the model.
        rivals: keys of `RIVALS`.
        seconds: for measuring.
        trials: of MetaSchedule, for an export that takes turns with the others; 0: none.
        log: the folder of its records.

    Returns:
        {"ms": our median, "export_seconds" and "export_stages": see measure_export, "ratios": by
        rival, times over ours: see measure.Comparison.to_dict, "tuned": {"trials", "ms",
        "over_untuned": its time over the untuned export's, "ratios": times over its own},
        "missing": the reason by rival, "operators": of our build, see profiling.operators_of,
        "onnx_operators": see rivals.onnx_operators, empty without ONNX Runtime}.
    """
    from importlib import import_module

    from tvm_practice.measure import compare_interleaved
    from tvm_practice.tvm_export.calling import as_array
    from tvm_practice.tvm_export.errors import Missing
    from tvm_practice.tvm_export.loading import describe
    from tvm_practice.tvm_export.profiling import operators_of

    loaded, call, built, export = _exported(factory)
    built(*map(as_array, call.tensors))
    runs: dict[str, Any] = {"tvm": built.run}
    if trials:
        tuned = _tuned(call, trials, log)
        tuned(*map(as_array, call.tensors))
        runs["tuned"] = tuned.run
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for rival in rivals:
            try:
                runs[rival] = _run_of(rival, loaded, call, folder)
            except Missing as error:
                missing[rival] = str(error)
            except Exception as error:  # another project's; the page says so
                missing[rival] = describe(error)
        compared = compare_interleaved(runs, baseline="tvm", rounds=300, time_limit=seconds)
        found = compared.to_dict()
        if trials:
            found |= {"tuned": {"trials": trials, **_beside_tuned(compared)}}
        account: dict[str, float] = {}
        if "onnx" in runs:
            feed = dict(zip(call.names, map(as_array, call.tensors), strict=True))
            account = import_module(f"{__package__}.rivals").onnx_operators(
                folder / "model.onnx", feed
            )
    return {
        "ms": found["latency"]["tvm"]["p50"],
        **export,
        "ratios": {rival: found["ratio"][rival] for rival in rivals if rival in runs},
        **({"tuned": found["tuned"]} if trials else {}),
        "missing": missing,
        "operators": operators_of(built)[:_SHOWN],
        "onnx_operators": account,
    }


def _tuned(call: Any, trials: int, log: str) -> Any:
    """The model's export by MetaSchedule, whose records go to `log`."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    config = ExportConfig(
        example_input=tuple(call.tensors),
        tuner="metaschedule",
        tuning_trials=trials,
        tuning_log=Path(log),
    )
    return compile_pytorch_module(call.module, config, verify=False)


def measure_curve(factory: str, seconds: float, log: str) -> dict[str, Any]:
    """What the first trials of a search are worth, in builds that take turns.

    Args:
        factory: "module:factory" of the model.
        seconds: for measuring.
        log: the folder of the search's records.

    Returns:
        Times over the untuned export's by number of trials, see measure.Ratio.to_dict.
    """
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.tvm_export.calling import as_array

    _, call, built, _ = _exported(factory)
    runs: dict[str, Any] = {"untuned": built.run}
    built(*map(as_array, call.tensors))
    with tempfile.TemporaryDirectory() as made:
        for trials, folder in _parts_of(Path(log), Path(made)).items():
            tuned = _tuned(call, trials, str(folder))
            tuned(*map(as_array, call.tensors))
            runs[str(trials)] = tuned.run
    compared = compare_interleaved(runs, baseline="untuned", rounds=300, time_limit=seconds)
    return {name: compared.ratio[name].to_dict() for name in runs if name != "untuned"}


def _parts_of(log: Path, made: Path) -> dict[int, Path]:
    """Copies of a search's log with its first trials alone, by their number."""
    names = ("database_tuning_record.json", "trial_times.jsonl")
    lines = {name: (log / name).read_text().splitlines(keepends=True) for name in names}
    workloads = "database_workload.json"
    copies = {}
    for part in _PARTS:
        trials = len(lines[names[0]]) // part
        copies[trials] = made / str(trials)
        copies[trials].mkdir()
        shutil.copy(log / workloads, copies[trials] / workloads)
        for name, all_of_them in lines.items():
            (copies[trials] / name).write_text("".join(all_of_them[:trials]))
    return copies


def _beside_tuned(compared: Any) -> dict[str, Any]:
    """Of a comparison: what the tuned export took, and the others' times over its own."""
    import numpy as np

    from tvm_practice.measure import paired_ratio

    samples = {name: np.array(each.samples_ms) for name, each in compared.latency.items()}
    ratios = {}
    for name in samples.keys() - {"tvm", "tuned"}:
        ratio = compared.ratio[name]  # without a value if the turns were disturbed
        if ratio.measured:
            ratio = paired_ratio(samples[name], samples["tuned"])
        ratios[name] = ratio.to_dict()
    return {
        "ms": compared.latency["tuned"].median,
        "over_untuned": compared.ratio["tuned"].to_dict(),
        "ratios": ratios,
    }


def measure_export(factory: str) -> dict[str, Any]:
    """How long it takes to export one model, in this process, which should be a new one.

    Returns:
        {"export_seconds": from the module to one that can be called, TVM's import among them,
        "export_stages": its seconds by stage, see GraphModule}.
    """
    return _exported(factory)[-1]


def _exported(factory: str) -> tuple[Any, Any, Any, dict[str, Any]]:
    """A model, its call, its untuned export, and what that took: see measure_export."""
    import torch

    from tvm_practice import engines
    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.loading import load

    torch.set_num_threads(engines.thread_count())
    loaded = load(factory, example=None, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs, copies=loaded.changes_inputs)
    watch = Stopwatch()
    with watch("export"):
        built = compile_pytorch_module(
            call.module, ExportConfig(example_input=tuple(call.tensors)), verify=False
        )
    took = {"export_seconds": watch.seconds["export"], "export_stages": dict(built.seconds)}
    return loaded, call, built, took


def _run_of(rival: str, loaded: Any, call: Any, folder: Path) -> Any:
    """A call of the model in a rival; the files that it reads are in `folder`."""
    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export import baselines

    if rival == "eager":
        return loaded.call
    if rival == "compile-max":
        return baselines.torch_compile(loaded, Stopwatch(), thorough=True)[0]
    make = {"onnx": baselines.onnx_runtime, "openvino": baselines.openvino}[rival]
    return make(call, folder, Stopwatch())[0]


def page(machines: list[dict[str, Any]]) -> str:
    """The page of what was measured on each machine."""
    lines = [_HEAD]
    for machine in machines:
        lines += _table(machine)
    return "\n".join(lines)


def _table(machine: dict[str, Any]) -> list[str]:
    from beside_torch import ratio_cell
    from models import ALL

    rows = {name: machine["models"][name] for name in ALL if name in machine["models"]}
    rivals = _compared(rows)
    versions = ", ".join(f"{name} {each}" for name, each in machine["packages"].items() if each)
    names = [RIVALS[each] for each in rivals]
    heads = ["model", "TVM, ms", *names, "first", "export, s", "date"]
    lines = [f"## {machine['processor']}, {machine['threads']} threads", ""]
    lines += [f"{versions}.", ""]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    slower: list[str] = []
    reasons: list[str] = []
    for name, row in rows.items():
        title = ", ".join(ALL[name])
        ratios = row["ratios"]
        cells = [title, f"{row['ms']:.2f}"]
        cells += [ratio_cell(ratios[each]) if each in ratios else "–" for each in rivals]
        took = row.get("export_seconds")
        cells += [_first(ratios), "–" if took is None else f"{took:.1f}", row["date"]]
        lines.append(f"| {' | '.join(cells)} |")
        reasons += [f"- {title}, {RIVALS[each]}: {why}" for each, why in row["missing"].items()]
        if any(each["value"] is not None and each["value"] < 1 for each in ratios.values()):
            slower += _profile(title, row)
    lines += ["", *_means([row["ratios"] for row in rows.values()], rivals), ""]
    lines += _tuned_table(rows)
    lines += _curves(rows)
    lines += _long_exports({", ".join(ALL[name]): row for name, row in rows.items()})
    return [*lines, *(reasons + [""] if reasons else []), *slower]


def _compared(rows: dict[str, dict[str, Any]]) -> list[str]:
    """The rivals that some row has, in the order of the columns."""
    return [each for each in RIVALS if any(each in row["ratios"] for row in rows.values())]


def _tuned_table(rows: dict[str, dict[str, Any]]) -> list[str]:
    """The tuned exports beside the rivals, in lines; none if none was measured."""
    from beside_torch import ratio_cell
    from models import ALL

    tuned = {name: row["tuned"] for name, row in rows.items() if "tuned" in row}
    if not tuned:
        return []
    rivals = _compared(tuned)
    names = [RIVALS[each] for each in rivals]
    heads = ["model, tuned", "trials", "TVM, ms", "/ untuned", *names, "first", "date"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, row in tuned.items():
        ratios = row["ratios"]
        cells = [", ".join(ALL[name]), str(row["trials"]), f"{row['ms']:.2f}"]
        cells.append(ratio_cell(row["over_untuned"]))
        cells += [ratio_cell(ratios[each]) if each in ratios else "–" for each in rivals]
        lines.append(f"| {' | '.join([*cells, _first(ratios), row['date']])} |")
    return [*lines, "", *_means([row["ratios"] for row in tuned.values()], rivals), ""]


def _curves(rows: dict[str, dict[str, Any]]) -> list[str]:
    """What the exports take after more and more trials, in lines; none if none was measured."""
    from beside_torch import ratio_cell
    from models import ALL

    curves = {name: row["curve"] for name, row in rows.items() if "curve" in row}
    counts = sorted({int(trials) for curve in curves.values() for trials in curve})
    if not counts:
        return []
    heads = ["time / untuned after", *(f"{trials} trials" for trials in counts)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, curve in curves.items():
        ratios = [curve.get(str(trials)) for trials in counts]
        cells = ["–" if each is None else ratio_cell(each) for each in ratios]
        lines.append(f"| {' | '.join([', '.join(ALL[name]), *cells])} |")
    return [*lines, ""]


def _long_exports(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Where the seconds of long exports go, in lines; by title."""
    long = {
        title: row
        for title, row in rows.items()
        if row.get("export_seconds", 0) > _LONG and row.get("export_stages")
    }
    if not long:
        return []
    stages = list(dict.fromkeys(each for row in long.values() for each in row["export_stages"]))
    heads = [f"export of more than {_LONG} s", *stages, "the rest"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for title, row in long.items():
        taken = [row["export_stages"].get(each, 0.0) for each in stages]
        taken.append(row["export_seconds"] - sum(taken))
        lines.append(f"| {' | '.join([title, *(f'{each:.1f}' for each in taken)])} |")
    return [*lines, ""]


def _means(rows: list[dict[str, Any]], rivals: list[str]) -> list[str]:
    """The geometric means of our time over each rival's, and over the fastest one's, in lines.

    Args:
        rows: the ratios of a model by rival.
        rivals: in the order of the columns.
    """
    from beside_torch import geometric_mean

    measured = [[each["value"] for each in ratios.values()] for ratios in rows]
    told = []
    if measured and all(each and None not in each for each in measured):
        told.append(f"{geometric_mean(1 / min(each) for each in measured):.2f} over the fastest")
    for rival in rivals:
        values = [ratios[rival]["value"] for ratios in rows if rival in ratios]
        if None not in values:
            some = "" if len(values) == len(rows) else f" in {len(values)} of the {len(rows)}"
            mean = geometric_mean(1 / each for each in values)
            told.append(f"{mean:.2f} over {RIVALS[rival]}{some}")
    return [f"Geometric means of TVM's time: {', '.join(told)}."] if told else []


def _first(ratios: dict[str, Any]) -> str:
    """The fastest, and its time over the fastest other one's."""
    times = {RIVALS[each]: ratio["value"] for each, ratio in ratios.items()}
    if not times or None in times.values():
        return "–"
    (first, best), (_, second), *_ = sorted({"TVM": 1.0, **times}.items(), key=lambda it: it[1])
    return f"{first}, {best / second:.2f}"


def _profile(title: str, row: dict[str, Any]) -> list[str]:
    """Where the time goes of a model that some rival is faster on, in lines."""
    from beside_torch import function_table

    lines = [f"### {title}", "", *function_table(row["operators"])]
    if account := row["onnx_operators"]:
        most = sorted(account.items(), key=lambda each: -each[1])[:_SHOWN]
        told = ", ".join(f"{name} {milliseconds:.2f}" for name, milliseconds in most)
        lines += ["", f"ONNX Runtime's own account, ms: {told}."]
    return [*lines, ""]


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/runtimes.py\n"
    "  python benchmarks/runtimes.py --model lstm --seconds 30 --trials 200\n"
    "  python benchmarks/runtimes.py --table"
)
@click.option("--model", "names", multiple=True, help="[all]")
@click.option(
    "--rival",
    "rivals",
    multiple=True,
    type=click.Choice(list(RIVALS)),
    help=f"[{', '.join(_DEFAULT)}]",
)
@click.option("--seconds", type=float, default=20, show_default=True, help="Seconds per model.")
@click.option(
    "--kept", type=click.Path(dir_okay=False, path_type=Path), default=KEPT, show_default="here"
)
@click.option(
    "--trials",
    type=click.IntRange(min=0),
    default=0,
    help=f"Of MetaSchedule, for a tuned export too; records stay under {_LOGS}.",
)
@click.option("--curve", is_flag=True, help="Only builds after parts of the trials made before.")
@click.option("--exports", is_flag=True, help="Time the exports alone, of models measured before.")
@click.option("--table", is_flag=True, help="Write the page from what is kept.")
def main(
    names: tuple[str, ...],
    rivals: tuple[str, ...],
    seconds: float,
    kept: Path,
    trials: int,
    curve: bool,
    exports: bool,
    table: bool,
) -> None:
    """Compare exports with other runtimes; write docs/runtimes.md.

    Models of this kind of machine that are not asked for stay as they were measured.
    """
    from models import ALL

    from tvm_practice.tvm_export.writing import write_json

    machines = json.loads(kept.read_text()) if kept.exists() else []
    if table and not machines:
        raise click.UsageError(f"there is no {kept}; run it without --table")
    if unknown := [each for each in names if each not in ALL]:
        raise click.UsageError(f"there is no {unknown[0]}; there are {', '.join(ALL)}")
    machine = {"models": {}} if table else _this_machine(machines)
    of = (each for each in machine["models"] if not curve or (_LOGS / each).is_dir())
    known = list(of) if exports or curve else list(ALL)
    if lacking := [each for each in names if each not in known]:
        needed = "--trials 200" if curve else "the command without --exports"
        raise click.UsageError(f"{lacking[0]} was not measured here; {needed} does it")
    for name in () if table else names or known:
        before = machine["models"].get(name, {"ratios": {}})
        if exports:
            row, said = _exported_again(name, before)
        elif curve:
            row, said = _after_parts(name, before, seconds)
        else:
            row, said = _measured(name, before, rivals, seconds, trials)
        click.echo(f"{name}: {said}")
        machine["models"][name] = row
        write_json(kept, machines)
    PAGE.write_text(page(machines))
    click.echo(f"{PAGE} has {len(machines)} machines")


def _measured(
    name: str, before: dict[str, Any], rivals: tuple[str, ...], seconds: float, trials: int
) -> tuple[dict[str, Any], str]:
    """A model's row, measured anew; of rivals that are not asked for, as before. What to print."""
    from models import factory

    row = _called(
        "measure",
        factory=factory(name),
        rivals=list(rivals or _DEFAULT),
        seconds=seconds,
        trials=trials,
        log=str(_LOGS / name),
    )
    row["ratios"] = before["ratios"] | row["ratios"] if rivals else row["ratios"]
    row["date"] = datetime.now(timezone.utc).date().isoformat()
    if trials:
        row["tuned"]["date"] = row["date"]
    row = {key: before[key] for key in ("tuned", "curve") if key in before} | row
    return row, f"{row['ms']:.2f} ms; first: {_first(row['ratios'])}"


def _exported_again(name: str, before: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A model's row with another export's seconds, and what to print."""
    from models import factory

    row = before | _called("measure_export", factory=factory(name))
    return row, f"{row['export_seconds']:.1f} s"


def _after_parts(name: str, before: dict[str, Any], seconds: float) -> tuple[dict[str, Any], str]:
    """A model's row with the curve of its search, and what to print."""
    from beside_torch import ratio_cell
    from models import factory

    log = str(_LOGS / name)
    curve = _called("measure_curve", factory=factory(name), seconds=seconds, log=log)
    return before | {"curve": curve}, ", ".join(map(ratio_cell, curve.values()))


def _called(function: str, **arguments: Any) -> dict[str, Any]:
    """What a function of this file returns in a new process that has the current engine."""
    from tvm_practice import engines

    found: dict[str, Any] = engines.call(
        engines.CURRENT, f"benchmarks.runtimes:{function}", arguments
    )
    return found


def _this_machine(machines: list[dict[str, Any]]) -> dict[str, Any]:
    """The entry of this kind of machine, a new one if there is none, with today's versions."""
    from machines import kind_of

    from tvm_practice import engines
    from tvm_practice.measure import environment

    own = environment()
    kind = {"processor": kind_of(own["processor"]), "threads": engines.thread_count()}
    [*found] = [each for each in machines if kind.items() <= each.items()]
    if not found:
        found = [{**kind, "models": {}}]
        machines += found
    found[0] |= {"packages": _versions()}
    machine: dict[str, Any] = found[0]
    return machine


def _versions() -> dict[str, str]:
    """Of the packages that take part; empty for one that is not installed."""
    from importlib import metadata

    found = dict.fromkeys(PACKAGES, "")
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


if __name__ == "__main__":
    main()
