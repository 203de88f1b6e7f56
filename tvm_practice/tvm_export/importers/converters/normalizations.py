"""Converters of normalizations to Relax: what TVM's drop, or compute with less precision."""

from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.converters.arguments import settings_of, uses_more


def converters() -> dict[str, Callable[[Any, Any], Any]]:
    """Converters (node, importer) in place of TVM's, by operator's name."""
    return {
        "native_layer_norm.default": _layer_norm,
        "native_group_norm.default": _group_norm,
        "_native_batch_norm_legit_no_training.default": _batch_norm,
    }


def _layer_norm(node: Any, importer: Any) -> Any:
    """TVM's, and the mean and the reciprocal deviation where they are used."""
    from tvm import relax

    normalized = importer._native_layer_norm(node)
    if not uses_more(node):
        return normalized
    given, emit = settings_of(node), importer.block_builder.emit
    x = importer.env[given["input"]]
    axes = list(range(-len(given["normalized_shape"]), 0))
    mean = emit(relax.op.mean(x, axes, keepdims=True))
    variance = emit(relax.op.variance(x, axes, keepdims=True))
    shifted = emit(relax.op.add(variance, relax.const(given["eps"], x.ty.dtype)))
    return emit(relax.Tuple([normalized, mean, emit(relax.op.rsqrt(shifted))]))


def _group_norm(node: Any, importer: Any) -> Any:
    """With a weight and a bias, and the mean and the reciprocal deviation where they are used."""
    import numpy as np
    from tvm import relax

    given, emit = settings_of(node), importer.block_builder.emit
    x, dtype = importer.env[given["input"]], str(importer.env[given["input"]].ty.dtype)
    scale, shift = (
        importer.env[given[name]]
        if given[name] is not None
        else relax.const(np.full(given["C"], value), dtype)
        for name, value in (("weight", 1), ("bias", 0))
    )
    settings = {"groups": given["group"], "epsilon": given["eps"]}
    normalized = importer.block_builder.emit_te(_normalized_groups, x, scale, shift, **settings)
    if not uses_more(node):
        return normalized
    groups = emit(relax.op.reshape(x, (given["N"], given["group"], -1)))
    variance = emit(relax.op.variance(groups, [2]))
    shifted = emit(relax.op.add(variance, relax.const(given["eps"], x.ty.dtype)))
    mean = emit(relax.op.mean(groups, [2]))
    return emit(relax.Tuple([normalized, mean, emit(relax.op.rsqrt(shifted))]))


def _batch_norm(node: Any, importer: Any) -> Any:
    """TVM's; the further outputs, of training alone, have no elements."""
    from tvm import relax

    normalized = importer._batch_norm_legit_no_training(node)
    if not uses_more(node):
        return normalized
    emit = importer.block_builder.emit
    empty = emit(relax.op.zeros((0,), importer.env[node.args[0]].ty.dtype))
    return emit(relax.Tuple([normalized, empty, empty]))


def _normalized_groups(x: Any, scale: Any, shift: Any, groups: int, epsilon: float) -> Any:
    """`topi.nn.group_norm` along axis 1, of which the mean is taken before anything is squared.

    TVM's subtracts the square of the mean from the mean of the squares: far from zero, little is
    left of the variance. It also reshapes, and so divides by open extents.
    """
    from tvm import te, tirx

    examples, channels, *inner = x.shape
    size = channels // groups
    count = tirx.const(1.0, "float32")
    for each in (size, *inner):
        count *= each.astype("float32") if hasattr(each, "astype") else float(each)

    def over() -> list[Any]:
        return [te.reduce_axis((0, each)) for each in (size, *inner)]

    def element(example: Any, group: Any, within: list[Any]) -> Any:
        return x(example, group * size + within[0], *within[1:]).astype("float32")

    one, other = over(), over()
    sums = te.compute(
        (examples, groups),
        lambda example, group: te.sum(element(example, group, one), one),
        name="sums",
    )
    squares = te.compute(
        (examples, groups),
        lambda example, group: te.sum(
            tirx.pow(element(example, group, other) - sums(example, group) / count, 2.0), other
        ),
        name="squares",
    )

    def normalized(example: Any, channel: Any, *place: Any) -> Any:
        group = channel // size
        centred = x(example, channel, *place).astype("float32") - sums(example, group) / count
        scaled = centred * tirx.rsqrt(squares(example, group) / count + epsilon)
        weighted = scaled * scale(channel).astype("float32") + shift(channel).astype("float32")
        return weighted.astype(x.dtype)

    return te.compute(x.shape, normalized, name="group_norm")
