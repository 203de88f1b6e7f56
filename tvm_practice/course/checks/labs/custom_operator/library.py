"""A library in place of the compiler: one product, and the linear layers of a model."""

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.checks.labs.custom_operator.common import PHASE, fresh_numbers
from tvm_practice.course.expect import expect, expect_close, fail, fresh_rng, seed_torch
from tvm_practice.course.imported_models import expect_left_alone, given_module
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.viz.graph import format_graph, graph
from tvm_practice.wording import number_of


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
    for m, n, k in (
        (1, 5, 3),
        (7, 7, 7),
        (6, 1, 2),
        (6, 6, 2),
        (5, 3, 5),
        (2, 4, 4),
        (4, 3, 1),
        (3, 2, 700_001),
    ):
        others = te.placeholder((m, k), name="P"), te.placeholder((k, n), name="Q")
        product = [*others, _extern_product(extern_matmul, *others, (m, n))]
        kernel = tvm.compile(te.create_prim_func(product), host_target())["main"]
        for call in ("first", "second"):
            p, q = (rng.standard_normal(each, dtype="float32") for each in ((m, k), (k, n)))
            if k > 1000:  # whole numbers, whose sums are exact in any order
                p, q = (rng.integers(-1, 2, each.shape).astype("float32") for each in (p, q))
            if call == "second":
                p[0, 0], q[-1, 0] = np.inf, np.nan
            out = tvm.runtime.tensor(np.full((m, n), np.nan, "float32"))
            kernel(tvm.runtime.tensor(p), tvm.runtime.tensor(q), out)
            with np.errstate(invalid="ignore"):
                want = p @ q
            expect_close(
                out.numpy(),
                want,
                what=f"C of {m} x {k} and {k} x {n} at the {call} call",
                look="np.matmul(view(a), view(b), out=view(c)), at each call and for all shapes; "
                "override=True, without which an earlier function of the name stays",
            )
    for m, n, k in ((3000, 2, 3), (2, 5000, 4), (1024, 1024, 1024)):  # declared, not run
        larger = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        _extern_product(extern_matmul, *larger, (m, n))
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

    name = f"graded.Matmul_{next(fresh_numbers)}"
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
        str(C.dtype) == "float32",
        expected="C of type float32",
        seen=str(C.dtype),
        look="dtype= of te.extern, which by default is that of the inputs",
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
    function: Callable[..., Any], model: Any, example: tuple[Any, ...], *, beside: int = 0
) -> tuple[Any, Any, list[Any]]:
    """The module before and after `function`, and the functions that the backend was given.

    So many kernels as `beside` are in the module besides main.
    """
    import tvm_ffi
    from tvm import te, topi

    from tvm_practice.labs import blas_backend

    blas_backend.register()
    given: list[Any] = []

    def generate(functions: Any, options: Any, names: Any) -> list[Any]:
        given.extend(functions)
        return blas_backend.generate(functions, options, names)

    backend = f"graded_{next(fresh_numbers)}"
    tvm_ffi.register_global_func(f"relax.ext.{backend}", generate)
    module = _folded(model, example)
    for number in range(beside):
        X = te.placeholder((number + 1,), name="X")
        kernel = te.create_prim_func([X, topi.nn.relu(X)])
        module[f"kernel_{number}"] = kernel.with_attr("global_symbol", f"kernel_{number}")
    before = given_module(module)
    try:
        after = function(module, backend)
    finally:
        tvm_ffi.remove_global_func(f"relax.ext.{backend}")
    expect_left_alone(before, module)
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
    module, after, given = _offloaded(offload_linear, model, example)
    expect(
        isinstance(after, tvm.IRModule),
        expected="a tvm.IRModule",
        seen=type(after).__name__,
        look="the return statement",
    )
    _expect_linear_offloaded(after, given)
    _expect_others_left(module, after)
    executable = build_relax(optimize_relax(after), host_target())
    (got,) = run_relax(executable, [each.numpy() for each in example])
    with torch.inference_mode():
        want = model(*example).numpy()
    expect_close(got, want, what="the model's result", look="the subgraphs that the patterns match")
    _expect_each_input(offload_linear)
    _, _, later = _offloaded(offload_linear, model, example)
    expect(
        len(later) == len(given),
        expected="the linear layers given to the backend that is named, another one this time",
        seen=f"{len(later)} of {number_of(len(given), 'function')}",
        look="patterns that are kept from an earlier call's backend",
    )


def _expect_each_input(offload_linear: Callable[..., Any]) -> None:
    """Linear layers are offloaded whichever of a model's inputs they take."""
    import torch

    class Sum(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(6, 5, bias=False)
            self.second, self.third = torch.nn.Linear(7, 5), torch.nn.Linear(8, 5, bias=False)

        def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
            return torch.relu(self.first(x)) + torch.relu(self.second(y)) * self.third(z)

    example = tuple(torch.ones(3, width) for width in (6, 7, 8))
    beside = int(fresh_rng().integers(5, 9))
    _, _, given = _offloaded(offload_linear, Sum().eval(), example, beside=beside)
    names = sorted(_composite_of(each).rpartition(".")[2] for each in given)
    expect(
        names == ["linear", "linear", "linear_bias"],
        expected="of a model of three inputs two linear layers offloaded, and one with a bias; "
        f"{beside} kernels are in the module besides",
        seen=", ".join(names) or "none",
        look="the list of patterns: both of them, for every module",
    )


def _expect_others_left(module: Any, after: Any) -> None:
    """What no pattern matches is as it was: operators, not lowered yet."""
    kept, lowered = (
        {name: count for name, count in graph(each).operators.items() if name in _others(module)}
        for each in (module, after)
    )
    kernels = [str(call) for call in graph(after).calls if call.kernel]
    expect(
        kept == lowered and not kernels,
        expected=f"the other operators of the graph left as they were, {', '.join(sorted(kept))}",
        seen=", ".join(kernels[:3]) or f"{', '.join(sorted(lowered))}",
        look="passes beside FuseOpsByPattern and RunCodegen: optimize_relax lowers what is left",
    )


def _others(module: Any) -> set[str]:
    """The operators of a graph that no linear layer has."""
    return set(graph(module).operators) - {"matmul", "add"}


def _expect_linear_offloaded(after: Any, given: Sequence[Any]) -> None:
    """The backend is given the three linear layers of `_attention` alone, under their names."""
    composites = sorted(_composite_of(each) for each in given)
    expect(
        bool(given),
        expected="the linear layers given to the backend's code generator",
        seen="it was not called",
        look="annotate_codegen=True of FuseOpsByPattern, then RunCodegen; and the patterns' names, "
        "which begin with that of the backend",
    )
    names = [each.rpartition(".")[2] for each in composites]
    left = graph(after).operators
    expect(
        left["matmul"] == 3,
        expected="the two products of activations left in the graph, and that of a constant and an "
        "activation",
        seen=f"{left['matmul']} matmuls left, {number_of(len(given), 'function')} offloaded: "
        f"{', '.join(names)}",
        look="is_const() for the right operand of relax.matmul: only a weight is constant there"
        if left["matmul"] < 3
        else "a pattern for a product with a bias and one for a product without",
    )
    expect(
        (left["add"], left["subtract"]) == (3, 1),
        expected="the bias added by the backend; the add of an activation, 2 others and 1 "
        "subtract left",
        seen=f"{left['add']} adds and {left['subtract']} left, {', '.join(names)} offloaded",
        look="the pattern with the bias, is_op('relax.add')(product, is_const()), whose second "
        "operand is a constant and no other sum; it comes before that without",
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
