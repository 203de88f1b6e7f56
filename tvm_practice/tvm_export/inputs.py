"""What a compiled model takes, and whether given values are that.

require(Input("image", ("batch", 3, 224, 224), "float32"), array)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_practice.tvm_export.errors import BadInput


@dataclass(frozen=True)
class Input:
    """One input of a compiled model.

    Attributes:
        name: the argument's where the example gave it by name, else input_0, input_1, …
        shape: extents; a name is one left open, at least 1, and the same wherever it occurs.
            None where it is not known.
        dtype: numpy's name of its type; None where it is not known.
    """

    name: str
    shape: tuple[int | str, ...] | None
    dtype: str | None

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> "Input":
        """An input as metadata.json has it."""
        shape = described["shape"]
        return cls(described["name"], None if shape is None else tuple(shape), described["dtype"])


def require(wanted: Input, given: np.ndarray) -> None:
    """Raise BadInput if an array is of another shape or type than an input, naming both."""
    if wanted.shape is None or wanted.dtype is None:
        return
    fits = str(given.dtype) == wanted.dtype and given.ndim == len(wanted.shape)
    if not fits or not all(map(_allowed, wanted.shape, given.shape)):
        raise BadInput(
            f"{wanted.name} is {_spelled(given.dtype, given.shape)}, the model takes "
            f"{_spelled(wanted.dtype, wanted.shape)}"
        )


def disagreement(wanted: Sequence[Input], given: Mapping[str, np.ndarray]) -> str | None:
    """Which two inputs have another extent where a name says that it is one; None if none have.

    Args:
        wanted: a model's inputs.
        given: an array of the right shape and type for each, by name.
    """
    bound: dict[str, tuple[str, int]] = {}
    for each in wanted:
        for open_extent, extent in zip(each.shape or (), given[each.name].shape, strict=False):
            if isinstance(open_extent, int):
                continue
            first, before = bound.setdefault(open_extent, (each.name, extent))
            if before != extent:
                return f"{open_extent} is {before} in {first} and {extent} in {each.name}"
    return None


def _allowed(wanted: int | str, extent: int) -> bool:
    return extent >= 1 if isinstance(wanted, str) else extent == wanted


def _spelled(dtype: object, shape: Sequence[int | str]) -> str:
    return f"{dtype} [{', '.join(map(str, shape))}]"
