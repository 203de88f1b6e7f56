"""How far apart the uses of a cache line are: by touch, a histogram of reuse distances.

The distance is the number of other lines touched since the line's last touch: a fully associative
LRU cache of that many lines no longer holds it. A Fenwick tree over the times of last touches
counts them (Bennett, Kruskal, LRU stack processing, 1975), in code that TVM compiles.
"""

from math import prod
from typing import TYPE_CHECKING

from tvm_practice.viz.access import AccessedBuffer, AccessProgram
from tvm_practice.viz.cache import compiled_program, touched_buffers

if TYPE_CHECKING:
    import numpy as np

_LINE_BYTES = 64
BUCKETS = 26  # first touches; distance 0; 1; 2 to 3; 4 to 7; …


def reuse_histograms(program: AccessProgram, *, touches: int = 1_000_000) -> "np.ndarray":
    """Reuse distances of each `touch` of a program's source, in its order.

    Args:
        touches: how many touches of memory are followed, from the start.

    Returns:
        A row for each; first touches of a line, then those at distance 0, 1, 2 to 3, 4 to 7, …
    """
    import numpy as np
    import tvm

    sites = max(1, len(touched_buffers(program)))
    last = program.buffers[-1]
    lines = (last.address + _bytes(last)) // _LINE_BYTES + 1
    run = compiled_program(
        program,
        [
            f'last: T.Buffer(({lines},), "int32")',
            f'tree: T.Buffer(({touches + 1},), "int32")',
            f'counts: T.Buffer(({sites}, {BUCKETS}), "int64")',
        ],
        'now = T.alloc_buffer((1,), "int32", scope="local")\n'
        'at = T.alloc_buffer((1,), "int32", scope="local")\n'
        'between = T.alloc_buffer((1,), "int32", scope="local")\n'
        'bucket = T.alloc_buffer((1,), "int32", scope="local")\n'
        "now[0] = 0",
        lambda site: _touched(site, touches),
    )
    counts = tvm.runtime.tensor(np.zeros((sites, BUCKETS), "int64"))
    zeros = [tvm.runtime.tensor(np.zeros(size, "int32")) for size in (lines, touches + 1)]
    run(*zeros, counts)
    table: np.ndarray = counts.numpy()
    return table


def _bytes(buffer: AccessedBuffer) -> int:
    return prod(buffer.shape) * buffer.item_bytes


def _touched(site: int, touches: int) -> str:
    line, count = f"line{site}", f"counts[{site}, T.min(bucket[0], {BUCKETS - 1})]"
    return f"""{line} = address{site} // {_LINE_BYTES}
if now[0] < {touches}:
    now[0] = now[0] + 1
    bucket[0] = 0
    if last[{line}] > 0:
        between[0] = 0
        at[0] = now[0] - 1
        while at[0] > 0:
            between[0] = between[0] + tree[at[0]]
            at[0] = at[0] - T.bitwise_and(at[0], 0 - at[0])
        at[0] = last[{line}]
        while at[0] > 0:
            between[0] = between[0] - tree[at[0]]
            at[0] = at[0] - T.bitwise_and(at[0], 0 - at[0])
        bucket[0] = 1
        while between[0] > 0:
            bucket[0] = bucket[0] + 1
            between[0] = between[0] // 2
        at[0] = last[{line}]
        while at[0] <= {touches}:
            tree[at[0]] = tree[at[0]] - 1
            at[0] = at[0] + T.bitwise_and(at[0], 0 - at[0])
    {count} = {count} + T.int64(1)
    last[{line}] = now[0]
    at[0] = now[0]
    while at[0] <= {touches}:
        tree[at[0]] = tree[at[0]] + 1
        at[0] = at[0] + T.bitwise_and(at[0], 0 - at[0])"""


def median(histogram: "np.ndarray") -> str:
    """The middle one of a touch's distances, as a range of lines; first touches are left out."""
    import numpy as np

    again = histogram[1:]
    if not again.sum():
        return "never again" if histogram[0] else ""
    bucket = int(np.searchsorted(np.cumsum(again), again.sum() / 2))
    if bucket <= 1:
        return str(bucket)
    return f"{2 ** (bucket - 1)}-{2**bucket - 1}"
