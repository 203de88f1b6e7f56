"""Inputs that an export is verified on: the example, drawn ones, a person's own.

for trial in trials(call, bounds={"input_ids": 30522}): trial.tensors
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tvm_practice.tvm_export.calling import Call, as_array
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.inputs import disagreement, read_npz, require
from tvm_practice.tvm_export.run_time_checks.extents import OpenExtents

DRAWN = 2
"""How many drawn inputs an export is verified on, beside the example."""


@dataclass(frozen=True)
class Trial:
    """Inputs to verify on.

    Attributes:
        name: what a message calls them.
        tensors: the model's inputs, in its order.
    """

    name: str
    tensors: tuple[torch.Tensor, ...]


def trials(
    call: Call,
    *,
    bounds: Mapping[str, int],
    extents: OpenExtents | None = None,
    data: Path | None = None,
) -> Iterator[Trial]:
    """What may be tried besides the example, the most telling first.

    There are more than `DRAWN`, because a model may refuse some: extents that it was not made
    for, or values.

    Args:
        call: the model and its example.
        bounds: what each value of an input must be below, as far as it indexes something.
        extents: that the compiled model takes, of axes of which it does not take all.
        data: a file of the person's own inputs, in place of drawn ones; see `read_data`.
    """
    if data is not None:
        yield from read_data(data, call)
        return
    for seed, chosen in enumerate(_extents(call), start=1):
        generator = torch.Generator().manual_seed(seed)
        tensors = tuple(
            _draw(tensor, each.shape or (), chosen, bounds.get(each.name), generator)
            for tensor, each in zip(call.tensors, call.inputs, strict=True)
        )
        shapes = {name: each.shape for name, each in zip(call.names, tensors, strict=True)}
        if extents and not extents.allow(shapes):
            continue
        told = "".join(f", {name} = {extent}" for name, extent in chosen.items())
        yield Trial(f"random inputs of seed {seed}{told}", tensors)


def read_data(file: Path, call: Call) -> list[Trial]:
    """A person's inputs for a model.

    Args:
        file: numpy's .npz with an array for each input, by name: of the input's shape, or with one
            more axis in front, over which there are then several inputs.
        call: the model.

    Raises:
        BadInput: no such file, an input that it lacks, a name that is no input's, a shape or a type
            that does not fit; one line.
    """
    arrays = read_npz(file)
    if arrays.keys() != set(call.names):
        raise BadInput(
            f"{file} holds {', '.join(sorted(arrays)) or 'nothing'}; the model's inputs are "
            f"{', '.join(call.names)}"
        )
    ranks = {name: tensor.ndim for name, tensor in zip(call.names, call.tensors, strict=True)}
    several = all(arrays[name].ndim == rank + 1 for name, rank in ranks.items())
    counts = {len(array) for array in arrays.values()} if several else {1}
    if len(counts) > 1 or not min(counts):
        raise BadInput(f"{file}: the first axes have {sorted(counts)} inputs, not the same number")
    found = []
    for index in range(counts.pop()):
        given = {name: array[index] if several else array for name, array in arrays.items()}
        where = f"{file}, input {index}" if several else str(file)
        found.append(Trial(where, _fitted(given, call, where)))
    return found


def _fitted(given: Mapping[str, np.ndarray], call: Call, where: str) -> tuple[torch.Tensor, ...]:
    """Arrays as tensors of the model's types. Raises BadInput if one is another input's."""
    tensors = []
    for wanted, example in zip(call.inputs, call.tensors, strict=True):
        array = given[wanted.name]
        try:
            tensor = torch.from_numpy(np.ascontiguousarray(array)).reshape(array.shape)
        except TypeError:
            raise BadInput(f"{where}: {wanted.name} is of type {array.dtype}") from None
        if _kind(tensor) == _kind(example):  # of another width, say: numpy has no bfloat16
            tensor = tensor.to(example.dtype)
        try:
            require(wanted, as_array(tensor))
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from None
        tensors.append(tensor)
    arrays = dict(zip(call.names, map(as_array, tensors), strict=True))
    if problem := disagreement(call.inputs, arrays):
        raise BadInput(f"{where}: {problem}")
    return tuple(tensors)


def _kind(tensor: torch.Tensor) -> str:
    if tensor.dtype == torch.bool:
        return "bool"
    return "real" if tensor.is_floating_point() else "integer"


def _extents(call: Call) -> list[dict[str, int]]:
    """Values of the open extents to try, by name; nothing to say of a model without any.

    First some of which each is another, in case the model takes one for the other, then all 1.
    """
    example = {
        each: tensor.shape[axis]
        for tensor, axes in zip(call.tensors, call.dynamic, strict=False)
        for axis, each in axes.items()
    }
    if not example:
        return [{}] * DRAWN
    chosen = (
        {name: extent + place for place, (name, extent) in enumerate(example.items(), start=1)},
        dict.fromkeys(example, 1),
        {name: 2 * extent for name, extent in example.items()},
        {name: 3 * extent for name, extent in example.items()},
    )
    return [each for each in chosen if each != example]


def _draw(
    example: torch.Tensor,
    shape: Sequence[int | str],
    extents: Mapping[str, int],
    bound: int | None,
    generator: torch.Generator,
) -> torch.Tensor:
    """A tensor like the example, of other values.

    Indices are drawn from all that are allowed. Other values are the example's in another order,
    so that a mask stays a mask, and real ones are scaled besides by 0.5 to 1.5 each, so that what
    is positive stays so. Where a real example is all zero, which tells nothing, they are normal.
    """
    wanted = [extents.get(each, 1) if isinstance(each, str) else each for each in shape]
    if bound is not None and bound > 0:
        return torch.randint(0, bound, wanted, generator=generator).to(example.dtype)
    if not example.numel():
        return example.new_zeros(wanted)
    if _kind(example) == "real" and not example.any():
        return torch.randn(wanted, generator=generator).to(example.dtype)
    chosen = torch.randint(0, example.numel(), wanted, generator=generator)
    drawn = example.detach().reshape(-1)[chosen]
    if _kind(example) != "real":
        return drawn
    factors = 0.5 + torch.rand(wanted, generator=generator)
    return (drawn.double() * factors).to(example.dtype)
