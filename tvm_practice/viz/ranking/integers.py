"""The integers of a kernel: what its registers hold and where its jumps lead.

Floating point numbers are not computed, and what is loaded from memory is not known, apart from
integers that the kernel itself put on its stack.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tvm_practice.viz.ranking.instructions import Address, Instruction, address_of, register

_ARGUMENTS = ("di", "si", "dx", "cx", "8", "9")
_LOST_IN_CALLS = (*_ARGUMENTS, "10", "11")
# Where arguments and memory that is allocated begin: far from each other, on a page.
_APART = 1 << 40
_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: b + a,
    "sub": lambda a, b: b - a,
    "and": lambda a, b: b & a,
    "or": lambda a, b: b | a,
    "xor": lambda a, b: b ^ a,
    "imul": lambda a, b: b * a,
    "shl": lambda a, b: b << a,
    "sal": lambda a, b: b << a,
    "sar": lambda a, b: b >> a,
}
_UNARY: dict[str, Callable[[int], int]] = {
    "inc": lambda a: a + 1,
    "dec": lambda a: a - 1,
    "neg": lambda a: -a,
    "not": lambda a: ~a,
}
# Of the difference that a comparison leaves; addresses are below 2**63, so signs do not matter.
_CONDITIONS: dict[str, Callable[[int], bool]] = {
    "e": lambda d: d == 0,
    "z": lambda d: d == 0,
    "ne": lambda d: d != 0,
    "nz": lambda d: d != 0,
    "l": lambda d: d < 0,
    "b": lambda d: d < 0,
    "s": lambda d: d < 0,
    "le": lambda d: d <= 0,
    "be": lambda d: d <= 0,
    "g": lambda d: d > 0,
    "a": lambda d: d > 0,
    "ge": lambda d: d >= 0,
    "ae": lambda d: d >= 0,
    "ns": lambda d: d >= 0,
}


class CannotRun(ValueError):
    """The kernel's path depends on data; one line."""


def holds(condition: str, difference: int) -> bool:
    """Whether a jump is taken. Raises CannotRun for a condition that is not known."""
    if condition not in _CONDITIONS:
        raise CannotRun(f"a jump j{condition} cannot be followed")
    return _CONDITIONS[condition](difference)


@dataclass
class Integers:
    """Registers, and places of memory that hold integers; None is an unknown one.

    Attributes:
        difference: what the last comparison, or the last sum, leaves for the next jump.
    """

    registers: dict[str, int | None] = field(default_factory=dict)
    places: dict[int, int | None] = field(default_factory=dict)
    difference: int | None = None
    _allocated: int = 10

    def __post_init__(self) -> None:
        for number, name in enumerate(_ARGUMENTS, start=1):
            self.registers[name] = number * _APART
        # The caller's stack is not aligned to wide vectors: those that are spilled cross lines.
        self.registers["sp"] = 9 * _APART + 4

    def place(self, address: Address) -> int | None:
        """The address in bytes."""
        total = address.displacement
        for name, scale in ((address.base, 1), (address.index, address.scale)):
            if name:
                value = self.registers.get(name)
                if value is None:
                    return None
                total += value * scale
        return total

    def run(self, instruction: Instruction) -> None:
        """Carry out an instruction that neither jumps nor calls."""
        name = instruction.name
        if instruction.target.startswith("v") or name[0] in "vk":
            if instruction.stores or not instruction.target.startswith("v"):
                self._write(instruction, None)
            return
        if name.startswith(("push", "pop")):
            self._stack(instruction)
        elif name.startswith(("cmp", "test")):
            self._compare(instruction)
        elif name.startswith("lea"):
            self._write(instruction, self._lea(instruction))
        else:
            self._arithmetic(instruction)

    def call(self) -> None:
        """What another function leaves: memory that is new, and the registers that are its own."""
        for name in _LOST_IN_CALLS:
            self.registers[name] = None
        self._allocated += 1
        self.registers["ax"] = self._allocated * _APART

    def _stack(self, instruction: Instruction) -> None:
        top = self.registers["sp"]
        assert top is not None
        if instruction.name.startswith("push"):
            self.registers["sp"] = top - 8
            self.places[top - 8] = self._value(instruction.operands[0], instruction)
        else:
            self.registers["sp"] = top + 8
            self.registers[register(instruction.operands[0])] = self.places.get(top)

    def _compare(self, instruction: Instruction) -> None:
        first, second = (self._value(each, instruction) for each in instruction.operands)
        if first is None or second is None:
            self.difference = None
        elif instruction.name.startswith("test"):
            self.difference = _wrapped(first & second, instruction.bits)
        else:
            bits = instruction.bits
            self.difference = _wrapped(second, bits) - _wrapped(first, bits)

    def _arithmetic(self, instruction: Instruction) -> None:
        name, operands = instruction.name, instruction.operands
        stem = name if name in (*_BINARY, *_UNARY, "shr") else name[:-1]
        if name.startswith("mov"):
            self._write(instruction, self._value(operands[0], instruction))
            return
        values = [self._value(each, instruction) for each in operands]
        known = [each for each in values if each is not None]
        result = None
        if instruction.is_zero:
            result = 0
        elif len(known) == len(values):
            result = _result(stem, known, instruction.bits)
        self._write(instruction, result)
        self.difference = result

    def _lea(self, instruction: Instruction) -> int | None:
        return self.place(address_of(instruction.operands[0]))

    def _value(self, operand: str, instruction: Instruction) -> int | None:
        if operand.startswith("$"):
            try:
                return int(operand[1:], 0)
            except ValueError:
                return None
        if "(" in operand:
            place = self.place(instruction.address) if instruction.address else None
            return None if place is None else self.places.get(place)
        return self.registers.get(register(operand))

    def _write(self, instruction: Instruction, value: int | None) -> None:
        value = None if value is None else _wrapped(value, instruction.bits)
        if instruction.stores and instruction.address:
            place = self.place(instruction.address)
            if place is not None and (value is not None or place in self.places):
                self.places[place] = value
        elif instruction.target:
            self.registers[instruction.target] = value


def _result(stem: str, values: Sequence[int], bits: int) -> int | None:
    """Of one or two operands; a shift of one is by 1."""
    *first, second = values
    if stem in _UNARY:
        return _wrapped(_UNARY[stem](second), bits)
    if stem == "shr":
        return _wrapped(second, bits) % (1 << bits) >> (first[0] if first else 1)
    if stem in _BINARY:
        return _wrapped(_BINARY[stem](first[0] if first else 1, second), bits)
    return None


def _wrapped(value: int, bits: int) -> int:
    """As a signed number of so many bits."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half
