"""Models that compute gradients of their own: forces from an energy, a network's Jacobian.

torch.export meets `torch.autograd.grad` and `torch.func.grad` before PyTorch has computed them. A
trace of the operators that PyTorch then calls, derivatives among them, is a model without them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm_practice.tvm_export.importers.refusals import Refused


class TakesGradients(Exception):
    """The model that is exported computes a gradient."""


@contextmanager
def gradients_noticed() -> Iterator[list[str]]:
    """Inside the block, `TakesGradients` is raised where PyTorch begins to compute a gradient.

    It gives a list that then has an element, whatever is made of the exception.
    """
    import torch._functorch.eager_transforms
    import torch.autograd

    begun: list[tuple[Any, str]] = [
        (torch.autograd, "_engine_run_backward"),
        (torch._functorch.eager_transforms, "grad_increment_nesting"),
    ]
    kept = [getattr(module, name) for module, name in begun]

    noticed: list[str] = []

    def notice(*args: Any, **kwargs: Any) -> Any:
        noticed.append("a gradient")
        raise TakesGradients

    try:
        for module, name in begun:
            setattr(module, name, notice)
        yield noticed
    finally:
        for (module, name), function in zip(begun, kept, strict=True):
            setattr(module, name, function)


def gradients_written_out(model: Any, example: Sequence[Any]) -> Any:
    """A module that computes what `model` does, its gradients by operators like the rest.

    It is for the example's extents, and takes the example's branches.

    Args:
        model: a torch.nn.Module.
        example: the tensors that it is called with.
    """
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.attention import SDPBackend, sdpa_kernel

    settings: Any = {"tracing_mode": "fake", "_allow_non_fake_inputs": True}
    with sdpa_kernel(SDPBackend.MATH):  # the others' derivatives are operators without a rule
        return make_fx(model, decomposition_table=_derivatives(), **settings)(*example)


def _derivatives() -> dict[Any, Callable[..., Any]]:
    """Rules by operator, of operators that PyTorch calls for derivatives alone."""
    import torch
    from torch._decomp import global_decomposition_table

    aten = torch.ops.aten
    rules = {
        operator: rule
        for operator, rule in global_decomposition_table["post_autograd"].items()
        if isinstance(operator, torch._ops.OpOverload)
        and operator._schema.name.endswith("_backward")
    }
    return rules | {
        aten.convolution_backward.default: _of_convolution,
        aten._cdist_backward.default: _of_distances,
    }


def _of_convolution(
    slope: Any,
    x: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """The derivative by the input: the convolution transposed, or one that is not if it was."""
    import torch

    if output_mask[1] or output_mask[2]:
        raise Refused("the gradient of a convolution by its weights")
    left = [0] * len(stride)
    if not transposed:
        left = [
            x.shape[axis + 2]
            - ((slope.shape[axis + 2] - 1) * stride[axis] - 2 * padding[axis])
            - (dilation[axis] * (weight.shape[axis + 2] - 1) + 1)
            for axis in range(len(stride))
        ]
    found = torch.ops.aten.convolution.default(
        slope, weight, None, stride, padding, dilation, not transposed, left, groups
    )
    return found, None, None


def _of_distances(slope: Any, one: Any, other: Any, p: float, distances: Any) -> Any:
    """The derivative by the first points of `torch.cdist`, of the sum's or the usual distance."""
    import torch

    apart = one.unsqueeze(-2) - other.unsqueeze(-3)
    if p == 1:
        directions = apart.sign()
    elif p == 2:
        length = distances.unsqueeze(-1)
        directions = torch.where(length == 0, 0, apart / length)
    else:
        raise Refused(f"the gradient of cdist with p={p}")
    return (slope.unsqueeze(-1) * directions).sum(-2)
