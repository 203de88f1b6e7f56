"""Refused: a size that is written down: each filter has three rows and columns."""

from tvm import te


def depthwise(batch, channels, height, width, kernel, stride):
    pad = kernel // 2
    high, wide = ((size + 2 * pad - kernel) // stride + 1 for size in (height, width))
    X = te.placeholder((batch, channels, height, width), name="X")
    W = te.placeholder((channels, kernel, kernel), name="W")
    i, j = te.reduce_axis((0, 3), name="i"), te.reduce_axis((0, 3), name="j")

    def pixel(n, c, y, x):
        inside = te.all(y >= 0, y < height, x >= 0, x < width)
        return te.if_then_else(inside, X[n, c, y, x], 0.0)

    Y = te.compute(
        (batch, channels, high, wide),
        lambda n, c, y, x: te.sum(
            pixel(n, c, y * stride + i - 1, x * stride + j - 1) * W[c, i, j], axis=[i, j]
        ),
        name="Y",
    )
    return te.create_prim_func([X, W, Y])
