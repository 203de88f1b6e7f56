"""When a processor that runs instructions out of order would finish each of them, its data in L1.

An instruction starts when the front end has delivered it, its sources are ready and its unit is
free, and it leaves in order. The widths are those of x86 cores of the last years; what a machine
differs in most is measured: multiply-adds, places in memory that were just written, gathers.
"""

from dataclasses import dataclass

from tvm_practice.viz.ranking.instructions import Instruction

WIDTH = 4.0  # instructions per cycle
_WINDOW = 224  # that are under way at once
LATENCY = 4.0  # cycles of a multiply-add
_LOAD = 5.0  # from L1
_LINE = 64
_SLOT = 0.125  # of the unit that reads and writes widest vectors
_TAKEN = 1.0  # cycle between two jumps that are taken


@dataclass(frozen=True)
class Cycles:
    """What is measured, in cycles.

    Attributes:
        vector: a multiply-add of the widest vectors, none of which waits.
        memory: a multiply-add onto a place that the one before has just written.
        scattered: an element that is gathered or scattered.
        read: a widest vector from L1.
        written: the same to L1.
        lanes: of the widest vectors.
    """

    vector: float
    memory: float
    scattered: float
    read: float
    written: float
    lanes: int


class _Unit:
    """Does one thing in `cycles`, in the first slot that is free."""

    def __init__(self, cycles: float):
        self._cycles = cycles
        self._next: dict[int, int] = {}

    def start(self, ready: float, count: int = 1) -> float:
        """When the last of `count` things that are ready starts."""
        slot = int(ready / self._cycles)
        for _ in range(count):
            slot = self._free(slot)
            self._next[slot] = slot + 1
        return max(ready, slot * self._cycles)

    def _free(self, slot: int) -> int:
        found = slot
        while found in self._next:
            found = self._next[found]
        while slot != found:  # the next search is short
            self._next[slot], slot = found, self._next[slot]
        return found


class Pipeline:
    """Takes instructions in the order in which they run.

    Attributes:
        now: cycles until all of them were done.
    """

    def __init__(self, cycles: Cycles):
        self.now = 0.0
        self._lanes = cycles.lanes
        self._slots = {"load": round(cycles.read / _SLOT), "store": round(cycles.written / _SLOT)}
        self._units = {
            "multiply wide": _Unit(max(0.5, cycles.vector)),
            "multiply": _Unit(0.5),
            # Widest vectors are read and written by turns.
            "move wide": _Unit(_SLOT),
            "load": _Unit(0.5),
            "store": _Unit(1.0),
            "shuffle": _Unit(1.0),
            "apart": _Unit(cycles.scattered),
        }
        self._forwarding = max(cycles.memory - LATENCY, 1.0)
        self._delivered = self._jumped = 0.0
        self._leaving = [0.0] * _WINDOW
        self._count = 0
        self._registers: dict[str, float] = {}
        self._places: dict[int, float] = {}

    def take(self, instruction: Instruction, place: int | None, *, jumped: bool = False) -> None:
        """One more.

        Args:
            place: its address, if that is known.
            jumped: whether it is a jump that is taken.
        """
        at = self._count % _WINDOW
        start = self._delivered = max(self._delivered + 1 / WIDTH, self._leaving[at])
        if not instruction.is_zero:
            start = max([start, *(self._registers.get(each, 0.0) for each in instruction.sources)])
        done = self._done(instruction, place, start)
        if instruction.target:
            self._registers[instruction.target] = done
        if jumped:
            self._delivered = self._jumped = max(self._delivered, self._jumped + _TAKEN)
        self.now = max(self.now, done)
        self._leaving[at] = self.now  # no sooner than those before it
        self._count += 1

    def _done(self, instruction: Instruction, place: int | None, start: float) -> float:
        units = self._units
        if instruction.is_apart:
            return units["apart"].start(start, instruction.lanes) + _LOAD
        done = self._loaded(instruction, place, start) if instruction.loads else start
        if instruction.multiplies:
            wide = instruction.lanes == self._lanes
            done = units["multiply wide" if wide else "multiply"].start(done) + LATENCY
        elif instruction.adds_vectors:
            done = units["multiply"].start(done) + LATENCY
        elif instruction.shuffles:
            done = units["shuffle"].start(done) + 1
        elif not (instruction.loads or instruction.is_zero or "mov" in instruction.name):
            done += 1
        if instruction.stores:
            done = self._moved(instruction, place, done, "store")
            if place is not None:
                self._places[place] = done + self._forwarding
        return done

    def _loaded(self, instruction: Instruction, place: int | None, start: float) -> float:
        """When data are there: a load waits for its address and for what was written, no more."""
        address = instruction.address
        assert address is not None
        known = max(
            self._delivered,
            self._registers.get(address.base, 0.0),
            self._registers.get(address.index, 0.0),
        )
        loaded = self._moved(instruction, place, known, "load") + _LOAD
        written = self._places.get(place, 0.0) if place is not None else 0.0
        return max(start, loaded, written)

    def _moved(self, instruction: Instruction, place: int | None, ready: float, unit: str) -> float:
        """A place across two lines is moved twice."""
        size = instruction.place_bytes
        across = place is not None and place % _LINE + size > _LINE
        times = 2 if across else 1
        if instruction.lanes == self._lanes:
            return self._units["move wide"].start(ready, times * self._slots[unit])
        return self._units[unit].start(ready, times)
