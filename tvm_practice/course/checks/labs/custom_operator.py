"""Lab 7's exercises and how they are graded: what was built first, then its values."""

import itertools
import math
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    fail,
    fresh_rng,
    seed_torch,
    show,
    statements,
)
from tvm_practice.course.lowering import build_expressions, lower_expression, stages_of
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.viz.graph import format_graph, graph
from tvm_practice.viz.loop_nest import Loop, Statement, format_nest, loop_nest, paths

PHASE = Phase(
    number=7,
    module="labs.custom_operator",
    title="an operator of your own",
    lanes=(CURRENT, CLASSIC),
    builds_on=(
        "relay_import.import_relax",
        "relay_import.optimize_relax",
        "relay_import.build_relax",
        "relay_import.verify",
        "relay_import.import_relay",
        "relay_import.optimize_relay",
        "relay_import.build_relay",
    ),
    question=(
        "You can give the compiler an operator as a tensor expression, as a scheduled kernel, or "
        "as a library call. What does the compiler know in each case, and what can it no longer "
        "do?"
    ),
)

_LANES = 16
_numbers = itertools.count()


def _reference(
    x: np.ndarray, z: np.ndarray, weight: np.ndarray, eps: float, **wrong: bool
) -> np.ndarray:
    """The operator in float64; `wrong` switches the usual mistakes on."""
    x, z, weight = (each.astype("float64") for each in (x, z, weight))
    h = x / (1 + np.exp(-z)) if wrong.get("sigmoid") else x * z / (1 + np.exp(-z))
    squares = (h * h).sum(-1, keepdims=True)
    if not wrong.get("sum"):
        squares = squares / x.shape[-1]
    if wrong.get("outside"):
        scale = 1 / (np.sqrt(squares) + eps)
    else:
        scale = 1 / np.sqrt(squares + (0 if wrong.get("no_eps") else eps))
    result: np.ndarray = h * scale * (1 if wrong.get("no_weight") else weight)
    return result


_MISTAKES = {
    "sigmoid": "H is x · z · sigmoid(z): silu is sigmoid times its argument",
    "sum": "divide the sum of squares by the number of columns: it is a mean",
    "outside": "eps is added to the mean, inside the root",
    "no_eps": "eps is not added",
    "no_weight": "each column is multiplied by its weight W",
}


def _draw(shape: tuple[int, ...]) -> list[np.ndarray]:
    """New x, z and weight."""
    rng = fresh_rng()
    return [rng.standard_normal(each, dtype="float32") for each in (shape, shape, shape[-1:])]


def _placeholders(shape: tuple[int, ...]) -> list[Any]:
    from tvm import te

    shapes = {"X": shape, "Z": shape, "W": shape[-1:]}
    return [te.placeholder(each, name=name) for name, each in shapes.items()]


def _declared(shape: tuple[int, ...], eps: float = 1e-5) -> list[Any]:
    """The operator's tensors by the reference function."""
    from solutions.labs.custom_operator import rms_norm_gate

    inputs = _placeholders(shape)
    return [*inputs, rms_norm_gate(*inputs, eps=eps)]


def _compute(function: Callable[..., Any], shape: tuple[int, ...], eps: float) -> list[Any]:
    inputs = _placeholders(shape)
    return [*inputs, function(*inputs, eps=eps)]


@PHASE.exercise(
    "rms_norm_gate",
    engine=CURRENT,
    title="declare the operator in TOPI's form, for tensors of any rank",
    hints=(
        "Three calls of te.compute: H like the worked example's, S with a te.reduce_axis over the "
        "last dimension, Y of X's shape. A lambda of *i gets all the indices as a tuple.",
        "X[i] reads at a tuple of indices, and H[(*i, c)] at one index more, the reduced c; "
        "i[:-1] are the indices of the row, i[-1] is that of the column.",
        "S = te.compute(X.shape[:-1], lambda *i: te.sum(H[(*i, c)] * H[(*i, c)], axis=c), "
        'name="S"); Y is W[i[-1]] * H[i] * te.rsqrt(S[i[:-1]] / int(X.shape[-1]) + eps).',
    ),
    looks_like="""
        for i0 in serial(2):
            for i1 in serial(3):
                for i2 in serial(8):
                    H: H <- X, Z
        for i0 in serial(2):
            for i1 in serial(3):
                for c in serial(8):
                    S: S <- H, S
        for i0 in serial(2):
            for i1 in serial(3):
                for i2 in serial(8):
                    Y: Y <- H, S, W
    """,
    demonstrate=lambda rms_norm_gate: format_nest(
        loop_nest(lower_expression(_compute(rms_norm_gate, (2, 3, 8), 1e-5)))
    ),
)
def check_rms_norm_gate(rms_norm_gate: Callable[..., Any]) -> None:
    from tvm import te

    rng = fresh_rng()
    drawn = [
        tuple(int(each) for each in rng.choice([2, 3, 5, 7, 11], rank, replace=False))
        for rank in (2, 4, 3)
    ]
    drawn[2] = (*drawn[2][:2], 1)  # rows of one element
    for shape in (*drawn, (4, 4), (1, 64), (2, 2, 2, 2, 2)):
        rank = len(shape)
        eps = float(rng.uniform(0.2, 0.9) * (1e-7 if rank == 4 else 1)) * (shape != (4, 4))
        try:
            tensors = _compute(rms_norm_gate, shape, eps)
        except NotImplementedError:
            raise
        except Exception as error:
            if rank == 2:
                raise
            raise fail(
                f"a function of tensors of any rank, here {rank}",
                f"{type(error).__name__}: {(str(error).strip().splitlines() or ['?'])[-1]}",
                "lambda *i takes any number of indices; shapes come from X.shape",
            ) from error
        Y = tensors[-1]
        expect(
            isinstance(Y, te.Tensor),
            expected="the te.Tensor Y",
            seen=type(Y).__name__,
            look="the return statement: TOPI's functions return the tensor, not a list",
        )
        seen = tuple(int(extent) for extent in Y.shape)
        expect(
            seen == shape,
            expected=f"Y of X's shape {shape}",
            seen=f"shape {seen}",
            look="the shape given to te.compute: X.shape",
        )
        stages = {each.name: each for each in statements(loop_nest(lower_expression(tensors)))}
        expect(
            set(stages) == {"H", "S", "Y"},
            expected="three stages, named H, S and Y",
            seen=f"stages named {', '.join(stages)}",
            look="the name= of each te.compute, and H as a stage of its own: otherwise the gate "
            "is computed twice, for the sum and for Y",
        )
        expect(
            all("H" in stages[name].reads for name in "SY"),
            expected="S and Y read H",
            seen="; ".join(f"{name} reads {', '.join(stages[name].reads)}" for name in "SY"),
            look="the gate: without reading H, a stage computes it again",
        )
        _expect_stage_values(tensors, shape, eps)


def _expect_stage_values(tensors: list[Any], shape: tuple[int, ...], eps: float) -> None:
    """H, S and Y for common values, large ones, and a row of zeros; exp(z) may be infinite."""
    stages = stages_of(tensors[-1])
    seen = {name: tuple(int(extent) for extent in each.shape) for name, each in stages.items()}
    expect(
        seen == {"H": shape, "S": shape[:-1], "Y": shape},
        expected=f"H of shape {shape} and S of shape {shape[:-1]}, without the last dimension",
        seen=str(seen),
        look="the shapes given to te.compute",
    )
    run = build_expressions(tensors[:3], [stages["H"], stages["S"], stages["Y"]])
    for scale in (1.0, 30.0, 1e-3):
        arrays = _draw(shape)
        x, z = arrays[:2]
        x *= np.float32(scale)
        if eps:
            x[(0,) * (x.ndim - 1)] = 0
        z.flat[-2:] = -100, 100
        gated, summed, got = run(*arrays)
        _expect_formula(got, arrays, eps)
        want = x * z / (1 + np.exp(-z.astype("float64")))
        for name, found, expected in (("H", gated, want), ("S", summed, (want**2).sum(-1))):
            expect_close(
                found,
                expected,
                what=f"{name} of {found.shape}",
                look="H = X · silu(Z); S is the sum of H² over a row",
                atol=1e-4 * scale**2,
            )


def _expect_formula(got: np.ndarray, arrays: Sequence[np.ndarray], eps: float) -> None:
    """`got` is the operator's result; a usual mistake is called by its name."""
    x, z, weight = arrays
    infinite = "the gate: exp(z) is infinite in float32 for z above 88; te.sigmoid(z) is 1"
    look = (
        infinite
        if np.isnan(got).any()
        else next(
            (
                text
                for mistake, text in _MISTAKES.items()
                if np.allclose(got, _reference(x, z, weight, eps, **{mistake: True}), 1e-4, 1e-4)
            ),
            f"the formula, the index of the sum, and eps, which is {eps:.2g} here",
        )
    )
    expect_close(got, _reference(x, z, weight, eps), what=f"Y of {got.shape}", look=look)


@PHASE.exercise(
    "schedule_rms_norm_gate",
    engine=CURRENT,
    title="schedule it: rows in parallel, the sum of a row in vector lanes",
    hints=(
        "Fuse the loops of Y but the last to `row`, run it in parallel, and bring the other "
        "blocks into it with compute_at, beginning with the block nearest to Y.",
        "lane = schedule.split(S's last loop, [None, lanes])[1]; partial = schedule.rfactor(lane, "
        "factor_axis=the number of row dimensions) makes the block of partial sums. Split and "
        "vectorize the last loop of H and of Y.",
        "for block in (S, partial, H): schedule.compute_at(block, row). Then lane, rounds = "
        "schedule.get_loops(partial)[-2:]; schedule.reorder(rounds, lane); vectorize lane; "
        "decompose_reduction(partial, rounds), and that of S with its last loop.",
    ),
    looks_like="""
        for i0_i1_fused in parallel(6):
            for ax0_0 in serial(3):
                for ax0_1 in vectorized(16):
                    H: H <- X, Z
            for ax0_init in vectorized(16):
                S_rf_init: S.rf <- constant
            for ax1 in serial(3):
                for ax0 in vectorized(16):
                    S_rf_update: S.rf <- H, S.rf
            S_init: S <- constant
            for ax0 in serial(16):
                S_update: S <- S, S.rf
            for i2_0 in serial(3):
                for i2_1 in vectorized(16):
                    Y: Y <- H, S, W
    """,
    demonstrate=lambda schedule_rms_norm_gate: format_nest(
        _scheduled_nest(schedule_rms_norm_gate, (2, 3, 48))
    ),
)
def check_schedule_rms_norm_gate(schedule_rms_norm_gate: Callable[..., Any]) -> None:
    import tvm

    from tvm_practice.engines import host_target

    few, more = *draw_distinct(1, [4, 8, 16]), *draw_distinct(1, [24, 32])
    rounds, rows = draw_distinct(2, [2, 3, 5])
    for shape, lanes in (
        ((rows, more * rounds), more),
        ((2, rows, 2, few * 5), few),
        ((rows, few), few),  # all of a row in one vector
        ((3, 6), 1),
    ):
        schedule = _schedule(schedule_rms_norm_gate, shape, lanes)
        expect(
            isinstance(schedule, tvm.s_tir.Schedule),
            expected="the tvm.s_tir.Schedule",
            seen=type(schedule).__name__,
            look="the return statement",
        )
        function = schedule.mod["main"]
        _expect_row_by_row(function, shape, lanes)
        built = tvm.compile(function.with_attr("global_symbol", "main"), host_target())["main"]
        x, z, weight = _draw(shape)
        output = tvm.runtime.tensor(np.full(shape, np.nan, "float32"))
        built(*map(tvm.runtime.tensor, (x, z, weight)), output)
        want = _reference(x, z, weight, 1e-5)
        expect_close(
            output.numpy(), want, what=f"Y of {shape}, {lanes} lanes", look="the primitives"
        )
    for lanes in (2, 4, 8, 16):
        shape = (2, 3 * lanes)
        schedule = _schedule(schedule_rms_norm_gate, shape, lanes)
        _expect_row_by_row(schedule.mod["main"], shape, lanes)


def _expect_row_by_row(function: Any, shape: tuple[int, ...], lanes: int) -> None:
    """Rows in parallel; H, Y and the partial sums of a row in vectors of `lanes`."""
    around = list(paths(loop_nest(function)))
    _expect_by_rows(around, math.prod(shape[:-1]))
    inside = {id(each): loops[1:] for loops, each in around}
    for name in ("H", "Y") if 1 < lanes < shape[-1] else ():  # else loops may be dropped
        stage = next(each for _, each in around if each.name == name)
        _expect_vectors(name, inside[id(stage)], shape[-1], lanes)
    if 1 < lanes < shape[-1]:
        _expect_lanes(around, inside, shape[-1], lanes)


def _schedule(function: Callable[..., Any], shape: tuple[int, ...], lanes: int) -> Any:
    from tvm import te

    return function(te.create_prim_func(_declared(shape)), lanes=lanes)


def _scheduled_nest(function: Callable[..., Any], shape: tuple[int, ...]) -> list[Any]:
    return loop_nest(_schedule(function, shape, _LANES).mod["main"])


_Paths = Sequence[tuple[tuple[Loop, ...], Statement]]


def _expect_by_rows(around: _Paths, rows: int) -> None:
    """All statements are inside one parallel loop over the rows."""
    first = around[-1][0][0] if around[-1][0] else None
    expect(
        first is not None and first.kind == "parallel" and first.extent == rows,
        expected=f"the outermost loop is parallel({rows}), over all rows",
        seen=show(around[-1][0]),
        look="schedule.fuse of every loop of Y but the last, and schedule.parallel of that",
    )
    outside = [each.name for loops, each in around if not loops or loops[0] is not first]
    expect(
        not outside,
        expected="H and the sums of a row computed inside the loop over rows",
        seen=f"outside it: {', '.join(outside)}",
        look="compute_at(block, row): otherwise a whole tensor goes through memory and is gone "
        "from the cache when it is read again. Move a consumer before its producers",
    )


def _longer(loops: Sequence[Loop]) -> list[Loop]:
    """Those of more than one iteration: compute_at may keep the others."""
    return [loop for loop in loops if loop.extent != 1]


def _expect_vectors(name: str, loops: Sequence[Loop], columns: int, lanes: int) -> None:
    good = [loop.extent for loop in _longer(loops)] == [columns // lanes, lanes]
    expect(
        good and loops[-1].kind == "vectorized",
        expected=f"{name} of a row in serial({columns // lanes}) > vectorized({lanes})",
        seen=show(loops),
        look=f"split the last loop of {name} by [None, lanes], vectorize the inner one",
    )


def _expect_lanes(
    around: _Paths, inside: Mapping[int, Sequence[Loop]], columns: int, lanes: int
) -> None:
    """The sum: partial sums in lanes, joined, each set to zero before its loop."""
    adding = [each for _, each in around if each.writes in each.reads]
    expect(
        len(adding) == 2,
        expected="two sums: the `lanes` partial ones, and the one that adds them up",
        seen=f"{len(adding)}: {', '.join(each.name for each in adding) or 'none'}",
        look="schedule.rfactor of the inner loop, after the sum's loop is split in two",
    )
    partial, joined = adding
    loops = inside[id(partial)]
    expect(
        [(loop.extent, loop.kind) for loop in _longer(loops)]
        == [(columns // lanes, "serial"), (lanes, "vectorized")],
        expected=f"the partial sums in serial({columns // lanes}) > vectorized({lanes})",
        seen=f"{partial.name} in {show(loops)}",
        look="rfactor of the inner loop of `lanes` iterations, and schedule.vectorize of the last "
        "loop of the block that rfactor returns",
    )
    for each in (partial, joined):
        zeroed = [
            inside[id(other)]
            for _, other in around
            if other.writes == each.writes and other is not each
        ]
        own = {id(loop) for loop in inside[id(each)]}
        expect(
            len(zeroed) == 1 and not own & {id(loop) for loop in zeroed[0]},
            expected=f"{each.writes} set to zero by a statement before the loop that adds to it",
            seen=f"it is in {show(zeroed[0])}"
            if zeroed
            else "no such statement: the loop tests at every step whether it is the first",
            look="decompose_reduction(block, its loop of the sum), the last primitive",
        )


def _model(eps: Sequence[float], columns: int, *, cut: bool = False) -> Any:
    """Calls of the operator, each on the ReLU of the one before; called with x and z.

    Each call has a weight of its own. With `cut`, the last is of the first row of x and z alone.
    """
    import torch

    from tvm_practice.labs.gated_layer import rms_norm_gate

    seed_torch()

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            drawn = (torch.nn.Parameter(torch.randn(columns)) for _ in eps)
            self.weights = torch.nn.ParameterList(drawn)

        def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
            for at, (each, weight) in enumerate(zip(eps, self.weights, strict=True)):
                if cut and at == len(eps) - 1:
                    x, z = x[:1], z[:1]
                x = torch.relu(rms_norm_gate(x, z, weight, each))
            return x

    return Model().eval()


def _drawn_model(
    eps: Sequence[float], shape: tuple[int, ...], *, cut: bool = False
) -> tuple[Any, tuple[Any, ...], np.ndarray]:
    """A model, inputs, and what it should return."""
    import torch

    model = _model(eps, shape[-1], cut=cut)
    x, z, _ = _draw(shape)
    want = x
    for each, parameter in zip(eps, model.weights, strict=True):
        weight = _draw(shape)[-1]
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(weight))
        want = np.maximum(_reference(want, z, weight, each), 0)
    want = want[:1] if cut else want
    return model, (torch.from_numpy(x), torch.from_numpy(z)), want


def _expect_map(converters: Any, key: str) -> None:
    expect(
        isinstance(converters, dict) and list(converters) == [key],
        expected=f"{{{key!r}: the converter}}",
        seen=repr(list(converters)) if isinstance(converters, dict) else type(converters).__name__,
        look="the key, which is what the frontend calls the operator",
    )


def _kernel(shape: tuple[int, ...], eps: float) -> Any:
    """The operator as the reference functions make it."""
    from tvm import te

    from solutions.labs.custom_operator import schedule_rms_norm_gate

    func = te.create_prim_func(_declared(shape, eps))
    return schedule_rms_norm_gate(func, lanes=8).mod["main"]


def _shown_relax(convert_relax: Callable[..., Any]) -> str:
    """The graph of a model with the operator twice, imported and optimized."""
    import torch

    from solutions.relay_import import import_relax, optimize_relax

    example = (torch.ones(2, 3, 16), torch.ones(2, 3, 16))
    with quiet_frontends():
        module = import_relax(_model((1e-5, 1e-5), 16), example, converters=convert_relax(_kernel))
    return format_graph(optimize_relax(module))


@PHASE.exercise(
    "convert_relax",
    engine=CURRENT,
    title="a converter of the operator for torch.export's programs",
    hints=(
        "Write a function of (node, importer) inside, and return it in a dictionary. The node's "
        "args are (x, z, weight, eps); the first three are nodes themselves: importer.env[node] "
        "is the Relax variable of a node.",
        'func = kernel(shape, eps).without_attr("global_symbol").with_attr({…}); name = '
        'importer.block_builder.add_func(func, "rms_norm_gate"). The shape is that of x.ty, its '
        "extents made int.",
        "return importer.block_builder.emit(relax.call_tir(name, [x, z, weight], out_ty=x.ty)).",
    ),
    looks_like="""
        fn(x, z)
        %0 = rms_norm_gate(x, z, constant)
        %1 = relu(%0)
        %2 = rms_norm_gate(%1, z, constant)
        %3 = relu(%2)
        return %3
    """,
    demonstrate=_shown_relax,
)
def check_convert_relax(convert_relax: Callable[..., Any]) -> None:

    from solutions.relay_import import build_relax, import_relax, optimize_relax
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.running import run_relax

    asked: list[tuple[Any, Any]] = []

    def kernel(shape: Any, eps: Any) -> Any:
        asked.append((shape, eps))
        return _kernel(shape, eps)

    converters = convert_relax(kernel)
    _expect_map(converters, "rms_norm_gate.default")
    rng = fresh_rng()
    shape = (2, int(rng.integers(2, 5)), int(rng.integers(5, 9)), 8 * int(rng.integers(2, 6)))
    small = float(rng.uniform(1e-7, 9e-7))
    eps = (0.25, small, small, small)
    model, example, want = _drawn_model(eps, shape, cut=True)
    with quiet_frontends():
        module = import_relax(model, example, converters=converters)
    expect(
        {(tuple(int(n) for n in each), float(number)) for each, number in asked}
        == {*((shape, each) for each in eps), ((1, *shape[1:]), small)},
        expected=f"kernel(shape, eps) called with {shape} and each eps that the model has: "
        f"{', '.join(map(str, sorted(set(eps))))}; and with {(1, *shape[1:])} and {small}",
        seen=f"called with {asked}",
        look="the shape of x.ty, and node.args[3]",
    )
    _expect_kernels(module)
    with quiet_frontends():
        executable = build_relax(optimize_relax(module), host_target())
    (got,) = run_relax(executable, [each.numpy() for each in example])
    expect_close(
        got, want, what="the model's result", look="the order of x, z and weight in call_tir"
    )


def _expect_kernels(module: Any) -> None:
    """Three kernels of their own in an imported module, called four times."""
    import tvm

    kernels = [each for each in module.functions.values() if isinstance(each, tvm.tirx.PrimFunc)]
    calls = _calls_of_primfuncs(module["main"])
    expect(
        len(kernels) == 3 and calls == 4,
        expected="four calls of three kernels: equal functions are added to the module once",
        seen=f"{calls} calls of PrimFuncs, {len(kernels)} PrimFuncs",
        look='block_builder.add_func(func, "rms_norm_gate") and relax.call_tir',
    )
    for attribute, wanted, why in (
        ("op_pattern", 8, "FuseOps merges its loops, scheduled as they are, with its neighbours'"),
        ("tirx.is_scheduled", True, "a rule for default schedules schedules it again"),
    ):
        found = [(each.attrs or {}).get(attribute) for each in kernels]
        expect(
            all(each is not None and int(each) == int(wanted) for each in found),
            expected=f"every kernel with the attribute {attribute!r}: {wanted!r}",
            seen=f"{found}; without it {why}",
            look="func.with_attr, before add_func",
        )
    symbols = [(each.attrs or {}).get("global_symbol") for each in kernels]
    expect(
        "main" not in symbols,
        expected="kernels that are not called main",
        seen=f"global symbols {symbols}: one function of a module can be its main",
        look='func.without_attr("global_symbol"), before add_func',
    )


def _calls_of_primfuncs(function: Any) -> int:
    """How many call_tir there are in a Relax function, whatever they call."""
    from tvm import relax

    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and getattr(node.op, "name", "") == "relax.call_tir":
            found.append(node)

    relax.analysis.post_order_visit(function, visit)
    return len(found)


def _unscheduled(outputs: Sequence[Any]) -> Any:
    """The plainest te.Schedule of an operator's output tensors."""
    from tvm import te

    return te.create_schedule([each.op for each in outputs])


def _shown_relay(convert_relay: Callable[..., Any]) -> str:
    import torch

    from solutions.labs.custom_operator import rms_norm_gate
    from solutions.relay_import import import_relay, optimize_relay

    name = f"shown.rms_norm_gate_{next(_numbers)}"
    example = (torch.ones(2, 3, 16), torch.ones(2, 3, 16))
    converters = convert_relay(name, rms_norm_gate, _unscheduled)
    with quiet_frontends():
        imported = import_relay(_model((1e-5, 1e-5), 16), example, converters=converters)
    return format_graph(optimize_relay(*imported)).replace(name, "shown.rms_norm_gate")


def _registered() -> tuple[str, Any]:
    """A new name and its operator, registered by the reference step."""
    from solutions.labs.custom_operator import register_operator

    name = f"graded.rms_norm_gate_{next(_numbers)}"
    return name, register_operator(name)


def _relay_calls(operator: Any, shape: tuple[int, ...], eps: Sequence[float]) -> Any:
    """A Relay module of calls of the operator, each on the result of the one before."""
    import tvm
    from tvm import relay

    shapes = (shape, shape, shape[-1:])
    inputs = [relay.var(f"input_{at}", shape=each) for at, each in enumerate(shapes)]
    x, z, weight = inputs
    for each in eps:
        attributes = tvm.ir.make_node("DictAttrs", eps=each)
        x = relay.Call(operator, [x, z, weight], attributes)
    return tvm.IRModule.from_expr(relay.Function(inputs, x))


@PHASE.exercise(
    "register_operator",
    engine=CLASSIC,
    step_of="convert_relay",
    title="put an operator into Relay's registry",
    hints=(
        "Four facts about one name: its existence, its number of inputs, its result's type, its "
        "pattern. The head of the file names a function of tvm.relay.op.op for each.",
        "registry.register(name, a description) makes it, registry.get(name) finds it, with "
        "`from tvm.relay.op import op as registry`. set_num_inputs and add_type_rel are methods "
        "of the operator, register_pattern is the registry's.",
        "operator.add_type_rel(name, lambda types, attrs: types[0]); "
        "registry.register_pattern(name, registry.OpPattern.OPAQUE); return operator.",
    ),
    looks_like="""
        shown.rms_norm_gate: 3 inputs, pattern OPAQUE
        of (2, 5) float32, (2, 5) float32, (5,) float32: (2, 5) float32
    """,
    demonstrate=lambda register_operator: _shown_operator(register_operator),
)
def check_register_operator(register_operator: Callable[..., Any]) -> None:
    import tvm

    for dtype in ("float32", "float16"):
        name = f"graded.rms_norm_gate_{next(_numbers)}"
        with _registering(name):
            operator = register_operator(name)
        expect(
            isinstance(operator, tvm.ir.Op) and operator.name == name,
            expected=f"the operator {name} returned",
            seen=getattr(operator, "name", type(operator).__name__),
            look="the return statement: the result of registry.get(name)",
        )
        _expect_operator(operator, dtype)


@contextmanager
def _registering(name: str) -> Iterator[None]:
    """An operator of that name is registered, and no other: a process has a name only once."""
    try:
        yield
    except Exception as error:
        if "registered before" not in str(error):
            raise
        raise fail(
            f"the operator {name} registered",
            str(error).strip().splitlines()[-1],
            "registry.register(name, …), once, with the given name",
        ) from error


def _expect_operator(operator: Any, dtype: str) -> None:
    """An operator of 3 inputs, which is not fused; its result has the type of the first."""
    from tvm.relay.op.op import OpPattern

    inputs = int(operator.num_inputs)
    expect(
        inputs == 3,
        expected="an operator of 3 inputs",
        seen=f"of {inputs}",
        look="operator.set_num_inputs",
    )
    pattern = operator.get_attr("TOpPattern")
    expect(
        pattern is not None and int(pattern) == OpPattern.OPAQUE,
        expected=f"the pattern OPAQUE, {OpPattern.OPAQUE}",
        seen="none" if pattern is None else str(pattern),
        look="registry.register_pattern(name, registry.OpPattern.OPAQUE): otherwise TVM fuses "
        "the operator with its neighbours",
    )
    for rank in (2, 1, 3, 4):
        shape = tuple(draw_distinct(rank, range(2, 12)))
        seen_type = _type_of_call(operator, (shape, shape[::-1], (7,)), (dtype, "float32", "int32"))
        expect(
            seen_type == f"{shape} {dtype}",
            expected=f"a result of the first input's type, {shape} {dtype}",
            seen=seen_type,
            look="operator.set_num_inputs(3), and after it operator.add_type_rel(name, a function "
            "of (types, attrs) that returns types[0])",
        )


def _type_of_call(operator: Any, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str]) -> str:
    """The type of a call's result, as `(2, 5) float32`; what TVM says where there is none."""
    import tvm
    from tvm import relay

    arguments = [
        relay.var(f"x{index}", shape=shape, dtype=dtype)
        for index, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
    ]
    call = relay.Call(operator, arguments, tvm.ir.make_node("DictAttrs", eps=0.5))
    try:
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(arguments, call)))
        result = mod["main"].ret_type
        return f"{tuple(int(extent) for extent in result.shape)} {result.dtype}"
    except Exception as error:  # TVM's, of no type relation or of a wrong one
        return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def _shown_operator(register_operator: Callable[..., Any]) -> str:
    from tvm.relay.op.op import OpPattern

    name = f"shown.rms_norm_gate_{next(_numbers)}"
    operator = register_operator(name)
    opaque = int(operator.get_attr("TOpPattern")) == OpPattern.OPAQUE
    result = _type_of_call(operator, ((2, 5), (2, 5), (5,)), ("float32",) * 3)
    return (
        f"shown.rms_norm_gate: {operator.num_inputs} inputs, pattern "
        f"{'OPAQUE' if opaque else operator.get_attr('TOpPattern')}\n"
        f"of (2, 5) float32, (2, 5) float32, (5,) float32: {result}"
    )


@PHASE.exercise(
    "give_strategy",
    engine=CLASSIC,
    step_of="convert_relay",
    title="tell relay.build how to compute and schedule an operator",
    hints=(
        "Three functions: the strategy, and inside it the two that it adds. The docstring names "
        "the arguments of each; the strategy is decorated and then registered.",
        '@tvm.target.override_native_generic_func(f"{name}_strategy") decorates def strategy('
        "attrs, inputs, out_type, target). It makes a registry.OpStrategy(), calls "
        "add_implementation(compute, schedule, name=…) on it, and returns it; after that "
        "registry.register_strategy(name, strategy).",
        "add_implementation(lambda attrs, inputs, out_type: [compute(*inputs, "
        "eps=float(attrs['eps']))], lambda attrs, outputs, target: schedule(outputs), "
        "name=f'{name}.cpu').",
    ),
    looks_like="""
        compute: X (2, 16), Z (2, 16), W (16,), eps 0.25
        compute: X (2, 16), Z (2, 16), W (16,), eps 0.5
        schedule: Y (2, 16)
        schedule: Y (2, 16)
    """,
    demonstrate=lambda give_strategy: _shown_strategy(give_strategy),
)
def check_give_strategy(give_strategy: Callable[..., Any]) -> None:
    rng = fresh_rng()
    shape = (int(rng.integers(2, 5)), int(rng.integers(3, 9)), 16)
    eps = (0.0, float(rng.uniform(1e-7, 9e-7)))
    name, operator = _registered()
    called, other = _Called(), _Called()
    give_strategy(name, called.compute, called.schedule)
    give_strategy(_registered()[0], other.compute, other.schedule)
    expect(
        operator.get_attr("FTVMStrategy") is not None,
        expected=f"a strategy that relay.build finds for {name}",
        seen="none",
        look="registry.register_strategy(name, strategy)",
    )
    _expect_one_implementation(operator, shape)
    run = _built(_relay_calls(operator, shape, eps))
    expect(
        not other.eps and not other.scheduled,
        expected=f"the compute and the schedule that were given for {name}",
        seen="those of another operator, whose strategy was registered later",
        look="the name given to override_native_generic_func: another one for each operator",
    )
    expect(
        _are_close(called.eps, eps),
        expected=f"compute called with the eps of each call, {eps[0]} and {eps[1]}",
        seen=f"with {sorted(set(called.eps))}",
        look='attrs["eps"] in the first function given to add_implementation',
    )
    expect(
        bool(called.scheduled),
        expected="the given schedule function, used for the operator",
        seen="it was never called",
        look="the second argument of OpStrategy.add_implementation",
    )
    expect(
        all([each.op.name for each in outputs] == ["Y"] for outputs in called.scheduled),
        expected="schedule called with the outputs in a sequence, [Y]",
        seen=str(called.scheduled[0]),
        look="lambda attrs, outputs, target: schedule(outputs)",
    )
    x, z, weight = _draw(shape)
    want = _reference(_reference(x, z, weight, eps[0]), z, weight, eps[1])
    expect_close(run(x, z, weight), want, what="the result of two calls", look="compute(*inputs)")


def _expect_one_implementation(operator: Any, shape: tuple[int, ...]) -> None:
    import tvm
    from tvm import te

    inputs = [te.placeholder(each, name="input") for each in (shape, shape, shape[-1:])]
    strategy = operator.get_attr("FTVMStrategy")(
        tvm.ir.make_node("DictAttrs", eps=0.25),
        inputs,
        tvm.relay.TensorType(shape, "float32"),
        tvm.target.Target("llvm"),
    )
    count = sum(len(each.implementations) for each in strategy.specializations)
    expect(
        count == 1,
        expected="an OpStrategy with one implementation",
        seen=f"{count}",
        look="the number of calls of add_implementation",
    )


class _Called:
    """compute and schedule functions that note how they are called."""

    def __init__(self) -> None:
        self.eps: list[float] = []
        self.shapes: list[str] = []
        self.scheduled: list[Any] = []

    def compute(self, X: Any, Z: Any, W: Any, *, eps: float) -> Any:
        from solutions.labs.custom_operator import rms_norm_gate

        self.eps.append(float(eps))
        shapes = zip("XZW", (X, Z, W), strict=True)
        self.shapes.append(", ".join(f"{name} {tuple(map(int, t.shape))}" for name, t in shapes))
        return rms_norm_gate(X, Z, W, eps=eps)

    def schedule(self, outputs: Sequence[Any]) -> Any:
        self.scheduled.append(outputs)
        return _unscheduled(outputs)


def _are_close(seen: Sequence[float], wanted: Sequence[float]) -> bool:
    """Whether the numbers that were seen are the wanted ones, ascending, to six digits."""
    found = sorted(set(seen))
    return len(found) == len(wanted) and bool(np.allclose(found, wanted, rtol=1e-6, atol=0))


def _built(mod: Any) -> Callable[..., np.ndarray]:
    """A Relay module of the inputs x, z and weight, compiled."""
    from solutions.relay_import import build_relay
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.running import run_relay

    with quiet_frontends():
        library = build_relay(mod, {}, host_target())
    return lambda *arrays: run_relay(library, list(arrays))[0]


def _shown_strategy(give_strategy: Callable[..., Any]) -> str:
    name, operator = _registered()
    called = _Called()
    give_strategy(name, called.compute, called.schedule)
    _built(_relay_calls(operator, (2, 16), (0.25, 0.5)))
    lines = sorted(
        {
            f"compute: {shapes}, eps {eps}"
            for shapes, eps in zip(called.shapes, called.eps, strict=True)
        }
    )
    for (tensor,) in called.scheduled[:2]:
        lines.append(f"schedule: {tensor.op.name} {tuple(map(int, tensor.shape))}")
    return "\n".join(lines)


@PHASE.exercise(
    "call_converter",
    engine=CLASSIC,
    step_of="convert_relay",
    title="a converter for traces that calls an operator",
    hints=(
        "Write a function of (inputs, types) inside, and return it in a dictionary. Of the inputs, "
        "which are tensors of the graph, and which is a plain number?",
        "*tensors, eps = inputs. A relay.Call takes the operator, a list of arguments, and the "
        "attributes: a node of the kind DictAttrs, made by tvm.ir.make_node.",
        "return relay.Call(operator, tensors, tvm.ir.make_node('DictAttrs', eps=float(eps))); "
        "the key is 'tvm_practice::rms_norm_gate'.",
    ),
    looks_like="""
        tvm_practice::rms_norm_gate
        shown.rms_norm_gate(x, z, weight), eps 0.25
    """,
    demonstrate=lambda call_converter: _shown_call(call_converter),
)
def check_call_converter(call_converter: Callable[..., Any]) -> None:
    from tvm import relay

    name, operator = _registered()
    converters = call_converter(operator)
    _expect_map(converters, "tvm_practice::rms_norm_gate")
    convert = converters["tvm_practice::rms_norm_gate"]
    rng = fresh_rng()
    arguments = [relay.var(each) for each in ("x", "z", "weight")]
    for eps in (0.25, float(rng.integers(1, 8)) / 16, float(rng.uniform(1e-7, 9e-6)), 0.0):
        call = convert([*arguments, eps], ["float32", "float32", "float32", "float"])
        expect(
            isinstance(call, relay.Call) and call.op == operator,
            expected=f"a relay.Call of {name}",
            seen=f"a {type(call).__name__} of {getattr(call, 'op', 'nothing')}",
            look="relay.Call(operator, …), returned by the converter",
        )
        expect(
            len(call.args) == 3 and all(map(_same, call.args, arguments)),
            expected="the arguments x, z and weight, in this order",
            seen=", ".join(getattr(each, "name_hint", str(each)) for each in call.args),
            look="the list of arguments of relay.Call",
        )
        attributes = call.attrs
        names = list(map(str, attributes.keys())) if attributes is not None else []
        seen = attributes["eps"] if "eps" in names else None
        expect(
            seen is not None
            and not isinstance(seen, str)
            and bool(np.isclose(float(seen), eps, rtol=1e-6, atol=0)),
            expected=f"the attribute eps, {eps}, a number, which is the call's last input",
            seen=repr(seen),
            look="tvm.ir.make_node('DictAttrs', eps=…), the third argument of relay.Call",
        )


def _same(one: Any, other: Any) -> bool:
    return bool(one.same_as(other))


def _shown_call(call_converter: Callable[..., Any]) -> str:
    from tvm import relay

    name, operator = _registered()
    [(key, convert)] = call_converter(operator).items()
    call = convert([relay.var(each) for each in ("x", "z", "weight")] + [0.25], ["float32"] * 4)
    arguments = ", ".join(each.name_hint for each in call.args)
    shown = call.op.name.replace(name, "shown.rms_norm_gate")
    return f"{key}\n{shown}({arguments}), eps {float(call.attrs['eps'])}"


@PHASE.exercise(
    "convert_relay",
    engine=CLASSIC,
    title="a Relay operator with a strategy, and its converter for traces",
    hints=(
        "The three steps above, one after the other. What does the last one need that the first "
        "one returns?",
        "register_operator makes the operator, give_strategy takes its name, and compute and "
        "schedule as they were given. In one piece, these are the calls of all three steps.",
        "operator = register_operator(name); give_strategy(name, compute, schedule); return "
        "call_converter(operator).",
    ),
    looks_like="""
        fn(input_0, input_1)
        %0 = shown.rms_norm_gate(input_0, input_1, constant)
        %1 = nn.relu(%0)
        %2 = shown.rms_norm_gate(%1, input_1, constant)
        %3 = nn.relu(%2)
        return %3
    """,
    demonstrate=_shown_relay,
)
def check_convert_relay(convert_relay: Callable[..., Any]) -> None:
    from tvm.relay.op.op import get

    from solutions.labs.custom_operator import rms_norm_gate
    from solutions.relay_import import build_relay, import_relay
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.running import run_relay

    rng = fresh_rng()
    numbers: list[float] = []
    scheduled: list[Any] = []

    def compute(X: Any, Z: Any, W: Any, *, eps: float) -> Any:
        numbers.append(float(eps))
        return rms_norm_gate(X, Z, W, eps=eps)

    def schedule(outputs: Sequence[Any]) -> Any:
        scheduled.append(outputs)
        return _unscheduled(outputs)

    eps = (0.0, float(rng.uniform(1e-7, 9e-7)))
    name, later = (f"graded.rms_norm_gate_{next(_numbers)}" for _ in range(2))
    with _registering(name):
        converters = convert_relay(name, compute, schedule)
    other = _Called()
    with _registering(later):
        convert_relay(later, other.compute, other.schedule)
    _expect_map(converters, "tvm_practice::rms_norm_gate")
    shape = (int(rng.integers(2, 5)), int(rng.integers(5, 9)), 16 * int(rng.integers(2, 4)))
    model, example, want = _drawn_model(eps, shape)
    with quiet_frontends():
        mod, params = import_relay(model, example, converters=converters)
    _expect_two_calls(mod, name)
    _expect_operator(get(name), "float16")
    _expect_one_implementation(get(name), shape)
    with quiet_frontends():
        library = build_relay(mod, params, host_target())
    expect(
        not other.eps and not other.scheduled,
        expected=f"the compute and the schedule that were given for {name}",
        seen="those of an operator that was registered after it",
        look="the name given to override_native_generic_func: another one for each operator",
    )
    expect(
        _are_close(numbers, eps),
        expected=f"compute called with the eps of each call, {eps[0]} and {eps[1]}",
        seen=f"with {sorted(set(numbers))}",
        look="the DictAttrs of relay.Call, and attrs['eps'] in the strategy's compute function",
    )
    expect(
        bool(scheduled),
        expected="the given schedule function, used for the operator",
        seen="it was never called",
        look="the second argument of OpStrategy.add_implementation",
    )
    (got,) = run_relay(library, [each.numpy() for each in example])
    expect_close(got, want, what="the model's result", look="the order of the call's arguments")


def _expect_two_calls(mod: Any, name: str) -> None:
    found = graph(mod).operators
    expect(
        found[name] == 2,
        expected=f"two calls of the Relay operator {name}",
        seen=", ".join(found) or "no calls",
        look="relay.Call of tvm.relay.op.op.get(name): TVM would fuse and schedule Relay's own "
        "operators as it likes",
    )


def _shown_extern(extern_matmul: Callable[..., Any]) -> str:
    """The call that the kernel consists of."""
    import re

    from tvm import te

    A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 6), name="B")
    C = extern_matmul(A, B, "shown.matmul")
    body = str(te.create_prim_func([A, B, C]).body)
    called = re.findall(r'call_packed\("([^"]+)"', body)
    tensors = re.findall(r"make_array\((\w+)\.data", body)
    return "\n".join(f"{name}({', '.join(tensors)})" for name in called)


@PHASE.exercise(
    "extern_matmul",
    engine=CURRENT,
    title="a tensor that numpy computes, called from the kernel",
    hints=(
        "Two parts: a Python function that TVM knows by name, and a tensor whose computation is a "
        "call of that name.",
        "tvm_ffi.register_global_func(name, function, override=True) registers; te.extern("
        "shape, [A, B], lambda ins, outs: …) declares a tensor whose computation is the "
        "statement that the lambda returns, "
        "tvm.tirx.call_packed(name, ins[0], ins[1], outs[0]). The function "
        "gets three tensors and writes to the third.",
        "def product(a, b, c): np.matmul(view(a), view(b), out=view(c)), with view from "
        "tvm_practice.labs.blas_backend. Their .numpy() would be a copy.",
    ),
    looks_like="""
        shown.matmul(A, B, C)
    """,
    demonstrate=_shown_extern,
)
def check_extern_matmul(extern_matmul: Callable[..., Any]) -> None:
    import tvm
    from tvm import te

    from tvm_practice.engines import host_target

    rng = fresh_rng()
    # A and B are larger than C by far: a copy of one of them shows beside a product that numpy
    # makes before it is written to C.
    rows, columns = (int(each) for each in rng.choice(np.arange(20, 40), 2, False))
    inner = int(rng.integers(500, 700))
    A, B = te.placeholder((rows, inner), name="A"), te.placeholder((inner, columns), name="B")
    for m, n, k in ((1, 5, 3), (7, 7, 7), (6, 1, 2)):
        others = te.placeholder((m, k), name="P"), te.placeholder((k, n), name="Q")
        product = [*others, _extern_product(extern_matmul, *others, (m, n))]
        kernel = tvm.compile(te.create_prim_func(product), host_target())["main"]
        for call in ("first", "second"):
            p, q = (rng.standard_normal(each, dtype="float32") for each in ((m, k), (k, n)))
            out = tvm.runtime.tensor(np.full((m, n), np.nan, "float32"))
            kernel(tvm.runtime.tensor(p), tvm.runtime.tensor(q), out)
            expect_close(
                out.numpy(),
                p @ q,
                what=f"C of {m} x {k} and {k} x {n} at the {call} call",
                look="np.matmul(view(a), view(b), out=view(c)), at each call and for all shapes",
            )
    C = _extern_product(extern_matmul, A, B, (rows, columns))
    built = tvm.compile(te.create_prim_func([A, B, C]), host_target())["main"]
    a = rng.standard_normal((rows, inner), dtype="float32")
    b = rng.standard_normal((inner, columns), dtype="float32")
    c = np.full((rows, columns), np.nan, "float32")
    arguments = [tvm.runtime.tensor(each) for each in (a, b, c)]
    peak = _peak_of_second_call(built, arguments)
    expect_close(
        arguments[-1].numpy(),
        a @ b,
        what="C",
        look="write the product to the memory of c: np.matmul(…, out=…); replace the function "
        "that an earlier declaration registered under the name: override=True",
    )
    smallest = 4 * min(a.size, b.size)
    expect(
        peak < smallest // 2,
        expected="nothing copied: the function works on TVM's memory",
        seen=f"numpy allocated {peak} bytes in a call; a matrix has {smallest}",
        look="view(…) and out=; .numpy() of a tensor makes a copy",
    )


def _extern_product(
    extern_matmul: Callable[..., Any], A: Any, B: Any, wanted: tuple[int, int]
) -> Any:
    """The answer's C: an extern call of the name that it is given, registered anew."""
    import tvm_ffi
    from tvm import te

    name = f"graded.Matmul_{next(_numbers)}"
    tvm_ffi.register_global_func(name, lambda *_: None)
    try:
        C = extern_matmul(A, B, name)
    except (RuntimeError, ValueError) as error:
        raise fail(
            f"a function registered under {name}, replacing the function of that name",
            str(error).strip().splitlines()[-1],
            "override=True of tvm_ffi.register_global_func",
        ) from error
    expect(
        isinstance(C, te.Tensor) and isinstance(C.op, te.ExternOp),
        expected="the te.Tensor C of te.extern",
        seen=f"a {type(C.op).__name__}" if isinstance(C, te.Tensor) else type(C).__name__,
        look="the return statement: te.compute declares loops, te.extern a call",
    )
    shape = tuple(int(extent) for extent in C.shape)
    expect(
        shape == wanted,
        expected=f"C of shape {wanted}",
        seen=f"shape {shape}",
        look="the first argument of te.extern",
    )
    expect(
        tvm_ffi.get_global_func(name, allow_missing=True) is not None,
        expected=f"a global function {name}",
        seen="none of that name",
        look="tvm_ffi.register_global_func(name, …)",
    )
    expect(
        f'"{name}"' in te.create_prim_func([A, B, C]).script(),
        expected=f"a kernel that calls {name}",
        seen="a kernel that does not",
        look="the name given to tirx.call_packed and to tvm_ffi.register_global_func",
    )
    return C


def _peak_of_second_call(function: Callable[..., Any], arguments: list[Any]) -> int:
    """Bytes that numpy allocates in a call; what is allocated at the first call only is no copy."""
    function(*arguments)
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _attention(width: int, outputs: int, *, rows: int = 0) -> Any:
    """Linear layers with and without a bias, products of two activations, and a lone add.

    With so many `rows`, an activation, which is no bias, is added to the layer without one; a
    constant is the left operand of a product; and one is subtracted from a linear layer.
    """
    import torch

    seed_torch()

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(width, width)
            self.second = torch.nn.Linear(width, outputs, bias=False)
            self.shift = torch.nn.Parameter(torch.randn(outputs))
            self.mix = torch.nn.Parameter(torch.randn(rows, rows))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = torch.relu(self.first(x))
            scores = hidden @ x.transpose(0, 1)
            last = self.second(scores @ hidden)
            if rows:
                last = last + x[:, :1] + self.mix @ (self.second(hidden) - self.shift)
            result: torch.Tensor = torch.relu(last) + self.shift
            return result

    return Attention().eval()


def _folded(model: Any, example: tuple[Any, ...]) -> Any:
    """A model in Relax, with the transposes of its weights computed."""
    import tvm
    from tvm import relax

    from solutions.relay_import import import_relax

    with quiet_frontends():
        module = import_relax(model, example)
    passes = [relax.transform.CanonicalizeBindings(), relax.transform.FoldConstant()]
    return tvm.ir.transform.Sequential(passes)(module)


def _offloaded(
    function: Callable[..., Any], model: Any, example: tuple[Any, ...]
) -> tuple[Any, Any, list[Any]]:
    """The module before and after `function`, and the functions that the backend was given."""
    import tvm_ffi

    from tvm_practice.labs import blas_backend

    blas_backend.register()
    given: list[Any] = []

    def generate(functions: Any, options: Any, names: Any) -> list[Any]:
        given.extend(functions)
        return blas_backend.generate(functions, options, names)

    backend = f"graded_{next(_numbers)}"
    tvm_ffi.register_global_func(f"relax.ext.{backend}", generate)
    module = _folded(model, example)
    before = format_graph(module)
    try:
        after = function(module, backend)
    finally:
        tvm_ffi.remove_global_func(f"relax.ext.{backend}")
    expect(
        before == format_graph(module),
        expected="the module given is left as it was",
        seen="it was changed",
        look="passes return a new module",
    )
    return module, after, given


def _shown_offload(offload_linear: Callable[..., Any]) -> str:
    import torch

    _, after, _ = _offloaded(offload_linear, _attention(8, 4), (torch.ones(3, 8),))
    return format_graph(after)


@PHASE.exercise(
    "offload_linear",
    engine=CURRENT,
    title="give the linear layers of a graph to a backend",
    hints=(
        "Two patterns and two passes. The first pattern that matches is taken: which must come "
        "first?",
        'tvm.relax.dpl has is_op("relax.matmul"), which is called with the patterns of its '
        "arguments, wildcard() and is_const(). A pattern for FuseOpsByPattern is a pair (name, "
        "pattern). "
        "With a bias it is is_op('relax.add') of the product's pattern and is_const(); an add is "
        "matched in both orders. List it before the pattern of the product alone, or the add "
        "stays behind.",
        "tvm.ir.transform.Sequential([relax.transform.FuseOpsByPattern(patterns, "
        "bind_constants=False, annotate_codegen=True), relax.transform.RunCodegen()])(mod).",
    ),
    looks_like="""
        fn(x)
        %0 = call_dps_packed((x, constant, constant))
        %1 = relu(%0)
        %2 = permute_dims(x)
        %3 = matmul(%1, %2)
        %4 = matmul(%3, %1)
        %5 = call_dps_packed((%4, constant))
        %6 = relu(%5)
        %7 = add(%6, constant)
        return %7
    """,
    demonstrate=_shown_offload,
)
def check_offload_linear(offload_linear: Callable[..., Any]) -> None:
    import torch
    import tvm

    from solutions.relay_import import build_relax, optimize_relax
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.running import run_relax

    rng = fresh_rng()
    rows, width, outputs = (int(each) for each in rng.choice(np.arange(5, 30), 3, False))
    model = _attention(width, outputs, rows=rows)
    example = (torch.randn(rows, width),)
    _, after, given = _offloaded(offload_linear, model, example)
    expect(
        isinstance(after, tvm.IRModule),
        expected="a tvm.IRModule",
        seen=type(after).__name__,
        look="the return statement",
    )
    _expect_linear_offloaded(after, given)
    executable = build_relax(optimize_relax(after), host_target())
    (got,) = run_relax(executable, [each.numpy() for each in example])
    with torch.inference_mode():
        want = model(*example).numpy()
    expect_close(got, want, what="the model's result", look="the subgraphs that the patterns match")
    _, _, later = _offloaded(offload_linear, model, example)
    expect(
        len(later) == len(given),
        expected="the linear layers given to the backend that is named, another one this time",
        seen=f"{len(later)} of {len(given)} functions",
        look="patterns that are kept from an earlier call's backend",
    )


def _expect_linear_offloaded(after: Any, given: Sequence[Any]) -> None:
    """The backend is given the three linear layers of `_attention` alone, under their names."""
    composites = sorted(_composite_of(each) for each in given)
    expect(
        bool(given),
        expected="the linear layers given to the backend's code generator",
        seen="it was not called",
        look="annotate_codegen=True of FuseOpsByPattern, then RunCodegen",
    )
    names = [each.rpartition(".")[2] for each in composites]
    left = graph(after).operators
    expect(
        left["matmul"] == 3,
        expected="the two products of activations left in the graph, and that of a constant and an "
        "activation",
        seen=f"{left['matmul']} matmuls left, {len(given)} functions offloaded: {', '.join(names)}",
        look="is_const() for the right operand of relax.matmul: only a weight is constant there"
        if left["matmul"] < 3
        else "a pattern for a product with a bias and one for a product without",
    )
    expect(
        (left["add"], left["subtract"]) == (3, 1),
        expected="the bias added by the backend; the add of an activation, 2 others and 1 "
        "subtract left",
        seen=f"{left['add']} adds and {left['subtract']} left, {', '.join(names)} offloaded",
        look="the pattern with the bias, is_op('relax.add')(product, is_const()), comes before "
        "that without",
    )
    expect(
        set(names) == {"linear", "linear_bias"} and left["call_dps_packed"] == 3,
        expected="three calls of the backend, two of a linear and one of a linear_bias",
        seen=f"{left['call_dps_packed']} calls; {', '.join(composites)}",
        look="the patterns' names, and RunCodegen after FuseOpsByPattern",
    )
    named_otherwise = [
        name
        for name, each in ((_composite_of(each), each) for each in given)
        if ("R.add(" in each.script()) != name.endswith(".linear_bias")
    ]
    expect(
        not named_otherwise,
        expected="a function with a bias named linear_bias, one without named linear",
        seen=", ".join(named_otherwise),
        look="the name beside each pattern",
    )


def _composite_of(function: Any) -> str:
    """The name of the pattern that a backend's function was made for."""
    bindings = function.body.blocks[0].bindings
    return next(
        str(each.value.attrs["Composite"])
        for each in bindings
        if getattr(each.value, "attrs", None) and "Composite" in each.value.attrs
    )
