"""An answer's file: what it may stand on, and what its function returns, in a process of its own.

Whatever the file changes in that process is gone with it: the gate and the score, in others, get
the returned function as TVM's JSON, and nothing else.
"""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm_practice.course.capstone.tracks import Size, Track, find_track, shown
from tvm_practice.course.expect import CheckFailed, expect, fail
from tvm_practice.course.grading import describe, load_source
from tvm_practice.course.guarding import Guard, source_of

ALLOWED = (
    "tvm", "math", "functools", "itertools", "dataclasses", "collections", "typing",
    "tvm_practice.engines", "__future__",
)  # fmt: skip
_NAMES = {"__import__", "exec", "eval", "compile", "open", "globals", "breakpoint"}
# How a function of TVM calls a library, or Python.
_CALLS = ("call_extern", "call_pure_extern", "call_packed", "call_cpacked", "call_ffi_kernel")


def source_problem(text: str) -> str | None:
    """Why a file may not be handed in, "expected, seen, look at"; None where it may."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return str(fail("a file of Python", f"{type(error).__name__}: {error}", "that line"))
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        elif isinstance(node, ast.Name) and node.id in _NAMES:
            names = [node.id]
        for name in names:
            if not any(name == each or name.startswith(f"{each}.") for each in ALLOWED):
                return str(_stands_on(name, getattr(node, "lineno", 0)))
    return None


def _stands_on(name: str, line: int) -> CheckFailed:
    whose = "another's work is no answer" if name.startswith("solutions") else "it must be TVM's"
    return fail(
        f"an answer that stands on {', '.join(ALLOWED[:-2])} and its own functions",
        f"line {line} uses {name}",
        f"that line; a schedule makes the kernel here, and {whose}",
    )


def modules_here(track: str, path: str, sizes: Sequence[Sequence[int]]) -> dict[str, Any]:
    """What the answer in `path` returns for each size.

    Called through engines.Session, on the current engine, in a process for this alone.

    Returns:
        The status, passed, failed or todo, the message, and the IRModules as TVM's JSON.
    """
    import tvm

    found = find_track(track)
    write = tvm.ir.save_json
    try:
        made = _answers(found, path, [tuple(size) for size in sizes])
        modules = [as_module(answer, found, size) for size, answer in made]
        return {"status": "passed", "message": "", "modules": [write(each) for each in modules]}
    except CheckFailed as wrong:
        status, message = "failed", str(wrong)
    except NotImplementedError as todo:
        status, message = "todo", str(todo)
    except BaseException as error:  # SystemExit as well
        status, message = "failed", describe(error, track, path)
    return {"status": status, "message": message, "modules": []}


def _answers(track: Track, path: str, sizes: Sequence[Size]) -> list[tuple[Size, Any]]:
    """The answer's function called for each size, under the eyes of the grader's guard."""
    if Path(path).resolve() == source_of("solutions.capstone"):
        reference = getattr(load_source("capstone", path), track.name)
        return [(size, reference(*size)) for size in sizes]
    guard = Guard("capstone", track.name, path)
    with guard.active(), guard.unchanged():
        function = getattr(load_source("capstone", path), track.name, None)
        expect(
            callable(function),
            expected=f"a function {track.name}",
            seen=f"{Path(path).name} has none",
            look="its `def` line",
        )
        answer = guard.watched(function)  # type: ignore[arg-type]
        made = [(size, answer(*size)) for size in sizes]
    guard.verdict()
    return made


def as_module(answer: Any, track: Track, size: Size) -> Any:
    """The IRModule of an answer, whose function "main" has the track's buffers."""
    import tvm

    if isinstance(answer, tvm.s_tir.Schedule):
        answer = answer.mod
    if isinstance(answer, tvm.tirx.PrimFunc):
        answer = tvm.IRModule({"main": answer.with_attr("global_symbol", "main")})
    call = shown(track, size)
    only_tir = isinstance(answer, tvm.IRModule) and all(
        isinstance(each, tvm.tirx.PrimFunc) for each in answer.functions.values()
    )
    if not only_tir:
        seen = type(answer).__name__
        raise fail(f"{call} to return a schedule", f"{seen}", "the return statement")
    names = [each.name_hint for each in answer.get_global_vars()]
    if names != ["main"]:
        raise fail(f"{call} to return one function, main", f"{names}", "the return statement")
    main = answer["main"]
    got = [
        (tuple(int(extent) for extent in buffer.shape), str(buffer.dtype)) for buffer in main.params
    ]
    want = [(shape, "float32") for shape in track.buffers(size).values()]
    if got != want:
        raise fail(
            f"{call} with buffers {', '.join(f'{n} {s}' for n, s in track.buffers(size).items())}",
            ", ".join(f"{shape} {dtype}" for shape, dtype in got),
            "whether the sizes are those that the function is given",
        )
    return answer
