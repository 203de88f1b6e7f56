"""Schedules of one product, estimated and measured: how alike the two rankings are."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tvm_practice.viz.access import access_program
from tvm_practice.viz.cache import machine_caches
from tvm_practice.viz.ranking.limits import Costs, measured_costs
from tvm_practice.viz.ranking.loop_cost import loop_cost
from tvm_practice.viz.ranking.model import estimate
from tvm_practice.viz.ranking.space import draw, scheduled

_FEWEST_ROUNDS, _MOST_ROUNDS = 4, 30
_RESAMPLES = 2000
_SAMPLE_SECONDS = 0.003


@dataclass(frozen=True)
class Ranked:
    """A schedule.

    Attributes:
        name: its choices.
        computing, waiting: of the model, in seconds.
        measured: the median of its samples, in seconds of the thread's processor time.
        halves: the medians of every other run.
    """

    name: str
    computing: float
    waiting: float
    measured: float
    halves: tuple[float, float]

    @property
    def estimated(self) -> float:
        return self.computing + self.waiting


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
        tau: of the model's estimate and the median time.
        misses_alone: of the time for misses alone, without the innermost loop's cycles.
        noise: of the medians of every other round: no estimate can do better.
    """

    size: int
    seed: int
    rounds: int
    costs: Costs
    schedules: tuple[Ranked, ...]
    tau: Tau
    misses_alone: Tau
    noise: Tau

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)


def ranked(
    count: int,
    size: int,
    seed: int,
    *,
    seconds: float,
    tell: Callable[[str], None] = lambda said: None,
) -> Study:
    """Draw schedules, estimate each, time all in turns.

    Args:
        count: of schedules.
        size: rows and columns of the matrices, a multiple of 64.
        seed: of the schedules and of the matrices.
        seconds: for the runs; each runs four times at the least.
        tell: is told what is done.

    Raises:
        ValueError: a schedule computes another product.
    """
    import numpy as np
    import tvm

    from tvm_practice import engines

    costs, (levels, _) = measured_costs(), machine_caches()
    tell(str(costs))
    a, b = np.random.default_rng(seed).standard_normal((2, size, size), dtype="float32")
    arguments = [tvm.runtime.tensor(each) for each in (a, b, np.zeros_like(a))]
    expected = a @ b
    kernels, estimates = {}, {}
    for number, choice in enumerate(draw(count, seed), start=1):
        schedule = scheduled(choice, size)
        library = tvm.compile(schedule.mod, target=engines.host_target())
        kernel = library["main"]
        kernel(*arguments)
        if not np.allclose(arguments[2].numpy(), expected, rtol=1e-3, atol=1e-2):
            raise ValueError(f"{choice} computes another product")
        loop = loop_cost(
            library.mod.inspect_source("asm"),
            vector_cycles=costs.vector / costs.cycle,
            memory_cycles=costs.memory / costs.cycle,
            scattered_cycles=costs.scattered / costs.cycle,
        )
        program = access_program(schedule.mod)
        kernels[str(choice)] = kernel
        estimates[str(choice)] = estimate(program, loop, costs, levels, multiply_adds=size**3)
        if number % 10 == 0:
            tell(f"{number} of {count} estimated")
    times = _in_turns([lambda run=run: run(*arguments) for run in kernels.values()], seconds)  # type: ignore[misc]
    schedules = tuple(
        Ranked(
            name, each.computing, each.waiting, float(np.median(row)),
            (float(np.median(row[::2])), float(np.median(row[1::2]))),
        )
        for (name, each), row in zip(estimates.items(), times, strict=True)
    )  # fmt: skip
    return Study(
        size, seed, times.shape[1], costs, schedules,
        tau([each.estimated for each in schedules], [each.measured for each in schedules]),
        tau([each.waiting for each in schedules], [each.measured for each in schedules]),
        tau(*([each.halves[half] for each in schedules] for half in (0, 1))),
    )  # fmt: skip


def _in_turns(runs: Sequence[Callable[[], Any]], seconds: float) -> Any:
    """A row of seconds for each: one run of each in a round, until the time is spent."""
    import numpy as np

    rounds: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(rounds) < _FEWEST_ROUNDS or (
        len(rounds) < _MOST_ROUNDS and time.perf_counter() < end
    ):
        rounds.append([_sample(run) for run in runs])
    return np.array(rounds).T


def _sample(run: Callable[[], Any]) -> float:
    """Seconds of the processor's, which others who run meanwhile do not lengthen.

    Short runs are repeated, and their mean is taken.
    """
    repeats, taken = 0, 0.0
    start = time.thread_time()
    while taken < _SAMPLE_SECONDS:
        run()
        repeats += 1
        taken = time.thread_time() - start
    return taken / repeats


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
