"""`python -m tvm_practice.viz rank`: the cache model's order of schedules beside the clock's."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice.viz import chosen
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from tvm_practice.viz.ranking.study import Study
    from tvm_practice.viz.ranking.times import Times

_SHOWN = 5  # schedules at each end of the table


@click.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz rank\n"
    "  python -m tvm_practice.viz rank --seed 7 --out rank.svg\n"
    "  python -m tvm_practice.viz rank --schedules 12 --size 128 --save rank.json\n"
    "  python -m tvm_practice.viz rank --times rank.json"
)
@click.option(
    "--schedules", "count", type=click.IntRange(8, 200), default=50, show_default=True,
    help="Number of schedules.",
)  # fmt: skip
@click.option(
    "--size", type=click.IntRange(64, 512), default=256, show_default=True,
    help="Rows and columns of the matrices, a multiple of 64.",
)  # fmt: skip
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Seed for drawing the schedules."
)
@click.option(
    "--seconds", type=click.FloatRange(1, 600), default=20, show_default=True,
    help="Seconds for timing all schedules, in turns.",
)  # fmt: skip
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path),
    help="File for all figures, times and assembly, as JSON.",
)  # fmt: skip
@click.option(
    "--times", "kept", type=click.Path(dir_okay=False, path_type=Path),
    help="A file that --save wrote: estimate its schedules again; time nothing.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File for the picture, an .svg."
)
def rank(
    count: int,
    size: int,
    seed: int,
    seconds: float,
    save: Path | None,
    kept: Path | None,
    out: Path | None,
) -> None:
    """Rank schedules of one product by the model of the caches, and by the clock.

    Prints Kendall's tau of the two with a 95% interval: 1 is the same order, 0 is chance. The
    schedules run on one thread, in turns.
    """
    from tvm_practice.tvm_export.writing import write_json, write_whole
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.ranking.picture import rank_svg
    from tvm_practice.viz.ranking.study import ranked
    from tvm_practice.viz.ranking.times import measured_times

    chosen.require_ending(out, ".svg")
    chosen.require_ending(save, ".json")
    if size % 64:
        raise chosen.Mistake(f"--size {size}: give a multiple of 64")
    chosen.activate("current")
    times = (
        _read(kept) if kept else measured_times(count, size, seed, seconds=seconds, tell=click.echo)
    )
    click.echo(str(times.costs))
    try:
        study = ranked(times, tell=click.echo)
    except ValueError as error:
        raise chosen.Mistake(str(error)) from None
    _print(study)
    try:
        if save is not None:
            write_json(save, study.to_dict())
        if out is not None:
            write_whole(out, standalone(rank_svg(study)))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    for file in filter(None, (save, out)):
        click.echo(f"written to {file}")


def _read(file: Path) -> "Times":
    """The times in a file that --save wrote. Raises Mistake for another file."""
    from tvm_practice.viz.ranking.times import Times

    try:
        return Times.from_dict(json.loads(file.read_text())["times"])
    except OSError as error:
        raise chosen.Mistake(f"--times {file}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError):
        raise chosen.Mistake(f"--times {file}: not written by rank --save") from None


def _print(study: "Study") -> None:
    order = sorted(study.schedules, key=lambda each: each.measured)
    click.echo(f"{'schedule':<46} {'measured':>10} {'estimated':>10}   ms")
    rows: list[Any] = [*order[:_SHOWN], None, *order[-_SHOWN:]]
    for each in rows:
        if each is None:
            click.echo("…")
        else:
            click.echo(
                f"{each.name[:46]:<46} {1e3 * each.measured:10.2f} {1e3 * each.estimated:10.2f}"
            )
    click.echo(
        f"Kendall's tau of {len(order)} schedules of {study.times.size}³, seed {study.times.seed}, "
        f"{number_of(study.times.rounds, 'round')}:\n"
        f"  misses and time         {study.misses_alone}\n"
        f"  innermost loop and time {study.innermost}\n"
        f"  all loops and time      {study.computing}\n"
        f"  loops, misses and time  {study.tau}\n"
        f"  time and time again     {study.noise}"
    )
