"""The time that the model of the caches gives a schedule.

The cycles of all loops, as its assembly has them with all data in L1, and for every line that the
simulated caches miss the measured time of such a line. Hardware fetches lines ahead that are read
in order. A line of an access that jumps from line to line costs that of another page.
"""

from dataclasses import dataclass
from typing import Any

from tvm_practice.viz.access import AccessProgram
from tvm_practice.viz.cache import CacheLevel, simulate_touches
from tvm_practice.viz.ranking.followed import followed
from tvm_practice.viz.ranking.integers import CannotRun
from tvm_practice.viz.ranking.limits import Costs
from tvm_practice.viz.ranking.loop_cost import loop_cost
from tvm_practice.viz.strides import touches


@dataclass(frozen=True)
class Estimate:
    """Seconds by the model.

    Attributes:
        innermost: of the innermost loop that multiplies most, with its data in L1, as if all
            multiply-adds were in it.
        computing: of all loops, with their data in L1; of the innermost one where the assembly
            is not of x86.
        waiting: for the lines that miss.
    """

    innermost: float
    computing: float
    waiting: float

    @property
    def seconds(self) -> float:
        return self.computing + self.waiting


def estimate(
    program: AccessProgram,
    assembly: str,
    costs: Costs,
    levels: tuple[CacheLevel, ...],
    *,
    multiply_adds: int,
) -> Estimate:
    """What a schedule costs.

    Args:
        program: its accesses.
        assembly: of its module.
        costs: of this machine.
        levels: L1 and L2.
        multiply_adds: of the whole product.

    Raises:
        ValueError: no loop of the assembly multiplies.
    """
    cycles = costs.cycles()
    loop = loop_cost(
        assembly,
        vector_cycles=cycles.vector,
        memory_cycles=cycles.memory,
        scattered_cycles=cycles.scattered,
    )
    innermost = multiply_adds / loop.multiply_adds * loop.cycles
    try:
        computing = followed(assembly, cycles).cycles
    except CannotRun:
        computing = innermost
    waiting = _waiting(program, costs, levels)
    return Estimate(innermost * costs.cycle, computing * costs.cycle, waiting)


def _waiting(program: AccessProgram, costs: Costs, levels: tuple[CacheLevel, ...]) -> float:
    misses: Any = simulate_touches(program, levels)[1:]
    waiting = 0.0
    for at, touch in enumerate(touches(program)):
        item = program.buffers[touch.buffer].item_bytes
        jumps = touch.stride is None or abs(touch.stride) * item >= levels[0].line_bytes
        line = costs.far if jumps else costs.near
        # What misses both is one line from beyond L2.
        waiting += (misses[0, at] - misses[1, at]) * line[0] + misses[1, at] * line[1]
    return waiting
