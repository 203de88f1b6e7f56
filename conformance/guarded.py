"""Functions of a compiled model, called on operands that lie between pages nobody may touch.

    found = outside(built.runner)      # of a model whose inputs are set

A read or a write beyond an operand ends the process. TVM's own instrumentation of bounds
(tirx.instrument_bound_checkers) inserts nothing in this version, whatever is out of bounds.
"""

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch

Side = Literal["begin", "end"]
_ALIGNMENT = 64  # which compiled code relies on
_PATTERN = 0xA5  # what is around an operand on its own pages
# Functions without an output: the virtual machine's own; one that works in place on the extents
# that are not known before; and one that raises an error where a condition is false.
NOT_KERNELS = ("vm.builtin.", "shape_func", "relax.run.assert_op")
_UNWRITTEN = 0xFF  # NaN in every floating-point type


def outside(runner: Any) -> list[str]:
    """What the functions of one run of a model do wrong with their operands' memory.

    Each is called alone, twice, on copies of its operands: with a page that may not be touched
    before each operand, and with one after it. Its output's memory holds NaN before.

    Args:
        runner: a `running.RelaxRunner` whose inputs are set.

    Returns:
        A line for each function that writes beside an operand, within the 63 bytes that alignment
        leaves, or that has other results than in the model. What is further off ends the process.
    """
    found = []
    for name, function, before, after in _calls(runner):
        for side in ("begin", "end"):
            if reason := _wrong(function, before, after, side):
                found.append(f"{name}, guarded at the {side}: {reason}")
    return found


def _calls(runner: Any) -> Iterator[tuple[str, Any, list[Any], list[Any]]]:
    """Of each call in a run: name, function, and its operands' values before and after."""
    made: list[tuple[str, Any, list[Any], list[Any]]] = []

    def keep(function: Any, name: str, before: bool, result: Any, *operands: Any) -> int:
        if name.startswith(NOT_KERNELS):
            return 0
        values = [each.numpy() if hasattr(each, "numpy") else each for each in operands]
        if before:
            made.append((name, function, values, []))
        elif result is None:
            made[-1][3].extend(values)
        else:  # a function of TVM's runtime that makes its output itself
            made.pop()
        return 0

    with runner.instrumented(keep):
        runner.run()
    yield from made


def _wrong(function: Any, before: list[Any], after: list[Any], side: Side) -> str | None:
    """What is wrong with a call of a function on guarded operands; None for nothing."""
    places = [i for i, each in enumerate(before) if isinstance(each, np.ndarray)]
    with _guarded([before[i] for i in places], side) as memories:
        operands = list(before)
        for i, memory in zip(places, memories, strict=True):
            # The last operand is the output; others may be.
            if i == places[-1] or before[i].tobytes() != after[i].tobytes():
                memory.fill(_UNWRITTEN)
            operands[i] = memory.tensor
        function(*operands)
        for i, memory in zip(places, memories, strict=True):
            if not memory.untouched_around():
                return f"it writes beside operand {i}"
            if memory.content() != after[i].tobytes():
                return f"operand {i} is not what it is in the model"
        del operands
    return None


@contextmanager
def _guarded(arrays: list[np.ndarray], side: Side) -> Iterator[list["_Memory"]]:
    memories = [_Memory(each, side) for each in arrays]
    try:
        yield memories
    finally:
        for each in memories:
            each.free()


class _Memory:
    """A copy of an array that begins, or ends, where pages begin that may not be touched.

    Attributes:
        tensor: the copy, as TVM takes it.
    """

    def __init__(self, array: np.ndarray, side: Side):
        import tvm
        import tvm_ffi

        page = mmap.PAGESIZE
        self._inside = max(1, -(-array.nbytes // page)) * page
        self._mapped = mmap.mmap(-1, self._inside + 2 * page)
        handle = ctypes.c_char.from_buffer(self._mapped)
        first = ctypes.addressof(handle)
        del handle
        for guard in (first, first + page + self._inside):
            _protect(guard, page, 0)
        self._first, self._bytes = first + page, array.nbytes
        ctypes.memset(self._first, _PATTERN, self._inside)
        room = self._inside - array.nbytes
        self._offset = 0 if side == "begin" else room // _ALIGNMENT * _ALIGNMENT
        source = np.ascontiguousarray(array)
        ctypes.memmove(self._first + self._offset, source.ctypes.data, array.nbytes)
        if not array.nbytes:
            self.tensor = tvm.runtime.tensor(source)
            return
        self._region = (ctypes.c_char * array.nbytes).from_address(self._first + self._offset)
        made = torch.frombuffer(self._region, dtype=getattr(torch, str(array.dtype)))
        self.tensor = tvm_ffi.from_dlpack(made.reshape(array.shape))

    def fill(self, byte: int) -> None:
        ctypes.memset(self._first + self._offset, byte, self._bytes)

    def content(self) -> bytes:
        return ctypes.string_at(self._first + self._offset, self._bytes)

    def untouched_around(self) -> bool:
        """Whether nothing was written on the operand's own pages beside it."""
        around = bytearray(ctypes.string_at(self._first, self._inside))
        del around[self._offset : self._offset + self._bytes]
        return around.count(_PATTERN) == len(around)

    def free(self) -> None:
        page = mmap.PAGESIZE
        for guard in (self._first - page, self._first + self._inside):
            _protect(guard, page, mmap.PROT_READ | mmap.PROT_WRITE)
        self._mapped.close()


def _protect(address: int, length: int, protection: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(length), protection):
        raise OSError(ctypes.get_errno(), "mprotect")
