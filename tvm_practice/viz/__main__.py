"""`python -m tvm_practice.viz`: pictures of schedules, of the course's matmul or of your own."""

import functools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice.engines.command_line import Group
from tvm_practice.viz import chosen
from tvm_practice.viz.explorer.command import explore
from tvm_practice.viz.ranking.command import rank
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from rich.table import Table

    from tvm_practice.viz.access import AccessProgram
    from tvm_practice.viz.access_picture import Window

_WHAT = click.argument("what", metavar="[MODULE:FUNCTION]", required=False)
_SIZE = click.option(
    "--size",
    type=click.IntRange(8, 2048),
    default=512,
    show_default=True,
    help="Rows and columns of the matmul.",
)
_MINE = click.option(
    "--mine", is_flag=True, help="Draw the matmul scheduled by your functions of phase 2."
)
_ENGINE = click.option(
    "--engine",
    type=click.Choice(["current", "classic"]),
    default="current",
    show_default=True,
    help="TVM on which your own schedule is made.",
)
_OUT = click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write the picture to."
)


@click.group(
    cls=Group,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.viz nest mymodule:my_schedule --history\n"
    "  python -m tvm_practice.viz access --out access.svg\n"
    "  python -m tvm_practice.viz access --out access.gif\n"
    "  python -m tvm_practice.viz cache --size 512\n"
    "  python -m tvm_practice.viz explore --out explorer.html\n"
    "  python -m tvm_practice.viz report --out report.html",
)
def main() -> None:
    """Show a schedule's loops, its memory accesses, its cache misses, the roofline.

    Without MODULE:FUNCTION it is the course's matmul, naive to packed. FUNCTION takes no arguments
    and returns a tvm.s_tir.Schedule or a PrimFunc; on the classic engine a schedule and its
    tensors.
    """


@main.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz nest\n"
    "  python -m tvm_practice.viz nest mymodule:my_schedule --history\n"
    "  python -m tvm_practice.viz nest mymodule:my_schedule --out nest.svg\n"
    "  python -m tvm_practice.viz nest mymodule:classic_schedule --engine classic"
)
@_WHAT
@_SIZE
@_MINE
@_ENGINE
@click.option("--history", is_flag=True, help="Draw the loops after every primitive.")
@_OUT
def nest(
    what: str | None, size: int, mine: bool, engine: str, history: bool, out: Path | None
) -> None:
    """Show the loop nest, as text or as nested boxes (--out file.svg)."""
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.history import recorded
    from tvm_practice.viz.loop_nest import format_nest
    from tvm_practice.viz.nest_picture import nest_svg

    chosen.require_ending(out, ".svg")
    makers = chosen.makers(what, size, mine, engine)
    for name, make in makers.items():
        made = chosen.made(name, functools.partial(recorded, make))
        if made is None:
            continue
        _, steps = made
        shown = steps if history else steps[-1:]
        for step in shown:
            click.echo(f"# {name}: {step.primitive or 'the loops as they were'}")
            click.echo(format_nest(step.nest) + "\n")
        if out is not None:
            file = out if len(makers) == 1 else out.with_stem(f"{out.stem}-{_slug(name)}")
            _write(file, standalone(nest_svg(steps[-1].nest, title=name)))


@main.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz access\n"
    "  python -m tvm_practice.viz access --out access.svg\n"
    "  python -m tvm_practice.viz access mymodule:my_schedule --touches 5000 --out access.gif"
)
@_WHAT
@_MINE
@_ENGINE
@click.option(
    "--touches",
    type=click.IntRange(min=1),
    default=8192,
    show_default=True,
    help="Number of memory accesses to follow; the matmul's default is one tile.",
)
@_OUT
def access(what: str | None, mine: bool, engine: str, touches: int, out: Path | None) -> None:
    """Show the order of memory accesses: strides, lines, reuse; with --out, a picture.

    --out takes .svg and .png for a still picture, .gif for a moving one. Keep your own
    function small: the picture can show a few tens of thousands of elements.
    """
    from tvm_practice.viz.access_picture import window
    from tvm_practice.viz.study_tables import access_table

    chosen.require_ending(out, ".svg", ".png", ".gif")
    programs = chosen.programs(chosen.small_makers(what, mine, engine), engine)
    windows: Mapping[str, Window]
    if what is None:
        windows = chosen.default("matmul_windows")(programs)
    else:
        windows = {name: window(each, touches) for name, each in programs.items()}
    _print(access_table(windows))
    click.echo(
        f"{next(iter(windows.values())).trace.numbers.size} touches of memory. Strides: in "
        "elements, the three commonest.\nReuse within: at most so many other cache lines between "
        "two touches of a line."
    )
    if out is not None:
        _draw_access(windows, out)


def _draw_access(windows: "Mapping[str, Window]", out: Path) -> None:
    from tvm_practice.viz.access_picture import access_figure, access_svg, save_gif
    from tvm_practice.viz.drawing import standalone

    suffix = out.suffix.lower()
    if suffix == ".svg":
        _write(out, standalone(access_svg(windows, title="Memory access")))
        return
    if suffix == ".gif":
        save_gif(windows, out)
    else:
        access_figure(windows).savefig(out, dpi=130, facecolor="white")
    click.echo(f"written to {out}")


@main.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz steps --out steps.svg\n"
    "  python -m tvm_practice.viz steps --figures docs/pictures/steps.json --out steps.svg"
)
@_SIZE
@click.option(
    "--figures",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File that --save wrote, whose figures are drawn; nothing is measured.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to keep the figures in, as JSON.",
)
@_OUT
def steps(size: int, figures: Path | None, save: Path | None, out: Path | None) -> None:
    """Show phase 2's steps: their GFLOP/s on this machine, and the memory that each touches."""
    import json

    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.steps_picture import label, steps_svg

    chosen.require_ending(out, ".svg")
    chosen.activate("current")
    if figures is not None:
        measured = json.loads(figures.read_text(encoding="utf-8"))
    else:
        measured = chosen.default("step_rates")(size)
    rates = measured["gflops"]
    for name, rate in rates.items():
        click.echo(f"{name}: {label(rate)}")
    if save is not None:
        save.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    if out is not None:
        title = f"A matmul in {number_of(len(rates), 'step')}: GFLOP/s, and the memory each touches"
        windows = chosen.default("step_windows")()
        said = chosen.default("steps_said")()
        _write(out, standalone(steps_svg(windows, rates, said, title=title)))


@main.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz cache\n"
    "  python -m tvm_practice.viz cache --size 256 --out misses.svg\n"
    "  python -m tvm_practice.viz cache mymodule:my_schedule"
)
@_WHAT
@_SIZE
@_MINE
@_ENGINE
@click.option(
    "--usual", is_flag=True, help="Usual caches (L1 32 KiB, L2 512 KiB), not this machine's."
)
@_OUT
def cache(
    what: str | None, size: int, mine: bool, engine: str, usual: bool, out: Path | None
) -> None:
    """Count misses in a model of this machine's caches, beside the processor's counters.

    The model follows all accesses of the function: some seconds per schedule of a 512³ matmul. The
    counters need `perf` and a processor that offers them; they count one run on one thread.
    """
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.study_tables import cache_table

    chosen.require_ending(out, ".svg")
    programs = chosen.programs(chosen.makers(what, size, mine, engine), engine)
    study = _cache_study(programs, size**3 if what is None else 1000, usual, engine)
    is_matmul = what is None
    title = f"misses per 1000 multiply-adds, {size}³" if is_matmul else "misses"
    _print(cache_table(study, rates=is_matmul, title=title))
    click.echo("; ".join(study["levels"]) + ("" if study["known"] else " (usual sizes)"))
    if is_matmul and not usual:
        _print_counters(list(programs), size, mine)
    if out is not None:
        _write(out, standalone(study["svg"]))


def _cache_study(
    programs: "dict[str, AccessProgram]", work: int, usual: bool, engine: str
) -> dict[str, Any]:
    """See studies.cache_study; on current TVM, which compiles the simulator."""
    from tvm_practice import engines

    arguments = {
        "programs": {name: each.to_dict() for name, each in programs.items()},
        "work": work,
        "usual": usual,
    }
    try:
        if engine == "classic":
            function = "tvm_practice.viz.studies:cache_study_of"
            answer: dict[str, Any] = engines.call("current", function, arguments)
            return answer
        from tvm_practice.viz.studies import cache_study

        return cache_study(programs, work=work, usual=usual)
    except engines.EngineError as error:
        raise click.ClickException(str(error)) from None


def _print_counters(names: Sequence[str], size: int, mine: bool) -> None:
    """The processor's own L1 misses of each schedule, or one line saying why there are none."""
    for name in names:
        rate = _counted_misses(name, size, mine)
        if isinstance(rate, str):
            click.echo(rate)
            return
        click.echo(f"counted by the processor, {name}: {rate:.4g} L1 misses")


def _counted_misses(name: str, size: int, mine: bool) -> float | str:
    """L1 misses per 1000 multiply-adds by the processor's counter; why not, if there is none."""
    from tvm_practice.viz.cache import hardware_misses

    runs = []
    for repeats in (1, 6):  # the difference is five runs, without what Python does
        command = [sys.executable, "-m", "tvm_practice.viz", "run", name]
        command += ["--size", str(size), "--repeats", str(repeats), *["--mine"] * mine]
        counted = hardware_misses(command)
        if isinstance(counted, str):
            return counted
        runs.append(counted["misses"])
    return 1000 * (runs[1] - runs[0]) / 5 / size**3


@main.command(hidden=True)
@click.argument("name")
@_SIZE
@_MINE
@click.option("--repeats", type=int, default=1)
def run(name: str, size: int, mine: bool, repeats: int) -> None:
    """Run one of the matmul's schedules, for `perf` to count."""
    import os

    os.environ["TVM_NUM_THREADS"] = "1"
    make = chosen.makers(None, size, mine, "current")[name]

    import numpy as np
    import tvm

    from tvm_practice import engines

    function = tvm.compile(make().mod, target=engines.host_target())["main"]
    arguments = [tvm.runtime.tensor(np.ones((size, size), "float32")) for _ in range(3)]
    for _ in range(repeats):
        function(*arguments)


@main.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz roofline\n"
    "  python -m tvm_practice.viz roofline --size 1024 --out roofline.svg"
)
@_SIZE
@_OUT
def roofline(size: int, out: Path | None) -> None:
    """Measure this machine's peak and bandwidth, and draw the course's matmul under them."""
    from tvm_practice.viz.drawing import standalone

    chosen.require_ending(out, ".svg")
    chosen.activate("current")
    study = chosen.default("matmul_roofline")(size)
    limits = study["limits"]
    click.echo(
        f"peak {limits['peak_gflops']:.0f} GFLOP/s, memory {limits['memory_gbps']:.0f} GB/s "
        f"({limits['one_threads_gbps']:.0f} by one thread), "
        + (f"last cache {limits['cache_gbps']:.0f} GB/s, " if limits["cache_gbps"] else "")
        + f"{limits['threads']} threads\n"
        "Per kernel: GFLOP/s; operations per byte from beyond the L2 cache and per byte\n"
        "from memory, both in a first call; share of its limit:"
    )
    for name, kernel in study["kernels"].items():
        near = kernel["cache_intensity"]
        click.echo(
            f"{name:<16} {kernel['gflops']:8.1f} GFLOP/s   "
            + (f"{near:6.1f} " if near else "     - ")
            + f"{kernel['intensity']:7.1f}   {kernel['gflops'] / kernel['limit']:.1%} of its limit"
        )
    if out is not None:
        _write(out, standalone(study["svg"]))


@main.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz report\n"
    "  python -m tvm_practice.viz report --mine --out mine.html"
)
@_SIZE
@_MINE
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("schedules.html"),
    show_default=True,
)
def report(size: int, mine: bool, out: Path) -> None:
    """Put all pictures of the course's matmul on one page."""
    from tvm_practice.measure import environment
    from tvm_practice.viz import report as pages

    chosen.require_ending(out, ".html")
    chosen.activate("current")
    sections = [
        *pages.schedule_sections(chosen.default("matmul_study")(size, mine=mine)),
        pages.roofline_section(chosen.default("matmul_roofline")(size, mine=mine)),
        pages.environment_section(environment()),
        pages.commands_section([" ".join(["python -m tvm_practice.viz", *sys.argv[1:]])]),
    ]
    facts = ["your functions" if mine else "the reference solutions", f"{size}³, float32"]
    try:
        pages.write(pages.Page("A matmul and its schedules", facts, sections), out)
    except OSError as error:
        raise click.ClickException(f"{out}: {error.strerror}") from None
    click.echo(f"written to {out}")


def _print(table: "Table") -> None:
    from rich.console import Console

    Console().print(table)


def _slug(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
    click.echo(f"written to {file}")


main.add_command(explore)
main.add_command(rank)

if __name__ == "__main__":
    main()
