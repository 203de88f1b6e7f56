"""Memory planned for a bound on the symbol."""

import itertools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tvm_practice.course.checks.labs.dynamic_shapes.common import (
    PHASE,
    Arrays,
    Function,
    expect_module,
    operators_called,
    run_by,
    unoptimized_target,
)
from tvm_practice.course.expect import draw_distinct, expect, expect_close, fail, fresh_rng
from tvm_practice.course.imported_models import identical, relax_constants
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.memory import MemoryPlan, read_memory

# Widths of a chain of layers; n rows; the result has the last.
_WIDTHS = (8, 64, 24, 48, 16, 8)


def dense_chain(weights: Sequence[np.ndarray]) -> Any:
    """relu(… relu(x @ weights[0]) …), n rows, as fused functions; its symbol is n."""
    from tvm import relax, tirx

    from solutions.relay_import import optimize_relax

    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, weights[0].shape[0]), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y: Any = x
            for weight in weights:
                y = builder.emit(relax.op.matmul(y, relax.const(weight)))
                y = builder.emit(relax.op.nn.relu(y))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    return optimize_relax(builder.get())


def _weights() -> list[np.ndarray]:
    rng = fresh_rng()
    return [
        rng.standard_normal((k, m), dtype="float32") / math.sqrt(k)
        for k, m in itertools.pairwise(_WIDTHS)
    ]


def _vm_build(planned: Any) -> Arrays:
    """What is left of the default pipeline after planning, and the virtual machine's code."""
    import tvm
    from tvm import relax

    passes = tvm.transform.Sequential(
        [
            relax.transform.LowerRuntimeBuiltin(),
            relax.transform.ComputePrimValue(),
            relax.transform.VMShapeLower(),
            relax.transform.AttachGlobalSymbol(),
        ]
    )
    return run_by(tvm.compile(planned, unoptimized_target(), relax_pipeline=passes))


@PHASE.exercise(
    "plan_memory",
    engine=CURRENT,
    title="plan memory, with symbols and with their bounds",
    hints=(
        "A copy of the module gets a main with the attribute, or without it; then passes run as in "
        "phase 4, in the docstring's order.",
        "main = mod['main']; mod.clone() copies; "
        "main.with_attr('tir_var_upper_bound', {...}), or without_attr where bounds is None. "
        "The passes are functions of tvm.relax.transform that return a pass; "
        "tvm.transform.Sequential([...]) is one pass of them, and is called with the module.",
        "marked['main'] = …; return tvm.transform.Sequential([relax.transform."
        "RewriteDataflowReshape(), …, relax.transform.KillAfterLastUse()])(marked), in the "
        "docstring's order: CallTIRRewrite makes the allocations, StaticPlanBlockMemory plans "
        "them, LowerAllocTensor takes the rest.",
    ),
    looks_like="""
        no bound: n * 256, n * 96, n * 192, n * 64, n * 32 bytes
        n at most 10: 2560, 960, n * 32 bytes
    """,
    demonstrate=lambda plan_memory: _demonstrated_plans(plan_memory),
)
def check_plan_memory(plan_memory: Function) -> None:
    weights = _weights()
    most = int(fresh_rng().integers(70, 200))
    for turn, bounds in enumerate((None, {"n": most}, None)):
        # The last as if there had been no call before: of the same main and another kernel.
        mod = _marked(dense_chain(weights), turn)
        before = mod.script()
        planned = plan_memory(mod, bounds)
        expect_module(planned, "plan_memory")
        expect(
            mod.script() == before,
            expected="mod is left as it was",
            seen="main of mod was changed",
            look="clone the module before setting main",
        )
        _expect_planned(planned, bounds, most)
        _expect_kernels(planned, mod)
        run = _vm_build(planned)
        for n in (1, most):
            x = fresh_rng().standard_normal((n, _WIDTHS[0]), dtype="float32")
            want = x
            for weight in weights:
                want = np.maximum(want @ weight, 0)
            expect_close(run(x), want, what=f"the output for n = {n}", look="the passes")
    _expect_reshaped_in_place(plan_memory)
    _expect_all_bounds(plan_memory)
    _expect_bound_of_second_input(plan_memory)
    _expect_many_freed(plan_memory)
    weights[-1] = weights[-1][:, ::-1].copy()  # numbers of the last of them change places
    mod = _marked(dense_chain(weights), turn)
    _expect_kernels(plan_memory(mod, None), mod)


def _marked(mod: Any, turn: int) -> Any:
    """The module with marks on its last kernel, of which main says nothing; and marks on main.

    One of each is a bound, as if it had been imported with bounds.
    """
    kernel = [each for each in mod.get_global_vars() if each.name_hint != "main"][-1]
    mod[kernel] = mod[kernel].with_attr({"graded.turn": turn, "tir_var_upper_bound": {"n": 5}})
    mod["main"] = mod["main"].with_attr("graded.kept", 1)
    mod["main"] = mod["main"].with_attr("tir_var_upper_bound", {"n": 3})
    return mod


def _expect_kernels(planned: Any, mod: Any) -> None:
    """The kernels and the constants are those of the module given."""
    import tvm_ffi

    other = [
        str(each.name_hint)
        for each in mod.get_global_vars()
        if each.name_hint != "main"
        and not tvm_ffi.structural_equal(planned[each.name_hint], mod[each])
    ]
    constants = relax_constants(planned["main"])
    if any(
        not any(identical(each, at) for at in constants) for each in relax_constants(mod["main"])
    ):
        other.append("constants of main")
    expect(
        not other,
        expected="the kernels and constants of the module given, as they are",
        seen=f"other {', '.join(other)}",
        look="state kept from a call with another module, whose main was alike",
    )


def _expect_all_bounds(plan_memory: Function) -> None:
    """Storages of an extent of five symbols, each with a bound."""
    from tvm import relax, tirx

    from solutions.relay_import import optimize_relax

    bounds = {name: at + 1 for at, name in enumerate("pqrst")} | {"r": 3_000_017}
    x = relax.Var("x", relax.TensorType([tirx.Var(each, "int64") for each in bounds], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.softmax(relax.op.nn.relu(x), axis=-1))
            y = builder.emit_output(relax.op.nn.softmax(y, axis=0))
        builder.emit_func_output(y)
    kept = dict(bounds)
    planned = plan_memory(optimize_relax(builder.get()), bounds)
    formulas = _formulas(read_memory(planned, **bounds))
    size = str(4 * math.prod(kept.values()))
    expect(
        bounds == kept and size in formulas,
        expected=f"with bounds of all five symbols of x a storage of {size} bytes; the bounds are "
        "only read",
        seen=f"storages of {', '.join(formulas)} bytes",
        look="the attribute: all of `bounds`",
    )
    given = (planned["main"].attrs or {}).get("tir_var_upper_bound") or {}
    told = {str(name): int(value) for name, value in given.items()}
    expect(
        told == kept,
        expected=f"main with the attribute tir_var_upper_bound {kept}",
        seen=f"{told or 'none'}",
        look="the attribute, which stays for later passes",
    )


def _expect_bound_of_second_input(plan_memory: Function) -> None:
    """A symbol that the first input does not have is bounded as well."""
    from tvm import relax, tirx

    from solutions.relay_import import optimize_relax

    (width,) = draw_distinct(1, range(3, 9))
    x, y = (
        relax.Var(name, relax.TensorType((tirx.Var(symbol, "int64"), width), "float32"))
        for name, symbol in ("xn", "ym")
    )
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        with builder.dataflow():
            turned = builder.emit(relax.op.permute_dims(relax.op.nn.softmax(y)))
            product = builder.emit_output(relax.op.matmul(relax.op.nn.softmax(x), turned))
        builder.emit_func_output(product)
    bounds = dict(zip("nm", draw_distinct(2, range(70, 400)), strict=True))
    mod = optimize_relax(builder.get())
    try:
        planned = plan_memory(mod, MappingProxyType(bounds))
    except TypeError as error:
        raise fail(
            "plan_memory to take any mapping for bounds, a types.MappingProxyType as well",
            f"TypeError: {error}",
            "the value of the attribute: dict(bounds), because TVM converts dictionaries alone",
        ) from error
    given = (planned["main"].attrs or {}).get("tir_var_upper_bound") or {}
    told = {str(name): int(value) for name, value in given.items()}
    expect(
        told == bounds,
        expected=f"main(x, y), x (n, {width}), y (m, {width}), with tir_var_upper_bound {bounds}",
        seen=f"{told or 'none'}",
        look="the attribute: all of `bounds`, whichever input has the symbol; they are any "
        "mapping, here a MappingProxyType",
    )


def _expect_many_freed(plan_memory: Function) -> None:
    """However many kernels there are, each storage but the result's is freed."""
    widths = range(3, int(fresh_rng().integers(50, 60)))
    weights = [np.ones(each, "float32") for each in itertools.pairwise(widths)]
    plan = read_memory(plan_memory(dense_chain(weights)), n=5)
    freed = {each.name for each in plan.events if each.kind == "free"}
    expect(
        len(freed) == len(plan.formulas) - 1,
        expected=f"of a chain of {len(weights)} layers, every storage but the result's freed after "
        "its last use",
        seen=f"{len(freed)} of {len(plan.formulas)} are",
        look="KillAfterLastUse, as the last pass, for every module",
    )


def _expect_reshaped_in_place(plan_memory: Function) -> None:
    """A reshape copies nothing: it is found before the dataflow is taken away."""
    from tvm import relax, tirx

    from solutions.relay_import import optimize_relax

    n, m = (tirx.Var(name, "int64") for name in "nm")
    x = relax.Var("x", relax.TensorType((n, m, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.relu(x))
            y = builder.emit(relax.op.reshape(y, (n, m, 2, 4)))
            y = builder.emit_output(relax.op.nn.softmax(y))
        builder.emit_func_output(y)
    mod = optimize_relax(builder.get())
    mod["main"] = mod["main"].with_attr("tir_var_upper_bound", {"n": 3, "m": 3})
    formulas = _formulas(read_memory(plan_memory(mod, {"n": 9}), n=9, m=5))
    expect(
        all("m" in each for each in formulas),
        expected="with a bound for n only, storage sizes that depend on m, whatever bounds mod had",
        seen=f"storages of {', '.join(formulas)} bytes",
        look="the attribute: the given bounds replace those of an import",
    )
    planned = plan_memory(mod, {})
    formulas = _formulas(read_memory(planned, n=9, m=5))
    left = dict((planned["main"].attrs or {}).get("tir_var_upper_bound") or {})
    expect(
        all("n" in each and "m" in each for each in formulas) and not left,
        expected="with an empty mapping, storage sizes that depend on n and m, whatever "
        "bounds mod had",
        seen=f"storages of {', '.join(formulas)} bytes, and bounds {left or 'none'}",
        look="the condition on `bounds`: an empty mapping replaces the bounds of an import too",
    )
    most = {
        name: int(each) for name, each in zip("nm", draw_distinct(2, range(70, 400)), strict=True)
    }
    planned = plan_memory(mod, most)
    formulas = _formulas(read_memory(planned, **most))
    size = 4 * most["n"] * most["m"] * 8
    expect(
        f"{size}" in formulas,
        expected=f"of main(x), x (n, m, 8), for n up to {most['n']} and m up to {most['m']} a "
        f"storage of {size} bytes",
        seen=f"storages of {', '.join(formulas)} bytes",
        look="the attribute: the bounds of all symbols, each with its own",
    )
    calls = operators_called(planned["main"])
    expect(
        "relax.reshape" in calls,
        expected="a reshape as relax.reshape, which copies nothing",
        seen=f"main calls {', '.join(dict.fromkeys(calls))}",
        look="the order: RewriteDataflowReshape works on dataflow, and comes before ToNonDataflow",
    )


def _expect_planned(planned: Any, bounds: Mapping[str, int] | None, most: int) -> None:
    calls = operators_called(planned["main"])
    expect(
        "relax.memory.alloc_storage" in calls
        and not {"relax.call_tir", "relax.builtin.alloc_tensor"} & set(calls),
        expected="main allocates with relax.memory.alloc_storage and calls kernels directly",
        seen=f"it calls {', '.join(dict.fromkeys(calls))}",
        look="CallTIRRewrite, StaticPlanBlockMemory and LowerAllocTensor, in that order",
    )
    expect(
        bool((planned["main"].attrs or {}).get("relax.force_pure")),
        expected="main with the attribute relax.force_pure: allocations are no side effects",
        seen="without it",
        look="RemovePurityChecking, after ToNonDataflow",
    )
    expect(
        "graded.kept" in (planned["main"].attrs or {}),
        expected="main with its other attributes",
        seen=f"{', '.join(sorted(map(str, (planned['main'].attrs or {}).keys())))} alone",
        look="with_attr and without_attr, which change one attribute of a copy",
    )
    plan = read_memory(planned, n=most)
    formulas = list(plan.formulas.values())
    symbolic = [each for each in formulas if "n" in each]
    if bounds is None:
        expect(
            "tir_var_upper_bound" not in (planned["main"].attrs or {}),
            expected="without bounds a main without the attribute tir_var_upper_bound",
            seen=f"tir_var_upper_bound {planned['main'].attrs['tir_var_upper_bound']}"
            if "tir_var_upper_bound" in (planned["main"].attrs or {})
            else "none",
            look="main.without_attr('tir_var_upper_bound'), where bounds is None",
        )
        expect(
            len(symbolic) == len(formulas) == len(_WIDTHS) - 1,
            expected=f"without bounds {len(_WIDTHS) - 1} storages, each of a size in n, since no "
            "two are equal",
            seen=f"storages of {', '.join(formulas)} bytes",
            look="without_attr('tir_var_upper_bound'): an import may have set it",
        )
    else:
        expect(
            len(formulas) == 3 and len(symbolic) == 1,
            expected="with a bound two storages of constant size, used in turns, and the result's, "
            "a size in n",
            seen=f"storages of {', '.join(formulas)} bytes",
            look="with_attr('tir_var_upper_bound', {'n': …}) before StaticPlanBlockMemory, which "
            "comes after CallTIRRewrite and before LowerAllocTensor",
        )
        sizes = sorted(int(each) for each in formulas if "n" not in each)
        wanted = sorted(4 * width * most for width in _WIDTHS[1:3])
        expect(
            sizes == wanted,
            expected=f"for n up to {most} storages of {wanted[0]} and {wanted[1]} bytes",
            seen=f"of {' and '.join(map(str, sizes))} bytes",
            look="the bound: the one given",
        )
        given = (planned["main"].attrs or {}).get("tir_var_upper_bound") or {}
        told = {str(name): int(value) for name, value in given.items()}
        expect(
            told == dict(bounds),
            expected=f"main keeps the attribute tir_var_upper_bound, {dict(bounds)}",
            seen=str(told or "without it"),
            look="what is done after the passes",
        )
    freed = {each.name for each in plan.events if each.kind == "free"}
    expect(
        len(freed) == len(formulas) - 1,
        expected="every storage but the result's is freed after its last use",
        seen=f"{len(freed)} of {len(formulas)} are",
        look="KillAfterLastUse, as the last pass",
    )
    calls = operators_called(planned["main"])
    made, killed = (calls.count(f"relax.memory.{each}_storage") for each in ("alloc", "kill"))
    expect(
        made == killed,
        expected="each storage released with relax.memory.kill_storage, the result's too: its "
        "tensor keeps it",
        seen=f"{killed} of {made} are",
        look="the order: KillAfterLastUse comes after LowerAllocTensor, which makes the result's",
    )


def _demonstrated_plans(plan_memory: Function) -> str:
    mod = dense_chain(_weights())
    plans = {"no bound": None, "n at most 10": {"n": 10}}
    return "\n".join(
        f"{name}: {', '.join(_formulas(read_memory(plan_memory(mod, bounds), n=1)))} bytes"
        for name, bounds in plans.items()
    )


def _formulas(plan: MemoryPlan) -> list[str]:
    return list(plan.formulas.values())
