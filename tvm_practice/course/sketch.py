"""What an answer's loops do to memory: the order of accesses, and misses of small caches.

An exercise's example shows its loops (`Exercise.demonstrate`); the function that these are read
from is followed here, in the engine's process, and so is a correct answer's. Examples are small,
and so are the caches that are simulated: matrices of 64 x 48 would fit into a real one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm_practice.course.catalog import Exercise, find
from tvm_practice.course.grading import load_source
from tvm_practice.viz.access import AccessProgram, access_program
from tvm_practice.viz.access_picture import Window, access_svg, first_touches, window
from tvm_practice.viz.cache import CacheCounts, CacheLevel, simulate
from tvm_practice.viz.cache_picture import cache_svg
from tvm_practice.viz.loop_nest import functions_read

CACHES = (CacheLevel("2 KiB", sets=8, ways=4), CacheLevel("8 KiB", sets=16, ways=8))
UNTOUCHED = "·"
# Of a map in a terminal: three of them, side by side, take less than 80 columns.
_ROWS, _COLUMNS = 8, 24
_MOST_TOUCHES = 2_000_000

Sketch = dict[str, Any]


def sketch_here(exercise: str, paths: Mapping[str, str], drawn: bool) -> Sketch:
    """Follow the answers of files, by name; called through engines.Session on current TVM.

    Args:
        paths: of the files with the answers.
        drawn: whether to draw pictures for a page as well.

    Returns:
        "answers": by name, without those that fail or have no loops to follow: {"part": which
        accesses are in the maps, "maps": [{"name", "shape", "cells": lines of digits}],
        "misses": by cache, then by buffer}; "pictures": SVG of the accesses and of the misses, if
        `drawn`.
    """
    found = find(exercise)
    programs = {name: _program(found, path) for name, path in paths.items()}
    followed = {name: each for name, each in programs.items() if each is not None}
    windows = {name: _first_quarter(each) for name, each in followed.items()}
    counts = {name: simulate(each, CACHES) for name, each in followed.items()}
    answers = {
        name: {
            "part": windows[name].caption,
            "maps": [_map(each) for each in windows[name].buffers],
            "misses": {level.name: dict(counts[name].misses[level.name]) for level in CACHES},
        }
        for name in followed
    }
    pictures = _pictures(windows, counts) if drawn and followed else []
    return {"answers": answers, "pictures": pictures}


def _program(exercise: Exercise, path: str) -> AccessProgram | None:
    """The accesses of the loops that the exercise's example shows last, if they can be followed."""
    try:
        answer = getattr(load_source(exercise.phase, path), exercise.name)
        with functions_read() as functions:
            exercise.demonstrate(answer)
        return access_program(functions[-1])
    except Exception:  # an answer may fail in any way, and some loops depend on data
        return None


def _first_quarter(program: AccessProgram) -> Window:
    """The first quarter of the accesses, or of as many as can be followed in a moment."""
    part = window(program, _MOST_TOUCHES)
    whole = part.trace.numbers.size
    if not part.trace.complete:
        return window(program, _MOST_TOUCHES // 4, caption=f"{_MOST_TOUCHES // 4} accesses")
    touches = max(1, whole // 4)
    return window(program, touches, caption=f"{touches} of {whole} accesses")


def _map(trace: Any) -> dict[str, Any]:
    """A buffer as lines of digits: 0 was touched first, 9 last; a cell has its earliest touch."""
    import numpy as np

    when = first_touches(trace, 32)
    rows, columns = (
        -(-extent // most) for extent, most in zip(when.shape, (_ROWS, _COLUMNS), strict=True)
    )
    lines = []
    for top in range(0, when.shape[0], rows):
        cells = []
        for left in range(0, when.shape[1], columns):
            part = when[top : top + rows, left : left + columns]
            touched = part[~np.isnan(part)]
            cells.append(str(min(9, int(10 * touched.min()))) if touched.size else UNTOUCHED)
        lines.append("".join(cells))
    shape = "x".join(map(str, trace.buffer.shape))
    return {"name": trace.buffer.name, "shape": shape, "cells": lines}


def _pictures(windows: Mapping[str, Window], counts: Mapping[str, CacheCounts]) -> list[str]:
    levels = [level.name for level in CACHES]
    return [
        access_svg(windows, title="Which elements are accessed first"),
        cache_svg(counts, levels, work=1000, unit="misses", title="Simulated cache misses"),
    ]


def described(sketch: Sketch, *, plain: bool) -> list[str]:
    """A sketch as lines of a terminal, 80 columns wide; with `plain`, as sentences alone."""
    answers = sketch.get("answers", {})
    if not answers:
        return []
    if plain:
        return [
            f"{name}: {sum(misses.values())} simulated misses in a cache of {level}"
            for name, each in answers.items()
            for level, misses in each["misses"].items()
        ]
    if len(answers) == 2 and answers["yours"] == answers["correct"]:
        answers = {"yours": answers["yours"]}
        lines = ["Its accesses are those of a correct answer. Their order, 0 first to 9 last:"]
    else:
        lines = ["The order of accesses, 0 first to 9 last:"]
    for name, each in answers.items():
        lines += [f"  {name}, the first {each['part']}", *_side_by_side(each["maps"])]
    return [*lines, "Simulated misses, caches empty at first:", *_table(answers)]


def _side_by_side(maps: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for at in range(0, len(maps), 3):
        row = maps[at : at + 3]
        columns = [[f"{each['name']} {each['shape']}", *each["cells"]] for each in row]
        for line in range(max(map(len, columns))):
            cells = [each[line] if line < len(each) else "" for each in columns]
            lines.append(
                ("    " + " ".join(cell[:_COLUMNS].ljust(_COLUMNS) for cell in cells)).rstrip()
            )
    return lines


def _table(answers: Mapping[str, Any]) -> list[str]:
    """A row for each cache and answer, a column for each buffer, those with most misses first."""
    total: dict[str, int] = {}
    for each in answers.values():
        for misses in each["misses"].values():
            for buffer, count in misses.items():
                total[buffer] = total.get(buffer, 0) + count
    buffers = sorted(sorted(total, key=lambda each: -total[each])[:5])
    lines = [" " * 20 + "".join(f"{name[:9]:>10}" for name in [*buffers, "all"])]
    for level in CACHES:
        for name, each in answers.items():
            misses = each["misses"][level.name]
            row = [*(misses.get(buffer, "") for buffer in buffers), sum(misses.values())]
            lines.append(
                f"    {level.name}, {name}".ljust(20) + "".join(f"{count:>10}" for count in row)
            )
    return lines
