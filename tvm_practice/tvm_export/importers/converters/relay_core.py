"""Converters for classic TVM of core ATen's operators that its frontend knows by other names."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.converters.relay_types import to

Converter = Callable[[Sequence[Any], Sequence[str]], Any]


def converters() -> dict[str, Converter]:
    """By operator's name, for `import_relay`."""
    return {
        "aten::_softmax": _softmax,
        "aten::_log_softmax": _log_softmax,
        "aten::_to_copy": _to_copy,
        "aten::alias": lambda inputs, types: inputs[0],
        "aten::clone": _clone,
        "aten::copy": _copy,
        **{f"aten::{name}": _unary(name) for name in ("acosh", "asinh", "atanh")},
    }


def _softmax(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::_softmax(input, dim, half_to_float)`."""
    from tvm import relay

    return relay.nn.softmax(inputs[0], int(inputs[1]))


def _log_softmax(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::_log_softmax(input, dim, half_to_float)`."""
    from tvm import relay

    return relay.nn.log_softmax(inputs[0], int(inputs[1]))


def _to_copy(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::_to_copy(input, dtype, layout, device, pin_memory, non_blocking, memory_format)`."""
    return to([inputs[0], inputs[1], None], types)


def _clone(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::clone(input, memory_format)`; a constant of no axes is a number in TVM's importer."""
    from tvm import relay

    return relay.copy(inputs[0]) if isinstance(inputs[0], relay.Expr) else inputs[0]


def _copy(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::copy(input, source, non_blocking)`: the source in the input's type and shape."""
    from tvm import relay

    data, source = inputs[:2]
    if not isinstance(source, relay.Expr):
        return relay.full_like(data, relay.const(source, types[0]))
    return relay.broadcast_to_like(relay.cast(source, types[0]), data)


def _unary(name: str) -> Converter:
    """A function of one tensor of floating-point numbers, or of whole ones taken for such."""

    def convert(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        from tvm import relay

        data = inputs[0] if "float" in types[0] else relay.cast(inputs[0], "float32")
        return getattr(relay, name)(data)

    return convert
