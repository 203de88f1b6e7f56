"""`python -m conformance KIND`: try cases that others wrote, and say what became of them."""

from functools import partial
from pathlib import Path
from typing import cast

import click

from conformance.cases import VERDICTS, Outcome, Verdict, counts, drawn, try_all
from conformance.kinds import KINDS
from conformance.page import write as write_page
from conformance.results import Results, path_of


@click.command(
    epilog="\b\nExamples:\n  python -m conformance operators --samples 2\n"
    "  python -m conformance operators --dtype bfloat16 --draw 100\n"
    "  python -m conformance operators --only softmax --json outcomes.json\n"
    "  python -m conformance --again outcomes.json --verdict raw"
)
@click.argument("kinds", metavar="KIND...", nargs=-1)
@click.option("--dtype", help="Type of the inputs, or 'all' [default: the kind's first].")
@click.option("--samples", type=click.IntRange(min=1), help="Samples per group [default: all].")
@click.option("--draw", type=click.IntRange(min=1), help="Try this many cases, drawn at random.")
@click.option("--seed", type=int, help="Seed of the draw; the same seed draws the same cases.")
@click.option("--only", help="Try only cases whose name starts with this.")
@click.option("--verbose", is_flag=True, help="Print the outcome of each case.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=300.0,
    show_default=True,
    help="Seconds per case.",
)
@click.option(
    "--json",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Outcomes [default: runs/conformance/KIND-DTYPE.json, unless only some cases are tried].",
)
@click.option(
    "--again",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Retry the file's cases that were wrong, raw or refused, and update the file.",
)
@click.option("--page", is_flag=True, help="Then write docs/conformance.md from all outcomes kept.")
@click.option(
    "--verdict",
    multiple=True,
    type=click.Choice(VERDICTS),
    help="With --again: retry cases with this verdict.",
)
def main(
    kinds: tuple[str, ...],
    dtype: str | None,
    samples: int | None,
    draw: int | None,
    seed: int | None,
    only: str | None,
    verbose: bool,
    jobs: int,
    timeout: float,
    file: Path | None,
    again: Path | None,
    page: bool,
    verdict: tuple[str, ...],
) -> None:
    """Try cases that others wrote; exit code 1 if one is wrong or raw."""
    if unknown := [each for each in kinds if each not in KINDS]:
        raise click.UsageError(f"no kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    if again is not None:
        try:
            before = Results.read(again)
        except (ValueError, KeyError, TypeError) as error:
            raise click.UsageError(f"{again} holds no outcomes: {error}") from None
        runs = [(before.kind, before.dtype, before.samples)]
        names = before.failures(cast("tuple[Verdict, ...]", verdict))
    else:
        runs = [(kind, each, samples) for kind in kinds for each in _dtypes(kind, dtype)]
        names = None
    if not runs or (file is not None and len(runs) > 1):
        raise click.UsageError("name one kind" if file else f"name a kind: {', '.join(KINDS)}")
    defects = 0
    for kind, type_, most in runs:
        known = list(KINDS[kind].cases(type_, most))
        found = [
            each
            for each in drawn(known, draw, seed)
            if (only is None or each.name.startswith(only))
            and (names is None or each.name in names)
        ]
        outcomes = try_all(
            KINDS[kind].JUDGE, found, jobs=jobs, timeout=timeout, say=partial(_say, verbose)
        )
        tally = counts(outcomes)
        click.echo(
            f"{kind} {type_}: "
            + ", ".join(f"{tally[each]} {each}" for each in VERDICTS)
            + _share(tally["right"], sum(tally.values()) - tally["left out"])
        )
        defects += tally["wrong"] + tally["raw"]
        if again is not None:
            merged = before.merged(outcomes)
            Results.of(kind, type_, most, merged, untried=before.untried).write(file or again)
        elif file or not (draw or only):
            results = Results.of(kind, type_, most, outcomes, untried=len(known) - len(found))
            results.write(file or path_of(kind, type_))
    if page:
        write_page()
    raise SystemExit(1 if defects else 0)


def _say(verbose: bool, outcome: Outcome) -> None:
    if verbose or outcome.verdict in ("wrong", "raw"):
        click.echo(f"{outcome.verdict:8} {outcome.name}: {outcome.reason}")


def _share(right: int, applicable: int) -> str:
    return f"; {right / applicable:.1%} of {applicable} right" if applicable else ""


def _dtypes(kind: str, asked: str | None) -> tuple[str, ...]:
    """The types to try a kind in."""
    known = KINDS[kind].DTYPES
    if asked == "all":
        return known
    if asked is not None and asked not in known:
        raise click.UsageError(f"{kind} has no cases of {asked}; it has {', '.join(known)}")
    return (asked or known[0],)


if __name__ == "__main__":
    main()
