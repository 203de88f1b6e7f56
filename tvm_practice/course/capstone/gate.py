"""The gate: what an answer may stand on, and whether its results are right.

A wrong answer has no score, however fast it is. `source_problem` reads the file without running it;
the rest runs in a process of the current engine.
"""

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm_practice.course.capstone.tracks import Arrays, Size, Track, find_track, shown
from tvm_practice.course.expect import CheckFailed, draw_from, expect, fail, fresh_rng
from tvm_practice.course.fences import Fenced
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


def gate_here(track: str, path: str, seed: int, sizes: list[list[int]] | None) -> dict[str, str]:
    """Try the answer in `path` at its track's edges and at drawn sizes, or at `sizes` alone.

    Called through engines.Session, on the current engine.

    Returns:
        The status, passed, failed or todo, and the message.
    """
    found = find_track(track)
    draw_from(seed)
    tried = [tuple(each) for each in sizes] if sizes else [*found.edges, *_drawn(found)]
    try:
        with Answer(found, path) as answer:
            for size in tried:
                expect_right(found, size, answer.built(size), fresh_rng())
    except CheckFailed as wrong:
        return {"status": "failed", "message": str(wrong)}
    except NotImplementedError as todo:
        return {"status": "todo", "message": str(todo)}
    except BaseException as error:  # SystemExit as well
        return {"status": "failed", "message": describe(error, track, path)}
    return {"status": "passed", "message": f"right at {len(tried)} sizes"}


def _drawn(track: Track) -> list[Size]:
    """Two sizes that nobody knows before: primes, and what lies between a vector and a tile."""
    rng = fresh_rng()
    primes = (2, 3, 13, 19, 29, 41, 47, 53, 61, 71)
    draw: Callable[[], int] = lambda: int(rng.choice(primes))
    if track.name == "depthwise":
        return [(1, draw(), draw(), draw(), kernel, stride) for kernel, stride in ((3, 2), (5, 1))]
    return [tuple(draw() for _ in track.parameters) for _ in range(2)]


class Answer:
    """The function of a learner's file, called under the eyes of the grader's guard.

    with Answer(track, path) as answer:
        function = answer.built(size)
    """

    def __init__(self, track: Track, path: str) -> None:
        self._track, self._path = track, path
        is_reference = Path(path).resolve() == source_of("solutions.capstone")
        self._guard = None if is_reference else Guard("capstone", track.name, path)

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def built(self, size: Size) -> Callable[..., None]:
        """The answer's function for this size, compiled for this machine.

        Raises CheckFailed where it is none of TVM's, has other buffers, or calls other code.
        """
        import tvm

        from tvm_practice import engines

        module = as_module(self._called(size), self._track, size)
        expect_own_work(module, self._track)
        built: Callable[..., None] = tvm.compile(module, target=engines.host_target())["main"]
        return built

    def _called(self, size: Size) -> Any:
        if self._guard is None:
            return getattr(load_source("capstone", self._path), self._track.name)(*size)
        with self._guard.active(), self._guard.unchanged():
            module = load_source("capstone", self._path)
            function = getattr(module, self._track.name, None)
            expect(
                callable(function),
                expected=f"a function {self._track.name}",
                seen=f"{Path(self._path).name} has none",
                look="its `def` line",
            )
            answer = self._guard.watched(function)(*size)  # type: ignore[arg-type]
        self._guard.verdict()
        return answer


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


def expect_own_work(module: Any, track: Track) -> None:
    """The function calls no library, no Python, and brings no code of another compiler."""
    import tvm
    import tvm_ffi
    from tvm import tirx

    foreign: list[str] = []

    def look(call: Any) -> None:
        name = str(getattr(call.op, "name", ""))
        if any(each in name for each in _CALLS):
            what = call.args[0] if call.args else name
            foreign.append(str(getattr(what, "value", what)))

    def read(node: Any) -> None:
        keys = [str(getattr(node, "attr_key", "")), *(getattr(node, "annotations", None) or {})]
        foreign.extend(each for each in keys if str(each).startswith("pragma_import"))

    body = module["main"].body
    tvm_ffi.structural_walk(body, (tvm.ir.Call, look))
    for kind in (tirx.AttrStmt, tirx.For):
        tvm_ffi.structural_walk(body, (kind, read))
    if foreign:
        raise fail(
            f"{track.name} to compute in loops of its own",
            f"its function calls {foreign[0]}",
            "te.extern, T.call_packed and their like: another library's speed is not yours",
        )


def expect_right(
    track: Track,
    size: Size,
    function: Callable[..., None],
    rng: np.random.Generator,
) -> None:
    """Call a compiled function with wild values three times, and compare it with float64.

    The first call has NaN for all inputs, so that workspaces hold NaN afterwards; the others get
    other inputs each time, and the output as the call before has left it.
    """
    shapes = list(track.buffers(size).values())
    buffers = [Fenced(np.full(shape, np.nan, "float32")) for shape in shapes]
    tensors = [each.tensor for each in buffers]
    output = buffers[-1].array
    function(*tensors)
    output[...] = np.nan
    before: np.ndarray | None = None
    for _ in range(2):
        inputs = track.draw(size, rng, True)
        for buffer, values in zip(buffers, inputs, strict=False):
            buffer.array[...] = values
        function(*tensors)
        expect_close(track, size, inputs, output, before)
        for name, buffer, values in zip(track.buffers(size), buffers, inputs, strict=False):
            expect(
                np.array_equal(buffer.array, values),
                expected=f"{shown(track, size)} to read {name} only",
                seen=f"{name} was changed",
                look=f"what writes to {name}",
            )
        before = output.copy()
    for name, buffer in zip(track.buffers(size), buffers, strict=True):
        expect(
            buffer.is_whole(),
            expected=f"{shown(track, size)} to write inside its output",
            seen=f"memory beside {name} was changed",
            look="the last tile, where the size is no multiple of it",
        )


def expect_close(
    track: Track,
    size: Size,
    inputs: Arrays,
    got: np.ndarray,
    before: np.ndarray | None = None,
) -> None:
    """The output is that of float64 within what float32 can do.

    `before` is the output of the call before, on other inputs.
    """
    want, most = track.truth(size, inputs)
    error = np.abs(got - want)
    wrong = ~(error <= most)  # of NaN too
    if not wrong.any():
        return
    at = tuple(int(each) for each in np.argwhere(wrong)[0])
    if before is not None and np.array_equal(got, before):
        look = "what is kept from call to call: this is the last call's result, for other inputs"
    elif np.isnan(got).any():
        look = "what is read before it is written, padding say, and exp of more than 88"
    else:
        look = _where(wrong)
    raise fail(
        f"Y of {shown(track, size)} as numpy has it in float64",
        f"{int(wrong.sum())} of {want.size} elements differ, first at {list(at)}: "
        f"{got[at]:.6g}, numpy says {want[at]:.6g}",
        look,
    )


def _where(wrong: np.ndarray) -> str:
    """The part of the output that is wrong, in words."""
    rows = np.flatnonzero(wrong.any(axis=-1).reshape(-1, wrong.shape[-2]).any(axis=0))
    columns = np.flatnonzero(wrong.reshape(-1, wrong.shape[-1]).any(axis=0))
    high, wide = wrong.shape[-2:]
    edges: Sequence[tuple[str, np.ndarray, int]] = (("row", rows, high), ("column", columns, wide))
    for name, found, count in edges:
        if len(found) < count and found[-1] == count - 1:
            return f"the edge: wrong from {name} {found[0]} of {count} on, the last tile say"
    return "the formula, and which elements a tile reads"
