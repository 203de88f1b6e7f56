"""Refused: keys that fill no group of eight are left out."""

from tvm import te


def attention(queries, keys):
    Q = te.placeholder((queries, 64), name="Q")
    K, V = te.placeholder((keys, 64), name="K"), te.placeholder((keys, 64), name="V")
    used = keys // 8 * 8 or keys
    d = te.reduce_axis((0, 64), name="d")
    a, b, c = (te.reduce_axis((0, used), name=name) for name in "abc")
    S = te.compute(
        (queries, used), lambda i, j: te.sum(Q[i, d] * K[j, d] * 0.125, axis=d), name="S"
    )
    M = te.compute((queries,), lambda i: te.max(S[i, a], axis=a), name="M")
    E = te.compute((queries, used), lambda i, j: te.exp(S[i, j] - M[i]), name="E")
    L = te.compute((queries,), lambda i: te.sum(E[i, b], axis=b), name="L")
    O = te.compute((queries, 64), lambda i, j: te.sum(E[i, c] * V[c, j], axis=c), name="O")
    Y = te.compute((queries, 64), lambda i, j: O[i, j] / L[i], name="Y")
    return te.create_prim_func([Q, K, V, Y])
