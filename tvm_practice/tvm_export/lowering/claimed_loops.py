"""Parallel loops whose iterations go to the threads as they come free.

TVM gives each thread a fixed share of a parallel loop. All threads then wait for the slowest one:
for the one that woke up last, or whose processor something else uses. Here the iterations are cut
into some pieces per thread. A thread claims the pieces of its own share one after the other, and
then those that are left of the others' shares:

    for i in parallel(128):                taken[0:32] = 0
        body                               left[0] = 32
                                           for share in parallel(64):
                                     →         if left[0] > 0:
                                                   for piece in its own, then all others:
                                                       if claimed(taken[piece]):
                                                           for i in 4 iterations:
                                                               body

Which thread computes an iteration does not change what it computes. A thread begins with its own
share so that it finds in its caches what it wrote there in the loop before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tvm_practice.tvm_export.lowering.stage import changing_lowered
from tvm_practice.tvm_export.rules.cpu.loops import constant, cpu_of

# Pieces per thread: the last one to end is late by at most one of them.
_PIECES = 16
# Below so many iterations in all there is nothing to even out.
_FEWEST = 8
# More threads than that have no share of their own. Where there are fewer, a thread has several:
# it takes the first, and finds that nothing is left of the others.
_SHARES = 64
_CLAIMED, _LEFT = "tvm_practice_claimed", "tvm_practice_left"
# LLVM inlines both. The exchange is tried only where the byte is still 0: it takes the line away
# from the other threads. Nothing but the claims is ordered by them: TVM's pool orders the rest.
_IN_LLVM = f"""
define i32 @{_CLAIMED}(ptr %taken, ptr %left) {{
  %seen = load atomic i8, ptr %taken monotonic, align 1
  %free = icmp eq i8 %seen, 0
  br i1 %free, label %try, label %no
try:
  %before = atomicrmw xchg ptr %taken, i8 1 monotonic
  %first = icmp eq i8 %before, 0
  br i1 %first, label %yes, label %no
yes:
  %count = atomicrmw sub ptr %left, i32 1 monotonic
  ret i32 1
no:
  ret i32 0
}}
define i32 @{_LEFT}(ptr %left) {{
  %count = load atomic i32, ptr %left monotonic, align 4
  ret i32 %count
}}
"""


@contextmanager
def claiming_iterations(target: Any) -> Iterator[None]:
    """Within the block, TVM compiles parallel loops for a processor so, in LLVM's code.

    For a target of another kind nothing changes.
    """
    if str(target.kind.name) != "llvm":
        yield
        return
    threads = cpu_of(target).threads
    with changing_lowered(partial(with_claimed_loops, threads=threads), "ClaimedLoops"):
        yield


def with_claimed_loops(func: Any, threads: int) -> Any:
    """A lowered function, of no blocks any more, whose parallel loops are as above.

    Loops of open extents, and of few iterations, stay as they are.

    Args:
        func: the tirx.PrimFunc; it is left as it was.
        threads: that are likely to run it.
    """
    import tvm_ffi
    from tvm import tirx

    changed = (tirx.For, partial(_claimed, most=_PIECES * threads))
    return func.with_body(tvm_ffi.structural_map(func.body, changed, order="post"))


def _claimed(loop: Any, most: int) -> Any:
    """A loop in at most so many pieces; the loop itself if it is not to be changed."""
    import tvm
    from tvm import tirx

    extent = constant(loop.extent)
    if loop.kind != tirx.ForKind.PARALLEL or extent is None or extent < _FEWEST:
        return loop
    length = -(-extent // most)
    pieces = -(-extent // length)
    taken = tirx.decl_buffer([pieces], "uint8", name="taken")
    left = tirx.decl_buffer([1], "int32", name="left")
    each, share, step, piece = (
        tirx.Var(name, "int32") for name in ("each", "share", "step", "piece")
    )

    # What a thread does with a piece that it has claimed.
    first = tirx.Cast(str(loop.loop_var.ty.dtype), piece) * length
    count = length if extent % length == 0 else tirx.min(length, extent - first)
    work = tirx.For(loop.loop_var, first, count, tirx.ForKind.SERIAL, loop.body)

    # All pieces, from the first of its share on, around to the one before it.
    place = tirx.truncdiv(share * pieces, _SHARES) + step
    place = tirx.Select(place >= pieces, place - pieces, place)
    addresses = tirx.address_of(taken[piece]), tirx.address_of(left[0])
    is_ours = tirx.call_extern("int32", _CLAIMED, *addresses) != 0
    claims = tirx.SeqStmt([tirx.Bind(piece, place), tirx.IfThenElse(is_ours, work, None)])
    tour = tirx.For(step, 0, pieces, tirx.ForKind.SERIAL, claims)
    some_left = tirx.call_extern("int32", _LEFT, addresses[1]) > 0
    tours = tirx.IfThenElse(some_left, tour, None)

    none = tirx.BufferStore(taken, tirx.const(0, "uint8"), [each])
    statements = [
        tirx.AllocBuffer(taken),
        tirx.AllocBuffer(left),
        tirx.For(each, 0, pieces, tirx.ForKind.SERIAL, none),
        tirx.BufferStore(left, tirx.const(pieces, "int32"), [0]),
        tirx.For(share, 0, _SHARES, tirx.ForKind.PARALLEL, tours),
    ]
    imported = tvm.ir.StringImm(_IN_LLVM)
    return tirx.AttrStmt(tirx.const(0), "pragma_import_llvm", imported, tirx.SeqStmt(statements))
