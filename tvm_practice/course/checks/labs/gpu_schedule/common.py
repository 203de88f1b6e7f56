"""Lab 1, and what its checks expect of loops: threads, what they ask of memory, values."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    expect,
    expect_close,
)
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.viz.loop_nest import (
    Loop,
    Node,
    loop_nest,
)

PHASE = Phase(
    number=1,
    module="labs.gpu_schedule",
    title="GPU schedules",
    lanes=(CURRENT, CLASSIC),
    builds_on=("te_basics.matmul",),
    question=(
        "Two kernels do the same multiply-adds with the same number of threads. What makes one "
        "ten times as fast, and how much of that can be seen without a GPU?"
    ),
)

Function = Callable[..., Any]


def reference_answers() -> Any:
    from solutions.labs import gpu_schedule

    return gpu_schedule


def nest_of(schedule: Any) -> list[Node]:
    return loop_nest(schedule.mod["main"])


def counts_of(schedule: Any) -> Any:
    from tvm_practice.labs.gpu.counting import count_accesses

    return count_accesses(schedule.mod["main"])


def expect_product(schedule: Any, m: int, n: int, k: int, name: str = "C") -> None:
    """The schedule's loops, run on the CPU thread after thread, give numpy's product."""
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu

    got, want = matmul_on_cpu(schedule, m, n, k, name=name)
    expect_close(got, want, what=f"{name} of {m}x{k} by {k}x{n}", look="the primitives")


def expect_nothing_besides_classic(schedule: Any, copies: Sequence[Any] = ()) -> None:
    """A schedule of classic TVM has no pragma, padding or double buffer.

    The stages of the tensors `copies` have no vectorized or unrolled axis either.
    """
    from tvm import tir

    for stage in schedule.stages:
        name = str(stage.op.name)
        # The field of the node: `double_buffer` of a Stage is the primitive.
        found = ["double_buffer"] * bool(stage.__getattr__("double_buffer"))
        plain = any(stage.origin_op.same_as(each.op) or stage.op.same_as(each.op)
                    for each in copies)  # fmt: skip
        for axis, each in stage.iter_var_attrs.items():
            found += [f"pragma {key}" for key in map(str, each.pragma_keys)]
            found += ["storage_align"] * (int(each.dim_align_factor) > 0)
            kinds = {tir.IterVar.Unrolled: "unroll", tir.IterVar.Vectorized: "vectorize"}
            if plain and int(each.iter_type) in kinds:
                found.append(f"{kinds[int(each.iter_type)]} of {axis.var.name}")
        expect(
            not found,
            expected=f"the stage {name} with the primitives of the docstring alone",
            seen=", ".join(found),
            look="primitives that the docstring does not ask for",
        )


def bindings_of(loops: Sequence[Loop]) -> list[tuple[str, int | str]]:
    return [(loop.thread or loop.kind, loop.extent) for loop in loops]


def expect_bound(loops: Sequence[Loop], wanted: list[tuple[str, int]], look: str) -> None:
    expect(
        bindings_of(loops) == wanted,
        expected="the loops " + " > ".join(f"{name}({extent})" for name, extent in wanted),
        seen=shown_loops(loops),
        look=look,
    )


def shown_loops(loops: Sequence[Loop]) -> str:
    return " > ".join(f"{name}({extent})" for name, extent in bindings_of(loops)) or "no loops"


def expect_no_waste(schedule: Any, buffer: str, *, write: bool, look: str) -> None:
    """The requests of a warp for a buffer of global memory touch no more sectors than they must."""
    count = counts_of(schedule).of(buffer, write=write)
    expect(
        count.transactions == count.fewest,
        expected=f"the 32 threads of a warp {'write' if write else 'read'} neighbouring elements "
        f"of {buffer}: {count.fewest / count.requests:.3g} sectors per request",
        seen=f"{count.transactions / count.requests:.3g} sectors per request",
        look=look,
    )
