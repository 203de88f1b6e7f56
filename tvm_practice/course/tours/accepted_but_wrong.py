"""Two schedules that TVM accepts and that compute wrong values, one on each engine."""

from typing import Any

from tvm_practice.course.tours.printing import say

_RUNS = 5
_ROWS, _PART, _TILE = 84, 20, 3


def lane() -> dict[str, float]:
    """Run the active engine's case, and print what is wrong with it.

    Returns:
        The largest difference from numpy's product: {"parallel_sum"} on classic TVM; {"in_order",
        "parts_reordered"} on current TVM.
    """
    from tvm_practice import engines

    print("\nAccepted by TVM, and wrong:")
    return _parallel_sum() if engines.active() == engines.CLASSIC else _lost_bound()


def _parallel_sum() -> dict[str, float]:
    """Share the axis of the sum among the threads."""
    from tvm_practice.course.stack import earlier

    matmul = earlier("te_basics.matmul")
    tensors = matmul(256, 256, 4096)
    schedule = parallel_sum(tensors)
    difference = max(_difference(schedule, tensors) for _ in range(_RUNS))
    say(
        "parallel(k) of a 256x256x4096 matmul: the threads add to the same elements of C, and "
        f"additions get lost. Largest difference from numpy's values in {_RUNS} runs: "
        f"{difference:.3g}. Current TVM refuses this."
    )
    return {"parallel_sum": difference}


def parallel_sum(tensors: list[Any]) -> Any:  # a tvm.te.Schedule
    """Classic TVM: k as the outermost loop, run in parallel."""
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    (k,) = C.op.reduce_axis
    schedule[C].reorder(k, *C.op.axis)
    schedule[C].parallel(k)
    return schedule


def _lost_bound() -> dict[str, float]:
    from tvm_practice.course.stack import earlier

    matmul = earlier("te_basics.matmul")
    tensors = matmul(_ROWS, 64, 256)
    found = {
        "in_order": _difference(lost_bound(tensors, reordered=False), tensors),
        "parts_reordered": _difference(lost_bound(tensors, reordered=True), tensors),
    }
    say(
        f"{_ROWS} rows in parts of {_PART}, each in tiles of {_TILE} rows: the last tile of a part "
        f"has {_PART % _TILE} rows. reverse_compute_at drops that bound, and the write-back copies "
        "a row that belongs to the next part. In order, the next part overwrites it: largest "
        f"difference {found['in_order']:.3g}. In another order, which threads may take, the "
        f"wrong row stays: {found['parts_reordered']:.3g}."
    )
    return found


def lost_bound(tensors: list[Any], *, reordered: bool) -> Any:  # a tvm.s_tir.Schedule
    """Current TVM: split the rows twice, with factors that do not divide, and write back a tile.

    Args:
        tensors: [A, B, C] of a matmul of 84 rows.
        reordered: whether to run the parts in the order 0, 3, 1, 4, 2.
    """
    import tvm
    from tvm import te

    schedule = tvm.s_tir.Schedule(te.create_prim_func(tensors))
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    part, rows = schedule.split(i, [None, _PART])
    tile, row = schedule.split(rows, [None, _TILE])
    schedule.reorder(part, tile, k, row, j)
    schedule.reverse_compute_at(write_back, tile)
    schedule.decompose_reduction(block, k)
    if reordered:
        outer, inner = schedule.split(part, [None, 3])
        schedule.reorder(inner, outer)
    return schedule


def _difference(schedule: Any, tensors: list[Any]) -> float:
    """The largest difference between what a schedule computes and numpy's product."""
    import numpy as np

    from tvm_practice.course.tours.products import compiled, on_device

    random = np.random.default_rng(0)
    a, b, c = (
        random.random([int(extent) for extent in each.shape], dtype="float32") for each in tensors
    )
    arguments = on_device(a, b, np.zeros_like(c))
    compiled(schedule, tensors)["main"](*arguments)
    return float(np.abs(arguments[-1].numpy() - a @ b).max())
