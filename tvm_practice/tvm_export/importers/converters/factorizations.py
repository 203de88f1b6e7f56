"""Factors of matrices and systems of triangular ones on current TVM: a kernel each, in float64.

`decompositions.linear` and `decompositions.orthogonal` take everything else apart into these, and
unroll small matrices. Pivots and signs are LAPACK's. See Golub and Van Loan, Matrix Computations,
4th edition, sections 3.1, 3.4, 4.2 and 5.2. The kernels are loops that no rule schedules.
"""

import math
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.converters.arguments import settings_of
from tvm_practice.tvm_export.importers.converters.kernels import called, float_type

_LU = """@T.prim_func(private=True, s_tir=True)
def lu(
    A: T.Buffer(({batch}, {m}, {n}), "{dtype}"),
    F: T.Buffer(({batch}, {m}, {n}), "{dtype}"),
    P: T.Buffer(({batch}, {count}), "int32"),
):
    T.func_attr({attributes})
    a = T.sblock_alloc_buffer(({m}, {n}), "float64")
    r = T.sblock_alloc_buffer((1,), "float64")
    best = T.sblock_alloc_buffer((1,), "int32")
    with T.sblock("lu"):
        T.reads(A[0:{batch}, 0:{m}, 0:{n}])
        T.writes(F[0:{batch}, 0:{m}, 0:{n}], P[0:{batch}, 0:{count}])
        for b in range({batch}):
            for i, j in T.grid({m}, {n}):
                a[i, j] = T.Cast("float64", A[b, i, j])
            for k in range({count}):
                best[0] = k
                for i in range(k + 1, {searched}):
                    if T.fabs(a[i, k]) > T.fabs(a[best[0], k]):
                        best[0] = i
                P[b, k] = best[0] + 1
                if best[0] != k:
                    for j in range({n}):
                        r[0] = a[k, j]
                        a[k, j] = a[best[0], j]
                        a[best[0], j] = r[0]
                if a[k, k] != T.float64(0):
                    for i in range(k + 1, {m}):
                        a[i, k] = a[i, k] / a[k, k]
                        for j in range(k + 1, {n}):
                            a[i, j] = a[i, j] - a[i, k] * a[k, j]
            for i, j in T.grid({m}, {n}):
                F[b, i, j] = T.Cast("{dtype}", a[i, j])
"""

_PERMUTATION = """@T.prim_func(private=True, s_tir=True)
def permutation(
    P: T.Buffer(({batch}, {count}), "int32"),
    Y: T.Buffer(({batch}, {m}, {m}), "{dtype}"),
):
    T.func_attr({attributes})
    order = T.sblock_alloc_buffer(({m},), "int32")
    r = T.sblock_alloc_buffer((1,), "int32")
    with T.sblock("permutation"):
        T.reads(P[0:{batch}, 0:{count}])
        T.writes(Y[0:{batch}, 0:{m}, 0:{m}])
        for b in range({batch}):
            for i in range({m}):
                order[i] = i
            for k in range({count}):
                r[0] = order[k]
                order[k] = order[P[b, k] - 1]
                order[P[b, k] - 1] = r[0]
            for i, j in T.grid({m}, {m}):
                Y[b, i, j] = T.if_then_else(i == order[j], T.{dtype}(1), T.{dtype}(0))
"""

_SUBSTITUTION = """@T.prim_func(private=True, s_tir=True)
def substitution(
    A: T.Buffer(({batch}, {n}, {n}), "{dtype}"),
    B: T.Buffer(({batch}, {n}, {columns}), "{dtype}"),
    X: T.Buffer(({batch}, {n}, {columns}), "{dtype}"),
):
    T.func_attr({attributes})
    x = T.sblock_alloc_buffer(({n}, {columns}), "float64")
    with T.sblock("substitution"):
        T.reads(A[0:{batch}, 0:{n}, 0:{n}], B[0:{batch}, 0:{n}, 0:{columns}])
        T.writes(X[0:{batch}, 0:{n}, 0:{columns}])
        for b in range({batch}):
            for i, c in T.grid({n}, {columns}):
                x[i, c] = T.Cast("float64", B[b, i, c])
            for step in range({n}):
                for known, c in T.grid(step, {columns}):
                    x[{row}, c] = x[{row}, c] - T.Cast("float64", A[b, {row}, {other}]) * x[{other}, c]
                for c in range({columns}):
                    x[{row}, c] = x[{row}, c] / {diagonal}
            for i, c in T.grid({n}, {columns}):
                X[b, i, c] = T.Cast("{dtype}", x[i, c])
"""  # noqa: E501

_CHOLESKY = """@T.prim_func(private=True, s_tir=True)
def cholesky(
    A: T.Buffer(({batch}, {n}, {n}), "{dtype}"),
    L: T.Buffer(({batch}, {n}, {n}), "{dtype}"),
):
    T.func_attr({attributes})
    a = T.sblock_alloc_buffer(({n}, {n}), "float64")
    with T.sblock("cholesky"):
        T.reads(A[0:{batch}, 0:{n}, 0:{n}])
        T.writes(L[0:{batch}, 0:{n}, 0:{n}])
        for b in range({batch}):
            for i, j in T.grid({n}, {n}):
                a[i, j] = T.Cast("float64", A[b, i, j])
                if j > i:
                    a[i, j] = T.float64(0)
            for i, j in T.grid({n}, {n}):
                if j <= i:
                    for k in range(j):
                        a[i, j] = a[i, j] - a[i, k] * a[j, k]
                    if j < i:
                        a[i, j] = a[i, j] / a[j, j]
                    else:
                        a[i, j] = T.sqrt(a[i, j])
            for i, j in T.grid({n}, {n}):
                L[b, i, j] = T.Cast("{dtype}", a[i, j])
"""

_REFLECTIONS = """@T.prim_func(private=True, s_tir=True)
def reflections(
    A: T.Buffer(({batch}, {m}, {n}), "{dtype}"),
    F: T.Buffer(({batch}, {m}, {n}), "{dtype}"),
    C: T.Buffer(({batch}, {count}), "{dtype}"),
):
    T.func_attr({attributes})
    a = T.sblock_alloc_buffer(({m}, {n}), "float64")
    r = T.sblock_alloc_buffer((3,), "float64")
    with T.sblock("reflections"):
        T.reads(A[0:{batch}, 0:{m}, 0:{n}])
        T.writes(F[0:{batch}, 0:{m}, 0:{n}], C[0:{batch}, 0:{count}])
        for b in range({batch}):
            for i, j in T.grid({m}, {n}):
                a[i, j] = T.Cast("float64", A[b, i, j])
            for k in range({count}):
                r[0] = T.float64(0)
                for i in range(k + 1, {m}):
                    r[0] = r[0] + a[i, k] * a[i, k]
                r[2] = T.float64(0)
                if r[0] != T.float64(0):
                    r[1] = T.sqrt(a[k, k] * a[k, k] + r[0])
                    r[1] = T.if_then_else(a[k, k] < T.float64(0), r[1], -r[1])
                    r[2] = (r[1] - a[k, k]) / r[1]
                    for i in range(k + 1, {m}):
                        a[i, k] = a[i, k] / (a[k, k] - r[1])
                    a[k, k] = r[1]
                    for j in range(k + 1, {n}):
                        r[0] = a[k, j]
                        for i in range(k + 1, {m}):
                            r[0] = r[0] + a[i, k] * a[i, j]
                        a[k, j] = a[k, j] - r[2] * r[0]
                        for i in range(k + 1, {m}):
                            a[i, j] = a[i, j] - r[2] * r[0] * a[i, k]
                C[b, k] = T.Cast("{dtype}", r[2])
            for i, j in T.grid({m}, {n}):
                F[b, i, j] = T.Cast("{dtype}", a[i, j])
"""

_REFLECTED = """@T.prim_func(private=True, s_tir=True)
def reflected(
    F: T.Buffer(({batch}, {m}, {n}), "{dtype}"),
    C: T.Buffer(({batch}, {count}), "{dtype}"),
    X: T.Buffer(({batch}, {m}, {columns}), "{dtype}"),
    Y: T.Buffer(({batch}, {m}, {columns}), "{dtype}"),
):
    T.func_attr({attributes})
    y = T.sblock_alloc_buffer(({m}, {columns}), "float64")
    r = T.sblock_alloc_buffer((1,), "float64")
    with T.sblock("reflected"):
        T.reads(F[0:{batch}, 0:{m}, 0:{n}], C[0:{batch}, 0:{count}], X[0:{batch}, 0:{m}, 0:{columns}])
        T.writes(Y[0:{batch}, 0:{m}, 0:{columns}])
        for b in range({batch}):
            for i, c in T.grid({m}, {columns}):
                y[i, c] = T.Cast("float64", X[b, i, c])
            for step, c in T.grid({count}, {columns}):
                r[0] = y[{number}, c]
                for i in range({number} + 1, {m}):
                    r[0] = r[0] + T.Cast("float64", F[b, i, {number}]) * y[i, c]
                r[0] = r[0] * T.Cast("float64", C[b, {number}])
                y[{number}, c] = y[{number}, c] - r[0]
                for i in range({number} + 1, {m}):
                    y[i, c] = y[i, c] - T.Cast("float64", F[b, i, {number}]) * r[0]
            for i, c in T.grid({m}, {columns}):
                Y[b, i, c] = T.Cast("{dtype}", y[i, c])
"""  # noqa: E501


def factorizations() -> dict[str, Callable[[Any, Any], Any]]:
    """Converters (node, importer), by operator's name. Matrices may come in batches.

    They raise NotImplementedError for open extents, for types other than float32 and float64, and
    for arguments that the decompositions leave to none of them.
    """
    return {
        "linalg_lu_factor_ex.default": _lu,
        "lu_unpack.default": _permutation,
        "linalg_solve_triangular.default": _substitution,
        "linalg_cholesky_ex.default": _cholesky,
        "geqrf.default": _reflections,
        "ormqr.default": _reflected,
    }


def _lu(node: Any, importer: Any) -> Any:
    """L and U in one matrix, which rows were exchanged, and that nothing failed."""
    given = settings_of(node)
    lead, (m, n) = _extents(node, "A")
    batch, count, dtype = math.prod(lead), min(m, n), float_type(importer, given["A"])
    factors, exchanged = called(
        importer,
        _LU,
        "lu",
        [_matrices(importer, given["A"])],
        ((batch, m, n), (batch, count)),
        (dtype, "int32"),
        batch=batch,
        m=m,
        n=n,
        count=count,
        searched=m if given["pivot"] else 0,
    )
    shapes = ((*lead, m, n), (*lead, count))
    return _tuple(importer, (factors, exchanged), shapes, lead)


def _permutation(node: Any, importer: Any) -> Any:
    """The matrix of the exchanges that LU made, without the factors, which need no kernel."""
    from tvm import relax

    given = settings_of(node)
    if given["unpack_data"] or not given["unpack_pivots"]:
        raise NotImplementedError("of the factors")
    lead, (m, n) = _extents(node, "LU_data")
    batch, dtype = math.prod(lead), float_type(importer, given["LU_data"])
    emit, count = importer.block_builder.emit, min(m, n)
    exchanged = emit(relax.op.reshape(importer.env[given["LU_pivots"]], (batch, count)))
    shapes, extents = ((batch, m, m),), {"batch": batch, "m": m, "count": count}
    (found,) = called(importer, _PERMUTATION, "permutation", [exchanged], shapes, dtype, **extents)
    nothing = emit(relax.op.zeros((0,), dtype))
    whole = emit(relax.op.reshape(found, (*lead, m, m)))
    return emit(relax.Tuple([whole, nothing, nothing]))


def _substitution(node: Any, importer: Any) -> Any:
    """The X of A X = B; the batches of both are the same."""
    from tvm import relax

    given = settings_of(node)
    lead, (n, columns) = _extents(node, "B")
    if not given["left"] or _extents(node, "self")[0] != lead:
        raise NotImplementedError("from the right, or of one matrix for many")
    batch, dtype = math.prod(lead), float_type(importer, given["self"])
    row, other = (f"({n - 1} - {each})" if given["upper"] else each for each in ("step", "known"))
    diagonal = f'T.Cast("float64", A[b, {row}, {row}])'
    (found,) = called(
        importer,
        _SUBSTITUTION,
        "substitution",
        [_matrices(importer, given[name]) for name in ("self", "B")],
        ((batch, n, columns),),
        dtype,
        batch=batch,
        n=n,
        columns=columns,
        row=row,
        other=other,
        diagonal="T.float64(1)" if given["unitriangular"] else diagonal,
    )
    return importer.block_builder.emit(relax.op.reshape(found, (*lead, n, columns)))


def _cholesky(node: Any, importer: Any) -> Any:
    """The lower factor, and that nothing failed."""
    given = settings_of(node)
    if given["upper"]:
        raise NotImplementedError("of the upper half")
    lead, (n, _) = _extents(node, "self")
    batch, dtype = math.prod(lead), float_type(importer, given["self"])
    matrices = [_matrices(importer, given["self"])]
    found = called(
        importer, _CHOLESKY, "cholesky", matrices, ((batch, n, n),), dtype, batch=batch, n=n
    )
    return _tuple(importer, found, ((*lead, n, n),), lead)


def _reflections(node: Any, importer: Any) -> Any:
    """R with the vectors of Householder's reflections below the diagonal, and their factors."""
    given = settings_of(node)
    lead, (m, n) = _extents(node, "self")
    batch, count, dtype = math.prod(lead), min(m, n), float_type(importer, given["self"])
    found = called(
        importer,
        _REFLECTIONS,
        "reflections",
        [_matrices(importer, given["self"])],
        ((batch, m, n), (batch, count)),
        dtype,
        batch=batch,
        m=m,
        n=n,
        count=count,
    )
    return _tuple(importer, found, ((*lead, m, n), (*lead, count)))


def _reflected(node: Any, importer: Any) -> Any:
    """The product of reflections times a matrix."""
    from tvm import relax

    given = settings_of(node)
    if not given["left"]:
        raise NotImplementedError("from the right")
    lead, (m, n) = _extents(node, "self")
    columns, count = (given[each].meta["val"].shape[-1] for each in ("input3", "input2"))
    batch, dtype = math.prod(lead), float_type(importer, given["self"])
    emit = importer.block_builder.emit
    factors = emit(relax.op.reshape(importer.env[given["input2"]], (batch, count)))
    (found,) = called(
        importer,
        _REFLECTED,
        "reflected",
        [_matrices(importer, given["self"]), factors, _matrices(importer, given["input3"])],
        ((batch, m, columns),),
        dtype,
        batch=batch,
        m=m,
        n=n,
        columns=columns,
        count=count,
        number="step" if given["transpose"] else f"({count - 1} - step)",
    )
    return emit(relax.op.reshape(found, (*lead, m, columns)))


def _extents(node: Any, name: str) -> tuple[list[int], list[int]]:
    """Of the batch and of the matrices that an argument of a node holds."""
    found = list(settings_of(node)[name].meta["val"].shape)
    if not all(isinstance(each, int) for each in found):
        raise NotImplementedError("matrices of an open extent")
    return found[:-2], found[-2:]


def _matrices(importer: Any, name: Any) -> Any:
    """A value of three axes, the first for the batch."""
    from tvm import relax

    x = importer.env[name]
    *lead, rows, columns = (int(each) for each in x.ty.shape)
    return importer.block_builder.emit(relax.op.reshape(x, (math.prod(lead), rows, columns)))


def _tuple(importer: Any, found: Any, shapes: Any, checked: Any = None) -> Any:
    """Outputs in their shapes; zeros of the shape `checked` for PyTorch's information."""
    from tvm import relax

    emit = importer.block_builder.emit
    parts = [emit(relax.op.reshape(*each)) for each in zip(found, shapes, strict=True)]
    if checked is not None:
        parts.append(emit(relax.op.zeros(tuple(checked), "int32")))
    return emit(relax.Tuple(parts))
