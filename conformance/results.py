"""The outcomes of a kind in one type, as a file that is read again."""

import json
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from conformance.cases import Outcome, Verdict
from tvm_practice.engines import CURRENT, Engine
from tvm_practice.measure import environment

FOLDER = Path("runs/conformance")
_AGAIN: tuple[Verdict, ...] = ("wrong", "raw", "refused")


@dataclass(frozen=True)
class Results:
    """What a run found.

    Attributes:
        kind, dtype: of its cases.
        engine: that they were tried on.
        samples: cases per group at most; None: all.
        outcomes: one per case that was tried.
        untried: how many more cases there are.
        command: that made it.
        part: options that chose some of the cases; empty where all were to be tried.
        environment: of the run, the last one where there were more; see `measure.environment`.
    """

    kind: str
    dtype: str
    samples: int | None
    outcomes: tuple[Outcome, ...]
    command: str
    environment: dict[str, Any]
    untried: int = 0
    part: str = ""
    engine: Engine = CURRENT

    @classmethod
    def of(
        cls,
        kind: str,
        dtype: str,
        samples: int | None,
        outcomes: Iterable[Outcome],
        *,
        untried: int = 0,
        part: str = "",
        engine: Engine = CURRENT,
    ) -> "Results":
        """The record of a run as it is now."""
        return cls(
            kind=kind,
            dtype=dtype,
            samples=samples,
            outcomes=tuple(outcomes),
            command=f"python -m conformance {kind} --dtype {dtype}"
            + (f" --engine {engine}" if engine != CURRENT else "")
            + (f" --samples {samples}" if samples else "")
            + (f" {part}" if part else ""),
            environment=environment(),
            untried=untried,
            part=part,
            engine=engine,
        )

    @classmethod
    def read(cls, file: Path) -> "Results":
        """What `write` wrote."""
        found = json.loads(file.read_text())
        return cls(**{**found, "outcomes": tuple(Outcome(**each) for each in found["outcomes"])})

    def write(self, file: Path) -> None:
        """As JSON, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(self), indent=1))
        part.replace(file)

    @property
    def tried(self) -> frozenset[str]:
        """Names of the cases that have an outcome."""
        return frozenset(each.name for each in self.outcomes)

    def failures(self, verdicts: Sequence[Verdict] = ()) -> frozenset[str]:
        """Names of the cases with such a verdict; none given: wrong, raw and refused."""
        return frozenset(
            each.name for each in self.outcomes if each.verdict in (verdicts or _AGAIN)
        )

    def merged(self, newer: Iterable[Outcome]) -> tuple[Outcome, ...]:
        """Its outcomes, each replaced by the newer one of its case, and then those of new cases."""
        newest = {each.name: each for each in newer}
        kept = tuple(newest.pop(each.name, each) for each in self.outcomes)
        return (*kept, *newest.values())


class Kept:
    """The outcomes of a run under way, in a file that is up to date and whole after each of them.

    Args:
        results: that outcomes are added to.
        file: where they are kept; None: nowhere.
        known: names of all cases there are, of which those without an outcome count as untried.

    Attributes:
        results: with the outcomes that were added.
    """

    def __init__(self, results: Results, file: Path | None, known: Collection[str]):
        self.results = results
        self._file = file
        self._known = frozenset(known)
        self._one_at_a_time = threading.Lock()

    def add(self, outcome: Outcome) -> None:
        """Put an outcome in place of the earlier one of its case, or after the others."""
        with self._one_at_a_time:
            merged = replace(self.results, outcomes=self.results.merged([outcome]))
            self.results = replace(merged, untried=len(self._known - merged.tried))
            if self._file is not None:
                self.results.write(self._file)


def path_of(kind: str, dtype: str, engine: Engine = CURRENT) -> Path:
    """Where a run of all of a kind's cases in a type on an engine is kept."""
    return FOLDER / ("-".join([kind, dtype, *([engine] if engine != CURRENT else [])]) + ".json")


def reasons(outcomes: Iterable[Outcome], verdict: Verdict) -> Counter[str]:
    """How often each reason was given for a verdict."""
    return Counter(each.reason for each in outcomes if each.verdict == verdict)
