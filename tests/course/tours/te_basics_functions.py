"""Run on an engine: phase 1's tour of a softmax whose reductions share an axis."""

from pathlib import Path
from typing import Any

from tvm_practice.course.steps import Steps


def softmax_of_one_axis(rows: int, columns: int) -> list[Any]:
    """The reference answer, but for its second reduce axis."""
    from tvm import te

    X = te.placeholder((rows, columns), dtype="float32", name="X")
    k = te.reduce_axis((0, columns), name="k")
    row_max = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="row_max")
    exponent = te.compute(X.shape, lambda i, j: te.exp(X[i, j] - row_max[i]), name="exponent")
    row_sum = te.compute((rows,), lambda i: te.sum(exponent[i, k], axis=k), name="row_sum")
    Y = te.compute(X.shape, lambda i, j: exponent[i, j] / row_sum[i], name="Y")
    return [X, Y]


def lane_with_one_axis(folder: str) -> dict[str, Any]:
    """The lane's figures, and the functions that it calls wrong."""
    import solutions.te_basics
    from tvm_practice.course.tours.te_basics import lane

    solutions.te_basics.softmax = softmax_of_one_axis
    steps = Steps("te_basics", "solutions", folder=Path(folder))
    return {"shown": lane(steps, quick=True), "failed": steps.failed}
