"""Which primitive made or changed each line of TIR, and what each line became in the end."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

# What stays of a line when a primitive changes it: `i_0` and `i_1` come from `i`.
_HEADS = (
    re.compile(r"for ([A-Za-z]+)"),
    re.compile(r"(\w+) = T\.axis"),
    re.compile(r"(\w+)\["),
    re.compile(r"(T\.(?:reads|writes))"),
    re.compile(r'(with T\.sblock\("\w+?)(?:_init|_update)?"'),
)


@dataclass(frozen=True)
class TirStep:
    """The function after a primitive.

    Attributes:
        primitive: see `history.ScheduleStep`; empty for the function as it was.
        text: its lines.
        makers: by line, the steps, from 1, that made or changed it.
        finals: by line, the lines of the last step, from 1, that it became.
    """

    primitive: str
    text: tuple[str, ...]
    makers: tuple[tuple[int, ...], ...]
    finals: tuple[tuple[int, ...], ...]


def followed(primitives: Sequence[str], texts: Sequence[tuple[str, ...]]) -> list[TirStep]:
    """Follow every line from step to step.

    Args:
        primitives: of each step; the first is empty.
        texts: the function's lines after each.
    """
    makers: list[tuple[tuple[int, ...], ...]] = [((),) * len(texts[0])]
    sources: list[list[int | None]] = []
    for number, (before, after) in enumerate(pairwise(texts), start=1):
        source, changed = _sources(before, after)
        sources.append(source)
        makers.append(
            tuple(
                (makers[-1][old] if old is not None else ()) + ((number,) if is_changed else ())
                for old, is_changed in zip(source, changed, strict=True)
            )
        )
    finals: list[tuple[tuple[int, ...], ...]]
    finals = [tuple((line,) for line in range(1, len(texts[-1]) + 1))]
    for source, text in zip(reversed(sources), reversed(texts[:-1]), strict=True):
        became: list[list[int]] = [[] for _ in text]
        for new, old in enumerate(source):
            if old is not None:
                became[old] += finals[0][new]
        finals.insert(0, tuple(tuple(sorted(set(each))) for each in became))
    return [TirStep(*each) for each in zip(primitives, texts, makers, finals, strict=True)]


def _sources(before: Sequence[str], after: Sequence[str]) -> tuple[list[int | None], list[bool]]:
    """For each line after a primitive, the line that it was before, if any, and whether it changed.

    A line that only moved has changed too; its indentation alone does not count.
    """
    old, new = [each.strip() for each in before], [each.strip() for each in after]
    source: list[int | None] = [None] * len(new)
    changed = [True] * len(new)
    gone: list[int] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, first, last, start, stop in matcher.get_opcodes():
        if kind == "equal":
            source[start:stop] = range(first, last)
            changed[start:stop] = [False] * (stop - start)
        else:
            gone += range(first, last)
    moved = set()
    for line in (at for at, each in enumerate(changed) if each):
        same = [each for each in gone if old[each] == new[line] and each not in moved]
        if same:
            moved.add(same[0])
            source[line] = same[0]
    left = [each for each in gone if each not in moved]
    for line in (at for at, each in enumerate(source) if each is None):
        alike = [each for each in left if _head(old[each]) == _head(new[line])]
        source[line] = min(alike, key=lambda each: abs(each - line), default=None)
    return source, changed


def _head(line: str) -> str:
    for head in _HEADS:
        if found := head.match(line):
            return found[1]
    return line
