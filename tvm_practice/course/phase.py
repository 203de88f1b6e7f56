"""The frame around a phase: its command line, its lanes on the engines, its key question."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from tvm_practice.course.catalog import MINE, SOLUTIONS
from tvm_practice.engines.command_line import Command, Folder

if TYPE_CHECKING:
    from rich.console import Console

    from tvm_practice.course.catalog import Phase
    from tvm_practice.course.grading import Status


def run_lane(
    phase: str, source: str, quick: bool, folder: str, passing: Sequence[str] = ()
) -> dict[str, Any]:
    """Run the `lane` of a phase's tour on the active engine; called through engines.call().

    `passing` are the earlier exercises for which the learner's function is used, see `stack`.

    Returns {"figures": what the lane returned, "todo": [...], "failed": {...}}, without figures
    where a result of one of the learner's functions stopped it.
    """
    from tvm_practice.course.stack import stand_on
    from tvm_practice.course.steps import Steps

    stand_on(passing)
    steps = Steps(phase, source, folder=Path(folder))
    figures = {}
    try:
        figures["figures"] = _tour(phase).lane(steps, quick=quick) or {}
    except Exception as error:
        if source == SOLUTIONS or not steps.returned:
            raise
        steps.stop(error)
    return {**figures, "todo": steps.todo, "failed": steps.failed}


def _tour(phase: str) -> ModuleType:
    """The module with a phase's `lane`, and its `report` if it has one: tours/<phase>.py."""
    return importlib.import_module(f"tvm_practice.course.tours.{phase}")


def run_phase(
    module: str,
    *,
    source: str = MINE,
    quick: bool = False,
    engine: str | None = None,
    out: Path = Path("runs"),
    known: Mapping[str, "Status"] | None = None,
) -> dict[str, Any]:
    """Run the lanes and the report of a phase's tour; returns per engine what `run_lane` does.

    The learner's functions of earlier phases are used where they pass; `known` is how exercises are
    graded, as far as that is known. An engine that is missing here is said in a line, and its value
    is {"unavailable": reason}.
    """
    import time

    from rich.console import Console

    from tvm_practice import engines
    from tvm_practice.course.catalog import phase as phase_named

    engines.thread_count()  # a mistake in what is asked for is said before anything is written
    started = time.monotonic()
    console = Console()
    phase = phase_named(module)
    whose = "the reference solutions" if source == SOLUTIONS else "your functions"
    console.rule(f"{phase.heading}: {phase.title} ({whose})")
    passing = _passing(phase, source, known or {}, console)
    results: dict[str, Any] = {}
    folder = out / phase.name
    folder.mkdir(parents=True, exist_ok=True)
    for lane in phase.lanes:
        if engine not in (None, lane):
            continue
        console.print(f"\n[bold]engine {lane}[/]", highlight=False)
        try:
            results[lane] = engines.call(
                lane,
                "tvm_practice.course.phase:run_lane",
                {
                    "phase": module,
                    "source": source,
                    "quick": quick,
                    "folder": str(folder),
                    "passing": passing,
                },
            )
        except engines.EngineUnavailable as missing:
            console.print(str(missing), markup=False, soft_wrap=True)
            results[lane] = {"unavailable": str(missing)}
    report = getattr(_tour(module), "report", None)
    if report is not None:
        report(results, folder)
    todo = _to_do(phase, source, results)
    if todo:
        console.print(
            f"\nTo do in tvm_practice/{module.replace('.', '/')}.py: {', '.join(todo)}. "
            f"Grade with: pytest -m {phase.marker}",
            highlight=False,
        )
    console.print(f"\nThis run took {time.monotonic() - started:.0f} s.", highlight=False)
    console.print(f"\n[bold]Key question.[/] {phase.question}", highlight=False)
    console.print(f"The answer is in {phase.page}.", highlight=False)
    return results


def _passing(
    phase: "Phase", source: str, known: Mapping[str, "Status"], console: "Console"
) -> list[str]:
    """The earlier exercises whose functions are the learner's in this run; says which."""
    from tvm_practice.course.stack import statuses, told

    if source == SOLUTIONS or not phase.builds_on:
        return []
    found = statuses(phase, known)
    console.print(f"From earlier phases: {told(found)}.", highlight=False)
    return [each for each, status in found.items() if status == "passed"]


def _to_do(phase: "Phase", source: str, results: Mapping[str, Any]) -> list[str]:
    """What the lanes found to do, and the stubs that they did not come to, on their engines."""
    from tvm_practice.course.grading import grade_unrun

    met = {name for lane in results.values() for name in lane.get("todo", ())}
    unrun = (grade_unrun(each, source) for each in phase.exercises if each.engine in results)
    return sorted(met | {each.exercise.name for each in unrun if each and each.status == "todo"})


def phase_command(module: str, summary: str) -> click.Command:
    """The command line of a phase: `python -m tvm_practice.<module>`."""

    @click.command(
        cls=Command,
        help=summary,
        epilog=f"\b\nExamples:\n  python -m tvm_practice.{module}\n"
        f"  python -m tvm_practice.{module} --solutions --quick\n"
        f"  python -m tvm_practice.{module} --engine current",
    )
    @click.option(
        "--solutions", is_flag=True, help="Run the reference solutions, not your functions."
    )
    @click.option("--quick", is_flag=True, help="Smaller sizes and fewer trials.")
    @click.option(
        "--engine",
        type=click.Choice(["classic", "current"]),
        help="Run on one TVM only (default: both).",
    )
    @click.option(
        "--out",
        type=Folder(),
        default=Path("runs"),
        show_default=True,
        help="Folder for plots and records.",
    )
    @click.option(
        "--predict/--no-predict",
        default=None,
        help="Ask what the run will measure, then compare (default: once, on a terminal).",
    )
    def command(
        solutions: bool, quick: bool, engine: str | None, out: Path, predict: bool | None
    ) -> None:
        from tvm_practice import engines
        from tvm_practice.course import predictions
        from tvm_practice.course.progress import Progress

        progress = Progress(partial(click.echo, err=True))
        if predict or (predict is None and sys.stdin.isatty() and sys.stdout.isatty()):
            predictions.ask(module, progress)
        try:
            results = run_phase(
                module,
                source=SOLUTIONS if solutions else MINE,
                quick=quick,
                engine=engine,
                out=out,
            )
        except engines.RemoteError as error:
            click.echo(error.remote_traceback, err=True)
            click.echo(f"{module} failed: {error}", err=True)
            sys.exit(1)
        except (engines.EngineError, OSError) as error:
            click.echo(f"{module} failed: {error}", err=True)
            sys.exit(getattr(error, "exit_code", 1))
        except KeyboardInterrupt:
            click.echo("\nstopped; what was finished is kept", err=True)
            sys.exit(130)
        if compared := predictions.compare(module, results, progress):
            click.echo("\nYour predictions:\n" + "\n".join(f"  {line}" for line in compared))
        if any(lane.get("failed") for lane in results.values()):
            sys.exit(1)

    return command
