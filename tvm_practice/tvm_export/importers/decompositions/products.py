"""Products of matrices, exponentials of matrices, and distances."""

import math
from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten.convolution.default: _transposed,
        aten._convolution.default: _convolution,
        aten._convolution.deprecated: _convolution,
        aten.mm.default: _of_nothing,
        aten.bmm.default: _of_nothing,
        aten.addbmm.default: _addbmm,
        aten._weight_int8pack_mm.default: _by_bytes,
        aten._cdist_forward.default: _cdist,
        aten._pdist_forward.default: _pdist,
        aten._trilinear.default: _trilinear,
        aten.linalg_matrix_exp.default: _matrix_exp,
    }


def _convolution(*args: Any) -> Any:
    """The convolution, whose last arguments choose a library."""
    import torch

    return torch.ops.aten.convolution.default(*args[:9])


def _of_nothing(x: Any, y: Any) -> Any:
    """Zeros where a product has no terms: TVM stores no vectors of bfloat16 without a sum."""
    if not isinstance(x.shape[-1], int) or x.shape[-1] != 0:
        return NotImplemented
    return x.new_zeros((*x.shape[:-1], y.shape[-1]))


def _addbmm(x: Any, one: Any, other: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    import torch

    product = torch.bmm(one, other).sum(0)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product.expand_as(x + product)
    return (x if beta == 1 else x * beta) + product


def _by_bytes(x: Any, weight: Any, scales: Any) -> Any:
    """By an (outputs, inputs) matrix of int8, each row of which has a scale."""
    import torch

    wide = torch.float32 if x.dtype == torch.bfloat16 else x.dtype
    product = x.to(wide) @ weight.to(wide).T
    return (product * scales.to(wide)).to(x.dtype)


def _cdist(x: Any, y: Any, p: float, compute_mode: Any = None) -> Any:
    return _distance(x.unsqueeze(-2) - y.unsqueeze(-3), p)


def _pdist(x: Any, p: float = 2.0) -> Any:
    import torch

    rows = x.shape[0]
    if isinstance(rows, int):
        first, second = torch.triu_indices(rows, rows, 1).unbind(0)
    else:
        first, second = _pairs(rows)
    return _distance(x.index_select(0, first) - x.index_select(0, second), p)


def _pairs(rows: Any) -> tuple[Any, Any]:
    """Both rows of each pair, the smaller first, of an open number of them.

    PyTorch's `triu_indices` looks at the number. The root is rounded, and then the row corrected.
    """
    import torch

    place, twice = torch.arange(rows * (rows - 1) // 2), 2 * rows - 1

    def begin(row: Any) -> Any:
        return torch.div(row * (twice - row), 2, rounding_mode="floor")

    root = torch.sqrt((twice * twice - 8 * place).to(torch.float64))
    first = ((twice - root) / 2).to(torch.int64)
    first = torch.where(begin(first) > place, first - 1, first)
    first = torch.where(begin(first + 1) <= place, first + 1, first)
    return first, place - begin(first) + first + 1


def _distance(apart: Any, p: float) -> Any:
    """The norm of a difference over its last axis."""
    import torch

    size = torch.abs(apart)
    if p == 0:
        return (size != 0).to(apart.dtype).sum(-1)
    if apart.shape[-1] == 0:
        return size.sum(-1)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return torch.sqrt((apart * apart).sum(-1))
    return size.amax(-1) if p == math.inf else torch.pow(torch.pow(size, p).sum(-1), 1 / p)


def _trilinear(
    one: Any,
    two: Any,
    three: Any,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Any:
    """The sum of products of three operands, in float32 at least."""
    import torch

    product, dtype = None, one.dtype
    for operand, axes in ((one, expand1), (two, expand2), (three, expand3)):
        if dtype.is_floating_point:
            operand = operand.to(torch.promote_types(dtype, torch.float32))
        for axis in axes:
            operand = operand.unsqueeze(axis)
        product = operand if product is None else product * operand
    assert product is not None
    return (product.sum(list(sumdim)) if sumdim else product).to(dtype)


def _transposed(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *more: Any
) -> Any:
    """Transposed convolutions: of float16 in float32, dilated ones as plain ones.

    TVM's sums of float16 have no other type, and its dilation multiplies with zeros between the
    weights, which makes NaN of infinities.
    """
    import torch

    if not more[0] or (x.dtype != torch.float16 and all(each == 1 for each in dilation)):
        return NotImplemented
    if x.dtype != torch.float16:
        return _as_plain(x, weight, bias, stride, padding, dilation, *more[1:])
    wide = [each if each is None else each.to(torch.float32) for each in (x, weight, bias)]
    convolution = torch.ops.aten.convolution.default
    return convolution(*wide, stride, padding, dilation, *more).to(x.dtype)


def _as_plain(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """A transposed convolution as one of the input with zeros in between, its window turned."""
    import torch

    axes, window = x.ndim - 2, weight.shape[2:]
    strides, paddings, dilations, more = (
        list(each) * (axes if len(each) == 1 else 1)
        for each in (stride, padding, dilation, output_padding)
    )
    for axis, step in enumerate(strides, start=2):
        if step > 1:
            extent = x.shape[axis]
            spread = x.unsqueeze(axis + 1)
            zeros = spread.new_zeros([*spread.shape[: axis + 1], step - 1, *x.shape[axis + 1 :]])
            spread = torch.cat([spread, zeros], axis + 1).flatten(axis, axis + 1)
            x = spread.narrow(axis, 0, (extent - 1) * step + 1)
    ends: list[int] = []
    for extent, apart, pad, further in zip(window, dilations, paddings, more, strict=True):
        low = apart * (extent - 1) - pad
        ends = [low, low + further, *ends]
    x = torch.ops.aten.constant_pad_nd.default(x, ends, 0)
    turned = weight.reshape(groups, -1, *weight.shape[1:]).transpose(1, 2).flatten(0, 1)
    turned = turned.flip(list(range(2, axes + 2)))
    ones, none = [1] * axes, [0] * axes
    convolution = torch.ops.aten.convolution.default
    return convolution(x, turned, bias, ones, none, dilations, False, none, groups)


# Terms of the exponential series for matrices of norm 1, and the most squarings of what it gives.
_TERMS, _SQUARINGS = 18, 24


def _matrix_exp(x: Any) -> Any:
    """The series of the matrix divided by a power of 2, squared as often; NaN for larger ones."""
    import torch

    if x.dtype in (torch.float16, torch.bfloat16):
        return _matrix_exp(x.to(torch.float32)).to(x.dtype)
    if not x.numel():
        return x.clone()
    norm = torch.abs(x).sum(-2).amax(-1)
    often = torch.ceil(torch.log2(torch.where(norm > 1, norm, 1)))
    scale = torch.exp(often * -math.log(2))
    small = x * scale.unsqueeze(-1).unsqueeze(-1)
    one = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    found = one + small / _TERMS
    for term in range(_TERMS - 1, 0, -1):
        found = one + (small @ found) / term
    often = often.unsqueeze(-1).unsqueeze(-1)
    for number in range(_SQUARINGS):
        found = torch.where(often > number, found @ found, found)
    return torch.where(often <= _SQUARINGS, found, math.nan)
