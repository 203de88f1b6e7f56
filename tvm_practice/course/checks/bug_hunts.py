"""The bug hunts and how they are graded: the cause, what showed it, what is kept, the values."""

import math
import re
from collections.abc import Callable
from typing import Any

from tvm_practice.course import symptoms
from tvm_practice.course.catalog import Check, Phase
from tvm_practice.course.expect import draw_normal, expect, expect_close, fail, show_nest
from tvm_practice.course.nests import accepted
from tvm_practice.course.products import expect_inside
from tvm_practice.course.suspects import HUNTS, LETTERS, Hunt, Sizes
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.viz.loop_nest import format_nest, paths

PHASE = Phase(
    number=0,
    module="bug_hunts",
    title="bug hunts",
    lanes=(CURRENT, CLASSIC),
    question=(
        "TVM accepted all of these schedules. What do its checks prove, and what must you check "
        "yourself?"
    ),
)

Function = Callable[..., Any]

_MOST_LANES = 2**15 - 1  # TVM aborts where it compiles a vector of more


def _hunt(
    name: str, title: str, hints: tuple[str, str, str], looks_like: str
) -> Callable[[Check], Check]:
    """Register the decorated check as that of the hunt `name`."""
    return PHASE.exercise(
        name,
        engine=HUNTS[name].engine,
        title=title,
        hints=hints,
        looks_like=looks_like,
        demonstrate=lambda function: _shown(HUNTS[name], function),
    )


def _shown(hunt: Hunt, function: Function) -> str:
    tensors, schedule = hunt.start(hunt.example)
    function(*hunt.arguments(tensors, schedule))
    return format_nest(symptoms.nest_of(schedule))


def _check(name: str, function: Function) -> None:
    """The cause is the right one, and the repaired schedule passes for several sizes.

    It runs at the last drawn sizes at which TVM compiles its vectors: a row's columns may be one.
    """
    hunt = HUNTS[name]
    counted = set()
    compiled: list[tuple[list[Any], Any]] = []
    for sizes in (hunt.example, *hunt.draw()):
        tensors, schedule = _repaired(name, function, sizes)
        _expect_kept(hunt, schedule)
        _expect_repaired(hunt, tensors, schedule, sizes)
        counted.add(_form(schedule))
        if _lanes(schedule) <= _MOST_LANES:
            compiled.append((tensors, schedule))
    for sizes in hunt.far():
        large, repair = _repaired(name, function, sizes)
        _expect_kept(hunt, repair)
        if _form(repair) not in counted:  # else it has what the smaller ones have
            _expect_repaired(hunt, large, repair, sizes)
    for tensors, schedule in compiled:
        _expect_inside(hunt, tensors, schedule)
    tensors, schedule = compiled[-1]
    arrays = draw_normal(
        *(tuple(int(extent) for extent in each.shape) for each in tensors[: hunt.inputs])
    )
    output = hunt.run(tensors, schedule, arrays)
    expect_close(output, hunt.values(*arrays), what="the output", look=hunt.look, atol=1e-3)


def _repaired(name: str, function: Function, sizes: Sizes) -> tuple[list[Any], Any]:
    """The tensors of these sizes, and the schedule that the answer makes of them."""
    hunt = HUNTS[name]
    tensors, schedule = hunt.start(sizes)
    answer = accepted(function, *hunt.arguments(tensors, schedule))
    _expect_cause(name, hunt, answer)
    if hunt.engine == CURRENT:
        _expect_parameters(hunt, tensors, schedule)
    return tensors, schedule


def _expect_parameters(hunt: Hunt, tensors: list[Any], schedule: Any) -> None:
    """The function takes its inputs and its output as before: a repair moves loops."""
    given = [*tensors[: hunt.inputs], tensors[-1]]
    for tensor, parameter in zip(given, schedule.mod["main"].params, strict=True):
        wanted, seen = (tuple(map(int, each.shape)) for each in (tensor, parameter))
        expect(
            seen == wanted,
            expected=f"{tensor.op.name} of shape {wanted}, as the caller passes it",
            seen=f"shape {seen}",
            look=f"schedule.transform_layout: {tensor.op.name} belongs to the caller, who stores "
            "it as before",
        )


def _expect_inside(hunt: Hunt, tensors: list[Any], schedule: Any) -> None:
    """Each access is to an element: a part that divides no loop has a bound, or none is needed."""
    names = [str(each.op.name) for each in (*tensors[: hunt.inputs], tensors[-1])]
    expect_inside(schedule, tensors, names)


def _form(schedule: Any) -> str:
    """The loops of a schedule without their extents, and where bounds are tested."""
    nest = symptoms.nest_of(schedule)
    guarded = [bool(each.guards) for _, each in paths(nest)]
    return f"{re.sub(r'[0-9]+', '', format_nest(nest))} {guarded}"


def _lanes(schedule: Any) -> int:
    """Lanes of the widest vector."""
    return max(
        math.prod(int(loop.extent) for loop in loops if loop.kind == "vectorized")
        for loops, _ in paths(symptoms.nest_of(schedule))
    )


def _expect_cause(name: str, hunt: Hunt, answer: object) -> None:
    expect(
        type(answer) is str and answer in tuple(LETTERS),
        expected=f"the letter of the cause returned, one of {', '.join(LETTERS)}",
        seen=f"{answer!r}",
        look=f"the return statement; tvm-practice hunt {name} lists the causes",
    )
    if answer != hunt.cause:
        chosen = hunt.causes[LETTERS.index(str(answer))]
        raise fail(
            f"the cause of this: {hunt.told.format(count='many')}",
            f"({answer}) {chosen.text}",
            f"it is another one: {chosen.why_not}",
        )


def _expect_kept(hunt: Hunt, schedule: Any) -> None:
    """The repair serves the purpose of the wrong schedule."""
    nest = symptoms.nest_of(schedule)
    missing = hunt.keeps(nest)
    expect(
        missing is None,
        expected=f"a repair that keeps {missing}",
        seen=show_nest(nest),
        look="the schedule's purpose; repair it, do not remove it",
    )


def _expect_repaired(hunt: Hunt, tensors: list[Any], schedule: Any, sizes: Sizes) -> None:
    """What showed the bug is gone."""
    nest = symptoms.nest_of(schedule)
    count, limit = hunt.symptom(schedule, tensors), hunt.limit(sizes)
    expect(
        count <= limit,
        expected=f"the symptom gone: a count of at most {limit}",
        seen=f"still: {hunt.told.format(count=count)}" + show_nest(nest),
        look=hunt.look,
    )
    step = symptoms.widest_lane_step(schedule, tensors) if hunt.lanes_adjacent else 1
    expect(
        step <= 1,
        expected="a repair whose lanes lie side by side in memory",
        seen=f"they are {step} floats apart" + show_nest(nest),
        look="which loop is vectorized: the innermost part of a row",
    )
    expect(
        hunt.written_once(tensors, schedule),
        expected=f"a repair that writes each element of {hunt.once} once",
        seen="some are written again" + show_nest(nest),
        look="the loop given to reverse_compute_at: neither the sum's loop nor one inside it",
    )


@_hunt(
    "parallel_sum",
    "a sum whose value changes from run to run",
    (
        "Read the loops: which one is shared among the threads, and what do two of its "
        "iterations write?",
        "Two threads that add to one element lose additions: both read the old value. Find a "
        "loop whose iterations write elements of their own.",
        "Parallelize i, the rows: schedule[C].parallel(i), with k inside it. The letter is that "
        "of lost additions.",
    ),
    """
        for i in parallel(16):
            for j.init in serial(16):
                C: C <- constant
            for k in serial(64):
                for j in serial(16):
                    C: C <- A, B, C
    """,
)
def check_parallel_sum(parallel_sum: Function) -> None:
    _check("parallel_sum", parallel_sum)


@_hunt(
    "lost_bound",
    "a write-back that reaches into the next part",
    (
        "84 rows in parts of 20, a part in tiles of 3: how many rows does a part's last tile "
        "have, and how many does the write-back copy?",
        "Each of the two splits leaves a bound where it does not divide; reverse_compute_at "
        "keeps one of them. Choose factors that need only one.",
        "Let the inner factor divide the outer one: 20 and 4, or 21 and 3. The rest can stay.",
    ),
    """
        for i_0 in parallel(4):
            for i_1_0 in serial(7):
                for i_1_1_init in serial(3):
                    for j_init in serial(32):
                        C_init: C_local <- constant
                for k in serial(24):
                    for i_1_1 in serial(3):
                        for j in serial(32):
                            C_update: C_local <- A, B, C_local
                for ax0 in serial(3):
                    for ax1 in serial(32):
                        C_local: C <- C_local
    """,
)
def check_lost_bound(lost_bound: Function) -> None:
    _check("lost_bound", lost_bound)


@_hunt(
    "column_walk",
    "an order of loops that wastes cache lines",
    (
        "Follow the inner loop: which address does each write of Y go to, and what about the "
        "reads of X?",
        "In one order Y is written down its columns, in the other X is read down its columns. "
        "In small tiles, the cache still holds the lines of both.",
        "Split i and j by 16 each and reorder to i_0, j_0, i_1, j_1: a line of 16 floats is "
        "used up within a tile.",
    ),
    """
        for i_0 in serial(40):
            for j_0 in serial(40):
                for i_1 in serial(16):
                    for j_1 in serial(16):
                        Y: Y <- X
    """,
)
def check_column_walk(column_walk: Function) -> None:
    _check("column_walk", column_walk)


@_hunt(
    "strided_lanes",
    "a vector whose lanes lie rows apart",
    (
        "Lanes next to each other should be floats next to each other. Which loop goes from a "
        "float to its neighbour?",
        "Y and X are stored row by row, so neighbours differ in j. Split and vectorize that loop.",
        "Leave i alone: split j by 8, which becomes the innermost loop, and vectorize the inner "
        "part.",
    ),
    """
        for i in serial(64):
            for j_0 in serial(6):
                for j_1 in vectorized(8):
                    Y: Y <- X
    """,
)
def check_strided_lanes(strided_lanes: Function) -> None:
    _check("strided_lanes", strided_lanes)


@_hunt(
    "guarded_lanes",
    "a bound that every vector tests",
    (
        "The symptom counts tests. When does split leave one, and which factors leave none?",
        "The length is always a multiple of 8, and never of 16. A factor that divides "
        "leaves no bound.",
        "split(i, [None, 8]), then vectorize the inner loop: 8 lanes, and no guard.",
    ),
    """
        for i_0 in serial(125):
            for i_1 in vectorized(8):
                Y: Y <- X
    """,
)
def check_guarded_lanes(guarded_lanes: Function) -> None:
    _check("guarded_lanes", guarded_lanes)


@_hunt(
    "false_sharing",
    "threads that write into each other's cache lines",
    (
        "Look at what is written, and how often: the sum adds to Y itself at every k, and its "
        "neighbours are other threads' rows.",
        "Add up in a buffer of the thread's own, and write Y once per row: two primitives of "
        "phase 2's table do that.",
        'cache_write(block, 0, "local"), parallel of i, then reverse_compute_at(write_back, i).',
    ),
    """
        for i in parallel(32):
            for k in serial(64):
                Y: Y_local <- X, Y_local
            Y_local: Y <- Y_local
    """,
)
def check_false_sharing(false_sharing: Function) -> None:
    _check("false_sharing", false_sharing)


@_hunt(
    "inner_parallel",
    "threads that are started once per row",
    (
        "Count how often the parallel loop is reached: what are the loops around it?",
        "A parallel loop should be the outermost one: then the threads start once, and each "
        "takes many rows.",
        "schedule.parallel(i) in place of j: i is the first of the block's two loops.",
    ),
    """
        for i in parallel(64):
            for j in serial(48):
                Y: Y <- X
    """,
)
def check_inner_parallel(inner_parallel: Function) -> None:
    _check("inner_parallel", inner_parallel)


@_hunt(
    "recomputed_stage",
    "a stage that is computed again and again",
    (
        "B has a row per i, and no columns j. In which of Y's loops is a row of B needed for "
        "the first time, and in which again?",
        "compute_at moves B into the loop it is given; that loop should run once for each row "
        "of B, not once for each element of Y.",
        "schedule.compute_at(B's block, i), where i is the first loop of Y.",
    ),
    """
        for i in serial(12):
            for ax0 in serial(10):
                B: B <- X
            for j in serial(16):
                for k in serial(10):
                    Y: Y <- B, W, Y
    """,
)
def check_recomputed_stage(recomputed_stage: Function) -> None:
    _check("recomputed_stage", recomputed_stage)


@_hunt(
    "written_every_step",
    "a result that is written before it is complete",
    (
        "The local buffer saves writes only if Y is written less often than the sum adds. Where "
        "does the copy stand?",
        "reverse_compute_at moves the copy into the loop it is given. The sum is complete where "
        "k has ended.",
        "schedule.reverse_compute_at(write_back, i), where i is the loop over rows.",
    ),
    """
        for i in serial(12):
            for k in serial(32):
                Y: Y_local <- X, Y_local
            Y_local: Y <- Y_local
    """,
)
def check_written_every_step(written_every_step: Function) -> None:
    _check("written_every_step", written_every_step)


@_hunt(
    "huge_unroll",
    "code that is too long",
    (
        "Each unrolled loop multiplies the copies of what is inside it. How many copies do "
        "three loops of 16 iterations make?",
        "A few iterations are enough to save the loop's counting: split a loop, and unroll the "
        "inner part.",
        "split k by 4 and unroll the inner loop: 4 copies, one after the other, in the order of k.",
    ),
    """
        for i in serial(16):
            for j in serial(16):
                for k_0 in serial(4):
                    for k_1 in unrolled(4):
                        C: C <- A, B, C
    """,
)
def check_huge_unroll(huge_unroll: Function) -> None:
    _check("huge_unroll", huge_unroll)
