"""Calls of a build on PyTorch's tensors, which share their memory with TVM's."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

# What TVM's code takes for granted of every tensor's address, in bytes.
_ALIGNMENT = 64

Run = Callable[[Sequence[torch.Tensor]], Any]


class TensorRunner:
    """A compiled Relax module as a function of PyTorch's tensors.

    One call at a time: the virtual machine keeps its state in itself.

    Args:
        executable: what `tvm.compile` made, or `tvm.runtime.load_module`.
        single: whether it returns one tensor and no tuple.
        orders: of each output, its axes from the one of the largest stride to the smallest, or
            None where it is contiguous as TVM makes it. PyTorch's next operator may rely on it.
    """

    def __init__(self, executable: Any, *, single: bool, orders: Sequence[Sequence[int] | None]):
        import tvm
        from tvm import relax

        self._machine = relax.VirtualMachine(executable, tvm.cpu())
        self._main = self._machine["main"]
        self._single = single
        self._orders = orders
        self._one_at_a_time = threading.Lock()
        self._constants: frozenset[int] = frozenset()

    def find_constants(self, tensors: Sequence[torch.Tensor]) -> None:
        """Learn, by two calls, which outputs are constants: the caller must not get at those."""
        ready = [_ready(each) for each in tensors]
        first, second = self._outputs(ready), self._outputs(ready)
        self._constants = frozenset(
            one.data_ptr()
            for one, other in zip(first, second, strict=True)
            if one.data_ptr() == other.data_ptr()
        )

    def __call__(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The outputs, in memory of their own: one tensor, or a list. Raises what TVM raises."""
        ready = [_ready(each) for each in tensors]
        outputs = self._outputs(ready)
        # A copy of an input is the input itself to TVM, and a reshaped tensor is the same one.
        taken = {each.data_ptr() for each in ready}
        taken |= self._constants
        for index, (output, order) in enumerate(zip(outputs, self._orders, strict=True)):
            address = output.data_ptr()
            if order is not None:
                outputs[index] = _in_order(output, order)
            elif address in taken:
                outputs[index] = output.clone()
            taken.add(address)
        return outputs[0] if self._single else outputs

    def _outputs(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        with self._one_at_a_time:
            result = self._main(*tensors)
        outputs = [result] if self._single else list(result)
        # A call without a tensor of PyTorch's returns TVM's.
        return [each if isinstance(each, torch.Tensor) else from_dlpack(each) for each in outputs]


def _ready(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor as TVM's code wants it: contiguous, aligned, and no part of autograd."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if not tensor.is_contiguous():
        return tensor.contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()


def _in_order(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """A copy whose strides fall in the given order of the axes."""
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(*order).clone(memory_format=torch.contiguous_format).permute(*back)
