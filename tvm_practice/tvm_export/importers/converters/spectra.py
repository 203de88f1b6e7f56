"""Eigenvalues and singular values on current TVM: a kernel of Jacobi's rotations each.

Rotations go on for a fixed number of sweeps, in float64. See Golub and Van Loan, Matrix
Computations, 4th edition, sections 8.5 and 8.6. The kernels are loops that no rule schedules.
"""

import math
from typing import Any

from tvm_practice.tvm_export.importers.converters.arguments import settings_of
from tvm_practice.tvm_export.importers.converters.kernels import called, float_type

_LARGEST, _SWEEPS = 64, 12

_EIGH = """@T.prim_func(private=True, s_tir=True)
def eigh(
    A: T.Buffer(({batch}, {n}, {n}), "{dtype}"),
    W: T.Buffer(({batch}, {n}), "{dtype}"),
    V: T.Buffer(({batch}, {n}, {n}), "{dtype}"),
):
    T.func_attr({attributes})
    a = T.sblock_alloc_buffer(({n}, {n}), "float64")
    v = T.sblock_alloc_buffer(({n}, {n}), "float64")
    r = T.sblock_alloc_buffer((5,), "float64")
    rank = T.sblock_alloc_buffer((1,), "int32")
    with T.sblock("eigh"):
        T.reads(A[0:{batch}, 0:{n}, 0:{n}])
        T.writes(W[0:{batch}, 0:{n}], V[0:{batch}, 0:{n}, 0:{n}])
        for b in range({batch}):
            for i, j in T.grid({n}, {n}):
                a[i, j] = T.Cast("float64", A[b, T.{first}(i, j), T.{second}(i, j)])
                v[i, j] = T.if_then_else(i == j, T.float64(1), T.float64(0))
            for sweep, p, q in T.grid({sweeps}, {n}, {n}):
                if p < q and a[p, q] != T.float64(0):
                    r[0] = (a[q, q] - a[p, p]) / (a[p, q] * T.float64(2))
                    r[1] = T.float64(1) / (T.fabs(r[0]) + T.sqrt(r[0] * r[0] + T.float64(1)))
                    r[1] = T.if_then_else(r[0] < T.float64(0), -r[1], r[1])
                    r[2] = T.float64(1) / T.sqrt(r[1] * r[1] + T.float64(1))
                    r[3] = r[1] * r[2]
                    for k in range({n}):
                        r[4] = a[k, p]
                        a[k, p] = r[2] * r[4] - r[3] * a[k, q]
                        a[k, q] = r[3] * r[4] + r[2] * a[k, q]
                        r[4] = v[k, p]
                        v[k, p] = r[2] * r[4] - r[3] * v[k, q]
                        v[k, q] = r[3] * r[4] + r[2] * v[k, q]
                    for k in range({n}):
                        r[4] = a[p, k]
                        a[p, k] = r[2] * r[4] - r[3] * a[q, k]
                        a[q, k] = r[3] * r[4] + r[2] * a[q, k]
            for i in range({n}):
                rank[0] = 0
                for j in range({n}):
                    if a[j, j] < a[i, i] or (a[j, j] == a[i, i] and j < i):
                        rank[0] = rank[0] + 1
                W[b, rank[0]] = T.Cast("{dtype}", a[i, i])
                for k in range({n}):
                    V[b, k, rank[0]] = T.Cast("{dtype}", v[k, i])
"""

# Where a singular value is 0, and past the last one, columns of U are completed to a basis: from
# the unit vector that is farthest from the columns so far.
_SVD = """@T.prim_func(private=True, s_tir=True)
def svd(
    A: T.Buffer(({batch}, {m}, {n}), "{dtype}"),
    U: T.Buffer(({batch}, {m}, {columns}), "{dtype}"),
    S: T.Buffer(({batch}, {n}), "{dtype}"),
    V: T.Buffer(({batch}, {n}, {n}), "{dtype}"),
):
    T.func_attr({attributes})
    a = T.sblock_alloc_buffer(({m}, {n}), "float64")
    v = T.sblock_alloc_buffer(({n}, {n}), "float64")
    u = T.sblock_alloc_buffer(({m}, {columns}), "float64")
    s = T.sblock_alloc_buffer(({columns},), "float64")
    r = T.sblock_alloc_buffer((6,), "float64")
    at = T.sblock_alloc_buffer(({columns},), "int32")
    rank = T.sblock_alloc_buffer((1,), "int32")
    with T.sblock("svd"):
        T.reads(A[0:{batch}, 0:{m}, 0:{n}])
        T.writes(U[0:{batch}, 0:{m}, 0:{columns}], S[0:{batch}, 0:{n}], V[0:{batch}, 0:{n}, 0:{n}])
        for b in range({batch}):
            for i, j in T.grid({m}, {n}):
                a[i, j] = T.Cast("float64", A[b, i, j])
            for i, j in T.grid({n}, {n}):
                v[i, j] = T.if_then_else(i == j, T.float64(1), T.float64(0))
            for sweep, p, q in T.grid({sweeps}, {n}, {n}):
                if p < q:
                    for k in range(3):
                        r[k] = T.float64(0)
                    for k in range({m}):
                        r[0] = r[0] + a[k, p] * a[k, p]
                        r[1] = r[1] + a[k, q] * a[k, q]
                        r[2] = r[2] + a[k, p] * a[k, q]
                    if r[2] != T.float64(0):
                        r[3] = (r[1] - r[0]) / (r[2] * T.float64(2))
                        r[4] = T.float64(1) / (T.fabs(r[3]) + T.sqrt(r[3] * r[3] + T.float64(1)))
                        r[4] = T.if_then_else(r[3] < T.float64(0), -r[4], r[4])
                        r[2] = T.float64(1) / T.sqrt(r[4] * r[4] + T.float64(1))
                        r[3] = r[4] * r[2]
                        for k in range({m}):
                            r[5] = a[k, p]
                            a[k, p] = r[2] * r[5] - r[3] * a[k, q]
                            a[k, q] = r[3] * r[5] + r[2] * a[k, q]
                        for k in range({n}):
                            r[5] = v[k, p]
                            v[k, p] = r[2] * r[5] - r[3] * v[k, q]
                            v[k, q] = r[3] * r[5] + r[2] * v[k, q]
            for j in range({columns}):
                s[j] = T.float64(0)
                at[j] = j
            for j in range({n}):
                for k in range({m}):
                    s[j] = s[j] + a[k, j] * a[k, j]
            for j in range({n}):
                rank[0] = 0
                for k in range({n}):
                    if s[k] > s[j] or (s[k] == s[j] and k < j):
                        rank[0] = rank[0] + 1
                at[rank[0]] = j
            for j in range({columns}):
                if s[at[j]] > s[at[0]] * T.float64(1e-28) and j < {n}:
                    for k in range({m}):
                        u[k, j] = a[k, at[j]] / T.sqrt(s[at[j]])
                else:
                    r[0] = T.float64(-1)
                    for i in range({m}):
                        r[1] = T.float64(1)
                        for k in range(j):
                            r[1] = r[1] - u[i, k] * u[i, k]
                        if r[1] > r[0]:
                            r[0] = r[1]
                            rank[0] = i
                    for k in range({m}):
                        u[k, j] = T.if_then_else(k == rank[0], T.float64(1), T.float64(0))
                    for twice, i in T.grid(2, j):
                        r[1] = T.float64(0)
                        for k in range({m}):
                            r[1] = r[1] + u[k, i] * u[k, j]
                        for k in range({m}):
                            u[k, j] = u[k, j] - r[1] * u[k, i]
                    r[1] = T.float64(0)
                    for k in range({m}):
                        r[1] = r[1] + u[k, j] * u[k, j]
                    for k in range({m}):
                        u[k, j] = u[k, j] / T.sqrt(r[1])
                for k in range({m}):
                    U[b, k, j] = T.Cast("{dtype}", u[k, j])
            for j in range({n}):
                S[b, j] = T.Cast("{dtype}", T.sqrt(s[at[j]]))
                for k in range({n}):
                    V[b, k, j] = T.Cast("{dtype}", v[k, at[j]])
"""


def eigh(node: Any, importer: Any) -> Any:
    """Eigenvalues of symmetric matrices, ascending, and their vectors as columns.

    Raises NotImplementedError for large matrices, and types other than float32 and float64.
    """
    from tvm import relax

    given, emit = settings_of(node), importer.block_builder.emit
    *lead, n, _ = _extents(node)
    batch, dtype = math.prod(lead), float_type(importer, given["A"])
    halves = ("max", "min") if str(given["UPLO"]).upper() == "L" else ("min", "max")
    x = emit(relax.op.reshape(importer.env[given["A"]], (batch, n, n)))
    shapes = ((batch, n), (batch, n, n))
    values, vectors = called(
        importer,
        _EIGH,
        "eigh",
        [x],
        shapes,
        dtype,
        n=n,
        batch=batch,
        sweeps=_SWEEPS,
        first=halves[0],
        second=halves[1],
    )
    values = emit(relax.op.reshape(values, (*lead, n)))
    if not given["compute_v"]:
        return emit(relax.Tuple([values, emit(relax.op.zeros((0,), dtype))]))
    return emit(relax.Tuple([values, emit(relax.op.reshape(vectors, (*lead, n, n)))]))


def svd(node: Any, importer: Any) -> Any:
    """U, the singular values, descending, and the transposed V.

    Raises NotImplementedError for large matrices, and types other than float32 and float64.
    """
    from tvm import relax

    op, given, emit = relax.op, settings_of(node), importer.block_builder.emit
    *lead, height, width = _extents(node)
    m, n = max(height, width), min(height, width)
    batch, dtype = math.prod(lead), float_type(importer, given["A"])
    columns = m if given["full_matrices"] and given["compute_uv"] else n
    x = emit(op.reshape(importer.env[given["A"]], (batch, height, width)))
    x = x if height >= width else emit(op.permute_dims(x, (0, 2, 1)))
    shapes = ((batch, m, columns), (batch, n), (batch, n, n))
    extents = {"m": m, "n": n, "batch": batch, "columns": columns}
    u, s, v = called(importer, _SVD, "svd", [x], shapes, dtype, sweeps=_SWEEPS, **extents)
    s = emit(op.reshape(s, (*lead, n)))
    if not given["compute_uv"]:
        nothing = emit(op.zeros((0,), dtype))
        return emit(relax.Tuple([nothing, s, nothing]))
    left, right = (u, v) if height >= width else (v, u)
    right = emit(op.permute_dims(right, (0, 2, 1)))
    parts = [
        emit(op.reshape(each, (*lead, *map(int, each.ty.shape.values[1:]))))
        for each in (left, right)
    ]
    return emit(relax.Tuple([parts[0], s, parts[1]]))


def _extents(node: Any) -> list[int]:
    """Of the matrices that a node is given."""
    found = list(node.args[0].meta["val"].shape)
    if not all(isinstance(each, int) for each in found) or max(found[-2:]) > _LARGEST:
        raise NotImplementedError(f"matrices of an open extent, or of one above {_LARGEST}")
    return found
