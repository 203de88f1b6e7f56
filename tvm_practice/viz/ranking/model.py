"""The time that the model of the caches gives a schedule.

The innermost loop's cycles, as its assembly has them with all data in L1, and for every line that
the simulated caches miss the measured time of such a line. Hardware fetches lines ahead that are
read in order. A line of an access that jumps from line to line costs that of another page.
"""

from dataclasses import dataclass
from typing import Any

from tvm_practice.viz.access import AccessProgram
from tvm_practice.viz.cache import CacheLevel, simulate_touches
from tvm_practice.viz.ranking.limits import Costs
from tvm_practice.viz.ranking.loop_cost import LoopCost
from tvm_practice.viz.strides import touches


@dataclass(frozen=True)
class Estimate:
    """Seconds by the model.

    Attributes:
        computing: of the innermost loop, with its data in L1.
        waiting: for the lines that miss.
    """

    computing: float
    waiting: float

    @property
    def seconds(self) -> float:
        return self.computing + self.waiting


def estimate(
    program: AccessProgram,
    loop: LoopCost,
    costs: Costs,
    levels: tuple[CacheLevel, ...],
    *,
    multiply_adds: int,
) -> Estimate:
    """What a schedule costs.

    Args:
        program: its accesses.
        loop: of its assembly.
        costs: of this machine.
        levels: L1 and L2.
        multiply_adds: of the whole product.
    """
    computing = multiply_adds / loop.multiply_adds * loop.cycles * costs.cycle
    misses: Any = simulate_touches(program, levels)[1:]
    waiting = 0.0
    for at, touch in enumerate(touches(program)):
        item = program.buffers[touch.buffer].item_bytes
        jumps = touch.stride is None or abs(touch.stride) * item >= levels[0].line_bytes
        line = costs.far if jumps else costs.near
        # What misses both is one line from beyond L2.
        waiting += (misses[0, at] - misses[1, at]) * line[0] + misses[1, at] * line[1]
    return Estimate(computing, waiting)
