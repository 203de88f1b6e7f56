"""`python -m conformance KIND`: try cases that others wrote, and say what became of them."""

import random
import shlex
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import cast

import click

from conformance.cases import VERDICTS, Outcome, Verdict, counts, drawn, try_all
from conformance.kinds import KINDS
from conformance.page import write as write_page
from conformance.results import Kept, Results, path_of
from tvm_practice import engines


@click.command(
    epilog="\b\nExamples:\n  python -m conformance operators --samples 2\n"
    "  python -m conformance operators --dtype bfloat16 --draw 100\n"
    "  python -m conformance operators --engine classic --samples 2\n"
    "  python -m conformance operators --only softmax --json outcomes.json\n"
    "  python -m conformance transformers --only '* mask' --json runs/conformance/masks.json\n"
    "  python -m conformance --again outcomes.json --verdict raw\n"
    "  python -m conformance --more outcomes.json --samples 6 --minutes 20"
)
@click.argument("kinds", metavar="KIND...", nargs=-1)
@click.option("--dtype", help="Type of the inputs, or 'all' [default: the kind's first].")
@click.option(
    "--engine", type=click.Choice(engines.ENGINES), help="Which TVM [default: the current one]."
)
@click.option(
    "--target",
    help="What `operators` is exported for and run on, such as cuda [default: this processor]. "
    "Only --json keeps its outcomes.",
)
@click.option("--samples", type=click.IntRange(min=1), help="Samples per group [default: all].")
@click.option("--draw", type=click.IntRange(min=0), help="Try this many cases, drawn at random.")
@click.option("--seed", type=int, help="Seed of the draw; the same seed draws the same cases.")
@click.option("--only", help="Try only cases whose name starts with this; * is any text.")
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
    help="Outcomes, written after each case [default: runs/conformance/KIND-DTYPE.json, unless "
    "only some cases are tried].",
)
@click.option(
    "--again",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Retry the file's cases that were wrong, raw or refused, and update the file.",
)
@click.option(
    "--more",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Try the cases that the file lacks, and add them to it.",
)
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), help="Begin no case after this time."
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
    engine: engines.Engine | None,
    target: str | None,
    samples: int | None,
    draw: int | None,
    seed: int | None,
    only: str | None,
    verbose: bool,
    jobs: int,
    timeout: float,
    file: Path | None,
    again: Path | None,
    more: Path | None,
    minutes: float | None,
    page: bool,
    verdict: tuple[str, ...],
) -> None:
    """Try cases that others wrote; exit code 1 if one is wrong or raw."""
    if unknown := [each for each in kinds if each not in KINDS]:
        raise click.UsageError(f"no kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    if target and (kinds != ("operators",) or page or again or more):
        raise click.UsageError("--target is for operators, without --page, --again and --more")
    before = _outcomes_of(again or more)
    if before is not None:
        runs = [(before.kind, before.dtype, samples if more else before.samples)]
        engine = before.engine
    else:
        runs = [(kind, each, samples) for kind in kinds for each in _dtypes(kind, dtype)]
        engine = engine or engines.CURRENT
    for kind, _, _ in runs:
        if engine not in KINDS[kind].ENGINES:
            raise click.UsageError(f"{kind} is not for the {engine} engine")
    if not runs or (file is not None and len(runs) > 1):
        raise click.UsageError("name one kind" if file else f"name a kind: {', '.join(KINDS)}")
    chosen = before.failures(cast("tuple[Verdict, ...]", verdict)) if before and again else None
    known_before = before.tried if before and more else frozenset()
    defects = matched = 0
    if draw is not None and seed is None:
        seed = random.SystemRandom().randrange(10**6)
    part = _part(draw, seed, only, target) if before is None else before.part
    for kind, type_, most in runs:
        known = list(KINDS[kind].cases(type_, most))
        named = [each for each in known if only is None or fnmatchcase(each.name, f"{only}*")]
        matched += len(named)
        wanted = [
            each
            for each in named
            if (chosen is None or each.name in chosen) and each.name not in known_before
        ]
        found = drawn(wanted, draw, seed)
        if target:
            found = [
                replace(each, arguments={**each.arguments, "target": target}) for each in found
            ]
        earlier = before.outcomes if before else ()
        kept = Kept(
            Results.of(kind, type_, most, earlier, part=part, engine=engine),
            file or again or more or (None if part else path_of(kind, type_, engine)),
            [each.name for each in known],
        )
        outcomes = try_all(
            KINDS[kind].JUDGE,
            found,
            engine=engine,
            jobs=jobs,
            timeout=timeout,
            limit=None if minutes is None else 60 * minutes,
            say=partial(_keep, kept, verbose),
        )
        tally = counts(outcomes)
        click.echo(
            f"{kind} {type_}: "
            + ", ".join(f"{tally[each]} {each}" for each in VERDICTS)
            + _share(tally["right"], sum(tally.values()) - tally["left out"])
        )
        defects += tally["wrong"] + tally["raw"]
    if not matched and only is None:
        raise click.UsageError(f"no cases here; {KINDS[runs[0][0]].__name__} says what they need")
    if not matched:
        raise click.UsageError(f"--only {only}: no case's name starts so")
    if page:
        for each in write_page():
            click.echo(f"the page has more outcomes of this and keeps them: {each.command}")
    raise SystemExit(1 if defects else 0)


def _outcomes_of(file: Path | None) -> Results | None:
    """What --again or --more names."""
    try:
        return None if file is None else Results.read(file)
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{file} holds no outcomes: {error}") from None


def _part(draw: int | None, seed: int | None, only: str | None, target: str | None) -> str:
    """The options that choose some of the cases or their target, as they are typed."""
    return " ".join(
        [f"--draw {draw} --seed {seed}"] * (draw is not None)
        + [f"--only {shlex.quote(only or '')}"] * (only is not None)
        + [f"--target {shlex.quote(target or '')}"] * (target is not None)
    )


def _keep(kept: Kept, verbose: bool, outcome: Outcome) -> None:
    kept.add(outcome)
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
