"""`python -m tvm_practice.viz explore`: a schedule on one page, from primitives to assembly."""

import functools
import sys
from pathlib import Path

import click

from tvm_practice.viz import chosen


@click.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz explore\n"
    "  python -m tvm_practice.viz explore --size 128 --out matmul.html\n"
    "  python -m tvm_practice.viz explore mymodule:my_schedule"
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
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("explorer.html"),
    show_default=True,
    help="File to write the page to.",
)
def explore(what: str | None, size: int, mine: bool, out: Path) -> None:
    """Primitives, TIR, LLVM IR and assembly side by side, linked line by line.

    Without MODULE:FUNCTION it is the course's matmul, naive to packed. The page is one file that
    needs no network. FUNCTION takes no arguments and returns a tvm.s_tir.Schedule or a PrimFunc of
    the current engine.
    """
    from tvm_practice.viz.explorer.explored import explored
    from tvm_practice.viz.explorer.figures import caches
    from tvm_practice.viz.explorer.page import write

    chosen.require_ending(out, ".html")
    found = []
    for name, make in chosen.makers(what, size, mine, "current").items():
        made = chosen.made(name, functools.partial(explored, name, make))
        if made is not None:
            found.append(made)
            click.echo(f"{name}: {len(made['steps']) - 1} primitives")
    if not found:
        raise click.ClickException("nothing to show: the functions are still to do")
    title = what or f"A matmul of {size}³ and its schedules"
    facts = [" ".join(["python -m tvm_practice.viz", *sys.argv[1:]]), caches()]
    try:
        write(out, title, facts, found)
    except OSError as error:
        raise click.ClickException(f"{out}: {error.strerror}") from None
    click.echo(f"written to {out} ({out.stat().st_size / 1e6:.2f} MB)")
