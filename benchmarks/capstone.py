"""The capstone's tiers: the reference answers beside three weak ones, each gated and scored.

    python benchmarks/capstone.py                       # ten minutes
    python benchmarks/capstone.py product --rounds 3

Exit code 1: a reference misses the top tier, or a weak answer has it.
"""

import sys
import tempfile
from pathlib import Path

import click

from tests.mutants.capstones.weak import WEAK, weak_file
from tvm_practice.course.capstone import TRACKS
from tvm_practice.course.capstone.command import answers_file, limits_line
from tvm_practice.course.capstone.running import machine_roofs, run_track
from tvm_practice.course.capstone.scoring import TIERS
from tvm_practice.measure import environment


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/capstone.py\n"
    "  python benchmarks/capstone.py product --rounds 3"
)
@click.argument("track", nargs=-1, type=click.Choice(TRACKS), metavar="[TRACK]...")
@click.option("--rounds", type=click.IntRange(1), default=9, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def main(track: tuple[str, ...], rounds: int, seed: int) -> None:
    """Score the capstone's reference answers and three weak ones."""
    found = environment()
    click.echo(f"{found['processor']}, load {found['load_1min']}, {found['date']}")
    roofs = machine_roofs()
    for threads, roof in roofs.items():
        click.echo(f"{threads} threads: {limits_line(roof)}")
    click.echo(f"{'track':<10} {'answer':<11} {'score':>6} {'tier':<9} share  torch")
    as_told = True
    with tempfile.TemporaryDirectory() as name:
        for kind in (*WEAK, "reference"):
            file = answers_file(solutions=True)
            if kind in WEAK:
                file = Path(name) / f"{kind}.py"
                file.write_text(weak_file(kind), encoding="utf-8")
            for each in track or TRACKS:
                result = run_track(each, file, seed=seed, roofs=roofs, rounds=rounds)
                if result.status != "scored":
                    raise SystemExit(f"{each}, {kind}: {result.message}")
                share, torch = (
                    sum(case[part] for case in result.cases) / len(result.cases)
                    for part in ("share", "speedup")
                )
                click.echo(
                    f"{each:<10} {kind:<11} {result.score:6.1f} {result.tier:<9} "
                    f"{share:5.0%} {torch:5.2f}x"
                )
                as_told &= (result.tier == TIERS[-1]) == (kind == "reference")
    sys.exit(0 if as_told else 1)


if __name__ == "__main__":
    main()
