"""Lab 4's exercises and how they are graded: symbols where they belong, then values over n."""

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    draw_normal,
    expect,
    expect_close,
    expect_unchanged,
    fail,
    fresh_rng,
    seed_torch,
    show,
    show_nest,
    varied,
)
from tvm_practice.course.imported_models import expect_only_read, state
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.memory import MemoryPlan, read_memory
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.tvm_export.rules.cpu.loops import constant
from tvm_practice.tvm_export.running import RelaxRunner
from tvm_practice.viz.loop_nest import Node, format_nest, loop_nest, paths

PHASE = Phase(
    number=4,
    module="labs.dynamic_shapes",
    title="dynamic shapes",
    lanes=(CURRENT,),
    builds_on=(
        "te_basics.matmul",
        "relay_import.import_relax",
        "relay_import.optimize_relax",
        "relay_import.build_relax",
    ),
    question=(
        "What does TVM lose when an extent becomes a symbol, and when are static artifacts with "
        "padding better than one dynamic artifact?"
    ),
)

Function = Callable[..., Any]
Arrays = Callable[..., np.ndarray]


def _target() -> Any:
    """What is graded is compiled for: no optimization, which takes most of the time."""
    import tvm

    return tvm.target.Target({"kind": "llvm", "opt-level": 0})


def _executable(mod: Any) -> Arrays:
    """A Relax module compiled as it stands: a function from arrays to its one output."""
    import tvm

    return _runs(tvm.compile(mod, _target()))


def _runs(executable: Any) -> Arrays:
    runner = RelaxRunner(executable)

    def run(*inputs: np.ndarray) -> np.ndarray:
        runner.set_inputs(inputs)
        runner.run()
        outputs = runner.outputs()
        return outputs[0]

    return run


def _expect_module(given: Any, name: str) -> Any:
    """`given` is an IRModule with a Relax function main, which is returned."""
    import tvm
    from tvm import relax

    expect(
        isinstance(given, tvm.IRModule)
        and any(str(each.name_hint) == "main" for each in given.get_global_vars())
        and isinstance(given["main"], relax.Function),
        expected=f"{name} returns an IRModule with a Relax function main",
        seen=f"a {type(given).__module__}.{type(given).__name__}",
        look="the return statement",
    )
    return given["main"]


def _shape(type_: Any) -> list[Any]:
    """The extents of a tensor's type; none if its shape is not known."""
    shape = getattr(type_, "shape", None)
    return [] if shape is None else list(shape.values)


def _text(extents: Sequence[Any]) -> str:
    """Extents as a tuple; those that are constants as plain numbers."""
    return f"({', '.join(str(constant(each) or each) for each in extents)})"


def _prim_funcs(mod: Any) -> list[Any]:
    return [each for each in mod.functions.values() if type(each).__name__ == "PrimFunc"]


def _calls(main: Any) -> list[str]:
    """The operators that main calls, in order."""
    return [
        str(getattr(binding.value.op, "name", "") or binding.value.op.name_hint)
        for block in main.body.blocks
        for binding in block.bindings
        if hasattr(binding.value, "op")
    ]


@PHASE.exercise(
    "symbolic_matmul",
    engine=CURRENT,
    title="a matrix product of n rows, in TE and Relax",
    hints=(
        "Phase 1's product, with A.shape[0] as the number of rows, whatever its value. The "
        "worked example added has the Relax function around it, and its symbol.",
        "n = tirx.Var('n', 'int64'); a = relax.Var('A', relax.TensorType((n, k), 'float32')); "
        "builder = relax.BlockBuilder(); with builder.function('main', [a, b]): statements "
        "emitted inside are main's body.",
        "builder.emit_func_output(builder.emit_te(product, a, b)), where product(A, B) returns "
        "te.compute((A.shape[0], m), ...); then return builder.get().",
    ),
    looks_like="""
        A (n, 16), B (16, 8) -> (n, 8)
        for i in serial(n):
            for j in serial(8):
                for k in serial(16):
                    C: C <- A, B, C
    """,
    demonstrate=lambda symbolic_matmul: _signature_and_nest(symbolic_matmul(16, 8)),
)
def check_symbolic_matmul(symbolic_matmul: Function) -> None:
    rng = fresh_rng()
    k, m = (int(each) for each in rng.choice(np.arange(5, 40), 2, replace=False))
    for columns in (m, k):  # B is square as well
        _expect_symbolic(symbolic_matmul(k, columns), k, columns)
    for rows, columns in ((1, 6), (64, 3), *varied(k, m, alone=True)[1:]):
        _expect_symbolic(symbolic_matmul(rows, columns), rows, columns, run=rows == 1)


def _expect_symbolic(mod: Any, k: int, m: int, run: bool = True) -> None:
    rng = fresh_rng()
    main = _expect_module(mod, "symbolic_matmul")
    types = [*(each.ty for each in main.params), main.ret_ty]
    shapes = [_shape(each) for each in types]
    n = shapes[0][0] if shapes[0] else None
    expect(
        len(shapes) == 3
        and all(len(each) == 2 for each in shapes)
        and constant(n) is None
        and shapes[2][0].same_as(n)
        and [constant(each) for each in (shapes[0][1], *shapes[1], shapes[2][1])] == [k, k, m, m],
        expected=f"main(A, B): A (n, {k}), B ({k}, {m}), the result (n, {m}); n is one tirx.Var",
        seen=" and ".join(map(_text, shapes)),
        look="the shapes of the relax.TensorType, and that of te.compute",
    )
    dtypes = [str(each.dtype) for each in types]
    expect(
        dtypes == ["float32"] * 3,
        expected="A, B and the result in float32",
        seen=", ".join(dtypes),
        look="the types of the relax.TensorType, and of the terms of the sum",
    )
    kernels = _prim_funcs(mod)
    expect(
        len(kernels) == 1 and _calls(main) == ["relax.call_tir"],
        expected="main calls one PrimFunc with call_tir",
        seen=f"{len(kernels)} PrimFuncs, and main calls {', '.join(_calls(main)) or 'nothing'}",
        look="builder.emit_te, which makes a PrimFunc of a tensor expression and calls it",
    )
    bounds = (main.attrs or {}).get("tir_var_upper_bound")
    expect(
        bounds is None,
        expected="main for any n: no bound of n in its attributes",
        seen=f"tir_var_upper_bound {bounds}",
        look="the statement that gives main an attribute",
    )
    if not run:
        return
    call = _executable(mod)
    for rows in (1, 7, int(rng.integers(20, 60))):
        a = rng.standard_normal((rows, k), dtype="float32")
        b = rng.standard_normal((k, m), dtype="float32")
        expect_close(
            call(a, b), a @ b, what=f"C for n = {rows}", look="the indices, and the axis of te.sum"
        )


def _signature_and_nest(mod: Any) -> str:
    main = mod["main"]
    inputs = ", ".join(f"{each.name} {_text(_shape(each.ty))}" for each in main.params)
    (kernel,) = _prim_funcs(mod)
    return f"{inputs} -> {_text(_shape(main.ret_ty))}\n{format_nest(loop_nest(kernel))}"


def _symbolic_schedule(k: int, m: int, names: str = "ABC") -> tuple[Any, Any]:
    """A fresh schedule of the product of n rows, and its block; a letter each for the tensors."""
    import tvm
    from tvm import te, tirx

    n = tirx.Var("n", "int64")
    left, right, out = tuple(names)
    A = te.placeholder((n, k), name=left)
    B = te.placeholder((k, m), name=right)
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name=out)
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock(out)


def _guards(function: Any) -> dict[str, str]:
    """Of each block that has one, the condition under which it runs."""
    import tvm_ffi
    from tvm.s_tir import SBlockRealize

    found: dict[str, str] = {}

    def look(realize: Any) -> None:
        if constant(realize.predicate) != 1:
            found[str(realize.block.name_hint)] = str(realize.predicate)

    tvm_ffi.structural_walk(function.body, (SBlockRealize, look))
    return found


@PHASE.exercise(
    "schedule_dynamic",
    engine=CURRENT,
    title="tile a product of n rows without guards in its loops",
    hints=(
        "Padding comes first, as long as the block is under its three loops. Two blocks are new "
        "then, the copy of A before and the copy to C after; the rest is phase 2's tile.",
        "schedule.pad_einsum(block, [rows, 1, 1]) has factors for i, j and k. "
        "get_producers(block) gives the copy of A. After the splits and the reorder, "
        "compute_at(copy, i_outer) moves it there.",
        "parallel(i_outer), unroll(i_inner), vectorize(j_inner), and last "
        "decompose_reduction(block, k).",
    ),
    looks_like="""
        for i_0 in parallel((n + T.int64(3)) // T.int64(4)):
            for ax0 in serial(4):
                for ax1 in serial(16):
                    A_pad: A_pad <- A
            for j_0 in serial(2):
                for i_1_init in unrolled(4):
                    for j_1_init in vectorized(16):
                        C_init: C_pad <- constant
                for k in serial(16):
                    for i_1 in unrolled(4):
                        for j_1 in vectorized(16):
                            C_update: C_pad <- A_pad, B, C_pad
        for i0 in serial(n):
            for i1 in serial(32):
                C_pad: C <- C_pad
    """,
    demonstrate=lambda schedule_dynamic: _scheduled_text(schedule_dynamic),
)
def check_schedule_dynamic(schedule_dynamic: Function) -> None:
    import tvm

    rng = fresh_rng()
    tiles = draw_distinct(2, [(4, 16), (6, 8), (3, 24), (5, 12)])
    tiles += draw_distinct(1, [(9, 4), (10, 4), (12, 2)])
    run = len(tiles)
    tiles += [(2, 2), (17, 3), (32, 32), (2, 64)]  # these are not run
    for at, (rows, columns) in enumerate(tiles):
        names = "PQR" if at == 1 else "ABC"
        k, m = int(rng.integers(7, 20)), columns * int(rng.integers(2, 4))
        schedule, block = _symbolic_schedule(k, m, names)
        try:
            schedule_dynamic(schedule, block, rows, columns)
        except tvm.s_tir.ScheduleError as error:
            reason = str(error).strip().splitlines()[-1]
            raise fail(
                "TVM accepts each primitive",
                f"it refuses: {reason}",
                "the order: pad_einsum first, decompose_reduction last",
            ) from error
        function = schedule.mod["main"]
        nest = loop_nest(function)
        loops = _expect_dynamic_tiles(nest, k, m // columns, rows, columns)
        guarded = _guards(function)
        sums = [name for name in guarded if name.startswith(names[2]) and "update" in name]
        expect(
            not sums,
            expected="the sum runs without a condition",
            seen=f"{sums[0] if sums else ''} runs only if {guarded[sums[0]] if sums else ''}",
            look="schedule.pad_einsum(block, [rows, 1, 1]), before the splits",
        )
        copies = [path for path, each in paths(nest) if each.reads == (names[0],)]
        expect(
            len(copies) == 1 and copies[0][:1] == loops[:1] and loops[1] not in copies[0],
            expected="A is copied inside i_outer, one tile's rows at a time",
            seen="no copy of A" if not copies else f"made in {show(copies[0])}",
            look="schedule.compute_at(the block from get_producers, i_outer)",
        )
        if at >= run:
            continue
        built = tvm.compile(schedule.mod, target=_target())["main"]
        for n in (1, rows, 2 * rows + 1, int(rng.integers(20, 50))):
            a = rng.standard_normal((n, k), dtype="float32")
            b = rng.standard_normal((k, m), dtype="float32")
            whole = tvm.runtime.tensor(np.full((n + rows, m), np.nan, "float32"))
            built(tvm.runtime.tensor(a), tvm.runtime.tensor(b), whole._create_view((n, m)))
            expect_close(whole.numpy()[:n], a @ b, what=f"C for n = {n}", look="the primitives")
            beyond = int(np.isfinite(whole.numpy()[n:]).sum())
            expect(
                beyond == 0,
                expected=f"for n = {n} nothing is written past row {n - 1} of C",
                seen=f"{beyond} elements behind C were overwritten",
                look="the copy of the padded C to C: inlined into another block and moved with "
                "reverse_compute_at, it loses its bound",
            )


def _expect_dynamic_tiles(
    nest: list[Node], k: int, column_tiles: int, rows: int, columns: int
) -> tuple[Any, ...]:
    """The loops around the sum, which must be those of the exercise."""
    found = [
        (path, each)
        for path, each in paths(nest)
        if len(each.reads) > 1 and each.writes in each.reads
    ]
    if len(found) != 1:
        raise fail("one statement that adds to C", show_nest(nest), "the primitives")
    loops = found[0][0]
    wanted = [
        ("parallel", None),
        ("serial", column_tiles),
        ("serial", k),
        ("unrolled", rows),
        ("vectorized", columns),
    ]
    seen = [(loop.kind, loop.extent if isinstance(loop.extent, int) else None) for loop in loops]
    expect(
        seen == wanted,
        expected=f"i_outer parallel(of n) > j_outer serial({column_tiles}) > k serial({k}) > "
        f"i_inner unrolled({rows}) > j_inner vectorized({columns})",
        seen=show(loops),
        look="split, reorder, parallel, unroll and vectorize; i_outer stays a symbol",
    )
    starts = [path for path, each in paths(nest) if each.writes == found[0][1].writes][:-1]
    expect(
        any(path[:2] == loops[:2] and loops[2] not in path for path in starts)
        and "init" not in found[0][1].name,
        expected="C is set to zero by a statement of its own, inside j_outer and before k",
        seen=show_nest(nest),
        look="schedule.decompose_reduction(block, k), as the last primitive",
    )
    return loops


def _scheduled_text(schedule_dynamic: Function) -> str:
    schedule, block = _symbolic_schedule(16, 32)
    schedule_dynamic(schedule, block, 4, 16)
    return format_nest(loop_nest(schedule.mod["main"]))


def _network(width: int, features: int) -> Any:
    """A linear layer over tokens scaled by a weight for each sequence."""
    import torch

    seed_torch()

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(width, features)

        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            scaled: torch.Tensor = torch.relu(self.fc(x)) * scale[:, None, :]
            return scaled

    return Network().eval()


@PHASE.exercise(
    "import_dynamic",
    engine=CURRENT,
    title="import a PyTorch model with named extents",
    hints=(
        "torch.export has an object for a named extent, and takes one for each axis that may "
        "vary. How do you declare that two axes have the same extent?",
        "torch.export.Dim(name, min=1, max=bound), one object for each name; dynamic_shapes has a "
        "{axis: Dim} for each argument. "
        "torch.export.export(model, tensors, dynamic_shapes=shapes), then from_exported_program("
        "exported, unwrap_unit_return_tuple=True).",
        "Before it: where tensor.shape[axis] == 1 for an axis that may vary, "
        "tensor.repeat_interleave(2, dim=axis).",
    ),
    looks_like="""
        x (batch, length, 4), scale (batch, 3) -> (batch, length, 3)
        at most: batch 6, length 10
    """,
    demonstrate=lambda import_dynamic: _demonstrated_import(import_dynamic),
)
def check_import_dynamic(import_dynamic: Function) -> None:
    import torch

    rng = fresh_rng()
    width, features = (int(each) for each in rng.choice([3, 5, 7, 9], 2, replace=False))
    first, second = draw_distinct(2, ["batch", "length", "rows", "tokens", "sequences"])
    bounds = {first: int(rng.integers(5, 9)), second: int(rng.integers(600, 3000))}
    axes = ({0: first, 1: second}, {0: first})
    for batch, length in ((3, 4), (1, 4), (1, 1)):
        model = _network(width, features)  # each with weights of its own
        before = state(model)
        example = (torch.randn(batch, length, width), torch.randn(batch, features))
        copies = [each.clone() for each in example]
        try:
            with quiet_frontends():
                mod = import_dynamic(model, example, axes, bounds)
        except NotImplementedError:
            raise
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise fail(
                f"an import from an example of batch {batch} and length {length}",
                reason,
                "an extent of 1 is a constant to PyTorch: repeat_interleave(2, dim=axis) first"
                if batch == 1
                else "dynamic_shapes: a {axis: Dim} for each argument",
            ) from error
        expect_only_read(before, model)
        for given, copied in zip(example, copies, strict=True):
            expect(
                given.shape == copied.shape and bool((given == copied).all()),
                expected="the example's tensors stay as they were",
                seen=f"one of shape {tuple(copied.shape)} was changed",
                look="repeat_interleave returns another tensor",
            )
        _expect_symbols(mod, axes, bounds, [(width,), (features,)])
    _expect_one_symbol(import_dynamic, first, 3)
    _expect_integers(import_dynamic, first)
    run = _executable(mod)
    for batch, length in ((1, 1), (2, 1), (5, 7), tuple(bounds.values())):
        x, scale = torch.randn(batch, length, width), torch.randn(batch, features)
        with torch.inference_mode():
            want = model(x, scale).numpy()
        got = run(x.numpy(), scale.numpy())
        expect_close(
            got, want, what=f"the output for batch {batch}, length {length}", look="the export"
        )


def _expect_integers(import_dynamic: Function, name: str) -> None:
    """Tensors of whole numbers stay what they are."""
    import torch

    table = torch.nn.Embedding(10, 4).eval()
    with quiet_frontends():
        mod = import_dynamic(table, (torch.arange(6).reshape(2, 3),), ({1: name},), {name: 9})
    (ids,) = mod["main"].params
    expect(
        str(ids.ty.dtype) == "int64",
        expected="main of an embedding, which is called with int64, takes int64",
        seen=str(ids.ty.dtype),
        look="the example's tensors: repeat them, and change nothing else",
    )


def _expect_one_symbol(import_dynamic: Function, name: str, most: int) -> None:
    """Axes of one name share a symbol, also a first axis and a second one."""
    import torch

    class Turned(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x + y.transpose(0, 1)

    example = (torch.ones(3, 4), torch.ones(4, 3))
    try:
        with quiet_frontends():
            mod = import_dynamic(Turned().eval(), example, ({0: name}, {1: name}), {name: most})
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise fail(
            f"an import of x ({name}, 4) + the transposed y (4, {name})",
            reason,
            "one torch.export.Dim for each name, on each of its axes",
        ) from error
    x, y = (_shape(each.ty) for each in mod["main"].params)
    expect(
        x[0].same_as(y[1]) and [constant(each) for each in (*x, *y)] == [None, 4, 4, None],
        expected=f"main takes tensors of shapes ({name}, 4), (4, {name}), one symbol",
        seen=f"{_text(x)}, {_text(y)}",
        look="one torch.export.Dim for each name, on each of its axes",
    )


def _expect_symbols(
    mod: Any,
    axes: Sequence[Mapping[int, str]],
    bounds: Mapping[str, int],
    constants: Sequence[tuple[int, ...]],
) -> None:
    """main has a symbol for each name, constants elsewhere, the bounds, and returns a tensor."""
    main = _expect_module(mod, "import_dynamic")
    shapes = [_shape(each.ty) for each in main.params]
    wanted = [
        "({})".format(", ".join([*named.values(), *map(str, rest)]))
        for named, rest in zip(axes, constants, strict=True)
    ]
    symbols: dict[str, Any] = {}
    right = len(shapes) == len(axes)
    for shape, named, rest in zip(shapes, axes, constants, strict=False):
        right = right and len(shape) == len(named) + len(rest)
        for axis, extent in enumerate(shape if right else ()):
            if axis in named:
                known = symbols.setdefault(named[axis], extent)
                right = right and constant(extent) is None and known.same_as(extent)
            else:
                right = right and constant(extent) == rest[axis - len(named)]
    right = right and len({str(each) for each in symbols.values()}) == len(bounds)
    expect(
        right,
        expected=f"main takes tensors of shapes {', '.join(wanted)}, a symbol for each name",
        seen=", ".join(map(_text, shapes)),
        look="dynamic_shapes, one torch.export.Dim for each name, and keep_params_as_input=False",
    )
    given = (main.attrs or {}).get("tir_var_upper_bound") or {}
    limits = {str(name): int(value) for name, value in given.items()}
    expect(
        all(limits.get(str(symbols[name])) == most for name, most in bounds.items()),
        expected=f"the attribute tir_var_upper_bound with {dict(bounds)}",
        seen=f"{limits or 'none'}, where {', '.join(f'{v} is {k}' for k, v in symbols.items())}",
        look="torch.export.Dim(name, min=1, max=bound)",
    )
    given = (main.attrs or {}).get("tir_var_lower_bound") or {}
    least = {str(name): int(value) for name, value in given.items()}
    expect(
        all(least.get(str(each), 0) <= 1 for each in symbols.values()),
        expected="extents from 1 to the bounds",
        seen=f"the attribute tir_var_lower_bound with {least}",
        look="torch.export.Dim(name, min=1, max=bound)",
    )
    expect(
        bool(_shape(main.ret_ty)),
        expected="main returns a tensor",
        seen=f"a {type(main.ret_ty).__name__}",
        look="unwrap_unit_return_tuple=True",
    )


def _demonstrated_import(import_dynamic: Function) -> str:
    import torch

    bounds = {"batch": 6, "length": 10}
    axes = ({0: "batch", 1: "length"}, {0: "batch"})
    with quiet_frontends():
        mod = import_dynamic(_network(4, 3), (torch.ones(2, 5, 4), torch.ones(2, 3)), axes, bounds)
    main = mod["main"]
    names = {
        str(_shape(each.ty)[axis]): name
        for each, named in zip(main.params, axes, strict=True)
        for axis, name in named.items()
    }

    def text(type_: Any) -> str:
        return _text([names.get(str(each), each) for each in _shape(type_)])

    inputs = ", ".join(f"{each.name} {text(each.ty)}" for each in main.params)
    most = {names[str(name)]: int(n) for name, n in main.attrs["tir_var_upper_bound"].items()}
    limits = ", ".join(f"{name} {most[name]}" for name in bounds)
    return f"{inputs} -> {text(main.ret_ty)}\nat most: {limits}"


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
    return _runs(tvm.compile(planned, _target(), relax_pipeline=passes))


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
    for bounds in (None, {"n": most}, None):  # the last as if there had been no call before
        mod = dense_chain(weights)
        if bounds is None:  # as if it had been imported with bounds
            mod["main"] = mod["main"].with_attr("tir_var_upper_bound", {"n": 3})
        before = mod.script()
        planned = plan_memory(mod, bounds)
        _expect_module(planned, "plan_memory")
        expect(
            mod.script() == before,
            expected="mod is left as it was",
            seen="main of mod was changed",
            look="clone the module before setting main",
        )
        _expect_planned(planned, bounds, most)
        run = _vm_build(planned)
        for n in (1, most):
            x = fresh_rng().standard_normal((n, _WIDTHS[0]), dtype="float32")
            want = x
            for weight in weights:
                want = np.maximum(want @ weight, 0)
            expect_close(run(x), want, what=f"the output for n = {n}", look="the passes")
    _expect_reshaped_in_place(plan_memory)


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
        expected="with a bound of n alone, storages of sizes in m, whatever bounds mod had",
        seen=f"storages of {', '.join(formulas)} bytes",
        look="the attribute: the given bounds replace those of an import",
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
    calls = _calls(planned["main"])
    expect(
        "relax.reshape" in calls,
        expected="a reshape as relax.reshape, which copies nothing",
        seen=f"main calls {', '.join(dict.fromkeys(calls))}",
        look="the order: RewriteDataflowReshape works on dataflow, and comes before ToNonDataflow",
    )


def _expect_planned(planned: Any, bounds: Mapping[str, int] | None, most: int) -> None:
    calls = _calls(planned["main"])
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
    plan = read_memory(planned, n=most)
    formulas = list(plan.formulas.values())
    symbolic = [each for each in formulas if "n" in each]
    if bounds is None:
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
            look="with_attr('tir_var_upper_bound', {'n': …}) before StaticPlanBlockMemory",
        )
        sizes = sorted(int(each) for each in formulas if "n" not in each)
        wanted = sorted(4 * width * most for width in _WIDTHS[1:3])
        expect(
            sizes == wanted,
            expected=f"for n up to {most} storages of {wanted[0]} and {wanted[1]} bytes",
            seen=f"of {' and '.join(map(str, sizes))} bytes",
            look="the bound: the one given",
        )
    freed = {each.name for each in plan.events if each.kind == "free"}
    expect(
        len(freed) == len(formulas) - 1,
        expected="every storage but the result's is freed after its last use",
        seen=f"{len(freed)} of {len(formulas)} are",
        look="KillAfterLastUse, as the last pass",
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


@PHASE.exercise(
    "verify_over_range",
    engine=CURRENT,
    title="verify one artifact over many shapes",
    hints=(
        "Make a set of shapes first, of three kinds; then one loop over them draws, runs, compares "
        "and raises.",
        "itertools.product(*((1, bound) for bound in bounds)) is the corners; add a tuple of "
        "primes, and tuples of random.randint(1, bound). "
        "For each: inputs = draw(*shape); compare run(*inputs) with reference(*inputs), first "
        ".shape, then the largest absolute difference.",
        "NaN compares false with everything: `if not error <= tolerance: raise ValueError(...)`, "
        "with the shape in the text.",
    ),
    looks_like="""
        corners: 1x1, 1x40, 29x1, 29x40
        one of primes: yes
        at least 8 others: yes
        wrong where 8 divides n: ValueError
    """,
    demonstrate=lambda verify_over_range: _demonstrated_range(verify_over_range),
)
def check_verify_over_range(verify_over_range: Function) -> None:
    rng = fresh_rng()
    bounds = int(rng.integers(30, 60)), int(rng.integers(30, 60))
    seen: list[set[tuple[int, ...]]] = []
    for by in (1e-5, -1e-5, 1e-5):
        called: list[tuple[int, ...]] = []

        def run(
            x: np.ndarray, called: list[tuple[int, ...]] = called, by: float = by
        ) -> np.ndarray:
            called.append(x.shape)
            shifted: np.ndarray = np.sqrt(x)
            shifted.flat[int(rng.integers(x.size))] += np.float32(by)  # the others are exact
            return shifted

        errors = verify_over_range(run, np.sqrt, _positive, bounds)
        _expect_range(errors, called, bounds)
        seen.append(set(called))
    _expect_each_error(verify_over_range, bounds)
    expect(
        seen[0] != seen[1] != seen[2],
        expected="other random shapes at each call",
        seen="the same shapes twice",
        look="random.randint without a seed",
    )
    _expect_drawn(verify_over_range)
    _expect_primes(verify_over_range)
    for few in ((50,), (4, 5, 6)):  # another number of symbols, and the smallest bound
        tried: list[tuple[int, ...]] = []
        verify_over_range(_noting(tried), np.sqrt, _positive, few)
        missing = set(itertools.product(*((1, bound) for bound in few))) - set(tried)
        expect(
            not missing,
            expected=f"every corner of the range {few} is tried",
            seen=f"{sorted(missing)} are not",
            look="as many symbols as there are bounds",
        )
    _expect_tolerance(verify_over_range, bounds)
    for what, corrupt in _CORRUPTIONS.items():
        _expect_refused(verify_over_range, what, corrupt, bounds)
    _expect_both_shapes(verify_over_range, bounds)
    _expect_no_failure_hidden(verify_over_range, bounds)


def _expect_each_error(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """Each shape has an error of its own, from 1e-12 to 1e-5."""
    made: dict[tuple[int, ...], float] = {}

    def draw(*shape: int) -> tuple[np.ndarray]:
        made.setdefault(shape, float(10 ** fresh_rng().uniform(-12, -5)))
        return (np.zeros(shape),)

    def run(x: np.ndarray) -> np.ndarray:
        x.flat[-1] = made[x.shape]
        return x

    errors = verify_over_range(run, lambda x: np.zeros(x.shape), draw, bounds)
    for shape, error in made.items():
        expect(
            math.isclose(errors.get(shape, -1), error, rel_tol=1e-3),
            expected=f"the largest error at {shape}, {error:.3g}",
            seen=f"{errors.get(shape)}",
            look="the error kept for a shape: its own, not rounded and not another shape's",
        )


def _expect_both_shapes(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """Neither of the two output shapes is the inputs' shape."""

    def doubled(x: np.ndarray) -> np.ndarray:
        return np.repeat(x, 2, axis=1)

    try:
        verify_over_range(lambda x: np.repeat(x, 3, axis=1), doubled, _positive, bounds)
    except ValueError as error:
        text = str(error)
        numbers = list(map(int, re.findall(r"\d+", text)))
        expect(
            any({2 * each, 3 * each} <= set(numbers) for each in numbers),
            expected="the ValueError names the two output shapes",
            seen=text,
            look="the text of the error: the output's shape beside the reference's",
        )


def _expect_no_failure_hidden(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """What an artifact raises arrives as it was raised."""
    raised = RuntimeError("no kernel for one row")

    def run(x: np.ndarray) -> np.ndarray:
        if x.shape[0] == 1 < x.shape[1]:
            raise raised
        return np.asarray(np.sqrt(x))

    seen = "it passed"
    try:
        verify_over_range(run, np.sqrt, _positive, bounds)
    except Exception as error:
        if error is raised:
            return
        seen = f"{type(error).__name__}: {error}"[:200]
    raise fail(
        "the exception of an artifact that fails for a first extent of 1, as it was raised",
        seen,
        "the except clause: a shape that raises has not passed, and its exception says why",
    )


def _expect_tolerance(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """The absolute error decides, whatever the size of the values."""

    def large(x: np.ndarray) -> np.ndarray:
        return np.asarray(1000 * np.sqrt(x))

    for error in (0.01, 0.09):  # above the default, allowed
        try:
            verify_over_range(
                lambda x, by=error: np.sqrt(x) + by, np.sqrt, _positive, bounds, tolerance=0.1
            )
        except ValueError as refused:
            raise fail(
                f"an error of {error} passes with tolerance=0.1", str(refused), "`tolerance`"
            ) from refused
    try:
        verify_over_range(
            lambda x: np.zeros_like(x) + np.float32(0.5),
            np.zeros_like, _positive, bounds, tolerance=0.5,
        )  # fmt: skip
    except ValueError as refused:
        raise fail(
            "an error of just 0.5 passes with tolerance=0.5, the largest that does",
            str(refused),
            "the comparison with `tolerance`: <=",
        ) from refused
    try:
        verify_over_range(lambda x: large(x) + 0.02, large, _positive, bounds, tolerance=0.01)
    except ValueError:
        return
    raise fail(
        "a ValueError for values near 1000 with an error of 0.02, for tolerance=0.01",
        "it passed",
        "the error is absolute: it is not divided by the values",
    )


def _expect_drawn(verify_over_range: Function) -> None:
    """The shape of primes is not left to chance, and no part of the range is left out."""
    for few in ((5, 5, 4, 5), (5, 4, 5, 5)):
        tried: list[tuple[int, ...]] = []
        verify_over_range(_noting(tried), np.sqrt, _positive, few)
        expect(
            (3, 3, 3, 3) in tried,
            expected=f"(3, 3, 3, 3) tried in the range {few}: the only shape of primes above 2 and "
            "below the bounds",
            seen=f"{len(tried)} other shapes",
            look="the shape of primes, in addition to the shapes drawn at random",
        )
    lengths: list[tuple[int, ...]] = []
    for _ in range(6):
        verify_over_range(_noting(lengths), np.sqrt, _positive, (600,))
    drawn = [n for (n,) in lengths if n not in (1, 600) and not _is_prime(n)]
    for part, there in (
        ("below 300", any(n < 300 for n in drawn)),
        ("above 300", any(n > 300 for n in drawn)),
    ):
        expect(
            there,
            expected="shapes drawn at random from the whole range of 1 to 600",
            seen=f"none {part} in 6 calls",
            look="random.randint(1, bound) for each symbol",
        )
    _expect_both_ends(verify_over_range)


def _expect_both_ends(verify_over_range: Function) -> None:
    """Random extents are 1 and the bound as well, beside others that are neither."""
    tried: list[tuple[int, ...]] = []
    for _ in range(12):  # each draws at least eight; a sixth of them has each of the ends
        verify_over_range(_noting(tried), np.sqrt, _positive, (4, 6))
    for what, some in (
        ("few of the first and many of the second", {(1, 4), (1, 5), (2, 4), (2, 5), (2, 6)}),
        ("many of the first and few of the second", {(3, 1), (3, 2), (4, 2)}),
    ):
        expect(
            bool(some & set(tried)),
            expected=f"shapes drawn at random from the whole range (4, 6), even with {what}",
            seen="none in 12 calls",
            look="random.randint(1, bound) for each symbol separately",
        )
    for end in (1, 4):
        expect(
            any(first == end and second not in (1, 6) for first, second in tried),
            expected="both ends of the range among the extents drawn at random",
            seen=f"of the range (4, 6) no shape ({end}, n) with n from 2 to 5 in 12 calls",
            look="random.randint(1, bound) for each symbol, which includes both",
        )


def _expect_primes(verify_over_range: Function) -> None:
    """Each call has a shape of primes; odd numbers are not all primes."""
    bounds = tuple(int(each) for each in fresh_rng().integers(60, 100, 6))
    for _ in range(3):
        tried: list[tuple[int, ...]] = []

        def shape_as_array(*shape: int, tried: list[tuple[int, ...]] = tried) -> tuple[np.ndarray]:
            tried.append(shape)
            return (np.array(shape, "float32"),)

        verify_over_range(np.sqrt, np.sqrt, shape_as_array, bounds)
        expect(
            any(
                all(_is_prime(n) and 2 < n < b for n, b in zip(each, bounds, strict=True))
                for each in tried
            ),
            expected=f"in each call a shape of primes above 2 and below {bounds}",
            seen=f"beside {2 ** len(bounds)} corners {sorted(tried[-9:])}",
            look="the primes: 9 and 15 are odd but not prime, and tiles divide them",
        )
        corners = set(itertools.product(*((1, bound) for bound in bounds)))
        inside = len(set(tried) - corners)  # of six symbols, that two coincide is unlikely
        expect(
            inside >= 1 + 8,
            expected=f"one shape of primes and at least eight drawn at random, of {bounds}",
            seen=f"{inside} besides the corners",
            look="the number of shapes drawn",
        )


def _noting(tried: list[tuple[int, ...]]) -> Arrays:
    """The square root, noting the shapes that it is called with."""

    def run(x: np.ndarray) -> np.ndarray:
        tried.append(x.shape)
        return np.asarray(np.sqrt(x))

    return run


def _positive(*shape: int) -> tuple[np.ndarray]:
    return (fresh_rng().uniform(0.5, 2, shape).astype("float32"),)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % each for each in range(2, math.isqrt(number) + 1))


def _expect_range(errors: Any, called: Sequence[tuple[int, ...]], bounds: tuple[int, int]) -> None:
    tried = set(called)
    beyond = [
        each for each in tried if any(not 1 <= n <= b for n, b in zip(each, bounds, strict=True))
    ]
    expect(
        not beyond,
        expected=f"extents from 1 to the bounds {bounds}",
        seen=f"{beyond[0] if beyond else ''} was tried",
        look="the range of the draws, which includes both ends",
    )
    corners = {(a, b) for a in (1, bounds[0]) for b in (1, bounds[1])}
    expect(
        corners <= tried,
        expected=f"every corner of the range is tried: {sorted(corners)}",
        seen=f"{sorted(corners - tried)} are not",
        look="itertools.product of (1, bound) for each symbol",
    )
    inside = {each for each in tried if each not in corners}
    expect(
        any(
            all(_is_prime(n) and 2 < n < b for n, b in zip(each, bounds, strict=True))
            for each in inside
        ),
        expected="a shape whose extents are all primes above 2 and below the bounds",
        seen=f"the shapes {sorted(inside)}",
        look="the shape of primes, which no tile divides",
    )
    expect(
        any(a != b and not (_is_prime(a) and _is_prime(b)) for a, b in inside),
        expected="an extent of its own drawn for each symbol",
        seen=f"beside corners and primes only {sorted(inside)}",
        look="random.randint(1, bound) for each symbol",
    )
    expect(
        len(called) >= 4 + 1 + 6,  # of eight random ones some may coincide with others
        expected="at least eight shapes drawn at random, besides corners and primes",
        seen=f"{len(called)} calls in all",
        look="the number of shapes drawn",
    )
    expect(
        isinstance(errors, dict)
        and set(errors) == tried
        and all(abs(float(each) - 1e-5) < 5e-6 for each in errors.values()),
        expected="{shape: largest absolute error} for every shape that was tried",
        seen=f"{str(errors)[:120]}",
        look="the return statement, and the largest of |output - reference|",
    )


def _nan_somewhere(x: np.ndarray) -> np.ndarray:
    out: np.ndarray = np.sqrt(x)
    if x.shape[0] == 1 and x.shape[1] > 1:  # a number beside it
        out[0, 0] = np.nan
    return out


def _constant(*shape: int) -> tuple[np.ndarray]:
    return (np.full(shape, fresh_rng().uniform(0.5, 2), "float32"),)


def _upright(x: np.ndarray) -> np.ndarray:
    out: np.ndarray = np.sqrt(x)
    return out.T if x.shape[0] == 1 else out


_OFF = 0.37
_ONE_FOR_ALL = "one element in place of all"
_TURNED = "a column in place of a row, for a first extent of 1"
_TOO_FEW = "a row too few"
_CORRUPTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "wrong for a first extent of 1": lambda x: np.sqrt(x) + _OFF * (x.shape[0] == 1),
    "wrong for large extents": lambda x: np.sqrt(x) - _OFF * (x.shape[1] >= 30),
    "NaN in one element, for a first extent of 1": _nan_somewhere,
    # NumPy would broadcast the next two, and all elements are equal where they are tried.
    _ONE_FOR_ALL: lambda x: np.sqrt(x)[:1, :1],
    _TURNED: _upright,
    _TOO_FEW: lambda x: np.sqrt(x)[: max(1, x.shape[0] - 1)],
}


def _expect_refused(
    verify_over_range: Function,
    what: str,
    corrupt: Callable[[np.ndarray], np.ndarray],
    bounds: tuple[int, int],
) -> None:
    last: list[tuple[int, ...]] = []
    given: list[tuple[int, ...]] = []

    def run(x: np.ndarray) -> np.ndarray:
        last.append(x.shape)
        out = corrupt(x)
        given.append(out.shape)
        return out

    draw = _constant if what in (_ONE_FOR_ALL, _TURNED) else _positive
    try:
        verify_over_range(run, np.sqrt, draw, bounds)
    except ValueError as error:
        text = str(error)
        named = any(_names_shape(text, shape) for shape in last)
        expect(
            named and "broadcast" not in text,
            expected="the ValueError names the shape at which the output is wrong",
            seen=text,
            look="the text of the error; compare the shapes before the values",
        )
        _expect_said(what, text, given)
        return
    raise fail(
        f"a ValueError for an artifact whose output is {what}",
        f"it passed at {len(last)} shapes",
        "the comparison: shapes first, and NaN is never right (`not error <= tolerance`)",
    )


def _expect_said(what: str, text: str, given: Sequence[tuple[int, ...]]) -> None:
    """The error says both output shapes where they differ, else the error, unless it is NaN."""
    if what in (_ONE_FOR_ALL, _TURNED, _TOO_FEW):
        expect(
            any(_names_shape(text, shape) for shape in given),
            expected="the ValueError names the two output shapes",
            seen=text,
            look="the text of the error: the output's shape beside the reference's",
        )
    elif "NaN" not in what:
        numbers = [float(each) for each in re.findall(r"\d*\.?\d+(?:e[-+]?\d+)?", text)]
        expect(
            any(abs(each - _OFF) < 0.01 for each in numbers),
            expected=f"the ValueError names the error, {_OFF}",
            seen=text,
            look="the text of the error",
        )


def _names_shape(text: str, shape: tuple[int, ...]) -> bool:
    """Whether the whole numbers of a text are, among others, the extents in their order."""
    numbers = iter(map(int, re.findall(r"(?<![\d.])\d+(?![\d.e])", text)))
    return all(any(number == extent for number in numbers) for extent in shape)


def _demonstrated_range(verify_over_range: Function) -> str:
    bounds = (29, 40)
    errors = verify_over_range(np.sqrt, np.sqrt, _positive, bounds)
    corners = [(a, b) for a in (1, 29) for b in (1, 40)]
    inside = set(errors) - set(corners)
    primes = any(_is_prime(a) and _is_prime(b) and 2 < a < 29 and 2 < b < 40 for a, b in inside)
    said = "nothing"
    try:
        verify_over_range(lambda x: np.sqrt(x) + (x.shape[1] % 8 == 0), np.sqrt, _positive, bounds)
    except ValueError as error:
        said = type(error).__name__
    tried = ", ".join(f"{a}x{b}" for a, b in corners if (a, b) in errors)
    return (
        f"corners: {tried}\none of primes: {'yes' if primes else 'no'}\n"
        f"at least 8 others: {'yes' if len(inside) >= 6 else 'no'}\n"
        f"wrong where 8 divides n: {said}"
    )


class _Attention:
    """Self-attention of fixed length in numpy: what an artifact of a bucket does."""

    def __init__(self, length: int | None, calls: list[int | None]):
        self._length, self._calls = length, calls
        self.given: np.ndarray | None = None

    def __call__(self, x: np.ndarray, keep: np.ndarray) -> np.ndarray:
        self._calls.append(self._length)
        length = self._length or x.shape[1]
        expect(
            x.shape[1] == length and keep.shape == x.shape[:2],
            expected=f"the artifact of bucket {length} is given x (batch, {length}, width) and "
            f"keep (batch, {length})",
            seen=f"x {x.shape} and keep {keep.shape}",
            look="the padding",
        )
        expect(
            x.dtype == keep.dtype == np.float32,
            expected="x and keep as float32",
            seen=f"x {x.dtype} and keep {keep.dtype}",
            look="the dtype of np.zeros and np.ones is float64 unless it is given",
        )
        self.given = x.copy()
        scores = x @ x.transpose(0, 2, 1) + (1 - keep[:, None, :]) * -1e9
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed: np.ndarray = weights / weights.sum(-1, keepdims=True) @ (x + 1)
        return mixed.astype("float32")


@PHASE.exercise(
    "bucketed",
    engine=CURRENT,
    title="serve any length from static artifacts, by padding",
    hints=(
        "Three steps: the bucket, two arrays of zeros, filled as far as x reaches, and the part "
        "of the result that belongs to x.",
        "min(bucket for bucket in artifacts if bucket >= length) is the smallest that holds x; "
        "raise ValueError if there is none. "
        "padded = np.zeros((batch, bucket, width), 'float32'), then padded[:, :length] = x; keep "
        "likewise, (batch, bucket), with 1 in the first `length` columns.",
        "return artifacts[bucket](padded, keep)[:, :length].",
    ),
    looks_like="""
        length 3: bucket 4, output (1, 3, 2)
        length 4: bucket 4, output (1, 4, 2)
        length 5: bucket 8, output (1, 5, 2)
        length 9: ValueError
    """,
    demonstrate=lambda bucketed: _demonstrated_buckets(bucketed),
)
def check_bucketed(bucketed: Function) -> None:
    rng = fresh_rng()
    # Neither ascending nor descending: the first, or the last, that fits is not the smallest.
    orders = ([5, 31, 12], [12, 5, 31], [12, 31, 5], [31, 5, 12])
    sizes = orders[int(rng.integers(len(orders)))]
    width = int(rng.integers(3, 9))
    longest = max(sizes)
    batches = dict(zip(sizes, draw_distinct(3, (1, 2, 5)), strict=True))
    for length in (5, 1, 4, 12, 6, 31, 13, 30):  # a shorter one after a longer one of its bucket
        calls: list[int | None] = []
        artifacts = {size: _Attention(size, calls) for size in sizes}
        fits = min(size for size in sizes if size >= length)
        batch = batches[fits]
        x = rng.standard_normal((batch, length, width), dtype="float32")
        x[:, length // 2] = 0  # a token of zeros is a token
        x[0, 0, 0] = 1e-6  # is not zero
        before = x.copy()
        got = bucketed(artifacts, x)
        expect(
            calls == [fits],
            expected=f"length {length} goes once through bucket {fits} of {sorted(sizes)}",
            seen=f"through {calls}",
            look="the smallest bucket that is at least as long as x",
        )
        padded = np.zeros((batch, fits, width), "float32")
        padded[:, :length] = x
        expect_close(
            artifacts[fits].given,
            padded,
            what=f"the tokens that the artifact is given for length {length}",
            look="x first, then zeros after its last token",
        )
        want = _Attention(None, [])(x, np.ones((batch, length), "float32"))
        expect(
            str(getattr(got, "dtype", "")) == "float32",
            expected="the output as the artifact returns it, float32",
            seen=str(getattr(got, "dtype", type(got).__name__)),
            look="the artifact's result: cut it, and change nothing else",
        )
        expect_close(
            got,
            want,
            what=f"the output for length {length}",
            look="keep: 1 for the first tokens, 0 for the padding behind them; and the cut",
        )
        expect_unchanged(before, x, "x")
    _expect_other_buckets(bucketed)
    _expect_too_long_refused(bucketed, longest, rng)


def _expect_other_buckets(bucketed: Function) -> None:
    """Buckets belong to a call, and each length up to the longest may have its own."""
    (x,) = draw_normal((2, 7, 4))
    calls: list[int | None] = []
    bucketed({size: _Attention(size, calls) for size in (40, 9)}, x)
    expect(
        calls == [9],
        expected="length 7 goes once through bucket 9 of [9, 40], after calls with other buckets",
        seen=f"through {calls}",
        look="buckets that are kept from an earlier call",
    )
    for length in (1, 2, 3):  # a bucket of each length
        calls = []
        bucketed({size: _Attention(size, calls) for size in (2, 1, 64, 3)}, x[:, :length])
        expect(
            calls == [length],
            expected=f"length {length} goes through bucket {length} of [1, 2, 3, 64]",
            seen=f"through {calls}",
            look="the smallest bucket that is at least as long as x",
        )


def _expect_too_long_refused(bucketed: Function, longest: int, rng: np.random.Generator) -> None:
    try:
        x = rng.standard_normal((1, longest + 1, 5), dtype="float32")
        bucketed({size: _Attention(size, []) for size in (5, longest, 12)}, x)
    except ValueError as error:
        expect(
            str(longest) in str(error) and str(longest + 1) in str(error),
            expected=f"the ValueError names the length {longest + 1} and the longest bucket, "
            f"{longest}",
            seen=str(error),
            look="the text of the error",
        )
        return
    raise fail(
        f"a ValueError for length {longest + 1} with buckets {sorted({5, longest, 12})}",
        "a result",
        "the case in which no bucket is long enough",
    )


def _demonstrated_buckets(bucketed: Function) -> str:
    lines = []
    for length in (3, 4, 5, 9):
        calls: list[int | None] = []
        try:
            out = bucketed(
                {size: _Attention(size, calls) for size in (4, 8)},
                np.ones((1, length, 2), "float32"),
            )
            lines.append(f"length {length}: bucket {calls[0]}, output {out.shape}")
        except ValueError:
            lines.append(f"length {length}: ValueError")
    return "\n".join(lines)
