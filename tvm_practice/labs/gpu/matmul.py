"""The matmul of which lab 1 makes kernels."""

from typing import Any


def declare(m: int, n: int, k: int, dtype: str = "float32", *, name: str = "C") -> tuple[Any, Any]:
    """A schedule of C[i, j] = sum over k of A[i, k] * B[k, j], and its block.

    Args:
        dtype: of A (m, k) and B (k, n). C (m, n) is float32, and the products are.
        name: of C and its block.

    Returns:
        The tvm.s_tir.Schedule with nothing done yet, and the block of C.
    """
    import tvm
    from tvm import te

    A = te.placeholder((m, k), dtype, name="A")
    B = te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r),
        name=name,
    )
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock(name)
