"""`python -m tvm_practice.viz rank`: the cache model's order of schedules beside the clock's."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice.viz import chosen

if TYPE_CHECKING:
    from tvm_practice.viz.ranking.study import Study

_SHOWN = 5  # schedules at each end of the table


@click.command(
    epilog="\b\nExamples:\n  python -m tvm_practice.viz rank\n"
    "  python -m tvm_practice.viz rank --seed 7 --out rank.svg\n"
    "  python -m tvm_practice.viz rank --schedules 12 --size 128 --save rank.json"
)
@click.option(
    "--schedules", "count", type=click.IntRange(8, 200), default=50, show_default=True,
    help="Number of schedules.",
)  # fmt: skip
@click.option(
    "--size", type=click.IntRange(64, 512), default=256, show_default=True,
    help="Rows and columns of the matrices, a multiple of 64.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Of the schedules drawn.")
@click.option(
    "--seconds", type=click.FloatRange(1, 600), default=20, show_default=True,
    help="For timing them all, in turns.",
)  # fmt: skip
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="File for all figures, as JSON."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File for the picture, an .svg."
)
def rank(
    count: int, size: int, seed: int, seconds: float, save: Path | None, out: Path | None
) -> None:
    """Rank schedules of one product by the model of the caches, and by the clock.

    Prints Kendall's tau of the two with a 95% interval: 1 is the same order, 0 is chance. The
    schedules run on one thread, in turns.
    """
    from tvm_practice.tvm_export.writing import write_json, write_whole
    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.ranking.picture import rank_svg
    from tvm_practice.viz.ranking.study import ranked

    chosen.require_ending(out, ".svg")
    chosen.require_ending(save, ".json")
    if size % 64:
        raise chosen.Mistake(f"--size {size}: give a multiple of 64")
    chosen.activate("current")
    study = ranked(count, size, seed, seconds=seconds, tell=click.echo)
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
        f"Kendall's tau of {len(order)} schedules of {study.size}³, seed {study.seed}, "
        f"{study.rounds} rounds:\n"
        f"  estimate and time   {study.tau}\n"
        f"  misses and time     {study.misses_alone}\n"
        f"  time and time again {study.noise}"
    )
