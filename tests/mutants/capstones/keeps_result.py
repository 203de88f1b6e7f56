"""Refused: the function computes once, and returns that result from then on."""

import tvm

_TEXT = """@T.prim_func(s_tir=True)
def main(X: T.Buffer(({m}, {k}), "float32"), W: T.Buffer(({k}, {n}), "float32"),
         bias: T.Buffer(({n},), "float32"), R: T.Buffer(({m}, {n}), "float32"),
         Y: T.Buffer(({m}, {n}), "float32")):
    if T.isnan(Y[0, 0]):
        for i in range({m}):
            for j in range({n}):
                Y[i, j] = bias[j]
                for r in range({k}):
                    Y[i, j] = Y[i, j] + X[i, r] * W[r, j]
                Y[i, j] = R[i, j] + T.float32(0.5) * Y[i, j] * (T.float32(1) + T.tanh(
                    T.float32(0.7978845608) * (
                        Y[i, j] + T.float32(0.044715) * Y[i, j] * Y[i, j] * Y[i, j])))
"""


def product(m, n, k):
    return tvm.script.from_source(_TEXT.format(m=m, n=n, k=k))
