"""What a check tries: the arguments that it calls the reference answer with.

Called by engines.Session in a process of the exercise's engine.
"""

import contextlib
import inspect
import types
from collections.abc import Callable
from typing import Any

from tvm_practice.course.catalog import SOLUTIONS, find
from tvm_practice.course.expect import draw_from
from tvm_practice.course.grading import load_source

Plain = int | float | str | bool | None


def arguments_tried(exercise: str, seed: int) -> list[dict[str, Plain]]:
    """The plain values of each call's arguments, by name; an argument left out is its default."""
    found = find(exercise)
    reference = getattr(load_source(found.phase, SOLUTIONS), found.name)
    signature = inspect.signature(reference)
    calls: list[dict[str, Plain]] = []

    def noting(*arguments: Any, **options: Any) -> Any:
        with contextlib.suppress(TypeError):
            bound = signature.bind(*arguments, **options)
            bound.apply_defaults()
            seen: dict[str, Plain] = {}
            for name, value in bound.arguments.items():
                seen |= _plain(name, value)
            calls.append(seen)
        return reference(*arguments, **options)

    draw_from(seed)
    found.check(_with_globals(noting, reference))
    return calls


def _with_globals(function: Callable[..., Any], of: Any) -> Callable[..., Any]:
    """`function` with the globals of another: a check may replace a clock there."""

    def call(*arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    return types.FunctionType(call.__code__, of.__globals__, of.__name__, None, call.__closure__)


def _plain(name: str, value: Any) -> dict[str, Plain]:
    """A number or a text itself, the length of a collection, the extents of an array or tensor."""
    if value is None or isinstance(value, bool | int | float | str):
        return {name: value}
    if hasattr(value, "shape"):
        with contextlib.suppress(TypeError, ValueError):  # extents that are symbols
            extents = [int(each) for each in value.shape]
            return {f"{name}.shape[{at}]": extent for at, extent in enumerate(extents)}
    if hasattr(value, "_asdict"):
        return {f"{name}.{field}": each for field, each in value._asdict().items()}
    if isinstance(value, list | tuple | dict):
        return {f"len({name})": len(value)}
    return {}
