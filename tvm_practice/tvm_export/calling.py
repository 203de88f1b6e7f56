"""A person's module as the frontends want it: tensors by position in, a tuple of tensors out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.inputs import Input
from tvm_practice.tvm_export.nested import flattened, mapped, require_dense, require_open
from tvm_practice.wording import number_of


@dataclass(frozen=True)
class Call:
    """How a model is called, with nested arguments laid flat.

    Attributes:
        module: takes `tensors` by position and returns a tuple of tensors, in the order of
            `flattened`.
        tensors: the example inputs.
        names: of the tensors: the argument's where it is given by name, else input_0, input_1, …
        dynamic: of each tensor, the axes that any extent may be given for, and their names.
    """

    module: nn.Module
    tensors: tuple[torch.Tensor, ...]
    names: tuple[str, ...]
    dynamic: tuple[dict[int, str], ...] = ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What a compiled model of it takes."""
        found = []
        for position, (name, tensor) in enumerate(zip(self.names, self.tensors, strict=True)):
            open_axes = self.dynamic[position] if self.dynamic else {}
            shape = tuple(open_axes.get(axis, extent) for axis, extent in enumerate(tensor.shape))
            found.append(Input(name, shape, str(as_array(tensor).dtype)))
        return tuple(found)


class Flat(nn.Module):
    """`module` as a function from tensors to tensors; what is no tensor in its inputs is fixed.

    Args:
        module: anything that can be called; left as it is.
        args, kwargs: example inputs: tensors, and containers of them.
        copies: whether the inputs are copied first, for a module that writes into them.
    """

    def __init__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], *, copies: bool
    ):
        super().__init__()
        self.module = module
        self._given = (args, kwargs)
        self._copies = copies

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = iter([each.clone() for each in tensors] if self._copies else tensors)
        args, kwargs = mapped(lambda _: next(given), self._given)
        return tuple(flattened(self.module(*args, **kwargs)))


def as_call(
    module: nn.Module,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    copies: bool = False,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> Call:
    """`module`, as it would be called with `args` and `kwargs`, as a function of tensors alone.

    Tensors within containers are inputs too, see `nested`. Numbers, strings and None become part
    of the model. Raises BadInput for a sparse tensor, and for an object that holds tensors and is
    no container.

    Args:
        module: left as it is.
        args, kwargs: example inputs.
        copies: whether the inputs are copied first, for a module that writes into them.
        shapes: names of the tensors, in their order, and their shapes; a name in place of an
            extent leaves it open. Raises BadInput if they are not the example's.
    """
    kwargs = kwargs or {}
    for place, value in enumerate(args):
        require_open(f"input {place}", value)
    for name, value in kwargs.items():
        require_open(f"input {name}", value)
    require_dense("the example has", (args, kwargs))
    positional = [f"input_{index}" for index in range(len(flattened(args)))]
    named = [
        name if len(inside) == 1 else f"{name}_{index}"
        for name, value in kwargs.items()
        for inside in [flattened(value)]
        for index in range(len(inside))
    ]
    flat = Flat(module, args, kwargs, copies=copies)
    flat.training = module.training
    # torch.export would take an input for the module's own tensor, or two inputs for one.
    known = {id(each) for each in _tensors_of(module)}
    tensors: tuple[torch.Tensor, ...] = ()
    for each in flattened((args, kwargs)):
        tensors += (each.detach().clone() if id(each) in known else each,)
        known.add(id(each))
    names = tuple(positional + named)
    if shapes is None:
        return Call(flat, tensors, names)
    return Call(flat, tensors, tuple(shapes), _dynamic(tensors, shapes))


def _tensors_of(module: nn.Module) -> list[torch.Tensor]:
    """A module's parameters and buffers, and the tensors that are its plain attributes."""
    held = [*module.parameters(), *module.buffers()]
    for each in module.modules():
        held += [value for value in vars(each).values() if isinstance(value, torch.Tensor)]
    return held


def _dynamic(
    tensors: Sequence[torch.Tensor], shapes: Mapping[str, Sequence[int | str]]
) -> tuple[dict[int, str], ...]:
    """Of each tensor, the axes whose extent has a name. Raises BadInput for another shape."""
    if len(shapes) != len(tensors):
        raise BadInput(
            f"input_shapes names {number_of(len(shapes), 'input')}, the example has {len(tensors)}"
        )
    for (name, shape), tensor in zip(shapes.items(), tensors, strict=True):
        given = [
            extent if isinstance(wanted, str) else wanted
            for wanted, extent in zip(shape, tensor.shape, strict=False)
        ]
        if len(shape) != tensor.ndim or given != list(tensor.shape):
            raise BadInput(
                f"input_shapes: {name} is {tuple(shape)}, the example {tuple(tensor.shape)}"
            )
    return tuple(
        {axis: each for axis, each in enumerate(shape) if isinstance(each, str)}
        for shape in shapes.values()
    )


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array that shares its memory; bfloat16 as ml_dtypes has it."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Inside the block, `nn.TransformerEncoder` computes as torch.export and torch.compile do.

    Else it makes nested tensors of a padded batch in inference mode, and zeros of padded places.
    """
    mha = torch.backends.mha
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)


@contextmanager
def masks_as_given() -> Iterator[None]:
    """Inside the block, `nn.TransformerEncoder` and `nn.TransformerDecoder` use a mask as it is.

    Else they ask whether its values are a causal mask's, for which PyTorch has faster kernels.
    """
    from torch.nn.modules import transformer

    def as_hinted(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
        return is_causal is True

    before = transformer._detect_is_causal_mask
    transformer._detect_is_causal_mask = as_hinted
    try:
        yield
    finally:
        transformer._detect_is_causal_mask = before


@contextmanager
def in_eval_mode(module: nn.Module) -> Iterator[None]:
    """Inside the block every part of `module` is in eval mode; after it each is as it was."""
    modes = [(each, each.training) for each in module.modules()]
    evaluate(module)
    try:
        yield
    finally:
        for each, training in modes:
            each.training = training


def evaluate(module: nn.Module) -> nn.Module:
    """The module in eval mode, itself; an exported program, which has no modes, as it is."""
    try:
        return module.eval()
    except NotImplementedError:
        for each in module.modules():
            each.training = False
        return module
