"""A Relay module built at level 3, with further settings."""

import contextlib
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.checks.relay_import.common import PHASE, imported_relay, same_elements
from tvm_practice.course.expect import draw_distinct, expect, fresh_rng
from tvm_practice.course.imported_models import (
    any_llvm,
    arrays,
    by_pytorch,
    demonstrated_model,
    draw_model,
    expect_as_pytorch,
    expect_left_alone,
    expect_target_used,
    given_module,
    other_target,
)
from tvm_practice.engines import CLASSIC
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.tvm_export.running import run_relay


@PHASE.exercise(
    "build_relay",
    engine=CLASSIC,
    title="Relay module to a graph executor factory",
    hints=(
        "One call fuses, lowers and compiles. The level of its passes and further settings come "
        "from the context around the call.",
        "tvm.transform.PassContext(opt_level=3, config=config) is the context, relay.build(mod, "
        "target=…, params=…) the call. At level 3, AlterOpLayout gives a convolution a layout "
        "whose last axis is as long as a vector, NCHW16c with AVX-512 and NCHW8c with AVX2; at the "
        "default 2 it stays NCHW.",
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
        build_relay(*imported_relay(*demonstrated_model()), any_llvm())
    ),
)
def check_build_relay(build_relay: Callable[..., Any]) -> None:
    model, example = draw_model(outputs=2)
    mod, params = imported_relay(model, example)
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
        expected="the convolution's weight packed for vectors, in 6 dimensions: its input and "
        "output channels are each split in two",
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
        expected="level 3 with config as well: a convolution with split channels, NCHWc "
        "in its name",
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
            for argument in (*arguments, *options.values())
            for each in (argument if isinstance(argument, list | tuple) else [argument])
            if isinstance(each, tvm.target.Target)
        ]
        if asked.get("target") is None and (current := tvm.target.Target.current()) is not None:
            told_target[:] = [str(current)]  # which relay.build takes
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
                look="the statement that writes to config: put settings of your own into a copy",
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
            changed = [
                name for name, each in weights.items() if not same_elements(given[0][name], each)
            ]
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
                expected=f"the settings {given_config or {}} around relay.build",
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
