"""The roofline of this machine, and where kernels stand under it.

A kernel cannot run faster than the processor multiplies and adds, nor than memory brings it data:
GFLOP/s <= min(peak, bandwidth x intensity), intensity being its operations per byte moved
(Williams, Waterman and Patterson, Roofline: an insightful visual performance model, CACM 2009).
Both limits are measured by kernels that TVM generates; the bytes of a kernel are those that miss
the second cache in the model of `viz.cache`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tvm_practice.tvm_export.peak import best_seconds, peak_gflops
from tvm_practice.viz.drawing import new_figure, style, to_svg

_MEMORY_FLOATS = 32 << 20  # two arrays of 128 MiB: more than most last-level caches hold

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
        memory_gbps: 10^9 bytes a second from and to memory: a = a / 2 + b, 12 bytes an element.
        threads: that both used.
    """

    peak_gflops: float
    memory_gbps: float
    threads: int

    @property
    def ridge(self) -> float:
        """Operations per byte from which on memory is no longer the limit."""
        return self.peak_gflops / self.memory_gbps

    def limit(self, intensity: float) -> float:
        """GFLOP/s that a kernel of that many operations per byte can reach."""
        return min(self.peak_gflops, self.memory_gbps * intensity)

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {**asdict(self), "ridge": self.ridge}


def measure_roofline(*, repeats: int = 15) -> Roofline:
    """Measure this machine's limits on the current engine; the best of `repeats`, as limits are.

    It takes about a second and 256 MiB.
    """
    import numpy as np

    from tvm_practice import engines

    lanes, threads = engines.host().vector_lanes, engines.thread_count()
    floats = _MEMORY_FLOATS // (threads * lanes) * threads * lanes
    text = _STREAM.format(threads=threads, lanes=lanes, floats=floats)
    arrays = [np.ones(floats, "float32"), np.ones(floats, "float32")]
    target = engines.host_target()
    seconds = best_seconds(text, arrays, target, repeats)
    return Roofline(peak_gflops(target, repeats=repeats), 12 * floats / seconds / 1e9, threads)


@dataclass(frozen=True)
class Kernel:
    """A measured kernel.

    Attributes:
        gflops: measured.
        intensity: operations per byte that it moves.
    """

    gflops: float
    intensity: float


def roofline_svg(
    limits: Roofline,
    kernels: Mapping[str, Kernel],
    *,
    title: str,
    intensity_label: str = "operations per byte from beyond the second cache",
    rate_label: str | None = None,
) -> str:
    """The limits as a roof, log-log, and each kernel as a point under it.

    Args:
        rate_label: of the vertical axis; unasked it names the threads.
    """
    with style():
        figure = new_figure(6.2, 3.9)
        axes = figure.subplots()
        at = [each.intensity for each in kernels.values()]
        low, high = min([*at, limits.ridge]) / 4, max([*at, limits.ridge]) * 4
        axes.plot(
            [low, limits.ridge, high],
            [limits.limit(low), limits.peak_gflops, limits.peak_gflops],
            color="#8a8f98",
            linewidth=2,
        )
        axes.text(
            high, limits.peak_gflops * 1.08, f"peak {limits.peak_gflops:.0f} GFLOP/s",
            ha="right", va="bottom",
        )  # fmt: skip
        middle = (low * limits.ridge) ** 0.5
        axes.text(
            middle * 0.92, limits.limit(middle), f"memory {limits.memory_gbps:.0f} GB/s",
            ha="right", va="bottom",
        )  # fmt: skip
        for number, (name, kernel) in enumerate(kernels.items()):
            roof = limits.limit(kernel.intensity)
            axes.plot([kernel.intensity] * 2, [kernel.gflops, roof], ":", color=f"C{number}")
            axes.plot(kernel.intensity, kernel.gflops, "o", color=f"C{number}")
            share = kernel.gflops / roof
            on_the_left = kernel.intensity < (low * high) ** 0.5
            lower = sum(  # of those at the same place: their labels stand above each other
                other.gflops < kernel.gflops and abs(other.intensity / kernel.intensity - 1) < 0.2
                for other in kernels.values()
            )
            axes.annotate(
                f"{name}: {kernel.gflops:.3g}" + (f", {share:.0%} of its limit" * (share <= 1)),
                (kernel.intensity, kernel.gflops),
                xytext=(7 if on_the_left else -7, 11 * lower - 4),
                textcoords="offset points",
                fontsize=8,
                ha="left" if on_the_left else "right",
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(intensity_label)
        axes.set_ylabel(rate_label or f"GFLOP/s, {limits.threads} threads")
        axes.grid(which="major")
        return to_svg(figure, title=title)
