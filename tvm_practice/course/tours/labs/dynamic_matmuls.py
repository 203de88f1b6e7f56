"""The product of n rows of lab 4's tour: its loops, and its time beside a constant n."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.labs.dynamic_artifacts import ratio_cell, show_script
from tvm_practice.course.tours.printing import number_table, say, say_disturbance, show
from tvm_practice.engines.blocking import register_tile


def show_matmuls(steps: Steps, *, quick: bool) -> list[dict[str, Any]]:
    """The symbolic product and its schedule: loops, values, and time against a constant extent."""
    from solutions.labs.dynamic_shapes import symbolic_matmul
    from tvm_practice.viz.loop_nest import loop_nest, print_nest

    size = 256 if quick else 512
    rows, columns = register_tile()
    say(f"\nA product of n x {size} by {size} x {size}.")
    module = steps.attempt("symbolic_matmul", size, size)
    if module is not None:
        show_script(f"symbolic_matmul({size}, {size})", module["main"])
        print_nest("its kernel", loop_nest(_kernel(module)))
    # The schedule can be written before the product is.
    module = module or symbolic_matmul(size, size)
    schedule, block = _schedule(module)
    steps.attempt("schedule_dynamic", schedule, block, rows, columns)
    if not steps.ran("schedule_dynamic"):
        return []
    print_nest(f"schedule_dynamic, tiles of {rows} x {columns}", loop_nest(schedule.mod["main"]))
    return _time_matmuls(steps, size, schedule, quick=quick)


def _kernel(module: Any) -> Any:
    """The module's one PrimFunc."""
    (kernel,) = (each for each in module.functions.values() if type(each).__name__ == "PrimFunc")
    return kernel


def _schedule(module: Any) -> tuple[Any, Any]:
    """A fresh schedule of a module's one PrimFunc, and its one block."""
    import tvm

    kernel = _kernel(module).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": kernel}))
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    return schedule, block


def _time_matmuls(steps: Steps, size: int, scheduled: Any, *, quick: bool) -> list[dict[str, Any]]:
    """Time the schedule for several n against the same tiles with n a constant; prints a table.

    Returns:
        For each n the comparison as figures.
    """
    import numpy as np

    from solutions.labs.dynamic_shapes import symbolic_matmul
    from tvm_practice.measure import compare_interleaved

    guarded, block = _schedule(symbolic_matmul(size, size))
    _tile_with_guards(guarded, block)
    symbolic = {"guards": _built(guarded), "yours": _built(scheduled)}
    table = number_table("n", "constant n, ms", "guards", "yours", "PyTorch")
    figures = []
    b = np.random.default_rng().standard_normal((size, size), "float32")
    for n in (1, 8, 61, 128) if quick else (1, 8, 61, 128, 509, 512):
        runs = _runs(steps, {"constant": _constant(n, size), **symbolic}, n, b)
        compared = compare_interleaved(
            runs, baseline="constant", rounds=20, time_limit=1 if quick else 3
        )
        table.add_row(
            str(n),
            f"{compared.latency['constant'].median:.3g}",
            *(ratio_cell(compared.ratio.get(name)) for name in ("guards", "yours", "PyTorch")),
        )
        figures.append({"n": n, **compared.to_dict()})
    rows, columns = register_tile()
    say(
        f"\nTimes relative to the same tiles of {rows} x {columns}, compiled for each n as a "
        "constant:"
    )
    show(table)
    say_disturbance(each["verdict"] for each in figures)
    return figures


def _runs(
    steps: Steps, functions: Mapping[str, Callable[..., Any]], n: int, b: Any
) -> dict[str, Callable[[], Any]]:
    """Calls on n rows of those functions that are right, and PyTorch's."""
    import numpy as np
    import torch
    import tvm

    a = np.random.default_rng().standard_normal((n, b.shape[0]), "float32")
    want = a @ b
    tensors = [tvm.runtime.tensor(each) for each in (a, b, np.empty_like(want))]
    runs: dict[str, Callable[[], Any]] = {}
    for name, function in functions.items():
        function(*tensors)
        if np.allclose(tensors[2].numpy(), want, atol=1e-3):
            runs[name] = functools.partial(function, *tensors)
        elif name == "yours":
            steps.fail("schedule_dynamic", f"wrong values at n = {n}, so it is not timed")
        else:
            say(f"{name} is wrong at n = {n}, so it is not timed.")
    runs["PyTorch"] = functools.partial(torch.matmul, torch.from_numpy(a), torch.from_numpy(b))
    return runs


def _built(schedule: Any) -> Callable[..., Any]:
    import tvm

    from tvm_practice import engines

    function: Callable[..., Any] = tvm.compile(schedule.mod, engines.host_target())["main"]
    return function


def _constant(n: int, size: int) -> Callable[..., Any]:
    """The product of n rows, compiled for that n."""
    import tvm
    from tvm import te

    from tvm_practice.course.stack import earlier

    matmul = earlier("te_basics.matmul")
    function = te.create_prim_func(matmul(n, size, size))
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    _tile_with_guards(schedule, schedule.get_sblock("C"))
    return _built(schedule)


def _tile_with_guards(schedule: Any, block: Any) -> None:
    """The tile of `schedule_dynamic` by split alone: a guard around every step of the sum."""
    rows, columns = register_tile()
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.parallel(i_outer)
    schedule.unroll(i_inner)
    schedule.vectorize(j_inner)
    schedule.decompose_reduction(block, k)
