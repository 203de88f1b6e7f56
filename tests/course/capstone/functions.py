"""Functions that the tests of the capstone call in a process of current TVM."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_practice.course.capstone.answers import modules_here
from tvm_practice.course.capstone.gate import gate_here
from tvm_practice.course.capstone.scoring import score_here, side_by_side
from tvm_practice.course.capstone.tracks import find_track
from tvm_practice.course.expect import CheckFailed

_PRODUCT, _SIZE = find_track("product"), (5, 7, 3)


def gated(path: str, size: list[int], small: list[int]) -> list[str]:
    """What the gate says of a product at a size, and at a small one."""
    told = []
    for each in (size, small):
        made = modules_here("product", path, [each])
        told.append(gate_here("product", 1, [each], made["modules"])["message"])
    return told


def scored(path: str, size: list[int], roof: dict[str, Any]) -> str:
    """Why a product has no score at a size, "" where it has one."""
    made = modules_here("product", path, [size])
    case = {"class": "square", "size": size, "drawn": False}
    told: str = score_here("product", 1, [case], made["modules"], roof, 1)["message"]
    return told


def timed(kind: str) -> dict[str, Any]:
    """What comes of an answer in Python that is timed.

    Returns:
        {"message": why it is refused, "hits": share of the new inputs that were there before; what
        is called again and again before a sample, to wake the threads, has the same ones}.
    """
    calls = hits = 0
    kept: dict[bytes, np.ndarray] = {}
    last = b""
    ended = 0.0

    def right(inputs: list[np.ndarray]) -> np.ndarray:
        return _PRODUCT.truth(_SIZE, inputs)[0].astype("float32")

    def plain(*tensors: Any) -> None:
        tensors[-1].copyfrom(right([each.numpy() for each in tensors[:-1]]))

    def remembers(*tensors: Any) -> None:
        nonlocal calls, hits, last
        inputs = [each.numpy() for each in tensors[:-1]]
        key = b"".join(each.tobytes() for each in inputs)
        calls += key != last
        hits += key != last and key in kept
        last = key
        if key not in kept:
            kept[key] = right(inputs)
        tensors[-1].copyfrom(kept[key])

    def rests(*tensors: Any) -> None:
        """Computes after a pause, as before a sample, and when a result is looked at last."""
        nonlocal ended
        if time.perf_counter() - ended > 4e-3:
            plain(*tensors)
        ended = time.perf_counter()

    functions: dict[str, Callable[..., None]] = {
        "plain": plain, "remembers": remembers, "rests": rests,
    }  # fmt: skip
    try:
        side_by_side(_PRODUCT, _SIZE, functions[kind], np.random.default_rng(1), 3)
    except CheckFailed as wrong:
        return {"message": str(wrong), "hits": 0.0}
    return {"message": "", "hits": hits / max(calls, 1)}
