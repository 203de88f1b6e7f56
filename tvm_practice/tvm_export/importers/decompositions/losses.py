"""Losses that PyTorch computes in parts, to spare memory: here, the whole of their formulas.

One more replaces a decomposition of PyTorch's that gives other values than its operator.
"""

import math
from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    margin: dict[Any, Rule] = {
        torch.ops.aten.multilabel_margin_loss_forward.default: _multilabel_margin_loss
    }
    try:
        import torch.nn.modules.linear_cross_entropy  # which defines the operators
    except ModuleNotFoundError:  # before PyTorch 2.13
        return margin
    ops = torch.ops.torch_nn
    return {
        **margin,
        ops._linear_cross_entropy_batch_chunked.default: _linear_cross_entropy,
        ops._linear_cross_entropy_batch_chunked_no_reduction.default: _each_linear_cross_entropy,
    }


def _multilabel_margin_loss(x: Any, target: Any, reduction: int) -> tuple[Any, Any]:
    """Each row's labels end before its first -1; PyTorch's rule counts those after it, too."""
    import torch

    rows, labels = ((each[None] if each.ndim < 2 else each) for each in (x, target))
    classes = torch.arange(rows.shape[1], device=x.device)
    is_label = torch.cumsum((labels == -1).to(torch.int64), 1) == 0
    named = is_label.unsqueeze(2) & (labels.unsqueeze(2) == classes)
    is_target = named.any(1)
    score = torch.gather(rows, 1, torch.where(is_label, labels, 0))
    margin = (1 - score.unsqueeze(2) + rows.unsqueeze(1)).clamp(min=0)
    counted = is_label.unsqueeze(2) & torch.logical_not(is_target).unsqueeze(1)
    loss = torch.where(counted, margin, 0).sum((1, 2)) / rows.shape[1]
    if reduction:  # 1 is the mean, 2 the sum
        loss = loss.mean() if reduction == 1 else loss.sum()
    elif x.ndim < 2:
        loss = loss[0]
    return loss, is_target.to(x.dtype).reshape(target.shape)


def _linear_cross_entropy(
    x: Any,
    linear_weight: Any,
    target: Any,
    bias: Any,
    weight: Any,
    reduction: str,
    ignored: int,
    label_smoothing: float,
    chunk: int,
    acc_policy: str,
    acc_dtype: Any,
    *gradients: bool,
) -> Any:
    """The loss; its gradients, which only training reads, are NaN if asked for, else empty."""
    import torch

    logits = _logits(x, linear_weight, bias)
    loss = torch.nn.functional.cross_entropy(
        logits,
        target,
        None if weight is None else weight.to(logits.dtype),
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    shapes = (x.shape, linear_weight.shape, linear_weight.shape[:-1])
    return loss.to(x.dtype), *(
        x.new_full(shape if asked else (0,) * len(shape), math.nan)
        for shape, asked in zip(shapes, gradients[1:], strict=True)
    )


def _each_linear_cross_entropy(
    x: Any,
    linear_weight: Any,
    target: Any,
    bias: Any,
    weight: Any,
    ignored: int,
    chunk: int,
    acc_policy: str,
    acc_dtype: Any,
) -> Any:
    return _linear_cross_entropy(
        x, linear_weight, target, bias, weight, "none", ignored, 0.0, chunk, acc_policy, acc_dtype,
        False, False, False, False,
    )[0]  # fmt: skip


def _logits(x: Any, weight: Any, bias: Any) -> Any:
    """In at least float32, as PyTorch accumulates 16-bit numbers."""
    import torch

    wide = torch.promote_types(x.dtype, torch.float32)
    product = x.to(wide) @ weight.to(wide).mT
    return product if bias is None else product + bias.to(wide)
