"""A Relay module optimized: weights bound, folded and scaled."""

from collections.abc import Callable
from typing import Any
from unittest import mock

from tvm_practice.course.checks.relay_import.common import (
    PHASE,
    expect_no_constant_calls,
    imported_relay,
    relay_constants,
    run_imported_relay,
    same_elements,
)
from tvm_practice.course.expect import draw_distinct, expect, expect_type, fresh_rng
from tvm_practice.course.imported_models import (
    by_pytorch,
    demonstrated_model,
    draw_kinds,
    draw_layers,
    draw_model,
    expect_as_pytorch,
    expect_left_alone,
    expect_operators,
    given_module,
    identical,
)
from tvm_practice.engines import CLASSIC
from tvm_practice.viz.graph import format_graph, graph
from tvm_practice.wording import number_of


@PHASE.exercise(
    "optimize_relay",
    engine=CLASSIC,
    title="Relay: bind the weights, fold constants and scales",
    hints=(
        "While the weights are inputs, nothing about them can be computed in advance. So make "
        "them constants first, in a copy of the module, then run passes as fused_classic does.",
        "relay.build_module.bind_params_by_name(function, params) binds the weights. "
        "The passes are in relay.transform: SimplifyInference, FoldConstant, FoldScaleAxis, "
        "CanonicalizeOps, FoldConstant again (scales and biases are constants too), "
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
        optimize_relay(*imported_relay(*demonstrated_model()))
    ),
)
def check_optimize_relay(optimize_relay: Callable[..., Any]) -> None:
    import tvm

    optimize_relay = _compiling_once(optimize_relay)
    model, example = draw_model(outputs=2)
    mod, params = imported_relay(model, example)
    before, kept = given_module(mod), {name: each.numpy() for name, each in params.items()}
    optimized = optimize_relay(mod, params)
    expect_type(optimized, tvm.IRModule, "the result as a tvm.IRModule")
    expect_left_alone(before, mod)
    expect(
        params.keys() == kept.keys(),
        expected="params left as they were",
        seen=f"{number_of(len(params), 'weight')} of {len(kept)}",
        look="the statement that removes or adds an entry of params",
    )
    changed = [name for name, each in kept.items() if not same_elements(params[name], each)]
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
    expect_no_constant_calls(
        shown, look="the pass FoldConstant, after the passes that make such calls"
    )
    scaled = [
        call for call in shown.calls if call.operators == ("multiply",) and "constant" in str(call)
    ]
    expect(
        not scaled,
        expected="the batch normalization's scale folded into the convolution's weights",
        seen=f"it is still multiplied at run time: {scaled[:1]}",
        look="the pass FoldScaleAxis, after SimplifyInference makes the scale; it needs "
        "tvm.transform.PassContext(opt_level=3)",
    )
    expect_as_pytorch(
        run_imported_relay(optimized, {}, example),
        by_pytorch(model, example),
        look="the weights that were bound, and the order of the passes",
    )
    _check_scaled(optimize_relay)
    _check_scaled_before(optimize_relay)
    _check_branches(optimize_relay)
    _check_layers(optimize_relay)
    [(held, given)] = draw_kinds(holding=True)
    holding, _ = imported_relay(held, given)
    for look in (
        "the weights that were bound, also those of float64 and int64, as they are",
        "optimize_relay was called with a second module of the same inputs and other weights",
    ):
        _, weights = imported_relay(held, given)
        expect_as_pytorch(
            run_imported_relay(optimize_relay(holding, weights), {}, given),
            by_pytorch(held, given),
            look=look,
        )
        held.shift.neg_().add_(1)
        held.counts.add_(2)
    _check_each_weight(optimize_relay)


def _compiling_once(optimize_relay: Callable[..., Any]) -> Callable[..., Any]:
    """The answer; for the constants that it folds, TVM compiles no kernel a second time.

    FoldConstant compiles a kernel per call of an operator, and forgets it: those of ten layers are
    alike.
    """
    import tvm
    from tvm import driver

    build = driver.build
    known: dict[tuple[int, str], list[tuple[Any, Any]]] = {}

    def compiled(kernels: Any, **options: Any) -> Any:
        key = tvm.ir.structural_hash(kernels), str(options)
        for each, library in known.get(key, ()):
            if tvm.ir.structural_equal(kernels, each):
                return library
        library = build(kernels, **options)
        known.setdefault(key, []).append((kernels, library))
        return library

    def optimize(mod: Any, params: dict[str, Any]) -> Any:
        with mock.patch.object(driver, "build", compiled):
            return optimize_relay(mod, params)

    return optimize


def _check_each_weight(optimize_relay: Callable[..., Any]) -> None:
    """The constants are the weights of the call, of which one alone may be another one."""
    import tvm
    from tvm import relay

    rng = fresh_rng()
    size, count = int(rng.integers(3, 9)), int(rng.integers(200, 300))
    names = [f"aten::{('add', 'mul')[at % 2]}_{at}.weight" for at in range(count)]
    total = given = relay.var("input_0", shape=(2, size))
    weights = [relay.var(name, shape=(size,)) for name in names]
    for at, each in enumerate(weights):
        # Sums and products may be simplified, which is allowed, to other weights.
        total = (relay.maximum, relay.minimum)[at % 2](total, each)
    mod = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function([given, *weights], total))
    )
    params = {name: tvm.nd.array(rng.random(size, dtype="float32")) for name in names}
    (changed,) = draw_distinct(1, names[1:-1])
    for call in ("first", "second"):
        constants = relay_constants(optimize_relay(mod, params)["main"])
        lost = [
            name
            for name, weight in params.items()
            if not any(identical(weight.numpy(), each) for each in constants)
        ]
        expect(
            not lost,
            expected=f"the {count} weights that are given as constants, as they are",
            seen=f"not there: {', '.join(lost)}",
            look=f"a result kept from a call with the same module, whose {changed} was another; "
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
    mod, params = imported_relay(branched, (torch.ones(1, 3, 4, 4),))
    weighty = "nn.conv2d", "nn.dense", "exp", "sigmoid", "nn.softmax", "erf", "tanh"
    optimized = optimize_relay(mod, params)
    constants = relay_constants(optimized["main"])
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
    mod, params = imported_relay(*draw_layers())
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
        optimize_relay(*imported_relay(Before().eval(), (torch.zeros(1, 3, 8, 8),)))
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
        mod, params = imported_relay(model.eval(), given)
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
            for each in self.many:  # sums of constants may be simplified, and TVM fails at so many
                result = torch.maximum(result, each)
            return result

    torch.manual_seed(int(fresh_rng().integers(1 << 30)))
    optimized = optimize_relay(*imported_relay(Scaled().eval(), (torch.zeros(1, 3, 4, 4),)))
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
        seen=f"{number_of(len(shown.constant_calls), 'call')} on constants, "
        f"{shown.constant_calls[:1]}",
        look="the pass FoldConstant",
    )
    operators = set(shown.operators) - {"multiply", "add", "nn.bias_add"}
    expect(
        operators == {"nn.conv2d", "tanh", "mean", "maximum"},
        expected="the operators nn.conv2d, tanh, mean and maximum, as imported",
        seen=", ".join(sorted(operators)),
        look="passes that replace operators: relay.build changes layouts, and nothing should "
        "approximate",
    )
