"""The inputs that a model is tried on: described and drawn, or the factory's own, resized.

resized({"input_ids": ids, "attention_mask": mask}, [ExampleTensor(shape=[4, 64])])
completed(model, (ids,), {}, {"input_ids": (1, 128), "attention_mask": (1, 128)})
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    import torch

Dtype = Literal[
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"
]


class ExampleTensor(BaseModel):
    """One input of the model."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    shape: list[int] = Field(description="Extents; an empty list is a scalar.")
    dtype: Dtype | None = Field(
        default=None,
        description="null: the type of the factory's own input, or float32 where it returns none. "
        "Drawn integers are 0 or 1.",
    )

    @model_validator(mode="after")
    def _positive(self) -> "ExampleTensor":
        if any(extent < 1 for extent in self.shape):
            raise ValueError(f"every extent must be at least 1, not {self.shape}")
        return self


def drawn(example: Sequence[ExampleTensor]) -> "tuple[torch.Tensor, ...]":
    """Random inputs. Raises BadInput where memory does not hold them."""
    _require_memory(example)
    return tuple(_draw(each) for each in example)


def resized(given: Any, example: Sequence[ExampleTensor]) -> Any:
    """A factory's own inputs in the shapes of `example`; names, count and types stay.

    Values are repeated along an axis that grows, so that indices stay in their tables and masks
    stay masks. A type that `example` names replaces the input's.

    Args:
        given: tensors within tuples, lists or mappings.
        example: a shape for each tensor, in their order; or one alone, for all tensors of the
            first one's shape. The first axis of the others follows where it was as long, as a
            batch is.

    Raises BadInput where there are neither one nor as many shapes, or one has another number of
    axes; it says what the inputs are.
    """
    from tvm_practice.tvm_export.nested import flattened, mapped

    _require_memory(example)
    tensors = flattened(given)
    if not tensors:
        return drawn(example)
    wanted = list(example) if len(example) == len(tensors) else _spread(example, tensors)
    if wanted is None or any(
        len(each.shape) != tensor.ndim or 0 in tensor.shape
        for each, tensor in zip(wanted, tensors, strict=True)
    ):
        shapes = ", ".join(str(each.shape) for each in example)
        raise BadInput(
            f"the example of shape {shapes} does not fit the factory's inputs, which are "
            f"{_listed(given)}; give one shape, or one for each"
        )
    made = iter(
        [_as_long(tensor, each) for tensor, each in zip(tensors, wanted, strict=True)]
    )  # fmt: skip
    return mapped(lambda _: next(made), given)


def completed(
    module: "torch.nn.Module",
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int | str]] | None,
) -> dict[str, Any]:
    """`kwargs`, and a tensor of ones for each name of `shapes` beyond the example's tensors.

    It has the type of the example's first tensor of that shape, a mask's beside its indices say;
    float32 where no tensor has it.

    Raises BadInput for a name that is no argument of the module's, or that stands in place of an
    extent: nothing says how long the example is.
    """
    import torch

    from tvm_practice.tvm_export.nested import flattened

    given = flattened((args, dict(kwargs)))
    made = dict(kwargs)
    named = list((shapes or {}).items())
    for name, shape in named[len(given) :] if given else ():
        if not _takes(module, name):
            raise BadInput(
                f"input_shapes names {number_of(len(named), 'input')}, the example has "
                f"{len(given)}, and the model takes no {name}"
            )
        if open_extents := [each for each in shape if isinstance(each, str)]:
            raise BadInput(
                f"input_shapes: the example has no tensor for {name}, and {open_extents[0]} is no "
                "number; give it in the example"
            )
        extents = tuple(int(each) for each in shape)
        alike = [each.dtype for each in given if tuple(each.shape) == extents]
        made[name] = torch.ones(extents, dtype=alike[0] if alike else torch.float32)
    return made


def _takes(module: "torch.nn.Module", name: str) -> bool:
    """Whether a module's forward can be given an argument of that name."""
    parameters = inspect.signature(module.forward).parameters.values()
    return any(each.name == name or each.kind is each.VAR_KEYWORD for each in parameters)


def _spread(
    example: Sequence[ExampleTensor], tensors: "Sequence[torch.Tensor]"
) -> list[ExampleTensor] | None:
    """The one shape of `example` for each of the tensors; None if there are several."""
    if len(example) != 1:
        return None
    (first,), before = example, list(tensors[0].shape)
    spread = []
    for tensor in tensors:
        shape = list(tensor.shape)
        if shape == before:
            shape = first.shape
        elif shape and before and first.shape and shape[0] == before[0]:
            shape = [first.shape[0], *shape[1:]]
        dtype = first.dtype if tensor.dtype == tensors[0].dtype else None
        spread.append(ExampleTensor(shape=shape, dtype=dtype))
    return spread


def _as_long(tensor: "torch.Tensor", wanted: ExampleTensor) -> "torch.Tensor":
    """`tensor` cut, or repeated, to the extents that are wanted."""
    import torch

    for axis, extent in enumerate(wanted.shape):
        if extent != tensor.shape[axis]:
            tensor = tensor.index_select(axis, torch.arange(extent) % tensor.shape[axis])
    return tensor if wanted.dtype is None else tensor.to(getattr(torch, wanted.dtype))


def _listed(given: Any) -> str:
    """The tensors of a factory's inputs in words: `input_ids int64 [1, 128], …`."""
    from tvm_practice.tvm_export.nested import flattened

    named = given if isinstance(given, Mapping) else {"": given}
    return ", ".join(
        f"{name} {str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}".strip()
        for name, part in named.items()
        for tensor in flattened(part)
    )


def _require_memory(example: Sequence[ExampleTensor]) -> None:
    import psutil

    wanted = sum(math.prod(each.shape) * 8 for each in example)
    free = psutil.virtual_memory().available
    if wanted > free:
        raise BadInput(
            f"the example inputs are {wanted / 1e9:.3g} GB; this machine has {free / 1e9:.3g} free"
        )


def _draw(tensor: ExampleTensor) -> "torch.Tensor":
    """Standard normal values, or zeros and ones, which any embedding has a row for."""
    import torch

    dtype: torch.dtype = getattr(torch, tensor.dtype or "float32")
    if dtype.is_floating_point:
        return torch.randn(tensor.shape).to(dtype)
    return torch.randint(0, 2, tensor.shape).to(dtype)
