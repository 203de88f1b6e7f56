"""`python -m fuzz`: random models until the time is up."""

from pathlib import Path

import click

from fuzz.judging import MODES, Mode


@click.command(
    epilog="\b\nExamples:\n  python -m fuzz --minutes 30 --seed 0\n"
    "  python -m fuzz --graphs 20 --mode tiles"
)
@click.option("--minutes", type=click.FloatRange(min=0), default=30.0, show_default=True)
@click.option("--graphs", type=click.IntRange(min=1), help="Stop after this many graphs.")
@click.option("--seed", type=int, help="The same seed draws the same graphs [default: any].")
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    default=0,
    help="Begin after so many graphs of the seed: an earlier run says how many it drew.",
)
@click.option("--mode", type=click.Choice(MODES), help="[default: all of them]")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs/fuzz"),
    show_default=True,
    help="Folder of the tests that are written.",
)
def main(
    minutes: float,
    graphs: int | None,
    seed: int | None,
    skip: int,
    mode: Mode | None,
    out: Path,
) -> None:
    """Hold random models against PyTorch; exit code 1 if one fails."""
    import random
    import sys

    from fuzz import searching
    from fuzz.operators import NAMES
    from fuzz.writing import write

    chosen = random.SystemRandom().randrange(10**6) if seed is None else seed
    click.echo(f"seed {chosen}")
    with searching.poisoned_memory(), searching.judging() as judge:
        found = searching.search(
            judge,
            seed=chosen,
            seconds=60 * minutes,
            most=graphs or sys.maxsize,
            skip=skip,
            **({"modes": (mode,)} if mode else {}),
            say=click.echo,
            keep=lambda fault: click.echo(f"written: {write(fault, out)}"),
        )
    total = sum(found.verdicts.values())
    told = ", ".join(f"{number} {verdict}" for verdict, number in found.verdicts.most_common())
    click.echo(f"{total} graphs: {told or 'none'}; {found.passed_over} passed over")
    click.echo(f"to go on: --seed {chosen} --skip {found.drawn}")
    click.echo("by mode: " + ", ".join(f"{n} {mode}" for mode, n in found.modes.most_common()))
    missing = sorted(set(NAMES) - set(found.operators))
    click.echo(f"{len(found.operators)} of {len(NAMES)} operators" + (", not " if missing else ""))
    if missing:
        click.echo("  " + ", ".join(missing))
    for reason, number in found.refusals.most_common():
        click.echo(f"refused {number}: {reason}")
    click.echo(f"{len(found.faults)} faults")
    raise SystemExit(1 if found.faults else 0)


if __name__ == "__main__":
    main()
