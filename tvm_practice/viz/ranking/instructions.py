"""Instructions of x86 as LLVM writes them: what each reads, writes and keeps busy.

`loop_cost` reads single loops of Arm too; this module knows the integers as well, so that
`followed` can tell how often a loop runs.
"""

import re
from dataclasses import dataclass

LANES = {"z": 16, "y": 8, "x": 4}
MULTIPLY = re.compile(r"v?(mul|fn?m(add|sub)\d+)[sp][sd]$")
SHUFFLE = re.compile(r"v(perm|shuf|unpck|broadcast|insert|extract)\w*")
_SUM = re.compile(r"v?fn?m(add|sub)|vp?ternlog")
_COPY = re.compile(r"(v?mov|k?mov|v?p?broadcast|lea)")
_COMPARE = re.compile(r"(cmp|test|bt|vu?comis)")
_OPERAND = re.compile(r"[^,(]*\([^)]*\)[^,]*|[^,]+")
_MEMORY = re.compile(r"([^(]*)\(([^,)]*)(?:,([^,)]*))?(?:,(\d))?\)")
_WIDTHS = {"b": 8, "w": 16, "l": 32, "q": 64}


@dataclass(frozen=True)
class Address:
    """displacement + base + index * scale; a place that has a name is one of its own."""

    displacement: int
    base: str
    index: str
    scale: int


@dataclass(frozen=True)
class Instruction:
    """One line.

    Attributes:
        name: the mnemonic.
        operands: as written, the target last; masks are left out.
        sources: names of the registers that it reads, those of an address apart.
        target: the register that it writes, or "".
        address: where it reads or writes memory, if it does.
        loads, stores: whether it reads or writes memory.
        lanes: elements of 4 bytes.
        place_bytes: of its place in memory: a broadcast reads one element.
        bits: of its integers.
    """

    name: str
    operands: tuple[str, ...]
    sources: tuple[str, ...]
    target: str
    address: Address | None
    loads: bool
    stores: bool
    lanes: int
    place_bytes: int
    bits: int

    @property
    def multiplies(self) -> bool:
        """Whether it multiplies floating point numbers."""
        return MULTIPLY.match(self.name) is not None

    @property
    def adds_vectors(self) -> bool:
        """Whether it adds floating point numbers, of which there may be one."""
        return re.match(r"v?(add|sub|max|min)[sp][sd]", self.name) is not None

    @property
    def is_apart(self) -> bool:
        """Whether it gathers or scatters."""
        return "gather" in self.name or "scatter" in self.name

    @property
    def shuffles(self) -> bool:
        return SHUFFLE.match(self.name) is not None and self.address is None

    @property
    def is_zero(self) -> bool:
        """Whether it writes 0 (a mask: 1) whatever its registers hold."""
        same = len(self.operands) > 1 and self.operands[0] == self.operands[1]
        return same and re.match(r"v?p?xor|kxnor|sub", self.name) is not None


def parse(text: str) -> Instruction:
    """Read an instruction."""
    name, _, rest = text.partition(" ")
    if name in ("rep", "lock"):
        name, _, rest = rest.partition(" ")
    masks = tuple(re.findall(r"\{(%k\d)\}", rest))
    operands = tuple(each.strip() for each in _OPERAND.findall(re.sub(r"\s*\{[^}]*\}", "", rest)))
    inside = [each for each in operands if "(" in each]
    jumps = name.startswith(("j", "call", "ret"))
    address = None if not inside or jumps or name.startswith("lea") else address_of(inside[0])
    writes = (
        bool(operands) and not _COMPARE.match(name) and not jumps and not name.startswith("push")
    )
    stores = writes and "(" in operands[-1] and address is not None
    registers = [register(each) for each in operands if each.startswith("%")]
    target = registers[-1] if writes and not stores and operands[-1].startswith("%") else ""
    sources = [register(each) for each in operands[:-1] if each.startswith("%")]
    # A sum is read before it is written; so is what a masked or a short integer one adds to.
    reads_target = (
        not writes or stores or _SUM.match(name) or (len(operands) < 3 and not _COPY.match(name))
    )
    if operands and operands[-1].startswith("%") and (reads_target or masks):
        sources.append(register(operands[-1]))
    in_place = len(operands) < 3 and not _COPY.match(name) and not name.startswith("v")
    lanes = _lanes(name, operands)
    return Instruction(
        name, operands, (*sources, *map(register, masks)), target, address,
        loads=address is not None and (not stores or in_place), stores=stores,
        lanes=lanes, place_bytes=4 if "broadcast" in name or "{1to" in rest else 4 * lanes,
        bits=_bits(name, operands),
    )  # fmt: skip


def address_of(text: str) -> Address:
    found = _MEMORY.search(text)
    assert found, text
    displacement, base, index, scale = found.groups()
    try:
        number = int(displacement or "0", 0)
    except ValueError:  # a constant's name
        return Address(-1, displacement, "", 1)
    return Address(number, register(base), register(index or ""), int(scale or 1))


def register(text: str) -> str:
    """One name for all widths of a register: v7 of %zmm7, ax of %eax, 8 of %r8d."""
    vector = re.match(r"%[xyz]mm(\d+)", text)
    if vector:
        return f"v{vector[1]}"
    if re.fullmatch(r"%[abcd]l", text):
        return text[1] + "x"
    return re.sub(r"^%[er]?([a-z]{2}|\d+|k\d)[dwbl]?$", r"\1", text.strip())


def _lanes(name: str, operands: tuple[str, ...]) -> int:
    if re.search(r"[sp]?s[sd]$", name) and name.endswith(("ss", "sd")) and "broadcast" not in name:
        return 1
    registers = re.findall(r"%([xyz])mm", ",".join(operands))
    # Half as many elements as the addresses of 8 bytes have bytes.
    halved = 2 if name in ("vgatherqps", "vscatterqps") and "z" in registers else 1
    return max((LANES[each] for each in registers), default=1) // halved


def _bits(name: str, operands: tuple[str, ...]) -> int:
    for each in reversed(operands):
        if re.fullmatch(r"%e[a-z]{2}|%r\d+d", each):
            return 32
        if re.fullmatch(r"%r[a-z]{2}|%r\d+", each):
            return 64
        if re.fullmatch(r"%[a-d]l|%r\d+b|%[a-z]{2}l", each):
            return 8
    return _WIDTHS.get(name[-1], 64)
