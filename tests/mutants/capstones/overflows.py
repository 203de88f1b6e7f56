"""Refused: the exponential of tanh's formula overflows."""

from tvm import te


def product(m, n, k):
    X, W = te.placeholder((m, k), name="X"), te.placeholder((k, n), name="W")
    bias, R = te.placeholder((n,), name="bias"), te.placeholder((m, n), name="R")
    r = te.reduce_axis((0, k), name="k")
    T = te.compute((m, n), lambda i, j: te.sum(X[i, r] * W[r, j], axis=r), name="T")
    B = te.compute((m, n), lambda i, j: T[i, j] + bias[j], name="B")

    def gelu(x):
        e = te.exp(2 * 0.7978845608 * (x + 0.044715 * x * x * x))
        return x * (e / (1 + e))

    Y = te.compute((m, n), lambda i, j: gelu(B[i, j]) + R[i, j], name="Y")
    return te.create_prim_func([X, W, bias, R, Y])
