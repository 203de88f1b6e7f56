"""One model, every compiler: PyTorch, torch.compile, ONNX Runtime and TVM's engines and tuners.

Each engine has a child process. In each, what it builds is timed in turns with PyTorch eager, so
every figure has a baseline that was taken in the same seconds, on as many threads.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tvm_practice.tvm_export.cli import ShapesAsWords, example_of

if TYPE_CHECKING:
    from rich.table import Table

    from tvm_practice.viz.report import Block

LABELS = {
    "eager": "PyTorch eager",
    "compile": "torch.compile",
    "onnx": "ONNX Runtime",
    "relay": "Relay, untuned",
    "autotvm": "Relay, AutoTVM",
    "ansor": "Relay, Ansor",
    "relax": "Relax, untuned",
    "metaschedule": "Relax, MetaSchedule",
}
SCHEMA_VERSION = 1
_ENGINES: dict[Any, dict[str, str | None]] = {
    "classic": {"relay": None, "autotvm": "autotvm", "ansor": "ansor"},
    "current": {"relax": None, "metaschedule": "metaschedule"},
}
_BASELINES = "tvm_practice.tvm_export.baselines"
_EXPORT = "tvm_practice.viz.exported:export_with_pictures"
_UNSTABLE = " ~"
_MOST_OPERATORS = 12  # of a profile that the page shows


class _Mistake(Exception):
    """The model or its inputs; the message is one line that says what to do."""


@click.command(
    cls=ShapesAsWords,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.bench tvm_practice.models:load_mlp\n"
    "  python -m tvm_practice.bench tvm_practice.models:load_resnet18 --trials 300\n"
    "  python -m tvm_practice.bench mymodule:load_model --example-shape 1 3 224 224 \\\n"
    "      --only compile --only onnx --only relax\n"
    "  python -m tvm_practice.bench tvm_practice.models:load_gpt2 --json > gpt2.json",
)
@click.argument("model", metavar="MODULE:FACTORY")
@click.option(
    "--trials",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Schedules each tuner measures, about a second each; 0 leaves the tuners out. They are "
    "shared by the model's tasks, one for each distinct operator and shape: an MLP has a few, "
    "ResNet-18 some 20. Under ten a task, a tuner rarely beats the untuned build.",
)
@click.option(
    "--only",
    "names",
    type=click.Choice(list(LABELS)),
    multiple=True,
    help="Build this one only; again for a further one. Eager, the baseline, is always there.",
)
@click.option(
    "--example-shape",
    "shape",
    multiple=True,
    help="Extents of an input, for a factory that returns none; again for a further one.",
)
@click.option("--example-dtype", "dtype", multiple=True, help="Its type [default: float32].")
@click.option("--threads", type=click.IntRange(min=1), help="Threads, the same for all.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report.json, records and artifacts [default: runs/bench/FACTORY].",
)
@click.option("--json", "as_json", is_flag=True, help="Print report.json on standard output only.")
def main(
    model: str,
    trials: int,
    names: tuple[str, ...],
    shape: tuple[str, ...],
    dtype: tuple[str, ...],
    threads: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare compilers on the model that FACTORY of MODULE returns.

    FACTORY takes no arguments and returns the module, or the module and its example inputs. What
    is not installed is a row that says so. Exit code 0 if all that is installed ran and computes
    what PyTorch computes, 1 if one did not, 2 for a mistake in what was asked.
    """
    from pydantic import ValidationError

    from tvm_practice import engines
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import ExampleTensor

    tuners = [name for name, tuner in _tuners().items() if tuner]
    if not trials and (idle := [name for name in tuners if name in names]):
        raise click.UsageError(f"--only {idle[0]} needs --trials: it is a tuner")
    try:
        example = example_of(shape, dtype)
        for each in example or ():
            ExampleTensor.model_validate(each)
    except BadInput as error:
        raise click.UsageError(str(error)) from None
    except ValidationError as error:
        raise click.UsageError(f"--example-dtype: {error.errors()[0]['msg']}") from None
    asked = [
        name
        for name in LABELS
        if name == "eager" or name in names or (not names and (trials or name not in tuners))
    ]
    folder = out or Path("runs") / "bench" / model.rpartition(":")[2]
    try:
        # For the children too, and for the record of the environment.
        os.environ["TVM_NUM_THREADS"] = str(threads or engines.thread_count())
        report = run(
            model,
            asked,
            trials=trials,
            example=example,
            out=folder,
            output=sys.stderr if as_json else None,
        )
    except _Mistake as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(2)
    except (engines.EngineError, OSError) as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        click.echo(f"\nstopped; what was finished is in {folder}", err=True)
        sys.exit(130)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report, folder)
    sys.exit(1 if any(row["status"] == "failed" for row in report["rows"]) else 0)


def run(
    model: str,
    asked: list[str],
    *,
    trials: int,
    example: list[dict[str, Any]] | None,
    out: Path,
    output: IO[Any] | None = None,
) -> dict[str, Any]:
    """Build, verify and time what is asked; write `out`/report.json after each engine.

    Args:
        model: "module:factory", see `loading.load`.
        asked: of the names in LABELS.
        trials: schedules each tuner may measure, over all the model's tasks.
        example: [{"shape", "dtype"}] of the inputs, for a factory that returns none.
        out: folder; made once the model has been run.
        output: where the children's output goes; None: this process's.

    Returns:
        {"schema_version", "command", "model", "parameters", "notes", "threads", "environment",
        "rows": [{"name", "status": "ok" | "failed" | "missing", "reason", "latency", "eager"
        (eager's latency in the same process), "ratio", "verified", "max_error", "trials",
        "seconds", "artifacts", "operators"}]}, latencies in ms; what a row has not is None.

    Raises:
        _Mistake: the model or its inputs.
        engines.EngineError: PyTorch itself could not be measured.
    """
    from tvm_practice import engines
    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.request import ExportRequest
    from tvm_practice.tvm_export.writing import write_json

    rivals = [name for name in ("compile", "onnx") if name in asked]
    arguments: dict[str, Any] = {"model": model, "example": example}
    try:
        with engines.Session(engines.CURRENT, output=output) as session:
            measured = session.call(
                f"{_BASELINES}:measure_baselines", arguments | {"names": rivals}
            )
    except BadInput as error:
        raise _Mistake(str(error)) from None
    out.mkdir(parents=True, exist_ok=True)
    rows = [_row("eager", {"status": "ok", "latency": measured["pytorch"]}, None)]
    report: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "command": " ".join(["python -m tvm_practice.bench", *sys.argv[1:]]),
        "model": model,
        "parameters": measured["parameters"],
        "notes": measured["notes"],
        "threads": engines.thread_count(),
        "environment": environment(),
        "rows": rows,
    }
    for name in rivals:
        rows.append(_row(name, measured["variants"][name], measured["pytorch"]))
    write_json(out / "report.json", report)
    graphs: dict[str, Any] = {}
    kernels: list[dict[str, Any]] = []

    for engine, lane in _ENGINES.items():
        wanted = [name for name in lane if name in asked]
        if wanted:
            request = ExportRequest.model_validate(
                arguments | {"artifacts": out / engine, "tuning_trials": trials}
            )
            tuners = [lane[name] for name in wanted if lane[name]]
            found = _lane(engine, request.arguments() | {"tuners": tuners}, output)
            rows += _tvm_rows(engine, wanted, found)
            write_json(out / "report.json", report)
            if "graph" in found:
                graphs["Relay" if engine == engines.CLASSIC else "Relax"] = found["graph"]
            kernels += found.get("kernels", ())
    write_page(report, out, graphs=graphs, kernels=kernels)
    return report


def _lane(engine: Any, arguments: dict[str, Any], output: IO[Any] | None) -> dict[str, Any]:
    """What one engine found; whatever ends its process is {"instead": a row's status, reason}."""
    from tvm_practice import engines

    try:
        with engines.Session(engine, output=output) as session:
            lane: dict[str, Any] = session.call(_EXPORT, arguments)
            return lane
    except engines.EngineUnavailable as missing:
        return {"instead": {"status": "missing", "reason": str(missing)}}
    except engines.RemoteError as error:
        reason = error.line
    except (engines.PlainError, OSError) as error:
        reason = str(error)
    return {"instead": {"status": "failed", "reason": reason}}


def _tvm_rows(engine: Any, wanted: list[str], lane: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of one engine."""
    variants = lane.get("variants", ())
    found = {variant["tuner"]: variant for variant in variants}
    instead = lane.get("instead") or {
        "status": "failed",
        "reason": "the engine's process gave no result for it",
    }
    if variants and variants[0]["status"] == "failed":  # if the import did, it is the only one
        instead = variants[0]
    return [
        _row(name, found.get(_ENGINES[engine][name], instead), lane.get("pytorch"))
        for name in wanted
    ]


def _row(name: str, variant: dict[str, Any], eager: dict[str, Any] | None) -> dict[str, Any]:
    timed = "latency" in variant
    return {
        "name": name,
        "status": variant["status"],
        "reason": variant.get("reason"),
        "latency": variant.get("latency"),
        "eager": eager if timed else None,
        "ratio": variant.get("ratio"),
        "verified": variant.get("verified"),
        "max_error": variant.get("max_error"),
        "verification": variant.get("verification"),
        "trials": variant.get("tuning", {}).get("trials"),
        "tuning": variant.get("tuning"),
        "seconds": variant.get("seconds"),
        "artifacts": variant.get("artifacts"),
        "operators": variant.get("operators"),
    }


def _tuners() -> dict[str, str | None]:
    return {name: tuner for lane in _ENGINES.values() for name, tuner in lane.items()}


def _print(report: dict[str, Any], folder: Path) -> None:
    from rich.console import Console

    console = Console()
    console.print()
    console.print(table(report))
    for note in report["notes"]:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    for row in report["rows"]:
        text = row["reason"] or (row["tuning"] or {}).get("note")
        if text:
            console.print(
                f"{LABELS[row['name']]}: {text}", markup=False, highlight=False, soft_wrap=True
            )
    console.print(f"written to {folder / 'report.html'}", markup=False, soft_wrap=True)


def write_page(
    report: dict[str, Any],
    out: Path,
    *,
    graphs: dict[str, Any],
    kernels: list[dict[str, Any]],
) -> Path:
    """Write `out`/report.html; returns the file.

    Args:
        report: what `run` returns.
        graphs: by IR, see viz.graph.fusion.
        kernels: see viz.studies.kernel_pictures.
    """
    from tvm_practice.viz import report as pages
    from tvm_practice.viz.tuning import tasks_svg

    rows, reasons, ratios = [], [], {}
    for row in report["rows"]:
        cells = [cell.replace("\n", " (") + ")" * ("\n" in cell) for cell in _cells(row)]
        rows.append([LABELS[row["name"]], *cells, *[""] * (6 - len(cells))])
        if row["ratio"] is not None:
            ratios[LABELS[row["name"]]] = row["ratio"]
        if text := row["reason"] or (row["tuning"] or {}).get("note"):
            reasons.append(f"{LABELS[row['name']]}: {text}")
    headings = ["built by", "ms", "eager ms", "/ eager", "error", "trials", "s"]
    blocks = [pages.Block("table", headings=headings, rows=rows)]
    if ratios:
        blocks.append(pages.latency_block(ratios, baseline="PyTorch eager"))
    notes = [*report["notes"], *reasons]
    blocks += [pages.Block("text", text=note) for note in notes]
    sections = [pages.Section("summary", "Summary", blocks)]
    histories = {LABELS[name]: trials for name, trials in _histories(report, out).items()}
    if histories:
        picture = pages.Block(
            "picture",
            svg=tasks_svg(histories, title="Trials of each task"),
            caption="Each trial's time over the best of its task, in the order they were measured; "
            "a colour is a task. 1 is a task's best.",
        )
        sections.append(pages.Section("tuning", "Tuning", [picture]))
    if profiles := [_profile(row) for row in report["rows"] if row["operators"]]:
        sections.append(pages.Section("operators", "Where the time goes", profiles))
    if kernels:
        text = (
            "The kernels with most work as Relax built them untuned: TVM's loops after the "
            "adapter's default rules. Point at a loop for how often its body runs."
        )
        shown = {each["name"]: [{"primitive": "", "svg": each["svg"]}] for each in kernels}
        loops = [pages.Block("text", text=text), pages.Block("nests", schedules=shown)]
        sections.append(pages.Section("loops", "Loops", loops))
    if (section := pages.graph_section(graphs)) is not None:
        sections.append(section)
    sections += [
        pages.environment_section(report["environment"]),
        pages.commands_section([report["command"]]),
    ]
    facts = [
        f"{report['parameters'] / 1e6:.3g} M parameters",
        f"{report['threads']} threads",
        str(report["environment"]["date"]),
        str(report["environment"]["processor"]),
    ]
    return pages.write(pages.Page(report["model"], facts, sections), out / "report.html")


def _profile(row: dict[str, Any]) -> "Block":
    """The operators with most time, as a table of the page."""
    from tvm_practice.viz.report import Block

    most = row["operators"][:_MOST_OPERATORS]
    rest = sum(each["share"] for each in row["operators"][_MOST_OPERATORS:])
    rows = [
        [
            each["name"].removesuffix("_prepacked"),
            str(each["calls"]),
            f"{each['milliseconds']:.3g}",
            f"{each['share']:.1%}",
            each["schedule"],
        ]
        for each in most
    ]
    if rest:
        rows.append(["the others", "", "", f"{rest:.1%}", ""])
    headings = ["function", "calls", "ms", "share", "schedule"]
    return Block("table", title=LABELS[row["name"]], headings=headings, rows=rows)


def _histories(report: dict[str, Any], out: Path) -> dict[str, Any]:
    """The trials of each tuner that measured, by the row's name."""
    found = {}
    for engine, lane in _ENGINES.items():
        for name, tuner in lane.items():
            records = out / engine / f"{tuner}-records"
            if tuner and any(row["name"] == name and row["trials"] for row in report["rows"]):
                module = importlib.import_module(f"tvm_practice.tvm_export.tuners.{tuner}")
                found[name] = module.history(records)
    return found


def table(report: dict[str, Any]) -> "Table":
    """The rows of a report, each beside eager as it was timed in turns with that row."""
    from rich import box
    from rich.table import Table

    drawn = Table(
        box=box.SIMPLE,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=f"{report['model']}, {report['parameters'] / 1e6:.3g} M parameters, "
        f"{report['threads']} threads",
    )
    drawn.add_column("built by", no_wrap=True)
    for heading in ("ms", "eager ms", "/ eager", "error", "trials", "s"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    for row in report["rows"]:
        drawn.add_row(LABELS[row["name"]], *_cells(row))
    cells = [str(cell) for column in drawn.columns[1:3] for cell in column.cells]
    if any(_UNSTABLE in cell for cell in cells):
        drawn.caption = (
            f"{_UNSTABLE.strip()}  unstable: the middle half of the samples spans over 15% of the "
            "median; measure again when the machine is idle"
        )
    return drawn


def _cells(row: dict[str, Any]) -> list[str]:
    if row["latency"] is None:
        return [row["status"]]
    cells = [_median(row["latency"])]
    if row["ratio"] is None:  # eager itself
        return cells
    low, high = row["ratio"]["ci95"]
    error = f"{row['max_error']:.0e}" if row["max_error"] else "0"
    return [
        *cells,
        _median(row["eager"]),
        f"{_short(row['ratio']['value'])}\n{_short(low)}–{_short(high)}",
        error if row["verified"] else "WRONG",
        "" if row["trials"] is None else str(row["trials"]),
        f"{sum(row['seconds'].values()):.0f}",
    ]


def _median(latency: dict[str, Any]) -> str:
    return _short(latency["p50"]) + ("" if latency["stable"] else _UNSTABLE)


def _short(value: float) -> str:
    """A latency or a ratio with about three digits."""
    return f"{value:.{3 if value < 1 else 2 if value < 100 else 0}f}"


if __name__ == "__main__":
    main()
