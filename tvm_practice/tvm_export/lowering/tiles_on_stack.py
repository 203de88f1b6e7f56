"""Arrays as large as the vector registers on the stack, and so in registers.

TVM puts an array of less than 1024 bytes on the stack. LLVM keeps it in registers if all indices
are known, as in a tile whose loops are unrolled. A larger array comes from TVM's workspace: a call
allocates it and another frees it, and between them LLVM writes every element to memory. The
registers of AVX-512 hold 2048 bytes, so that of a tile of 4 rows by 4 vectors on, sums would go
through memory once more before what is fused with them could be computed.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tvm_practice.tvm_export.lowering.stage import changing_lowered
from tvm_practice.tvm_export.rules.cpu.loops import constant, cpu_of

# TVM's own limit, kMaxStackAlloca.
_STACK = 1024
# TVM lowers no allocation that is annotated so.
_KEPT = "disable_lower_builtin"


@contextmanager
def keeping_tiles(target: Any) -> Iterator[None]:
    """Within the block, what TVM compiles for a processor keeps arrays so.

    For a target of another kind, or of fewer registers, nothing changes.
    """
    if (most := most_bytes(target)) < _STACK:
        yield
        return
    with changing_lowered(partial(with_tiles_on_stack, most=most), "TilesOnStack"):
        yield


def most_bytes(target: Any) -> int:
    """Of all vector registers of a target's processor; 0 if it is none."""
    if str(target.kind.name) != "llvm":
        return 0
    cpu = cpu_of(target)
    return cpu.registers * cpu.vector_bits // 8


def with_tiles_on_stack(func: Any, most: int) -> Any:
    """A lowered function, of no blocks any more, with arrays of so many bytes on the stack.

    Args:
        func: the tirx.PrimFunc; it is left as it was.
        most: bytes of an array.
    """
    import tvm_ffi
    from tvm import tirx

    changed = (tirx.AllocBuffer, partial(_on_stack, most=most))
    return func.with_body(tvm_ffi.structural_map(func.body, changed, order="post"))


def _on_stack(allocation: Any, most: int) -> Any:
    import tvm
    from tvm import tirx

    buffer = allocation.buffer
    extents = [constant(each) for each in buffer.shape]
    kind = tvm.DataType(str(buffer.dtype))
    if None in extents or str(buffer.scope()) != "global":
        return allocation
    size = math.prod(each or 0 for each in extents) * kind.bits * kind.lanes // 8
    if not _STACK <= size <= most:
        return allocation
    return tirx.AllocBuffer(buffer, {**allocation.annotations, _KEPT: tirx.IntImm("bool", True)})
