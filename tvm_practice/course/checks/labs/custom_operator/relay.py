"""The operator in Relay: registered, with a strategy, called, converted to."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tvm_practice.course.checks.labs.custom_operator.common import (
    PHASE,
    draw_inputs,
    drawn_model,
    expect_map,
    fresh_numbers,
    model_of,
    right_values,
)
from tvm_practice.course.expect import draw_distinct, expect, expect_close, fail, fresh_rng
from tvm_practice.engines import CLASSIC
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.viz.graph import format_graph, graph
from tvm_practice.wording import number_of


def _unscheduled(outputs: Sequence[Any]) -> Any:
    """The plainest te.Schedule of an operator's output tensors."""
    from tvm import te

    return te.create_schedule([each.op for each in outputs])


def _shown_relay(convert_relay: Callable[..., Any]) -> str:
    import torch

    from solutions.labs.custom_operator import rms_norm_gate
    from solutions.relay_import import import_relay, optimize_relay

    name = f"shown.rms_norm_gate_{next(fresh_numbers)}"
    example = (torch.ones(2, 3, 16), torch.ones(2, 3, 16))
    converters = convert_relay(name, rms_norm_gate, _unscheduled)
    with quiet_frontends():
        imported = import_relay(model_of((1e-5, 1e-5), 16), example, converters=converters)
    return format_graph(optimize_relay(*imported)).replace(name, "shown.rms_norm_gate")


def _registered() -> tuple[str, Any]:
    """A new name and its operator, registered by the reference step."""
    from solutions.labs.custom_operator import register_operator

    name = f"practice.rms_norm_gate_{next(fresh_numbers)}"
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

    # A name may have any number of parts.
    for dtype, prefix in (
        ("float32", "graded."),
        ("float16", ""),
        ("float32", "graded.of.layers."),
    ):
        name = f"{prefix}rms_norm_gate_{next(fresh_numbers)}"
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

    name = f"shown.rms_norm_gate_{next(fresh_numbers)}"
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
    another, other_operator = _registered()
    give_strategy(another, other.compute, other.schedule)
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
    x, z, weight = draw_inputs(shape)
    want = right_values(right_values(x, z, weight, eps[0]), z, weight, eps[1])
    expect_close(run(x, z, weight), want, what="the result of two calls", look="compute(*inputs)")
    _built(_relay_calls(other_operator, shape, eps))
    expect(
        bool(other.eps) and bool(other.scheduled),
        expected=f"the compute and the schedule that were given for {another}",
        seen="those that were given for an operator before it",
        look="state kept from another call of give_strategy",
    )


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
    expect_map(converters, "tvm_practice::rms_norm_gate")
    convert = converters["tvm_practice::rms_norm_gate"]
    rng = fresh_rng()
    for names, eps in (
        (("x", "z", "weight"), 0.25),
        (("pixels", "z", "w"), float(rng.integers(1, 8)) / 16),
        (("b", "activations", "a"), float(rng.uniform(1e-7, 9e-6))),
        (("z", "x", "z"), 0.0),
    ):
        arguments = [relay.var(each) for each in names]
        for each in (eps, eps + 0.5):  # the same tensors with another eps, too
            _check_converted(convert, operator, name, [*arguments, each])


def _check_converted(convert: Callable[..., Any], operator: Any, name: str, given: Any) -> None:
    """A converter makes a call of the operator from a trace's inputs: three tensors and eps."""
    from tvm import relay

    *arguments, eps = given
    call = convert(given, ["float32", "float32", "float32", "float"])
    expect(
        len(given) == 4 and given[3] == eps,
        expected="the list of inputs as it was",
        seen=f"{number_of(len(given), 'input')} in it after the call",
        look="pop and the like: the list belongs to the import",
    )
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
    keys = list(map(str, attributes.keys())) if attributes is not None else []
    seen = attributes["eps"] if "eps" in keys else None
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
    depth = "." * int(rng.integers(2, 5))
    name = "practice" + depth.replace(".", ".a") + f".rms_norm_gate_{next(fresh_numbers)}"
    later = f"rms_norm_gate_{next(fresh_numbers)}"
    with _registering(name):
        converters = convert_relay(name, compute, schedule)
    other = _Called()
    with _registering(later):
        convert_relay(later, other.compute, other.schedule)
    expect_map(converters, "tvm_practice::rms_norm_gate")
    shape = (int(rng.integers(2, 5)), int(rng.integers(5, 9)), 16 * int(rng.integers(2, 4)))
    model, example, want = drawn_model(eps, shape)
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
    scheduled.clear()
    _expect_own_functions(later, other, scheduled)


def _expect_own_functions(name: str, given: _Called, others: list[Any]) -> None:
    """A call of an operator is made loops by its own functions, not by an earlier operator's."""
    from tvm.relay.op.op import get

    _built(_relay_calls(get(name), (2, 16), (0.25,)))
    expect(
        bool(given.eps) and bool(given.scheduled) and not others,
        expected=f"the compute and the schedule that were given for {name}",
        seen="those of an operator that was registered before it",
        look="state kept from an earlier call",
    )


def _expect_two_calls(mod: Any, name: str) -> None:
    found = graph(mod).operators
    expect(
        found[name] == 2,
        expected=f"two calls of the Relay operator {name}",
        seen=", ".join(found) or "no calls",
        look="relay.Call of tvm.relay.op.op.get(name): TVM would fuse and schedule Relay's own "
        "operators as it likes",
    )
