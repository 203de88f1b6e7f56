"""A Relax module optimized: its operators lowered to loops, folded and fused."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.checks.relay_import.common import (
    PHASE,
    check_made_anew,
    expect_no_constant_calls,
    imported_relax,
    run_imported_relax,
)
from tvm_practice.course.expect import draw_distinct, expect, expect_type, fail, fresh_rng
from tvm_practice.course.imported_models import (
    attributes_by_name,
    by_pytorch,
    demonstrated_model,
    draw_model,
    expect_as_pytorch,
    expect_left_alone,
    expect_operators,
    given_module,
)
from tvm_practice.course.products import matmul_function
from tvm_practice.engines import CURRENT
from tvm_practice.viz.graph import format_graph, graph
from tvm_practice.wording import number_of


@PHASE.exercise(
    "optimize_relax",
    engine=CURRENT,
    title="Relax: fold constants, lower to loops, fuse",
    hints=(
        "The worked example folded shows the form, the file's table the passes. Fusion works on "
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
        optimize_relax(imported_relax(*demonstrated_model()))
    ),
)
def check_optimize_relax(optimize_relax: Callable[..., Any]) -> None:
    import tvm

    model, example = draw_model(outputs=2)
    mod = imported_relax(model, example)
    before = given_module(mod)
    with _passes_run() as passes, _legalizing() as arguments:
        optimized = optimize_relax(mod)
    expect_type(optimized, tvm.IRModule, "the result as a tvm.IRModule")
    expect_left_alone(before, mod)
    parts = [type(each).__name__ for each in optimized["main"].body.blocks]
    expect(
        "DataflowBlock" in parts,
        expected="main's calls in a dataflow part, as imported (a DataflowBlock: no side effects)",
        seen=", ".join(parts),
        look="passes beside the eight, such as ToNonDataflow: later passes need dataflow parts",
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
    expect_no_constant_calls(shown, look="the pass FoldConstant, before and after LegalizeOps")
    together = [call.operators for call in shown.calls]
    expect(
        any({"conv2d", "relu"} <= set(names) for names in together)
        and any({"matmul", "add"} <= set(names) for names in together),
        expected="one PrimFunc from convolution to ReLU, one for the linear layer and its bias",
        seen=f"{len(operators.calls)} operators became {number_of(len(shown.calls), 'call')}: "
        f"{', '.join(shown.kernels)}",
        look=_unfused(together),
    )
    moved = [
        name for names in together for name in names if "transpose" in name or "layout" in name
    ]
    expect(
        not moved,
        expected="the operators in the layout that was imported",
        seen=f"{number_of(len(moved), 'call')} of {', '.join(sorted(set(moved)))}",
        look="passes beside the eight, such as ConvertLayout",
    )
    expect_as_pytorch(
        run_imported_relax(optimized, example),
        by_pytorch(model, example),
        look="the order of the passes",
    )
    check_made_anew(
        lambda mod: run_imported_relax(optimize_relax(mod), example),
        model,
        example,
        "optimize_relax",
    )
    _check_mask(optimize_relax)
    expect(
        optimize_relax(mod) is not optimized,
        expected="a new IRModule at each call",
        seen="that of an earlier call",
        look="a result that is kept",
    )
    _check_many_operators(optimize_relax)
    _check_kernel_besides(optimize_relax)
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
    length = int(fresh_rng().integers(90, 140))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y, image, *others]):
        with builder.dataflow():
            results = [builder.emit(each) for each in calls]
            chain = x
            for at in range(length):  # one group, however long it is
                chain = builder.emit((op.add, op.multiply)[at % 2](chain, others[at % 4]))
            results.append(chain)
            parts = builder.emit(op.split(x, 2, 1))
            results += [builder.emit(relax.TupleGetItem(parts, at)) for at in (0, 1)]
            result = builder.emit_output(relax.Tuple(results))
        builder.emit_func_output(result)
    return builder.get()


def _check_kernel_besides(optimize_relax: Callable[..., Any]) -> None:
    """A module whose main calls a PrimFunc, as converters of single operators may make it."""
    from tvm import relax

    m, n, k = draw_distinct(3, range(3, 20))
    A, B, C = (relax.TensorType(shape, "float32") for shape in ((m, k), (k, n), (m, n)))
    builder = relax.BlockBuilder()
    arguments = [relax.Var("A", A), relax.Var("B", B)]
    with builder.function("main", arguments):
        with builder.dataflow():
            scheduled = matmul_function(m, n, k, name="matmul").with_attr("op_pattern", 8)
            kernel = builder.add_func(scheduled, "matmul")  # 8: opaque, not to be fused
            product = builder.emit(relax.call_tir(kernel, arguments, out_ty=C))
            result = builder.emit_output(relax.op.nn.relu(product))
        builder.emit_func_output(result)
    mod = builder.get()
    try:
        optimized = optimize_relax(mod)
    except Exception as error:
        raise fail(
            "a module optimized whose main calls a function of a converter",
            str(error).strip().splitlines()[-1],
            "the module that the passes are given: mod, with all of its functions",
        ) from error
    _expect_eight(mod, optimized)


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
    return "AnnotateTIROpPattern before FuseOps: without patterns nothing is fused; nor at level 0"


def _check_mask(optimize_relax: Callable[..., Any]) -> None:
    """A mask that an operator makes of constants is one as soon as the operator is a PrimFunc."""
    import torch

    class Masked(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + torch.ones(x.shape).tril()

    masked = optimize_relax(imported_relax(Masked().eval(), (torch.zeros(4, 5),)))
    left = [name for call in graph(masked).calls for name in call.operators if name != "add"]
    expect(
        not left,
        expected="x + torch.ones(4, 5).tril() optimized to one addition of a constant",
        seen=f"computed at run time: {', '.join(left)}",
        look="the second FoldConstant: LegalizeOps turns some operators into calls of constants "
        "alone",
    )
