"""How current TVM makes code of an export's scheduled functions, whoever asks for it.

with compiling(target):
    executable = tvm.compile(module, target)
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tvm_practice.tvm_export.lowering.claimed_loops import claiming_iterations
from tvm_practice.tvm_export.lowering.tiles_on_stack import keeping_tiles
from tvm_practice.tvm_export.rules.gpu import compiling_kernels
from tvm_practice.tvm_export.speed_passes import SpeedPass

# In a search, candidates have fixed shares: claims even out what else the machine does.
ALONE: tuple[SpeedPass, ...] = ("claimed-loops",)


@contextmanager
def compiling(target: Any, without: Collection[SpeedPass] = ()) -> Iterator[None]:
    """Within the block, TVM compiles for a target as exports are compiled.

    Args:
        target: a tvm.target.Target.
        without: passes for speed alone that are left out; others than the compiler's do not matter.
    """
    claims = nullcontext() if "claimed-loops" in without else claiming_iterations(target)
    tiles = nullcontext() if "tiles-on-stack" in without else keeping_tiles(target)
    with compiling_kernels(target), claims, tiles:
        yield
