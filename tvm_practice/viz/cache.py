"""How often a function's accesses miss the caches: its access program run through a model of them.

The program of `viz.access` and the model below become one TVM function, which TVM compiles: the
simulator runs at the speed of compiled loops, a few hundred million accesses a second and more.

The model is a hierarchy of set-associative caches, each replacing the line that was used longest
ago (LRU); what misses one level goes to the next. It has no prefetcher, no other programs, and one
core: parallel loops run one iteration after the other, which is what one core sees of its share.
Registers ("local" buffers) are not memory and do not count.

Hardware counters, where `perf` and the processor have them, are read by `hardware_misses`.
"""

import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.viz.access import AccessProgram, CannotFollow

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class CacheLevel:
    """One data cache. `sets` x `ways` lines of `line_bytes`."""

    name: str
    sets: int
    ways: int
    line_bytes: int = 64

    @property
    def kilobytes(self) -> float:
        return self.sets * self.ways * self.line_bytes / 1024

    def __str__(self) -> str:
        return f"{self.name}: {self.kilobytes:g} KiB, {self.ways} ways"


# What is taken where the system does not say: of most x86 and Arm cores of the last ten years.
USUAL = (CacheLevel("L1", sets=64, ways=8), CacheLevel("L2", sets=1024, ways=8))
# No system tells it. The page addresses that a core has at hand are a cache too, of 4 KiB pages.
USUAL_TLB = CacheLevel("TLB", sets=16, ways=4, line_bytes=4096)


@dataclass(frozen=True)
class CacheCounts:
    """What a run did to the caches.

    Attributes:
        accesses: by buffer.
        misses: by level, then by buffer.
    """

    accesses: Mapping[str, int]
    misses: Mapping[str, Mapping[str, int]]

    def total_misses(self, level: str) -> int:
        return sum(self.misses[level].values())

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)


_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def machine_caches(folder: Path = _CACHES) -> tuple[tuple[CacheLevel, ...], bool]:
    """The L1 and L2 data caches of this machine's first core, and whether the system told them.

    Args:
        folder: Linux's description of the caches. Elsewhere the sizes are `USUAL` ones.
    """
    found = _described(folder)
    if not {1, 2} <= set(found):
        return USUAL, False
    return (found[1], found[2]), True


def last_cache(folder: Path = _CACHES) -> CacheLevel | None:
    """The third cache, which cores share; None where there is none or the system is silent."""
    return _described(folder).get(3)


def _described(folder: Path) -> dict[int, CacheLevel]:
    """The data caches that a system tells of, by level."""
    found: dict[int, CacheLevel] = {}
    for index in sorted(folder.glob("index*")):
        try:
            facts = {
                name: (index / name).read_text().strip()
                for name in (
                    "level", "type", "ways_of_associativity", "number_of_sets",
                    "coherency_line_size",
                )
            }  # fmt: skip
            level = int(facts["level"])
            if facts["type"] == "Instruction":
                continue
            found[level] = CacheLevel(
                f"L{level}",
                sets=int(facts["number_of_sets"]),
                ways=int(facts["ways_of_associativity"]),
                line_bytes=int(facts["coherency_line_size"]),
            )
        except (OSError, ValueError):
            continue
    return {level: each for level, each in found.items() if each.sets * each.ways}


def simulate(program: AccessProgram, levels: Sequence[CacheLevel]) -> CacheCounts:
    """Run a program through caches that are empty at first. Needs the current engine.

    Args:
        levels: from the core outwards; what misses one goes to the next.

    Raises:
        CannotFollow: the program's buffers take 2 GiB or more.
    """
    import numpy as np

    by_touch = simulate_touches(program, levels)
    table = np.zeros((len(levels) + 1, len(program.buffers)), "int64")
    for site, number in enumerate(touched_buffers(program)):
        table[:, number] += by_touch[:, site]
    memory = [(i, each.name) for i, each in enumerate(program.buffers) if not each.in_registers]
    return CacheCounts(
        {name: int(table[0, i]) for i, name in memory},
        {
            level.name: {name: int(table[row, i]) for i, name in memory}
            for row, level in enumerate(levels, start=1)
        },
    )


def simulate_touches(program: AccessProgram, levels: Sequence[CacheLevel]) -> "np.ndarray":
    """The same by `touch` of the program's source, in its order.

    Returns:
        A row of accesses, then one of misses for each level. Registers have none.
    """
    import numpy as np
    import tvm

    shape = (len(levels) + 1, max(1, len(touched_buffers(program))))
    run = compiled_program(
        program,
        [f'tags{row}: T.Buffer(({level.sets * level.ways + 1},), "int32")'
         for row, level in enumerate(levels, start=1)]
        + [f'counts: T.Buffer({shape}, "int64")'],
        'position = T.alloc_buffer((1,), "int32", scope="local")',
        lambda site: _count(0, site) + "\n" + _access(levels, 1, site),
    )  # fmt: skip
    # Tags begin as lines that no access has. One more: the search looks one past the last way.
    tags = [
        tvm.runtime.tensor(np.full(level.sets * level.ways + 1, -1, "int32")) for level in levels
    ]
    counts = tvm.runtime.tensor(np.zeros(shape, "int64"))
    run(*tags, counts)
    table: np.ndarray = counts.numpy()
    return table


def touched_buffers(program: AccessProgram) -> list[int]:
    """The number of the buffer of each `touch` of the program's source."""
    found = map(_TOUCH.fullmatch, program.source.splitlines())
    return [int(each["buffer"]) for each in found if each]


def compiled_program(
    program: AccessProgram, parameters: Sequence[str], begin: str, touched: Callable[[int], str]
) -> Any:
    """Compile a program with something done at each touch of memory.

    Args:
        parameters: of the function, in TVMScript.
        begin: its first lines.
        touched: what is done at a `touch`, by its number; it reads `address0` for number 0.

    Raises:
        CannotFollow: the program's buffers take 2 GiB or more.
    """
    import tvm

    from tvm_practice import engines

    last = program.buffers[-1] if program.buffers else None
    if last is not None and last.address + prod(last.shape) * last.item_bytes >= 2**31:
        raise CannotFollow(f"{program.name} has over 2 GiB of buffers, too much to simulate")
    site = 0
    lines = begin.splitlines()
    for line in (program.source or "pass").splitlines():
        found = _TOUCH.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        buffer = program.buffers[int(found["buffer"])]
        written = "T.evaluate(0)"
        if not buffer.in_registers:
            address = f"{buffer.address} + ({found['element']}) * {buffer.item_bytes}"
            written = f"address{site} = {address}\n{touched(site)}"
        lines.append(textwrap.indent(written, found["indent"]))
        site += 1
    # Python's own would compare expressions.
    body = re.sub(r"(?<![\w.])(min|max)\(", r"T.\1(", textwrap.indent("\n".join(lines), "    "))
    text = f"@T.prim_func(s_tir=True)\ndef simulate({', '.join(parameters)}):\n{body}\n"
    function = tvm.script.from_source(text).with_attr("global_symbol", "main")
    return tvm.compile(tvm.IRModule({"main": function}), target=engines.host_target())["main"]


_TOUCH = re.compile(r"(?P<indent> *)touch\((?P<buffer>\d+), (?P<element>.*), [01]\)")


def _count(row: int, site: int) -> str:
    return f"counts[{row}, {site}] = counts[{row}, {site}] + T.int64(1)"


def _access(levels: Sequence[CacheLevel], row: int, site: int) -> str:
    """An access of level `row` by the touch at `site` of the program.

    The tags of a set lie in the order of use, the last used first; most accesses hit that one.
    """
    level = levels[row - 1]
    beyond = _access(levels, row + 1, site) if row < len(levels) else ""
    line, first = f"line{row}_{site}", f"first{row}_{site}"
    # The next level's search uses the same position; it is set again after it.
    return f"""{line} = address{site} // {level.line_bytes}
{first} = {line} % {level.sets} * {level.ways}
if tags{row}[{first}] != {line}:
    position[0] = 1
    while position[0] < {level.ways} and tags{row}[{first} + position[0]] != {line}:
        position[0] = position[0] + 1
    if position[0] == {level.ways}:
        {_count(row, site)}
{textwrap.indent(beyond, "        ")}
        position[0] = {level.ways - 1}
    while position[0] > 0:
        tags{row}[{first} + position[0]] = tags{row}[{first} + position[0] - 1]
        position[0] = position[0] - 1
    tags{row}[{first}] = {line}"""


def hardware_misses(command: Sequence[str], *, timeout: float = 300) -> dict[str, int] | str:
    """What the processor's own counters say of a command.

    Args:
        command: program and arguments; it is run once.
        timeout: seconds.

    Returns:
        L1 data cache "loads" and "misses", or why there are none, in a line. They count the whole
        process: start it with work enough that the rest does not matter, or take the difference
        of two runs.
    """
    perf = shutil.which("perf")
    if perf is None:
        return "no hardware counters: `perf` is not installed"
    counted = ["L1-dcache-loads", "L1-dcache-load-misses"]
    done = subprocess.run(
        [perf, "stat", "-x", ",", "-e", ",".join(counted), "--", *command],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if done.returncode != 0:
        return f"no hardware counters: perf ended with {done.returncode}"
    return read_perf(done.stderr)


def read_perf(text: str) -> dict[str, int] | str:
    """Read what `perf stat -x ,` printed; a line saying why not where the counters are missing."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) < 3 or not fields[2].startswith("L1-dcache"):
            continue
        if not fields[0].isdigit():
            return f"no hardware counters: {fields[2]} is {fields[0].strip('<>')} here"
        found["misses" if "misses" in fields[2] else "loads"] = int(fields[0])
    if set(found) != {"loads", "misses"}:
        return "no hardware counters: perf printed none"
    return found
