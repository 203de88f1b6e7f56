"""Measuring with the functions of phase 3, as far as they are written."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import cell, say
from tvm_practice.measure import MIN_ROUNDS

if TYPE_CHECKING:
    from tvm_practice.course.tours.products import Product

Interval: TypeAlias = tuple[float, float, float]  # a ratio, and its 95% interval's ends
Run: TypeAlias = Callable[[], Any]


class Analysis:
    """Measures with the steps; what is to do gives None.

    Attributes:
        steps: phase 3's.
        first_calls: its worked example.
        seconds: how long each way of measuring one thing takes, about.
        rounds: of a comparison, at most; never fewer than an interval needs.
    """

    def __init__(self, steps: Steps, quick: bool):
        self.steps = steps
        self.first_calls: Callable[[Run, int], list[float]] = steps.chapter.first_calls
        self.seconds = 1.0 if quick else 1.5
        self.rounds = MIN_ROUNDS if quick else 9

    def step(
        self, name: str, *arguments: Any, read: Callable[[Any], Any] | None = None, **options: Any
    ) -> Any:
        """Call a step and `read` what it returns; what goes wrong in either is said once."""
        if name in self.steps.failed:
            return None
        value = self.steps.attempt(name, *arguments, **options)
        if value is None or read is None:
            return value
        try:
            return read(value)
        except (TypeError, ValueError):
            self.steps.failed[name] = f"returned {value!r}"[:80]
            say(f"fails  {name}: {self.steps.failed[name]}")
            return None

    def duration(self, run: Run) -> float:
        """Seconds that a call takes, roughly: of something quick the better of two calls."""
        taken = self.first_calls(run, 1)
        if taken[0] < 100:
            taken += self.first_calls(run, 1)
        return max(min(taken) / 1e3, 1e-7)

    def variants(self, size: int, **options: Any) -> dict[str, Any]:
        """The modules of compile_variants by name; none while it is to do."""
        return self.step("compile_variants", size, read=dict, **options) or {}

    def median(self, module: Any, product: "Product", seconds: float) -> float | None:
        """Milliseconds of a module's "main", by time_function.

        Args:
            seconds: that a call takes.
        """
        from tvm_practice.measure import quiesce

        number = calls_per_sample(seconds)
        repeats = _between(2, int(self.seconds / (number * seconds)), 20)
        quiesce()
        milliseconds: float | None = self.step(
            "time_function", module, product.arguments, number=number, repeats=repeats, read=median
        )
        return milliseconds

    def latency(self, run: Run, seconds: float) -> float | None:
        """Milliseconds of anything, by sample_latency.

        Args:
            seconds: that a call takes.
        """
        from tvm_practice.measure import quiesce

        repeats = _between(3, int(self.seconds / seconds), 100)
        quiesce()
        milliseconds: float | None = self.step(
            "sample_latency", run, warmup=repeats // 2, repeats=repeats, read=median
        )
        return milliseconds

    def ratio(self, first: Run, second: Run, *seconds: float) -> Interval | None:
        """Time of `first` over that of `second`, by compare_interleaved; both take `seconds`.

        What takes less than a millisecond is called in a loop, the same number of times each.
        What takes more than a second is left out: None.
        """
        shorter, longer = sorted(seconds)
        if longer > 1:
            return None
        number = calls_per_sample(shorter)
        rounds = _between(MIN_ROUNDS, int(self.seconds / (2 * number * longer)), self.rounds)
        ratio: Interval | None = self.step(
            "compare_interleaved",
            _repeated(first, number),
            _repeated(second, number),
            rounds=rounds,
            read=_interval,
        )
        return ratio

    def rate(self, size: int, milliseconds: float | None) -> float | None:
        """GFLOP/s of a product of that size, by gflop_per_second."""
        # Called without a time too, so that it is said if it is to do.
        rate: float | None = self.step(
            "gflop_per_second", size, size, size, milliseconds or 1.0, read=float
        )
        return None if milliseconds is None else rate


def median(samples: Any) -> float:
    """The median of samples in any form that numpy takes."""
    import numpy as np

    return float(np.median(samples))


def calls_per_sample(seconds: float) -> int:
    """How often to call what takes so long, for a sample of about a millisecond."""
    return _between(1, int(1e-3 / seconds), 100)


def ratio_cells(ratio: Interval | None) -> tuple[str, str, str]:
    """For a table: a ratio, its interval, and what it says of the first of the two."""
    from tvm_practice.measure import Ratio

    if ratio is None:
        return "-", "", ""
    value, low, high = ratio
    verdict = Ratio(value, low, high).verdict.replace("no significant difference", "undecided")
    return cell(value), f"{cell(low)} to {cell(high)}", verdict


def _interval(answer: Any) -> Interval:
    value, low, high = (float(each) for each in answer)
    return value, low, high


def _repeated(run: Run, number: int) -> Callable[[], None]:
    def runs() -> None:
        for _ in range(number):
            run()

    return runs


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))


def coverage(rounds: int, draws: int) -> float:
    """How often a 95% interval of so few rounds holds the median that it is an interval of.

    Ratios are drawn whose median is 1; they are the same in every run.

    Args:
        rounds: ratios per interval.
        draws: intervals.

    Returns:
        The share of them that holds 1.
    """
    import numpy as np

    from tvm_practice.measure import paired_ratio

    times = np.exp(np.random.default_rng(0).standard_normal((draws, rounds)))
    drawn = [paired_ratio(each, np.ones(rounds)) for each in times]
    return sum(each.low <= 1 <= each.high for each in drawn) / draws
