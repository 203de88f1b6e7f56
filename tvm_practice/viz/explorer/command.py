"""`python -m tvm_practice.viz explore`: a schedule on one page, from primitives to assembly."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tvm_practice.viz import chosen
from tvm_practice.wording import number_of

_MOST_TASKS = 4  # on a page


@click.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz explore\n"
    "  python -m tvm_practice.viz explore --size 128 --out matmul.html\n"
    "  python -m tvm_practice.viz explore mymodule:my_schedule\n"
    "  python -m tvm_practice.viz explore --records out/ --task dense"
)
@click.argument("what", metavar="[MODULE:FUNCTION]", required=False)
@click.option(
    "--size",
    type=click.IntRange(8, 1024),
    default=256,
    show_default=True,
    help="Rows and columns of the matmul.",
)
@click.option("--mine", is_flag=True, help="Explore your functions of phase 2.")
@click.option(
    "--records",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with MetaSchedule's records: the best schedule of each task.",
)
@click.option("--task", default="", help="With --records: part of the tasks' names.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("explorer.html"),
    show_default=True,
    help="File to write the page to.",
)
def explore(
    what: str | None, size: int, mine: bool, records: Path | None, task: str, out: Path
) -> None:
    """Show primitives, TIR, LLVM IR and assembly side by side, linked line by line.

    Without MODULE:FUNCTION it is the course's matmul, naive to packed. The page is one file that
    needs no network. FUNCTION takes no arguments and returns a tvm.s_tir.Schedule or a PrimFunc of
    the current engine.
    """
    from tvm_practice.viz.explorer.explored import explored
    from tvm_practice.viz.explorer.figures import caches
    from tvm_practice.viz.explorer.page import write

    chosen.require_ending(out, ".html")
    if records is not None and (what is not None or mine):
        raise chosen.Mistake("--records shows tuned schedules: leave out the function and --mine")
    found: list[dict[str, Any]] = []
    makers = _makers(what, size, mine, records, task)
    for name, make in makers.items():
        if records is not None and len(found) == _MOST_TASKS:
            click.echo(
                f"{number_of(len(makers) - len(found), 'task')} left out; --task NAME chooses",
                err=True,
            )
            break
        look = explored if records is None else _explored_as_tuned
        made = chosen.made(name, functools.partial(look, name, make))
        if made is not None:
            found.append(made)
            click.echo(f"{name}: {len(made['steps']) - 1} primitives")
    if not found:
        raise click.ClickException("nothing to show: the functions are still to do")
    tuned = f"Tuned schedules of {records}" if records else ""
    title = what or tuned or f"A matmul of {size}³ and its schedules"
    facts = [" ".join(["python -m tvm_practice.viz", *sys.argv[1:]]), caches()]
    try:
        write(out, title, facts, found)
    except OSError as error:
        raise click.ClickException(f"{out}: {error.strerror}") from None
    click.echo(f"written to {out} ({out.stat().st_size / 1e6:.2f} MB)")


def _explored_as_tuned(name: str, make: Callable[[], Any]) -> dict[str, Any]:
    """As `explored`, in the code that the tuner measured."""
    from tvm_practice import engines
    from tvm_practice.tvm_export.lowering.tiles_on_stack import keeping_tiles
    from tvm_practice.viz.explorer.explored import explored

    with keeping_tiles(engines.host_target()):
        return explored(name, make)


def _makers(
    what: str | None, size: int, mine: bool, records: Path | None, task: str
) -> chosen.Makers:
    if records is None:
        return chosen.makers(what, size, mine, "current")
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.viz.explorer.tuned import tuned_makers

    chosen.activate("current")
    try:
        return tuned_makers(records, task)
    except BadInput as error:
        raise chosen.Mistake(str(error)) from None
