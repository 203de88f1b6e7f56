"""`python -m tvm_practice.viz`: pictures of schedules, of the course's matmul or of your own."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tvm_practice.viz.access import AccessProgram

_WHAT = click.argument("what", metavar="[MODULE:FUNCTION]", required=False)
_SIZE = click.option(
    "--size", type=click.IntRange(8, 2048), default=512, show_default=True, help="Of the matmul."
)
_MINE = click.option("--mine", is_flag=True, help="The matmul by your functions of phase 2.")
_ENGINE = click.option(
    "--engine",
    type=click.Choice(["current", "classic"]),
    default="current",
    show_default=True,
    help="Which TVM a schedule of your own is made on.",
)
_OUT = click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write the picture to."
)
_EXPECTED = {
    "current": "it has to be a tvm.s_tir.Schedule, a PrimFunc or an IRModule with a main",
    "classic": "it has to be a pair (tvm.te.Schedule, its tensors)",
}


class _Mistake(click.ClickException):
    exit_code = 2


@click.group(
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.viz nest mymodule:my_schedule --history\n"
    "  python -m tvm_practice.viz access --out access.svg\n"
    "  python -m tvm_practice.viz access --out access.gif\n"
    "  python -m tvm_practice.viz cache --size 512\n"
    "  python -m tvm_practice.viz report --out report.html"
)
def main() -> None:
    """See what a schedule does: its loops, the memory it touches, the caches, the roofline.

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
@click.option("--history", is_flag=True, help="The loops after every primitive.")
@_OUT
def nest(
    what: str | None, size: int, mine: bool, engine: str, history: bool, out: Path | None
) -> None:
    """The loop nest, as text or as nested boxes (--out file.svg)."""
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.history import recorded
    from tvm_practice.viz.loop_nest import format_nest
    from tvm_practice.viz.nest_picture import nest_svg

    makers = _makers(what, size, mine, engine)
    for name, make in makers.items():
        made = _made(name, functools.partial(recorded, make))
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
    help="Follow so many touches of memory; the matmul's are one tile's.",
)
@_OUT
def access(what: str | None, mine: bool, engine: str, touches: int, out: Path | None) -> None:
    """Which elements are touched in which order: strides, lines, reuse; a picture with --out.

    --out takes .svg and .png for a still picture, .gif for a moving one. A function of your own
    should be small: a few ten thousand elements can be told apart.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tvm_practice.viz.access_picture import access_figure, access_svg, save_gif, window
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.matmuls import SMALL_SIZE, SMALL_TILE
    from tvm_practice.viz.studies import matmul_windows

    suffix = out.suffix.lower() if out else ""
    if suffix not in ("", ".svg", ".png", ".gif"):
        raise _Mistake(f"--out {out}: give a file that ends in .svg, .png or .gif")
    programs = _programs(what, SMALL_SIZE, mine, engine, tile=(SMALL_TILE, SMALL_TILE))
    if what is None:
        programs.pop("tiled+parallel", None)
        windows = matmul_windows(programs)
    else:
        windows = {name: window(each, touches) for name, each in programs.items()}
    table = Table("schedule", "buffer", box=box.SIMPLE, pad_edge=False)
    table.add_column("lines", justify="right")
    table.add_column("strides")
    table.add_column("reuse within", justify="right")
    for name, part in windows.items():
        distances = part.trace.reuse_distances()
        for trace in part.buffers:
            strides = ", ".join(f"{step:+d} ({share:.0%})" for step, share in trace.strides()[:3])
            again = distances[trace.buffer.name]
            again = again[again >= 0]
            table.add_row(
                name,
                trace.buffer.name,
                str(len(set(trace.lines().tolist()))),
                strides,
                f"{again.max()} lines" if again.size else "",
            )
        table.add_section()
    Console().print(table)
    click.echo(
        f"{next(iter(windows.values())).trace.numbers.size} touches of memory. Strides: in "
        "elements, the commonest three.\nReuse: so many other cache lines are touched before a "
        "line is touched again."
    )
    if out is None:
        return
    if suffix == ".gif":
        save_gif(windows, out)
        click.echo(f"written to {out}")
    elif suffix == ".svg":
        _write(out, standalone(access_svg(windows, title="Memory access")))
    else:
        access_figure(windows).savefig(out, dpi=130, facecolor="white")
        click.echo(f"written to {out}")


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
    """Misses in a model of this machine's caches, beside the processor's own counters.

    All accesses of the function are followed; a 512³ matmul takes some seconds a schedule. The
    counters need `perf` and a processor that shows them; they count one run on one thread.
    """
    from rich.console import Console
    from rich.table import Table

    from tvm_practice import engines
    from tvm_practice.viz.drawing import standalone

    programs = _programs(what, size, mine, engine)
    work = size**3 if what is None else 1000
    arguments = {
        "programs": {name: each.to_dict() for name, each in programs.items()},
        "work": work,
        "usual": usual,
    }
    try:
        if engine == "classic":  # the simulator is compiled by current TVM
            study = engines.call("current", "tvm_practice.viz.studies:cache_study_of", arguments)
        else:
            from tvm_practice.viz.studies import cache_study

            study = cache_study(programs, work=work, usual=usual)
    except engines.EngineError as error:
        raise click.ClickException(str(error)) from None
    levels = [each.partition(":")[0] for each in study["levels"]]
    title = f"misses for 1000 multiply-adds, {size}³" if what is None else "misses"
    table = Table("schedule", "accesses", *levels, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in study["counts"].items():
        row = [counts["accesses"], *(counts["misses"][level] for level in levels)]
        totals = (sum(each.values()) for each in row)
        table.add_row(
            name,
            *(f"{1000 * total / work:.4g}" if what is None else f"{total:,}" for total in totals),
        )
    Console().print(table)
    click.echo("; ".join(study["levels"]) + ("" if study["known"] else " (usual sizes)"))
    if what is None and not usual:
        _print_counters(list(programs), size, mine)
    if out is not None:
        _write(out, standalone(study["svg"]))


def _print_counters(names: list[str], size: int, mine: bool) -> None:
    """The processor's own L1 misses of each schedule, or one line saying why there are none."""
    from tvm_practice.viz.cache import hardware_misses

    for name in names:
        runs = []
        for repeats in (1, 6):  # the difference is five runs, without what Python does
            command = [sys.executable, "-m", "tvm_practice.viz", "run", name]
            command += ["--size", str(size), "--repeats", str(repeats), *["--mine"] * mine]
            counted = hardware_misses(command)
            if isinstance(counted, str):
                click.echo(counted)
                return
            runs.append(counted["misses"])
        rate = 1000 * (runs[1] - runs[0]) / 5 / size**3
        click.echo(f"counted by the processor, {name}: {rate:.4g} L1 misses")


@main.command(hidden=True)
@click.argument("name")
@_SIZE
@_MINE
@click.option("--repeats", type=int, default=1)
def run(name: str, size: int, mine: bool, repeats: int) -> None:
    """Run one of the matmul's schedules, for `perf` to count."""
    import os

    os.environ["TVM_NUM_THREADS"] = "1"
    make = _makers(None, size, mine, "current")[name]

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
    """This machine's peak and bandwidth, and the course's matmul under them."""
    _activate("current")
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.studies import roofline_study

    study = roofline_study(size)
    limits = study["limits"]
    click.echo(
        f"peak {limits['peak_gflops']:.0f} GFLOP/s, memory {limits['memory_gbps']:.0f} GB/s, "
        f"{limits['threads']} threads"
    )
    for name, kernel in study["kernels"].items():
        limit = min(limits["peak_gflops"], limits["memory_gbps"] * kernel["intensity"])
        click.echo(
            f"{name:<16} {kernel['gflops']:8.1f} GFLOP/s   {kernel['intensity']:6.1f} operations "
            f"per byte   {kernel['gflops'] / limit:.0%} of its limit"
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
    """All of it for the course's matmul on one page."""
    _activate("current")
    from tvm_practice.course.catalog import MINE, SOLUTIONS
    from tvm_practice.measure import environment
    from tvm_practice.viz import report as pages
    from tvm_practice.viz.studies import matmul_study, roofline_study

    source = MINE if mine else SOLUTIONS
    sections = [
        *pages.schedule_sections(matmul_study(size, source)),
        pages.roofline_section(roofline_study(size, source=source)),
        pages.environment_section(environment()),
        pages.commands_section([" ".join(["python -m tvm_practice.viz", *sys.argv[1:]])]),
    ]
    facts = ["your functions" if mine else "the reference solutions", f"{size}³, float32"]
    try:
        pages.write(pages.Page("A matmul and its schedules", facts, sections), out)
    except OSError as error:
        raise click.ClickException(f"{out}: {error.strerror}") from None
    click.echo(f"written to {out}")


def _activate(engine: str) -> None:
    from tvm_practice import engines

    try:
        engines.activate(engine)  # type: ignore[arg-type]
    except engines.EngineError as error:
        raise click.ClickException(str(error)) from None


def _makers(
    what: str | None,
    size: int,
    mine: bool,
    engine: str,
    tile: tuple[int, int] | None = None,
) -> dict[str, Callable[[], Any]]:
    """By name, what makes each schedule that was asked for, on the engine, which is activated."""
    from tvm_practice.course.catalog import MINE, SOLUTIONS

    _activate(engine)
    if what is None:
        if engine == "classic":
            raise _Mistake("--engine classic needs MODULE:FUNCTION: the matmuls are current TVM's")
        from tvm_practice.manual_schedule import register_tile
        from tvm_practice.viz.matmuls import matmul_makers

        rows, columns = tile or register_tile()
        source = MINE if mine else SOLUTIONS
        return dict(matmul_makers(size, rows=rows, columns=columns, source=source))
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import find_factory

    try:
        return {what.partition(":")[2] or what: find_factory(what)}
    except BadInput as error:
        raise _Mistake(str(error)) from None


def _made(name: str, make: Callable[[], Any]) -> Any:
    """What a function makes; None for a stub, which is said. What it raises is one line."""
    from tvm_practice.tvm_export.loading import describe

    try:
        return make()
    except NotImplementedError as error:
        click.echo(f"{name}: to do ({error})", err=True)
        return None
    except Exception as error:
        raise _Mistake(f"{name} raised {describe(error)}") from None


def _programs(
    what: str | None,
    size: int,
    mine: bool,
    engine: str,
    tile: tuple[int, int] | None = None,
) -> "dict[str, AccessProgram]":
    """The access programs of what was asked for."""
    from tvm_practice.viz.access import CannotFollow, access_program

    found = {}
    for name, make in _makers(what, size, mine, engine, tile).items():
        made = _made(name, make)
        if made is None:
            continue
        # Classic: a schedule and its tensors.
        function, tensors = made if isinstance(made, tuple) else (getattr(made, "mod", made), None)
        try:
            found[name] = access_program(function, tensors, name=name)
        except CannotFollow as error:
            raise _Mistake(f"{name}: {error}") from None
        except (AttributeError, TypeError):
            raise _Mistake(f"{name} returned {type(made).__name__}: {_EXPECTED[engine]}") from None
    if not found:
        raise click.ClickException("nothing to show: the functions are still to do")
    return found


def _slug(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
    click.echo(f"written to {file}")


if __name__ == "__main__":
    main()
