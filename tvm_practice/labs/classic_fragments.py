"""Tensor cores in classic TVM: a matmul tiled for one warp per thread block, and its instructions.

A *fragment* is a tile of 16 x 16 elements that a warp holds in registers. As in labs/gpu/wmma.py,
the tiling is given, and tensorize is left to the exercise.
"""

from typing import Any

FRAGMENT = 16  # rows and columns of a tile that tensor cores multiply at once
_SHAPE = (FRAGMENT,) * 3
_TILE = (FRAGMENT, FRAGMENT)
_STRIDES = [FRAGMENT, 1]  # each buffer holds one tile
_WARP = 32


def fragment_stages(schedule: Any, tensors: list[Any]) -> dict[str, tuple[Any, Any]]:
    """Tile a matmul for tensor cores: a thread block is a warp, and computes 16 x 16 of C.

    The warp copies tiles of A and B to shared memory, loads them to fragments, multiplies these,
    and stores the sum to shared memory, from where it copies it to C.

    Args:
        schedule: a tvm.te.Schedule of C, changed in place.
        tensors: [A, B, C], float16, float16 and float32; 16 divides all sizes.

    Returns:
        For each instruction ("load_a", "load_b", "product", "store") the tensor of its stage, and
        the axis to tensorize: the instruction replaces the loops from this one inwards.
    """
    A, B, C = tensors
    a_shared = schedule.cache_read(A, "shared", [C])
    b_shared = schedule.cache_read(B, "shared", [C])
    a_fragment = schedule.cache_read(a_shared, "wmma.matrix_a", [C])
    b_fragment = schedule.cache_read(b_shared, "wmma.matrix_b", [C])
    product = schedule.cache_write(C, "wmma.accumulator")
    store = schedule.cache_read(product, "shared", [C])

    block = _tiled_by_warps(schedule, C)
    schedule[store].compute_at(schedule[C], block)
    schedule[product].compute_at(schedule[C], block)
    i, j = schedule[product].op.axis
    k_outer, k_inner = schedule[product].split(schedule[product].op.reduce_axis[0], factor=FRAGMENT)
    schedule[product].reorder(k_outer, i, j, k_inner)
    for copy, fragment in ((a_shared, a_fragment), (b_shared, b_fragment)):
        schedule[fragment].compute_at(schedule[product], k_outer)
        schedule[copy].compute_at(schedule[product], k_outer)
        _by_all_threads(schedule[copy], schedule[copy].fuse(*schedule[copy].op.axis))
    loads = {
        name: (each, schedule[each].op.axis[0])
        for name, each in (("load_a", a_fragment), ("load_b", b_fragment))
    }
    return {**loads, "product": (product, i), "store": (store, schedule[store].op.axis[0])}


def _tiled_by_warps(schedule: Any, C: Any) -> Any:
    """Give a thread block 16 x 16 of C, which its threads copy; returns the axis around it."""
    from tvm import te

    stage = schedule[C]
    block_i, i = stage.split(stage.op.axis[0], factor=FRAGMENT)
    block_j, j = stage.split(stage.op.axis[1], factor=FRAGMENT)
    stage.reorder(block_i, block_j, i, j)
    stage.bind(block_i, te.thread_axis("blockIdx.y"))
    stage.bind(block_j, te.thread_axis("blockIdx.x"))
    _by_all_threads(stage, stage.fuse(i, j))
    return block_j


def _by_all_threads(stage: Any, tile: Any) -> None:
    """Share the elements of a tile among the threads of a warp."""
    from tvm import te

    _, lane = stage.split(tile, factor=_WARP)
    stage.bind(lane, te.thread_axis("threadIdx.x"))


def wmma_instructions() -> dict[str, Any]:
    """A te.TensorIntrin for each stage of `fragment_stages`, by its name there.

    "product" sets the accumulators to zero before the first step of k.
    """
    from tvm import te
    from tvm.topi.cuda import tensor_intrin

    layout = (_STRIDES, _STRIDES, _SHAPE)
    a, b = (te.placeholder(_TILE, "float16", name=name) for name in "ab")
    k = te.reduce_axis((0, FRAGMENT), name="k")
    product = te.compute(
        _TILE,
        lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k),
        name="product",
    )
    load = ("row_major", _TILE, _TILE, "float16")
    return {
        "load_a": tensor_intrin.intrin_wmma_load_matrix_A(*layout, *load),
        "load_b": tensor_intrin.intrin_wmma_load_matrix_W(*layout, *load),
        "product": tensor_intrin.intrin_wmma_gemm(
            a, b, product, _STRIDES, _STRIDES, _STRIDES, _SHAPE
        ),
        "store": tensor_intrin.intrin_wmma_store_matrix(*layout, "float32", _TILE, _TILE),
    }
