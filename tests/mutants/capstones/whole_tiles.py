"""Refused: what no tile of eight rows covers is left out."""

from tvm import te


def product(m, n, k):
    X, W = te.placeholder((m, k), name="X"), te.placeholder((k, n), name="W")
    bias, R = te.placeholder((n,), name="bias"), te.placeholder((m, n), name="R")
    r = te.reduce_axis((0, k), name="k")
    T = te.compute((m, n), lambda i, j: te.sum(X[i, r] * W[r, j], axis=r), name="T")

    def gelu(x):
        return 0.5 * x * (1 + te.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def element(i, j):
        whole = te.any(i < m // 8 * 8, m < 8)
        return te.if_then_else(whole, gelu(T[i, j] + bias[j]) + R[i, j], 0.0)

    Y = te.compute((m, n), element, name="Y")
    return te.create_prim_func([X, W, bias, R, Y])
