"""The common errors as a page, and those that somebody asks for."""

import textwrap

from tvm_practice.course.common_errors import COMMON, CommonError, recognized
from tvm_practice.engines import CLASSIC, CURRENT

_HEAD = """\
# TVM's errors

The errors that beginners meet most, each with its cause and the way out. A check or a run that
meets one says so below TVM's own message; `tvm-practice errors WORDS` finds it. The tests run every
example. This page is made by `tvm-practice errors --page`.

The examples follow a matmul of 64 by 64. On current TVM its schedule is `sch`, with `block` and the
loops `i`, `j`, `k`; on classic TVM it is `s`, with the axes `i`, `j`, `k`.
"""
_NAMES = {CURRENT: "current TVM", CLASSIC: "classic TVM"}


def chosen(words: str) -> list[CommonError]:
    """The error whose message holds `words`, else those that speak of them; without any, all."""
    if (common := recognized(words)) is not None:
        return [common]
    sought = words.lower()
    return [
        each
        for each in COMMON
        if sought in f"{each.title} {each.cause} {each.instead} {each.pattern}".lower()
    ]


def to_markdown() -> str:
    """The glossary, docs/errors.md."""
    return _HEAD + "".join(_entry(each) for each in COMMON)


def _entry(common: CommonError) -> str:
    blocks = ""
    shown: set[str] = set()
    for example in common.examples:
        if example.wrong in shown:  # the same on both engines
            continue
        shown.add(example.wrong)
        on = {each.engine for each in common.examples if each.wrong == example.wrong}
        engine = "" if len(on) > 1 else f"  # {_NAMES[example.engine]}"
        blocks += (
            f"\n```python\n# wrong{engine}\n{example.wrong}\n\n# right\n{example.right}\n```\n"
        )
    title = common.title[0].upper() + common.title[1:]
    cause, instead = (
        textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)
        for text in (common.cause, f"Instead: {common.instead}")
    )
    return f"\n## {title}\n\n{cause}\n\n{instead}\n{blocks}"
