"""Phase 1's exercises and how they are graded: the declaration's shape, then its values."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import expect, expect_close, expect_unchanged, fresh_rng
from tvm_practice.course.lowering import build_expressions, lower_expression, stages_of
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.viz.loop_nest import format_nest, loop_nest

PHASE = Phase(
    number=1,
    module="te_basics",
    title="tensor expressions",
    lanes=(CURRENT, CLASSIC),
    question=(
        "Why does TVM separate what is computed from how it is computed? What does that allow that "
        "PyTorch's eager mode cannot do?"
    ),
)

Declare = Callable[..., list[Any]]


def _default_loops(tensors: list[Any]) -> str:
    return format_nest(loop_nest(lower_expression(tensors)))


def _expect_tensors(
    tensors: Any, shapes: dict[str, tuple[int, ...]], name: str, *, named: Collection[str]
) -> None:
    """`tensors` is a list of TE tensors of these shapes, float32; `named` must have their names."""
    expect(
        isinstance(tensors, list | tuple) and len(tensors) == len(shapes),
        expected=f"{name} returns the list [{', '.join(shapes)}]",
        seen=f"{type(tensors).__name__}"
        + (f" of length {len(tensors)}" if isinstance(tensors, list | tuple) else ""),
        look="the return statement",
    )
    for tensor, (label, shape) in zip(tensors, shapes.items(), strict=True):
        expect(
            type(tensor).__name__ == "Tensor" and hasattr(tensor, "op"),
            expected=f"{label} is a tensor of te.placeholder or te.compute",
            seen=f"a {type(tensor).__module__}.{type(tensor).__name__}",
            look="declare with TVM's te, do not compute with numpy",
        )
        seen = tuple(int(extent) for extent in tensor.shape)
        expect(
            seen == shape,
            expected=f"{label} of shape {shape}",
            seen=f"shape {seen}",
            look=f"the shape given where {label} is declared",
        )
        expect(
            str(tensor.dtype) == "float32",
            expected=f"{label} of type float32",
            seen=str(tensor.dtype),
            look=f"dtype= where {label} is declared",
        )
        expect(
            label not in named or str(tensor.op.name) == label,
            expected=f'a tensor named "{label}"',
            seen=f'"{tensor.op.name}"',
            look=f"name= where {label} is declared",
        )


def _expect_stages(
    tensors: list[Any], shapes: dict[str, tuple[int, ...]], *, rows: Collection[str] = ()
) -> dict[str, Any]:
    """The output is made of the stages of these names and shapes and no others, float32.

    Those of `rows` have a number per row, which may be a column: no docstring says otherwise.
    """
    stages = {name: each.op for name, each in stages_of(tensors[-1]).items()}
    missing = [name for name in shapes if name not in stages]
    expect(
        not missing,
        expected=f"stages named {', '.join(shapes)}",
        seen=f"stages named {', '.join(sorted(stages)) or 'nothing'}",
        look=f"the name= of each te.compute; missing: {', '.join(missing)}",
    )
    extra = [name for name in stages if name not in shapes]
    expect(
        not extra,
        expected=f"{len(shapes)} stage{'s' * (len(shapes) > 1)}: {', '.join(shapes)}",
        seen=f"{', '.join(extra)} as well",
        look="the extra te.compute: a schedule finds each stage by its name",
    )
    for name, shape in shapes.items():
        output = stages[name].output(0)
        seen = tuple(int(extent) for extent in output.shape), str(output.dtype)
        expect(
            seen == (shape, "float32") or (name in rows and seen == ((*shape, 1), "float32")),
            expected=f"the stage {name} of shape {shape}, float32",
            seen=f"shape {seen[0]}, {seen[1]}",
            look=f"the te.compute named {name}",
        )
    others = [
        each
        for stage in stages.values()
        for each in stage.input_tensors
        if type(each.op).__name__ == "PlaceholderOp"
        and not any(each.op.same_as(given.op) for given in tensors[:-1])
    ]
    expect(
        not others,
        expected=f"inputs {', '.join(str(each.op.name) for each in tensors[:-1])}, and no others",
        seen=f"{', '.join(sorted({str(each.op.name) for each in others}))} as well",
        look="the list that is returned: each input is in it",
    )
    return stages


def _expect_reduction(stages: dict[str, Any], name: str, extent: int) -> None:
    axes = [int(axis.dom.extent) for axis in stages[name].reduce_axis]
    expect(
        axes == [extent],
        expected=f"{name} reduces over one axis of extent {extent}",
        seen=f"reduce axes of extents {axes}" if axes else "no reduce axis",
        look=f"te.reduce_axis((0, {extent})) and axis= in {name}",
    )
    others = [
        other for other, stage in stages.items()
        if other != name and any(axis.same_as(stages[name].reduce_axis[0])
                                 for axis in stage.reduce_axis)
    ]  # fmt: skip
    expect(
        not others,
        expected=f"{name} reduces over an axis of its own",
        seen=f"{', '.join(others)} reduces over the same one",
        look="te.reduce_axis: one for each reduction. An axis is a loop, and classic TVM "
        "refuses to schedule two stages that share one",
    )
    (reduction,) = stages[name].body
    condition = getattr(reduction, "condition", None)
    expect(
        condition is None or str(condition) in ("True", "T.bool(True)"),
        expected=f"{name} takes every element along its axis",
        seen=f"those alone for which {condition}",
        look=f"where= in {name}: classic TVM leaves the other elements out",
    )


Stages = dict[str, np.ndarray]


def _runner(tensors: list[Any], stages: dict[str, Any]) -> Callable[..., Stages]:
    """A function from the inputs to each stage's values."""
    outputs = [stage.output(0) for name, stage in stages.items() if name != tensors[-1].op.name]
    run = build_expressions(tensors[:-1], [*outputs, tensors[-1]])
    names = [str(each.op.name) for each in (*outputs, tensors[-1])]

    def compute(*inputs: np.ndarray) -> Stages:
        kept = [each.copy() for each in inputs]
        results = run(*inputs)
        for before, after, tensor in zip(kept, inputs, tensors, strict=False):
            expect_unchanged(before, after, str(tensor.op.name))
        return dict(zip(names, results, strict=True))

    return compute


def _sizes(rng: Any, low: int, high: int, count: int) -> Iterator[tuple[int, ...]]:
    """Sizes to grade values at: different ones, equal ones that no bound expects, 1, and huge.

    Where sizes are equal, an index in another one's place is still inside the tensor.
    """
    yield tuple(int(size) for size in rng.choice(np.arange(low, high), count, replace=False))
    yield (int(rng.integers(260, 300)),) * count
    yield (1,) * count
    few, many = int(rng.integers(2, 6)), int(rng.integers(40, 60))
    for at in range(count):  # one larger than the others by far, then one of them 1
        yield tuple(many if index == at else few for index in range(count))
        yield tuple(1 if index == at else many for index in range(count))
    huge = int(rng.integers(66_000, 140_000))
    for at in range(count):
        yield tuple(huge if index == at else 2 for index in range(count))
    same, other = (int(size) for size in rng.choice(np.arange(2, 11), 2, replace=False))
    for at in range(count):
        if count > 2:
            yield tuple(other if index == at else same for index in range(count))


def _one_changed(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """`sizes` with one of them larger: an answer may have kept something from an earlier call.

    Then with one so large that it exceeds any bound, and with all of them large and equal: these
    are declared, not run.
    """
    for more in (1, 1_000_000):
        for at in range(len(sizes)):
            yield (*sizes[:at], sizes[at] + more, *sizes[at + 1 :])
    for same in (512, 4096, 100_000 + sizes[0]):
        yield (same,) * len(sizes)


# What is drawn is multiplied by it: a formula that is right for small values alone is not.
_SCALES = (1.0, 2.0**-14, 2.0**14)
_MANY = 1000


def _draw(rng: Any, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Factors of each shape. Many have whole numbers, whose sums are exact in any order."""
    many = max(extent for shape in shapes for extent in shape) > _MANY
    return [
        rng.integers(-4, 5, shape).astype("float32")
        if many
        else rng.standard_normal(shape, dtype="float32")
        for shape in shapes
    ]


@PHASE.exercise(
    "matmul",
    engine=CURRENT,
    title="declare C[i, j] = sum over k of A[i, k] * B[k, j]",
    hints=(
        "Three declarations: two te.placeholder for the inputs, one te.compute for C. The index "
        "that is summed over is neither an index of C nor an input; it is a te.reduce_axis.",
        "A placeholder is te.placeholder((rows, columns), dtype='float32', name='A'). "
        "te.reduce_axis((0, k), name='k') gives the summed index; give it another Python name: "
        "k is the number.",
        "C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name='C'), where "
        "r is the reduce axis. Return [A, B, C].",
    ),
    looks_like="""
        for i in serial(8):
            for j in serial(8):
                for k in serial(8):
                    C: C <- A, B, C
    """,
    demonstrate=lambda matmul: _default_loops(matmul(8, 8, 8)),
)
def check_matmul(matmul: Declare) -> None:
    rng = fresh_rng()

    def declared(m: int, n: int, k: int) -> tuple[list[Any], dict[str, Any]]:
        tensors = matmul(m, n, k)
        _expect_tensors(tensors, {"A": (m, k), "B": (k, n), "C": (m, n)}, "matmul", named="ABC")
        stages = _expect_stages(tensors, {"C": (m, n)})
        _expect_reduction(stages, "C", k)
        return tensors, stages

    for m, n, k in _sizes(rng, 17, 60, 3):
        tensors, stages = declared(m, n, k)
        for others in _one_changed((m, n, k)):
            declared(*others)
        run = _runner(tensors, stages)
        for scale in _SCALES:
            a, b = _draw(rng, (m, k), (k, n))
            a *= np.float32(scale)
            expect_close(
                run(a, b)["C"],
                a @ b,
                what=f"C of {m}x{k} by {k}x{n}, A about {scale:g}",
                look="the indices of A and B in the formula, and the term of the sum",
                atol=1e-4 * scale,
            )
        a[0], b[0] = 0, np.inf
        with np.errstate(invalid="ignore"):
            want = a @ b
        look = "the sum: it adds every product, including 0 times infinity, which is NaN"
        expect_close(run(a, b)["C"], want, what=f"C for a B with infinities, k={k}", look=look)


@PHASE.exercise(
    "dense_bias_relu",
    engine=CURRENT,
    title="declare an MLP layer in three stages",
    hints=(
        "A stage is one te.compute; its formula may read earlier stages. Here: dense (a "
        "reduction), biased (reads dense and bias), Y (reads biased).",
        "The weight's rows are the outputs, so the sum runs over the second index of both X and "
        "W: X[i, k] * W[j, k]. The bias has one index, that of the output.",
        "biased = te.compute((batch, outputs), lambda i, j: dense[i, j] + bias[j], name='biased'); "
        "Y = te.compute((batch, outputs), lambda i, j: te.max(biased[i, j], 0.0), name='Y').",
    ),
    looks_like="""
        for i in serial(8):
            for j in serial(8):
                for k in serial(8):
                    dense: dense <- W, X, dense
        for i in serial(8):
            for j in serial(8):
                biased: biased <- bias, dense
        for i in serial(8):
            for j in serial(8):
                Y: Y <- biased
    """,
    demonstrate=lambda dense_bias_relu: _default_loops(dense_bias_relu(8, 8, 8)),
)
def check_dense_bias_relu(dense_bias_relu: Declare) -> None:
    rng = fresh_rng()

    def declared(batch: int, inputs: int, outputs: int) -> tuple[list[Any], dict[str, Any]]:
        tensors = dense_bias_relu(batch, inputs, outputs)
        shapes = {"X": (batch, inputs), "W": (outputs, inputs), "bias": (outputs,)}
        shapes["Y"] = (batch, outputs)
        _expect_tensors(tensors, shapes, "dense_bias_relu", named="Y")
        stages = _expect_stages(tensors, dict.fromkeys(("dense", "biased", "Y"), shapes["Y"]))
        _expect_reduction(stages, "dense", inputs)
        return tensors, stages

    for batch, inputs, outputs in _sizes(rng, 11, 50, 3):
        tensors, stages = declared(batch, inputs, outputs)
        for others in _one_changed((batch, inputs, outputs)):
            declared(*others)
        run = _runner(tensors, stages)
        for scale in _SCALES:
            x, w, bias = _draw(rng, (batch, inputs), (outputs, inputs), (outputs,))
            x *= np.float32(scale)
            bias *= np.float32(scale)
            found = run(x, w, bias)
            for name, want, look in (
                ("dense", x @ w.T, "the indices of X and W: the weight has one row per output"),
                ("biased", x @ w.T + bias, "the index of bias, and the stage to which it is added"),
                ("Y", np.maximum(x @ w.T + bias, 0), "the maximum with 0, of biased"),
            ):
                expect_close(
                    found[name], want, what=f"{name}, values about {scale:g}", look=look,
                    atol=1e-4 * scale,
                )  # fmt: skip
            for name, want, look in (  # exact, of the stage before it
                ("biased", found["dense"] + bias, "the sum of dense and bias, and nothing else"),
                ("Y", np.maximum(found["biased"], 0), "te.max(biased, 0.0): exactly 0 below 0"),
            ):
                what = f"{name} computed from the stage before it, for values about {scale:g}"
                expect_close(found[name], want, what=what, look=look, atol=0, rtol=1e-6)
        x[0], w[:, 0] = 0, np.inf
        with np.errstate(invalid="ignore"):
            want = x @ w.T
        look = "the sum: it adds every product, including 0 times infinity, which is NaN"
        expect_close(
            run(x, w, bias)["dense"], want, what="dense for a W with infinities", look=look
        )
        bias[:] = np.where(np.arange(outputs) % 2, -np.inf, np.inf)
        infinite = run(x, np.ones_like(w), bias)["Y"]
        look = "te.max(biased, 0.0): an infinity stays one, and one below 0 is 0"
        want = np.broadcast_to(np.maximum(bias, 0), infinite.shape)
        expect_close(infinite, want, what="Y for infinite biases", look=look)


@PHASE.exercise(
    "softmax",
    engine=CURRENT,
    title="declare a softmax that does not overflow",
    hints=(
        "Two stages reduce a row to a number (shape (rows,)), two have the shape of X. Each "
        "reduction needs a te.reduce_axis of its own.",
        "te.max(expression, axis=r) reduces by maximum as te.sum does by addition. The sum is "
        "over the exponents, not over X.",
        "row_max over X; exponent[i, j] = te.exp(X[i, j] - row_max[i]); row_sum over exponent; "
        "Y[i, j] = exponent[i, j] / row_sum[i].",
    ),
    looks_like="""
        for i in serial(8):
            for m in serial(8):
                row_max: row_max <- X, row_max
        for i in serial(8):
            for j in serial(8):
                exponent: exponent <- X, row_max
        for i in serial(8):
            for s in serial(8):
                row_sum: row_sum <- exponent, row_sum
        for i in serial(8):
            for j in serial(8):
                Y: Y <- exponent, row_sum
    """,
    demonstrate=lambda softmax: _default_loops(softmax(8, 8)),
)
def check_softmax(softmax: Declare) -> None:
    rng = fresh_rng()

    def declared(rows: int, columns: int) -> tuple[list[Any], dict[str, Any]]:
        shape = (rows, columns)
        tensors = softmax(*shape)
        _expect_tensors(tensors, {"X": shape, "Y": shape}, "softmax", named="Y")
        stages = _expect_stages(
            tensors,
            {"row_max": (rows,), "exponent": shape, "row_sum": (rows,), "Y": shape},
            rows=("row_max", "row_sum"),
        )
        _expect_reduction(stages, "row_max", columns)
        _expect_reduction(stages, "row_sum", columns)
        for name, wanted in (("row_sum", "exponent"), ("Y", "exponent and row_sum")):
            read = " and ".join(sorted(str(each.op.name) for each in stages[name].input_tensors))
            expect(
                read == wanted,
                expected=f"{name} computed from {wanted}",
                seen=f"from {read}",
                look=f"the te.compute named {name}: read the stage of exponents instead of "
                "computing them again",
            )
        return tensors, stages

    for shape in _sizes(rng, 11, 50, 2):
        tensors, stages = declared(*shape)
        for others in _one_changed(shape):
            declared(*others)
        run = _runner(tensors, stages)
        # Values around 200 overflow exp in float32 unless the maximum is subtracted first; those
        # around -200 give a sum of 0 unless it is, and those of ±1e4 do both. Rows of -1e6 and of
        # -1e37 have no number near 0: a maximum that begins at any but the least one is wrong.
        for scale, offset in (
            (3, 200), (3, -200), (1e4, 0), (0.1, 0), (3, -1e6), (1e35, -1e37),
        ):  # fmt: skip
            x = rng.standard_normal(shape, dtype="float32") * np.float32(scale) + np.float32(offset)
            found = run(x)
            _expect_softmax(found, x, f"for values around {offset or f'±{scale:g}'}")
            _expect_exact(found)


def _expect_exact(found: Stages) -> None:
    """Of a sum of 1 Y is the exponent itself: nothing that is added to be safe is so small."""
    (whole,) = np.nonzero(found["row_sum"].reshape(-1) == 1)
    what = "Y in the rows whose row_sum is 1"
    look = "the division by row_sum: row_sum is at least 1, so add nothing to it"
    expect_close(
        found["Y"][whole], found["exponent"][whole], what=what, look=look, whose="exponent",
        atol=0, rtol=0,
    )  # fmt: skip


def _expect_softmax(found: Stages, x: np.ndarray, which: str) -> None:
    largest = x.max(axis=1)
    exponent = np.exp(x.astype("float64") - largest[:, None])
    total = exponent.sum(axis=1)
    for name, want, look in (
        ("row_max", largest, "row_max: te.max over the whole row of X"),
        ("exponent", exponent, "whether the row's maximum is subtracted before exp"),
        ("row_sum", total, "the terms of row_sum: the exponents of the row"),
        ("Y", exponent / total[:, None], "exponent divided by row_sum of the same row"),
    ):
        expect_close(
            found[name].reshape(want.shape),
            want.astype("float32"),
            what=f"{name} {which}",
            look=look,
            # An exponent of 1e-30 is as exact as one of 1, and of what is far below it is 0.
            atol=1e-37,
            rtol=2e-3 if x.shape[1] > _MANY else 5e-6 if name == "Y" else 1e-4,
        )
    vanishing = found["exponent"][exponent < _LEAST]
    expect_close(
        vanishing,
        np.zeros_like(vanishing),
        what=f"exponent {which}, for differences below -110",
        look="te.exp of the difference itself: do not clip the difference first",
        atol=0,
    )


_LEAST = 1e-48  # less than a thousandth of the smallest float32
