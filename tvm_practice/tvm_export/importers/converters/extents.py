"""Converters of PyTorch operators that depend on open extents to Relax."""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.converters.arguments import settings_of
from tvm_practice.tvm_export.run_time_checks.indices import OPAQUE


def converters() -> dict[str, Callable[[Any, Any], Any]]:
    """Converters (node, importer) in place of TVM's or beside them, by operator's name."""
    return {
        "scalar_tensor.default": _scalar_tensor,
        "slice.Tensor": _slice,
        "slice_scatter.default": _slice_scatter,
        "select.int": _select,
        "view.default": _reshape,
        "reshape.default": _reshape,
        "constant_pad_nd.default": _pad,
        "empty.memory_format": _empty,
        **{name: functools.partial(_of_extents, name) for name in ("truediv", "pow", "sym_float")},
        "sym_numel.default": _number_of_elements,
    }


def _scalar_tensor(node: Any, importer: Any) -> Any:
    """A number that PyTorch knows, or one made of extents or of a tensor's value, as a tensor."""
    import torch
    from tvm import relax

    [value, *_] = importer.retrieve_args(node)
    source = node.args[0]
    if (
        isinstance(source, torch.fx.Node)
        and source.target is torch.ops.aten._local_scalar_dense.default
    ):
        value = importer.block_builder.emit(relax.op.reshape(importer.env[source.args[0]], ()))
    dtype = importer._convert_data_type(node.meta["val"].dtype)
    return _as_tensor(value, dtype, importer.block_builder)


def _reshape(node: Any, importer: Any) -> Any:
    """A tensor in another shape.

    TVM's converter compares the shapes by `==`, and a number's with an open extent has no truth.
    """
    import tvm_ffi
    from tvm import relax

    tensor, shape = importer.retrieve_args(node)
    known = importer.shape_of(tensor)
    if known is not None:
        wanted = relax.ShapeExpr(list(shape))
        if tvm_ffi.structural_equal(relax.ShapeExpr(list(known)), wanted):
            return tensor
    return importer._emit_torch_reshape(tensor, shape)


def _of_extents(name: str, node: Any, importer: Any) -> Any:
    """Arithmetic of numbers that are made of extents, in float64 as in Python.

    A power is a tensor without axes, and so is what is made of it: Relax has no type for a power
    of extents that is an expression within another.
    """
    from tvm import relax, te, tirx

    given = importer.retrieve_args(node)
    builder = importer.block_builder
    if any(map(_is_tensor, given)):
        tensors = [_as_tensor(each, "float64", builder) for each in given]
        if name == "sym_float":
            return tensors[0]
        return builder.emit((relax.op.divide if name == "truediv" else relax.op.power)(*tensors))
    real = [
        tirx.const(float(each), "float64")
        if isinstance(each, (int, float))
        else each.astype("float64")
        for each in given
    ]
    if name == "sym_float":
        return real[0]
    if name == "truediv":
        return real[0] / real[1]

    def power(base: Any, exponent: Any) -> Any:
        return te.compute((), lambda: tirx.pow(base, exponent), name="power")

    return builder.emit_te(power, *real)


def _is_tensor(value: Any) -> bool:
    from tvm import relax

    return isinstance(value, relax.Expr) and isinstance(value.ty, relax.TensorType)


def _as_tensor(number: Any, dtype: str, builder: Any) -> Any:
    """A number, an expression of extents or a tensor, as a tensor of this type."""
    from tvm import relax, te

    if isinstance(number, (bool, int, float)):
        return builder.emit(relax.const(number, dtype))
    if _is_tensor(number):
        return builder.emit(relax.op.astype(number, dtype))

    def made(given: Any) -> Any:
        return te.compute((), lambda: given.astype(dtype), name="number")

    # TVM's FuseTIR fails for a function that takes one extent as a number, another in a shape.
    return builder.emit_te(made, number, primfunc_attrs={"op_pattern": OPAQUE})


def _slice(node: Any, importer: Any) -> Any:
    """A slice along an open axis that PyTorch knows to be within the tensor.

    TVM's own has the lesser of both for an extent, which it cannot tell to be the same as another
    tensor's. Of any other slice it is TVM's own.
    """
    from torch.fx.experimental.symbolic_shapes import statically_known_true
    from tvm import relax

    given = settings_of(node)
    extent = given["self"].meta["val"].shape[given["dim"]]
    if given["step"] != 1 or (isinstance(extent, int) and not _is_open(given["end"])):
        return importer._slice(node)
    dim = given["dim"] % node.meta["val"].ndim
    bounds = [given["start"] or 0, sys.maxsize if given["end"] is None else given["end"]]
    first, last = (_place(_known(each), extent) for each in bounds)
    length = node.meta["val"].shape[dim]
    if not (statically_known_true(first >= 0) and statically_known_true(length == last - first)):
        return importer._slice(node)
    tensor, emit = importer.env[given["self"]], importer.block_builder.emit
    begin, end = (
        _place(each, tensor.ty.shape.values[dim]) for each in importer._retrieve_args(bounds)
    )
    return emit(relax.op.strided_slice(tensor, [dim], [begin], [end], assume_inbound=True))


def _place(bound: Any, extent: Any) -> Any:
    """A bound of a slice, counted from the begin of an axis."""
    if not isinstance(bound, int):
        return bound
    if bound < 0:
        return extent + bound
    return extent if bound == sys.maxsize else bound


def _is_open(extent: Any) -> bool:
    """Whether an argument is an extent that is not a number."""
    import torch

    return isinstance(extent, torch.fx.Node)


def _known(extent: Any) -> Any:
    """PyTorch's value of an extent, a number or a node of the graph."""
    return extent.meta["val"] if _is_open(extent) else extent


def _slice_scatter(node: Any, importer: Any) -> Any:
    """TVM's; along an open axis an own one."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true
    from tvm import te, tirx

    given = settings_of(node)
    dim, start = given["dim"], given["start"] or 0
    if given["step"] != 1 or isinstance(given["self"].meta["val"].shape[dim], int):
        return importer._slice_scatter(node)
    x, source = importer.env[given["self"]], importer.env[given["src"]]
    dim %= len(x.ty.shape)
    if not statically_known_true(_known(start) >= 0):
        raise NotImplementedError(f"from {_known(start)}")

    def compute(x: Any, source: Any, begin: Any) -> Any:
        def at(*place: Any) -> Any:
            inside = place[dim] - begin
            within = tirx.all(inside >= 0, inside < source.shape[dim])
            taken = source(*place[:dim], inside, *place[dim + 1 :])
            return tirx.if_then_else(within, taken, x(*place))

        return te.compute(x.shape, at, name="slice_scatter")

    return importer.block_builder.emit_te(compute, x, source, importer._retrieve_args(start))


def _pad(node: Any, importer: Any) -> Any:
    """TVM's; by open extents, of which some may be below 0 and cut, an own one."""
    from tvm import te, tirx

    given = settings_of(node)
    if not any(_is_open(each) for each in given["pad"]):
        return importer._constant_pad_nd(node)
    x = importer.env[given["self"]]
    widths = importer._retrieve_args(list(given["pad"]))
    rank = len(x.ty.shape)
    # PyTorch counts axes from the last.
    before = [0] * (rank - len(widths) // 2) + widths[-2::-2]
    after = [0] * (rank - len(widths) // 2) + widths[::-2]

    def compute(x: Any, *around: Any) -> Any:
        before, after = around[:rank], around[rank:]
        fill = tirx.const(given["value"], x.dtype)
        shape = [
            low + extent + high for low, extent, high in zip(before, x.shape, after, strict=True)
        ]

        def at(*place: Any) -> Any:
            inside = [each - low for each, low in zip(place, before, strict=True)]
            within = [
                condition
                for each, extent in zip(inside, x.shape, strict=True)
                for condition in (each >= 0, each < extent)
            ]
            return tirx.if_then_else(tirx.all(*within), x(*inside), fill)

        return te.compute(shape, at, name="pad")

    return importer.block_builder.emit_te(compute, x, *before, *after)


def _empty(node: Any, importer: Any) -> Any:
    """Zeros: what is not written of it is not to be read."""
    from tvm import relax

    dtype = importer._convert_data_type(node.meta["val"].dtype)
    shape = importer._retrieve_args(list(node.args[0]))
    return importer.block_builder.emit(relax.op.zeros(shape, dtype))


def _select(node: Any, importer: Any) -> Any:
    """TVM's; at a place that is counted from an open extent, as of the last token, an own one."""
    from tvm import te

    given = settings_of(node)
    dim, index = given["dim"], given["index"]
    if not _is_open(index) or not hasattr(index.meta["val"], "node"):
        return importer._select(node)

    def compute(x: Any, place: Any) -> Any:
        shape = [*x.shape[:dim], *x.shape[dim + 1 :]]
        return te.compute(shape, lambda *at: x(*at[:dim], place, *at[dim:]), name="select")

    return importer.block_builder.emit_te(compute, importer.env[given["self"]], importer.env[index])


def _number_of_elements(node: Any, importer: Any) -> Any:
    return math.prod(importer.env[node.args[0]].ty.shape)
