"""Wrong solutions of phase 1."""

from tests.mutants import mutant


@mutant("matmul", message="the indices of A and B in the formula")
def reads_column_of_a_shifted(m, n, k):
    from tvm import te

    A = te.placeholder((m, k), dtype="float32", name="A")
    B = te.placeholder((k, n), dtype="float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute(
        (m, n), lambda i, j: te.sum(A[i, r] * B[te.indexmod(r + 1, k), j], axis=r), name="C"
    )
    return [A, B, C]


@mutant("matmul", message="C reduces over one axis of extent")
def sums_one_short(m, n, k):
    from tvm import te

    A = te.placeholder((m, k), dtype="float32", name="A")
    B = te.placeholder((k, n), dtype="float32", name="B")
    r = te.reduce_axis((0, k - 1), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return [A, B, C]


@mutant("matmul", message="do not compute with numpy")
def computes_with_numpy(m, n, k):
    import numpy as np
    from tvm import te

    A = te.placeholder((m, k), dtype="float32", name="A")
    B = te.placeholder((k, n), dtype="float32", name="B")
    C = np.ones((m, k), "float32") @ np.ones((k, n), "float32")
    return [A, B, C]


@mutant("matmul", message="C of shape")
def output_transposed(m, n, k):
    from tvm import te

    A = te.placeholder((m, k), dtype="float32", name="A")
    B = te.placeholder((k, n), dtype="float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((n, m), lambda j, i: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return [A, B, C]


@mutant("dense_bias_relu", message="maximum with 0")
def forgets_the_relu(batch, inputs, outputs):
    from tvm import te

    X = te.placeholder((batch, inputs), dtype="float32", name="X")
    W = te.placeholder((outputs, inputs), dtype="float32", name="W")
    bias = te.placeholder((outputs,), dtype="float32", name="bias")
    k = te.reduce_axis((0, inputs), name="k")
    dense = te.compute(
        (batch, outputs), lambda i, j: te.sum(X[i, k] * W[j, k], axis=k), name="dense"
    )
    biased = te.compute((batch, outputs), lambda i, j: dense[i, j] + bias[j], name="biased")
    Y = te.compute((batch, outputs), lambda i, j: biased[i, j] + 0.0, name="Y")
    return [X, W, bias, Y]


@mutant("dense_bias_relu", message="W of shape")
def weight_not_transposed(batch, inputs, outputs):
    from tvm import te

    X = te.placeholder((batch, inputs), dtype="float32", name="X")
    W = te.placeholder((inputs, outputs), dtype="float32", name="W")
    bias = te.placeholder((outputs,), dtype="float32", name="bias")
    k = te.reduce_axis((0, inputs), name="k")
    dense = te.compute(
        (batch, outputs), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="dense"
    )
    biased = te.compute((batch, outputs), lambda i, j: dense[i, j] + bias[j], name="biased")
    Y = te.compute((batch, outputs), lambda i, j: te.max(biased[i, j], 0.0), name="Y")
    return [X, W, bias, Y]


@mutant("dense_bias_relu", message="stages named dense, biased, Y")
def all_in_one_stage(batch, inputs, outputs):
    from tvm import te

    X = te.placeholder((batch, inputs), dtype="float32", name="X")
    W = te.placeholder((outputs, inputs), dtype="float32", name="W")
    bias = te.placeholder((outputs,), dtype="float32", name="bias")
    k = te.reduce_axis((0, inputs), name="k")
    dense = te.compute(
        (batch, outputs), lambda i, j: te.sum(X[i, k] * W[j, k], axis=k), name="dense"
    )
    Y = te.compute((batch, outputs), lambda i, j: te.max(dense[i, j] + bias[j], 0.0), name="Y")
    return [X, W, bias, Y]


@mutant("softmax", message="missing: row_max")
def no_maximum(rows, columns):
    from tvm import te

    X = te.placeholder((rows, columns), dtype="float32", name="X")
    exponent = te.compute((rows, columns), lambda i, j: te.exp(X[i, j]), name="exponent")
    s = te.reduce_axis((0, columns), name="s")
    row_sum = te.compute((rows,), lambda i: te.sum(exponent[i, s], axis=s), name="row_sum")
    Y = te.compute((rows, columns), lambda i, j: exponent[i, j] / row_sum[i], name="Y")
    return [X, Y]


@mutant("softmax", message="whether the row's maximum is subtracted")
def half_the_maximum_subtracted(rows, columns):
    from tvm import te

    X = te.placeholder((rows, columns), dtype="float32", name="X")
    m = te.reduce_axis((0, columns), name="m")
    row_max = te.compute((rows,), lambda i: te.max(X[i, m], axis=m), name="row_max")
    exponent = te.compute(
        (rows, columns), lambda i, j: te.exp(X[i, j] - row_max[i] / 2), name="exponent"
    )
    s = te.reduce_axis((0, columns), name="s")
    row_sum = te.compute((rows,), lambda i: te.sum(exponent[i, s], axis=s), name="row_sum")
    Y = te.compute((rows, columns), lambda i, j: exponent[i, j] / row_sum[i], name="Y")
    return [X, Y]


@mutant("softmax", message="what row_sum sums")
def sums_the_inputs(rows, columns):
    from tvm import te

    X = te.placeholder((rows, columns), dtype="float32", name="X")
    m = te.reduce_axis((0, columns), name="m")
    row_max = te.compute((rows,), lambda i: te.max(X[i, m], axis=m), name="row_max")
    exponent = te.compute(
        (rows, columns), lambda i, j: te.exp(X[i, j] - row_max[i]), name="exponent"
    )
    s = te.reduce_axis((0, columns), name="s")
    row_sum = te.compute((rows,), lambda i: te.sum(X[i, s], axis=s), name="row_sum")
    Y = te.compute((rows, columns), lambda i, j: exponent[i, j] / row_sum[i], name="Y")
    return [X, Y]
