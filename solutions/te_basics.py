"""Reference answers of phase 1."""

from typing import Any


def matmul(m: int, n: int, k: int) -> list[Any]:
    """Declare C[i, j] = sum over k of A[i, k] * B[k, j].

    Args:
        m: rows of A and of C.
        n: columns of B and of C.
        k: columns of A, rows of B: the axis that is summed over.

    Returns:
        The tensors [A, B, C] of shapes (m, k), (k, n) and (m, n), float32, named "A", "B", "C".
    """
    from tvm import te

    A = te.placeholder((m, k), dtype="float32", name="A")
    B = te.placeholder((k, n), dtype="float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return [A, B, C]


def dense_bias_relu(batch: int, inputs: int, outputs: int) -> list[Any]:
    """Declare one layer of an MLP (multilayer perceptron): Y = max(X · Wᵀ + bias, 0).

    Use three stages, named "dense", "biased" and "Y", so that a schedule can place each of
    them: dense is the product, biased adds the bias, and Y takes the maximum with 0. The weight has
    PyTorch's layout, one row per output: dense[i, j] = sum over k of X[i, k] * W[j, k].

    Args:
        batch: rows of X and of Y.
        inputs: features of X.
        outputs: features of Y.

    Returns:
        The tensors [X, W, bias, Y] of shapes (batch, inputs), (outputs, inputs), (outputs,) and
        (batch, outputs), float32.
    """
    from tvm import te

    X = te.placeholder((batch, inputs), dtype="float32", name="X")
    W = te.placeholder((outputs, inputs), dtype="float32", name="W")
    bias = te.placeholder((outputs,), dtype="float32", name="bias")
    # Stages, not one formula: a schedule can place only named stages.
    k = te.reduce_axis((0, inputs), name="k")
    dense = te.compute(
        (batch, outputs), lambda i, j: te.sum(X[i, k] * W[j, k], axis=k), name="dense"
    )
    biased = te.compute((batch, outputs), lambda i, j: dense[i, j] + bias[j], name="biased")
    Y = te.compute((batch, outputs), lambda i, j: te.max(biased[i, j], 0.0), name="Y")
    return [X, W, bias, Y]


def softmax(rows: int, columns: int) -> list[Any]:
    """Declare a softmax over each row that does not overflow.

    Four stages: "row_max" is a reduction over a row of X, "exponent" is exp(X - row_max), "row_sum"
    is the sum over a row of exponent, and "Y" is exponent / row_sum. Each reduction has a
    reduce_axis of its own. Without subtracting the maximum, exp of a value above 88.7 is infinite
    in float32.

    Args:
        rows: independent rows of X.
        columns: elements of each row.

    Returns:
        The tensors [X, Y], both of shape (rows, columns), float32.
    """
    from tvm import te

    X = te.placeholder((rows, columns), dtype="float32", name="X")
    m = te.reduce_axis((0, columns), name="m")
    row_max = te.compute((rows,), lambda i: te.max(X[i, m], axis=m), name="row_max")
    exponent = te.compute(
        (rows, columns), lambda i, j: te.exp(X[i, j] - row_max[i]), name="exponent"
    )
    # Each reduction needs an axis of its own, though both run over the columns.
    s = te.reduce_axis((0, columns), name="s")
    row_sum = te.compute((rows,), lambda i: te.sum(exponent[i, s], axis=s), name="row_sum")
    Y = te.compute((rows, columns), lambda i, j: exponent[i, j] / row_sum[i], name="Y")
    return [X, Y]
