"""How many cycles a processor needs for the innermost loop, if its data are in the first cache.

Of x86 and of Arm; `followed` counts all loops, of x86 only. The loop takes as long as the unit that
has most to do, or as the longest chain of sums that wait for each other. The widths are those of
x86 and Arm cores of the last years; a schedule that is judged has no part in them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tvm_practice.viz.assembly import innermost_loop

_ISSUED, _LOADS, _STORES, _SHUFFLES = 4.0, 2.0, 1.0, 1.0  # per cycle
LATENCY = 4.0  # cycles of a multiply-add
_MULTIPLY = re.compile(r"v?(mul|fmadd|fmul|fmla|fnmadd)\w*")
_SHUFFLE = re.compile(r"v(perm|shuf|unpck|broadcast|insert|extract)\w*")
_ITERATIONS = 4  # until the chain alone counts, and of which it is counted
_LANES = {"z": 16, "y": 8, "x": 4}


@dataclass(frozen=True)
class LoopCost:
    """The innermost loop of a kernel.

    Attributes:
        multiply_adds: scalar ones of one iteration.
        cycles: of one iteration.
    """

    multiply_adds: int
    cycles: float


def loop_cost(
    assembly: str, *, vector_cycles: float, memory_cycles: float, scattered_cycles: float
) -> LoopCost:
    """Read the loop that multiplies most.

    Args:
        assembly: of x86, as LLVM writes it, or of aarch64.
        vector_cycles: of a multiply-add of the widest vectors, as measured.
        memory_cycles: of a multiply-add onto a place in memory that the one before has written.
        scattered_cycles: of an element that a vector instruction gathers or scatters.
    """
    loop = innermost_loop(assembly)
    products = [each for each in loop if _MULTIPLY.match(each)]
    lanes = [_lanes(each) for each in products]
    widest = max(lanes)
    half = vector_cycles / (2 if widest < _LANES["z"] and "zmm" in assembly else 1)
    units = {
        "issue": len(loop) / _ISSUED,
        "multiply": len(products) * max(half, 0.5),
        "load": sum("(" in each or "[" in each for each in loop) / _LOADS,
        "store": sum(_is_store(each) for each in loop) / _STORES,
        "scattered": sum(_apart(each) for each in loop) * scattered_cycles,
        "shuffle": sum(bool(_SHUFFLE.match(each)) and "(" not in each for each in loop) / _SHUFFLES,
        "chain": _chain(loop, memory_cycles),
    }
    return LoopCost(sum(lanes), max(units.values()))


def _lanes(instruction: str) -> int:
    if wide := re.search(r"v\d+\.(\d+)s", instruction):
        return int(wide[1])
    if re.match(r"\w+(ss|sd)\b", instruction) or re.search(r"\bs\d+\b", instruction):
        return 1
    registers = re.findall(r"%([xyz])mm", instruction)
    return max((_LANES[each] for each in registers), default=1)


def _operands(instruction: str) -> list[str]:
    return re.findall(r"[^,(]*\([^)]*\)[^,]*|[^,]+", instruction.partition(" ")[2])


def _apart(instruction: str) -> int:
    """The elements that an instruction gathers or scatters."""
    return _lanes(instruction) if re.search("gather|scatter", instruction) else 0


def _is_store(instruction: str) -> bool:
    if instruction.startswith("st"):
        return True
    operands = _operands(instruction)
    return (
        bool(operands)
        and "(" in operands[-1]
        and not instruction.startswith(("cmp", "test", "lea"))
    )


class _Waiting:
    """When each register and each place in memory is ready, if nothing but data is waited for."""

    def __init__(self, memory_cycles: float):
        self._forwarding = max(memory_cycles - LATENCY, 1.0)
        self._ready: dict[str, float] = {}
        self._changes: Counter[str] = Counter()

    def latest(self) -> float:
        return max(self._ready.values(), default=0.0)

    def run(self, instruction: str) -> None:
        operands = [each.strip() for each in _operands(instruction)]
        if not operands or instruction.startswith(("cmp", "test", "j", "b.", "cb")):
            return
        is_arm = "%" not in instruction
        target = operands[0 if is_arm else -1]
        is_store = _is_store(instruction)
        sources = [each for each in operands if each is not target]
        if is_store and is_arm:
            target, sources = operands[-1], operands[:-1]
        # A sum is read before it is written; so is what an integer instruction adds to.
        if _SUM.match(instruction) or (len(operands) < 3 and not _COPY.match(instruction)):
            sources.append(target)
        when = max((self._when(each) for each in sources), default=0.0)
        if re.match(r"vp?xor", instruction) and len({*operands}) == 1:
            when = 0.0
        if is_store:
            self._ready[self._place(target)] = when + self._forwarding
            return
        name = _name(target)
        self._changes[name] += 1
        self._ready[name] = when + _latency(instruction)

    def _when(self, operand: str) -> float:
        if "(" not in operand and "[" not in operand:
            return self._ready.get(_name(operand), 0.0)
        return self._ready.get(self._place(operand), 0.0)

    def _place(self, operand: str) -> str:
        """An address as text: other values of its registers make it another one."""
        names = re.findall(r"%\w+|x\d+", operand)
        return f"{operand} {[self._changes[_name(each)] for each in names]}"


_SUM = re.compile(r"v?fn?m(add|la|sub)")
_COPY = re.compile(r"v?(mov|broadcast|lea|perm|ld|fmul|mul)")


def _latency(instruction: str) -> float:
    if _MULTIPLY.match(instruction) or re.match(r"v?f?add[ps]", instruction):
        return LATENCY
    return 0.0 if _COPY.match(instruction) else 1.0


def _chain(loop: Sequence[str], memory_cycles: float) -> float:
    """Cycles by which data make each further iteration wait."""
    waiting = _Waiting(memory_cycles)
    ends = []
    for _ in range(2 * _ITERATIONS):
        for each in loop:
            waiting.run(each)
        ends.append(waiting.latest())
    return (ends[-1] - ends[_ITERATIONS - 1]) / _ITERATIONS


def _name(register: str) -> str:
    """One name for all widths of a register."""
    bare = re.sub(r"\{.*\}|\..*", "", register).strip()
    vector = re.match(r"%[xyz]mm(\d+)|[vqs](\d+)$", bare)
    if vector:
        return f"v{vector[1] or vector[2]}"
    return re.sub(r"^%[er]?([a-z]{2}|\d+)[dwb]?$", r"\1", bare)
