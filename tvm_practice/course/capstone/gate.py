"""The gate: whether an answer computes itself, and whether its results are right.

A wrong answer has no score, however fast it is. All of it runs in a process of the current engine
that the answer's file was never in.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.capstone.answers import as_module
from tvm_practice.course.capstone.tracks import Arrays, Size, Track, find_track, shown
from tvm_practice.course.expect import CheckFailed, expect, fail, varied
from tvm_practice.course.fences import Fenced
from tvm_practice.course.grading import describe

# How a function of TVM calls a library, or Python. LLVM's intrinsics are instructions.
_CALLS = ("call_", "extern", "packed", "static_handle", "tvm_struct", "anylist", "lookup_param")
_INSTRUCTIONS = ("tirx.call_llvm_intrin", "tirx.call_llvm_pure_intrin")
_MOST_ELEMENTS = 2**23  # the product of a size's extents
# Primes, and so are the numbers of windows at stride 2: no tile divides them.
_LARGE = (397, 421, 457, 541)
_HUGE = (2017, 2137, 2341, 2473, 2557, 2593, 2797, 2857, 2917)


def gate_sizes(track: Track, seed: int) -> list[Size]:
    """The track's edges, and sizes that nobody knows before.

    These are primes, what a condition on sizes meets, one extent after the other that is large,
    large and even, and huge, and each two that are large and equal. The filters and strides of
    depthwise convolutions are all tried.
    """
    rng = np.random.default_rng([seed, *b"gate"])
    primes = (2, 3, 13, 19, 29, 41, 47, 53, 61, 71)
    free = len(track.parameters) - 2 * (track.name == "depthwise")
    base = tuple(int(each) for each in rng.choice(primes if free < 4 else primes[:6], free, False))
    large, huge = int(rng.choice(_LARGE)), int(rng.choice(_HUGE))
    even = 2 * int(rng.integers(130, 200))
    few = [each % 4 + 1 for each in base]
    # Not four large extents at once: their windows, in float64, take more memory than there is.
    sizes = [
        *(each for each in varied(*base, alone=True) if math.prod(each) < _MOST_ELEMENTS),
        (2,) * free,
        *(
            tuple(large if index in chosen else each for index, each in enumerate(few))
            for count in (1, 2)
            for chosen in itertools.combinations(range(free), count)
        ),
        *(
            tuple(even if index == at else each for index, each in enumerate(few))
            for at in range(free)
        ),
        # The first two once more with other rest: a result may be kept for these two alone.
        *((large, large, *(each + 1 for each in few[2:])) for _ in range(free > 2)),
        *(tuple(huge if index == at else 2 for index in range(free)) for at in range(free)),
    ]
    if free < len(track.parameters):
        filters = itertools.cycle(((3, 2), (5, 1), (5, 2), (3, 1)))
        sizes = [(*each, *following) for each, following in zip(sizes, filters, strict=False)]
    return [*track.edges, *sizes]


def gate_here(
    track: str, seed: int, sizes: Sequence[Sequence[int]], modules: Sequence[str]
) -> dict[str, str]:
    """Try what an answer returned for each size.

    Called through engines.Session, on the current engine.

    Args:
        seed: draws the inputs.
        modules: of `answers.modules_here`.

    Returns:
        The status, passed or failed, and the message.
    """
    found = find_track(track)
    rng = np.random.default_rng(seed)
    try:
        for size, text in zip(map(tuple, sizes), modules, strict=True):
            expect_right(found, size, built(found, size, text), rng)
    except CheckFailed as wrong:
        return {"status": "failed", "message": str(wrong)}
    except Exception as error:  # TVM's: it cannot be compiled
        return {"status": "failed", "message": describe(error, track, "")}
    return {"status": "passed", "message": f"right at {len(sizes)} sizes"}


def built(track: Track, size: Size, text: str) -> Callable[..., None]:
    """The function that an answer returned, compiled for this machine.

    Raises CheckFailed where it has other buffers, or calls other code.
    """
    import tvm

    from tvm_practice import engines

    module = as_module(tvm.ir.load_json(text), track, size)
    expect_own_work(module, track)
    function: Callable[..., None] = tvm.compile(module, target=engines.host_target())["main"]
    return function


def expect_own_work(module: Any, track: Track) -> None:
    """The function calls no library, no Python, and brings no code of another compiler."""
    import tvm
    import tvm_ffi
    from tvm import tirx
    from tvm.s_tir import SBlock

    foreign: list[str] = []

    def look(call: Any) -> None:
        name = str(getattr(call.op, "name", call.op))
        if name not in _INSTRUCTIONS and any(each in name for each in _CALLS):
            what = call.args[0] if call.args else name
            foreign.append(str(getattr(what, "value", what)))

    def read(node: Any) -> None:
        keys = [str(getattr(node, "attr_key", "")), *(getattr(node, "annotations", None) or {})]
        foreign.extend(each for each in keys if str(each).startswith("pragma_import"))

    body = module["main"].body
    tvm_ffi.structural_walk(body, (tvm.ir.Call, look))
    for kind in (tirx.AttrStmt, tirx.For, SBlock):
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
    """Call a compiled function with wild values four times, and compare it with float64.

    The first call has NaN for all inputs, so that workspaces hold NaN afterwards; the next two get
    other inputs each time, and the output as the call before has left it; for the last one element
    of each input changes, so that a result kept for its first elements shows.
    """
    shapes = list(track.buffers(size).values())
    buffers = [Fenced(np.full(shape, np.nan, "float32")) for shape in shapes]
    tensors = [each.tensor for each in buffers]
    output = buffers[-1].array
    function(*tensors)
    output[...] = np.nan
    before: np.ndarray | None = None
    first, second = (track.draw(size, rng, True) for _ in range(2))
    third = [each.copy() for each in second]
    for values, other in zip(third, first, strict=True):
        at = int(rng.integers(values.size))
        values.flat[at] = other.flat[at]
    for inputs in (first, second, third):
        for buffer, values in zip(buffers, inputs, strict=False):
            buffer.array[...] = values
        function(*tensors)
        expect_close(track, size, inputs, output, before)
        for name, buffer, values in zip(track.buffers(size), buffers, inputs, strict=False):
            expect(
                np.array_equal(buffer.array, values),
                expected=f"{shown(track, size)} to read {name} only",
                seen=f"{name} was changed",
                look=f"the statement that writes to {name}",
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
    edge = _edge(wrong)
    if before is not None and np.array_equal(got, before):
        look = "what is kept from call to call: this is the last call's result, for other inputs"
    elif np.isnan(got).all():
        look = "whether each call computes: this one left Y as it was, or spread a NaN over it"
    elif np.isnan(got).any():
        look = f"{edge}what is read before it is written (such as padding), and exp of more than 88"
    else:
        look = edge + "the formula, and which elements a tile reads"
    raise fail(
        f"Y of {shown(track, size)} as numpy has it in float64",
        f"{int(wrong.sum())} of {want.size} elements differ, first at {list(at)}: "
        f"{got[at]:.6g}, numpy says {want[at]:.6g}",
        look,
    )


def _edge(wrong: np.ndarray) -> str:
    """The last rows or columns in words, if they are what is wrong; "" otherwise."""
    high, wide = wrong.shape[-2:]
    rows = np.flatnonzero(wrong.any(axis=-1).reshape(-1, high).any(axis=0))
    columns = np.flatnonzero(wrong.reshape(-1, wide).any(axis=0))
    for name, found, count in (("row", rows, high), ("column", columns, wide)):
        if 0 < found[0] == count - len(found):
            return f"the edge: wrong from {name} {found[0]} of {count} on (perhaps the last tile); "
    return ""
