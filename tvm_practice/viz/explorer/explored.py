"""A schedule as the explorer's page takes it: steps, lines, links and figures, as JSON."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.viz.explorer.figures import figures
from tvm_practice.viz.explorer.native import NativeCode, native_code
from tvm_practice.viz.explorer.steps import TirStep, followed
from tvm_practice.viz.explorer.tir_lines import Lines, located, script
from tvm_practice.viz.history import ScheduleStep, recorded


def explored(name: str, make: Callable[[], Any]) -> dict[str, Any]:
    """Make a schedule and look at it from its primitives to its assembly.

    Args:
        name: what the page calls it.
        make: see `history.recorded`, on the current engine.

    Returns:
        {"name", "steps": [{"name", "text", "makers", "finals"}], "own": the lines of code that a
        line of the last TIR stands for, "inside": those of its body, "llvm", "asm": [[text,
        origin]], "left_out": names of functions, "uncompiled": why there is no code} and the
        entries of `figures.figures`. Lines count from 1.
    """
    from tvm_practice import engines

    _, steps = recorded(make)
    lines, function = located(steps[-1].function)
    is_for_gpu = any(each.thread_binding is not None for each in lines.loops.values())
    target = engines.host_target()
    code = NativeCode((), (), ()) if is_for_gpu else native_code(function, target)
    return page_data(name, steps, lines, code) | {
        **figures(lines, function),
        "uncompiled": "a GPU's loops: no code for the processor" if is_for_gpu else "",
    }


def page_data(
    name: str, steps: Sequence[ScheduleStep], lines: Lines, code: NativeCode
) -> dict[str, Any]:
    """The parts as JSON takes them; see `explored`."""
    texts = [*(script(each.function) for each in steps[:-1]), lines.text]
    return {
        "name": name,
        "steps": [_step(each) for each in followed([each.primitive for each in steps], texts)],
        "own": [_own(lines, line) for line in range(1, len(lines.text) + 1)],
        "inside": [_stated(lines, lines.inside(at + 1)) for at in range(len(lines.text))],
        "around": [list(lines.around(at + 1)) for at in range(len(lines.text))],
        "llvm": [[each.text, each.origin] for each in code.llvm],
        "asm": [[each.text, each.origin] for each in code.assembly],
        "left_out": list(code.left_out),
    }


def _step(step: TirStep) -> dict[str, Any]:
    return {
        "name": step.primitive,
        "text": list(step.text),
        "makers": [list(each) for each in step.makers],
        "finals": [list(each) for each in step.finals],
    }


def _stated(lines: Lines, within: range) -> list[int]:
    """The lines of a range that can have code: statements and loops."""
    return [
        each for each in within if lines.kinds.get(each) in ("For", "BufferStore", "IfThenElse")
    ]


def _own(lines: Lines, line: int) -> list[int]:
    """The lines whose code a line stands for: a statement itself, else what it says something of.

    A vectorized or unrolled loop leaves no code that counts; what it repeats is its code. An axis,
    a region or the head of a block belongs to the block's statements.
    """
    kind = lines.kinds.get(line)
    if kind in ("BufferStore", "IfThenElse"):
        return [line]
    if kind == "For":
        gone = int(lines.loops[line].kind) in (2, 3)  # vectorized, unrolled
        return _stated(lines, lines.inside(line)) if gone else [line]
    block = line
    if kind != "SBlock":
        block = next((each for each in lines.around(line) if lines.kinds.get(each) == "SBlock"), 0)
    root = min((each for each, what in lines.kinds.items() if what == "SBlock"), default=0)
    return [] if block in (0, root) else _stated(lines, lines.inside(block))
