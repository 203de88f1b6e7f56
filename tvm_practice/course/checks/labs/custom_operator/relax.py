"""The operator in Relax: a converter for exported models."""

from collections.abc import Callable
from typing import Any

from tvm_practice.course.checks.labs.custom_operator.common import (
    PHASE,
    declared_by_reference,
    drawn_model,
    expect_map,
    model_of,
)
from tvm_practice.course.expect import expect, expect_close, fail, fresh_rng
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.viz.graph import format_graph
from tvm_practice.wording import number_of


def _kernel(shape: tuple[int, ...], eps: float) -> Any:
    """The operator as the reference functions make it."""
    from tvm import te

    from solutions.labs.custom_operator import schedule_rms_norm_gate

    func = te.create_prim_func(declared_by_reference(shape, eps))
    return schedule_rms_norm_gate(func, lanes=8).mod["main"]


def _shown_relax(convert_relax: Callable[..., Any]) -> str:
    """The graph of a model with the operator twice, imported and optimized."""
    import torch

    from solutions.relay_import import import_relax, optimize_relax

    example = (torch.ones(2, 3, 16), torch.ones(2, 3, 16))
    with quiet_frontends():
        module = import_relax(
            model_of((1e-5, 1e-5), 16), example, converters=convert_relax(_kernel)
        )
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
    mark = int(fresh_rng().integers(1000))
    kept = {**_attributes(_kernel((1, 8), 0.5)), "graded.kept": str(mark)}

    def kernel(shape: Any, eps: Any) -> Any:
        asked.append((shape, eps))
        return _kernel(shape, eps).with_attr("graded.kept", mark)

    converters = convert_relax(kernel)
    expect_map(converters, "rms_norm_gate.default")
    rng = fresh_rng()
    shape = (2, int(rng.integers(2, 5)), int(rng.integers(5, 9)), 8 * int(rng.integers(2, 6)))
    small = float(rng.uniform(1e-7, 9e-7))
    eps = (0.25, small, 0.0, small, small)
    model, example, want = drawn_model(eps, shape, cut=True, all_told=True)
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
    expect(
        all(isinstance(extent, int) for given, _ in asked for extent in given),
        expected="kernel called with a tuple of int",
        seen=", ".join(sorted({type(extent).__name__ for given, _ in asked for extent in given})),
        look="int(extent) for each extent of x.ty.shape: TVM's IntImm is no int",
    )
    _expect_kernels(module, kept)
    try:  # the module of another import has functions of its own
        with quiet_frontends():
            again = import_relax(model, example, converters=converters)
    except Exception as error:
        raise fail(
            "a second import with the same converters",
            f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}"[:200],
            "state kept from an import: add_func adds to the module of one importer",
        ) from error
    _expect_kernels(again, kept)
    with quiet_frontends():
        executable = build_relax(optimize_relax(module), host_target())
    (got,) = run_relax(executable, [each.numpy() for each in example])
    expect_close(
        got, want, what="the model's result", look="the order of x, z and weight in call_tir"
    )


_CHANGED = "op_pattern", "tirx.is_scheduled", "global_symbol"  # attributes


def _attributes(function: Any) -> dict[str, str]:
    """The attributes of a kernel that a converter leaves as they are."""
    attributes = {str(key): str(value) for key, value in (function.attrs or {}).items()}
    return {key: value for key, value in attributes.items() if key not in _CHANGED}


def _expect_kernels(module: Any, kept: dict[str, str]) -> None:
    """Four kernels of their own in an imported module, called five times; attributes `kept`."""
    import tvm

    kernels = [each for each in module.functions.values() if isinstance(each, tvm.tirx.PrimFunc)]
    calls = _calls_of_primfuncs(module["main"])
    expect(
        len(kernels) == 4 and calls == 5,
        expected="five calls of four kernels: equal functions are added to the module once",
        seen=f"{number_of(calls, 'call')} of PrimFuncs, {number_of(len(kernels), 'PrimFunc')}",
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
    others = [_attributes(each) for each in kernels]
    expect(
        all(each == kept for each in others),
        expected=f"every kernel with its other attributes as they were: {kept}",
        seen=f"{next((each for each in others if each != kept), '')}",
        look="with_attr and without_attr: of the attributes in the docstring alone",
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
