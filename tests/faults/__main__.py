"""`python -m tests.faults`: put faults into runs, and say what did not hold."""

import contextlib
import itertools
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import click

from tests import forks
from tests.faults import page
from tests.faults.scenarios import SCENARIOS, Case, Condition, Place
from tests.faults.tracing import Fault

T = TypeVar("T")
_ENVIRONMENT = {
    "PYTHONDONTWRITEBYTECODE": "1",  # a run would write other files than the recorded
    "TVM_NUM_THREADS": "1",  # threads that wait busily would be all that is traced
    "TVM_THREAD_POOL_SPIN_COUNT": "0",
    "OMP_WAIT_POLICY": "passive",
}
_AGAIN = 8  # each so many-th command is run once more after its fault


@click.command(
    epilog="\b\nExamples:\n  python -m tests.faults --faults 300 --page\n"
    "  python -m tests.faults export --only rename --faults 20"
)
@click.argument("names", metavar="SCENARIO...", nargs=-1)
@click.option("--faults", "most", type=click.IntRange(1), default=360, show_default=True)
@click.option("--only", help="Faults whose call or error has this in its name.")
@click.option(
    "--seconds", type=float, default=1180.0, show_default=True, help="Then begin no more."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the faults chosen.")
@click.option("--jobs", type=click.IntRange(1), default=3, show_default=True)
@click.option("--page", "write", is_flag=True, help="Then write docs/faults.md.")
def main(
    names: tuple[str, ...],
    most: int,
    only: str | None,
    seconds: float,
    seed: int,
    jobs: int,
    write: bool,
) -> None:
    """Put faults into runs; exit code 1 if something that must hold did not, or none happened."""
    if unknown := [each for each in names if each not in SCENARIOS]:
        raise click.UsageError(f"no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    if shutil.which("strace") is None:
        click.echo("skipped: strace is not installed")
        return
    started = time.monotonic()
    os.environ.update(_ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, _forked():

        def opened(name: str) -> Place:
            return Place(SCENARIOS[name], Path(folder) / name)

        with ThreadPoolExecutor(jobs) as pool:
            places = list(pool.map(opened, names or tuple(SCENARIOS)))
            chosen = _chosen(places, most, only, seed)
            until = started + seconds
            tried = pool.map(lambda place: _try(place, chosen[place], until), places)
            cases = [case for some in tried for case in some]
    took = time.monotonic() - started
    counts = Counter(case.injected for case in cases)
    failed = [case for case in cases if case.violations]
    click.echo(f"{counts[True]} faults in {took:.0f} s, {counts[False]} runs took another way")
    click.echo(f"{len(failed)} violations")
    if write:
        page.write(cases, took)
    if not counts[True]:
        raise click.ClickException("no fault happened")
    sys.exit(1 if failed else 0)


def _try(place: Place, faults: Sequence[Fault | Condition], until: float) -> list[Case]:
    """The cases of one place, one after the other; none is begun after `until`."""
    cases = []
    for number, fault in enumerate(faults):
        if time.monotonic() > until:
            click.echo(f"{place.scenario.name}: out of time after {number} of {len(faults)}")
            break
        cases.append(place.try_fault(fault, again=number % _AGAIN == 0))
        _tell(cases[-1], len(cases))
    return cases


@contextlib.contextmanager
def _forked() -> Iterator[None]:
    """In the block, Python processes are forked from one that has imported their packages."""
    with forks.servers():
        forks.use()
        yield


def _chosen(
    places: Sequence[Place], most: int, only: str | None, seed: int
) -> dict[Place, list[Fault | Condition]]:
    """Faults drawn for each place: each has its share, and in it each kind of call and error."""
    chance = random.Random(seed)
    possible: dict[Place, list[Fault | Condition]] = {}
    for place in places:
        groups: dict[tuple[str, str], list[Fault | Condition]] = {}
        for fault in place.faults():
            if only is None or only in " ".join(fault.kind):
                groups.setdefault(fault.kind, []).append(fault)
        for group in groups.values():
            chance.shuffle(group)
        possible[place] = list(_in_turns(groups.values()))
    click.echo(f"{sum(map(len, possible.values()))} faults are possible")
    drawn = _in_turns([[(place, fault) for fault in possible[place]] for place in places])
    chosen: dict[Place, list[Fault | Condition]] = {place: [] for place in places}
    for place, fault in itertools.islice(drawn, most):
        chosen[place].append(fault)
    return chosen


def _in_turns(groups: Iterable[Sequence[T]]) -> Iterator[T]:
    """The first of each group, the second of each, and so on."""
    for row in itertools.zip_longest(*groups):
        yield from (each for each in row if each is not None)


def _tell(case: Case, number: int) -> None:
    end = "" if case.injected else " (took another way)"
    click.echo(f"{number:4} {case.scenario.name}: {case.fault}{end}")
    for violation in case.violations:
        click.echo(f"     VIOLATION {violation}")


if __name__ == "__main__":
    main()
