"""The puzzles and how they are graded: the loops against the wanted picture, then the values."""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_practice.course.catalog import Check, Phase
from tvm_practice.course.expect import draw_normal, expect, expect_close
from tvm_practice.course.fences import Fenced, why_nan
from tvm_practice.course.lowering import build_module
from tvm_practice.course.nests import accepted, rearranged, visited
from tvm_practice.course.puzzle_loops import EXAMPLE, PUZZLES, Puzzle, expect_picture
from tvm_practice.engines import CURRENT

PHASE = Phase(
    number=0,
    module="puzzles",
    title="schedule puzzles",
    lanes=(CURRENT,),
    question=(
        "Which of these primitives change the order of the work, which change how a loop runs, and "
        "which change where values are kept?"
    ),
)

Function = Callable[..., Any]


def _puzzle(name: str, title: str, hints: tuple[str, str, str]) -> Callable[[Check], Check]:
    """Register the decorated check as that of the puzzle `name`."""
    puzzle = PUZZLES[name]
    return PHASE.exercise(
        name,
        engine=CURRENT,
        title=title,
        hints=hints,
        looks_like=f"\n{puzzle.wanted(EXAMPLE)}",
        demonstrate=lambda function: _shown(puzzle, function),
    )


def _shown(puzzle: Puzzle, function: Function) -> str:
    schedule = puzzle.start(EXAMPLE)
    function(schedule, *puzzle.arguments(EXAMPLE))
    return puzzle.picture(schedule)


def _check(
    name: str, function: Function, further: Callable[[Any], None] = lambda schedule: None
) -> None:
    """Each instance has the wanted loops, and the tall one numpy's values.

    Sizes that are equal hide which loop is which, so `further` looks at a square instance as well.

    Args:
        name: of the puzzle.
        function: the answer.
        further: a check of the tall instance and of small ones, tvm.s_tir.Schedules, before the
            tall one runs: a wrong one may write beside its buffers.
    """
    puzzle = PUZZLES[name]
    changed = rearranged if puzzle.stored is None else accepted
    schedules = []
    for sizes in puzzle.draw():
        schedules.append(puzzle.start(sizes))
        changed(function, schedules[-1], *puzzle.arguments(sizes))
        expect_picture(puzzle, schedules[-1], sizes)
    tall, square = schedules[1], schedules[4]
    further(tall)
    further(square)
    for sizes in puzzle.edges():
        schedule = puzzle.start(sizes)
        changed(function, schedule, *puzzle.arguments(sizes))
        expect_picture(puzzle, schedule, sizes)
        further(schedule)
    for sizes in puzzle.far():
        schedule = puzzle.start(sizes)
        changed(function, schedule, *puzzle.arguments(sizes))
        expect_picture(puzzle, schedule, sizes)
    if puzzle.runs:
        _expect_values(puzzle, tall)


def _innermost(schedule: Any) -> Any:  # a tvm.tirx.For
    """The loop around the block of Y; its body has indices and a guard, not in the pictures."""
    return schedule.get(schedule.get_loops(schedule.get_sblock("Y"))[-1])


def _expect_values(puzzle: Puzzle, schedule: Any) -> None:
    shapes = [[int(extent) for extent in each.shape] for each in schedule.mod["main"].params]
    (x,) = draw_normal(tuple(shapes[0]))
    given, y = Fenced(x), Fenced(np.full(shapes[1], np.nan, "float32"))
    build_module(schedule.mod)(given.tensor, y.tensor)
    y.expect_kept("Y")
    look = "the primitives" + why_nan(y.array)
    expect_close(y.array, puzzle.values(x), what="Y", look=look)


@_puzzle(
    "split_loop",
    "split: make two loops of one",
    (
        "The block of Y has one loop. Take it from get_loops, and give it to split together with "
        "the two extents.",
        "split takes the extents outermost first. Write None for the outer one: TVM works it out "
        "and rounds it up.",
        'schedule.split(i, [None, factor]), where (i,) = schedule.get_loops(schedule.get_sblock("Y"'
        ")).",
    ),
)
def check_split_loop(split_loop: Function) -> None:
    _check("split_loop", split_loop, _expect_guard)


def _expect_guard(schedule: Any) -> None:
    from tvm.tirx import IntImm

    extents = [int(schedule.get(each).extent) for each in schedule.get_loops("Y")]
    if math.prod(extents) == int(schedule.mod["main"].params[1].shape[0]):
        return  # the factor divides
    expect(
        not isinstance(_innermost(schedule).body.predicate, IntImm),
        expected="a guard around the block, since `factor` does not divide the length",
        seen="no guard: the last iterations would write past the end of Y",
        look="split(loop, [None, factor]) guards the block unless it is told not to",
    )


@_puzzle(
    "columns_first",
    "reorder: put the inner loop outside",
    (
        "Both loops stay as they are; only their order changes. One primitive takes loops in "
        "their new order.",
        "get_loops lists the loops outermost first: i, then j. reorder takes them in the order "
        "that you want.",
        'i, j = schedule.get_loops(schedule.get_sblock("Y")), then schedule.reorder(j, i).',
    ),
)
def check_columns_first(columns_first: Function) -> None:
    _check("columns_first", columns_first, _expect_column_by_column)


def _expect_column_by_column(schedule: Any) -> None:
    rows = int(schedule.mod["main"].params[1].shape[0])
    for number, (indices, _) in enumerate(visited(schedule, "Y")):
        column, row = divmod(number, rows)
        expect(
            indices == (row, column),
            expected=f"column by column: iteration {number} computes Y[{row}, {column}]",
            seen=f"it computes Y[{', '.join(map(str, indices))}]",
            look="schedule.reorder(j, i), whatever the sizes are",
        )


@_puzzle(
    "one_loop",
    "fuse: make one loop of two",
    (
        "The opposite of split: one loop whose iterations are those of both, rows times columns.",
        "fuse takes two loops, of which the second is right inside the first.",
        'i, j = schedule.get_loops(schedule.get_sblock("Y")), then schedule.fuse(i, j).',
    ),
)
def check_one_loop(one_loop: Function) -> None:
    _check("one_loop", one_loop, _expect_row_by_row)


def _writer(schedule: Any) -> str:
    """The block that writes Y, which has another name where Y's block was inlined into it."""
    blocks = map(schedule.get, schedule.get_child_blocks(schedule.get_sblock("root")))
    return next(str(each.name_hint) for each in blocks if str(each.writes[0].source.name) == "Y")


def _expect_row_by_row(schedule: Any) -> None:
    columns = int(schedule.mod["main"].params[1].shape[1])
    for number, (indices, _) in enumerate(visited(schedule, _writer(schedule))):
        wanted = divmod(number, columns)
        expect(
            indices == wanted,
            expected=f"row by row: iteration {number} computes Y[{wanted[0]}, {wanted[1]}]",
            seen=f"it computes Y[{', '.join(map(str, indices))}]",
            look="the order of the loops: rows outside columns, for all sizes; fuse takes the loop "
            "over rows first",
        )


@_puzzle(
    "rows_to_threads",
    "parallel: share the rows among the threads",
    (
        "A row needs no other row. Which of the two loops goes from row to row?",
        "The outermost loop, i. Threads start each time a parallel loop is reached, so it "
        "should be outside all others.",
        'schedule.parallel(i), where i is the first of get_loops(schedule.get_sblock("Y")).',
    ),
)
def check_rows_to_threads(rows_to_threads: Function) -> None:
    _check("rows_to_threads", rows_to_threads, _expect_row_by_row)


@_puzzle(
    "columns_to_lanes",
    "vectorize: compute a row in vector lanes",
    (
        "A vector load takes adjacent floats. Which loop goes from a float to the next one?",
        "The innermost loop, j: the elements of a row lie side by side in memory.",
        'schedule.vectorize(j), where j is the last of get_loops(schedule.get_sblock("Y")).',
    ),
)
def check_columns_to_lanes(columns_to_lanes: Function) -> None:
    _check("columns_to_lanes", columns_to_lanes, _expect_row_by_row)


@_puzzle(
    "written_out",
    "unroll: write a loop's body out",
    (
        "A loop counts and jumps in every iteration. Written out, only its body is left; one "
        "primitive does it.",
        "The loop over k is the second of the block's loops; the rows stay a serial loop.",
        'schedule.unroll(k), where _, k = schedule.get_loops(schedule.get_sblock("Y")).',
    ),
)
def check_written_out(written_out: Function) -> None:
    _check("written_out", written_out, _expect_sum_by_sum)


def _expect_sum_by_sum(schedule: Any) -> None:
    elements = int(schedule.mod["main"].params[0].shape[1])
    for number, ((row,), _) in enumerate(visited(schedule, "Y")):
        expect(
            row == number // elements,
            expected=f"sum by sum: iteration {number} adds to Y[{number // elements}]",
            seen=f"it adds to Y[{row}]",
            look="the unrolled loop: it is the sum's, inside the loop over rows, for all sizes",
        )


@_puzzle(
    "no_middle_stage",
    "compute_inline: drop a stage between two others",
    (
        "B is element by element: its formula can stand where Y reads B.",
        "One primitive takes the block that disappears, and no loop.",
        'schedule.compute_inline(schedule.get_sblock("B")); Y is then 2 X[i, j] + 1.',
    ),
)
def check_no_middle_stage(no_middle_stage: Function) -> None:
    _check("no_middle_stage", no_middle_stage, _expect_row_by_row)


@_puzzle(
    "row_by_row",
    "compute_at: compute a producer where it is read",
    (
        "B is the producer, Y its consumer. Move B into one of Y's loops; TVM works out how much "
        "of B that loop needs.",
        "In the loop over rows of Y, i, one row of B is needed. The primitive takes the block of B "
        "first, then the loop.",
        'i, _ = schedule.get_loops(schedule.get_sblock("Y")), then '
        'schedule.compute_at(schedule.get_sblock("B"), i).',
    ),
)
def check_row_by_row(row_by_row: Function) -> None:
    _check("row_by_row", row_by_row, _expect_row_by_row)


@_puzzle(
    "follow_the_sum",
    "reverse_compute_at: use a sum where it is complete",
    (
        "This time the consumer moves: Y goes into a loop of B. In which of B's loops is an "
        "element of B complete?",
        "Inside i and after k has ended. The primitive takes the block of Y, then a loop of B.",
        'i, _ = schedule.get_loops(schedule.get_sblock("B")), then '
        'schedule.reverse_compute_at(schedule.get_sblock("Y"), i).',
    ),
)
def check_follow_the_sum(follow_the_sum: Function) -> None:
    _check("follow_the_sum", follow_the_sum)


@_puzzle(
    "row_copy",
    "cache_read: read an input from a copy",
    (
        "Two primitives: one puts a copying block between X and Y, the other moves that block into "
        "the loop where the copy is needed.",
        'copy = schedule.cache_read(block, 0, "local") copies all of X, before everything else; 0 '
        "is the number of the input.",
        "schedule.compute_at(copy, i), where i is the first loop of Y's block: a row is copied, "
        "then used.",
    ),
)
def check_row_copy(row_copy: Function) -> None:
    _check("row_copy", row_copy)


@_puzzle(
    "local_sum",
    "cache_write: add up in a buffer, write it once",
    (
        "Two primitives: one makes the block add up in a buffer and returns a block that copies "
        "it to Y; the other moves that copy.",
        'write_back = schedule.cache_write(block, 0, "local") copies all of the buffer at the end. '
        "A row's sum is complete inside i, after k.",
        "schedule.reverse_compute_at(write_back, i), where i is the first loop of Y's block.",
    ),
)
def check_local_sum(local_sum: Function) -> None:
    _check("local_sum", local_sum)


@_puzzle(
    "zero_first",
    "decompose_reduction: zero before the loop, not in it",
    (
        "A sum's block does two things: it sets Y to zero at the first k, and it adds. One "
        "primitive makes two blocks of it.",
        "The primitive takes the block and the loop before which the zeroing goes: k, so that an "
        "element is zeroed right before its sum.",
        'block = schedule.get_sblock("Y"), then '
        "schedule.decompose_reduction(block, schedule.get_loops(block)[1]).",
    ),
)
def check_zero_first(zero_first: Function) -> None:
    _check("zero_first", zero_first)


@_puzzle(
    "partial_sums",
    "rfactor: several partial sums, then their sum",
    (
        "First make two loops of k, the inner one of `factor` iterations. Then ask for a partial "
        "sum per iteration of one of them.",
        "rfactor(loop) makes a partial sum for each iteration of the loop it is given: k_inner has "
        "`factor` of them.",
        "_, k_inner = schedule.split(k, [None, factor]), then schedule.rfactor(k_inner, "
        "factor_axis=0).",
    ),
)
def check_partial_sums(partial_sums: Function) -> None:
    _check("partial_sums", partial_sums, _expect_every_so_many)


def _expect_every_so_many(schedule: Any) -> None:
    block = next(
        str(each.name_hint)
        for each in map(schedule.get, schedule.get_child_blocks(schedule.get_sblock("root")))
        if any(str(read.source.name) == "X" for read in each.reads)
    )
    taken = defaultdict(list)
    for partial, reads in visited(schedule, block):
        row, element = reads["X"]
        if row == 0:
            taken[partial].append(element)
    apart = len(taken)
    for elements in taken.values():
        first = min(elements)
        expect(
            sorted(elements) == list(range(first, first + apart * len(elements), apart)),
            expected=f"a partial sum that takes one element of a row in {apart}: {first}, "
            f"{first + apart}, {first + 2 * apart}, …",
            seen=", ".join(map(str, elements[:3])) + ", …",
            look="split k by [None, factor] and give rfactor the inner loop: its iterations are "
            "neighbours",
        )


@_puzzle(
    "stored_by_columns",
    "transform_layout: store a buffer in another order",
    (
        "The primitive takes a block, which of its buffers is meant, and a function from the old "
        "indices to the new ones.",
        '("write", 0) is the first buffer that the block of B writes: B itself. Its old indices '
        "are j, i.",
        'schedule.transform_layout("B", ("write", 0), lambda j, i: (i, j)); TVM changes B where it '
        "is read as well.",
    ),
)
def check_stored_by_columns(stored_by_columns: Function) -> None:
    _check("stored_by_columns", stored_by_columns, _expect_transposed)


def _expect_transposed(schedule: Any) -> None:
    """B is stored by rows of Y, and the loops of both are in their order."""
    rows = int(schedule.mod["main"].params[0].shape[1])
    for at, (indices, reads) in enumerate(visited(schedule, "B")):
        column, row = reads["X"]
        expect(
            (column, row) == divmod(at, rows),
            expected="the loops of B as they are: "
            f"iteration {at} reads X[{at // rows}, {at % rows}]",
            seen=f"it reads X[{column}, {row}]",
            look="schedule.reorder: the puzzle asks only for transform_layout, for all sizes",
        )
        expect(
            indices == (row, column),
            expected=f"X[{column}, {row}], which iteration {at} of B reads, to be stored in "
            f"B[{row}, {column}]",
            seen=f"it is stored in B[{', '.join(map(str, indices))}]",
            look="lambda j, i: (i, j), whatever the sizes are",
        )
    _expect_row_by_row(schedule)


@_puzzle(
    "grid_of_threads",
    "bind: loops become a GPU's threads",
    (
        "On a GPU, a thread can run each iteration, so no loop is left. One primitive names the "
        "thread axis that takes a loop's place.",
        'The axis of thread blocks is "blockIdx.x", that of the threads in one is "threadIdx.x".',
        'schedule.bind(i, "blockIdx.x"), then schedule.bind(j, "threadIdx.x").',
    ),
)
def check_grid_of_threads(grid_of_threads: Function) -> None:
    _check("grid_of_threads", grid_of_threads, _expect_grid)


def _expect_grid(schedule: Any) -> None:
    """A thread block for each row and a thread for each column, even if there is one of them."""
    _expect_row_by_row(schedule)
    bound = {
        str(each.thread_binding.thread_tag): int(each.extent)
        for each in map(schedule.get, schedule.get_loops("Y"))
        if each.thread_binding is not None
    }
    rows, columns = (int(extent) for extent in schedule.mod["main"].params[1].shape)
    expect(
        bound == {"blockIdx.x": rows, "threadIdx.x": columns},
        expected=f"blockIdx.x of {rows} and threadIdx.x of {columns}",
        seen=", ".join(f"{tag} of {extent}" for tag, extent in bound.items()) or "no threads",
        look="schedule.bind of both loops, whatever the sizes are",
    )
