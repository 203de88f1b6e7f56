"""What a model costs before it runs: seconds, memory and disk, and docs/startup.md made of it.

    python benchmarks/startup.py                       # three models, both engines: half an hour
    python benchmarks/startup.py --model mlp --engine current --rounds 1
    python benchmarks/startup.py --table               # only write the page again

Every process is new: one that compiles, one that loads the artifact and calls it, and the export
command twice. Another process looks at its memory, that of the processes it starts included.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from model_names import MODELS

from tvm_practice.engines import ENGINES, Engine

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "startup.md"
DEFAULT = ("mlp", "resnet18", "bert_base")
# Each process and its stages, as the page calls them.
STAGES = {
    "compile": {
        "pytorch": "import PyTorch",
        "tvm": "import TVM on top of it",
        "model": "make the model",
        "import": "import it to the engine's IR",
        "optimize": "optimize",
        "build": "build",
        "write": "write the artifact",
    },
    "load": {
        "tvm": "import TVM",
        "load": "load the artifact",
        "first": "first call",
        "second": "second call",
    },
    "command": {"first": "`run_autotvm`, first run", "again": "the same command again"},
}
PROCESSES = {
    "compile": "a process that compiles",
    "load": "one that runs the artifact",
    "command": "the export, from the command line",
}
_LOOK_SECONDS = 0.02
_HEAD = """# What starting costs

Made by `python benchmarks/startup.py`. Each process is new. Seconds are the median of the rounds.
MiB is the peak of resident memory during that stage, in the process and its children (sampled every
20 ms; shared memory counts once per process). For the speed of a warm model, see [the table of
models](models.md).

The second run of the command finds that nothing has changed and imports no TVM
([Exporting](export.md)).
"""


class Stages:
    """When each stage began and ended, on the clock that all processes share.

    with stages("build"):
        ...
    """

    def __init__(self) -> None:
        self.times: dict[str, tuple[float, float]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.times[name] = (started, time.monotonic())

    def before(self, end: float, seconds: dict[str, float]) -> None:
        """Add stages that followed upon each other and ended at `end`."""
        for name, spent in reversed(seconds.items()):
            self.times[name] = (end - spent, end)
            end -= spent


def compile_model(name: str, engine: Engine, folder: Path) -> Stages:
    """Compile a model untuned and write it to `folder`."""
    from tvm_practice import engines

    stages = Stages()
    with stages("pytorch"):
        import torch
    with stages("tvm"):
        engines.activate(engine)
    with stages("model"):
        from tvm_practice.tvm_export.loading import find_factory

        model, example = find_factory(f"tvm_practice.models:load_{name}")()
    torch.set_num_threads(engines.thread_count())

    from tvm_practice.tvm_export.artifacts import export_artifacts
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule

    export = import_model(Export.of(as_call(model, example), ExportSettings(engine=engine)))
    imported = time.monotonic()
    graph_module = build(schedule(export)).result
    ended = time.monotonic()
    spent = graph_module.seconds
    stages.before(imported, {name: spent[name] for name in ("import", "optimize")})
    stages.before(ended, {"build": spent["build"]})
    with stages("write"):
        export_artifacts(graph_module, folder, report={"model": name})
    return stages


def load_model(name: str, engine: Engine, folder: Path) -> Stages:
    """Load what `compile_model` wrote and call it twice, on ones."""
    import numpy as np

    from tvm_practice import engines

    stages = Stages()
    with stages("tvm"):
        engines.activate(engine)
    with stages("load"):
        from tvm_practice.tvm_export.artifacts import load_artifacts

        graph_module = load_artifacts(folder)
    described = json.loads((folder / "metadata.json").read_text())["inputs"]
    inputs = [np.ones(each["shape"], each["dtype"]) for each in described]
    for call in ("first", "second"):
        with stages(call):
            graph_module(*inputs)
    return stages


def watch(command: list[str]) -> tuple[float, float, list[tuple[float, float]]]:
    """Run a command to its end.

    Returns:
        When it began and ended, and (when, MiB resident in all its processes), many times.
        Raises RuntimeError with the last line that it said if it failed.
    """
    import psutil

    samples = []
    with tempfile.TemporaryFile("w+") as said:
        started = time.monotonic()
        child = psutil.Popen(command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
        try:
            while child.poll() is None:
                samples.append((time.monotonic(), _resident(child)))
                time.sleep(_LOOK_SECONDS)
        except BaseException:
            child.terminate()
            child.wait()
            raise
        ended = time.monotonic()
        if child.returncode:
            said.seek(0)
            raise RuntimeError((said.read().strip().splitlines() or ["it said nothing"])[-1])
    return started, ended, samples


def _resident(process: Any) -> float:
    """MiB of a process and its descendants; those that end meanwhile count nothing."""
    import psutil

    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            try:
                total += each.memory_info().rss
            except psutil.NoSuchProcess:
                pass
    except psutil.NoSuchProcess:
        pass
    return total / 2**20


def _peak(samples: list[tuple[float, float]], started: float, ended: float) -> float:
    """The most MiB between two times; of a stage shorter than a look, at the look next to it."""
    within = [mib for when, mib in samples if started <= when <= ended]
    return max(within) if within else min(samples, key=lambda each: abs(each[0] - started))[1]


def measure(name: str, engine: Engine, folder: Path) -> dict[str, Any]:
    """One round.

    Returns:
        {process: {stage: {"seconds", "mib"}}, "megabytes": {file: its size / 10^6}}.
    """
    found: dict[str, Any] = {}
    for process in ("compile", "load"):
        result = folder / f"{process}.json"
        command = [sys.executable, str(Path(__file__).resolve()), "--process", process]
        command += ["--model", name, "--engine", engine, "--out", str(result)]
        _, _, samples = watch(command)
        times = json.loads(result.read_text())
        found[process] = {
            stage: {"seconds": end - start, "mib": _peak(samples, start, end)}
            for stage, (start, end) in times.items()
        }
    artifact = folder / "artifact"
    found["megabytes"] = {
        each.name: each.stat().st_size / 1e6 for each in artifact.glob("deploy_*")
    }
    found["command"] = {}
    for run in STAGES["command"]:
        command = [sys.executable, "-m", "tvm_practice.run_autotvm"]
        command += [f"tvm_practice.models:load_{name}", "--engine", engine]
        command += ["--artifacts", str(folder / "exported")]
        start, end, samples = watch(command)
        found["command"][run] = {"seconds": end - start, "mib": _peak(samples, start, end)}
    return found


def page(report: dict[str, Any]) -> str:
    """docs/startup.md from what was measured."""
    machine = report["environment"]
    versions = ", ".join(
        f"{package} {machine['packages'][package]}"
        for package in ("torch", "apache-tvm", "bitblas")
        if machine["packages"][package]
    )
    rows = report["rows"]
    rounds = sorted({len(row["rounds"]) for row in rows if row["rounds"]})
    lines = [
        _HEAD,
        f"Machine: {machine['processor']}, {machine['memory_gib']} GiB, {report['threads']} "
        f"threads; Python {machine['python']}, {versions}; {machine['date'][:10]}; "
        f"rounds: {'/'.join(map(str, rounds))}.",
    ]
    for name in dict.fromkeys(row["model"] for row in rows):
        lines += ["", f"## {MODELS[name]}", ""]
        lines += _table([row for row in rows if row["model"] == name])
    return "\n".join(lines) + "\n"


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """A model's table; the engines side by side."""
    measured = [row for row in rows if row["rounds"]]
    lines = [
        "| | " + " | ".join(f"{row['engine']}, s | MiB" for row in measured) + " |",
        "|---" * (1 + 2 * len(measured)) + "|",
    ]
    for process, stages in STAGES.items():
        lines.append(f"| **{PROCESSES[process]}** |" + " | |" * len(measured))
        for stage, words in stages.items():
            cells = [
                cell
                for row in measured
                for cell in _middle([each[process][stage] for each in row["rounds"]])
            ]
            lines.append(f"| {words} | {' | '.join(cells)} |")
    lines.append("| **the artifact on disk** |" + " | |" * len(measured))
    for file, words in {
        "deploy_lib.tar": "library, MB",
        "deploy_params.bin": "parameters, MB",
        "deploy_graph.json": "graph, MB",
    }.items():
        sizes = [f"{row['rounds'][0]['megabytes'][file]:.2f} | " for row in measured]
        lines.append(f"| {words} | {' | '.join(sizes)} |")
    missing = [row for row in rows if not row["rounds"]]
    return (lines if measured else []) + [f"\n{row['engine']}: {row['reason']}" for row in missing]


def _middle(found: list[dict[str, float]]) -> tuple[str, str]:
    """The median of the seconds, and the most MiB."""
    seconds = statistics.median(each["seconds"] for each in found)
    shown = f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2g}"
    return shown, f"{max(each['mib'] for each in found):.0f}"


def _in_this_process(process: str, name: str, engine: Engine, result: Path) -> None:
    """What a process of `measure` does: its stages' times go to a file."""
    function = {"compile": compile_model, "load": load_model}[process]
    stages = function(name, engine, result.with_name("artifact"))
    result.write_text(json.dumps(stages.times))


@click.command(
    epilog="\b\nExamples:\n"
    "  python benchmarks/startup.py\n"
    "  python benchmarks/startup.py --model mlp --engine current --rounds 1\n"
    "  python benchmarks/startup.py --table"
)
@click.option(
    "--model",
    "models",
    type=click.Choice(list(MODELS)),
    multiple=True,
    help=f"[default: {', '.join(DEFAULT)}]",
)
@click.option(
    "--engine", "chosen", type=click.Choice(ENGINES), multiple=True, help="[default: both]"
)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/startup.json"))
@click.option("--table", is_flag=True, help="Write the page from what is there.")
@click.option("--process", type=click.Choice(["compile", "load"]), hidden=True)
def main(
    models: tuple[str, ...],
    chosen: tuple[Engine, ...],
    rounds: int,
    out: Path,
    table: bool,
    process: str | None,
) -> None:
    """Measure what importing, compiling, loading and exporting cost.

    With --table, write docs/startup.md from --out, where what was measured of other models and
    engines before stays.
    """
    if process is not None:
        _in_this_process(process, models[0], chosen[0], out)
        return
    if table and not out.exists():
        raise click.UsageError(f"there is no {out}; run it without --table")
    try:
        report = json.loads(out.read_text()) if out.exists() else {"rows": []}
    except ValueError:
        raise click.UsageError(f"{out} is not JSON") from None
    if table:
        PAGE.write_text(page(report))
        click.echo(f"written: {PAGE}")
        return

    from tvm_practice import engines
    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.writing import write_json

    report |= {"environment": environment(), "threads": engines.thread_count()}
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in models or DEFAULT:
        for engine in chosen or ENGINES:
            row: dict[str, Any] = {"model": name, "engine": engine, "rounds": [], "reason": None}
            row["reason"] = engines.unavailable_reason(engine)
            try:
                for _ in range(0 if row["reason"] else rounds):
                    with tempfile.TemporaryDirectory(prefix="tvm-practice-") as folder:
                        row["rounds"].append(measure(name, engine, Path(folder)))
            except RuntimeError as error:
                row |= {"rounds": [], "reason": str(error)}
            key = (name, engine)
            report["rows"] = [
                each for each in report["rows"] if (each["model"], each["engine"]) != key
            ] + [row]
            write_json(out, report)
            click.echo(_lines(row))
    if not any(row["rounds"] for row in report["rows"]):
        sys.exit(1)


def _lines(row: dict[str, Any]) -> str:
    """A row in words, a line for each stage."""
    head = f"{row['model']}, {row['engine']}"
    if not row["rounds"]:
        return f"{head}: {row['reason']}"
    lines = [f"{head}{' ' * (34 - len(head))}       s   MiB"]
    for process, stages in STAGES.items():
        for stage, words in stages.items():
            seconds, mib = _middle([each[process][stage] for each in row["rounds"]])
            lines.append(f"  {words.replace('`', ''):<32} {seconds:>7} {mib:>5}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
