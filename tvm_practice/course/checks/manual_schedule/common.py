"""Phase 2, and what several of its checks expect: loops, returned loops, statements."""

from collections.abc import Callable
from typing import Any

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import expect, show, statements
from tvm_practice.course.nests import accumulation, expect_loops, shared_loops
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.viz.loop_nest import Node, format_nest, loop_nest, paths

PHASE = Phase(
    number=2,
    module="manual_schedule",
    title="manual schedules",
    lanes=(CURRENT, CLASSIC),
    builds_on=("te_basics.matmul",),
    question=(
        "Why does tiling (split + reorder) improve cache performance? Draw the memory access "
        "pattern."
    ),
)

Function = Callable[..., Any]


def nest_of(schedule: Any) -> list[Node]:
    return loop_nest(schedule.mod["main"])


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


SPLIT = (
    "the factors of split: [None, tile] gives an inner loop of `tile` iterations and rounds the "
    "outer one up; rows are i, columns are j, and get_loops(block)[-3:] are i, j and k"
)


# So many batches are two serial loops outside i, where others are one parallel loop.
TWO_OUTSIDE = 6


def loops_outside(schedule: Any, block: Any, batch: int | None) -> str:
    """Make the loops outside i, and tell them as `expect_nest` takes them."""
    if batch is None:
        return ""
    outermost = schedule.get_loops(block)[0]
    if batch == TWO_OUTSIDE:
        schedule.split(outermost, [2, None])
        return f"b_outer serial(2) > b_inner serial({batch // 2}) > "
    schedule.parallel(outermost)
    return f"b parallel({batch}) > "


def expect_statements(schedule: Any, count: int) -> None:
    """There are so many statements: nothing is copied besides."""
    found = statements(nest_of(schedule))
    expect(
        len(found) == count,
        expected=f"{count} statement{'s' * (count > 1)}",
        seen=", ".join(f"{each.writes} <- {', '.join(each.reads)}" for each in found),
        look="another change to the schedule, such as an extra cache_read or cache_write",
    )


def expect_returned(returned: Any, schedule: Any, block: Any, names: str) -> None:
    """`returned` is a list of the block's last loops, which are called `names`."""
    count = names.count(",") + 1
    now = schedule.get_loops(block)[-count:]
    is_list = isinstance(returned, list | tuple) and len(returned) == count
    expect(
        is_list
        and all(
            schedule.get(loop).loop_var.same_as(schedule.get(other).loop_var)
            for loop, other in zip(returned, now, strict=True)
        ),
        expected=f"the list {names} returned",
        seen="other loops, or another order" if is_list else f"{_kind_of(returned)} returned",
        look="the return statement: the loops from split and get_loops, in the new order",
    )


def expect_own(schedule: Any, second: Any, name: str) -> None:
    """Two equal calls return a schedule each: who has one may go on changing it."""
    expect(
        second is not schedule,
        expected=f"a schedule of its own from each call of {name}",
        seen="a second call of the same arguments returns the schedule of the first",
        look="results kept between calls: a primitive changes the schedule it is called on",
    )


def expect_zeroed_alike(schedule: Any) -> None:
    """The loops of the statement that sets to zero run as those of the tile do."""
    nest = nest_of(schedule)
    around, update = accumulation(nest)
    zeroing = next(path for path, each in paths(nest) if each.writes == update.writes)
    own = zeroing[shared_loops(zeroing, around) :]
    expect_loops(
        [(loop.kind, loop.extent) for loop in own]
        == [(loop.kind, loop.extent) for loop in around[-2:]],
        own,
        f"{update.writes} set to zero in loops that run as the tile's do: {show(around[-2:])}",
        "the order: unrolled and vectorized first, because decompose_reduction copies the loops "
        "as they are",
    )


def shown(scheduled: tuple[Any, Any], function: Function, *arguments: int) -> str:
    """The nest after `function` has changed a schedule's block."""
    schedule, block = scheduled
    function(schedule, block, *arguments)
    return format_nest(nest_of(schedule))


def _kind_of(returned: Any) -> str:
    """A type, and of a list its length."""
    name = type(returned).__name__
    return f"a {name} of {len(returned)}" if isinstance(returned, list | tuple) else name
