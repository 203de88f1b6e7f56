"""Wrong solutions of phase 1."""

from tests.mutants import edited, mutant, right, right_edited


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


@mutant("softmax", message="row_sum computed from exponent")
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


edited(
    "matmul",
    "inner_size_capped_at_64",
    {"te.sum(A[i, r] * B[r, j], axis=r)": "te.sum(te.min(A[i, r], 1000.0) * B[r, j], axis=r)"},
    message="A about 16384",
)
edited("matmul", "named_out", {'name="C"': 'name="out"'}, message='named "C"')
edited(
    "matmul",
    "in_half_precision",
    {
        "A[i, r] * B[r, j]": 'A[i, r].astype("float16").astype("float32") * B[r, j]',
    },
    message="C of .*x.* by",
)
edited(
    "matmul",
    "absolute_values",
    {"A[i, r] * B[r, j]": "te.abs(A[i, r]) * B[r, j]"},
    message="the indices of A and B",
)
edited(
    "matmul",
    "a_stage_too_many",
    {
        "te.sum(A[i, r] * B[r, j], axis=r)": "te.sum(D[i, r] * B[r, j], axis=r)",
        "    r = te.reduce_axis": '    D = te.compute((m, k), lambda i, r: A[i, r], name="D")\n'
        "    r = te.reduce_axis",
    },
    message="D as well",
)
edited(
    "dense_bias_relu",
    "relu_before_the_bias",
    {
        "dense[i, j] + bias[j]": "te.max(dense[i, j], 0.0) + bias[j]",
    },
    message="the index of bias",
)
edited(
    "dense_bias_relu",
    "relu_in_biased",
    {"dense[i, j] + bias[j]": "te.max(dense[i, j] + bias[j], 0.0)"},
    message="biased, values about",
)
edited(
    "dense_bias_relu",
    "relu_up_to_six",
    {"te.max(biased[i, j], 0.0)": "te.min(te.max(biased[i, j], 0.0), 1000.0)"},
    message="Y, values about 16384",
)
edited(
    "dense_bias_relu",
    "absolute_for_relu",
    {"te.max(biased[i, j], 0.0)": "te.abs(biased[i, j])"},
    message="the maximum with 0",
)
edited(
    "dense_bias_relu",
    "leaves_a_little_of_the_negative",
    {"te.max(biased[i, j], 0.0)": "te.max(biased[i, j], 0.001 * biased[i, j])"},
    message="the maximum with 0",
)
edited(
    "softmax",
    "mean_for_maximum",
    {"te.max(X[i, m], axis=m)": "te.sum(X[i, m] / columns, axis=m)"},
    message="te.max over the whole row",
)
edited(
    "softmax",
    "minimum_for_maximum",
    {"te.max(X[i, m], axis=m)": "te.min(X[i, m], axis=m)"},
    message="te.max over the whole row",
)
edited(
    "softmax",
    "maximum_with_zero",
    {"te.max(X[i, m], axis=m)": "te.max(te.max(X[i, m], 0.0), axis=m)"},
    message="te.max over the whole row.*",
)
edited(
    "softmax",
    "logarithm",
    {"exponent[i, j] / row_sum[i]": "te.log(exponent[i, j] / row_sum[i])"},
    message="exponent divided by row_sum",
)


@mutant("softmax", message="over an axis of its own")
def one_axis_for_both_reductions(rows, columns):
    from tvm import te

    X = te.placeholder((rows, columns), dtype="float32", name="X")
    r = te.reduce_axis((0, columns), name="r")
    row_max = te.compute((rows,), lambda i: te.max(X[i, r], axis=r), name="row_max")
    exponent = te.compute(
        (rows, columns), lambda i, j: te.exp(X[i, j] - row_max[i]), name="exponent"
    )
    row_sum = te.compute((rows,), lambda i: te.sum(exponent[i, r], axis=r), name="row_sum")
    Y = te.compute((rows, columns), lambda i, j: exponent[i, j] / row_sum[i], name="Y")
    return [X, Y]


@mutant("softmax", message="missing: row_max")
def names_swapped(rows, columns):
    from tvm import te

    X = te.placeholder((rows, columns), dtype="float32", name="X")
    m = te.reduce_axis((0, columns), name="m")
    s = te.reduce_axis((0, columns), name="s")
    top = te.compute((rows,), lambda i: te.max(X[i, m], axis=m), name="top")
    exponent = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - top[i]), name="exponent")
    row_sum = te.compute((rows,), lambda i: te.sum(exponent[i, s], axis=s), name="row_sum")
    Y = te.compute((rows, columns), lambda i, j: exponent[i, j] / row_sum[i], name="Y")
    return [X, Y]


@right("matmul")
def with_other_names(m, n, k):
    import tvm.te as expressions

    left = expressions.placeholder((m, k), "float32", "A")
    right = expressions.placeholder((k, n), "float32", "B")
    summed = expressions.reduce_axis((0, k))
    out = expressions.compute(
        (m, n),
        lambda row, column: expressions.sum(right[summed, column] * left[row, summed], summed),
        name="C",
    )
    return (left, right, out)


@right("dense_bias_relu")
def with_a_selection_for_the_maximum(batch, inputs, outputs):
    from tvm import te, tirx

    X = te.placeholder((batch, inputs), name="X")
    W = te.placeholder((outputs, inputs), name="W")
    bias = te.placeholder((outputs,), name="bias")
    k = te.reduce_axis((0, inputs), name="k")
    dense = te.compute((batch, outputs), lambda i, j: te.sum(W[j, k] * X[i, k], k), name="dense")
    biased = te.compute((batch, outputs), lambda i, j: bias[j] + dense[i, j], name="biased")
    zero = tirx.const(0.0, "float32")
    Y = te.compute(
        (batch, outputs),
        lambda i, j: tirx.Select(biased[i, j] > zero, biased[i, j], zero),
        name="Y",
    )
    return [X, W, bias, Y]


right_edited(
    "softmax",
    "times_the_reciprocal",
    {"exponent[i, j] / row_sum[i]": "exponent[i, j] * (1.0 / row_sum[i])"},
)
right_edited(
    "dense_bias_relu",
    "inputs_without_names",
    {', name="X"': "", ', name="W"': "", ', name="bias"': ""},
)
for name, edit, message in (
    (
        "takes_exponents_anew",
        {"exponent[i, j] / row_sum[i]": "te.exp(X[i, j] - row_max[i]) / row_sum[i]"},
        "Y computed from exponent and row_sum",
    ),
    ("adds_an_epsilon", {"/ row_sum[i]": "/ (row_sum[i] + 1e-5)"}, "divided by row_sum"),
    (
        "clips_exponents",
        {"te.exp(X[i, j] - row_max[i])": "te.exp(te.max(X[i, j] - row_max[i], -20.0))"},
        "exponent",
    ),
):
    edited("softmax", name, edit, message=message)


right_edited("softmax", "another_name_of_the_input", {'name="X"': 'name="scores"'})


edited(
    "matmul",
    "no_more_than_a_hundred_steps",
    {"te.reduce_axis((0, k), ": "te.reduce_axis((0, min(k, 100)), "},
    message="reduces over one axis of extent",
)


@mutant("matmul", message="A of shape")
def remembers_rows_and_columns(m, n, k):
    from tvm import te

    known = globals().setdefault("declared", {})
    if (m, n) not in known:
        A = te.placeholder((m, k), dtype="float32", name="A")
        B = te.placeholder((k, n), dtype="float32", name="B")
        r = te.reduce_axis((0, k), name="k")
        C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
        known[m, n] = [A, B, C]
    return known[m, n]


@right("softmax")
def numbers_of_a_row_as_columns(rows, columns):
    from tvm import te

    X = te.placeholder((rows, columns), name="X")
    m, s = (te.reduce_axis((0, columns)) for _ in range(2))
    row_max = te.compute((rows, 1), lambda i, _: te.max(X[i, m], axis=m), name="row_max")
    exponent = te.compute(X.shape, lambda i, j: te.exp(X[i, j] - row_max[i, 0]), name="exponent")
    row_sum = te.compute((rows, 1), lambda i, _: te.sum(exponent[i, s], axis=s), name="row_sum")
    return [X, te.compute(X.shape, lambda i, j: exponent[i, j] / row_sum[i, 0], name="Y")]


edited(
    "matmul",
    "no_more_than_a_thousand_steps",
    {"te.reduce_axis((0, k), ": "te.reduce_axis((0, min(k, 1000)), "},
    message="reduces over one axis of extent",
)
edited(
    "dense_bias_relu",
    "a_square_weight_as_it_is",
    {"* W[j, k], axis=k": "* (W[k, j] if inputs == outputs else W[j, k]), axis=k"},
    message="one row per output",
)
edited(
    "dense_bias_relu",
    "bias_per_row_of_a_square",
    {"+ bias[j]": "+ bias[i if batch == outputs else j]"},
    message="the index of bias",
)


edited(
    "matmul",
    "transposed_where_c_is_square",
    {"A[i, r] * B[r, j]": "(A[j, r] * B[r, i] if m == n != k else A[i, r] * B[r, j])"},
    message="indices of A and B",
)


@mutant("matmul", message="including 0 times infinity")
def leaves_products_of_zero_out(m, n, k):
    from tvm import te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")

    def product(i, j):
        return te.if_then_else(A[i, r] == 0.0, 0.0, A[i, r] * B[r, j])

    C = te.compute((m, n), lambda i, j: te.sum(product(i, j), axis=r), name="C")
    return [A, B, C]


edited(
    "matmul",
    "rows_repeated_past_four_times_the_columns",
    {"A[i, r]": "A[i if m <= 4 * n else i % (4 * n), r]"},
    message="the indices of A and B",
)
edited(
    "matmul",
    "leaves_a_target_current",
    {"    from tvm import te\n": "    import tvm\n    from tvm import te\n\n"
     "    tvm.target.Target({'kind': 'llvm'}).__enter__()\n"},
    message="leaves TVM's current target",
)  # fmt: skip
edited(
    "dense_bias_relu",
    "magnitude_of_a_single_row",
    {"te.max(biased[i, j], 0.0)": "te.abs(biased[i, j]) if batch == 1 else te.max(biased[i, j], "
     "0.0)"},
    message="the maximum with 0",
)  # fmt: skip


edited(
    "dense_bias_relu",
    "lets_a_little_through",
    {"te.max(biased[i, j], 0.0)": "te.max(biased[i, j], biased[i, j] * 1e-7)"},
    message="exactly 0 below 0",
)
edited(
    "dense_bias_relu",
    "a_bias_of_at_most_1024",
    {"bias[j], name": "bias[te.min(j, 1023)], name"},
    message="the index of bias",
)


@mutant("softmax", message="row_max for values around -1000000.0")
def begins_at_the_least_of_float16(rows, columns):
    from tvm import te, tirx

    X = te.placeholder((rows, columns), name="X")
    m = te.reduce_axis((0, columns), name="m")
    largest = te.comm_reducer(lambda a, b: te.max(a, b), lambda kind: tirx.const(-65504, kind))
    row_max = te.compute((rows,), lambda i: largest(X[i, m], axis=m), name="row_max")
    exponent = te.compute(X.shape, lambda i, j: te.exp(X[i, j] - row_max[i]), name="exponent")
    s = te.reduce_axis((0, columns), name="s")
    row_sum = te.compute((rows,), lambda i: te.sum(exponent[i, s], axis=s), name="row_sum")
    return [X, te.compute(X.shape, lambda i, j: exponent[i, j] / row_sum[i], name="Y")]


@right("softmax")
def by_a_reducer_of_its_own(rows, columns):
    from tvm import te

    X = te.placeholder((rows, columns), name="scores")
    a, b = (te.reduce_axis((0, columns), name=name) for name in "ab")
    largest = te.comm_reducer(lambda x, y: te.if_then_else(x > y, x, y), te.min_value)
    row_max = te.compute((rows,), lambda i: largest(X[i, a], axis=a), name="row_max")
    exponent = te.compute(X.shape, lambda *at: te.exp(X(*at) - row_max(at[0])), name="exponent")
    row_sum = te.compute((rows,), lambda i: te.sum(exponent[i, b], axis=[b]), name="row_sum")
    return [X, te.compute(X.shape, lambda *at: exponent(*at) / row_sum(at[0]), name="Y")]


edited(
    "softmax",
    "exponents_computed_again",
    {"te.sum(exponent[i, s], axis=s)": "te.sum(te.exp(X[i, s] - row_max[i]), axis=s)"},
    message="row_sum computed from exponent",
)


edited(
    "softmax",
    "sum_plus_a_little",
    {"exponent[i, j] / row_sum[i]": "exponent[i, j] / (row_sum[i] + 1e-7)"},
    message="row_sum is 1",
)


edited(
    "softmax",
    "exponent_at_least_tiny",
    {"te.exp(X[i, j] - row_max[i])": "te.exp(te.max(X[i, j] - row_max[i], -80.0))"},
    message="exponent",
)

edited(
    "matmul",
    "leaves_out_where_a_is_zero",
    {"B[r, j], axis=r)": "B[r, j], axis=r, where=A[i, r] != 0)"},
    message="every element along its axis",
)

edited(
    "dense_bias_relu",
    "finite_maximum",
    {"te.max(biased[i, j], 0.0)": "te.min(te.max(biased[i, j], 0.0), 3e38)"},
    message="Y for infinite biases",
)


# Right below a bound, or for some sizes alone.
edited(
    "matmul",
    "zeros_past_65536_columns",
    {"A[i, r] * B[r, j]": "A[i, r] * te.if_then_else(j < 65536, B[r, j], 0.0)"},
    message="the indices of A and B",
)
edited(
    "matmul",
    "large_squares_lose_a_step",
    {'(0, k), name="k"': '(0, k - (m == n == k and k > 300)), name="k"'},
    message="reduces over one axis",
)
edited(
    "softmax",
    "differences_cut_off",
    {"X[i, j] - row_max[i]": "te.max(X[i, j] - row_max[i], -87.0)"},
    message="do not clip the difference",
)
