"""Schedules of one product, estimated and measured: how alike the two rankings are."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tvm_practice.viz.access import access_program
from tvm_practice.viz.ranking.model import Estimate, estimate
from tvm_practice.viz.ranking.space import draw, scheduled
from tvm_practice.viz.ranking.times import Times

_RESAMPLES = 2000


@dataclass(frozen=True)
class Ranked:
    """A schedule.

    Attributes:
        name: its choices.
        estimate: of the model.
        measured: the median of its samples, in seconds of the thread's processor time.
        halves: the medians of every other run.
    """

    name: str
    estimate: Estimate
    measured: float
    halves: tuple[float, float]

    @property
    def estimated(self) -> float:
        return self.estimate.seconds


@dataclass(frozen=True)
class Tau:
    """Kendall's tau with a 95% interval of the bootstrap over the schedules."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Study:
    """Of one product.

    Attributes:
        times: what was measured.
        tau: of the model's estimate and the median time.
        innermost: of the innermost loop's cycles alone.
        computing: of the cycles of all loops alone.
        misses_alone: of the time for misses alone.
        noise: of the medians of every other round: no estimate can do better.
    """

    times: Times
    schedules: tuple[Ranked, ...]
    tau: Tau
    innermost: Tau
    computing: Tau
    misses_alone: Tau
    noise: Tau

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)


def ranked(times: Times, *, tell: Callable[[str], None] = lambda said: None) -> Study:
    """Estimate schedules that were timed.

    Args:
        times: as `measured_times` returns them.
        tell: is told what is done.

    Raises:
        ValueError: the seed draws other schedules than those that were timed.
    """
    choices = draw(len(times.schedules), times.seed)
    if [str(each) for each in choices] != [each.name for each in times.schedules]:
        raise ValueError(f"seed {times.seed} draws other schedules than those that were timed")
    schedules = []
    for number, (choice, timed) in enumerate(zip(choices, times.schedules, strict=True), start=1):
        program = access_program(scheduled(choice, times.size).mod)
        found = estimate(
            program, timed.assembly, times.costs, times.levels, multiply_adds=times.size**3
        )
        schedules.append(Ranked(timed.name, found, timed.seconds, timed.halves))
        if number % 10 == 0:
            tell(f"{number} of {len(choices)} estimated")
    measured = [each.measured for each in schedules]
    return Study(
        times, tuple(schedules),
        tau([each.estimated for each in schedules], measured),
        tau([each.estimate.innermost for each in schedules], measured),
        tau([each.estimate.computing for each in schedules], measured),
        tau([each.estimate.waiting for each in schedules], measured),
        tau(*([each.halves[half] for each in schedules] for half in (0, 1))),
    )  # fmt: skip


def tau(first: Sequence[float], second: Sequence[float]) -> Tau:
    """Kendall's tau of two rankings of the same things."""
    import numpy as np
    from scipy.stats import kendalltau

    x, y = np.array(first), np.array(second)
    source = np.random.default_rng(0)
    drawn = source.integers(0, x.size, (_RESAMPLES, x.size))
    values = [kendalltau(x[each], y[each]).statistic for each in drawn]
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return Tau(float(kendalltau(x, y).statistic), float(low), float(high))
