"""Tensor cores by CUDA's `wmma`: a matmul tiled for them, and the five intrinsics of TVM for it."""

import ast
import types
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FRAGMENT = 16  # rows and columns of a tile that tensor cores multiply at once
_PREFIX = "tvm_practice_"


class WarpTiles(NamedTuple):
    """The blocks and the loop that `warp_tiles` returns.

    Attributes:
        product: the block of one product of 16 x 16 x 16.
        load_a: the block that copies A to fragments; its last two loops are rows and columns.
        load_b: the same for B.
        store: the block that copies the sum to C, with the same last loops.
        k_outer: the loop in which A and B are to be staged.
        warps: warps per thread block, on threadIdx.y; threadIdx.x is for the 32 threads of a warp.
    """

    product: Any
    load_a: Any
    load_b: Any
    store: Any
    k_outer: Any
    warps: int


def warp_tiles(
    schedule: Any,
    block: Any,
    *,
    warps: tuple[int, int] = (4, 2),
    tiles: tuple[int, int] = (2, 4),
    step: int = 32,
) -> WarpTiles:
    """Worked: tile a matmul for tensor cores; the threads of a warp feed them together.

    A *fragment* is a matrix of 16 x 16 that is spread over the registers of a warp. `blockize`
    makes the loops of a product of fragments a block around the block of the multiply-add;
    tensorize will replace these loops. A thread block has warps[0] x warps[1] warps, each with
    tiles[0] x tiles[1] accumulators: fragments of C.

    Args:
        block: the matmul block, its loops as declared; all sizes divide.
        step: columns of A that are staged at once, in one step of k_outer; a multiple of 16.
    """
    i, j, k = schedule.get_loops(block)
    (i, i_in), (j, j_in), (k, k_in) = (schedule.split(loop, [None, FRAGMENT]) for loop in (i, j, k))
    schedule.reorder(i, j, k, i_in, j_in, k_in)
    product = schedule.blockize(i_in)
    block_i, warp_i, i = schedule.split(i, [None, warps[0], tiles[0]])
    block_j, warp_j, j = schedule.split(j, [None, warps[1], tiles[1]])
    k_outer, k_inner = schedule.split(k, [None, step // FRAGMENT])
    schedule.reorder(block_i, block_j, warp_i, warp_j, k_outer, k_inner, i, j)
    warp = schedule.fuse(warp_i, warp_j)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(warp, "threadIdx.y")
    schedule.unroll(i)
    schedule.unroll(j)
    store = schedule.cache_write(product, 0, "wmma.accumulator")
    schedule.reverse_compute_at(store, warp)
    load_a = schedule.cache_read(product, 0, "wmma.matrix_a")
    load_b = schedule.cache_read(product, 1, "wmma.matrix_b")
    schedule.compute_at(load_a, k_inner)
    schedule.compute_at(load_b, k_inner)
    return WarpTiles(product, load_a, load_b, store, k_outer, warps[0] * warps[1])


@cache
def wmma_intrinsics() -> dict[str, str]:
    """Register the five intrinsics once; returns their names for `tensorize`.

    They work on fragments of 16 x 16 (x 16), float16 in and float32 out, B not transposed:

    - "load_a", "load_b": copy from a "shared" buffer to one of scope "wmma.matrix_a", "…_b";
    - "init": sets a "wmma.accumulator" to zero;
    - "compute": accumulator += a · b;
    - "store": copies an accumulator to a "global" buffer.

    `import tvm.s_tir.tensor_intrin` would parse all of TVM's intrinsics, of all processors, which
    takes tens of seconds. The functions that make these five are taken from its file instead.
    """
    import tvm

    path = Path(tvm.__file__).parent / "s_tir" / "tensor_intrin" / "cuda.py"
    tree = ast.parse(path.read_text())
    tree.body = [each for each in tree.body if not _registers(each)]
    made = types.ModuleType("tvm_practice.labs.gpu._intrinsics")
    made.__file__ = str(path)  # TVMScript reads its source again
    exec(compile(tree, str(path), "exec"), made.__dict__)
    functions = {
        "load_a": made.get_wmma_load_intrin(16, 16, 16, "float16", "shared", False, False),
        "load_b": made.get_wmma_load_intrin(16, 16, 16, "float16", "shared", True, False),
        "init": made.get_wmma_fill_intrin(16, 16, 16, "float32"),
        "compute": made.get_wmma_sync_intrin(16, 16, 16, "float16", "float32", False),
        "store": made.get_wmma_store_intrin(16, 16, 16, "float32", "global"),
    }
    for name, (described, implemented) in functions.items():
        tvm.s_tir.TensorIntrin.register(_PREFIX + name, described, implemented)
    return {name: _PREFIX + name for name in functions}


def _registers(statement: ast.stmt) -> bool:
    """Whether a statement of TVM's file registers something, an intrinsic or a function."""
    if isinstance(statement, ast.FunctionDef):
        return bool(statement.decorator_list)
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) == "TensorIntrin.register"
    )
