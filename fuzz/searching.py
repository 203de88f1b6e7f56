"""Draws graphs and judges them until the time is up; what fails is made smaller."""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from conformance.cases import Judges
from fuzz.drawn_graphs import drawn_graph
from fuzz.graphs import Graph
from fuzz.judging import JUDGE, Mode, Outcome
from fuzz.reducing import reduced
from tvm_practice import engines

# Four of seven graphs by the default rules, one of them with an open extent.
_MODES: tuple[Mode, ...] = ("rules", "rules", "rules", "open", "tiles", "tiles", "classic")
_LIMIT = 600.0  # seconds per graph by the clock; `judge` limits those of a processor
_REDUCING = 180.0  # seconds per fault
# glibc fills memory with the complement of this when it is given out: -1.7e38 in float32.
_POISON = {"MALLOC_PERTURB_": "1", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


@dataclass(frozen=True)
class Fault:
    """A graph that fails, as small as it was made.

    Attributes:
        graph, mode, seed: what `judge` was given.
        outcome: what it said.
    """

    graph: Graph
    mode: Mode
    seed: int
    outcome: Outcome

    def explains(self, graph: Graph, mode: Mode, outcome: Outcome | None = None) -> bool:
        """Whether another graph may fail for the same reason.

        That is one with all of this one's operators, or one with the same error.
        """
        if outcome is not None and outcome.verdict == "raw" == self.outcome.verdict:
            return _kind(outcome.reason) == _kind(self.outcome.reason)
        return mode == self.mode and not Counter(self.graph.operators) - Counter(graph.operators)


def _kind(reason: str) -> str:
    """An error without its numbers and names of values."""
    return re.sub(r"\b[vxc]?\d+\b", "n", reason)


@dataclass
class Found:
    """What a search has come to.

    Attributes:
        verdicts: how many graphs had each.
        operators: in how many graphs that were not refused each was.
        refusals: how many for each reason.
        modes: graphs per mode.
        faults: one for each kind.
        passed_over: graphs with the operators of a fault found, which were not judged.
        drawn: graphs of the seed so far, skipped ones included.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    passed_over: int = 0
    drawn: int = 0

    def note(self, graph: Graph, mode: Mode, outcome: Outcome) -> None:
        self.verdicts[outcome.verdict] += 1
        self.modes[mode] += 1
        if outcome.verdict == "refused":
            self.refusals[f"{mode}: {_kind(outcome.reason)}"[:200]] += 1
        else:
            self.operators.update(set(graph.operators))


class _Enough(Exception):
    """Ends a reduction."""


@contextmanager
def judging(
    judge: str = JUDGE, limit: float = _LIMIT
) -> Iterator[Callable[[Graph, Mode, int], Outcome]]:
    """What judges a graph, in a process that is replaced when it crashes or hangs.

    Args:
        judge: "module:function" with the arguments and the result of `judging.judge`.
        limit: seconds per graph.
    """
    with closing(Judges(limit)) as judges:

        def judged(graph: Graph, mode: Mode, seed: int) -> Outcome:
            engine = engines.CLASSIC if mode == "classic" else engines.CURRENT
            arguments = {"graph": graph.to_dict(), "mode": mode, "seed": seed}
            try:
                return Outcome(**judges(judge, arguments, engine))
            except engines.EngineUnavailable as missing:
                return Outcome("refused", str(missing))

        yield judged


def search(
    judge: Callable[[Graph, Mode, int], Outcome],
    *,
    seed: int,
    seconds: float = float("inf"),
    most: int = sys.maxsize,
    skip: int = 0,
    modes: tuple[Mode, ...] = _MODES,
    say: Callable[[str], None] = lambda line: None,
    keep: Callable[[Fault], None] = lambda fault: None,
) -> Found:
    """Draw and judge until the time is up or so many graphs were judged.

    Args:
        judge: see `judging`.
        seed: the same one draws the same graphs.
        seconds: no graph is begun after them, but for the reduction of a fault.
        most: graphs to judge, those of reductions left out.
        skip: graphs of the seed to draw and not to judge: those that an earlier search drew.
        modes: to draw from; one that is there twice is drawn twice as often.
        say: is told each fault.
        keep: is given each fault as soon as it is found.
    """
    found = Found()
    ends = time.monotonic() + seconds
    random = Random(seed)
    while time.monotonic() < ends and sum(found.verdicts.values()) < most:
        graph, mode, number = drawn_graph(random), random.choice(modes), random.randrange(10**6)
        found.drawn += 1
        if found.drawn <= skip:
            continue
        if any(each.explains(graph, mode) for each in found.faults):
            found.passed_over += 1
            continue
        outcome = judge(graph, mode, number)
        found.note(graph, mode, outcome)
        if outcome.is_fault and not any(e.explains(graph, mode, outcome) for e in found.faults):
            fault = _made_small(judge, Fault(graph, mode, number, outcome))
            found.faults.append(fault)
            say(f"{fault.outcome.verdict} ({fault.mode}): {fault.outcome.reason}")
            say(fault.graph.source())
            keep(fault)
    return found


def _made_small(judge: Callable[[Graph, Mode, int], Outcome], fault: Fault) -> Fault:
    """The fault of a smaller graph with the same verdict, for raw errors with the same text."""
    ends = time.monotonic() + _REDUCING
    smallest = fault

    def fails(graph: Graph) -> bool:
        nonlocal smallest
        if time.monotonic() >= ends:
            raise _Enough
        outcome = judge(graph, fault.mode, fault.seed)
        if outcome.verdict != fault.outcome.verdict or (
            outcome.verdict == "raw" and _kind(outcome.reason) != _kind(fault.outcome.reason)
        ):
            return False
        smallest = Fault(graph, fault.mode, fault.seed, outcome)
        return True

    try:
        reduced(fault.graph, fails)
    except _Enough:
        pass
    return smallest


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Inside the block, a process that is started finds no zeros in memory that it is given."""
    before: Mapping[str, Any] = {name: os.environ.get(name) for name in _POISON}
    os.environ.update(_POISON)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
