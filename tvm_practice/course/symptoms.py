"""What is wrong with a schedule, counted in its IR: no run, no clock, the same on every machine.

Each function takes the schedule of a bug hunt, of either engine, with the tensors that it is of.
"""

import itertools
import math
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tvm_practice import engines
from tvm_practice.viz.access import AccessProgram, access_program
from tvm_practice.viz.cache import USUAL, simulate
from tvm_practice.viz.loop_nest import Loop, Node, classic_statement, loop_nest, paths

_LINE_BYTES = 64
_CACHE = USUAL[0].sets * USUAL[0].ways * _LINE_BYTES

Touches = dict[int, list[tuple[str, int, bool]]]


def nest_of(schedule: Any) -> list[Node]:
    """The loops of a schedule of the active engine."""
    if engines.active() == engines.CLASSIC:
        return loop_nest(classic_statement(schedule))
    return loop_nest(schedule.mod["main"])


def program_of(schedule: Any, tensors: Sequence[Any]) -> AccessProgram:
    """The accesses of a schedule of the active engine."""
    if engines.active() == engines.CLASSIC:
        return access_program(schedule, list(tensors))
    return access_program(schedule.mod)


def doubly_written(schedule: Any, tensors: Sequence[Any]) -> int:
    """Elements in memory that two iterations of the parallel loop write."""
    writers: dict[tuple[str, int], set[int]] = defaultdict(set)
    for iteration, name, element in _shared_writes(schedule, tensors):
        writers[name, element].add(iteration)
    return sum(len(each) > 1 for each in writers.values())


def writes_to_shared_lines(schedule: Any, tensors: Sequence[Any]) -> int:
    """Writes to cache lines that two iterations of the parallel loop write."""
    writers: dict[tuple[str, int], set[int]] = defaultdict(set)
    writes: Counter[tuple[str, int]] = Counter()
    for iteration, name, element in _shared_writes(schedule, tensors):
        line = (name, element * 4 // _LINE_BYTES)
        writers[line].add(iteration)
        writes[line] += 1
    return sum(count for line, count in writes.items() if len(writers[line]) > 1)


def touched_outside(schedule: Any, tensors: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Those of the buffers `names` with an access that is to none of their elements."""
    buffers = program_of(schedule, tensors).buffers
    elements = {each.name: math.prod(each.shape) for each in buffers if each.name in names}
    found: set[str] = set()

    def touch(name: str, element: int, write: bool) -> None:
        if not 0 <= element < elements.get(name, element + 1):
            found.add(name)

    _accessed(schedule, tensors, None, touch, lambda iteration: None)
    return sorted(found)


def widest_lane_step(schedule: Any, tensors: Sequence[Any]) -> int:
    """Elements between adjacent lanes of the vectorized loop, at most."""
    runs: list[list[list[tuple[str, int, bool]]]] = []  # of the loop; of each its lanes' accesses

    def enter(lane: int) -> None:
        if lane == 0:
            runs.append([])
        runs[-1].append([])

    def touch(name: str, element: int, write: bool) -> None:
        runs[-1][-1].append((name, element, write))

    _accessed(schedule, tensors, "vectorized", touch, enter)
    steps = [
        abs(element - before)
        for lanes in runs
        for one, other in itertools.pairwise(lanes)
        for (_, before, _), (_, element, _) in zip(one, other, strict=False)
    ]
    return max(steps, default=0)


def guarded_iterations(schedule: Any, tensors: Sequence[Any]) -> int:
    """How often a bound is tested that a split could not prove away."""
    return sum(_runs(loops) for loops, each in paths(nest_of(schedule)) if each.guards)


def parallel_starts(schedule: Any, tensors: Sequence[Any]) -> int:
    """How often the threads are started and awaited."""
    found = 0
    for loops, _ in paths(nest_of(schedule)):
        for at, loop in enumerate(loops):
            if loop.kind == "parallel":
                found = max(found, _runs(loops[:at]))
    return found


def unrolled_copies(schedule: Any, tensors: Sequence[Any]) -> int:
    """Copies of a statement in the compiled code, at most.

    Where the compiler is told to unroll (a "pragma"), all loops are counted.
    """
    told = "unroll" in " ".join(re.findall(r"pragma_\w+", str(schedule.mod)))
    return max(
        _runs([loop for loop in loops if told or loop.kind == "unrolled"])
        for loops, _ in paths(nest_of(schedule))
    )


def writes_per_element(name: str) -> Callable[[Any, Sequence[Any]], int]:
    """Counts the writes of the stage `name` for each of its elements, rounded up."""

    def writes(schedule: Any, tensors: Sequence[Any]) -> int:
        touched = _by_iteration(schedule, tensors, None)[0]
        [shape] = [each.shape for each in tensors if str(each.op.name) == name]
        elements = math.prod(int(extent) for extent in shape)
        return -(-sum(write and buffer == name for buffer, _, write in touched) // elements)

    return writes


def computed_per_element(name: str) -> Callable[[Any, Sequence[Any]], int]:
    """Counts how often the block `name` computes each element of its stage, rounded up.

    Whatever buffer it writes: `cache_write` and `set_scope` give it another one.
    """

    def computed(schedule: Any, tensors: Sequence[Any]) -> int:
        [shape] = [each.shape for each in tensors if str(each.op.name) == name]
        elements = math.prod(int(extent) for extent in shape)
        runs = 0
        for loops, each in paths(nest_of(schedule)):
            if each.name == name and not each.guards:
                runs += _runs(loops)
            elif each.name == name:  # some of the iterations are skipped
                touched = _by_iteration(schedule, tensors, None, registers=True)[0]
                runs += sum(write and buffer == each.writes for buffer, _, write in touched)
        return -(-runs // elements)

    return computed


def misses_per_thousand(schedule: Any, tensors: Sequence[Any]) -> int:
    """Misses of an L1 cache of 32 KiB in a thousand accesses, by the model of viz.cache."""
    program = program_of(schedule, tensors)
    # A buffer that is larger than the cache is in no register, whatever its scope.
    buffers = tuple(
        replace(each, scope="global") if math.prod(each.shape) * each.item_bytes > _CACHE else each
        for each in program.buffers
    )
    counts = simulate(replace(program, buffers=buffers), USUAL[:1])
    return round(1000 * counts.total_misses(USUAL[0].name) / sum(counts.accesses.values()))


def _runs(loops: Sequence[Loop]) -> int:
    return math.prod(int(loop.extent) for loop in loops)


def _shared_writes(schedule: Any, tensors: Sequence[Any]) -> Iterator[tuple[int, str, int]]:
    """Iterations of the parallel loop, and the buffers and elements in memory that they write.

    Buffers that lie in the parallel loop as a whole are left out: TVM allocates them there, for
    each iteration anew.
    """
    around: dict[str, set[int | None]] = defaultdict(set)  # by buffer, the parallel loops
    for loops, each in paths(nest_of(schedule)):
        parallel = next((id(loop) for loop in loops if loop.kind == "parallel"), None)
        for name in (each.writes, *each.reads):
            around[name].add(parallel)
    given = {str(each.op.name) for each in tensors}
    own = {
        name
        for name, found in around.items()
        if name not in given and None not in found and len(found) == 1
    }
    for iteration, touches in _by_iteration(schedule, tensors, "parallel").items():
        for name, element, write in touches:
            if write and name not in own:
                yield iteration, name, element


def _by_iteration(
    schedule: Any, tensors: Sequence[Any], kind: str | None, registers: bool = False
) -> Touches:
    """Touches of memory by the iteration of the loops of `kind` in which they happen.

    Those outside such a loop are left out; without a kind, all of them are in iteration 0. With
    `registers`, those of local buffers count, too.
    """
    found: Touches = defaultdict(list)
    now: list[int] = [0]

    def touch(name: str, element: int, write: bool) -> None:
        found[now[-1]].append((name, element, write))

    _accessed(schedule, tensors, kind, touch, now.append, registers=registers)
    return found


def _accessed(
    schedule: Any,
    tensors: Sequence[Any],
    kind: str | None,
    touch: Callable[[str, int, bool], None],
    enter: Callable[[int], None],
    *,
    registers: bool = False,
) -> None:
    """Run a schedule's accesses.

    Args:
        schedule: of the active engine.
        tensors: that it is of.
        kind: of the loops whose accesses count; None for all accesses.
        touch: called with buffer, element and whether it is written.
        enter: called with the number of each iteration of such a loop, before its accesses.
        registers: whether local buffers count, too.
    """
    names = {loop.name for loop in _loops(nest_of(schedule)) if loop.kind == kind}
    program = program_of(schedule, tensors)
    within = kind is None

    def touched(number: int, element: int, write: int) -> None:
        buffer = program.buffers[number]
        if within and (registers or not buffer.in_registers):
            touch(buffer.name, element, bool(write))

    def entered(iteration: int) -> None:
        nonlocal within
        within = True
        enter(iteration)

    def left() -> None:
        nonlocal within
        within = False

    source = textwrap.indent(_marked(program.source, names), "    ")
    code = f"def run(touch, enter, leave):\n{source}"
    defined: dict[str, Any] = {}
    exec(compile(code, "<accesses>", "exec"), defined)
    defined["run"](touched, entered, left)


def _loops(nest: Sequence[Node]) -> Iterator[Loop]:
    for node in nest:
        if isinstance(node, Loop):
            yield node
            yield from _loops(node.children)


def _marked(source: str, names: set[str]) -> str:
    """The program with `enter(i)` in the loops of these names and `leave()` behind them."""
    variables = {"i_" + "".join(each if each.isalnum() else "_" for each in name) for name in names}
    lines: list[str] = []
    within: str | None = None  # the indentation of the marked loop
    for line in source.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        if within is not None and len(indent) <= len(within):
            lines.append(f"{within}leave()")
            within = None
        lines.append(line)
        loop = re.match(r" *for (\w+?)(?:__\d+)? in ", line)
        if loop and loop[1] in variables:
            within = indent
            lines.append(f"{indent}    enter({line.split()[1]})")
    return "\n".join(lines) + "\n"
