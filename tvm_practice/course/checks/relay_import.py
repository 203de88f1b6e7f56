"""Phase 4's exercises and how they are graded: the graph's structure, then its values."""

import contextlib
import inspect
import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_type,
    expect_unchanged,
    fail,
    fresh_rng,
)
from tvm_practice.course.imported_models import (
    Imported,
    any_llvm,
    arrays,
    attributes_by_name,
    by_pytorch,
    demonstrated_model,
    draw_kinds,
    draw_layers,
    draw_model,
    draw_repeated,
    draw_stack,
    draw_sum,
    expect_as_pytorch,
    expect_left_alone,
    expect_only_read,
    expect_operators,
    expect_own_converters,
    expect_read_each_time,
    expect_same_import,
    expect_target_used,
    given_module,
    identical,
    other_target,
    other_weights,
    relax_calls,
    relax_constants,
    state,
)
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.tvm_export.running import run_relax, run_relay
from tvm_practice.viz.graph import format_graph, graph

PHASE = Phase(
    number=4,
    module="relay_import",
    title="importing models",
    lanes=(CURRENT, CLASSIC),
    question=(
        "What graph-level optimizations do Relay and Relax apply that individual operator "
        "schedules cannot?"
    ),
)

_ATOL = _RTOL = 1e-4


@PHASE.exercise(
    "import_relay",
    engine=CLASSIC,
    title="PyTorch model to Relay, through a trace",
    hints=(
        "Two steps, trace and convert. The worked example traced_operators has the first; the "
        "second needs a name and a shape for each input, and returns the module and the weights.",
        "`inputs` is a list with a pair for each tensor of `example`: (name, shape), with the "
        "shape as a tuple. The trace has the types, and converters go to custom_convert_map.",
        "inputs = [(f'input_{i}', tuple(tensor.shape)) for i, tensor in enumerate(example)]; "
        "with torch.no_grad(): traced = torch.jit.trace(model, example, check_trace=False, "
        "strict=False); return relay.frontend.from_pytorch(traced, inputs, "
        "custom_convert_map=converters).",
    ),
    looks_like="""
        fn(input_0, input_1, aten::_convolution_0.weight, aten::batch_norm_0.weight,
             aten::batch_norm_0.bias, aten::batch_norm_0.running_mean,
             aten::batch_norm_0.running_var, aten::linear_0.weight,
             aten::linear_0.bias)
        %0 = nn.conv2d(input_0, aten::_convolution_0.weight)
        %1 = nn.batch_norm(%0, aten::batch_norm_0.weight, aten::batch_norm_0.bias,
             aten::batch_norm_0.running_mean, aten::batch_norm_0.running_var)
        %2 = nn.relu(%1.0)
        %3 = mean(%2)
        %4 = nn.dense(%3, aten::linear_0.weight)
        %5 = nn.bias_add(%4, aten::linear_0.bias)
        %6 = cast(input_1)
        %7 = multiply(%5, %6)
        return %7
    """,
    demonstrate=lambda import_relay: format_graph(import_relay(*demonstrated_model())[0]),
)
def check_import_relay(import_relay: Callable[..., Any]) -> None:
    import tvm
    from tvm import relay

    model, example = draw_model(outputs=2)
    before = state(model, example)
    with quiet_frontends():
        returned = import_relay(model, example)
    expect(
        isinstance(returned, tuple) and len(returned) == 2,
        expected="the pair (mod, params)",
        seen=f"a {type(returned).__name__}",
        look="the return statement",
    )
    mod, params = returned
    expect_type(mod, tvm.IRModule, "mod as a tvm.IRModule")
    expect_only_read(before, model, example)
    _expect_inputs(mod, params, example)
    expect_operators(graph(mod), ("nn.conv2d", "nn.batch_norm", "nn.relu", "nn.dense"))
    _expect_weights(state(model), params)
    expect_as_pytorch(
        _run_relay(mod, params, example),
        by_pytorch(model, example),
        look="the object that is traced",
    )
    twin = other_weights(model)
    with quiet_frontends():
        _, params = import_relay(twin, example)
    _expect_weights(state(twin), params)  # not those of the model before
    repeated, given = draw_repeated()

    def equal(inputs: Sequence[Any], types: Any) -> Any:
        one, other = inputs[:2]
        return relay.equal(
            one, other if isinstance(other, relay.Expr) else relay.const(1.0 * other)
        )

    with quiet_frontends():
        expect_own_converters(
            lambda converters: import_relay(repeated, given, converters=converters),
            lambda converters: _traced(repeated, given, converters),
            {
                "aten::relu": lambda inputs, types: relay.nn.relu(inputs[0]),
                "aten::mul": lambda inputs, types: relay.multiply(*inputs[:2]),
                "aten::eq": equal,
                "aten::add": lambda inputs, types: relay.add(
                    inputs[0], relay.cast_like(inputs[1], inputs[0])
                ),
            },
        )
        for several, arguments in ((repeated, given), draw_layers()):
            converted, held = import_relay(several, arguments)
            _expect_as_traced(converted, held, several, arguments)

        _expect_any_namespace(import_relay)
        _expect_any_name(import_relay)
        _expect_any_kind(import_relay)

        def read(model: Any, example: Any) -> tuple[list[np.ndarray], str]:
            mod, params = import_relay(model, example)
            main = relay.transform.InferType()(mod)["main"]
            expect(
                graph(mod).operators["subtract"] == 1,
                expected="what a model that decides by its input computes of the example",
                seen="what it computes of another input",
                look="the example that torch.jit.trace is called with, as it is given",
            )
            weights = [each.numpy() for each in params.values()]
            return weights + _relay_constants(main), str(main.ret_type.dtype)

        expect_read_each_time(read, "import_relay", follows=True)
        for count, draw in ((1, draw_sum), (12, draw_sum), (103, draw_stack), (3, draw_sum)):
            model, example = draw(count)
            mod, params = import_relay(model, example, converters={})
            names = [name for name in graph(mod).inputs if name not in params]
            expect(
                names == [f"input_{index}" for index in range(count)],
                expected=f"inputs named input_0 to input_{count - 1} of a model that takes {count}",
                seen=", ".join(names),
                look="a name for each tensor of the example, by its index",
            )
    got = _run_relay(mod, params, example)
    expect_as_pytorch(got, by_pytorch(model, example), look="the order of the inputs")


def _expect_any_name(import_relay: Callable[..., Any]) -> None:
    """Weights are in params whatever they are called, and whichever operator takes them."""
    import torch

    class Shifted(torch.nn.Module):
        shift: torch.Tensor

        def __init__(self, count: int) -> None:
            super().__init__()
            self.gain = torch.nn.Parameter(torch.rand(5) + 1)
            self.register_buffer("shift", torch.rand(5))
            # Equal ones are different weights all the same.
            self.many = torch.nn.ParameterList(torch.ones(5) for _ in range(count - 2))

        def forward(self, x: Any) -> Any:
            return x * self.gain + self.shift + torch.stack(list(self.many)).sum(0)

    count = int(fresh_rng().integers(600, 1200))
    mod, params = import_relay(Shifted(count).eval(), (torch.ones(2, 5),))
    weights = [name for name in graph(mod).inputs if name != "input_0"]
    expect(
        len(weights) == count and sorted(weights) == sorted(params),
        expected=f"all {count} weights of a model in params, gain and shift among them, and "
        "those that are equal",
        seen=f"main takes {len(weights)}, params has {', '.join(list(params)[:3]) or 'nothing'} "
        f"and so on, {len(params)}",
        look="the second value that from_pytorch returns, all of it",
    )


def _expect_any_kind(import_relay: Callable[..., Any]) -> None:
    """Inputs of each type, in any number; a single weight; constants as exact as PyTorch's."""
    for model, example in draw_kinds():
        before = state(model, example)
        mod, params = import_relay(model, example)
        expect_only_read(before, model, example)
        _expect_inputs(mod, params, example)
        weights = {name: each.detach().numpy() for name, each in model.state_dict().items()}
        _expect_weights(weights, params, numbers=True)
        expect_as_pytorch(
            _run_relay(mod, params, example),
            by_pytorch(model, example),
            look="the example that is traced, as it is given, and the options of from_pytorch",
            exactly=_looks_up(example),
        )
        _expect_as_traced(mod, params, model, example)


def _traced(model: Any, example: Any, converters: Any = None) -> tuple[Any, dict[str, Any]]:
    """A model traced and converted by TVM."""
    import torch
    from tvm import relay

    inputs = [(f"input_{at}", tuple(each.shape)) for at, each in enumerate(example)]
    with torch.no_grad():
        traced = torch.jit.trace(  # type: ignore[no-untyped-call]
            model, example, check_trace=False, strict=False
        )
    mod, params = relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)
    return mod, dict(params)


def _expect_as_traced(mod: Any, params: dict[str, Any], model: Any, example: Any) -> None:
    """The operators, types and weights are those that TVM makes of the trace."""
    from tvm import relay

    usual, weights = _traced(model, example)

    def parts(each: Any, held: dict[str, Any]) -> Imported:
        typed = relay.transform.InferType()(each)["main"]
        return _relay_calls(typed), str(typed.ret_type), [value.numpy() for value in held.values()]

    expect_same_import(
        parts(mod, params),
        parts(usual, weights),
        look="the arguments of from_pytorch, and what is done before and after it",
    )


def _relay_calls(function: Any) -> Counter[str]:
    """The operators that a function of Relay calls, with their attributes."""
    from tvm import relay

    calls: Counter[str] = Counter()

    def look(node: Any) -> None:
        if isinstance(node, relay.Call):
            said = node.attrs
            names = [] if said is None else list(said.keys())
            words = [f"{name}={said[name]}" for name in names]
            calls[f"{node.op} {', '.join(words)}".rstrip()] += 1

    relay.analysis.post_order_visit(function, look)
    return calls


def _relay_constants(function: Any) -> list[np.ndarray]:
    from tvm import relay

    found: list[np.ndarray] = []

    def look(node: Any) -> None:
        if isinstance(node, relay.Constant):
            found.append(node.data.numpy())

    relay.analysis.post_order_visit(function, look)
    return found


def _looks_up(example: Sequence[Any]) -> bool:
    """Whether a model takes indices alone: its outputs are weights."""
    return not any(each.is_floating_point() for each in example)


def _expect_any_namespace(import_relay: Callable[..., Any]) -> None:
    """A converter of an operator that is not PyTorch's own is used as well."""
    import torch
    from torch import library

    operators: Any = library.Library("practice_graded", "DEF")  # type: ignore[no-untyped-call]
    operators.define("gate(Tensor x, Tensor z) -> Tensor")
    operators.impl("gate", lambda x, z: x * z, "CompositeExplicitAutograd")

    class Gated(torch.nn.Module):
        def forward(self, x: Any, z: Any) -> Any:
            return torch.ops.practice_graded.gate(x, z)

    name = "practice_graded::gate"
    called: list[Any] = []

    def converter(inputs: Sequence[Any], types: Any) -> Any:
        called.append(types)
        return inputs[0]

    look = f"custom_convert_map: all of `converters`, {name!r} as well"
    example = (torch.ones(2, 5), torch.ones(2, 5))
    try:
        import_relay(Gated().eval(), example, converters={name: converter})
    except NotImplementedError as error:
        reason = str(error).strip().splitlines()[-1]
        raise fail(f"the converter of {name} used", reason, look) from error
    expect(bool(called), expected=f"the converter of {name} used", seen="it was not", look=look)


def _expect_inputs(mod: Any, params: dict[str, Any], example: Sequence[Any]) -> None:
    """The inputs are input_0, input_1, with the shapes and types of the example."""
    from tvm import relay

    names = [name for name in graph(mod).inputs if name not in params]
    wanted = [f"input_{position}" for position in range(len(example))]
    expect(
        names == wanted,
        expected=f"inputs named {', '.join(wanted)} in the order of the example, the rest in "
        "params",
        seen=f"{', '.join(names) or 'no inputs'}",
        look="the names given to from_pytorch, and the params it returns",
    )
    weights = graph(mod).inputs[len(names) :]
    expect(
        sorted(weights) == sorted(params),
        expected=f"a main that takes the inputs and then the {len(params)} weights of params",
        seen=f"after the inputs it takes {', '.join(weights) or 'nothing'}",
        look="the module as from_pytorch returns it; optimize_relay binds the weights",
    )
    typed = relay.transform.InferType()(mod)["main"].params[: len(example)]
    for parameter, tensor in zip(typed, example, strict=True):
        kind = parameter.checked_type
        seen = tuple(int(extent) for extent in kind.shape), str(kind.dtype)
        _expect_as_given(
            parameter.name_hint,
            seen,
            tensor,
            look="the example that is traced, and the shape given to from_pytorch",
        )


def _expect_as_given(name: str, seen: tuple[Any, str], tensor: Any, *, look: str) -> None:
    """An input of main has the shape and the type of the example's tensor."""
    wanted = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    expect(
        seen == wanted,
        expected=f"{name} of shape {wanted[0]} and type {wanted[1]}",
        seen=f"shape {seen[0]} and type {seen[1]}",
        look=look,
    )


def _expect_weights(
    weights: dict[str, np.ndarray], params: dict[str, Any], *, numbers: bool = False
) -> None:
    """Every weight of the model is in params; with `numbers` also single and whole numbers."""
    lost = [
        name
        for name, weight in weights.items()
        if (numbers or (weight.ndim and weight.dtype.kind == "f"))
        and not any(identical(weight, each.numpy()) for each in params.values())
    ]
    expect(
        not lost,
        expected="every weight of the model in params",
        seen=f"not there: {', '.join(lost)}",
        look="the second value that from_pytorch returns",
    )


def _run_relay(mod: Any, params: dict[str, Any], example: Sequence[Any]) -> list[np.ndarray]:
    """Build with the reference function and run once."""
    import tvm

    from solutions.relay_import import build_relay

    with quiet_frontends():
        lib = build_relay(mod, params, tvm.target.Target("llvm"))
    return run_relay(lib, arrays(example))


def _imported_relay(model: Any, example: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    from solutions.relay_import import import_relay

    with quiet_frontends():
        return import_relay(model, example)


@PHASE.exercise(
    "optimize_relay",
    engine=CLASSIC,
    title="Relay: bind the weights, fold constants and scales",
    hints=(
        "While the weights are inputs, nothing about them can be computed in advance. So make "
        "them constants first, in a copy of the module, then run passes as fused_classic does.",
        "relay.build_module.bind_params_by_name(function, params) binds the weights. "
        "The passes are in relay.transform: SimplifyInference, FoldConstant, FoldScaleAxis, "
        "FoldConstant again (the folded scales are constants too), CanonicalizeOps, "
        "EliminateCommonSubexpr; tvm.transform.Sequential runs a list of them.",
        "new = tvm.IRModule(mod.functions, mod.type_definitions); new['main'] = bound; then call "
        "the Sequential on it inside `with tvm.transform.PassContext(opt_level=3):`. At the "
        "default level 2, TVM skips FoldScaleAxis silently.",
    ),
    looks_like="""
        fn(input_0, input_1)
        %0 = nn.conv2d(input_0, constant)
        %1 = add(%0, constant)
        %2 = nn.relu(%1)
        %3 = mean(%2)
        %4 = nn.dense(%3, constant)
        %5 = add(%4, constant)
        %6 = cast(input_1)
        %7 = multiply(%5, %6)
        return %7
    """,
    demonstrate=lambda optimize_relay: format_graph(
        optimize_relay(*_imported_relay(*demonstrated_model()))
    ),
)
def check_optimize_relay(optimize_relay: Callable[..., Any]) -> None:
    import tvm

    model, example = draw_model(outputs=2)
    mod, params = _imported_relay(model, example)
    before, kept = given_module(mod), {name: each.numpy() for name, each in params.items()}
    optimized = optimize_relay(mod, params)
    expect_type(optimized, tvm.IRModule, "the result as a tvm.IRModule")
    expect_left_alone(before, mod)
    expect(
        params.keys() == kept.keys(),
        expected="params left as they were",
        seen=f"{len(params)} weights of {len(kept)}",
        look="the statement that removes or adds an entry of params",
    )
    changed = [name for name, each in kept.items() if not _alike(params[name], each)]
    expect(
        not changed,
        expected="params left as they were",
        seen=f"changed: {', '.join(changed)}",
        look="the statement that writes to an entry of params, or to its elements",
    )
    shown = graph(optimized)
    expect(
        shown.inputs == ("input_0", "input_1"),
        expected="a main function that takes only the inputs input_0, input_1",
        seen=f"it takes {', '.join(shown.inputs) or 'nothing'}",
        look="bind_params_by_name, and the module that takes its result",
    )
    expect(
        not any(call.kernel for call in shown.calls),
        expected="single operators, not fused yet: relay.build and the tuners do that",
        seen=f"{sum(call.kernel for call in shown.calls)} fused functions",
        look="whether FuseOps is among the passes",
    )
    expect_operators(shown, ("nn.conv2d", "nn.relu", "nn.dense"))
    expect(
        "nn.batch_norm" not in shown.operators,
        expected="no nn.batch_norm: at inference it is a multiplication and an addition",
        seen=f"{shown.operators['nn.batch_norm']} of them",
        look="the pass SimplifyInference",
    )
    expect(
        not shown.constant_calls,
        expected="no call left that depends on constants alone",
        seen=f"{len(shown.constant_calls)} such calls, {shown.constant_calls[:1]}",
        look="the pass FoldConstant, after the passes that make such calls",
    )
    scaled = [
        call for call in shown.calls if call.operators == ("multiply",) and "constant" in str(call)
    ]
    expect(
        not scaled,
        expected="the batch normalization's scale folded into the convolution's weights",
        seen=f"it is still multiplied at run time: {scaled[:1]}",
        look="the pass FoldScaleAxis, which needs tvm.transform.PassContext(opt_level=3)",
    )
    expect_as_pytorch(
        _run_relay(optimized, {}, example),
        by_pytorch(model, example),
        look="the weights that were bound, and the order of the passes",
    )
    _check_scaled(optimize_relay)
    _check_scaled_before(optimize_relay)
    _check_branches(optimize_relay)
    _check_layers(optimize_relay)
    [(held, given)] = draw_kinds(holding=True)
    holding, _ = _imported_relay(held, given)
    for look in (
        "the weights that were bound, also those of float64 and int64, as they are",
        "optimize_relay was called with a second module of the same inputs and other weights",
    ):
        _, weights = _imported_relay(held, given)
        expect_as_pytorch(
            _run_relay(optimize_relay(holding, weights), {}, given),
            by_pytorch(held, given),
            look=look,
        )
        held.shift.neg_().add_(1)
        held.counts.add_(2)
    _check_each_weight(optimize_relay)


def _check_each_weight(optimize_relay: Callable[..., Any]) -> None:
    """The constants are the weights of the call, of which one alone may be another one."""
    import tvm
    from tvm import relay

    rng = fresh_rng()
    size, count = int(rng.integers(3, 9)), int(rng.integers(4, 8))
    names = [f"aten::{('add', 'mul')[at % 2]}_{at}.weight" for at in range(count)]
    total = given = relay.var("input_0", shape=(2, size))
    weights = [relay.var(name, shape=(size,)) for name in names]
    for at, each in enumerate(weights):
        total = (relay.add, relay.multiply)[at % 2](total, each)
    mod = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function([given, *weights], total))
    )
    params = {name: tvm.nd.array(rng.random(size, dtype="float32")) for name in names}
    (changed,) = draw_distinct(1, names[1:-1])
    for call in ("first", "second"):
        constants = _relay_constants(optimize_relay(mod, params)["main"])
        lost = [
            name
            for name, weight in params.items()
            if not any(identical(weight.numpy(), each) for each in constants)
        ]
        expect(
            not lost,
            expected=f"the {count} weights that are given as constants, as they are",
            seen=f"not there: {', '.join(lost)}",
            look=f"what is kept from a call with the same module, whose {changed} was another; "
            f"this is the {call} call",
        )
        params[changed] = tvm.nd.array(params[changed].numpy()[::-1].copy())


def _check_branches(optimize_relay: Callable[..., Any]) -> None:
    """Layers of one input stay as many: nothing asks for them to be combined."""
    import torch

    class Branched(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = torch.nn.ModuleList(torch.nn.Conv2d(3, 4, 1) for _ in range(3))
            self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 5) for _ in range(3))

        def forward(self, x: Any) -> Any:
            one, two, three = (conv(x).mean((2, 3)) for conv in self.convs)
            total = torch.exp(one) + torch.sigmoid(two) + torch.softmax(three, 1)
            one, two, three = (layer(total) for layer in self.layers)
            return one * torch.erf(two) * torch.tanh(three)

    branched = Branched().eval()
    mod, params = _imported_relay(branched, (torch.ones(1, 3, 4, 4),))
    weighty = "nn.conv2d", "nn.dense", "exp", "sigmoid", "nn.softmax", "erf", "tanh"
    optimized = optimize_relay(mod, params)
    constants = _relay_constants(optimized["main"])
    changed = [
        name
        for name, each in branched.named_parameters()
        if each.dim() > 1 and not any(identical(each.detach().numpy(), at) for at in constants)
    ]
    expect(
        not changed,
        expected="weights that no scale is folded into as they are, bit by bit",
        seen=f"changed: {', '.join(changed)}",
        look="bind_params_by_name with params as they are",
    )
    before, after = (graph(each).operators for each in (mod, optimized))
    expect(
        all(before[name] == after[name] for name in weighty),
        expected=", ".join(f"{before[name]} {name}" for name in weighty) + ", as imported",
        seen=", ".join(f"{count} {name}" for name, count in after.items()),
        look="passes that replace or combine operators: relay.build has those of its level",
    )


def _expect_result_kept(mod: Any, optimized: Any) -> None:
    """The module returns as many results as before, of the same shapes and types."""
    from tvm import relay

    before, after = (
        str(relay.transform.InferType()(each)["main"].ret_type) for each in (mod, optimized)
    )
    expect(
        before == after,
        expected=f"a result of type {before}, as imported",
        seen=f"of type {after}",
        look="passes beside those of the docstring",
    )


def _check_layers(optimize_relay: Callable[..., Any]) -> None:
    """However many layers a model has, their normalizations are decomposed and folded."""
    mod, params = _imported_relay(*draw_layers())
    optimized = optimize_relay(mod, params)
    _expect_result_kept(mod, optimized)
    operators = graph(optimized).operators
    left = [name for name in ("nn.batch_norm", "multiply") if operators[name]]
    expect(
        not left,
        expected=f"no nn.batch_norm left and no scale, of {operators['nn.conv2d']} convolutions",
        seen=", ".join(f"{operators[name]} {name}" for name in left),
        look="SimplifyInference and FoldScaleAxis, for every model",
    )


def _check_scaled_before(optimize_relay: Callable[..., Any]) -> None:
    """A scale of a convolution's input is folded into the weights, like one of its result.

    And a batch normalization is decomposed if it is all that a model has.
    """
    import torch

    class Before(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.rand(3, 1, 1) + 1)
            self.conv = torch.nn.Conv2d(3, 5, 3, bias=False)

        def forward(self, x: Any) -> Any:
            return self.conv(x * self.scale)

    operators = graph(
        optimize_relay(*_imported_relay(Before().eval(), (torch.zeros(1, 3, 8, 8),)))
    ).operators
    expect(
        set(operators) == {"nn.conv2d"},
        expected="the scale of a convolution's input folded into the weights: one nn.conv2d left",
        seen=", ".join(operators),
        look="FoldScaleAxis, which folds the scales before a convolution and those after it",
    )
    alone = (
        (torch.nn.BatchNorm2d(3), 2), (torch.nn.BatchNorm1d(3), 1), (torch.nn.BatchNorm3d(3), 3),
        (torch.nn.Sequential(torch.nn.Conv3d(3, 2, 1), torch.nn.BatchNorm3d(2)), 3),
    )  # fmt: skip

    class Each(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(each for each, _ in alone)
            self.by_channel = torch.nn.ModuleList(
                torch.nn.Sequential(
                    torch.nn.Conv2d(4, 4, 3, groups=groups, bias=False), torch.nn.BatchNorm2d(4)
                )
                for groups in (1, 4)
            )

        def forward(self, image: Any, *given: Any) -> Any:
            return tuple(
                part(x)
                for part, x in zip(
                    (*self.by_channel, *self.parts), (image, image, *given), strict=True
                )
            )

    def example(axes: int, channels: int = 3) -> Any:
        return torch.zeros(1, channels, *(4,) * axes)

    by_axes = tuple(example(axes) for _, axes in alone)
    only, axes = alone[int(fresh_rng().integers(len(alone)))]
    for model, given in (
        (only, (example(axes),)), (Each(), (example(2, 4), *by_axes)),
    ):  # fmt: skip
        mod, params = _imported_relay(model.eval(), given)
        optimized = optimize_relay(mod, params)
        _expect_result_kept(mod, optimized)
        calls = graph(optimized).calls
        left = [str(call) for call in calls if "nn.batch_norm" in call.operators]
        expect(
            not left,
            expected="no nn.batch_norm left, of batch normalizations for one to three axes",
            seen=", ".join(left),
            look="SimplifyInference, for every model",
        )
    # Those without a convolution of two axes keep their multiplications.
    scales = [call for call in calls if call.operators == ("multiply",)]
    expect(
        len(scales) <= len(alone),
        expected="the scales after convolutions of 1 and of 4 groups folded into their weights",
        seen=f"{len(scales)} multiplications, {scales[-1:]}",
        look="FoldScaleAxis, for every model",
    )


def _check_scaled(optimize_relay: Callable[..., Any]) -> None:
    """Constants that no convolution takes are computed as well; no operator becomes another."""
    import torch

    class Scaled(torch.nn.Module):
        whole: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (torch.nn.Parameter(torch.randn(5)) for _ in range(2))
            self.scale = torch.nn.Parameter(torch.rand(()) + 1)  # a number, without a shape
            self.register_buffer("whole", torch.arange(1, 6))
            self.conv = torch.nn.Conv2d(3, 5, 1, bias=False)
            self.many = torch.nn.ParameterList(torch.randn(5) for _ in range(40))
            self.large = torch.nn.Parameter(
                torch.rand(5, int(fresh_rng().integers(70_000, 99_999)))
            )

        def forward(self, x: Any) -> Any:
            scale = self.scale * self.first * self.second * self.whole * self.large[:, 0]
            result = torch.tanh(self.conv(x)).mean((2, 3)) * scale
            for each in self.many:
                result = result + each
            return result

    torch.manual_seed(int(fresh_rng().integers(1 << 30)))
    optimized = optimize_relay(*_imported_relay(Scaled().eval(), (torch.zeros(1, 3, 4, 4),)))
    shown = graph(optimized)
    expect(
        shown.inputs == ("input_0",),
        expected="all of 46 weights bound, also one that is a single number, or of whole numbers, "
        "and a large one",
        seen=f"a main function that takes {', '.join(shown.inputs)}",
        look="bind_params_by_name(main, params): all of params",
    )
    expect(
        not shown.constant_calls,
        expected="the product of weights computed beforehand",
        seen=f"{len(shown.constant_calls)} calls on constants, {shown.constant_calls[:1]}",
        look="the pass FoldConstant",
    )
    operators = set(shown.operators) - {"multiply", "add", "nn.bias_add"}
    expect(
        operators == {"nn.conv2d", "tanh", "mean"},
        expected="the operators nn.conv2d, tanh and mean, as imported",
        seen=", ".join(sorted(operators)),
        look="passes that replace operators: relay.build changes layouts, and nothing should "
        "approximate",
    )


@PHASE.exercise(
    "build_relay",
    engine=CLASSIC,
    title="Relay module to a graph executor factory",
    hints=(
        "One call fuses, lowers and compiles. The level of its passes and further settings come "
        "from the context around the call.",
        "tvm.transform.PassContext(opt_level=3, config=config) is the context, relay.build(mod, "
        "target=…, params=…) the call. At level 3, AlterOpLayout gives a convolution the layout "
        "NCHW16c, whose last axis is as long as a vector; at the default 2 it stays NCHW.",
        "with tvm.transform.PassContext(opt_level=3, config=config): return relay.build(mod, "
        "target=target, params=params)",
    ),
    looks_like="""
        GraphExecutorFactoryModule
        fused_layout_transform
        fused_nn_contrib_conv2d_NCHWc_add_nn_relu
        fused_mean
        fused_layout_transform_1
        fused_nn_contrib_dense_pack_add_cast_multiply
    """,
    demonstrate=lambda build_relay: _show_build(
        build_relay(*_imported_relay(*demonstrated_model()), any_llvm())
    ),
)
def check_build_relay(build_relay: Callable[..., Any]) -> None:
    model, example = draw_model(outputs=2)
    mod, params = _imported_relay(model, example)
    before = given_module(mod)
    other = other_target()
    with quiet_frontends(), _levels() as levels:
        lib = build_relay(mod, params, other[0] if other else any_llvm())
    expect(
        type(lib).__name__ == "GraphExecutorFactoryModule",
        expected="the GraphExecutorFactoryModule that relay.build returns",
        seen=f"a {type(lib).__module__}.{type(lib).__name__}",
        look="the return statement, and the executor asked for",
    )
    expect_left_alone(before, mod)
    if other:
        expect_target_used(lib.get_lib().get_source("ll"), other[1])
    weights = {str(name): each.shape for name, each in lib.get_params().items()}
    expect(
        bool(weights),
        expected="the weights inside the library",
        seen="no parameters in it",
        look="params=: without it, the weights are inputs that nobody sets",
    )
    expect(
        any(len(shape) == 6 for shape in weights.values()),
        expected="the convolution's weight packed for vectors, in 6 dimensions (OIHWio)",
        seen=f"weights of shapes {', '.join(str(tuple(s)) for s in weights.values())}",
        look="opt_level=3 of tvm.transform.PassContext around relay.build",
    )
    expect_as_pytorch(
        run_relay(lib, arrays(example)), by_pytorch(model, example), look="the module compiled"
    )
    expect(
        set(levels) <= {3},
        expected="relay.build called at optimization level 3",
        seen=f"level {', '.join(map(str, levels))}",
        look="opt_level= of tvm.transform.PassContext",
    )
    _check_settings(build_relay, mod, params, model, example, lib)
    _expect_handed_on(build_relay, mod, params)


def _check_settings(
    build_relay: Callable[..., Any], mod: Any, params: Any, model: Any, example: Any, lib: Any
) -> None:
    """Settings beside the level, and weights that are bound in the module."""
    optimized, kernels = _optimized_relay(mod, params), _show_build(lib).splitlines()
    config = {"relay.FuseOps.max_depth": 1}
    with quiet_frontends():
        apart = build_relay(optimized, {}, any_llvm(), config=config)
    expect(
        config == {"relay.FuseOps.max_depth": 1},
        expected="config is only read",
        seen=f"{config} after the call",
        look="the statement that writes to config: put settings of your own into a copy",
    )
    single = _show_build(apart).splitlines()
    expect(
        len(single) > len(kernels),
        expected='a kernel per operator with config={"relay.FuseOps.max_depth": 1}',
        seen=f"{len(single) - 1}, where {len(kernels) - 1} are built without it",
        look="config= of tvm.transform.PassContext",
    )
    expect(
        any("NCHWc" in kernel for kernel in single),
        expected="level 3 with config as well: a convolution in the layout NCHWc",
        seen=", ".join(single[1:]),
        look="tvm.transform.PassContext(opt_level=3, config=config)",
    )
    expect_as_pytorch(
        run_relay(apart, arrays(example)),
        by_pytorch(model, example),
        look="params={}: the weights are then constants of the module",
    )


def _expect_handed_on(build_relay: Callable[..., Any], mod: Any, params: dict[str, Any]) -> None:
    """relay.build is called anew with every setting; what it returns is returned."""
    import tvm
    from tvm import relay

    settings = _drawn_settings()
    targets = [
        tvm.target.Target(
            f"llvm -mcpu={mcpu} -mattr=+avx2,-fma -num-cores=3 -libs=cblas -model=own"
        )
        for mcpu in ("haswell", "broadwell")
    ]
    built, seen = list[object](), dict[str, Any]()

    # A bias may be zero, and is a weight like the others; a model may have many.
    zero = tvm.nd.array(np.zeros(3, "float32"))
    many = int(fresh_rng().integers(300, 2000))
    params = {**params, **{f"zero_{at}": zero for at in range(many)}}
    params["a number"] = tvm.nd.array(np.array(2.5, "float32"))
    for dtype in ("int64", "float64", "bool"):
        params[f"of {dtype}"] = tvm.nd.array(np.arange(3).astype(dtype))
    compiled: list[Any] = []
    given: list[Any] = []
    switched: list[str] = []
    told_target: list[str] = []
    further: list[str] = []
    levels: list[int] = []
    plain = inspect.signature(relay.build)

    def recording(*arguments: Any, **options: Any) -> object:
        context = tvm.transform.PassContext.current()
        asked = plain.bind(*arguments, **options).arguments
        further[:] = [
            f"{name}={value}"
            for name, value in asked.items()
            if name not in ("ir_mod", "target", "params", "mod_name")
            and not _is_default(value, plain.parameters[name].default)
        ]
        given[:] = [each for each in (*arguments, *options.values()) if isinstance(each, dict)]
        compiled[:] = arguments[:1] or [options.get("ir_mod")]
        seen.update(context.config.items())
        switched[:] = map(str, (*context.required_pass, *context.disabled_pass))
        levels.append(int(context.opt_level))
        told_target[:] = [
            str(each)
            for each in (*arguments, *options.values())
            if isinstance(each, tvm.target.Target)
        ]
        built.append(object())
        return built[-1]

    with _relay_build(recording):
        single = dict([settings.popitem()])
        some, last = (dict(list(params.items())[at]) for at in (slice(3), slice(-2, None)))
        turned = {name: tvm.nd.array(each.numpy()[::-1].copy()) for name, each in some.items()}
        middle = list(some)[1]
        # Settings, what of the module is another, weights and the target. From the sixth on, each
        # differs from the one before in one of them.
        steps: list[tuple[dict[str, Any] | None, str, dict[str, Any], Any]] = [
            (settings, "main", params, targets[0]),
            (None, "main", dict(list(params.items())[:2]), targets[0]),
            (None, "", last, targets[0]),
            (single, "main", some, targets[0]),
            ({}, "function", {}, targets[0]),
            (single, "", {}, targets[0]),
            (single, "", {}, targets[1]),
            (single, "", some, targets[1]),
            (single, "", some | {middle: turned[middle]}, targets[1]),
            (single, "function", some | {middle: turned[middle]}, targets[1]),
        ]
        for count, (given_config, other, weights, target) in enumerate(steps, start=1):
            seen.clear()
            config = None if given_config is None else dict(given_config)
            if other:
                mod = _packed(mod) if other == "main" else _calling(mod, float(count))
            before = given_module(mod)
            around = targets[count % 2]  # the caller's, as is the level; at times the one given
            with tvm.transform.PassContext(opt_level=count % 5), around:
                returned = build_relay(mod, weights, target, config=config)
            expect(
                told_target == [str(target)] and set(levels) == {3},
                expected=f"relay.build for {target} at level 3 (TVM's current target: {around})",
                seen=f"for {', '.join(told_target) or 'no target'} at level {levels[-1:]}",
                look="target= of relay.build, and opt_level=3 whatever config has and whichever "
                "context and current target the caller has",
            )
            expect(
                config == given_config,
                expected=f"config left as it was, {given_config}",
                seen=str(config),
                look="what writes to config: put settings of your own into a copy",
            )
            expect(
                len(built) == count and returned is built[-1],
                expected="a new call of relay.build, and its result",
                seen="the result of an earlier call",
                look="a result that is kept from an earlier call",
            )
            main = compiled[0]["main"] if isinstance(compiled[0], tvm.IRModule) else compiled[0]
            bound = relay.build_module.bind_params_by_name(mod["main"], weights)
            if not (given and given[0]) and tvm.ir.structural_equal(main, bound):
                given[:], main = [weights], mod["main"]  # constants of a copy are as good
            expect(
                (given[0] if given else {}).keys() == weights.keys(),
                expected=f"relay.build given all {len(weights)} weights of params",
                seen=f"{len(given[0]) if given else 'none'} of them",
                look="params= of relay.build: all of them, however many there are",
            )
            changed = [name for name, each in weights.items() if not _alike(given[0][name], each)]
            expect(
                not changed,
                expected="the weights as they are, also those of int64, float64 and bool",
                seen=f"{', '.join(changed[:5])} changed",
                look="params= of relay.build: params itself, or a copy of the dictionary",
            )
            expect(
                not further,
                expected="relay.build given the module, the target and the weights",
                seen=f"{', '.join(further)} as well",
                look="the arguments of relay.build",
            )
            others = _besides_main(compiled[0]), _besides_main(mod)
            expect(
                tvm.ir.structural_equal(main, mod["main"])
                and others[0].keys() == others[1].keys()
                and all(
                    tvm.ir.structural_equal(others[0][name], others[1][name]) for name in others[1]
                ),
                expected="relay.build given the module as it is, with the functions besides main: "
                "its own passes are those of level 3",
                seen="another module",
                look="the first argument of relay.build",
            )
            expect(
                not switched,
                expected="the passes of level 3, all of them and no others",
                seen=f"{', '.join(switched)} switched on or off",
                look="required_pass= and disabled_pass= of tvm.transform.PassContext",
            )
            expect_left_alone(before, mod)
            told = {str(key): int(value) for key, value in seen.items()}
            expect(
                told == (given_config or {}),
                expected=f"the settings {given_config or 'of nobody'} around relay.build",
                seen=str(told),
                look="config= of tvm.transform.PassContext: the given settings and no others",
            )


def _drawn_settings() -> dict[str, Any]:
    """Some of TVM's settings that are numbers, or true or false, each with a value."""
    import tvm

    known = tvm.transform.PassContext.list_configs()
    numbers = [str(name) for name, about in known.items() if str(about["type"]) == "IntImm"]
    chosen = draw_distinct(4, sorted(numbers))
    return {name: (3, True, False, 1)[at] for at, name in enumerate(chosen)}


def _packed(mod: Any) -> Any:
    """A module that returns what `mod` does, and its first result's exponential."""
    import tvm
    from tvm import relay

    main = mod["main"]
    packed = tvm.IRModule(mod.functions, mod.type_definitions)
    first = relay.exp(relay.TupleGetItem(main.body, 0))
    body = relay.Tuple([first, main.body])
    packed["main"] = relay.Function(main.params, body, None, main.type_params)
    return relay.transform.InferType()(packed)


def _calling(mod: Any, factor: float) -> Any:
    """A module whose main calls a function besides it, which multiplies by `factor`.

    If it calls one already, that one is replaced, and main stays as it is.
    """
    import tvm
    from tvm import relay

    main = mod["main"]
    kind = main.ret_type.fields[0]
    x = relay.var("x", type_annotation=kind)
    calling = tvm.IRModule(mod.functions, mod.type_definitions)
    known = [each for each in mod.get_global_vars() if each.name_hint == "scaled"]
    scaled = known[0] if known else relay.GlobalVar("scaled")
    calling[scaled] = relay.Function([x], x * relay.const(factor), kind)
    if not known:
        body = relay.Tuple([relay.Call(scaled, [relay.TupleGetItem(main.body, 0)]), main.body])
        calling["main"] = relay.Function(main.params, body, None, main.type_params)
    return relay.transform.InferType()(calling)


def _besides_main(mod: Any) -> dict[str, Any]:
    """A module's functions, but main; none of what is no module."""
    functions = getattr(mod, "functions", {})
    return {
        str(each.name_hint): function
        for each, function in functions.items()
        if each.name_hint != "main"
    }


def _is_default(value: Any, default: Any) -> bool:
    import tvm

    if isinstance(value, tvm.runtime.Object) and isinstance(default, tvm.runtime.Object):
        return bool(tvm.ir.save_json(value) == tvm.ir.save_json(default))
    return bool(value == default)


def _alike(one: Any, other: Any) -> bool:
    """Whether two tensors, or arrays, have the same type and elements."""
    found, wanted = (
        each if isinstance(each, np.ndarray) else each.numpy() for each in (one, other)
    )
    return found.dtype == wanted.dtype and np.array_equal(found, wanted)


@contextlib.contextmanager
def _levels() -> Iterator[list[int]]:
    """The optimization level at each call of relay.build."""
    import tvm
    from tvm import relay

    seen: list[int] = []
    build = relay.build

    def recording(*arguments: Any, **options: Any) -> Any:
        seen.append(int(tvm.transform.PassContext.current().opt_level))
        return build(*arguments, **options)

    with _relay_build(recording):
        yield seen


@contextlib.contextmanager
def _relay_build(recording: Callable[..., Any]) -> Iterator[None]:
    """In place of relay.build, under each of its names."""
    from tvm import relay

    with (
        mock.patch.object(relay, "build", recording),
        mock.patch.object(relay.build_module, "build", recording),
    ):
        yield


def _optimized_relay(mod: Any, params: dict[str, Any]) -> Any:
    from solutions.relay_import import optimize_relay

    return optimize_relay(mod, params)


def _show_build(lib: Any) -> str:
    nodes = json.loads(lib.get_graph_json())["nodes"]
    kernels = [
        str(node["name"]).removeprefix("tvmgen_default_")
        for node in nodes
        if node["op"] == "tvm_op"
    ]
    return "\n".join([type(lib).__name__, *kernels])


@PHASE.exercise(
    "import_relax",
    engine=CURRENT,
    title="PyTorch model to Relax, through torch.export",
    hints=(
        "Two steps, export and convert. The worked example exported_operators has the first; the "
        "second has options for the weights, for what is returned, and for converters.",
        "from_exported_program (of tvm.relax.frontend.torch) takes the result of "
        "torch.export.export. It can keep the weights as inputs or make them constants "
        "(keep_params_as_input), and can return the one tensor of a program that returns a "
        "tuple of one (unwrap_unit_return_tuple).",
        "from_exported_program(torch.export.export(model, example), keep_params_as_input=False, "
        "unwrap_unit_return_tuple=True, custom_convert_map=converters)",
    ),
    looks_like="""
        fn(image, counts)
        %0 = conv2d(image, constant)
        %1 = batch_norm(%0, constant, constant, constant, constant)
        %2 = relu(%1.0)
        %3 = mean(%2)
        %4 = permute_dims(constant)
        %5 = matmul(%3, %4)
        %6 = add(constant, %5)
        %7 = astype(counts)
        %8 = multiply(%6, %7)
        return %8
    """,
    demonstrate=lambda import_relax: format_graph(import_relax(*demonstrated_model())),
)
def check_import_relax(import_relax: Callable[..., Any]) -> None:
    import tvm
    from tvm import relax

    model, example = draw_model(outputs=1)
    before = state(model, example)
    with quiet_frontends():
        mod = import_relax(model, example)
    expect_type(mod, tvm.IRModule, "the result as a tvm.IRModule")
    expect_only_read(before, model, example)
    shown = graph(mod)
    expect(
        len(shown.inputs) == len(example),
        expected=f"a main function that takes only the model's {len(example)} inputs",
        seen=f"it takes {', '.join(shown.inputs)}",
        look="keep_params_as_input",
    )
    expect_operators(shown, ("conv2d", "batch_norm", "relu", "matmul"))
    _expect_graph(mod, one_tensor=True)
    expect_as_pytorch(
        _run_relax(mod, example), by_pytorch(model, example), look="the object that is exported"
    )
    with quiet_frontends():
        _expect_as_exported(mod, model, example)
    twin = other_weights(model)
    with quiet_frontends():
        mod = import_relax(twin, example)
    expect_as_pytorch(
        _run_relax(mod, example),
        by_pytorch(twin, example),
        look="import_relax was called with a second model of the same class and other weights",
    )
    several, arguments = draw_model(outputs=2)
    with quiet_frontends():
        both = import_relax(several, arguments)
    expect_as_pytorch(
        _run_relax(both, arguments),
        by_pytorch(several, arguments),
        look="how a model with two outputs is imported",
    )

    def calling(operator: Callable[..., Any]) -> Callable[..., Any]:
        return lambda node, importer: importer.block_builder.emit(
            operator(
                *(
                    importer.env[each] if each in importer.env else relax.const(each, "float32")
                    for each in node.args
                )
            )
        )

    repeated, given = draw_repeated()
    with quiet_frontends():
        expect_own_converters(
            lambda converters: import_relax(repeated, given, converters=converters),
            lambda converters: _exported(repeated, given, converters),
            {
                "relu.default": calling(relax.op.nn.relu),
                "mul.Tensor": calling(relax.op.multiply),
                "eq.Tensor": calling(relax.op.equal),
                "eq.Scalar": calling(relax.op.equal),
            },
        )
        of_others = {"relu.default": calling(relax.op.nn.silu)}
        _expect_as_exported(
            import_relax(repeated, given, converters=of_others), repeated, given, of_others
        )
        _expect_many_constants(import_relax)
        _expect_idle_input(import_relax)
        _expect_kinds(import_relax)

        def held(model: Any, example: Any) -> tuple[list[np.ndarray], str]:
            main = import_relax(model, example)["main"]
            return relax_constants(main), str(main.ret_ty.dtype)

        expect_read_each_time(held, "import_relax")
        for count in (20, 3):
            summed, given = draw_sum(count)
            mod = import_relax(summed, given, converters={})
            _expect_graph(mod, one_tensor=True)
            expect_as_pytorch(
                _run_relax(mod, given),
                by_pytorch(summed, given),
                look=f"how {count} inputs are exported",
            )
        several, arguments = draw_layers()  # a long graph
        mod = import_relax(several, arguments)
        _expect_graph(mod, one_tensor=True)
        _expect_as_exported(mod, several, arguments)


def _exported(model: Any, example: Any, converters: Any = None) -> Any:
    """A model exported and converted by TVM."""
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    return from_exported_program(
        torch.export.export(model, example),
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )


def _expect_as_exported(mod: Any, model: Any, example: Any, converters: Any = None) -> None:
    """The operators, types and constants are those that TVM makes of the exported program."""

    def parts(each: Any) -> Imported:
        main = each["main"]
        return relax_calls(main), str(main.ret_ty), relax_constants(main)

    expect_same_import(
        parts(mod),
        parts(_exported(model, example, converters)),
        look="the arguments of from_exported_program, and what is done before and after it",
    )


def _expect_graph(mod: Any, *, one_tensor: bool) -> None:
    """Operators are called, and not kernels; a model's one tensor is not in a tuple."""
    shown = graph(mod)
    lowered = sum(bool(call.kernel) for call in shown.calls)
    expect(
        not lowered,
        expected="calls of Relax's operators, as the program has them",
        seen=f"{lowered} of {len(shown.calls)} calls are of PrimFuncs",
        look="what is done after from_exported_program: optimize_relax lowers the operators",
    )
    expect(
        shown.result.startswith("(") != one_tensor,
        expected="one tensor returned, as the model does" if one_tensor else "a tuple returned",
        seen=f"{'a tuple: ' * one_tensor}{shown.result}",
        look="unwrap_unit_return_tuple",
    )


def _expect_many_constants(import_relax: Callable[..., Any]) -> None:
    """Weights are constants, however many weights and buffers a model has."""
    import torch

    class Shifted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for at in range(70):
                self.register_buffer(f"shift_{at}", torch.full((1,), float(at)))
                self.register_parameter(f"scale_{at}", torch.nn.Parameter(torch.ones(1)))

        def forward(self, x: Any) -> Any:
            return x * self.scale_0 * self.scale_69 + self.shift_0 + self.shift_69

    inputs = graph(import_relax(Shifted().eval(), (torch.ones(2, 3),))).inputs
    expect(
        len(inputs) == 1,
        expected="a main function that takes only the input of a model with 70 weights",
        seen=f"it takes {len(inputs)}",
        look="keep_params_as_input=False, however many there are",
    )


def _expect_idle_input(import_relax: Callable[..., Any]) -> None:
    """An input that the model does not use is one that it is called with."""
    import torch

    class Idle(torch.nn.Module):
        def forward(self, first: Any, idle: Any, last: Any) -> Any:
            return first - last

    inputs = graph(import_relax(Idle().eval(), (torch.ones(2, 3),) * 3)).inputs
    expect(
        len(inputs) == 3,
        expected="a main function that takes all 3 inputs of a model that does not use the second",
        seen=f"it takes {', '.join(inputs)}",
        look="what removes inputs: whoever calls main passes each tensor of the example",
    )


def _expect_kinds(import_relax: Callable[..., Any]) -> None:
    """Inputs of each type, their extents as in the example; constants as exact as PyTorch's."""
    import torch
    import tvm

    for model, example in [*draw_kinds(), draw_sum(1)]:
        before = state(model, example)
        mod = import_relax(model, example)
        expect_only_read(before, model, example)
        expect(
            len(graph(mod).inputs) == len(example),
            expected=f"a main function that takes {len(example)} inputs: the model's, and no "
            "weights, however large they are",
            seen=f"it takes {', '.join(graph(mod).inputs)}",
            look="keep_params_as_input=False, whatever the model is",
        )
        _expect_graph(mod, one_tensor=torch.is_tensor(model(*example)))
        named = zip(graph(mod).inputs, mod["main"].params, example, strict=True)
        for name, parameter, tensor in named:
            shape = tuple(
                int(each) if isinstance(each, tvm.tirx.IntImm) else str(each)
                for each in parameter.ty.shape.values
            )
            _expect_as_given(
                name,
                (shape, str(parameter.ty.dtype)),
                tensor,
                look="the example that is exported, as it is given",
            )
        expect_as_pytorch(
            _run_relax(mod, example),
            by_pytorch(model, example),
            look="the object exported: its weights and constants as they are",
            exactly=_looks_up(example),
        )
        _expect_as_exported(mod, model, example)


def _run_relax(mod: Any, example: Sequence[Any]) -> list[np.ndarray]:
    """Build with the reference function and run once."""
    from solutions.relay_import import build_relax

    return run_relax(build_relax(mod, any_llvm()), arrays(example))


def _imported_relax(model: Any, example: tuple[Any, ...]) -> Any:
    from solutions.relay_import import import_relax

    with quiet_frontends():
        return import_relax(model, example)


@PHASE.exercise(
    "optimize_relax",
    engine=CURRENT,
    title="Relax: fold constants, lower to loops, fuse",
    hints=(
        "The worked example folded has the form; the file's table has the passes. Fusion works on "
        "PrimFuncs, so the operators are legalized before it.",
        "DecomposeOpsForInference, CanonicalizeBindings, FoldConstant; LegalizeOps; "
        "AnnotateTIROpPattern (FuseOps fuses only functions with a pattern); FoldConstant; "
        "FuseOps (groups calls into functions); FuseTIR (makes each such function one PrimFunc).",
        "return tvm.transform.Sequential([relax.transform.DecomposeOpsForInference(), …, "
        "relax.transform.FuseTIR()])(mod), with the eight passes in the docstring's order.",
    ),
    looks_like="""
        fn(image, counts)
        %0 = conv2d + subtract + divide + multiply + add + relu(image, constant,
             constant, constant, constant, constant)
        %1 = mean(%0)
        %2 = matmul + add + cast + multiply(%1, constant, constant, counts)
        return %2
    """,
    demonstrate=lambda optimize_relax: format_graph(
        optimize_relax(_imported_relax(*demonstrated_model()))
    ),
)
def check_optimize_relax(optimize_relax: Callable[..., Any]) -> None:
    import tvm

    model, example = draw_model(outputs=2)
    mod = _imported_relax(model, example)
    before = given_module(mod)
    with _passes_run() as passes, _legalizing() as arguments:
        optimized = optimize_relax(mod)
    expect_type(optimized, tvm.IRModule, "the result as a tvm.IRModule")
    expect_left_alone(before, mod)
    parts = [type(each).__name__ for each in optimized["main"].body.blocks]
    expect(
        "DataflowBlock" in parts,
        expected="a main whose calls are in a dataflow part, as imported",
        seen=", ".join(parts),
        look="passes beside the eight, such as ToNonDataflow: later passes look at dataflow alone",
    )
    operators, shown = graph(mod), graph(optimized)
    expect_operators(shown, ("conv2d", "relu", "matmul"))
    left = [call for call in shown.calls if not call.kernel]
    expect(
        not left,
        expected="every call of main a call_tir of a PrimFunc",
        seen=f"{len(left)} of {len(shown.calls)} are not, {left[0] if left else ''}",
        look="LegalizeOps (operators to PrimFuncs) and FuseTIR (fused groups to PrimFuncs)",
    )
    expect(
        not shown.constant_calls,
        expected="no call left that depends on constants alone",
        seen=f"{len(shown.constant_calls)} such calls, {shown.constant_calls[:1]}",
        look="the pass FoldConstant, before and after LegalizeOps",
    )
    together = [call.operators for call in shown.calls]
    expect(
        any({"conv2d", "relu"} <= set(names) for names in together)
        and any({"matmul", "add"} <= set(names) for names in together),
        expected="one PrimFunc from convolution to ReLU, one for the linear layer and its bias",
        seen=f"{len(operators.calls)} operators became {len(shown.calls)} calls: "
        f"{', '.join(shown.kernels)}",
        look=_unfused(together),
    )
    moved = [
        name for names in together for name in names if "transpose" in name or "layout" in name
    ]
    expect(
        not moved,
        expected="the operators in the layout that was imported",
        seen=f"{len(moved)} calls of {', '.join(sorted(set(moved)))}",
        look="passes beside the eight, such as ConvertLayout",
    )
    expect_as_pytorch(
        _run_relax(optimized, example), by_pytorch(model, example), look="the order of the passes"
    )
    _check_made_anew(
        lambda mod: _run_relax(optimize_relax(mod), example), model, example, "optimize_relax"
    )
    _check_mask(optimize_relax)
    expect(
        optimize_relax(mod) is not optimized,
        expected="a new IRModule at each call",
        seen="that of an earlier call",
        look="a result that is kept",
    )
    _check_many_operators(optimize_relax)
    expect(
        not arguments,
        expected="LegalizeOps of every operator, by TVM's own loops",
        seen=f"{', '.join(sorted(arguments))}= given",
        look="the arguments of LegalizeOps",
    )
    _expect_passes_in_order(passes)
    _expect_eight(mod, optimized)


def _many_operators() -> Any:
    """A module whose main(x, image) calls many operators, each once or twice."""
    from tvm import relax

    op, nn = relax.op, relax.op.nn
    x, y, *others = (relax.Var(name, relax.TensorType((4, 6), "float32")) for name in "xypqrs")
    image = relax.Var("image", relax.TensorType((2, 3, 8, 8), "float32"))
    rng = fresh_rng()

    def weight(*shape: int) -> Any:
        return relax.const(rng.standard_normal(shape, dtype="float32"))

    unary = "abs ceil cos erf exp floor log negative round rsqrt sigmoid sign sin sqrt square tanh"
    binary = "add divide maximum minimum multiply power subtract greater less equal"
    sums = "max mean min prod std sum variance argmax argmin"
    calls = [
        *(getattr(op, name)(x) for name in unary.split()),
        *(getattr(op, name)(x, y) for name in binary.split()),
        *(getattr(op, name)(x, 1) for name in sums.split()),
        *(getattr(nn, name)(x) for name in ("gelu", "leakyrelu", "log_softmax", "silu", "softmax")),
        *(nn.prelu(x, weight(6)), nn.pad(x, (0, 0, 1, 2)), op.clip(x, 0, 1), op.flip(x, 0)),
        *(nn.layer_norm(x, weight(6), weight(6), axes=[1]), op.permute_dims(x)),
        *(op.reshape(op.reshape(x, (24,)), (2, 12)), op.reshape(y, (4, 6))),
        *(op.astype(op.astype(x, "float16"), "float64"), op.permute_dims(op.permute_dims(x))),
        *(op.concat([x, y], 1), op.stack([x, y]), op.expand_dims(x, 0), op.astype(x, "float16")),
        *(op.broadcast_to(x, (2, 4, 6)), op.strided_slice(x, [0], [1], [3]), op.repeat(x, 2, 0)),
        *(op.take(x, relax.const(np.array([3, 0], "int64")), 0), op.where(op.less(x, y), x, y)),
        *(op.add(op.abs(x), op.abs(x)), op.matmul(x, op.permute_dims(y))),
        # What passes beside the eight would compute in another order.
        op.matmul(op.matmul(x, op.permute_dims(y)), weight(4, 1)),
        op.matmul(x, op.permute_dims(op.add(y, op.abs(y)))),
        op.matmul(x, op.add(op.permute_dims(y), op.permute_dims(y))),
        op.concat([op.permute_dims(x), op.permute_dims(y)], 1),
        op.matmul(x, op.take(weight(6, 7), op.astype(op.argmax(y, 0), "int64"), 1)),
        op.matmul(x, weight(6, 5)),
        *(nn.conv2d(image, weight(4, 3, 3, 3)), nn.conv2d_transpose(image, weight(3, 2, 2, 2))),
        *(nn.max_pool2d(image, (2, 2)), nn.avg_pool2d(image, (2, 2))),
        nn.adaptive_avg_pool2d(image),
        nn.group_norm(image, weight(3), weight(3), 1, channel_axis=1, axes=[2, 3]),
        nn.conv1d(op.reshape(x, (1, 4, 6)), weight(3, 4, 1)),
    ]  # fmt: skip
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y, image, *others]):
        with builder.dataflow():
            results = [builder.emit(each) for each in calls]
            chain = x
            for at in range(40):  # one group, however long it is
                chain = builder.emit((op.add, op.multiply)[at % 2](chain, others[at % 4]))
            results.append(chain)
            parts = builder.emit(op.split(x, 2, 1))
            results += [builder.emit(relax.TupleGetItem(parts, at)) for at in (0, 1)]
            result = builder.emit_output(relax.Tuple(results))
        builder.emit_func_output(result)
    return builder.get()


def _check_many_operators(optimize_relax: Callable[..., Any]) -> None:
    """Each operator is lowered, to the loops that the eight passes give it, and no others."""
    mod = _many_operators()
    mod["main"] = mod["main"].with_attr("graded.kept", 1)
    optimized = optimize_relax(mod)
    shown = graph(optimized)
    left = [str(call) for call in shown.calls if not call.kernel]
    expect(
        not left,
        expected=f"every call of main a call_tir, of a model of {len(graph(mod).operators)} "
        "operators as well",
        seen=f"{len(left)} of {len(shown.calls)} are not, {', '.join(left[:2])}",
        look="LegalizeOps, of all operators, and passes after FuseTIR",
    )
    _expect_eight(mod, optimized)


def _expect_eight(mod: Any, optimized: Any) -> None:
    """The kernels, their loops and attributes are those that the eight passes give."""
    import tvm
    from tvm.relax import transform

    eight = tvm.transform.Sequential(
        [
            transform.DecomposeOpsForInference(),
            transform.CanonicalizeBindings(),
            transform.FoldConstant(),
            transform.LegalizeOps(),
            transform.AnnotateTIROpPattern(),
            transform.FoldConstant(),
            transform.FuseOps(),
            transform.FuseTIR(),
        ]
    )
    usual = eight(mod)
    shown, wanted = graph(optimized), graph(usual)
    expect(
        shown.kernels == wanted.kernels,
        expected=f"the kernels of the eight passes, {len(wanted.calls)} of them",
        seen=", ".join(dict.fromkeys((shown.kernels - wanted.kernels) or wanted.kernels)),
        look="passes beside the eight, which replace operators or change how they are grouped",
    )
    others = _loops_by_name(optimized) - _loops_by_name(usual)
    expect(
        not others,
        expected="each operator's loops as LegalizeOps makes them",
        seen=f"others in {', '.join(sorted(name for name, _ in others))}",
        look="the arguments of LegalizeOps, and passes beside the eight, such as schedules",
    )
    kept, usually = attributes_by_name(optimized), attributes_by_name(usual)
    differing = sorted(name for name in kept if kept[name] != usually.get(name))
    expect(
        not differing,
        expected="functions with the attributes that the eight passes leave",
        seen=", ".join(
            f"{name} with {', '.join(kept[name]) or 'none'} and not "
            f"{', '.join(usually.get(name, ())) or 'any'}"
            for name in differing[:3]
        ),
        look="passes beside the eight, and what adds an attribute to a function or removes one",
    )


def _loops_by_name(mod: Any) -> set[tuple[str, int]]:
    """The PrimFuncs of a module, by a number that equal ones have in common."""
    import tvm
    import tvm_ffi

    return {
        (str(var.name_hint), tvm_ffi.structural_hash(function.body, map_free_vars=True))
        for var, function in mod.functions.items()
        if isinstance(function, tvm.tirx.PrimFunc)
    }


# The eight passes of optimize_relax as TVM's instruments call them.
_PASSES = (
    "DecomposeOps",
    "CanonicalizeBindings",
    "FoldConstant",
    "LegalizeOps",
    "AnnotateTIROpPattern",
    "FoldConstant",
    "FuseOps",
    "FuseTIR",
)


@contextlib.contextmanager
def _passes_run() -> Iterator[list[str]]:
    """The passes that begin within it, by name, unless they run in a context of their own."""
    import tvm
    from tvm.ir.instrument import pass_instrument

    seen: list[str] = []

    @pass_instrument
    class Names:
        def run_before_pass(self, mod: Any, info: Any) -> None:
            seen.append(str(info.name))

    with tvm.transform.PassContext(instruments=[Names()]):
        yield seen


@contextlib.contextmanager
def _legalizing() -> Iterator[set[str]]:
    """The names of arguments of LegalizeOps within it that leave out or replace operators."""
    from tvm.relax import transform

    seen: set[str] = set()
    plain = transform.LegalizeOps
    signature = inspect.signature(plain)

    def recording(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options).arguments
        seen.update(name for name, value in given.items() if value and name != "enable_warning")
        return plain(*arguments, **options)

    with mock.patch.object(transform, "LegalizeOps", recording):
        yield seen


def _expect_passes_in_order(seen: Sequence[str]) -> None:
    """The passes of the docstring are among those seen, in its order; others may be between."""
    if not set(_PASSES) & set(seen):
        return  # the answer has a pass context of its own
    rest = iter(seen)
    missing = next((each for each in _PASSES if each not in rest), None)
    expect(
        missing is None,
        expected=f"the passes in this order: {', '.join(_PASSES)}",
        seen=", ".join(each for each in seen if each in _PASSES) + f": no {missing} in its place",
        look="the list given to tvm.transform.Sequential, and FoldConstant, which is in it twice",
    )


def _unfused(together: Sequence[Sequence[str]]) -> str:
    """Why a convolution and its ReLU are in different PrimFuncs, or a product and its bias."""
    if any("batch_norm" in names for names in together):
        return (
            "DecomposeOpsForInference before LegalizeOps: one kernel for a whole batch "
            "normalization has three results, and the convolution before it stays apart"
        )
    if any(len(names) > 1 for names in together):
        return (
            "CanonicalizeBindings after DecomposeOpsForInference, which leaves a tuple between "
            "the batch normalization and the ReLU"
        )
    return "AnnotateTIROpPattern before FuseOps: without patterns nothing is fused"


def _check_made_anew(
    run: Callable[[Any], list[np.ndarray]], model: Any, example: tuple[Any, ...], name: str
) -> None:
    """A result that was kept for inputs of these shapes has the first network's weights."""
    twin = other_weights(model)
    expect_as_pytorch(
        run(_imported_relax(twin, example)),
        by_pytorch(twin, example),
        look=f"{name} was called with a second module of the same inputs and other weights",
    )


def _check_mask(optimize_relax: Callable[..., Any]) -> None:
    """A mask that an operator makes of constants is one as soon as the operator is a PrimFunc."""
    import torch

    class Masked(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + torch.ones(x.shape).tril()

    masked = optimize_relax(_imported_relax(Masked().eval(), (torch.zeros(4, 5),)))
    left = [name for call in graph(masked).calls for name in call.operators if name != "add"]
    expect(
        not left,
        expected="x + torch.ones(4, 5).tril() optimized to one addition of a constant",
        seen=f"computed at run time: {', '.join(left)}",
        look="the second FoldConstant: LegalizeOps turns some operators into calls of constants "
        "alone",
    )


@PHASE.exercise(
    "build_relax",
    engine=CURRENT,
    title="Relax module to an executable",
    hints=(
        "tvm.compile takes an IRModule and a target. It compiles the PrimFuncs for the target "
        "and the graph to byte code of a small virtual machine.",
        "It returns an Executable, which can be saved with export_library. The caller makes a "
        "relax.VirtualMachine of it.",
        "Nothing needs to be done before or after it: return tvm.compile(mod, target)",
    ),
    looks_like="""
        VMExecutable: runs, and gives [(1, 2)]
    """,
    demonstrate=lambda build_relax: _show_executable(
        build_relax(_imported_relax(*demonstrated_model()), any_llvm())
    ),
)
def check_build_relax(build_relax: Callable[..., Any]) -> None:
    import tvm

    from solutions.relay_import import optimize_relax

    model, example = draw_model(outputs=2)
    mod = optimize_relax(_imported_relax(model, example))
    other = other_target()
    target = other[0] if other else any_llvm()
    executable = build_relax(mod, target)
    expect(
        isinstance(executable, tvm.runtime.Executable),
        expected="the tvm.runtime.Executable that tvm.compile returns",
        seen=f"a {type(executable).__module__}.{type(executable).__name__}",
        look="the return statement; the caller makes the virtual machine",
    )
    if other:
        text = "".join(each.inspect_source("ll") for each in executable.mod.imports)
        expect_target_used(text, other[1])
    expect_as_pytorch(
        run_relax(executable, arrays(example)),
        by_pytorch(model, example),
        look="the module compiled",
    )

    def run_by(build: Callable[..., Any]) -> Callable[[Any], list[np.ndarray]]:
        return lambda mod: run_relax(build(optimize_relax(mod), target), arrays(example))

    # Other weights, for the first call's target and for another one.
    for build in (build_relax, partial(_for_another, build_relax)):
        _check_made_anew(run_by(build), model, example, "build_relax")
    _expect_compiled_as_given(build_relax, mod, target)


def _expect_compiled_as_given(build_relax: Callable[..., Any], mod: Any, target: Any) -> None:
    """tvm.compile gets the module and the target as they are; nothing is compiled."""
    import tvm

    large = tvm.IRModule({var: mod[var] for var in mod.get_global_vars()})
    kernel = next(each for each in mod.functions.values() if isinstance(each, tvm.tirx.PrimFunc))
    for at in range(99):
        large[f"kernel_{at}"] = kernel.with_attr("global_symbol", f"kernel_{at}")
    _expect_error_raised(build_relax, mod, target)
    repeating = _repeating()
    for settings in (None, *_pass_contexts()):
        for other in (target, *_targets()):
            with settings or contextlib.nullcontext():
                for each in (large, repeating):
                    _expect_call_of_compile(build_relax, each, other)
            others = [at for at in (any_llvm(), *_targets()) if str(at) != str(other)]
            with draw_distinct(1, others)[0] as around:
                _expect_call_of_compile(build_relax, repeating, other, around)
    for level in (0, 3, 4):
        with tvm.transform.PassContext(opt_level=level):
            _expect_call_of_compile(build_relax, repeating, target)


def _expect_error_raised(build_relax: Callable[..., Any], mod: Any, target: Any) -> None:
    """What tvm.compile raises arrives as it was raised."""
    import tvm
    from tvm import relax

    raised = RuntimeError("no memory for the kernels")

    def instead(*_: Any, **__: Any) -> Any:
        raise raised

    seen = "nothing raised"
    with mock.patch.object(tvm, "compile", instead), mock.patch.object(relax, "build", instead):
        try:
            build_relax(mod, target)
        except Exception as error:
            if error is raised:
                return
            seen = f"{type(error).__name__}: {error}"[:200]
    raise fail(
        "the exception of tvm.compile, if it fails, as it was raised",
        seen,
        "the except clause: a caller has to know why there is no executable",
    )


def _repeating() -> Any:
    """A module whose main calls one PrimFunc twice with the same argument."""
    from tvm import relax, topi

    x = relax.Var("x", relax.TensorType((4, 6), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            twice = [builder.emit_te(topi.exp, x) for _ in range(2)]
            result = builder.emit_output(relax.Tuple(twice))
        builder.emit_func_output(result)
    return builder.get()


def _pass_contexts() -> list[Any]:
    """Contexts that a caller may be in."""
    import tvm
    from tvm.ir.instrument import pass_instrument

    @pass_instrument
    class Quiet:
        pass

    return [
        tvm.transform.PassContext(
            opt_level=1,
            config={"tirx.disable_vectorize": True},
            required_pass=["DeadCodeElimination"],
            disabled_pass=["FoldConstant", "FuseOps"],
            instruments=[Quiet()],
        )
    ]


def _targets() -> list[Any]:
    """Targets with all that one can have."""
    import tvm

    words = {"mcpu": "haswell", "mattr": ["+avx2", "-fma"], "num-cores": 3, "opt-level": 1}
    host = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "haswell", "mattr": ["-fma"]}
    return [
        tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", **words}),
        tvm.target.Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu"}, host=host),
        tvm.target.Target(
            {"kind": "llvm", "vector-width": 256, "fast-math-nnan": True, "mfloat-abi": "hard"}
        ),
    ]


def _expect_call_of_compile(
    build_relax: Callable[..., Any], large: Any, target: Any, around: Any = None
) -> None:
    """tvm.compile gets all that the caller has given and set; `large` stays as it was.

    With a target `around`, the call is in its scope.
    """
    import tvm
    import tvm_ffi
    from tvm import relax

    before = given_module(large)
    seen: list[tuple[Any, Any, dict[str, Any]]] = []

    def instead(mod: Any, target: Any = None, **_: Any) -> Any:
        seen.append((mod, target, _settings()))
        return seen

    usual = _settings()
    with mock.patch.object(tvm, "compile", instead), mock.patch.object(relax, "build", instead):
        returned = build_relax(large, target)
    expect_left_alone(before, large)
    expect(bool(seen), expected="a call of tvm.compile", seen="none", look="tvm.compile")
    compiled, given, settings = seen[-1]
    expect(
        returned is seen and tvm_ffi.structural_equal(compiled, large),
        expected="tvm.compile given the module as it is, and its result returned",
        seen="another module, or another result",
        look="the arguments of tvm.compile, and the return statement",
    )
    expect(
        json.loads(str(given)) == json.loads(str(target)),  # in any order
        expected=f"the target as it was given: {target}"
        + f" (TVM's current target: {around})" * (around is not None),
        seen=str(given),
        look="the second argument of tvm.compile: the current target is the caller's",
    )
    changed = [name for name in usual if settings[name] != usual[name]]
    expect(
        not changed,
        expected="tvm.compile called in the caller's pass context",
        seen=", ".join(f"{name} {settings[name]}, not {usual[name]}" for name in changed),
        look="tvm.transform.PassContext around tvm.compile",
    )


def _settings() -> dict[str, Any]:
    """The current pass context."""
    import tvm

    context = tvm.transform.PassContext.current()
    return {
        "opt_level": int(context.opt_level),
        "config": {str(name): value for name, value in context.config.items()},
        "required passes": list(map(str, context.required_pass)),
        "disabled passes": list(map(str, context.disabled_pass)),
        "instruments": len(context.instruments or ()),
    }


def _for_another(build_relax: Callable[..., Any], mod: Any, first: Any) -> Any:
    """Built for LLVM's plain target, after the target `first`."""
    del first
    executable = build_relax(mod, any_llvm())
    if other := other_target():
        text = "".join(each.inspect_source("ll") for each in executable.mod.imports)
        expect(
            f'"target-cpu"="{other[1]}"' not in text,
            expected=f"the second call's target, {any_llvm()}",
            seen=f"code for {other[1]}, the first call's",
            look="the target given to tvm.compile",
        )
    return executable


def _show_executable(executable: Any) -> str:
    outputs = run_relax(executable, arrays(demonstrated_model()[1]))
    return f"{type(executable).__name__}: runs, and gives {[each.shape for each in outputs]}"


def _raised(verify: Callable[..., Any], *arguments: Any, atol: float, rtol: float) -> str | None:
    """The message of the ValueError that verify raises; None if it raises none."""
    try:
        verify(*arguments, atol=atol, rtol=rtol)
    except ValueError as error:
        return str(error)
    except AssertionError as error:
        raise fail(
            "a ValueError where outputs and reference differ",
            "AssertionError",
            "the docstring's Raises; numpy.testing raises another exception",
        ) from error
    return None


def _expect_rejected(
    verify: Callable[..., Any],
    got: list[np.ndarray],
    want: list[np.ndarray],
    *,
    case: str,
    look: str,
    atol: float = _ATOL,
    rtol: float = _RTOL,
) -> str:
    message = _raised(verify, got, want, atol=atol, rtol=rtol)
    if message is None:
        raise fail(f"a ValueError for {case}", "it was accepted", look)
    return message


@PHASE.exercise(
    "verify",
    engine=CURRENT,
    title="compare outputs with PyTorch's, and say where they differ",
    hints=(
        "First the number of outputs, then each output's shape (numpy would broadcast), then "
        "its elements: the first difference raises ValueError. Remember the largest error over "
        "all outputs; an output without elements has none.",
        "error = |output - reference| in float64; allowed = atol + rtol * |reference|. Every "
        "comparison with NaN is false, so `error > allowed` lets NaN through and "
        "`not (error <= allowed)` does not.",
        "Make errors that are NaN infinite (np.nan_to_num(error, nan=np.inf, posinf=np.inf)), "
        "then wrong = error > allowed; np.unravel_index((error - allowed).argmax(), shape) is "
        "the worst element. Where output and reference are the same infinity, the error is 0.",
    ),
    looks_like="""
        right: 1.0e-06
        wrong: output 0: 2 of 4 elements are wrong; largest absolute error 1,
               largest relative error 0.5; the worst, at [0, 1], is 3, the reference
               has 2
    """,
    demonstrate=lambda verify: _show_verify(verify),
)
def check_verify(verify: Callable[..., Any]) -> None:
    rng = fresh_rng()
    rows, columns = (int(size) for size in rng.choice([5, 7, 11, 13], 2, False))
    want: list[np.ndarray] = [
        rng.standard_normal((rows, columns), dtype="float32"),
        rng.standard_normal((columns,), dtype="float32") + 3,
        rng.integers(0, 9, (rows, 1)),
    ]
    kept = [each.copy() for each in want]

    def copies() -> list[np.ndarray]:
        return [each.copy() for each in want]

    # From 2 on: a message has other pairs of small numbers, as in "output 1: 1 of 35 elements".
    at = tuple(int(rng.integers(2, extent)) for extent in (rows, columns))
    got = copies()
    got[0][at] += np.float32(5e-5)
    got[0][0, 0] += np.float32(1e-5)  # smaller: neither the largest nor equal to it
    got[1] += np.float32(2e-5)
    largest = max(
        float(np.abs(g - w.astype("float64")).max()) for g, w in zip(got, want, strict=True)
    )
    _check_tolerances(verify)
    given = [each.copy() for each in got]
    returned = verify(got, want, atol=_ATOL, rtol=_RTOL)
    for before, after in zip(given, got, strict=True):
        expect_unchanged(before, after, "outputs")
    expect(
        isinstance(returned, float | np.floating)
        and abs(float(returned) - largest) <= 1e-3 * largest,
        expected=f"the largest absolute error of all outputs, {largest:.3g}, as a float",
        seen=f"{returned!r}",
        look="the maximum over every element of every output",
    )
    _check_values(verify, want, at)
    _check_counts_and_shapes(verify, want)
    got = copies()
    got[0][at] = want[0][at] - np.float32(0.75)
    milder = (0, int(np.abs(want[0][0]).argmax()))  # wrong too, and less: not the worst
    got[0][milder] *= np.float32(1.01)
    message = _expect_rejected(
        verify,
        [got[1], got[0]],
        [want[1], want[0]],
        case="two elements, one of them 0.75 too small",
        look="the absolute value of the difference",
    )
    _check_message(message, index=1, at=at, error=0.75, relative=0.75 / abs(float(want[0][at])))
    _check_further_messages(verify)
    _check_named_element(verify)
    _check_layouts(verify)
    got[0][at] = np.nan
    message = _expect_rejected(verify, got, want, case="NaN", look="comparisons with NaN are false")
    expect(
        len(re.findall(r"(?i)\binf|∞", message)) >= 2,
        expected="both errors named as infinite for NaN, the absolute and the relative one",
        seen=message,
        look="the text of the ValueError: report an error of NaN as infinite",
    )
    _check_message(message, index=0, at=at)
    for before, after in zip(kept, want, strict=True):
        expect_unchanged(before, after, "reference")
    for number in range(40):
        _check_drawn(verify, rng, number)
    exact = rng.uniform(1, 2, 99)
    rounded = exact.astype("float32")
    returned, wanted = (
        verify([rounded], [exact], atol=1e-3, rtol=0.0),
        np.abs(rounded - exact).max(),
    )
    expect(
        abs(float(returned) - wanted) <= 1e-9 * wanted,
        expected=f"the largest absolute error of float32 for float64, {wanted!r}",
        seen=f"{returned!r}",
        look="both in float64, whatever the other's type is",
    )
    for shape in ((1201, 3), (3, 1201), (601, 1, 701), (300_007,)):
        reference = rng.standard_normal(shape)
        for place in (tuple(each - 1 for each in shape), (0,) * len(shape)):
            output = reference.copy()
            output[place] += 0.5
            _expect_rejected(
                verify, [output], [reference], case=f"0.5 too much at {list(place)} of {shape}",
                look="every element counts, the first and the last too",
            )  # fmt: skip


def _check_counts_and_shapes(verify: Callable[..., Any], want: list[np.ndarray]) -> None:
    """Of three outputs, the last one a column: others in number or shape are rejected."""
    rows = len(want[2])
    for case, outputs, look in (
        ("2 outputs where the reference has 3", want[:2], "len of both, before zip"),
        ("4 outputs where the reference has 3", [*want, want[0]], "len of both, before zip"),
        ("no outputs where the reference has 3", [], "len of both, before zip"),
        (
            f"shape {(rows,)} where the reference has {(rows, 1)}",
            [*want[:2], want[2][:, 0]],
            "the shapes; numpy would broadcast them",
        ),
    ):
        _expect_rejected(verify, [each.copy() for each in outputs], want, case=case, look=look)
    for counts in ((61, 60), (60, 61), (1000, 999), (999, 1000)):
        _expect_rejected(
            verify, *([np.ones(3)] * count for count in counts), look="len of both, before zip",
            case=f"{counts[0]} outputs where the reference has {counts[1]}",
        )  # fmt: skip
    alike = np.full((rows, 3), 2.0)  # NumPy would find them equal
    for other in (
        *(alike[:1], alike[0], alike[:, :1], alike[None], alike[0, 0], alike.reshape(-1)),
        alike[:1, :1],
    ):
        for got, reference in ((other, alike), (alike, other)):
            _expect_rejected(
                verify, [np.array(got)], [np.array(reference)],
                case=f"equal numbers of shapes {got.shape} and {reference.shape}",
                look="the shapes; numpy would broadcast them",
            )  # fmt: skip
    for one, another in (((0, 3), (0, 4)), ((0, 3), (3, 0)), ((0,), (0, 1)), ((2, 0), (0, 2))):
        _expect_rejected(
            verify, [np.ones((2, 2)), np.ones(one)], [np.ones((2, 2)), np.ones(another)],
            case=f"outputs without elements, of shapes {one} and {another}",
            look="the shapes, also of arrays without elements",
        )  # fmt: skip
    for index, count in ((5, 7), (17, 19)):
        outputs = [np.ones((2, 3))] * count
        outputs[index] = np.ones((3, 2))
        message = _expect_rejected(
            verify, outputs, [np.ones((2, 3))] * count, look="the shapes, of each output",
            case=f"an output of another shape, number {index} of {count}",
        )  # fmt: skip
        _check_message(message, index=index)
    _expect_rejected(
        verify,
        [],
        [],
        case="no outputs at all",
        look="the case of no outputs, in which nothing is compared",
    )


def _check_further_messages(verify: Callable[..., Any]) -> None:
    """The index is that of the wrong output; nothing is 0 per cent of a reference of 0."""
    right = np.ones((3, 4))
    wrong = right.copy()
    wrong[2, 3] = 7.25
    for many in (12, int(fresh_rng().integers(30, 99))):  # the largest of all is the first one's
        errors = [np.full(3, 1.0 + (many - at) / 1024) for at in range(many)]
        returned = verify(errors, [np.ones(3)] * many, atol=1.0, rtol=0.0)
        expect(
            abs(float(returned) - many / 1024) < 1e-9,
            expected=f"the largest absolute error of {many} outputs, {many / 1024:.4g}",
            seen=f"{returned!r}",
            look="the maximum over every output, however many there are",
        )
    for index, count in ((5, 7), (17, 19)):
        outputs = [right] * count
        outputs[index] = wrong
        case = f"output {index} of {count}"
        message = _expect_rejected(verify, outputs, [right] * count, case=case, look="the loop")
        _check_message(message, index=index, at=(2, 3), error=6.25, relative=6.25)
    for shape in ((3, 5, 4), (3, 3, 5, 4)):
        reference = np.full(shape, 2.0)
        output, last = reference.copy(), tuple(each - 1 for each in shape)
        output[last] = 10.25
        message = _expect_rejected(
            verify, [output], [reference], case=f"10.25 for 2 at {list(last)}", look="the loop"
        )
        _check_message(message, index=0, at=last, error=8.25, relative=4.125)
    halves = np.array([59_904.0, 1.0], "float16"), np.array([-59_904.0, 1.0], "float16")
    returned = _raised(verify, [halves[0]], [halves[1]], atol=1.3e5, rtol=0.0)
    expect(
        returned is None,
        expected="59904 for -59904, both float16, accepted within atol=1.3e5",
        seen=f"it was refused: {returned}",
        look="the difference in float64: float16 ends at 65504",
    )
    far = np.array([3.0, 1_234_570.5])
    returned = verify([far], [np.array([3.0, 3.0])], atol=2e6, rtol=0.0)
    expect(
        float(returned) == 1_234_567.5,
        expected="the largest absolute error, 1234567.5, within atol=2e6",
        seen=f"{returned!r}",
        look="the return statement: the error itself, not rounded",
    )
    message = _expect_rejected(
        verify, [wrong], [right - (wrong > right)], case="7.25 for 0", look="the absolute error"
    )
    expect(
        re.search(r"(?i)\binf|∞", message) is not None,
        expected="an infinite relative error where the reference is 0",
        seen=message,
        look="the error over the reference's absolute value",
    )
    # The largest error, the largest relative one and the one furthest above what is allowed are of
    # three elements.
    reference, output = np.array([1e4, 50.0, 0.125]), np.array([10137.0, 119.0, 64.125])
    message = _expect_rejected(
        verify, [output], [reference], case="three wrong elements", look="the loop", rtol=0.012
    )
    _check_message(message, index=0, error=137, relative=512)
    empty = np.zeros((0, 3), "float32")
    returned = verify([empty, right], [empty, right], atol=_ATOL, rtol=_RTOL)
    expect(
        float(returned) == 0,
        expected="0 for equal outputs, of which one has no elements",
        seen=f"{returned!r}",
        look="the maximum of an empty array",
    )
    _expect_rejected(
        verify, [empty, wrong], [empty, right], case="a wrong output after one without elements",
        look="what the loop does with an output that has no elements: it goes on to the next one",
    )  # fmt: skip
    returned = verify([right + 3e-9], [right], atol=1e-6, rtol=0.0)
    expect(
        bool(np.isclose(float(returned), 3e-9, rtol=1e-3, atol=0)),
        expected="the largest absolute error, 3e-09, for 1.000000003 within atol=1e-6",
        seen=f"{returned!r}",
        look="the return statement: the error itself, not rounded",
    )


def _check_named_element(verify: Callable[..., Any]) -> None:
    """The message is of the wrong output alone, and names an element that is wrong."""
    reference = np.full((5, 7), 8.0)
    reference[0, 0], reference[1, 2] = 1e6, 1e-9
    near = reference.copy()
    near[0, 0] += 40  # within rtol
    near[1, 2] += 5e-5  # within atol
    wrong, at = near.copy(), (3, 4)
    wrong[at] += 0.75
    message = _expect_rejected(
        verify, [wrong], [reference], case="8.75 for 8 beside larger errors that are allowed",
        look="the loop",
    )  # fmt: skip
    relative = 5e-5 / 1e-9  # the output's largest, of an element that is right
    _check_message(message, index=0, at=at, error=40, relative=relative)
    alone, other = np.full((5, 7), 8.0), np.full((5, 7), 8.0)
    other[at] += 0.75
    message = _expect_rejected(
        verify, [near, other], [reference, alone], look="the loop",
        case="8.75 for 8 after an output with a larger error that is allowed",
    )  # fmt: skip
    _check_message(message, index=1, at=at, error=0.75, relative=0.75 / 8)
    for milder in ((0, 0), (4, 6)):  # wrong too: before the worst, and behind it
        both = other.copy()
        both[milder] += 0.25
        message = _expect_rejected(
            verify, [both], [alone], case="8.75 and 8.25 for 8",
            look="the position: of the worst element, not of the first or the last wrong one",
        )  # fmt: skip
        _check_message(message, index=0, at=at, error=0.75, relative=0.75 / 8)
    equal = [alone] * 44
    message = _expect_rejected(
        verify, [*equal, other], [*equal, alone], case="8.75 for 8 after 44 others", look="the loop"
    )
    _check_message(message, index=44, at=at, error=0.75, relative=0.75 / 8)
    none = [np.zeros((0, 3))] * 6
    message = _expect_rejected(
        verify, [*none, other], [*none, alone], case="8.75 for 8 after outputs of no elements",
        look="the index: outputs without elements count, too",
    )  # fmt: skip
    _check_message(message, index=6, at=at, error=0.75, relative=0.75 / 8)
    _expect_rejected(
        verify, [np.array([np.inf], "float16")], [np.array([1e5], "float32")],
        case="an infinity of float16 for 1e5", look="an infinity: right only for the same one",
    )  # fmt: skip
    many, position = np.full(20_011, 2.0), 20_009
    late = many.copy()
    late[position] = 3.5
    message = _expect_rejected(
        verify, [late], [many], case="an element near the end of 20011", look="all elements count"
    )
    _check_message(message, index=0, at=(position,), error=1.5, relative=0.75)
    returned = verify([late], [many], atol=2.0, rtol=0.0)
    expect(
        float(returned) == 1.5,
        expected="the largest absolute error of 20011 elements, 1.5, within atol=2",
        seen=f"{returned!r}",
        look="the maximum over every element, however many there are",
    )


def _check_layouts(verify: Callable[..., Any]) -> None:
    """Elements belong together by their position, however they are in memory."""
    rows, columns, depth = (int(size) for size in fresh_rng().choice([3, 5, 7, 9], 3, False))
    reference = fresh_rng().standard_normal((rows, columns, depth)) + 4
    at = tuple(each - 1 for each in reference.shape)
    layouts: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
        np.ascontiguousarray,
        np.asfortranarray,
        lambda array: np.ascontiguousarray(array.transpose(1, 2, 0)).transpose(2, 0, 1),
        lambda array: np.repeat(array, 2, axis=1)[:, ::2],
        lambda array: np.ascontiguousarray(array[::-1, :, ::-1])[::-1, :, ::-1],
    )
    for place, layout in enumerate(layouts):
        others = (layout, layouts[place - 1])
        for one, another in (others, others[::-1]):
            got = one(reference + 1e-6)
            message = _raised(verify, [got], [another(reference)], atol=1e-5, rtol=0.0)
            strides = f"strides {got.strides} and {another(reference).strides}"
            expect(
                message is None,
                expected=f"equal outputs accepted, of shape {reference.shape} and {strides}",
                seen=f"refused: {message}",
                look="what takes elements in the order in which they are in memory",
            )
            wrong = reference.copy()
            wrong[at] += 0.75
            message = _expect_rejected(
                verify, [one(wrong)], [another(reference)], case=f"an output of {strides}",
                look="the position of the worst element",
            )  # fmt: skip
            _check_message(message, index=0, at=at, error=0.75)


def _check_tolerances(verify: Callable[..., Any]) -> None:
    """Both tolerances count, and they are added."""
    cases: tuple[tuple[Any, Any, float, float, bool, str], ...] = (
        (1e-6, 0.0, 1e-5, 1e-5, True, "1e-6 for 0 within atol=1e-5"),
        (1000.05, 1000.0, 1e-6, 1e-4, True, "1000.05 for 1000 within rtol=1e-4"),
        (1.15, 1.0, 0.1, 0.1, True, "1.15 for 1 within atol=0.1 + rtol=0.1"),
        (1.15, 1.0, 0.1, 0.0, False, "1.15 for 1 with atol=0.1 and rtol=0"),
        (0.5, 0.0, 0.1, 0.9, False, "0.5 for 0 with atol=0.1, whatever rtol is"),
        (-1.0, 1.0, 0.1, 0.1, False, "-1 for 1"),
        (-1000.05, -1000.0, 1e-6, 1e-4, True, "-1000.05 for -1000 within rtol=1e-4"),
        (1.5, 1.0, 0.5, 0.0, True, "1.5 for 1 within atol=0.5: as much as is allowed"),
        (2.1, 1.0, 0.0, 0.6, False, "2.1 for 1 with rtol=0.6, which is of the reference"),
        (1.0, 2.1, 0.0, 0.51, False, "1 for 2.1 with rtol=0.51"),
        (1.0, 2.1, 0.0, 0.53, True, "1 for 2.1 within rtol=0.53 of the reference"),
        (1.1 + 1e-7, 1.0, 0.1, 0.0, False, "1.1000001 for 1 with atol=0.1"),
        (1.1 + 1e-7, 1.0, 0.0, 0.1, False, "1.1000001 for 1 with rtol=0.1"),
        (1.1 - 1e-7, 1.0, 0.0, 0.1, True, "1.0999999 for 1 within rtol=0.1"),
        (1.1 - 1e-7, 1.0, 0.1, 0.0, True, "1.0999999 for 1 within atol=0.1"),
        (1e30, 1.0001e30, 0.0, 1e-3, True, "1e30 for 1.0001e30 within rtol=1e-3"),
        (1e-30, 0.0, 0.0, 0.5, False, "1e-30 for 0 with atol=0"),
        (2**24 + 1, 2**24, 0.5, 0.0, False, "16777217 for 16777216, both int64"),
        (1 + 1e-9, 1.0, 1e-12, 0.0, False, "1.000000001 for 1 in float64 with atol=1e-12"),
        (np.uint8(3), np.uint8(250), 10.0, 0.0, False, "3 for 250, both uint8, with atol=10"),
        (np.uint8(250), np.uint8(3), 10.0, 0.0, False, "250 for 3, both uint8, with atol=10"),
        (np.int64(-5), np.int64(-5), 0.0, 0.0, True, "-5 for -5, both int64"),
        (np.float16(6e4), np.float16(-6e4), 1.0, 0.1, False, "60000 for -60000 in float16"),
        (True, False, 0.5, 0.0, False, "True for False"),
        (True, True, 0.0, 0.0, True, "True for True"),
        (-0.0, 0.0, 0.0, 0.0, True, "-0 for 0"),
        (1e308, -1e308, 1.0, 1.0, False, "1e308 for -1e308, whose difference is infinite"),
        (np.float32(1e-40), np.float32(0), 0.0, 0.0, False, "1e-40 for 0 in float32, with atol=0"),
        (np.int32(7), np.int64(7), 0.0, 0.0, True, "7 in int32 for 7 in int64"),
        (np.uint64(2**63), np.uint64(2**63), 0.0, 0.0, True, "2**63 for 2**63, both uint64"),
        (np.int64(1), np.float32(1), 0.0, 0.0, True, "1 in int64 for 1.0 in float32"),
        (np.float64(0.5), np.float32(0.5), 0.0, 0.0, True, "0.5 in float64 for 0.5 in float32"),
    )
    _expect_rejected(
        verify,
        [np.array([1.5, 1e6])],
        [np.array([1.0, 1e6])],
        case="1.5 for 1 beside 1e6 for 1e6, with rtol=1e-3",
        look="rtol times each element's own reference",
        rtol=1e-3,
    )
    for got, want, atol, rtol, right, what in cases:
        for rank in (1, 4):
            pair = [np.array(each).reshape((1,) * rank) for each in (got, want)]
            equal = pair[1].copy()
            message = _raised(verify, [equal, pair[0]], [equal, pair[1]], atol=atol, rtol=rtol)
            wanted = "accepted" if right else "refused"
            expect(
                (message is None) == right,
                expected=f"{what}{f', of {rank} axes,' * (rank != 1)} {wanted}",
                seen="it was refused" if message else "it was accepted",
                look="|output - reference| <= atol + rtol * |reference|, with the absolute "
                "values, in float64",
            )


_KINDS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32")


def _check_drawn(verify: Callable[..., Any], rng: np.random.Generator, number: int) -> None:
    """Outputs of any number, shapes and types; some elements differ, and one too much, or none."""
    kind, turn = _KINDS[number % len(_KINDS)], number // len(_KINDS)  # of the first output
    reference = [_draw_output(rng, kind)]
    reference += [_draw_output(rng) for _ in range(int(rng.choice([0, 1, 2, 44])))]
    large = turn > 2
    if large:
        rows, columns = (int(each) for each in rng.integers(200, 900, 2))
        shapes = ((rows * columns,), (rows, columns), (columns, 1, rows))
        reference.append(rng.standard_normal(shapes[int(rng.integers(3))]))
    outputs = [reference[0].copy(), *(_near(each, rng) for each in reference[1:])]
    atol, rtol = float(10 ** rng.uniform(-3, 0)), float(rng.choice([0.0, 10 ** rng.uniform(-3, 0)]))
    for output, want in zip(outputs, reference, strict=True):
        for _ in range(int(rng.integers(0, 4)) * bool(want.size)):
            _move(output, want, atol, rtol, rng.choice([0.3, 1 - 1e-9]), rng)
    filled = [at for at, each in enumerate(outputs) if each.size]
    if turn == 1 or rng.random() < 0.5:
        at = 0 if turn == 1 else int(rng.choice(filled[-1:] if large else filled))
        # Near the limit too, where float64 still tells both sides.
        factor = 1.5 if turn == 1 else float(rng.choice([1 + 1e-9, 7.0]))
        _move(outputs[at], reference[at], atol, rtol, factor, rng)
    largest, bad = 0.0, dict[int, tuple[str, np.ndarray, np.ndarray]]()
    for at, (output, want) in enumerate(zip(outputs, reference, strict=True)):
        got, wanted = output.astype("float64"), want.astype("float64")
        error = np.abs(got - wanted)
        excess = error - (atol + rtol * np.abs(wanted))
        largest = max(largest, float(error.max(initial=0)))
        if (excess > 0).any():
            place = np.unravel_index(int(excess.argmax()), want.shape)
            at_place = [int(each) for each in place]
            what = f"{float(got[place])!r} for {float(wanted[place])!r} at {at_place}"
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = np.where(error == 0, 0.0, error / np.abs(wanted))
            bad[at] = f"{what} of output {at}", error, relative
    first = next(iter(bad.values()))[0] + ", " if bad else ""
    case = f"{first}{len(outputs)} outputs of types and shapes " + ", ".join(
        f"{output.dtype} for {want.dtype} {want.shape}"
        for output, want in list(zip(outputs, reference, strict=True))[-3:]
    )
    case += f", with atol={atol!r} and rtol={rtol!r}"
    look = "|output - reference| <= atol + rtol * |reference| in float64, for arrays of each type "
    look += "and shape, of no dimension as well"
    try:
        returned = verify(outputs, reference, atol=atol, rtol=rtol)
    except ValueError as raised:
        expect(bool(bad), expected=f"{case} accepted", seen=f"it was refused: {raised}", look=look)
        if len(bad) == 1:
            [(at, (_, error, relative))] = bad.items()
            told = float(error.max()), float(relative.max())
            # Of nothing, no difference may be counted as any part.
            finite = told[1] if np.isfinite(told[1]) and reference[at].all() else None
            _check_message(str(raised), index=at, error=told[0], relative=finite)
            _expect_not_swapped(str(raised), *told)
        return
    expect(not bad, expected=f"{case} refused", seen="it was accepted", look=look)
    expect(
        isinstance(returned, float | int | np.number)
        and abs(float(returned) - largest) <= 1e-12 * largest,
        expected=f"the largest absolute error, {largest!r}, of {case}",
        seen=f"{returned!r}",
        look="the maximum of the absolute differences in float64, over every element of every "
        "output, not rounded",
    )


def _near(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy, maybe of another type."""
    if array.dtype.kind == "f" and rng.random() < 0.3:
        return array.astype(rng.choice(["float16", "float32", "float64"]))
    if array.dtype.kind in "iu" and rng.random() < 0.3:
        return array.astype(rng.choice(["int64", "float32", "int16"]))
    return array.copy()


def _move(
    output: np.ndarray,
    reference: np.ndarray,
    atol: float,
    rtol: float,
    factor: float,
    rng: np.random.Generator,
) -> None:
    """Put an element of an output so many times as far off as is allowed, or nearly."""
    place = tuple(int(rng.integers(extent)) for extent in output.shape)
    want = float(reference[place])
    off = factor * (atol + rtol * abs(want)) * rng.choice([-1, 1])
    if output.dtype.kind == "f":
        output[place] = output.dtype.type(want + off)
    else:  # of whole numbers, those on either side
        step = int(np.copysign(np.ceil(abs(off)) if factor > 1 else np.floor(abs(off)), off))
        limits = np.iinfo(output.dtype)
        output[place] = min(max(int(want) + step, limits.min), limits.max)


def _draw_output(rng: np.random.Generator, named: str = "") -> np.ndarray:
    """Of any type and up to seven dimensions; of no elements at times, unless a type is named."""
    kind = np.dtype(named or rng.choice(_KINDS))
    shape = [int(each) for each in rng.integers(1, 5, int(rng.integers(0, 8)))]
    if shape and not named and rng.random() < 0.1:
        shape[-1] = 0
    if kind.kind in "iu":
        return np.asarray(rng.integers(0, 99, shape), kind)
    return np.asarray(rng.uniform(-3, 3, shape), kind)


def _expect_not_swapped(message: str, error: float, relative: float) -> None:
    """The number after "absolute" is not the relative error while the other one is absolute."""

    def after(word: str) -> float:
        found = re.search(rf"(?i){word}.*?(\d+(?:\.\d+)?(?:e[-+]?\d+)?|\binf)", message)
        return float(found[1]) if found else np.nan

    def near(value: float, wanted: float) -> bool:
        return value == wanted or abs(value - wanted) <= 0.02 * wanted

    expect(
        near(error, relative) or not (near(after("abs"), relative) and near(after("rel"), error)),
        expected=f"a message with an absolute error of {error:.3g} and a relative one of "
        f"{relative:.3g}",
        seen=message,
        look="which of the two errors the message calls absolute",
    )


def _check_values(verify: Callable[..., Any], want: list[np.ndarray], at: tuple[int, ...]) -> None:
    """NaN is wrong wherever it is; an infinity must be met by the same."""
    nan, infinite, opposite = want[0].copy(), want[0].copy(), want[0].copy()
    nan[at], infinite[at], opposite[at] = np.nan, np.inf, -np.inf
    for case, got, reference in (
        ("NaN in the output", nan, want[0]),
        ("NaN in the reference", want[0], nan),
        ("NaN in both", nan, nan),
        ("an infinity in the output", infinite, want[0]),
        ("an infinity in the reference only", want[0], infinite),
        ("infinities of opposite sign", opposite, infinite),
    ):
        _expect_rejected(
            verify,
            [got],
            [reference],
            case=case,
            look="comparisons with NaN are false, and rtol times infinity allows everything",
        )
    message = _raised(verify, [infinite], [infinite], atol=_ATOL, rtol=_RTOL)
    expect(
        message is None,
        expected="the same infinity accepted in both (an attention mask has them)",
        seen=f"it was refused: {message}",
        look="infinity minus infinity, which is NaN",
    )


def _check_message(
    message: str,
    *,
    index: int,
    error: float | None = None,
    relative: float | None = None,
    at: tuple[int, ...] = (),
) -> None:
    """The message names all of them that are given; `at` is the worst element."""
    message = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", message)  # how numpy writes its scalars
    numbers = [float(each) for each in re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", message)]

    def names(value: float) -> bool:
        return any(abs(number - value) <= 0.02 * value for number in numbers)

    # Digits that stand together: not the end of one number and the beginning of another.
    position = r"\D{1,12}".join(str(i) for i in at)
    found: list[tuple[object, str]] = [
        (f"{index}" in re.findall(r"\d+", message), f"the output's index, {index}")
    ]
    if error is not None:
        found.append((names(error), f"the largest absolute error, {error:.3g}"))
    if relative is not None:
        told = names(relative) or names(100 * relative)
        found.append((told, f"the largest relative error, {relative:.3g}"))
    if at:
        told = re.search(rf"(?<![\d.]){position}(?![\d.])", message) is not None
        found.append((told, f"the worst element's position, {list(at)}"))
    for named, what in found:
        expect(
            bool(named),
            expected=f"a message that names {what}",
            seen=message or "an empty message",
            look="the text of the ValueError: the user sees nothing else",
        )


def _show_verify(verify: Callable[..., Any]) -> str:
    reference = np.array([[1.0, 2.0], [3.0, 4.0]])
    shown = [f"right: {verify([reference + 1e-6], [reference], atol=1e-5, rtol=1e-5):.1e}"]
    shown.append(f"wrong: {_raised(verify, [reference.T], [reference], atol=1e-5, rtol=1e-5)}")
    return "\n".join(textwrap.fill(line, 76, subsequent_indent="       ") for line in shown)


# As in the chapter: from PyTorch to a verified result in current TVM, then the same in classic TVM.
PHASE.exercises.sort(key=lambda each: each.engine == CLASSIC)
