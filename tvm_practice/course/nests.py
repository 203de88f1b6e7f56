"""What checks promise of the loops that a schedule makes."""

import inspect
import itertools
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

from tvm_practice.course.expect import expect, fail, show, statements
from tvm_practice.viz.loop_nest import Loop, Node, Statement, loop_nest, paths, without_types

Indices = tuple[int, ...]
_NO_AXIS = "none of them"

# What TVM says when it refuses a primitive, what that means here, and what to do about it.
_REFUSALS = (
    (
        "does not have compact dataflow",
        "the reduction was taken apart by decompose_reduction before; its update block is no "
        "longer one that TVM can prove safe to vectorize or to run in parallel",
        "the order: decompose_reduction is the last primitive",
    ),
    (
        "is not a data parallel block iter",
        "a primitive was given the loop over k, a reduction: its iterations add to the same "
        "elements of C, so they cannot run at once",
        "which loop it is given; vectorize and parallel take loops over rows or columns",
    ),
)


def accepted(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call the learner's function; a primitive that TVM refuses becomes a reason and a line."""
    try:
        returned = function(*arguments, **options)
        for each in (arguments[0], returned):
            expect_no_pragma(each)
        return returned
    except Exception as error:
        for said, reason, look in _REFUSALS:
            if type(error).__name__ == "ScheduleError" and said in str(error):
                frames = traceback.extract_tb(error.__traceback__)
                line = [
                    each
                    for each in frames
                    if each.filename == inspect.unwrap(function).__code__.co_filename
                ]
                where = f"line {line[-1].lineno}: {line[-1].line}; " if line else ""
                raise fail(
                    "TVM accepts each primitive", f"it refuses: {reason}", where + look
                ) from error
        raise


def expect_no_pragma(schedule: Any) -> None:
    """Nothing in a schedule has an annotation or padding, which pictures of loops do not show."""
    trace = getattr(schedule, "trace", None)
    insts = trace.insts if trace else ()
    keys = _annotations(schedule) if trace else []
    expect(
        not keys,
        expected="loops that run as their primitives say, without annotations",
        seen=", ".join(keys),
        look="schedule.annotate: the exercise asks for none",
    )
    for kind, done, primitive in (
        ("StorageAlign", "padded", "storage_align"),
        ("UnsafeSetDType", "of another type", "unsafe_set_dtype"),
    ):
        changed = sum(each.kind.name == kind for each in insts)
        expect(
            not changed,
            expected="buffers as the primitives of the docstring make them",
            seen=f"{changed} of them {done}",
            look=f"schedule.{primitive}: the exercise asks for none",
        )


def _annotations(schedule: Any) -> list[str]:
    """The names of the annotations of a schedule's loops and blocks, storage_align's aside."""
    import tvm_ffi
    from tvm import tirx
    from tvm.s_tir import SBlock

    found: list[str] = []

    def look(each: Any) -> None:
        found.extend(str(name) for name in each.annotations)

    for _, function in schedule.mod.functions_items():
        if isinstance(function, tirx.PrimFunc):
            tvm_ffi.structural_walk(function.body, (tirx.For, look))
            tvm_ffi.structural_walk(function.body, (SBlock, look))
    return [each for each in found if each != "buffer_dim_align"]


def rearranged(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """`accepted`, and the buffers are stored as before: pictures do not show in which order."""
    returned = accepted(function, *arguments, **options)
    moved = _moved_buffers(arguments[0])
    expect(
        not moved,
        expected="loops rearranged, and buffers that are stored as the primitives of the "
        "docstring make them",
        seen=f"{moved} of them stored under other indices, so that neighbours lie apart",
        look="schedule.transform_layout: the exercise asks for none",
    )
    return returned


def _moved_buffers(schedule: Any) -> int:
    """How many buffers have other indices after all of a schedule's transform_layout."""
    from tvm.sym import Analyzer

    trace = schedule.trace
    layouts = [each for each in trace.insts if each.kind.name == "TransformLayout"] if trace else ()
    gone = 0
    indices: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
    for each in layouts:
        block, index_map = each.inputs
        number, is_written = (int(given) for given in each.attrs[:2])
        try:
            found = schedule.get(block)
        except ValueError:  # the block is gone; its buffer may be another's by now
            gone += 1
            continue
        buffer = str((found.writes if is_written else found.reads)[number].source.name)
        first, before = indices.get(buffer, (index_map.initial_indices,) * 2)
        indices[buffer] = first, index_map.map_indices(list(before))
    analyzer = Analyzer()
    return gone + sum(
        len(first) != len(last) or not all(map(analyzer.can_prove_equal, first, last))
        for first, last in indices.values()
    )


def expect_loops(condition: bool, loops: Sequence[Loop], expected: str, look: str) -> None:
    """What is seen are these loops."""
    expect(condition, expected=expected, seen=show(loops), look=look)


def expect_nest(
    loops: Sequence[Loop], wanted: str, look: str, *, order: str = "", kinds: str = ""
) -> None:
    """`loops` are those of `wanted`, outermost first.

    Args:
        wanted: `i_outer parallel(4) > j vectorized(8)`; a name only tells the person which it is.
        look: where to look if there are other loops.
        order: where to look if they are the same in another order; without it `look`.
        kinds: where to look if they are right but run in another way; without it `look`.
    """
    want = [_parsed(each) for each in wanted.split(" > ")]
    seen = [_Told(_place(loop.name), loop.kind, str(loop.extent)) for loop in loops]
    if [each.extent for each in seen] == [each.extent for each in want]:
        look = kinds or look
    elif _permuted(seen, want):
        look = order or look
    right = [(each.kind, each.extent) for each in seen] == [
        (each.kind, each.extent) for each in want
    ]
    expect_loops(right, loops, f"the loops {wanted}", look)


class _Told(NamedTuple):
    """A loop as a nest's text tells it; `place` is its axis, and outer or inner."""

    place: str
    kind: str
    extent: str


def _parsed(loop: str) -> _Told:
    """Of `j_inner vectorized(8)`."""
    name, _, run = loop.rpartition(" ")
    kind, _, extent = run.rstrip(")").partition("(")
    return _Told(_place(name), kind, extent)


def _place(name: str) -> str:
    """`i_0` of split in current TVM, `i.outer` in classic TVM and `i_outer` are one place."""
    return re.sub(r"[._]outer$", "_0", re.sub(r"[._]inner$", "_1", name))


def _permuted(seen: Sequence[_Told], want: Sequence[_Told]) -> bool:
    """The wanted loops in another order.

    Extents alone do not tell it: 41 rows are 7 tiles of 6, and with the tile's size and the number
    of tiles exchanged 6 of 7. Names tell it, unless these are the learner's own.
    """
    extents, wanted = ({each.place: each.extent for each in nest} for nest in (seen, want))
    if extents.keys() == wanted.keys():
        return extents == wanted
    return sorted(each.extent for each in seen) == sorted(each.extent for each in want)


def expect_axes(schedule: Any, block: Any, wanted: str, *, look: str, axes: str = "i j k") -> None:
    """The last loops around a block step along these axes: extents alone do not tell equal ones.

    Args:
        schedule: a tvm.s_tir.Schedule.
        block: a block that is alone in its innermost loop.
        wanted: `i*8 j*16 k i j` where a step of the outermost of five is 8 of i. A loop of one
            iteration may be of any axis, and one along an axis of one element of none.
        look: where to look if they are others.
        axes: the block's last iterators.
    """
    loops = [schedule.get(each) for each in schedule.get_loops(block)]
    seen = _steps(loops, axes.split())
    parts, names = wanted.split(), axes.split()
    iterators = loops[-1].body.block.iter_vars[-len(names) :]
    extents = {name: int(each.dom.extent) for name, each in zip(names, iterators, strict=True)}
    for loop, step, part in zip(loops[-len(parts) :], seen[-len(parts) :], parts, strict=True):
        expect(
            int(loop.extent) == 1
            or step == (part if "*" in part else f"{part}*1")
            or (step == _NO_AXIS and extents[part.partition("*")[0]] == 1),
            expected=f"loops that step along {wanted}, outermost first (x*8: 8 along x per "
            "iteration)",
            seen=f"{loop.loop_var} steps along {step}",
            look=look,
        )


def _steps(loops: Sequence[Any], axes: Sequence[str]) -> list[str]:
    """What one step of each loop adds to the iterators of the block inside: `i*8`."""
    realize = loops[-1].body
    values = _compiled(realize.iter_values)
    start = {str(each.loop_var): 0 for each in loops}
    before = eval(values, dict(start))
    found = []
    for loop in loops:
        after = eval(values, {**start, str(loop.loop_var): 1})
        changes = [b - a for a, b in zip(before, after, strict=True)][-len(axes) :]
        steps = [f"{name}*{step}" for name, step in zip(axes, changes, strict=True) if step]
        found.append(" and ".join(steps) or _NO_AXIS)
    return found


def visited(schedule: Any, block: str) -> Iterator[tuple[Indices, dict[str, Indices]]]:
    """The element that each iteration of a block writes, and one that it reads, by buffer.

    An iteration that the block's guard skips is not left out.
    """
    loops, realize = _innermost(schedule, block)
    variables = [str(each.var) for each in realize.block.iter_vars]
    values = _compiled(realize.iter_values)
    written = _compiled(each.min for each in realize.block.writes[0].region)
    read = {
        str(touched.source.name): _compiled(each.min for each in touched.region)
        for touched in realize.block.reads
    }
    names = [str(each.loop_var) for each in loops]
    for at in itertools.product(*(range(int(each.extent)) for each in loops)):
        within = dict(zip(variables, eval(values, dict(zip(names, at, strict=True))), strict=True))
        yield eval(written, within), {name: eval(each, within) for name, each in read.items()}


def _innermost(schedule: Any, block: str) -> tuple[list[Any], Any]:
    """The loops around a block, and its realize in the last of them."""
    loops = [schedule.get(each) for each in schedule.get_loops(schedule.get_sblock(block))]
    body = loops[-1].body  # several statements where another block was moved beside this one
    realize = next(
        each
        for each in getattr(body, "seq", [body])
        if hasattr(each, "block") and str(each.block.name_hint) == block
    )
    return loops, realize


def index_steps(schedule: Any, block: str, buffer: str) -> list[Indices]:
    """By how much a step of each loop around a block moves the indices of a buffer it touches.

    Outermost first. Extents alone do not tell loops of equal ones apart.
    """
    loops, realize = _innermost(schedule, block)
    variables = [str(each.var) for each in realize.block.iter_vars]
    values = _compiled(realize.iter_values)
    touched = [*realize.block.writes, *realize.block.reads]
    region = next(each.region for each in touched if str(each.source.name) == buffer)
    indices = _compiled(each.min for each in region)

    def at(start: dict[str, int]) -> Indices:
        found: Indices = eval(indices, dict(zip(variables, eval(values, dict(start)), strict=True)))
        return found

    start = {str(each.loop_var): 0 for each in loops}
    first = at(start)
    return [
        tuple(b - a for a, b in zip(first, at({**start, name: 1}), strict=True)) for name in start
    ]


def expect_step(schedule: Any, block: str, buffer: str, *, loop: int, axis: int, look: str) -> None:
    """One of the loops around a block steps along this axis of a buffer, and along no other.

    A loop of one iteration may be of any axis.

    Args:
        loop: its place around the block, 0 for the outermost, -1 for the innermost.
        axis: likewise, of the buffer.
    """
    around = [schedule.get(each) for each in schedule.get_loops(schedule.get_sblock(block))]
    if int(around[loop].extent) == 1:
        return
    steps = index_steps(schedule, block, buffer)[loop]
    wanted = [0] * len(steps)
    wanted[axis] = 1
    expect(
        list(steps) == wanted,
        expected=f"the loop {around[loop].loop_var} of {block} moves the indices of {buffer} "
        f"by {wanted} per iteration",
        seen=f"it moves them by {list(steps)}",
        look=look,
    )


def _compiled(expressions: Iterable[Any]) -> CodeType:
    """Integer expressions, which TVM prints in Python's words, as a tuple's code."""
    text = "".join(f"({without_types(each)})," for each in expressions)
    return compile(text, "<indices>", "eval")


def shared_loops(first: Sequence[Loop], second: Sequence[Loop]) -> int:
    """How many outer loops two statements share."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one is not other:
            break
        count += 1
    return count


def accumulation(nest: list[Node]) -> tuple[tuple[Loop, ...], Statement]:
    """The statement that adds to its own output, and the loops around it."""
    for loops, statement in paths(nest):
        if statement.writes in statement.reads:
            return loops, statement
    names = ", ".join(each.name for each in statements(nest)) or "nothing"
    raise fail(
        "a statement that adds the products up", f"statements {names}", "the te.sum of the matmul"
    )


def allocated(schedule: Any) -> dict[str, Any]:
    """The buffers that the function allocates, by name."""
    root = schedule.get(schedule.get_sblock("root"))
    return {str(buffer.name): buffer for buffer in root.alloc_buffers}


class _RegisterBlock(NamedTuple):
    """How a tile of C adds up.

    Attributes:
        nest: the whole loop nest.
        loops: around the statement that adds.
        update: that statement.
    """

    nest: list[Node]
    loops: tuple[Loop, ...]
    update: Statement

    @property
    def tile_loops(self) -> int:
        """How many loops are around a tile: those that are neither in it nor over k."""
        return sum(loop.kind in ("serial", "parallel") for loop in self.loops) - 1


def expect_register_block(
    schedule: Any, rows: int, columns: int, unroll_k: int
) -> tuple[Loop, ...]:
    """A tile of C adds up in a local buffer, unrolled and vectorized, and is written back once.

    Returns the loops around the statement that adds.
    """
    nest = loop_nest(schedule.mod["main"])
    found = _RegisterBlock(nest, *accumulation(nest))
    expect_local(schedule, found.update)
    _expect_in_registers(found, rows, columns, unroll_k)
    _expect_zeroed_before(found)
    _expect_written_once(found)
    return found.loops


def expect_local(schedule: Any, update: Statement) -> None:
    """The products add up in a buffer of scope "local"."""
    buffer = allocated(schedule).get(update.writes)
    scope = str(buffer.scope()) if buffer is not None else None
    expect(
        scope == "local",
        expected='the products add up in a buffer of scope "local"',
        seen=f"{update.name} adds up in {update.writes}"
        + (f' of scope "{scope}"' if scope else ", the function's output"),
        look='cache_write(block, 0, "local"), or set_scope for a buffer that is there already',
    )


def expect_block(schedule: Any, returned: Any, name: str, what: str) -> None:
    """`returned` is the handle of the block `name`, which `what` says in words."""
    try:
        seen = str(getattr(schedule.get(returned), "name_hint", type(returned).__name__))
    except Exception:  # of TVM or of Python, whatever was given
        seen = type(returned).__name__
    expect(
        seen == name,
        expected=f"{what}, {name}, returned",
        seen=seen,
        look="the return statement",
    )


def _expect_in_registers(found: _RegisterBlock, rows: int, columns: int, unroll_k: int) -> None:
    loops = found.loops
    unrolled = [loop for loop in loops if loop.kind == "unrolled"]
    outer = [loop for loop in loops if loop.kind in ("serial", "parallel")]
    expect_loops(
        loops[-1].kind == "vectorized" and loops[-1].extent == columns,
        loops,
        f"the innermost loop of {found.update.name} is vectorized({columns}), the columns",
        "split j by columns, reorder it to the inside, vectorize it",
    )
    expect_loops(
        sorted(str(loop.extent) for loop in unrolled) == sorted([str(rows), str(unroll_k)]),
        loops,
        f"two unrolled loops around it: {rows} rows and {unroll_k} steps of k",
        "split i by rows and k by unroll_k, and schedule.unroll of both inner loops",
    )
    expect_loops(
        [*outer, *unrolled, loops[-1]] == list(loops),
        loops,
        "i_outer > j_outer > k_outer > the two unrolled loops > the vectorized one",
        "schedule.reorder: the unrolled loops next to the vectorized one, or their values "
        "cannot stay in registers",
    )


def _expect_zeroed_before(found: _RegisterBlock) -> None:
    buffer = found.update.writes
    starts = [
        path
        for path, each in paths(found.nest)
        if each.writes == buffer and buffer not in each.reads
    ]
    expect(
        len(starts) == 1 and shared_loops(starts[0], found.loops) == found.tile_loops,
        expected=f"{buffer} is set to zero by a statement of its own, before k_outer",
        seen="no such statement: the update tests at every step whether k is 0"
        if not starts
        else f"zeroed in {show(starts[0])}, added to in {show(found.loops)}",
        look="schedule.decompose_reduction(block, k_outer), as the last primitive",
    )


def _expect_written_once(found: _RegisterBlock) -> None:
    buffer = found.update.writes
    ends = [
        path for path, each in paths(found.nest) if buffer in each.reads and each != found.update
    ]
    expect(
        len(ends) == 1,
        expected=f"one statement writes {buffer} to C",
        seen=f"{len(ends)} of them",
        look="the block that cache_write returns",
    )
    shared = shared_loops(ends[0], found.loops)
    too_often = "written again at every step of k"
    too_late = "the buffer holds more of C than one tile, which is too much for registers"
    expect(
        shared == found.tile_loops,
        expected="C is written once per tile: inside j_outer, after k_outer has ended",
        seen=f"written in {show(ends[0])}, added up in {show(found.loops)}: "
        + (too_often if shared > found.tile_loops else too_late),
        look="reverse_compute_at(the write-back block, j_outer)",
    )
