"""The rooflines of this machine, and where kernels stand under them.

A kernel cannot run faster than the processor multiplies and adds, nor than each level of memory
brings it data: GFLOP/s <= min(peak, bandwidth x intensity), intensity being its operations per byte
that comes from that level (Williams, Waterman and Patterson, Roofline: an insightful visual
performance model, CACM 2009; a roof for each level: Yang, Kurth and Williams, Hierarchical roofline
analysis for GPUs, 2020). Here the levels are the last cache, which cores share, and memory. The
limits are measured by kernels that TVM generates; the bytes of a kernel are those that miss the
second cache, and the last one, in the model of `viz.cache`. The model's caches are empty at first.
Kernels are timed call after call: what fits a cache as a whole is there from the second call on,
and the levels beyond that cache are no limit.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tvm_practice.tvm_export.peak import best_seconds, peak_gflops
from tvm_practice.viz.drawing import new_figure, style, to_svg
from tvm_practice.wording import number_of

_MEMORY_BYTES = 256 << 20  # at the least; four times the last cache where that is more

_ONE_LINE = 1.6  # a label's height, as a factor of GFLOP/s
_LABEL = 0.36  # and its width, as a share of the picture's

_STREAM = """@T.prim_func(s_tir=True)
def main(A: T.Buffer(({floats},), "float32"), B: T.Buffer(({floats},), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for t in T.parallel({threads}):
        for i in range({floats} // {threads} // {lanes}):
            for l in T.vectorized({lanes}):
                A[t * ({floats} // {threads}) + i * {lanes} + l] = (
                    A[t * ({floats} // {threads}) + i * {lanes} + l] * T.float32(0.5)
                    + B[t * ({floats} // {threads}) + i * {lanes} + l]
                )
"""


@dataclass(frozen=True)
class Roofline:
    """The limits of a machine.

    Attributes:
        peak_gflops: multiply-adds of float32 in registers, on all threads, 2 operations each.
        memory_gbps: 10^9 bytes per second from and to memory: a = a / 2 + b, 12 bytes per element.
        threads: that all used.
        cache_gbps: the same from the last cache, which holds the arrays then and the second caches
            do not; None where there is no such cache.
    """

    peak_gflops: float
    memory_gbps: float
    threads: int
    cache_gbps: float | None = None

    @property
    def ridge(self) -> float:
        """Operations per byte from memory beyond which memory is no longer the limit."""
        return self.peak_gflops / self.memory_gbps

    def limit(self, kernel: "Kernel") -> float:
        """GFLOP/s that a kernel can reach, called again and again."""
        limits = [self.peak_gflops]
        if kernel.stays_in is None:
            limits.append(self.memory_gbps * kernel.intensity)
        if (
            kernel.stays_in != "second cache"
            and self.cache_gbps is not None
            and kernel.cache_intensity is not None
        ):
            limits.append(self.cache_gbps * kernel.cache_intensity)
        return min(limits)

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {**asdict(self), "ridge": self.ridge}


def measure_roofline(*, repeats: int = 15) -> Roofline:
    """Measure this machine's limits on the current engine; the best of `repeats`, as limits are.

    It takes a few seconds, and memory for two arrays, together of four times the last cache.
    """
    from tvm_practice import engines
    from tvm_practice.measure.environment import cache_bytes

    target, threads = engines.host_target(), engines.thread_count()
    caches = cache_bytes()
    last, second = caches.get("L3", 0), caches.get("L2", 0) * threads
    # First: meanwhile Linux moves threads that it started on one core.
    peak = peak_gflops(target, repeats=repeats)
    cache_gbps = None
    if last >= 8 * second > 0:  # room between the two for arrays that fit one and not the other
        cache_gbps = _gbps(min(last // 2, 4 * second), threads, target, repeats)
    memory_gbps = _gbps(max(_MEMORY_BYTES, 4 * last), threads, target, repeats)
    return Roofline(peak, memory_gbps, threads, cache_gbps)


def one_threads_gbps(*, repeats: int = 5) -> float:
    """10^9 bytes per second from and to memory by one thread, the best of `repeats`."""
    from tvm_practice import engines
    from tvm_practice.measure.environment import cache_bytes

    last = cache_bytes().get("L3", 0)
    return _gbps(max(_MEMORY_BYTES, 4 * last), 1, engines.host_target(), repeats)


def _gbps(size: int, threads: int, target: Any, repeats: int) -> float:
    """The bandwidth of a = a / 2 + b, the two arrays together of `size` bytes."""
    import numpy as np

    from tvm_practice import engines

    lanes = engines.host().vector_lanes
    floats = size // 8 // (threads * lanes) * threads * lanes
    text = _STREAM.format(threads=threads, lanes=lanes, floats=floats)
    arrays = [np.ones(floats, "float32"), np.ones(floats, "float32")]
    return 12 * floats / best_seconds(text, arrays, target, repeats) / 1e9


@dataclass(frozen=True)
class Kernel:
    """A measured kernel.

    Attributes:
        gflops: measured, call after call.
        intensity: operations per byte that comes from memory, in a first call.
        cache_intensity: operations per byte that comes from beyond the second cache, the last
            cache or memory, in a first call; None where that is not known.
        stays_in: the cache that holds all of its buffers, "second cache" or "last cache", so that
            later calls find them there; None if neither does, or that is not known.
    """

    gflops: float
    intensity: float
    cache_intensity: float | None = None
    stays_in: str | None = None


def roofline_svg(
    limits: Roofline,
    kernels: Mapping[str, Kernel],
    *,
    title: str,
    intensity_label: str = "operations per byte, in a first call: ● from beyond the L2 cache, "
    "○ from memory",
    rate_label: str | None = None,
) -> str:
    """The limits as roofs, log-log, and each kernel as a point per level under them.

    Args:
        rate_label: of the vertical axis; unasked it names the threads.
    """
    with style():
        figure = new_figure(6.2, 3.9)
        axes = figure.subplots()
        at = [each.intensity for each in kernels.values()]
        at += [each.cache_intensity for each in kernels.values() if each.cache_intensity]
        low, high = min([*at, limits.ridge]) / 4, max([*at, limits.ridge]) * 4
        roofs = {"memory": limits.memory_gbps, "last cache": limits.cache_gbps}
        for name, gbps in roofs.items():
            if gbps is not None:
                _draw_roof(axes, name, gbps, limits.peak_gflops, (low, high))
        axes.text(
            high, limits.peak_gflops * 1.08, f"peak {limits.peak_gflops:.0f} GFLOP/s",
            ha="right", va="bottom",
        )  # fmt: skip
        for number, (name, kernel) in enumerate(kernels.items()):
            near = kernel.cache_intensity or kernel.intensity
            lower = sum(  # of those at the same place: their labels stand above each other
                kernel.gflops / _ONE_LINE < other.gflops < kernel.gflops
                and abs((other.cache_intensity or other.intensity) / near - 1) < 0.2
                for other in kernels.values()
            )
            colour = f"C{number}"
            if kernel.cache_intensity is not None:
                axes.plot([near, kernel.intensity], [kernel.gflops] * 2, ":", color=colour)
                axes.plot(kernel.intensity, kernel.gflops, "o", color=colour, fillstyle="none")
            axes.plot(near, kernel.gflops, "o", color=colour)
            share = kernel.gflops / limits.limit(kernel)
            on_the_right = near < high / (high / low) ** _LABEL
            under_the_roof = kernel.gflops > limits.peak_gflops / _ONE_LINE
            axes.annotate(
                f"{name}: {kernel.gflops:.3g}" + (f", {_said(share)} of its limit" * (share <= 1)),
                (near, kernel.gflops),
                xytext=(7 if on_the_right else -7, -12 if under_the_roof else 11 * lower + 4),
                textcoords="offset points",
                fontsize=8,
                ha="left" if on_the_right else "right",
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(intensity_label)
        axes.set_ylabel(rate_label or f"GFLOP/s, {number_of(limits.threads, 'thread')}")
        axes.grid(which="major")
        return to_svg(figure, title=title)


def _said(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def _draw_roof(
    axes: Any, name: str, gbps: float, peak_gflops: float, ends: tuple[float, float]
) -> None:
    low, high = ends
    ridge = peak_gflops / gbps
    if ridge > low:
        axes.plot([low, ridge, high], [low * gbps, peak_gflops, peak_gflops], color="#8a8f98")
        middle = (low * ridge) ** 0.5
        axes.text(middle * 0.92, middle * gbps, f"{name} {gbps:.0f} GB/s", ha="right", va="bottom")
