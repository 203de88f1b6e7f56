"""What a cycle, a multiply-add and a line from beyond a cache cost on this machine, measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.peak import best_seconds
from tvm_practice.viz.cache import machine_caches
from tvm_practice.viz.ranking.pipeline import LATENCY, Cycles

_STEPS = 100_000
_FAR = 67  # lines from one to the next: another page each time

_CHAIN = """@T.prim_func(s_tir=True)
def main(X: T.Buffer((2,), "float32"), Y: T.Buffer((1,), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    total = T.alloc_buffer((1,), "float32", scope="local")
    total[0] = T.float32(0)
    for r in range({steps}):
        total[0] = total[0] * X[0] + X[1]
    Y[0] = total[0]
"""
_THROUGH_MEMORY = """@T.prim_func(s_tir=True)
def main(X: T.Buffer((2,), "float32"), I: T.Buffer((64,), "int32"), Y: T.Buffer((8,), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for r in range({steps} // 64):
        for i in range(64):
            Y[I[i]] = Y[I[i]] * X[0] + X[1]
"""
_SCATTERED = """@T.prim_func(s_tir=True)
def main(X: T.Buffer((2,), "float32"), Y: T.Buffer((256, 20), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for r in range({steps} // 256):
        for i in range(256):
            Y[i, 0] = Y[i, 0] * X[0] + X[1]
"""
_SUMS = """@T.prim_func(s_tir=True)
def main(X: T.Buffer((2,), "float32"), Y: T.Buffer((12, {lanes}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    sums = T.alloc_buffer((12, {lanes}), "float32", scope="local")
    for i in T.unroll(12):
        for l in T.vectorized({lanes}):
            sums[i, l] = T.float32(0)
    for r in range({steps}):
        for i in T.unroll(12):
            for l in T.vectorized({lanes}):
                sums[i, l] = sums[i, l] * X[0] + X[1]
    for i in T.unroll(12):
        for l in T.vectorized({lanes}):
            Y[i, l] = sums[i, l]
"""
_READS = """@T.prim_func(s_tir=True)
def main(X: T.Buffer((192, {lanes}), "float32"), Y: T.Buffer((192, {lanes}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    sums = T.alloc_buffer((12, {lanes}), "float32", scope="local")
    for i in T.unroll(12):
        for l in T.vectorized({lanes}):
            sums[i, l] = T.float32(0)
    for r in range({steps} // 192):
        for o in range(16):
            for i in T.unroll(12):
                for l in T.vectorized({lanes}):
                    sums[i, l] = sums[i, l] + X[o * 12 + i, l]
    for i in T.unroll(12):
        for l in T.vectorized({lanes}):
            Y[i, l] = sums[i, l]
"""
_COPIES = """@T.prim_func(s_tir=True)
def main(X: T.Buffer((192, {lanes}), "float32"), Y: T.Buffer((192, {lanes}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for r in range({steps} // 192):
        for i in range(192):
            for l in T.vectorized({lanes}):
                Y[i, l] = X[i, l] * X[0, 0]
"""
_LINES = """@T.prim_func(s_tir=True)
def main(X: T.Buffer(({lines}, 16), "float32"), Y: T.Buffer((4, 16), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    sums = T.alloc_buffer((4, 16), "float32", scope="local")
    for u in T.unroll(4):
        for l in T.vectorized(16):
            sums[u, l] = T.float32(0)
    for r in range({rounds}):
        for i in range({lines} // 4):
            for u in T.unroll(4):
                for l in T.vectorized(16):
                    sums[u, l] = sums[u, l] + X[
                        T.bitwise_and((i * 4 + u) * {step}, {lines} - 1), l]
    for u in T.unroll(4):
        for l in T.vectorized(16):
            Y[u, l] = sums[u, l]
"""


@dataclass(frozen=True)
class Costs:
    """Seconds, measured on one core.

    Attributes:
        cycle: a quarter of a multiply-add that waits for the one before.
        vector: a multiply-add of the widest vectors, none of which waits.
        memory: a multiply-add onto a place that the one before has just written.
        scattered: an element that is gathered or scattered, in L1.
        read: a sum of the widest vectors, one of which comes from L1.
        copied: a widest vector read from L1, multiplied and written to it.
        lanes: of the widest vectors.
        near: how much longer a line takes from beyond L1, and from beyond L2, than one in L1; lines
            are read in order.
        far: the same, each line on another page.
    """

    cycle: float
    vector: float
    memory: float
    scattered: float
    read: float
    copied: float
    lanes: int
    near: tuple[float, float]
    far: tuple[float, float]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Costs":
        """From `dataclasses.asdict`, through JSON. Raises TypeError for other names."""
        return cls(**{**values, "near": tuple(values["near"]), "far": tuple(values["far"])})

    def cycles(self) -> Cycles:
        """What the pipeline needs of it."""
        read = self.read / self.cycle
        return Cycles(
            vector=self.vector / self.cycle,
            memory=self.memory / self.cycle,
            scattered=self.scattered / self.cycle,
            read=read,
            written=max(read, self.copied / self.cycle - read),
            lanes=self.lanes,
        )

    def __str__(self) -> str:
        single = (self.cycle, self.vector, self.memory, self.scattered, self.read, self.copied)
        cycle, vector, memory, scattered, read, copied, *lines = (
            f"{1e9 * each:.2g}" for each in (*single, *self.near, *self.far)
        )
        return (
            f"In ns: cycle {cycle}; multiply-add of vectors {vector}, through memory {memory};\n"
            f"gathered element {scattered}; vector read from L1 {read}, copied {copied};\n"
            f"longer for a line from beyond L1 {lines[0]}, beyond L2 {lines[1]};\n"
            f"and on another page {lines[2]}, {lines[3]}"
        )


def measured_costs() -> Costs:
    """Measure them on the current engine, in a few seconds; the best of some runs each."""
    import numpy as np

    from tvm_practice import engines

    target, lanes = engines.host_target(), engines.host().vector_lanes
    one = np.array([0.5, 0.5], "float32")
    chain = best_seconds(_CHAIN.format(steps=_STEPS), [one, np.zeros(1, "float32")], target, 15)
    sums = best_seconds(
        _SUMS.format(steps=_STEPS // 10, lanes=lanes),
        [one, np.zeros((12, lanes), "float32")], target, 15,
    )  # fmt: skip
    places = [one, np.zeros(64, "int32"), np.zeros(8, "float32")]
    memory = best_seconds(_THROUGH_MEMORY.format(steps=_STEPS), places, target, 15) / _STEPS
    apart = [one, np.zeros((256, 20), "float32")]
    scattered = best_seconds(_SCATTERED.format(steps=_STEPS), apart, target, 15) / _STEPS / 2
    vectors = [np.ones((192, lanes), "float32") for _ in range(2)]
    reads, copies = (
        best_seconds(each.format(steps=_STEPS, lanes=lanes), vectors, target, 15)
        for each in (_READS, _COPIES)
    )
    levels, _ = machine_caches()
    held = [1 << (int(each.kilobytes * 512 / each.line_bytes).bit_length() - 1) for each in levels]
    # The cycles of the loops have what reading and adding a line takes, once it is in L1.
    in_first = _line(held[0], 1, target)
    near, far = (
        [max(0.0, _line(lines, step, target) - in_first) for lines in (held[1], 16 * held[1])]
        for step in (1, _FAR)
    )
    return Costs(
        chain / _STEPS / LATENCY,
        sums / (_STEPS // 10 * 12),
        memory,
        scattered,
        reads / (_STEPS // 192 * 192),
        copies / (_STEPS // 192 * 192),
        lanes,
        (near[0], near[1]),
        (far[0], far[1]),
    )


def _line(lines: int, step: int, target: Any) -> float:
    import numpy as np

    rounds = max(1, 40_000 // lines)
    arrays = [np.ones((lines, 16), "float32"), np.zeros((4, 16), "float32")]
    text = _LINES.format(lines=lines, step=step, rounds=rounds)
    return best_seconds(text, arrays, target, 9) / (rounds * lines)
