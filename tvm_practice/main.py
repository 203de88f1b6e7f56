"""The whole course in one run: the board, the five phases, then the adapter on real models.

The adapter is assembled from your own functions where they pass, and from the reference ones where
they do not or with --solutions; a line names both.
"""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice.engines.command_line import Command, Folder
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from rich.console import Console

MODELS = {
    "mlp": "tvm_practice.models:load_mlp",
    "resnet18": "tvm_practice.models:load_resnet18",
}
_TITLES = {"mlp": "MLP 784-512-256-10, batch 32", "resnet18": "ResNet-18, 1×3×224×224"}
DEFAULT_TRIALS = 48
QUICK_TRIALS = 24


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n  python -m tvm_practice.main\n"
    "  python -m tvm_practice.main --solutions --quick\n"
    "  python -m tvm_practice.main --phase 2 --phase 3\n"
    "  python -m tvm_practice.main --model resnet18 --trials 300",
)
@click.option("--solutions", is_flag=True, help="Use the reference solutions, not your functions.")
@click.option(
    "--quick", is_flag=True, help=f"{QUICK_TRIALS} trials per tuner instead of {DEFAULT_TRIALS}."
)
@click.option(
    "--phase",
    "numbers",
    type=click.IntRange(1, 5),
    multiple=True,
    help="Run only these phases, without the export.",
)
@click.option(
    "--model",
    "models",
    type=click.Choice(list(MODELS)),
    multiple=True,
    help="Export only these models, without the phases.",
)
@click.option(
    "--trials", type=click.IntRange(min=1), help="Schedules each tuner measures per model."
)
@click.option(
    "--out",
    type=Folder(),
    default=Path("runs"),
    show_default=True,
    help="Folder for plots, records, artifacts, report.html and report.json.",
)
def main(
    solutions: bool,
    quick: bool,
    numbers: tuple[int, ...],
    models: tuple[str, ...],
    trials: int | None,
    out: Path,
) -> None:
    """Run the course: the board, the phases, and the export of real models.

    The phases run in their quick form; for the full form, run a phase on its own. Exit code 0 if
    everything written so far works (an unfinished exercise is not an error), 1 if something fails.
    """
    from rich.console import Console

    from tvm_practice import engines
    from tvm_practice.course.catalog import MINE, SOLUTIONS

    console = Console()
    # Before anything slow: both engines are loaded next.
    console.rule(f"tvm-practice ({'the reference solutions' if solutions else 'your functions'})")
    try:
        out.mkdir(parents=True, exist_ok=True)
        report = run(
            console,
            source=SOLUTIONS if solutions else MINE,
            phases=numbers or (() if models else (1, 2, 3, 4, 5)),
            models=models or (() if numbers else tuple(MODELS)),
            trials=trials or (QUICK_TRIALS if quick else DEFAULT_TRIALS),
            out=out,
        )
    except (engines.EngineError, OSError) as error:
        console.print(f"failed: {error}", markup=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print(f"\nstopped; what was finished is in {out}", markup=False)
        sys.exit(130)
    sys.exit(1 if report["failures"] else 0)


def run(
    console: "Console",
    *,
    source: str,
    phases: tuple[int, ...],
    models: tuple[str, ...],
    trials: int,
    out: Path,
) -> dict[str, Any]:
    """Run the chosen parts and write `out/report.json` after each; returns the report."""
    from tvm_practice.course.catalog import PHASE_MODULES
    from tvm_practice.course.export_report import write_page
    from tvm_practice.engines.__main__ import describe_all
    from tvm_practice.measure import environment

    started = time.perf_counter()
    report: dict[str, Any] = {
        "schema_version": 1,
        "command": " ".join(["python -m tvm_practice.main", *sys.argv[1:]]),
        "source": source,
        "environment": environment(),
        "engines": describe_all(),
        "exercises": {},
        "phases": {},
        "models": {},
        "seconds": {},
        "failures": [],
    }
    for engine, facts in report["engines"].items():
        found = f"{engine} TVM {facts.get('version')}, {facts.get('threads')} threads"
        console.print(
            facts.get("unavailable", found), markup=False, highlight=False, soft_wrap=True
        )
    _grade(report, console)
    _write(report, out)
    steps = export_steps(report, console) if models else source
    for number in phases:
        _run_phase(PHASE_MODULES[number - 1], report, out)
        _write(report, out)
    for name in models:
        before = time.perf_counter()
        report["models"][name] = export(name, console, steps=steps, trials=trials, out=out)
        report["seconds"][name] = time.perf_counter() - before
        _write(report, out)
    titles = {name: f"{_TITLES[name]} ({number_of(trials, 'trial')} per tuner)" for name in models}
    _print_models(report, titles, console)
    report["seconds"]["total"] = time.perf_counter() - started
    _write(report, out)
    page = write_page(report, out, titles=titles)
    console.print(f"\n{report['seconds']['total']:.0f} s in all. Report: {page}", highlight=False)
    if report["failures"]:
        console.print(f"{len(report['failures'])} failed:", style="red")
        for failure in report["failures"]:
            console.print(f"  {failure}", markup=False)
    return report


def _grade(report: dict[str, Any], console: "Console") -> None:
    """Grade every exercise, show the board, and add both to the report."""
    from tvm_practice.course.board import board, grade_with_progress, totals
    from tvm_practice.course.catalog import PHASE_MODULES, phase

    course = [phase(module) for module in PHASE_MODULES]
    exercises = [exercise for each in course for exercise in each.exercises]
    verdicts = grade_with_progress(report["source"], console, exercises)
    console.print(board(verdicts, course))
    console.print(totals(verdicts), highlight=False)
    for verdict in verdicts:
        report["exercises"][verdict.exercise.id] = verdict.status
        if verdict.status == "failed":
            report["failures"].append(f"{verdict.exercise.id}: {verdict.message}")
            console.print(f"\n{verdict.exercise.id}\n{verdict.message}", markup=False)


def export_steps(report: dict[str, Any], console: "Console") -> str:
    """What exports are made of: the learner's functions that pass; says which and what else."""
    from tvm_practice.course.catalog import MINE, SOLUTIONS
    from tvm_practice.course.stack import told
    from tvm_practice.tvm_export.steps import REPLACEABLE

    if report["source"] == SOLUTIONS:
        return SOLUTIONS
    found = {each: report["exercises"][each] for each in REPLACEABLE}
    console.print(f"Exports are made of {told(found)}.", highlight=False)
    passing = [each.rpartition(".")[2] for each in found if found[each] == "passed"]
    return f"{MINE}:{','.join(passing)}"


def _run_phase(module: str, report: dict[str, Any], out: Path) -> None:
    """Run a phase in its quick form and add its figures and failures to the report."""
    from tvm_practice.course.phase import run_phase

    before = time.perf_counter()
    lanes = run_phase(
        module, source=report["source"], quick=True, out=out, known=report["exercises"]
    )
    report["phases"][module] = lanes
    report["seconds"][module] = time.perf_counter() - before
    for engine, lane in lanes.items():
        report["failures"] += [
            f"{module}.{name} ({engine}): {text}" for name, text in lane.get("failed", {}).items()
        ]


def _print_models(report: dict[str, Any], titles: dict[str, str], console: "Console") -> None:
    """Print the table of each model that was exported; its failures go to the report."""
    from tvm_practice.course.export_report import explanations, failures, summary
    from tvm_practice.viz.tables import print_plain

    for name, lanes in report["models"].items():
        console.print()
        console.print(summary(titles[name], lanes))
        for text in explanations(lanes):
            print_plain(console, text)
        report["failures"] += [f"{name}, {text}" for text in failures(lanes)]


def export(
    name: str, console: "Console", *, steps: str, trials: int, out: Path
) -> list[dict[str, Any]]:
    """Export one model on every engine that is here, by these `steps.Steps`; see viz.exported."""
    from tvm_practice import engines
    from tvm_practice.tvm_export.request import ExportRequest

    console.rule(f"Export: {_TITLES[name]}")
    lanes = []
    for engine in engines.ENGINES:
        try:
            request = ExportRequest(
                model=MODELS[name],
                artifacts=out / name / engine,
                tuning_trials=trials,
                steps=steps,
            )
            lanes.append(
                engines.call(
                    engine,
                    "tvm_practice.viz.exported:export_with_pictures",
                    request.arguments(),
                )
            )
        except engines.EngineUnavailable as missing:
            console.print(str(missing), markup=False, soft_wrap=True)
            lanes.append({"engine": engine, "unavailable": str(missing), "variants": []})
        except engines.PlainError as error:
            console.print(f"{engine}: {error}", markup=False, soft_wrap=True)
            variant = {"tuner": None, "status": "failed", "reason": str(error)}
            lanes.append({"engine": engine, "variants": [variant]})
    return lanes


def _write(report: dict[str, Any], out: Path) -> None:
    from tvm_practice.tvm_export.writing import write_whole

    write_whole(out / "report.json", json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
