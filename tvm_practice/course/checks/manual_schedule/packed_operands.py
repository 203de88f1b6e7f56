"""The tensor expressions of `packed_matmul`: packed operands and their product."""

import math
import re
from typing import Any

import numpy as np

from tvm_practice.course.checks.manual_schedule.common import PHASE, Function, ceil_div
from tvm_practice.course.expect import (
    draw_distinct,
    draw_normal,
    expect,
    expect_close,
    expect_type,
    fresh_rng,
    varied,
)
from tvm_practice.course.lowering import (
    build_expression,
    build_expressions,
    lower_expression,
    stages_of,
)
from tvm_practice.engines import CURRENT
from tvm_practice.viz.loop_nest import format_nest, loop_nest


@PHASE.exercise(
    "pack_operand",
    engine=CURRENT,
    step_of="packed_matmul",
    title="declare a copy of A or B in the order in which tiles read it",
    hints=(
        "One te.compute of three indices: panel, step of the sum, and row or column of the panel. "
        "First work out which row or column of X an element of the copy comes from.",
        "It is row or column b * width + w: X[b * width + w, r] with axis 0, X[r, b * width + w] "
        "with axis 1. The number of panels is size = int(X.shape[axis]) over width, rounded up: "
        "-(-size // width).",
        "te.compute((panels, depth, width), lambda b, r, w: te.if_then_else(te.all("
        "b * width + w < size, r < k), X[…], 0.0), name=…); X.op.name is X's name.",
    ),
    looks_like="""
        A_packed of A (5, 3), axis 0, width 2, depth 4
        panel 0: 0.0 1.0 | 0.1 1.1 | 0.2 1.2 | 0.0 0.0
        panel 1: 2.0 3.0 | 2.1 3.1 | 2.2 3.2 | 0.0 0.0
        panel 2: 4.0 0.0 | 4.1 0.0 | 4.2 0.0 | 0.0 0.0
    """,
    demonstrate=lambda pack_operand: _shown_packing(pack_operand),
)
def check_pack_operand(pack_operand: Function) -> None:
    from tvm import te

    rows, columns = draw_distinct(2, [3, 4, 5, 6])
    m, n, k = draw_distinct(3, range(13, 30))
    far = [int(each) for each in fresh_rng().integers(100_000, 140_000, 4)]
    for name, axis, size, steps, width, depth in (
        ("A", 0, m, k, rows, k + 3),
        ("B", 1, n, k, columns, k + 2),
        ("Queries", 0, 3 * rows, k, rows, k),
        ("kernel_matrix", 1, 2, 3, 5, 4),
        ("kernel_matrix", 1, 2, 3, 5, 4),  # another tensor, and then another name
        ("K", 1, 2, 3, 5, 4),
        ("P", 1, 6, 6, 4, 7),  # square, and one step more than X has
        ("Q", 0, 6, 48, 4, 48),
        ("A", 0, m + 1, k, rows, k + 3),  # not the one above: nothing is kept from call to call
        *(
            ("PQ"[at % 2], at % 2, size, steps, width, max(depth, steps))
            for at, (size, steps, width, depth) in enumerate(varied(m, k, rows, k + 1))
        ),
        ("P", 1, 2 * columns + 1, columns, columns, columns),  # all that may be equal is
        ("P", 1, columns, columns, columns, columns),
        ("Q", 0, rows, rows, rows, rows),
        ("P", 0, 7, 5, 1, 6),  # panels of one row, and of one column
        ("Q", 1, 7, 5, 1, 6),
        ("Q", 0, 5, 420, 3, 420),  # a multiple of most small numbers
        ("Q", 1, 420, 5, 7, 6),
        ("A", 0, 3, 2, 2, int(fresh_rng().integers(5000, 9000))),
        ("P_0", 0, far[0], 3, rows, 4),  # one number after the other is large
        ("Q_12", 1, 3, far[1], 2, far[1] + 1),
        ("P1", 1, far[2] + 5, 2, far[2], 3),
        ("Q2_", 0, 5, 2, far[3], 3),
    ):
        shape = (size, steps) if axis == 0 else (steps, size)
        X = te.placeholder(shape, name=name)
        packed = pack_operand(X, axis, width, depth)
        what = f"pack_operand({name} {shape}, {axis}, {width}, {depth})"
        expect_type(packed, te.Tensor, f"{what} returns the te.Tensor of te.compute")
        expect(
            str(packed.op.name) == f"{name}_packed",
            expected=f"{what} named {name}_packed",
            seen=str(packed.op.name),
            look='the name= of te.compute: X.op.name with "_packed" after it',
        )
        _expect_float32(packed, what)
        expect(
            len(packed.op.input_tensors) == 1 and packed.op.input_tensors[0].same_as(X),
            expected=f"{what}, whose elements are read from {name} itself",
            seen=f"read from {', '.join(str(each.op.name) for each in packed.op.input_tensors)}",
            look="a te.compute between: one te.compute makes the copy",
        )
        found, wanted = tuple(map(int, packed.shape)), (ceil_div(size, width), depth, width)
        expect(
            found == wanted,
            expected=f"{what} of shape {wanted}: panels, depth, width",
            seen=str(found),
            look="the shape given to te.compute: panels rounded up, then depth, then width",
        )
        (x,) = draw_normal(shape)
        run = build_expression([X, packed])
        expect_close(
            run(x),
            _packed_values(x, axis, width, depth),
            what=what,
            look="whether rows (axis 0) or columns (axis 1) of X are cut into panels, and the two "
            "conditions of te.all: b * width + w inside the axis, r less than k",
        )
        x[-1, :] = x[:, -1] = np.inf
        x[0, :] = -np.inf
        x[0, 0] = np.nan
        expect(
            np.array_equal(run(x), _packed_values(x, axis, width, depth), equal_nan=True),
            expected=f"{what}: zeros past the edge, even where X holds infinities; X's NaN is kept",
            seen="a NaN or an infinity past the edge, or a zero in place of one inside X",
            look="te.if_then_else chooses 0.0 there; an element of X times 0 is NaN if it is "
            "infinite",
        )
        _expect_inside(X, packed, what)


def _expect_float32(tensor: Any, what: str) -> None:
    expect(
        str(tensor.dtype) == "float32",
        expected=f"{what} in float32, as its operands are",
        seen=str(tensor.dtype),
        look="astype and constants of another type: a vector holds half as many float64",
    )


def _expect_inside(X: Any, packed: Any, what: str) -> None:
    """All elements of X that are read are there."""
    from tvm_practice.viz.access import access_program, follow

    read = follow(access_program(lower_expression([X, packed]))).of(str(X.op.name)).elements
    there = math.prod(map(int, X.shape))
    expect(
        bool(((read >= 0) & (read < there)).all()),
        expected=f"{what} reads nothing past the end of {X.op.name}, which has {there} elements",
        seen=f"it reads number {int(read.max())}",
        look="te.if_then_else evaluates only the chosen value; Select evaluates both",
    )


def _packed_values(x: np.ndarray, axis: int, width: int, depth: int) -> np.ndarray:
    """What `pack_operand` makes of these values."""
    by_step = x.T if axis == 0 else x  # [step][row or column]
    steps, size = by_step.shape
    blocks = ceil_div(size, width)
    padded = np.zeros((depth, blocks * width), "float32")
    padded[:steps, :size] = by_step
    return padded.reshape(depth, blocks, width).transpose(1, 0, 2)


def _shown_packing(pack_operand: Function) -> str:
    from tvm import te

    A = te.placeholder((5, 3), name="A")
    packed = pack_operand(A, 0, 2, 4)
    values = np.add.outer(np.arange(5), np.arange(3) / 10).astype("float32")
    lines = [f"{packed.op.name} of A (5, 3), axis 0, width 2, depth 4"]
    for index, panel in enumerate(build_expression([A, packed])(values)):
        said = " | ".join(" ".join(f"{each:.1f}" for each in step) for step in panel)
        lines.append(f"panel {index}: {said}")
    return "\n".join(lines)


@PHASE.exercise(
    "packed_product",
    engine=CURRENT,
    step_of="packed_matmul",
    title="declare the product of packed operands, tile by tile",
    hints=(
        "Two stages. T has four indices: two select the tile and two the element in it, and its "
        "sum runs over the second axis of both operands. Then C: which tile holds row i and "
        "column j?",
        "r = te.reduce_axis((0, depth)); T is the te.sum of A_packed[bi, r, i] * "
        "B_packed[bj, r, j]. The shapes of both operands give all extents.",
        "C = te.compute((m, n), lambda i, j: T[i // rows, j // columns, i % rows, j % columns], "
        'name="C"), and name="T" for the other.',
    ),
    looks_like="""
        for bi in serial(8):
            for bj in serial(3):
                for i in serial(8):
                    for j in serial(16):
                        for k in serial(32):
                            T: T <- A_packed, B_packed, T
        for i in serial(64):
            for j in serial(48):
                C: C <- T
    """,
    demonstrate=lambda packed_product: format_nest(
        loop_nest(lower_expression(_product_of(packed_product, (64, 48), (8, 16), 32)))
    ),
)
def check_packed_product(packed_product: Function) -> None:
    from tvm import te

    rows, columns = draw_distinct(2, [2, 3, 4, 5])
    (few,) = draw_distinct(1, range(7, 20))
    ragged, whole = (3 * rows - 1, 5 * columns + 1), (2 * rows, 3 * columns)
    # The last ones are declared only: so many steps exceed any bound.
    square = rows, rows
    (some,) = draw_distinct(1, range(20, 200))
    far = [int(each) for each in fresh_rng().integers(20_000, 40_000, 2)]
    deep = int(fresh_rng().integers(5000, 9000))
    of_any_size = varied(3 * rows - 1, 5 * columns + 1, rows, columns, small=True)
    for (m, n), tile, depth in (
        (ragged, (rows, columns), few),
        (whole, (rows, columns), few),
        ((rows, columns), (rows, columns), few),  # a single tile, whole and cut
        ((rows - 1, columns), (rows, columns), few),
        ((3 * rows - 1, 2 * rows), square, few),
        ((3 * rows - 1, 1), (rows, columns), few),
        ((500 * rows - 1, 1), (rows, 1), few),  # many panels
        ((1, 500 * columns - 1), (1, columns), few),
        ((2 * some - 1, 5), (some, 2), few),  # large tiles
        ((5, 2 * some - 1), (2, some), few),
        ((far[0] + 3, 3), (far[0], 2), few),
        ((3, far[1] + 3), (2, far[1]), few),
        ((5, 3), (rows, columns), deep),
        (whole, (rows, columns), _DECLARED_ONLY),
        ((7, 7), (6, 6), 64),
        ((64, 1), (16, 8), 1),
        ((1, 33), (1, 1), 40),
        ((1, 1), (1, 1), few),
        *(((m, n), (down, across), _DECLARED_ONLY) for m, n, down, across in of_any_size),
    ):
        tensors = _product_of(packed_product, (m, n), tile, depth)
        expect_type(tensors[-1], te.Tensor, "packed_product returns the te.Tensor C")
        stages = stages_of(tensors[-1])
        shapes = {name: tuple(map(int, each.shape)) for name, each in stages.items()}
        tiles = (ceil_div(m, tile[0]), ceil_div(n, tile[1]), *tile)
        expect(
            shapes == {"T": tiles, "C": (m, n)},
            expected=f"stages T of shape {tiles} and C of shape {(m, n)}",
            seen=str(shapes),
            look="the shapes and names of both te.compute: T has the tiles, row panels first",
        )
        for name, stage in stages.items():
            _expect_float32(stage, f"stage {name}")
        steps = math.prod(int(each.dom.extent) for each in stages["T"].op.reduce_axis)
        expect(
            steps == depth,
            expected=f"a sum over all {depth} steps",
            seen=f"over {steps}",
            look="te.reduce_axis((0, depth)), over all of the depth: the second extent of both",
        )
        # Its loops, not its formula: TVM warns where it prints a tensor's elements.
        loops = lower_expression([*stages["T"].op.input_tensors, stages["T"]]).script()
        conditions = [line for line in loops.split("\n") if re.search("if_then_else|Select", line)]
        expect(
            not conditions,
            expected="a sum without a condition: past the edges both operands hold zeros",
            seen="\n".join(each.strip() for each in conditions),
            look="the expression inside te.sum: only the product",
        )
        if depth == _DECLARED_ONLY:
            continue
        a, b = draw_normal(*(tuple(map(int, each.shape)) for each in tensors[:2]))
        if tile == square:
            a *= 2.0**20  # large values, too
        got_t, got_c = build_expressions(tensors[:2], [stages["T"], stages["C"]])(a, b)
        want = np.einsum("xri,yrj->xyij", a, b)
        look = "the indices of A_packed and B_packed, and te.reduce_axis over all of the depth"
        atol = 1e-5 * float(np.abs(a).max()) * max(1.0, (depth / 20) ** 0.5)
        expect_close(got_t, want, what=f"T of {tiles}", look=look, atol=atol)
        look = (
            "the indices of T, first the tile and then the place in it: "
            "T[i // rows, j // columns, i % rows, j % columns]"
        )
        flat = want.transpose(0, 2, 1, 3).reshape(tiles[0] * tile[0], tiles[1] * tile[1])
        expect_close(got_c, flat[:m, :n], what=f"C of {(m, n)}", look=look, atol=atol)
        _expect_elements_apart(tensors, stages["C"], got_c)
    for names in (("A_packed", "B_packed"), ("A_packed", "B_packed"), ("panels", "others")):
        tensors = _product_of(packed_product, (3, 5), (2, 3), 4, names)
        T = stages_of(tensors[-1])["T"]
        read = [str(each.op.name) for each in T.op.input_tensors]
        expect(
            all(any(each.same_as(given) for given in tensors[:2]) for each in T.op.input_tensors),
            expected=f"T computed from the operands given, {names[0]} and {names[1]}",
            seen=f"from {' and '.join(read)} of an earlier call",
            look="results kept between calls: operands of the same shapes are other tensors",
        )
    a, b = draw_normal(*(tuple(map(int, each.shape)) for each in tensors[:2]))
    (got,) = build_expressions(tensors[:2], [T])(a, b)
    expect_close(
        got,
        np.einsum("xri,yrj->xyij", a, b),
        what=f"T of operands called {names[0]} and {names[1]}",
        look="the formula of T, whatever its operands are called",
        atol=1e-4,
    )


_DECLARED_ONLY = 1_000_003  # steps of a sum, too many to run


def _expect_elements_apart(tensors: list[Any], C: Any, before: np.ndarray) -> None:
    """An infinity in the first row of A changes that row of C, and nothing in the others."""
    a, b = draw_normal(*(tuple(map(int, each.shape)) for each in tensors[:2]))
    run = build_expressions(tensors[:2], [C])
    (want,) = run(a, b)
    a[0, 0, 0] = np.inf
    (got,) = run(a, b)
    expect(
        np.array_equal(got[1:], want[1:]),
        expected="an infinity in row 0 of A seen in row 0 of C alone",
        seen="other rows of C change with it",
        look="the formula of C: one element of T, as it is",
    )


def _product_of(
    packed_product: Function,
    sizes: tuple[int, int],
    tile: tuple[int, int],
    depth: int,
    names: tuple[str, str] = ("A_packed", "B_packed"),
) -> list[Any]:
    """[A_packed, B_packed, C], both operands placeholders."""
    from tvm import te

    blocks = [ceil_div(*each) for each in zip(sizes, tile, strict=True)]
    operands = [
        te.placeholder((count, depth, width), name=name)
        for name, count, width in zip(names, blocks, tile, strict=True)
    ]
    return [*operands, packed_product(*operands, *sizes)]
