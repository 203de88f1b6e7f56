"""Reference answers of the capstone. They stand alone on TVM's primitives, as any answer must."""

from collections.abc import Callable
from typing import Any

import tvm
from tvm import te, topi

from tvm_practice.engines import host

HEAD = 64
_MINUS_TWICE = -2 * 0.7978845608  # GELU by tanh(u) is x / (1 + exp(-2u))


def _schedule(tensors: list[Any]) -> Any:  # a tvm.s_tir.Schedule
    function = te.create_prim_func(tensors).with_attr("global_symbol", "main")
    return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))


def _blocks(schedule: Any) -> dict[str, Any]:
    """The blocks by name."""
    found = schedule.get_child_blocks(schedule.get_sblock("root"))
    return {schedule.get(each).name_hint: each for each in found}


def _inline(schedule: Any, *, but: tuple[str, ...]) -> None:
    """Inline every stage except these: compute it where it is read."""
    for name, block in _blocks(schedule).items():
        if name not in but:
            schedule.compute_inline(block)


def _tile(rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of a register tile that wastes little at these sizes.

    A step of a tile takes rows x vectors multiply-adds, and loads rows + vectors values.
    """
    here = host()
    found = []
    for vectors in (1, 2, 4) if here.vector_registers == 32 else (1, 2):
        most = min((here.vector_registers - vectors - 1) // vectors, 14)
        for high in range(1, most + 1):
            wide = vectors * here.vector_lanes
            cost = high * vectors + 0.5 * (high + vectors)
            # With fewer than ten sums, each waits for its previous addition.
            cost = max(cost, 10.0) * -(-rows // high) * -(-columns // wide)
            found.append((cost, high, wide))
    _, high, wide = min(found)
    return high, wide


def product(m: int, n: int, k: int) -> Any:  # a tvm.s_tir.Schedule
    """Y = gelu(X W + bias) + R, as fast as it goes.

    The arguments are those of the chapter's stub.
    """
    X, W = te.placeholder((m, k), name="X"), te.placeholder((k, n), name="W")
    bias, R = te.placeholder((n,), name="bias"), te.placeholder((m, n), name="R")
    wide = 4 * host().vector_lanes
    if m <= 4 and n >= wide:
        Z, start = _sums_in_place(X, W, bias, wide)
    else:
        Z, start = _sums_packed(X, W, bias, *_tile(m, n))
    rows, columns = (int(extent) for extent in Z.shape[2:])
    # GELU runs in vectors on whole tiles; only the copy has a guard at the edge of the matrix.
    U = te.compute(
        Z.shape, lambda *at: _MINUS_TWICE * Z(*at) * (1 + 0.044715 * Z(*at) * Z(*at)), name="U"
    )
    G = te.compute(Z.shape, lambda *at: Z(*at) / (1 + topi.fast_exp(U)(*at)), name="G")
    Y = te.compute(
        (m, n),
        lambda i, j: G[i // rows, j // columns, i % rows, j - start(j // columns)] + R[i, j],
        name="Y",
    )
    schedule = _schedule([X, W, bias, R, Y])
    _order_product(schedule)
    return schedule


def _sums_in_place(X: Any, W: Any, bias: Any, columns: int) -> tuple[Any, Callable[[Any], Any]]:
    """Tiles of X W + bias for few rows: W is read once, so a packed copy would not pay.

    The last panel ends with the matrix, and computes some columns of its neighbour again.

    Returns:
        The te.Tensor Z [row panels][column panels][rows][columns], and a function from a panel to
        its first column.
    """
    m, k = (int(extent) for extent in X.shape)
    n = int(W.shape[1])
    r = te.reduce_axis((0, k), name="k")

    def start(panel: Any) -> Any:
        return tvm.tirx.min(panel * columns, n - columns)

    shape = (1, -(-n // columns), m, columns)
    T = te.compute(shape, lambda _, b, i, j: te.sum(X[i, r] * W[r, start(b) + j], axis=r), name="T")
    Z = te.compute(shape, lambda _, b, i, j: T[0, b, i, j] + bias[start(b) + j], name="Z")
    return Z, start


def _sums_packed(
    X: Any, W: Any, bias: Any, rows: int, columns: int
) -> tuple[Any, Callable[[Any], Any]]:
    """Tiles of X W + bias from packed copies, which a tile reads without gaps.

    The bias is one more row of W, and a column of ones in X multiplies it. Rows past the edge
    repeat the last row; columns past the edge are zeros.

    Returns:
        The same as `_sums_in_place`.
    """
    m, k = (int(extent) for extent in X.shape)
    n = int(W.shape[1])
    shape = (-(-m // rows), -(-n // columns), rows, columns)
    r = te.reduce_axis((0, k + 1), name="k")
    A = te.compute(
        (shape[0], k + 1, rows),
        lambda b, r, i: te.if_then_else(r < k, X[tvm.tirx.min(b * rows + i, m - 1), r], 1.0),
        name="A",
    )
    B = te.compute(
        (shape[1], k + 1, columns),
        lambda b, r, j: te.if_then_else(
            b * columns + j < n,
            te.if_then_else(r < k, W[r, b * columns + j], bias[b * columns + j]),
            0.0,
        ),
        name="B",
    )
    T = te.compute(shape, lambda bi, bj, i, j: te.sum(A[bi, r, i] * B[bj, r, j], axis=r), name="T")
    return te.compute(shape, lambda *at: T(*at), name="Z"), lambda panel: panel * columns


def _order_product(schedule: Any) -> None:
    """Compute all stages tile by tile, sums in registers, panels shared among threads."""
    _inline(schedule, but=("A", "B", "T", "Z", "G", "Y"))
    T, Z, G, Y = (schedule.get_sblock(name) for name in "TZGY")
    bi, bj, i, j, reduction = schedule.get_loops(T)
    row_panels, panels, steps = (int(schedule.get(each).extent) for each in (bi, bj, reduction))
    packed = "A" in _blocks(schedule)
    outer, inner = (bj, bi) if panels >= 8 * host().threads or row_panels < panels else (bi, bj)
    step, unrolled = schedule.split(reduction, [None, 1 if steps < 4 else 4])
    schedule.reorder(outer, inner, step, unrolled, i, j)
    schedule.set_scope(T, 0, "local")
    schedule.parallel(outer)
    if packed:
        near, before = ("B", "A") if outer is bj else ("A", "B")
        schedule.compute_at(schedule.get_sblock(near), outer, preserve_unit_loops=True)
        schedule.parallel(schedule.get_loops(schedule.get_sblock(before))[0])
        schedule.vectorize(schedule.get_loops(schedule.get_sblock("B"))[-1])
    for stage in (Z, G):
        schedule.reverse_compute_at(stage, inner, preserve_unit_loops=True)
        schedule.set_scope(stage, 0, "local")
        *_, across, along = schedule.get_loops(stage)
        schedule.vectorize(along)
        if stage is Z:  # registers need constant indices
            schedule.unroll(across)
    if packed:
        schedule.reverse_compute_at(Y, inner, preserve_unit_loops=True)
        schedule.vectorize(schedule.get_loops(Y)[-1])
    schedule.vectorize(j)
    schedule.unroll(i)
    schedule.unroll(unrolled)
    schedule.decompose_reduction(T, step)


def depthwise(
    batch: int, channels: int, height: int, width: int, kernel: int, stride: int
) -> Any:  # a tvm.s_tir.Schedule
    """A depthwise convolution with kernel // 2 zeros around the image, as fast as it goes.

    The arguments are those of the chapter's stub.
    """
    pad = kernel // 2
    high, wide = ((size + 2 * pad - kernel) // stride + 1 for size in (height, width))
    lanes = host().vector_lanes
    # A tile is a few rows of the output and all of its columns, rounded up to whole vectors.
    vectors, rows = -(-wide // lanes), _few_rows(high)
    across, blocks = vectors * lanes, -(-high // rows)
    along = across + (kernel - 1) // stride
    deep = (blocks * rows - 1) * stride + kernel  # rows of the image that the tiles read
    X = te.placeholder((batch, channels, height, width), name="X")
    W = te.placeholder((channels, kernel, kernel), name="W")
    P = te.compute(
        (batch, channels, max(deep, height + pad), along * stride),
        lambda n, c, y, x: te.if_then_else(
            te.all(y >= pad, y < height + pad, x >= pad, x < width + pad),
            X[n, c, y - pad, x - pad],
            0.0,
        ),
        name="P",
    )
    # With a stride, even and odd columns are stored apart, so that adjacent outputs read adjacent
    # pixels.
    A = te.compute(
        (batch, channels, deep, stride, along),
        lambda n, c, y, s, x: P[n, c, y, x * stride + s],
        name="A",
    )
    i, j = te.reduce_axis((0, kernel), name="i"), te.reduce_axis((0, kernel), name="j")
    T = te.compute(
        (batch, channels, blocks, rows, across),
        lambda n, c, b, y, x: te.sum(
            A[n, c, (b * rows + y) * stride + i, j % stride, x + j // stride] * W[c, i, j],
            axis=[i, j],
        ),
        name="T",
    )
    Y = te.compute(
        (batch, channels, high, wide),
        lambda n, c, y, x: T[n, c, y // rows, y % rows, x],
        name="Y",
    )
    schedule = _schedule([X, W, Y])
    _order_depthwise(schedule, stride)
    return schedule


def _few_rows(high: int) -> int:
    """Rows of a tile, chosen so that few lie past the edge of an output of that height.

    A tile holds one vector of sums per row, and reads one vector of pixels per row: six rows fill
    16 registers. With fewer sums, each waits for its previous addition.
    """
    return min(range(4, 8), key=lambda rows: (-(-high // rows) * rows, abs(rows - 6)))


def _order_depthwise(schedule: Any, stride: int) -> None:
    """One channel after the other, from padding to output; channels shared among threads."""
    if stride == 1:
        schedule.compute_inline(schedule.get_sblock("A"))
    P, T, Y = (schedule.get_sblock(name) for name in "PTY")
    n, c, b, y, x, i, j = schedule.get_loops(T)
    v, x = schedule.split(x, [None, host().vector_lanes])
    # A row of pixels serves the sums of several rows. With i inside, it is read once.
    schedule.reorder(n, c, b, v, j, i, y, x)
    outer = schedule.fuse(n, c)
    schedule.parallel(outer)
    if stride > 1:
        schedule.compute_at(schedule.get_sblock("A"), outer, preserve_unit_loops=True)
    schedule.compute_at(P, outer, preserve_unit_loops=True)
    schedule.reverse_compute_at(Y, b, preserve_unit_loops=True)
    schedule.set_scope(T, 0, "local")
    schedule.vectorize(x)
    for each in (y, i, j):
        schedule.unroll(each)
    schedule.decompose_reduction(T, j)


def attention(queries: int, keys: int) -> Any:  # a tvm.s_tir.Schedule
    """softmax(Q Kᵀ / sqrt(64)) V, as fast as it goes.

    The arguments are those of the chapter's stub.
    """
    lanes = host().vector_lanes
    columns = HEAD if host().vector_registers == 32 else 2 * lanes
    rows = min(6, queries)
    panels = -(-keys // columns)
    blocks = -(-queries // rows)
    Q = te.placeholder((queries, HEAD), name="Q")
    K, V = te.placeholder((keys, HEAD), name="K"), te.placeholder((keys, HEAD), name="V")
    # Keys lie side by side in panels. Copies of the last key, of weight 0, fill the last panel.
    B = te.compute(
        (panels, HEAD, columns),
        lambda b, d, j: K[tvm.tirx.min(b * columns + j, keys - 1), d] * HEAD**-0.5,
        name="B",
    )
    d = te.reduce_axis((0, HEAD), name="d")
    S = te.compute(
        (blocks, panels, rows, columns),
        lambda b, p, i, j: te.sum(
            Q[tvm.tirx.min(b * rows + i, queries - 1), d] * B[p, d, j], axis=d
        ),
        name="S",
    )
    E, L = _weights(S, keys, lanes)
    r = te.reduce_axis((0, keys), name="r")
    O = te.compute(
        (blocks, rows, HEAD),
        lambda b, i, c: te.sum(E[b, r // columns, i, r % columns] * V[r, c], axis=r),
        name="O",
    )
    Y = te.compute(
        (queries, HEAD), lambda i, c: O[i // rows, i % rows, c] / L[i // rows, i % rows], name="Y"
    )
    schedule = _schedule([Q, K, V, Y])
    _order_attention(schedule, rows, columns)
    return schedule


def _weights(S: Any, keys: int, lanes: int) -> tuple[Any, Any]:
    """exp(S - row maximum), which never overflows, and the sum of each row.

    Columns past the last key have weight 0.
    """
    blocks, panels, rows, columns = (int(extent) for extent in S.shape)

    def of_rows(values: Any, reduce: Any, names: str) -> Any:
        """Reduce in vectors first, lane by lane, then the lanes to one value."""
        p, v = (
            te.reduce_axis((0, panels), name="p"),
            te.reduce_axis((0, columns // lanes), name="v"),
        )
        l = te.reduce_axis((0, lanes), name="l")
        by_lane = te.compute(
            (blocks, rows, lanes),
            lambda b, i, at: reduce(values[b, p, i, v * lanes + at], axis=[p, v]),
            name=names[0],
        )
        return te.compute(
            (blocks, rows), lambda b, i: reduce(by_lane[b, i, l], axis=l), name=names[1]
        )

    M = of_rows(S, te.max, "NM")
    D = te.compute(S.shape, lambda b, p, i, j: S[b, p, i, j] - M[b, i], name="D")
    F = topi.fast_exp(D)
    E = te.compute(
        S.shape,
        lambda b, p, i, j: tvm.tirx.Select(p * columns + j < keys, F[b, p, i, j], 0.0),
        name="E",
    )
    return E, of_rows(E, te.sum, "HL")


def _order_attention(schedule: Any, rows: int, columns: int) -> None:
    """A group of queries passes through all stages before the next begins."""
    _inline(schedule, but=tuple("BSNMEHLOY"))
    block = {name: schedule.get_sblock(name) for name in "BSNMEHLOY"}
    i, c = schedule.get_loops(block["Y"])
    outer, _ = schedule.split(i, [None, rows])
    schedule.parallel(outer)
    schedule.vectorize(c)
    for name in "OLHEMNS":
        schedule.compute_at(schedule.get_sblock(name), outer, preserve_unit_loops=True)
    schedule.parallel(schedule.get_loops(block["B"])[0])
    # The sums of the scores and of the output stay in registers.
    *_, panel, i, j, d = schedule.get_loops(block["S"])
    step, unrolled = schedule.split(d, [None, 4])
    schedule.reorder(panel, step, unrolled, i, j)
    schedule.vectorize(j)
    schedule.unroll(i)
    schedule.unroll(unrolled)
    write = schedule.cache_write(block["S"], 0, "local")
    schedule.reverse_compute_at(write, panel, preserve_unit_loops=True)
    _copy_tile(schedule, write)
    schedule.decompose_reduction(block["S"], step)
    *_, i, c, r = schedule.get_loops(block["O"])
    part, c = schedule.split(c, [None, columns])
    schedule.reorder(part, r, i, c)
    schedule.vectorize(c)
    schedule.unroll(i)
    schedule.set_scope(block["O"], 0, "local")
    schedule.decompose_reduction(block["O"], r)
    schedule.vectorize(schedule.get_loops(block["E"])[-1])
    for by_lane in (block["N"], block["H"]):
        *_, i, lane, p, v = schedule.get_loops(by_lane)
        schedule.reorder(p, v, lane)
        schedule.vectorize(lane)
        schedule.decompose_reduction(by_lane, p)


def _copy_tile(schedule: Any, block: Any) -> None:
    """Unroll the rows of a copy and vectorize its columns, so that its indices are constant."""
    *_, across, along = schedule.get_loops(block)
    schedule.vectorize(along)
    schedule.unroll(across)
