"""Runs a kernel's assembly without its data: how many cycles all of its loops take.

Loops run as they are until their iterations repeat: integers grow by the same steps, jumps lead to
the same places, and the window of the pipeline has passed. The iterations that are left until some
jump leads elsewhere are then counted at once, with the cycles that the last ones took each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm_practice.viz.assembly import parsed
from tvm_practice.viz.ranking.instructions import Instruction, parse
from tvm_practice.viz.ranking.integers import CannotRun, Integers, holds
from tvm_practice.viz.ranking.pipeline import Cycles, Pipeline

_SETTLED = 256  # instructions until a loop's pace is taken for the rest
_MOST = 3_000_000  # instructions that are run


@dataclass(frozen=True)
class Followed:
    """A whole run of a kernel.

    Attributes:
        cycles: with its data in L1.
        multiply_adds: scalar ones.
        instructions: that ran.
    """

    cycles: float
    multiply_adds: int
    instructions: int


@dataclass
class _Arrival:
    """At a jump back."""

    registers: dict[str, int | None]
    places: dict[int, int | None]
    path: int  # where the jumps of the next iteration begin
    totals: tuple[float, int, int]


@dataclass
class _Loop:
    began: int
    arrivals: list[_Arrival] = field(default_factory=list)


def followed(assembly: str, cycles: Cycles) -> Followed:
    """Follow the function that multiplies most.

    Args:
        assembly: of x86, as LLVM writes it.
        cycles: measured.

    Raises:
        CannotRun: its path depends on data, or it is not of x86.
    """
    texts, labels = _function(assembly)
    if not any("%" in each for each in texts):
        raise CannotRun("only assembly of x86 can be followed")
    return _Run([parse(each) for each in texts], labels, cycles).all()


def _function(assembly: str) -> tuple[list[str], dict[str, int]]:
    """The instructions of the function that multiplies most, and its labels."""
    texts, labels = parsed(assembly)
    starts = sorted({at for name, at in labels.items() if not name.startswith((".L", "."))})
    spans = list(zip(starts, [*starts[1:], len(texts)], strict=True))
    multiplies = [sum(parse(each).multiplies for each in texts[a:b]) for a, b in spans]
    first, end = spans[multiplies.index(max(multiplies))]
    return texts[first:end], {name: at - first for name, at in labels.items() if first <= at < end}


class _Run:
    def __init__(self, code: Sequence[Instruction], labels: dict[str, int], cycles: Cycles):
        self._code = code
        self._labels = labels
        self._integers = Integers()
        self._pipeline = Pipeline(cycles)
        self._loops: dict[int, _Loop] = {}
        self._path: list[tuple[int, int, bool | None]] = []
        self._skipped = (0.0, 0, 0)
        self._multiply_adds = self._ran = 0

    def all(self) -> Followed:
        at = 0
        while at < len(self._code):
            if self._ran > _MOST:
                raise CannotRun("the loops of this kernel do not repeat")
            instruction = self._code[at]
            if instruction.name.startswith("ret"):
                break
            at = self._step(at, instruction)
        return Followed(*self._totals())

    def _totals(self) -> tuple[float, int, int]:
        cycles, multiply_adds, ran = self._skipped
        return (self._pipeline.now + cycles, self._multiply_adds + multiply_adds, self._ran + ran)

    def _step(self, at: int, instruction: Instruction) -> int:
        """Run one, and say which is the next."""
        self._ran += 1
        name = instruction.name
        place = self._integers.place(instruction.address) if instruction.address else None
        if name.startswith("call"):
            self._integers.call()
        elif not name.startswith("j"):
            self._pipeline.take(instruction, place)
            self._integers.run(instruction)
            if instruction.multiplies:
                self._multiply_adds += instruction.lanes
        else:
            to = self._labels.get(instruction.operands[-1])
            jumps = self._jumps(at, instruction)
            self._pipeline.take(instruction, None, jumped=jumps)
            if jumps and to is None:
                raise CannotRun(f"a jump to {instruction.operands[-1]} cannot be followed")
            if to is not None and to <= at:
                self._back(at, to, jumps)
            if jumps:
                assert to is not None
                return to
        return at + 1

    def _jumps(self, at: int, instruction: Instruction) -> bool:
        if instruction.name == "jmp":
            return True
        difference = self._integers.difference
        if difference is None:
            raise CannotRun(f"a jump depends on data: {instruction.name}")
        taken = holds(instruction.name[1:], difference)
        self._path.append((at, difference, taken))
        return taken

    def _back(self, at: int, to: int, taken: bool) -> None:
        """At a jump back: count iterations at once, if they repeat."""
        for other in [each for each in self._loops if to <= each < at]:
            del self._loops[other]
        if not taken:
            self._loops.pop(at, None)
            return
        loop = self._loops.setdefault(at, _Loop(self._ran))
        loop.arrivals.append(
            _Arrival(
                dict(self._integers.registers), dict(self._integers.places),
                len(self._path), self._totals(),
            )
        )  # fmt: skip
        if len(loop.arrivals) >= 3 and self._ran - loop.began >= _SETTLED:
            times = self._repeats(loop.arrivals[-3:])
            if times > 0:
                self._skip(at, loop, times)

    def _repeats(self, arrivals: Sequence[_Arrival]) -> int:
        """How many more iterations take the path of the last one."""
        first, second, third = (each.path for each in arrivals)
        before, last = self._path[first:second], self._path[second:third]
        if len(before) != len(last):
            return 0
        most: int | None = None
        for (at, old, was), (again, new, taken) in zip(before, last, strict=True):
            if (at, was) != (again, taken):
                return 0
            if new == old:
                continue
            if taken is None:
                return 0
            times = _same(self._code[at].name[1:], new, new - old, taken)
            if times is not None:
                most = times if most is None else min(most, times)
        if most is None:
            raise CannotRun("a loop without an end")
        return most

    def _skip(self, at: int, loop: _Loop, times: int) -> None:
        before, last = loop.arrivals[-2:]
        middle = loop.arrivals[len(loop.arrivals) // 2 - 1]
        count = len(loop.arrivals) - len(loop.arrivals) // 2
        pace = (last.totals[0] - middle.totals[0]) / count
        cycles, multiply_adds, ran = self._skipped
        self._skipped = (
            cycles + times * pace,
            multiply_adds + times * (last.totals[1] - before.totals[1]),
            ran + times * (last.totals[2] - before.totals[2]),
        )
        older = loop.arrivals[-3]
        integers = self._integers
        integers.registers.update(_after(older.registers, before.registers, last.registers, times))
        integers.places.update(_after(older.places, before.places, last.places, times))
        self._path.append((at, times, None))
        loop.arrivals.clear()
        loop.began = self._ran


def _after(
    older: dict[Any, int | None],
    before: dict[Any, int | None],
    last: dict[Any, int | None],
    times: int,
) -> dict[Any, int | None]:
    """Integers after further iterations; those that do not grow evenly are not known."""
    found: dict[Any, int | None] = {}
    for key, value in last.items():
        a, b = older.get(key), before.get(key)
        if a is None or b is None or value is None or value - b != b - a:
            found[key] = None
        else:
            found[key] = value + times * (value - b)
    return found


def _same(condition: str, difference: int, step: int, taken: bool) -> int | None:
    """How many further iterations a jump goes the same way; None: all."""
    if condition in ("e", "z", "ne", "nz"):
        if difference == 0:
            return 0
        left, rest = divmod(-difference, step)
        return left - 1 if rest == 0 and left > 0 else None
    times = 0 if step == 0 else max(0, abs(difference) // abs(step) - 1)
    if (difference > 0) == (step > 0) and difference != 0:
        return None
    while holds(condition, difference + (times + 1) * step) == taken:
        times += 1
    return times
