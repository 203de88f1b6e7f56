"""The score of an answer: how near to the machine's limit, and how fast beside PyTorch."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.capstone.gate import built, expect_close, expect_right
from tvm_practice.course.capstone.tracks import Size, Track, find_track
from tvm_practice.course.expect import CheckFailed
from tvm_practice.course.fences import Fenced
from tvm_practice.course.grading import describe

TIERS = ("bronze", "silver", "gold", "platinum")
ROUNDS = 9
MOST_SPEEDUP = 2.0
"""Beyond it a speedup counts no more: a busy machine can make PyTorch slower by any factor."""

Case = dict[str, Any]


def limit_gflops(track: Track, size: Size, roof: Mapping[str, Any]) -> float:
    """GFLOP/s that no kernel of this size exceeds: by the processor, or by memory.

    Each input is read and the output written once. What fits in half of the last cache comes from
    there, where its bandwidth is known; what fits in the second caches is not limited by it.

    Args:
        roof: as `roof_here` returns it.
    """
    moved = track.compulsory_bytes(size)
    intensity = track.operations(size) / moved
    peak = float(roof["peak_gflops"])
    if moved <= roof["second_cache_bytes"]:
        return peak
    cached = roof["cache_gbps"] is not None and moved <= roof["last_cache_bytes"] / 2
    return min(peak, float(roof["cache_gbps" if cached else "memory_gbps"]) * intensity)


def points(share: float, speedup: float) -> float:
    """100 times the geometric mean of the share of the limit and the speedup, at most 1 and 2."""
    return 100 * math.sqrt(min(share, 1.0) * min(speedup, MOST_SPEEDUP))


def score(cases: Sequence[Case]) -> float:
    """The geometric mean of the points of all sizes, on one core and on all."""
    return math.exp(sum(math.log(each["points"]) for each in cases) / len(cases))


def tier(track: Track, scored: float) -> str:
    """bronze, silver, gold or platinum; none below bronze."""
    reached = [name for name, least in zip(TIERS, track.thresholds, strict=True) if scored >= least]
    return reached[-1] if reached else "none"


def roof_here() -> dict[str, Any]:
    """This machine's limits on the threads that this process has; see viz.roofline."""
    from tvm_practice import engines
    from tvm_practice.measure.environment import cache_bytes
    from tvm_practice.tvm_export.peak import peak_gflops
    from tvm_practice.viz.roofline import measure_roofline

    caches = cache_bytes()
    return {
        **measure_roofline().to_dict(),
        "peak_gflops": peak_gflops(engines.host_target(), repeats=100),
        "second_cache_bytes": caches.get("L2", 0) * engines.thread_count(),
        "last_cache_bytes": caches.get("L3", 0),
    }


def score_here(
    track: str,
    seed: int,
    cases: list[Case],
    modules: list[str],
    roof: dict[str, Any],
    rounds: int,
) -> dict[str, Any]:
    """Time what an answer returned beside PyTorch, on the threads of this process.

    Called through engines.Session, on the current engine.

    Args:
        seed: draws the inputs.
        cases: of `Track.cases`.
        modules: of `answers.modules_here`, for the size of each case.
        roof: of `roof_here`.
        rounds: samples of each side.

    Returns:
        {"cases": as they were given, with their figures, "disturbance", "message": "" or why
        a result was wrong}.
    """
    from tvm_practice.measure import Meter

    found = find_track(track)
    rng = np.random.default_rng(seed)
    meter = Meter()
    try:
        scored = [
            _scored(found, each, built(found, tuple(each["size"]), text), roof, rng, rounds)
            for each, text in zip(cases, modules, strict=True)
        ]
    except CheckFailed as wrong:
        return {"cases": [], "disturbance": None, "message": str(wrong)}
    except Exception as error:  # TVM's: it cannot be compiled
        return {"cases": [], "disturbance": None, "message": describe(error, track, "")}
    return {"cases": scored, "disturbance": meter.disturbance(), "message": ""}


def _scored(
    track: Track,
    case: Case,
    function: Callable[..., None],
    roof: Mapping[str, Any],
    rng: np.random.Generator,
    rounds: int,
) -> Case:
    from tvm_practice import engines

    size = tuple(case["size"])
    expect_right(track, size, function, rng)
    yours, theirs = side_by_side(track, size, function, rng, rounds)
    # The best of each, as the limit is the best: other programs only ever make a sample longer.
    best = min(yours)
    speedup = min(theirs) / best
    rate = track.operations(size) / best / 1e6
    limit = limit_gflops(track, size, roof)
    return {
        **case,
        "threads": engines.thread_count(),
        "milliseconds": best,
        "torch_milliseconds": min(theirs),
        "gflops": rate,
        "limit_gflops": limit,
        "share": min(rate / limit, 1.0),
        "speedup": speedup,
        "points": points(rate / limit, speedup),
    }


def side_by_side(
    track: Track,
    size: Size,
    function: Callable[..., None],
    rng: np.random.Generator,
    rounds: int,
) -> tuple[list[float], list[float]]:
    """Milliseconds of the answer and of PyTorch, taken in turns.

    Each call has other inputs, so that nothing kept from the last one helps. The results of some
    calls, which nobody knows before, are compared. Raises CheckFailed.
    """
    import torch

    from tvm_practice import engines
    from tvm_practice.measure import one_sample

    torch.set_num_threads(engines.thread_count())
    draws = zip(*(track.draw(size, rng, False) for _ in range(2)), strict=True)
    stocks = [np.concatenate([each.ravel() for each in two]) for two in draws]
    shapes = list(track.buffers(size).values())
    buffers = [Fenced(np.full(shape, np.nan, "float32")) for shape in shapes]
    *inputs, output = (each.array for each in buffers)
    tensors = [each.tensor for each in buffers]
    looks = 0

    def renew() -> None:
        """Each input is another part of its stock."""
        for values, stock in zip(inputs, stocks, strict=True):
            at = int(rng.integers(values.size + 1))
            values.ravel()[:] = stock[at : at + values.size]

    def call() -> None:
        function(*tensors)

    def look_and_renew() -> None:
        # The first call is compared, and of n calls about log(n).
        nonlocal looks
        if rng.random() * looks < 1:
            expect_close(track, size, inputs, output)
        looks += 1
        renew()
        output[...] = np.nan

    def renew_and_wake() -> None:
        renew()
        many.add_(1)  # PyTorch's threads sleep sooner than TVM's

    renew()
    many = torch.zeros(2**17)
    with torch.inference_mode():
        theirs = track.in_torch(size, [torch.from_numpy(each) for each in inputs])
        samples: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            samples[0].append(one_sample(call, before=look_and_renew))
            samples[1].append(one_sample(theirs, before=renew_and_wake))
    call()
    expect_close(track, size, inputs, output)
    return samples
