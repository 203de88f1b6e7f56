"""Tracing a model with the values of tensors that depend on none of its inputs.

A model may decide by such a tensor in Python: by whether the mask that it makes itself has a value
above zero, say, or by a flag among its buffers. PyTorch knows the values of single numbers that
the model makes while it traces, but neither of more nor of buffers.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tvm_practice.tvm_export.importers.refusals import DependsOnValues

_MOST = 2**20
"""Elements of the largest tensor whose values are kept."""

_UNDEFINED = (
    *("empty", "empty_strided", "empty_permuted"),
    *("empty_like", "new_empty", "new_empty_strided"),
)
_OF_A_SHAPE = ("ones_like", "zeros_like", "full_like", "new_ones", "new_zeros", "new_full")
_known = ContextVar("_known", default=False)


def require_constants(said: str) -> None:
    """Raise DependsOnValues, which says `said`, outside of `constants_known`.

    Where the values of constants say how large a result is, it must not be left open.
    """
    if not _known.get():
        raise DependsOnValues(said)


@contextmanager
def constants_known(module: Any) -> Iterator[None]:
    """Inside the block, PyTorch traces with the values of tensors that depend on no input.

    Its fake tensors carry the values of constants of one element, and compute with them. Here they
    carry up to `_MOST` elements, and a tensor made of numbers alone is a constant. So are integers,
    flags and single numbers among the module's buffers, until they are written to. Weights are not.

    Args:
        module: the torch.nn.Module that is traced.
    """
    import torch
    from torch._dynamo import config
    from torch._subclasses.fake_tensor import FakeTensorMode

    may_turn, dispatch = FakeTensorMode.may_turn_const, FakeTensorMode._dispatch_impl
    from_tensor = FakeTensorMode.from_tensor
    settings = {id(each): each for each in module.buffers() if _is_setting(each)}

    @functools.wraps(may_turn)
    def may_turn_const(mode: Any, tensor: torch.Tensor) -> bool:
        return may_turn(mode, tensor) or (_is_small(tensor) and not mode.is_our_fake(tensor))

    @functools.wraps(dispatch)
    def dispatched(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        made: Any = dispatch(mode, func, types, args, kwargs)
        if not mode.is_our_fake(made):
            return made
        if _name_of(func) in _UNDEFINED:  # of which PyTorch makes constants, too
            made.constant = None
        if made.constant is not None or not _is_small(made):
            return made
        constant = _constant(func, args, kwargs)
        if constant is None:
            return made
        return mode.fake_tensor_converter.from_real_tensor(mode, constant, make_constant=True)

    @functools.wraps(from_tensor)
    def faked(mode: Any, tensor: torch.Tensor, **given: Any) -> Any:
        made = from_tensor(mode, tensor, **given)
        if id(tensor) in settings and made.constant is None:
            made.constant = tensor.detach().clone()
            mode.fake_tensor_converter.add_constant_storage_mapping(made)
        return made

    mode: Any = FakeTensorMode
    mode.may_turn_const, mode._dispatch_impl = may_turn_const, dispatched
    mode.from_tensor = faked
    token = _known.set(True)
    try:
        # What an earlier trace made, without values, is kept otherwise.
        with config.patch(fake_tensor_cache_enabled=False):
            yield
    finally:
        _known.reset(token)
        mode.may_turn_const, mode._dispatch_impl = may_turn, dispatch
        mode.from_tensor = from_tensor


def _is_setting(buffer: Any) -> bool:
    """Whether a buffer may say which way a model goes: no weight, nor an average of inputs."""
    is_number = buffer.is_floating_point() or buffer.is_complex()
    return _is_small(buffer) and (buffer.numel() == 1 or not is_number)


def _is_small(tensor: Any) -> bool:
    import torch

    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and not tensor._has_symbolic_sizes_strides
        and bool(tensor.numel() <= _MOST)
    )


def _name_of(func: Any) -> str:
    """An operator's name without its namespace and overload."""
    return str(func._schema.name.rpartition("::")[2]) if hasattr(func, "_schema") else ""


def _constant(func: Any, args: Any, kwargs: Any) -> Any:
    """What an operator makes of numbers and shapes alone; None where it takes more, or draws."""
    import torch
    from torch.utils import _pytree as pytree
    from torch.utils._mode_utils import no_dispatch

    if not isinstance(func, torch._ops.OpOverload) or func._schema.is_mutable:
        return None
    name = _name_of(func)
    given = pytree.tree_leaves((args, kwargs))
    tensors = [each for each in given if isinstance(each, torch.Tensor)]
    if (
        name in _UNDEFINED
        or torch.Tag.nondeterministic_seeded in func.tags
        or any(isinstance(each, torch.SymInt | torch.SymFloat | torch.SymBool) for each in given)
        or (tensors and (name not in _OF_A_SHAPE or not all(map(_is_small, tensors))))
    ):
        return None

    def of_its_shape(tensor: Any) -> Any:
        return torch.empty(tuple(tensor.shape), dtype=tensor.dtype)

    with no_dispatch():
        args, kwargs = pytree.tree_map_only(torch.Tensor, of_its_shape, (args, kwargs))
        return func(*args, **kwargs)
