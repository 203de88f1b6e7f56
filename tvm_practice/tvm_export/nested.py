"""Tensors within tuples, lists, mappings and dataclasses, as models take and return them.

A container is opened if PyTorch's pytrees know it (a model library registers its own there), or if
it is a mapping or a dataclass.
"""

import copy
import dataclasses
from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tvm_practice.tvm_export.errors import BadInput

if TYPE_CHECKING:
    import torch

    OnTensor = Callable[[torch.Tensor], Any]


def flattened(given: Any) -> "list[torch.Tensor]":
    """The tensors in a model's result or inputs, in order; what is no tensor is passed over."""
    import torch

    return [each for each in _leaves(given) if isinstance(each, torch.Tensor)]


def mapped(on_tensor: "OnTensor", given: Any) -> Any:
    """`given` with each tensor replaced by `on_tensor`'s result, in `flattened`'s order.

    The containers keep their kind; `given` itself stays as it is.
    """
    import torch
    from torch.utils import _pytree as pytree

    def replaced(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return on_tensor(leaf)
        parts = _parts(leaf)
        if parts is None:
            return leaf
        return _rebuilt(leaf, {name: mapped(on_tensor, part) for name, part in parts.items()})

    return pytree.tree_map(replaced, given)


def copied(given: Any) -> Any:
    """`given` with its tensors copied."""
    return mapped(lambda tensor: tensor.clone(), given)


def require_open(name: str, given: Any) -> None:
    """Raise BadInput if an object in input `name` holds tensors and is no container.

    They would become constants of the compiled model, whatever it is called with later.
    """
    import torch
    from torch.utils import _pytree as pytree

    for leaf in pytree.tree_leaves(given):
        parts = _parts(leaf)
        if parts is not None:
            require_open(name, list(parts.values()))
            fixed = [] if isinstance(leaf, Mapping) else _attributes(leaf, but=parts)
        else:
            fixed = [] if isinstance(leaf, torch.Tensor) else [leaf]
        if _holds_tensor(fixed, set()):
            raise BadInput(
                f"{name} holds tensors within an object of type {type(leaf).__name__}, where they "
                "would become constants; give them in a tuple, a list, a mapping or a dataclass"
            )


def require_dense(what: str, given: Any) -> None:
    """Raise BadInput, which begins with `what`, if one of the tensors in `given` is sparse."""
    import torch

    if any(each.layout != torch.strided for each in flattened(given)):
        raise BadInput(f"{what} a sparse tensor; TVM takes dense ones: tensor.to_dense()")


def _leaves(given: Any) -> Iterator[Any]:
    """What is in no further container, in order."""
    from torch.utils import _pytree as pytree

    for leaf in pytree.tree_leaves(given):
        parts = _parts(leaf)
        if parts is None:
            yield leaf
        else:
            for part in parts.values():
                yield from _leaves(part)


def _parts(leaf: Any) -> dict[Any, Any] | None:
    """What a container that pytrees do not know holds, by name; None of anything else."""
    if isinstance(leaf, Mapping):
        return dict(leaf)
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return {each.name: getattr(leaf, each.name) for each in dataclasses.fields(leaf)}
    return None


def _rebuilt(leaf: Any, parts: dict[Any, Any]) -> Any:
    """A container like `leaf` with other parts, made without a call of its constructor."""
    if isinstance(leaf, Mapping) and not isinstance(leaf, MutableMapping):
        return parts
    made = copy.copy(leaf)
    for name, part in parts.items():
        if isinstance(leaf, Mapping):
            made[name] = part
        else:
            object.__setattr__(made, name, part)  # of a frozen one too
    return made


def _attributes(value: Any, *, but: Container[str] = ()) -> list[Any]:
    """The values of an object's attributes, those named in `but` left out."""
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(value, "__dict__", ()), *slots]
    return [getattr(value, name, None) for name in names if name not in but]


def _holds_tensor(value: Any, seen: set[int]) -> bool:
    """Whether a value is a tensor, or holds one in its items or attributes."""
    import torch

    if isinstance(value, torch.Tensor):
        return True
    # The weights of a module are constants, as they are to be.
    if id(value) in seen or isinstance(value, torch.nn.Module | type | ModuleType):
        return False
    seen.add(id(value))
    inside = _attributes(value)
    if isinstance(value, Mapping):
        inside += value.values()
    elif isinstance(value, tuple | list | set | frozenset):
        inside += value
    return any(_holds_tensor(each, seen) for each in inside)
