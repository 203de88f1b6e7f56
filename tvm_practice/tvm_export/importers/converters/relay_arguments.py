"""Arguments that classic TVM's converters drop without a word: heeded here, or refused."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.converters.relay import shape_of
from tvm_practice.tvm_export.importers.refusals import Refused


def heeded(operator: str, inputs: Sequence[Any], types: Sequence[str]) -> list[Any]:
    """An operator's inputs, changed so that what its converter drops has no effect.

    Raises Refused where that cannot be.
    """
    change = _CHANGES.get(operator.removesuffix("_"))
    return change(operator, list(inputs), types) if change else list(inputs)


def _scaled(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::add(input, other, alpha)` with 1 for alpha."""
    from tvm import relay

    if len(inputs) < 3 or inputs[2] == 1:
        return inputs
    one, other, alpha = inputs
    by = relay.const(alpha, types[1]) if isinstance(other, relay.Expr) else alpha
    return [one, other * by, 1]


def _without_divisor(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::avg_pool2d(input, kernel, stride, padding, ceil, count_include_pad, divisor)`."""
    if inputs[6] is not None:
        raise Refused(f"{operator} with divisor_override={inputs[6]}")
    return inputs


def _corrected(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::var(input, dim, correction, keepdim)`, whose converter knows 0 and 1."""
    if len(inputs) == 4 and inputs[2] is None:
        inputs[2] = 1
    if len(inputs) == 4 and inputs[2] not in (0, 1):
        raise Refused(f"{operator} with correction={inputs[2]}")
    return inputs


def _by_size(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::upsample_…(input, size, [align_corners,] scales)`: places follow from the sizes."""
    *_, aligned, scales = inputs
    if not scales or aligned is True:
        return inputs
    extents = shape_of(inputs[0])[2:]
    if any(extent * by != int(extent * by) for extent, by in zip(extents, scales, strict=True)):
        raise Refused(f"{operator} of {extents} by {list(scales)}, which gives no whole size")
    return inputs


_CHANGES: dict[str, Callable[[str, list[Any], Sequence[str]], list[Any]]] = {
    "aten::add": _scaled,
    "aten::avg_pool2d": _without_divisor,
    "aten::avg_pool3d": _without_divisor,
    "aten::std": _corrected,
    "aten::var": _corrected,
    "aten::var_mean": _corrected,
    "aten::upsample_nearest2d": _by_size,
    "aten::upsample_nearest3d": _by_size,
    "aten::upsample_bilinear2d": _by_size,
    "aten::upsample_bicubic2d": _by_size,
    "aten::upsample_trilinear3d": _by_size,
}
