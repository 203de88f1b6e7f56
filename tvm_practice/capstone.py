"""Capstone: make it fast. Three open problems with a score.

The exercises of the course have an answer; these have none. A track (problem) gives you shapes, and
you return a schedule for them. A right one gets a score, and the score a tier: bronze, silver, gold
or platinum. There are three tracks, and you may hand in any of them:

    product    Y = gelu(X W + bias) + R, of sizes that no tile divides; gelu by its tanh formula
    depthwise  a convolution in which each channel has its own filter, 3x3 or 5x5
    attention  softmax(Q Kᵀ / sqrt(64)) V, one head of 64

For each track there is a worked `declare_…`: its tensors, right at every size and not scheduled.
`naive` makes a schedule of them in which nothing is scheduled: a right answer, but for `product`
and `attention` a slow one. Replace the line that raises in `product`, `depthwise` or `attention`:

    return naive(declare_product(m, n, k))         a first score, and then yours

Your function is called once per size, so it may choose another schedule for another size: one row
cannot be shared among threads by rows, nor a narrow matrix by columns. It may declare the tensors
in another way, as long as the function that it returns takes the same buffers.

An answer may use TVM and Python's arithmetic. It may import tvm, math, functools, itertools,
dataclasses, collections, typing, and tvm_practice.engines, whose `host()` describes the machine:
`vector_lanes` (float32 values per vector register), `vector_registers` (their number) and
`threads`. What it returns may call nothing outside TVM.

The gate compares with numpy in float64, at sizes such as 1, primes, and less than a vector. Values
are extreme; the memory around the buffers, the output and the buffers that TVM allocates hold NaN
at first; and the inputs change from call to call.

The points of a size are 100 times the geometric mean of two figures: your share of the rate that
the processor or its memory allows, and PyTorch's time over yours, at most 2. The score is the
geometric mean of the points over all sizes, on one core and on all. Half of the sizes are
published in tvm_practice/course/capstone/tracks.py, half are drawn anew at each scoring.

    tvm-practice capstone product      the gate and the score
    tvm-practice submit product        one file to hand in
"""

from typing import Any

HEAD = 64
"""Elements of a query, of a key and of a value."""


def declare_product(m: int, n: int, k: int) -> list[Any]:
    """Worked example: the tensors of Y = gelu(X W + bias) + R, with gelu's tanh formula.

    Args:
        m: rows of X, R and Y.
        n: columns of W, R and Y, elements of the bias.
        k: columns of X, rows of W.

    Returns:
        The tensors [X, W, bias, R, Y] of shapes (m, k), (k, n), (n,), (m, n), (m, n), float32.
    """
    from tvm import te

    X, W = te.placeholder((m, k), name="X"), te.placeholder((k, n), name="W")
    bias, R = te.placeholder((n,), name="bias"), te.placeholder((m, n), name="R")
    r = te.reduce_axis((0, k), name="k")
    T = te.compute((m, n), lambda i, j: te.sum(X[i, r] * W[r, j], axis=r), name="T")
    B = te.compute((m, n), lambda i, j: T[i, j] + bias[j], name="B")

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + te.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    Y = te.compute((m, n), lambda i, j: gelu(B[i, j]) + R[i, j], name="Y")
    return [X, W, bias, R, Y]


def declare_depthwise(
    batch: int, channels: int, height: int, width: int, kernel: int, stride: int
) -> list[Any]:
    """Worked example: the tensors of a depthwise convolution with kernel // 2 zeros around it.

    Args:
        batch: images.
        channels: of an image, and of the output.
        height: of an image, in pixels.
        width: of an image, in pixels.
        kernel: height and width of a filter, 3 or 5.
        stride: pixels from one window to the next, both ways, 1 or 2.

    Returns:
        The tensors [X, W, Y] of shapes (batch, channels, height, width), (channels, kernel, kernel)
        and (batch, channels, output height, output width), float32.
    """
    from tvm import te

    pad = kernel // 2
    high, wide = ((size + 2 * pad - kernel) // stride + 1 for size in (height, width))
    X = te.placeholder((batch, channels, height, width), name="X")
    W = te.placeholder((channels, kernel, kernel), name="W")
    P = te.compute(
        (batch, channels, height + 2 * pad, width + 2 * pad),
        lambda n, c, y, x: te.if_then_else(
            te.all(y >= pad, y < height + pad, x >= pad, x < width + pad),
            X[n, c, y - pad, x - pad],
            0.0,
        ),
        name="P",
    )
    i, j = te.reduce_axis((0, kernel), name="i"), te.reduce_axis((0, kernel), name="j")
    Y = te.compute(
        (batch, channels, high, wide),
        lambda n, c, y, x: te.sum(
            P[n, c, y * stride + i, x * stride + j] * W[c, i, j], axis=[i, j]
        ),
        name="Y",
    )
    return [X, W, Y]


def declare_attention(queries: int, keys: int) -> list[Any]:
    """Worked example: the tensors of softmax(Q Kᵀ / sqrt(64)) V.

    Args:
        queries: rows of Q and Y.
        keys: rows of K and V.

    Returns:
        The tensors [Q, K, V, Y] of shapes (queries, 64), (keys, 64), (keys, 64), (queries, 64),
        float32.
    """
    from tvm import te

    Q = te.placeholder((queries, HEAD), name="Q")
    K, V = te.placeholder((keys, HEAD), name="K"), te.placeholder((keys, HEAD), name="V")
    d = te.reduce_axis((0, HEAD), name="d")
    S = te.compute(
        (queries, keys), lambda i, j: te.sum(Q[i, d] * K[j, d] * HEAD**-0.5, axis=d), name="S"
    )
    a, b, c = (te.reduce_axis((0, keys), name=name) for name in "abc")
    M = te.compute((queries,), lambda i: te.max(S[i, a], axis=a), name="M")
    E = te.compute((queries, keys), lambda i, j: te.exp(S[i, j] - M[i]), name="E")
    L = te.compute((queries,), lambda i: te.sum(E[i, b], axis=b), name="L")
    O = te.compute((queries, HEAD), lambda i, d: te.sum(E[i, c] * V[c, d], axis=c), name="O")
    Y = te.compute((queries, HEAD), lambda i, d: O[i, d] / L[i], name="Y")
    return [Q, K, V, Y]


def naive(tensors: list[Any]) -> Any:  # a tvm.s_tir.Schedule
    """Worked example: a schedule of these tensors with nothing scheduled."""
    import tvm
    from tvm import te

    function = te.create_prim_func(tensors).with_attr("global_symbol", "main")
    return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))


def product(m: int, n: int, k: int) -> Any:  # a tvm.s_tir.Schedule
    """Y = gelu(X W + bias) + R, as fast as it goes.

    Args:
        m: rows of X, R and Y; any positive number, as are n and k.
        n: columns of W, R and Y, elements of the bias.
        k: columns of X, rows of W.

    Returns:
        A tvm.s_tir.Schedule, an IRModule or a PrimFunc "main" of the buffers of `declare_product`.
    """
    raise NotImplementedError("return a schedule; naive(declare_product(m, n, k)) is one")


def depthwise(
    batch: int, channels: int, height: int, width: int, kernel: int, stride: int
) -> Any:  # a tvm.s_tir.Schedule
    """A depthwise convolution with kernel // 2 zeros around the image, as fast as it goes.

    Args:
        batch: images.
        channels: of an image, and of the output.
        height: of an image, in pixels.
        width: of an image, in pixels.
        kernel: height and width of a filter, 3 or 5.
        stride: pixels from one window to the next, both ways, 1 or 2.

    Returns:
        A tvm.s_tir.Schedule, an IRModule or a PrimFunc "main" of the buffers of
        `declare_depthwise`.
    """
    raise NotImplementedError("return a schedule; naive(declare_depthwise(…)) is one")


def attention(queries: int, keys: int) -> Any:  # a tvm.s_tir.Schedule
    """softmax(Q Kᵀ / sqrt(64)) V, as fast as it goes.

    Args:
        queries: rows of Q and Y.
        keys: rows of K and V.

    Returns:
        A tvm.s_tir.Schedule, an IRModule or a PrimFunc "main" of the buffers of
        `declare_attention`.
    """
    raise NotImplementedError("return a schedule; naive(declare_attention(queries, keys)) is one")
