"""The outcomes of a kind in one type, as a file that is read again."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.cases import Outcome, Verdict
from tvm_practice.measure import environment

FOLDER = Path("runs/conformance")
_AGAIN: tuple[Verdict, ...] = ("wrong", "raw", "refused")


@dataclass(frozen=True)
class Results:
    """What a run found.

    Attributes:
        kind, dtype: of its cases.
        samples: cases per group at most; None: all.
        outcomes: one per case that was tried.
        untried: how many more cases there are.
        command: that made it.
        environment: of the run, the last one where there were more; see `measure.environment`.
    """

    kind: str
    dtype: str
    samples: int | None
    outcomes: tuple[Outcome, ...]
    command: str
    environment: dict[str, Any]
    untried: int = 0

    @classmethod
    def of(
        cls,
        kind: str,
        dtype: str,
        samples: int | None,
        outcomes: Iterable[Outcome],
        *,
        untried: int = 0,
    ) -> "Results":
        """The record of a run that has just ended."""
        return cls(
            kind=kind,
            dtype=dtype,
            samples=samples,
            outcomes=tuple(outcomes),
            command=f"python -m conformance {kind} --dtype {dtype}"
            + (f" --samples {samples}" if samples else ""),
            environment=environment(),
            untried=untried,
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

    def failures(self, verdicts: Sequence[Verdict] = ()) -> set[str]:
        """Names of the cases with such a verdict; none given: wrong, raw and refused."""
        return {each.name for each in self.outcomes if each.verdict in (verdicts or _AGAIN)}

    def merged(self, newer: Iterable[Outcome]) -> tuple[Outcome, ...]:
        """Its outcomes, those that `newer` has replaced, and those that it lacks behind them."""
        replaced = {each.name: each for each in newer}
        kept = tuple(replaced.pop(each.name, each) for each in self.outcomes)
        return (*kept, *replaced.values())

    def names(self) -> set[str]:
        """Of the cases that it has an outcome of."""
        return {each.name for each in self.outcomes}


def path_of(kind: str, dtype: str) -> Path:
    """Where a run of all of a kind's cases in a type is kept."""
    return FOLDER / f"{kind}-{dtype}.json"


def reasons(outcomes: Iterable[Outcome], verdict: Verdict) -> Counter[str]:
    """How often each reason was given for a verdict."""
    return Counter(each.reason for each in outcomes if each.verdict == verdict)
