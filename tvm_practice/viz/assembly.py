"""Assembly as LLVM writes it, of x86, aarch64 or wasm32: the innermost loop.

loop = innermost_loop(library.mod.inspect_source("asm"))
"""

import re
from collections.abc import Sequence

# A hash begins a comment on x86 and wasm32, and a number on aarch64, where nothing follows it that
# is not part of the number.
_COMMENT = re.compile(r"\s*//.*|(^|\s+)#(\s|#).*")
_LABEL = re.compile(r"([.\w$]+):")
_MULTIPLIES = re.compile(r"\S*(mul|fma|fmla|madd|dpbusd)")


def innermost_loop(assembly: str) -> list[str]:
    """The instructions of the innermost loop that multiplies most.

    Args:
        assembly: what `inspect_source("asm")` gives, with its labels, directives and comments.

    Returns:
        Its instructions in order, without labels, directives and comments; words are separated
        by one blank.

    Raises:
        ValueError: no loop in it multiplies.
    """
    instructions, labels = parsed(assembly)
    wasm = any(each in ("loop", "end_loop") for each in instructions)
    spans = _wasm_loops(instructions) if wasm else _loops(instructions, labels)
    innermost = [
        instructions[start:end]
        for start, end in spans
        if not any(
            start <= other and after <= end and (start, end) != (other, after)
            for other, after in spans
        )
    ]
    loop = max(innermost, key=_multiplications, default=[])
    if not _multiplications(loop):
        raise ValueError("no loop of this assembly multiplies")
    return loop


def _multiplications(loop: Sequence[str]) -> int:
    return sum(_MULTIPLIES.match(each) is not None for each in loop)


def parsed(assembly: str) -> tuple[list[str], dict[str, int]]:
    """The instructions, and before which of them each label stands."""
    instructions: list[str] = []
    labels: dict[str, int] = {}
    for line in assembly.splitlines():
        line = _COMMENT.sub("", line).strip()
        if label := _LABEL.fullmatch(line):
            labels[label[1]] = len(instructions)
        elif line and not line.startswith("."):
            instructions.append(" ".join(line.split()))
    return instructions, labels


def _loops(instructions: Sequence[str], labels: dict[str, int]) -> list[tuple[int, int]]:
    """From where a jump backwards leads to behind the jump."""
    spans = []
    for index, instruction in enumerate(instructions):
        start = labels.get(instruction.split()[-1])
        if start is not None and start <= index:
            spans.append((start, index + 1))
    return spans


def _wasm_loops(instructions: Sequence[str]) -> list[tuple[int, int]]:
    spans, open_loops = [], []
    for index, instruction in enumerate(instructions):
        if instruction == "loop":
            open_loops.append(index)
        elif instruction == "end_loop":
            spans.append((open_loops.pop(), index + 1))
    return spans
