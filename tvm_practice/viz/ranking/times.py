"""Schedules of one product compiled and timed in turns; kept in a file, so that a model can be
judged again without a measurement."""

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tvm_practice.viz.cache import CacheLevel, machine_caches
from tvm_practice.viz.ranking.limits import Costs, measured_costs
from tvm_practice.viz.ranking.space import draw, scheduled

_FEWEST_ROUNDS, _MOST_ROUNDS = 4, 30
_SAMPLE_SECONDS = 0.003


@dataclass(frozen=True)
class Timed:
    """A schedule.

    Attributes:
        name: its choices.
        assembly: of its module, as LLVM writes it.
        seconds: the median of its samples, of the thread's processor time.
        halves: the medians of every other run.
    """

    name: str
    assembly: str
    seconds: float
    halves: tuple[float, float]


@dataclass(frozen=True)
class Times:
    """Of the schedules that a seed draws.

    Attributes:
        size: rows and columns of the matrices.
        seed: of the schedules and of the matrices.
        rounds: runs of each schedule, the repeats of a short one counted as one.
        machine: its processor architecture.
        levels: its L1 and L2.
        costs: measured on it.
    """

    size: int
    seed: int
    rounds: int
    machine: str
    levels: tuple[CacheLevel, ...]
    costs: Costs
    schedules: tuple[Timed, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Times":
        """Raises KeyError, TypeError or ValueError where `values` are not of `to_dict`."""
        schedules = (
            Timed(**{**each, "halves": tuple(each["halves"])}) for each in values["schedules"]
        )
        levels = (CacheLevel(**each) for each in values["levels"])
        return cls(
            **{
                **values,
                "levels": tuple(levels),
                "costs": Costs.from_dict(values["costs"]),
                "schedules": tuple(schedules),
            }
        )


def measured_times(
    count: int,
    size: int,
    seed: int,
    *,
    seconds: float,
    tell: Callable[[str], None] = lambda said: None,
) -> Times:
    """Draw schedules, compile each, time all in turns.

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
    a, b = np.random.default_rng(seed).standard_normal((2, size, size), dtype="float32")
    arguments = [tvm.runtime.tensor(each) for each in (a, b, np.zeros_like(a))]
    expected = a @ b
    kernels, assemblies = {}, []
    for number, choice in enumerate(draw(count, seed), start=1):
        library = tvm.compile(scheduled(choice, size).mod, target=engines.host_target())
        kernel = library["main"]
        kernel(*arguments)
        if not np.allclose(arguments[2].numpy(), expected, rtol=1e-3, atol=1e-2):
            raise ValueError(f"{choice} computes another product")
        kernels[str(choice)] = kernel
        assemblies.append(library.mod.inspect_source("asm"))
        if number % 10 == 0:
            tell(f"{number} of {count} compiled")
    rows = _in_turns([lambda run=run: run(*arguments) for run in kernels.values()], seconds)  # type: ignore[misc]
    schedules = tuple(
        Timed(
            name, assembly, float(np.median(row)),
            (float(np.median(row[::2])), float(np.median(row[1::2]))),
        )
        for name, assembly, row in zip(kernels, assemblies, rows, strict=True)
    )  # fmt: skip
    return Times(size, seed, rows.shape[1], platform.machine(), levels, costs, schedules)


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
