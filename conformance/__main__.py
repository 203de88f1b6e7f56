"""`python -m conformance KIND`: try cases that others wrote, and say what became of them."""

import json
from pathlib import Path

import click

from conformance import operators
from conformance.cases import VERDICTS, Outcome, counts, drawn, try_all


@click.command(
    epilog="\b\nExamples:\n  python -m conformance operators --samples 2\n"
    "  python -m conformance operators --dtype bfloat16 --draw 100\n"
    "  python -m conformance operators --only softmax --json outcomes.json"
)
@click.argument("kind", type=click.Choice(["operators"]))
@click.option("--dtype", default="float32", show_default=True, help="Of the operators' inputs.")
@click.option("--samples", type=click.IntRange(min=1), help="Per operator [default: all].")
@click.option("--draw", type=click.IntRange(min=1), help="Try so many cases, drawn at random.")
@click.option("--seed", type=int, help="Draw the same cases again.")
@click.option("--only", help="Cases whose name begins so.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Outcomes.")
def main(
    kind: str,
    dtype: str,
    samples: int | None,
    draw: int | None,
    seed: int | None,
    only: str | None,
    jobs: int,
    file: Path | None,
) -> None:
    """Try cases that others wrote; exit code 1 if one is wrong or raw."""
    found = [
        each
        for each in drawn(operators.cases(dtype, samples), draw, seed)
        if only is None or each.name.startswith(only)
    ]

    def say(outcome: Outcome) -> None:
        if outcome.verdict in ("wrong", "raw"):
            click.echo(f"{outcome.verdict:8} {outcome.name}: {outcome.reason}")

    outcomes = try_all(operators.JUDGE, found, jobs=jobs, say=say)
    tally = counts(outcomes)
    click.echo(", ".join(f"{tally[verdict]} {verdict}" for verdict in VERDICTS))
    if file is not None:
        file.write_text(json.dumps([each.to_dict() for each in outcomes], indent=1))
    raise SystemExit(1 if tally["wrong"] + tally["raw"] else 0)


if __name__ == "__main__":
    main()
