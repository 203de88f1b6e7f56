"""Arrays between strips of memory that no kernel may touch: what is beside a tensor shows it."""

import itertools
import math
from typing import Any

import numpy as np

from tvm_practice import engines
from tvm_practice.course.expect import expect

# Elements of a strip: as many as the tiles that stick out of a check's matrices.
_STRIP = 1 << 13
_ALIGNMENT = 64  # bytes, which TVM's kernels rely on
_numbers = itertools.count()


class Fenced:
    """A tensor of the active engine on the CPU, with a strip of memory on each side of it.

    The strips hold NaN, so that a kernel that reads beside the tensor has NaN, and the largest
    number of a type that has none. What a kernel writes there `expect_kept` finds.

    Attributes:
        array: the tensor's values, which the kernel changes.
        tensor: what a compiled function takes.
    """

    def __init__(self, values: np.ndarray) -> None:
        kind = values.dtype
        size = math.prod(values.shape)
        memory = np.full(size + 2 * _STRIP + _ALIGNMENT, _beyond(kind), kind)
        begin = _STRIP + (-memory.ctypes.data) % _ALIGNMENT // kind.itemsize
        self._strips = memory[:begin], memory[begin + size :]
        self._kept = [strip.tobytes() for strip in self._strips]
        self.array = memory[begin : begin + size].reshape(values.shape)
        self.array[...] = values
        self.tensor = _tensor(self.array)

    def is_whole(self) -> bool:
        """Whether nothing wrote beside the tensor."""
        return self._kept == [strip.tobytes() for strip in self._strips]

    def expect_kept(self, name: str) -> None:
        """Nothing wrote beside the tensor, which `name` is."""
        expect(
            self.is_whole(),
            expected=f"only elements of {name} written",
            seen=f"memory beside {name} was changed",
            look="a bound that is missing where a part does not divide the size: split guards the "
            "block unless it is told not to",
        )


def why_nan(values: np.ndarray) -> str:
    """Where else to look if a kernel's result of finite numbers has NaN; "" if it has none.

    `values` were NaN before the kernel ran, as the strips beside its inputs are.
    """
    if not np.isnan(values).any():
        return ""
    return (
        "; memory beside the inputs and elements that nothing writes hold NaN: split guards the "
        "block where a part does not divide the size, unless it is told not to"
    )


def _beyond(kind: np.dtype) -> Any:
    """What a strip holds: of float32 another NaN each time, since what is read may be written."""
    if kind == np.float32:
        return (np.uint32(0x7FC00001) + np.uint32(next(_numbers) % 0x3FFFF)).view("float32")
    return np.nan if kind.kind == "f" else np.iinfo(kind).max


def _tensor(array: np.ndarray) -> Any:
    """The engine's tensor of the same memory."""
    import tvm

    if engines.active() == engines.CLASSIC:
        return tvm.nd.from_dlpack(array.__dlpack__())
    return tvm.runtime.from_dlpack(array)
