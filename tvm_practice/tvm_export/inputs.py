"""What a compiled model takes, and whether given values are that.

require(Input("image", ("batch", 3, 224, 224), "float32"), array)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

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


def read_npz(file: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name. Raises BadInput if it is not one."""
    try:
        # numpy leaves a file open that it refuses.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as opened:
            return {name: opened[name] for name in opened.files}
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror or error}") from None
    except (ValueError, AttributeError, BadZipFile) as error:
        raise BadInput(f"{file} is not an .npz file of arrays: {error}") from None


def fitted(wanted: Input, given: np.ndarray) -> np.ndarray:
    """An array as an input of a model: of its type, where that is another width of the same kind.

    Raises BadInput for another shape or kind, or a whole number that the type does not hold.
    """
    if wanted.dtype is not None and _kind(str(given.dtype)) == _kind(wanted.dtype):
        converted = given.astype(_dtype(wanted.dtype))
        if _kind(wanted.dtype) == "integer" and not np.array_equal(converted, given):
            raise BadInput(f"{wanted.name} has values that {wanted.dtype} does not hold")
        given = converted
    require(wanted, given)
    return given


def drawn(
    wanted: Sequence[Input], extents: Mapping[str, int], *, seed: int = 0
) -> dict[str, np.ndarray]:
    """Inputs for a model whose values do not matter, as those of a measurement.

    Real ones are normal. Whole numbers are 0 or 1, which any table has if they are indices.

    Args:
        wanted: the model's inputs.
        extents: of the axes that are left open; 1 where none is given.
        seed: of the values.

    Raises BadInput for a name that is no open extent, or an input whose shape is not known.
    """
    names = {extent for each in wanted for extent in each.shape or () if isinstance(extent, str)}
    if unknown := sorted(extents.keys() - names):
        known = f"; the open ones are {', '.join(sorted(names))}" if names else ""
        raise BadInput(f"the model has no open extent {unknown[0]}{known}")
    generator = np.random.default_rng(seed)
    found = {}
    for each in wanted:
        if each.shape is None or each.dtype is None:
            raise BadInput(f"the shape of {each.name} is not known; give inputs")
        shape = [extents.get(axis, 1) if isinstance(axis, str) else axis for axis in each.shape]
        real = _kind(each.dtype) == "real"
        values = generator.standard_normal(shape) if real else generator.integers(0, 2, shape)
        found[each.name] = np.asarray(values).astype(_dtype(each.dtype))
    return found


def _dtype(name: str) -> np.dtype[Any]:
    """numpy's type of a name, bfloat16 included."""
    if name == "bfloat16":
        import ml_dtypes  # noqa: F401  # which gives numpy the name
    found: np.dtype[Any] = np.dtype(name)
    return found


def _kind(dtype: str) -> str:
    if dtype.startswith(("float", "bfloat")):
        return "real"
    return "integer" if dtype.startswith(("int", "uint")) else dtype
