"""A PyTorch model traced and converted to Relay."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.checks.relay_import.common import (
    PHASE,
    expect_as_given,
    looks_up,
    prelude_made_once,
    relay_constants,
    run_imported_relay,
)
from tvm_practice.course.expect import expect, expect_type, fail, fresh_rng
from tvm_practice.course.imported_models import (
    Imported,
    by_pytorch,
    demonstrated_model,
    draw_kinds,
    draw_layers,
    draw_model,
    draw_repeated,
    draw_stack,
    draw_sum,
    expect_as_pytorch,
    expect_only_read,
    expect_operators,
    expect_own_converters,
    expect_read_each_time,
    expect_same_import,
    identical,
    other_weights,
    state,
)
from tvm_practice.engines import CLASSIC
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.viz.graph import format_graph, graph


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
@prelude_made_once()
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
        run_imported_relay(mod, params, example),
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
                expected="the branch that the example takes, of a model that decides by its input",
                seen="the branch of another input",
                look="the example that torch.jit.trace is called with, as it is given",
            )
            weights = [each.numpy() for each in params.values()]
            return weights + relay_constants(main), str(main.ret_type.dtype)

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
    got = run_imported_relay(mod, params, example)
    expect_as_pytorch(got, by_pytorch(model, example), look="the order of the inputs")


def _expect_any_name(import_relay: Callable[..., Any]) -> None:
    """Weights are in params whatever they are called, and whichever operator takes them."""
    import torch

    class Shifted(torch.nn.Module):
        shift: torch.Tensor
        nothing: torch.Tensor

        def __init__(self, count: int) -> None:
            super().__init__()
            self.gain = torch.nn.Parameter(torch.rand(5) + 1)
            self.register_buffer("shift", torch.rand(5))
            self.register_buffer("nothing", torch.zeros(0, 5))
            # Equal ones are different weights all the same.
            self.many = torch.nn.ParameterList(torch.ones(5) for _ in range(count - 3))

        def forward(self, x: Any) -> Any:
            total = x * self.gain + self.shift + torch.stack(list(self.many)).sum(0)
            return torch.cat([total, self.nothing])

    count = int(fresh_rng().integers(600, 1200))
    mod, params = import_relay(Shifted(count).eval(), (torch.ones(2, 5),))
    weights = [name for name in graph(mod).inputs if name != "input_0"]
    expect(
        len(weights) == count and sorted(weights) == sorted(params),
        expected=f"all {count} weights of a model in params, gain and shift among them, "
        "those that are equal, and one without elements",
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
            run_imported_relay(mod, params, example),
            by_pytorch(model, example),
            look="the example that is traced, as it is given, and the options of from_pytorch",
            exactly=looks_up(example),
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


def _expect_any_namespace(import_relay: Callable[..., Any]) -> None:
    """A converter of an operator that is not PyTorch's own is used as well."""
    import torch
    from torch import library

    @library.custom_op("practice_graded::gate", mutates_args=())
    def gate(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x * z

    class Gated(torch.nn.Module):
        def forward(self, x: Any, z: Any) -> Any:
            return gate(x, z)

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
        expect_as_given(
            parameter.name_hint,
            seen,
            tensor,
            look="the example that is traced, and the shape given to from_pytorch",
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
