"""The ranges of the inputs of a model's convolutions, over a person's data."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.tvm_export.errors import BadInput

if TYPE_CHECKING:
    from tvm_practice.tvm_export.calling import Call


@dataclass
class Range:
    """What one call of a convolution reads.

    Attributes:
        name: of the layer; "" for a weight that is no parameter.
        weight: the shape of its weight.
        smallest, largest: elements of its input.
    """

    name: str
    weight: tuple[int, ...]
    smallest: float
    largest: float


def calibrated(call: "Call", data: Path) -> list[Range]:
    """The range of each convolution over two axes, in the order of their calls.

    Args:
        call: the model; it runs once per input.
        data: a file of inputs, see `draws.read_data`.

    Raises:
        BadInput: the file; a model whose convolutions differ by the input, or read no finite
            numbers.
    """
    import numpy as np

    from tvm_practice.tvm_export.draws import read_data

    found: list[Range] = []
    for trial in read_data(data, call):
        ranges = _run(call, trial.tensors)
        if not found:
            found = ranges
        if [each.weight for each in found] != [each.weight for each in ranges]:
            raise BadInput(f"--calibration: {trial.name} has the model call other convolutions")
        for known, new in zip(found, ranges, strict=True):
            if not np.isfinite([new.smallest, new.largest]).all():
                raise BadInput(f"--calibration: {trial.name} gives no finite input of {new.name}")
            known.smallest = min(known.smallest, new.smallest)
            known.largest = max(known.largest, new.largest)
    return found


def _run(call: "Call", tensors: Sequence[Any]) -> list[Range]:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    names = {
        weight.data_ptr(): name.removeprefix("module.").rpartition(".")[0]
        for name, weight in call.module.named_parameters()
    }
    found: list[Range] = []
    base: Any = TorchDispatchMode  # which has no types

    class Watch(base):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func.overloadpacket is torch.ops.aten.convolution and args[1].ndim == 4:
                x, weight = args[:2]
                shape, name = tuple(weight.shape), names.get(weight.data_ptr(), "")
                found.append(Range(name, shape, float(x.min()), float(x.max())))
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), Watch():
        call.module(*(each.clone() for each in tensors))
    return found
