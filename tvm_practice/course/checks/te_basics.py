"""Phase 1's exercises and how they are graded: the declaration's shape, then its values."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import expect, expect_close, expect_unchanged, fresh_rng
from tvm_practice.course.lowering import build_expression, lower_expression
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.viz.loop_nest import format_nest, loop_nest

PHASE = Phase(
    number=1,
    module="te_basics",
    title="tensor expressions",
    minutes=15,
    lanes=(CURRENT, CLASSIC),
    question=(
        "Why does TVM separate what is computed from how? What does that make possible that "
        "PyTorch's eager mode cannot do?"
    ),
)

Declare = Callable[..., list[Any]]


def _default_loops(tensors: list[Any]) -> str:
    return format_nest(loop_nest(lower_expression(tensors)))


def _expect_tensors(tensors: Any, shapes: dict[str, tuple[int, ...]], name: str) -> None:
    """`tensors` is a list of TE tensors with these names (None: any) and shapes, float32."""
    expect(
        isinstance(tensors, list | tuple) and len(tensors) == len(shapes),
        expected=f"{name} returns the list [{', '.join(shapes)}]",
        seen=f"{type(tensors).__name__}"
        + (f" of length {len(tensors)}" if isinstance(tensors, list | tuple) else ""),
        look="the return statement",
    )
    for tensor, (label, shape) in zip(tensors, shapes.items(), strict=True):
        expect(
            type(tensor).__name__ == "Tensor" and hasattr(tensor, "op"),
            expected=f"{label} is a tensor of te.placeholder or te.compute",
            seen=f"a {type(tensor).__module__}.{type(tensor).__name__}",
            look="declare with TVM's te, do not compute with numpy",
        )
        seen = tuple(int(extent) for extent in tensor.shape)
        expect(
            seen == shape,
            expected=f"{label} of shape {shape}",
            seen=f"shape {seen}",
            look=f"the shape given where {label} is declared",
        )
        expect(
            str(tensor.dtype) == "float32",
            expected=f"{label} of type float32",
            seen=str(tensor.dtype),
            look=f"dtype= where {label} is declared",
        )
        expect(
            str(tensor.op.name) == label,
            expected=f'a tensor named "{label}"',
            seen=f'"{tensor.op.name}"',
            look=f"name= where {label} is declared",
        )


def _stages(output: Any) -> dict[str, Any]:
    """The compute stages that `output` is made of, by name."""
    found: dict[str, Any] = {}
    pending = [output]
    while pending:
        operation = pending.pop().op
        if type(operation).__name__ == "ComputeOp" and operation.name not in found:
            found[str(operation.name)] = operation
            pending.extend(operation.input_tensors)
    return found


def _expect_stages(output: Any, names: tuple[str, ...]) -> dict[str, Any]:
    stages = _stages(output)
    missing = [name for name in names if name not in stages]
    expect(
        not missing,
        expected=f"stages named {', '.join(names)}",
        seen=f"stages named {', '.join(sorted(stages)) or 'nothing'}",
        look=f"the name= of each te.compute; missing: {', '.join(missing)}",
    )
    return stages


def _expect_reduction(stages: dict[str, Any], name: str, extent: int) -> None:
    axes = [int(axis.dom.extent) for axis in stages[name].reduce_axis]
    expect(
        axes == [extent],
        expected=f"{name} reduces over one axis of extent {extent}",
        seen=f"reduce axes of extents {axes}" if axes else "no reduce axis",
        look=f"te.reduce_axis((0, {extent})) and axis= in {name}",
    )


def _run(tensors: list[Any], inputs: list[np.ndarray]) -> np.ndarray:
    kept = [each.copy() for each in inputs]
    output = build_expression(tensors)(*inputs)
    for before, after, tensor in zip(kept, inputs, tensors, strict=False):
        expect_unchanged(before, after, str(tensor.op.name))
    return output


@PHASE.exercise(
    "matmul",
    engine=CURRENT,
    title="declare C[i, j] = sum over k of A[i, k] * B[k, j]",
    hints=(
        "Three declarations: two te.placeholder for the inputs, one te.compute for C. The index "
        "that is summed over is neither an index of C nor an input; it is a te.reduce_axis.",
        "A placeholder is te.placeholder((rows, columns), dtype='float32', name='A'). "
        "te.reduce_axis((0, k), name='k') gives the summed index; use another Python name for it "
        "than k, which is the number.",
        "C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name='C'), where "
        "r is the reduce axis. Return [A, B, C].",
    ),
    looks_like="""
        for i in serial(8):
            for j in serial(8):
                for k in serial(8):
                    C: C <- A, B, C
    """,
    demonstrate=lambda matmul: _default_loops(matmul(8, 8, 8)),
)
def check_matmul(matmul: Declare) -> None:
    rng = fresh_rng()
    m, n, k = (int(size) for size in rng.choice(np.arange(17, 60), 3, replace=False))
    tensors = matmul(m, n, k)
    _expect_tensors(tensors, {"A": (m, k), "B": (k, n), "C": (m, n)}, "matmul")
    _expect_reduction(_expect_stages(tensors[-1], ("C",)), "C", k)
    a = rng.standard_normal((m, k), dtype="float32")
    b = rng.standard_normal((k, n), dtype="float32")
    expect_close(
        _run(tensors, [a, b]), a @ b, what="C", look="the indices of A and B in the formula"
    )


@PHASE.exercise(
    "dense_bias_relu",
    engine=CURRENT,
    title="declare an MLP layer in three stages",
    hints=(
        "A stage is a te.compute whose formula reads an earlier stage. Here: dense (a reduction), "
        "biased (reads dense and bias), Y (reads biased).",
        "The weight's rows are the outputs, so the sum runs over the second index of both X and "
        "W: X[i, k] * W[j, k]. The bias has one index, that of the output.",
        "biased = te.compute((batch, outputs), lambda i, j: dense[i, j] + bias[j], name='biased'); "
        "Y = te.compute((batch, outputs), lambda i, j: te.max(biased[i, j], 0.0), name='Y').",
    ),
    looks_like="""
        for i in serial(8):
            for j in serial(8):
                for k in serial(8):
                    dense: dense <- W, X, dense
        for i in serial(8):
            for j in serial(8):
                biased: biased <- bias, dense
        for i in serial(8):
            for j in serial(8):
                Y: Y <- biased
    """,
    demonstrate=lambda dense_bias_relu: _default_loops(dense_bias_relu(8, 8, 8)),
)
def check_dense_bias_relu(dense_bias_relu: Declare) -> None:
    rng = fresh_rng()
    batch, inputs, outputs = (int(s) for s in rng.choice(np.arange(11, 50), 3, replace=False))
    tensors = dense_bias_relu(batch, inputs, outputs)
    _expect_tensors(
        tensors,
        {"X": (batch, inputs), "W": (outputs, inputs), "bias": (outputs,), "Y": (batch, outputs)},
        "dense_bias_relu",
    )
    _expect_reduction(_expect_stages(tensors[-1], ("dense", "biased", "Y")), "dense", inputs)
    x = rng.standard_normal((batch, inputs), dtype="float32")
    w = rng.standard_normal((outputs, inputs), dtype="float32")
    bias = rng.standard_normal(outputs, dtype="float32")
    expect_close(
        _run(tensors, [x, w, bias]),
        np.maximum(x @ w.T + bias, 0),
        what="Y",
        look="the indices of W and bias, and the maximum with 0",
    )


@PHASE.exercise(
    "softmax",
    engine=CURRENT,
    title="declare a softmax that does not overflow",
    hints=(
        "Two stages reduce a row to a number (shape (rows,)), two have the shape of X. Each "
        "reduction needs a te.reduce_axis of its own.",
        "te.max(expression, axis=r) reduces by maximum as te.sum does by addition. The sum is "
        "over the exponents, not over X.",
        "row_max over X; exponent[i, j] = te.exp(X[i, j] - row_max[i]); row_sum over exponent; "
        "Y[i, j] = exponent[i, j] / row_sum[i].",
    ),
    looks_like="""
        for i in serial(8):
            for m in serial(8):
                row_max: row_max <- X, row_max
        for i in serial(8):
            for j in serial(8):
                exponent: exponent <- X, row_max
        for i in serial(8):
            for s in serial(8):
                row_sum: row_sum <- exponent, row_sum
        for i in serial(8):
            for j in serial(8):
                Y: Y <- exponent, row_sum
    """,
    demonstrate=lambda softmax: _default_loops(softmax(8, 8)),
)
def check_softmax(softmax: Declare) -> None:
    rng = fresh_rng()
    rows, columns = (int(size) for size in rng.choice(np.arange(11, 50), 2, replace=False))
    tensors = softmax(rows, columns)
    _expect_tensors(tensors, {"X": (rows, columns), "Y": (rows, columns)}, "softmax")
    stages = _expect_stages(tensors[-1], ("row_max", "exponent", "row_sum", "Y"))
    _expect_reduction(stages, "row_max", columns)
    _expect_reduction(stages, "row_sum", columns)
    # Values around 200 overflow exp in float32 unless the maximum is subtracted first.
    x = rng.standard_normal((rows, columns), dtype="float32") * 3 + 200
    exact = np.exp(x.astype("float64") - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    expect_close(
        _run(tensors, [x]),
        exact.astype("float32"),
        what="Y for values around 200",
        look="whether the row's maximum is subtracted before exp, and what row_sum sums",
    )
