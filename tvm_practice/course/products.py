"""The matrix products that checks have scheduled, tuned and run."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.course import symptoms
from tvm_practice.course.expect import (
    draw_normal,
    expect,
    expect_close,
    expect_unchanged,
    show_nest,
)
from tvm_practice.course.fences import Fenced, why_nan


def matmul_tensors(
    m: int, n: int, k: int, batch: int | None = None, *, names: str = "ABC"
) -> list[Any]:
    """[A, B, C] of a matmul, or of `batch` independent ones, under a letter each of `names`.

    The axes are i, j and k; of a batch, or under other letters, x, y and r.
    """
    from tvm import te

    outer = () if batch is None else (batch,)
    left, right, out = tuple(names)
    A = te.placeholder((*outer, m, k), name=left)
    B = te.placeholder((*outer, k, n), name=right)
    usual = names == "ABC" and batch is None
    r = te.reduce_axis((0, k), name="k" if usual else "r")
    if usual:
        C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name=out)
    elif batch is None:
        C = te.compute((m, n), lambda x, y: te.sum(A[x, r] * B[r, y], axis=r), name=out)
    else:
        C = te.compute(
            (batch, m, n), lambda b, x, y: te.sum(A[b, x, r] * B[b, r, y], axis=r), name=out
        )
    return [A, B, C]


def matmul_function(
    m: int, n: int, k: int, batch: int | None = None, *, name: str = "main", names: str = "ABC"
) -> Any:  # a tvm.tirx.PrimFunc
    """The PrimFunc of `matmul_tensors`."""
    from tvm import te

    tensors = matmul_tensors(m, n, k, batch, names=names)
    return te.create_prim_func(tensors).with_attr("global_symbol", name)


def matmul_schedule(
    m: int, n: int, k: int, batch: int | None = None, *, names: str = "ABC"
) -> tuple[Any, Any]:
    """A fresh schedule of that function, and its block, which has the last letter of `names`."""
    import tvm

    function = matmul_function(m, n, k, batch, names=names)
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock(names[-1])


def expect_product(
    run: Callable[..., object],
    a: tuple[int, ...],
    b: tuple[int, ...],
    *,
    look: str,
    what: str = "C",
    atol: float = 1e-4,
) -> None:
    """`run`(A, B, C) leaves the product of A and B in C, and only reads A and B.

    Args:
        run: a compiled function of the active engine.
        a: the shape of A.
        b: the shape of B.
        look: where to look if C is wrong.
        what: C's name in the message, which its inputs' sizes follow.
        atol: how far an element may be off, besides 1e-4 of it.
    """
    before = draw_normal(a, b)
    want = before[0] @ before[1]
    inputs = [Fenced(each) for each in before]
    output = Fenced(np.full(want.shape, np.nan, "float32"))
    run(*(each.tensor for each in (*inputs, output)))
    sizes = " by ".join("x".join(map(str, shape)) for shape in (a, b))
    for name, each in zip(("A", "B", what), (*inputs, output), strict=True):
        each.expect_kept(name)
    for name, drawn, after in zip("AB", before, inputs, strict=True):
        expect_unchanged(drawn, after.array, name)
    look += why_nan(output.array)
    expect_close(output.array, want, what=f"{what} of {sizes}", look=look, atol=atol)


def expect_inside(schedule: Any, tensors: Sequence[Any], names: Sequence[str]) -> None:
    """A schedule of the active engine, of `tensors`, touches elements of the buffers `names` alone.

    What it reads beside them may be dropped, and then shows in no value.
    """
    outside = symptoms.touched_outside(schedule, tensors, names)
    expect(
        not outside,
        expected=f"no access outside {' and '.join(outside)}",
        seen="some accesses are past the last element" + show_nest(symptoms.nest_of(schedule)),
        look="split: it guards the block where a part does not divide its loop, unless it is told "
        "not to",
    )
