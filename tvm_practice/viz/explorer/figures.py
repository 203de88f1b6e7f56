"""What stands beside the lines of TIR: how often they run, on which threads, what they access."""

import re
from math import prod
from typing import TYPE_CHECKING, Any

from tvm_practice.viz.access import AccessProgram, CannotFollow, access_program
from tvm_practice.viz.cache import USUAL_TLB, machine_caches, simulate_touches
from tvm_practice.viz.explorer.tir_lines import Lines
from tvm_practice.viz.reuse import median, reuse_histograms
from tvm_practice.viz.strides import Touch, touches
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    import numpy as np

# Some seconds of the simulator.
_MOST_TOUCHES = 2_000_000_000
_BARS = " ▁▂▃▄▅▆▇█"
_HEADINGS = ("access", "times", "stride", "reuse, lines", "0 to 64 Ki lines")
_SHOWN_BUCKETS = 18
_VECTORIZED, _PARALLEL = 2, 1
_NESTED = re.compile(r" = .*\w\[[^\]]*\w\[")  # an index that is loaded


def figures(lines: Lines, function: Any) -> dict[str, Any]:
    """What the explorer says beside each line of the last TIR.

    Args:
        lines: of the function.
        function: with its spans, see `tir_lines.located`.

    Returns:
        {"runs": {line: text}, "notes": {line: text}, "accesses": {line: rows of cells, the first
        of headings}, "unfollowed": why there are no accesses, or ""}.
    """
    found: dict[str, Any] = {"runs": _runs(lines), "notes": notes(lines), "accesses": {}}
    try:
        program = access_program(function)
        found["accesses"] = _accesses(lines, program)
        found["unfollowed"] = ""
    except CannotFollow as error:
        found["unfollowed"] = str(error)
        found["notes"] |= dict.fromkeys(_gathers(lines), "# gather")
    return found


def _runs(lines: Lines) -> dict[int, str]:
    counted = {}
    for line in lines.kinds:
        loops = [lines.loops[each] for each in (line, *lines.around(line)) if each in lines.loops]
        extents: list[Any] = [getattr(each.extent, "value", None) for each in loops]
        if loops and None not in extents:
            counted[line] = short(prod(int(each) for each in extents))
    return counted


def short(number: float) -> str:
    """A count in five characters: 16.8M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= size:
            scale = size if unit != "k" else 1e3
            return f"{number / scale:.3g}{unit}"
    return f"{number:.0f}"


def notes(lines: Lines) -> dict[int, str]:
    """What is said of loops on threads: how many iterations each thread has, which have none."""
    from tvm_practice import engines

    said = {}
    sizes: dict[str, int] = {}
    for line, loop in lines.loops.items():
        extent = getattr(loop.extent, "value", None)
        if loop.thread_binding is not None and extent is not None:
            sizes[str(loop.thread_binding.thread_tag)] = int(extent)
            said[line] = f"# {loop.thread_binding.thread_tag}: {extent}"
        elif int(loop.kind) == _PARALLEL and extent is not None:
            said[line] = coverage(int(extent), engines.thread_count())
    if sizes:
        blocks, threads = (
            prod(size for tag, size in sizes.items() if tag.startswith(kind))
            for kind in ("blockIdx", "threadIdx")
        )
        said[min(said)] += f"; {number_of(blocks, 'block')} of {number_of(threads, 'thread')}"
    return said


def coverage(iterations: int, threads: int) -> str:
    """How a parallel loop is shared out: TVM gives every thread one run of iterations."""
    each = -(-iterations // threads)
    busy = -(-iterations // each)
    idle = f", {threads - busy} without work" if busy < threads else ""
    least = iterations - each * (busy - 1)
    share = str(each) if least == each else f"{least} to {each}"
    found = f"{number_of(iterations, 'iteration')} on {number_of(threads, 'thread')}"
    return f"# {found}: {share} each{idle}"


def _gathers(lines: Lines) -> list[int]:
    """The statements of whose loads one has an index that is itself loaded."""
    return [line for line in lines.kinds if _NESTED.search(lines.text[line - 1])]


def _accesses(lines: Lines, program: AccessProgram) -> dict[int, list[list[str]]]:
    sites = list(touches(program))
    total = sum(_times(lines, site) for site in sites)
    levels, _ = machine_caches()
    counts: np.ndarray | None = None
    if total <= _MOST_TOUCHES:
        counts, pages = (simulate_touches(program, each) for each in (levels, [USUAL_TLB]))
        names = [*(level.name for level in levels), USUAL_TLB.name]
    histograms = reuse_histograms(program)
    rows: dict[int, list[list[str]]] = {}
    for at, site in enumerate(sites):
        if not site.line:
            continue
        head = (
            [*_HEADINGS, *(f"{name} misses" for name in names)] if counts is not None else _HEADINGS
        )
        row = rows.setdefault(site.line, [list(head)])
        buffer = program.buffers[site.buffer]
        times = counts[0, at] if counts is not None else _times(lines, site)
        cells = [f"{'store' if site.write else 'load'} {buffer.name}"]
        if buffer.in_registers:
            row.append([*cells, short(_times(lines, site)), _stride(lines, site), "registers"])
            continue
        cells += [short(times), _stride(lines, site), median(histograms[at]), bars(histograms[at])]
        if counts is not None:
            cells += [share(each, times) for each in (*counts[1:, at], pages[1, at])]
        row.append(cells)
    return rows


def _times(lines: Lines, site: Touch) -> int:
    if not site.line:
        return 0
    extents = (lines.loops[each].extent for each in lines.around(site.line) if each in lines.loops)
    return prod(int(getattr(each, "value", 1)) for each in extents)


def _stride(lines: Lines, site: Touch) -> str:
    if site.stride is None:
        return "irregular"
    if abs(site.stride) == 1:
        return "contiguous"
    if site.stride:
        return f"strided {site.stride}"
    around = (lines.loops[each] for each in lines.around(site.line) if each in lines.loops)
    innermost = next((each for each in around if getattr(each.extent, "value", 0) != 1), None)
    is_vector = innermost is not None and int(innermost.kind) == _VECTORIZED
    return "broadcast" if is_vector else "same place"


def bars(histogram: "np.ndarray") -> str:
    """The distances from 0 on as bars, one for each power of two; first touches are left out."""
    again = histogram[1 : _SHOWN_BUCKETS + 1]
    most = max(int(again.max()), 1)
    return "".join(_BARS[-(-int(each) * (len(_BARS) - 1) // most)] for each in again)


def share(part: float, whole: float) -> str:
    """A share in percent; a dash for none at all."""
    if not part or not whole:
        return "-"
    percent = 100 * part / whole
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"


def caches() -> str:
    """Which caches the misses are of."""
    levels, known = machine_caches()
    said = "; ".join(map(str, (*levels, USUAL_TLB)))
    return said if known else f"{said} (usual sizes)"
