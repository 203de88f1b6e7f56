"""Converters for classic TVM of operators whose own converters lose NaN or infinities.

No number is above or below NaN in TVM; in PyTorch it is the largest, and the extreme of whatever it
is among. Places and extremes are those of whole numbers here, which order as the numbers do.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.converters.relay import computed_before, shape_of
from tvm_practice.tvm_export.importers.converters.relay_types import promoted

Converter = Callable[[Sequence[Any], Sequence[str]], Any]


def converters() -> dict[str, Converter]:
    """By operator's name, for `import_relay`."""
    found: dict[str, Converter] = {
        "aten::sort": sort,
        "aten::argsort": lambda inputs, types: sort(inputs, types)[1],
        "aten::topk": topk,
        "aten::logsumexp": logsumexp,
        "aten::elu": elu,
        "aten::selu": selu,
    }
    for name in ("max", "min"):
        found |= {
            f"aten::arg{name}": _place_of(name),
            f"aten::{name}": _extreme(name),
            f"aten::a{name}": _extreme(name),
            f"aten::{name}imum": _of_two(name),
        }
    return found


def ordered(data: Any, dtype: str, *, unknown: int = 1) -> Any:
    """Whole numbers that order as the numbers do, NaN above them, or below where `unknown` is -1.

    Zeros of either sign are equal. Other types than floating-point ones stay.
    """
    from tvm import relay

    if "float" not in dtype:
        return data
    wide, whole, most = _wide(dtype)
    infinity = 0x7FF << 52 if wide == "float64" else 0xFF << 23
    data = computed_before(data)
    bits = relay.reinterpret(relay.cast(data, wide), whole)
    size = relay.bitwise_and(bits, relay.const(most, whole))
    signed = relay.where(relay.less(bits, relay.const(0, whole)), -size, size)
    is_number = relay.less_equal(size, relay.const(infinity, whole))
    return relay.where(is_number, signed, relay.const(unknown * most, whole))


def _numbers(order: Any, dtype: str) -> Any:
    """The numbers that `ordered` made whole ones of."""
    from tvm import relay

    if "float" not in dtype:
        return order
    wide, whole, most = _wide(dtype)
    negative = relay.bitwise_or(-order, relay.const(-most - 1, whole))
    bits = relay.where(relay.less(order, relay.const(0, whole)), negative, order)
    return relay.cast(relay.reinterpret(bits, wide), dtype)


def _wide(dtype: str) -> tuple[str, str, int]:
    """The floating-point type that is ordered, the integer of its size, and the largest one."""
    size = 64 if dtype == "float64" else 32
    return f"float{size}", f"int{size}", (1 << (size - 1)) - 1


def _sign(name: str) -> int:
    return 1 if name == "max" else -1


def _place_of(name: str) -> Converter:
    """`aten::argmax(input, dim, keepdim)` or `aten::argmin`."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        from tvm import relay

        data, axis, kept = inputs[:3]
        shape = shape_of(data)
        order = ordered(data, types[0], unknown=_sign(name))
        if axis is not None:
            return _first_place(name, order, int(axis), kept)
        place = _first_place(name, relay.reshape(order, (-1,)), 0, False)
        return relay.reshape(place, (1,) * len(shape)) if kept else place

    return converted


def _extreme(name: str) -> Converter:
    """`aten::max` and its like: of all elements, over axes with the places, or of two tensors."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        from tvm import relay

        if len(inputs) == 2:
            return _of_two(name)(inputs, types)
        data, axes, kept = (*inputs, None, False)[:3]
        order = ordered(data, types[0], unknown=_sign(name))
        over = None if axes == [] else axes
        found = getattr(relay, name)(order, axis=over, keepdims=bool(kept))
        value = _numbers(found, types[0])
        if not isinstance(axes, int):
            return value
        return value, _first_place(name, order, axes, kept)

    return converted


def _first_place(name: str, order: Any, axis: int, kept: Any) -> Any:
    """Relay's place is -1 where all elements are the least number of their type."""
    from tvm import relay

    place = getattr(relay, f"arg{name}")(order, axis=axis, keepdims=bool(kept))
    return relay.maximum(place, relay.const(0, "int32"))


def _of_two(name: str) -> Converter:
    """`aten::maximum(input, other)` or `aten::minimum`: NaN where either is."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        from tvm import relay

        one, other, dtype = promoted(inputs, types)
        found = getattr(relay, f"{name}imum")(one, other)
        return relay.where(relay.isnan(one), one, found) if "float" in dtype else found

    return converted


def sort(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::sort(input, [stable,] dim, descending)`: the values, and their places."""
    from tvm import relay

    data, (axis, descending) = inputs[0], inputs[-2:]
    order = ordered(data, types[0])
    places = relay.argsort(order, int(axis), not descending, "int64")
    return relay.gather(data, int(axis), places), places


def topk(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::topk(input, k, dim, largest, sorted)`: the values, and their places."""
    from tvm import relay

    data, count, axis, largest = inputs[:4]
    order = ordered(data, types[0])
    places = relay.topk(order, int(count), int(axis), "indices", not largest, "int64")
    return relay.gather(data, int(axis), places), places


def logsumexp(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::logsumexp(input, dim, keepdim)`: an infinity is not taken from an infinity."""
    from tvm import relay

    (data, axes, kept), dtype = inputs[:3], types[0]
    largest = relay.max(data, axis=axes, keepdims=True)
    is_finite = relay.less(relay.abs(largest), relay.const(math.inf, dtype))
    shift = relay.where(is_finite, largest, relay.const(0.0, dtype))
    found = relay.log(relay.sum(relay.exp(data - shift), axis=axes, keepdims=True)) + shift
    return found if kept else relay.squeeze(found, axes)


def elu(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::elu(input, alpha, scale, input_scale)`."""
    from tvm import relay

    data, alpha, scale, by = inputs[:4]
    zero, one, factor, steep, below = (
        relay.const(float(each), types[0]) for each in (0, 1, scale, by, alpha * scale)
    )
    negative = below * (relay.exp(data * steep) - one)
    return relay.where(relay.greater(data, zero), data * factor, negative)


def selu(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::selu(input)`."""
    return elu([inputs[0], 1.6732632423543772, 1.0507009873554805, 1.0], types)
