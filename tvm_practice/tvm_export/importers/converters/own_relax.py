"""Converters of PyTorch operators to Relax, where TVM has none or drops an output."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.converters import (
    extents,
    gammas,
    normalizations,
    powers,
    spectra,
)
from tvm_practice.tvm_export.importers.converters.arguments import settings_of, uses_more
from tvm_practice.tvm_export.importers.converters.factorizations import factorizations
from tvm_practice.tvm_export.importers.converters.nonzero import nonzero
from tvm_practice.tvm_export.importers.converters.recurrences import recurrences


def own_converters() -> dict[str, Callable[[Any, Any], Any]]:
    """Converters (node, importer) in place of TVM's or beside them, by operator's name."""
    return {
        "amax.default": functools.partial(_extremum, "max"),
        "amin.default": functools.partial(_extremum, "min"),
        "prod.dim_int": _product,
        "hash_tensor.default": _hash,
        "sort.default": _sort,
        "scatter_add.default": _scatter_add,
        "scatter_reduce.two": _scatter_reduce,
        **normalizations.converters(),
        "lgamma.default": functools.partial(_of_the_c_library, "lgamma"),
        "special_bessel_j0.default": functools.partial(_of_the_c_library, "j0", is_bessel=True),
        "special_bessel_j1.default": functools.partial(_of_the_c_library, "j1", is_bessel=True),
        "special_bessel_y0.default": functools.partial(_of_the_c_library, "y0", is_bessel=True),
        "special_bessel_y1.default": functools.partial(_of_the_c_library, "y1", is_bessel=True),
        "nextafter.default": _next_after,
        "signbit.default": _sign_bit,
        "view.dtype": _viewed_as,
        "_int_mm.default": _int_mm,
        "gcd.default": powers.common_divisor,
        "pow.Tensor_Tensor": powers.power,
        "bitwise_left_shift.Tensor": functools.partial(_shifted, False),
        "bitwise_right_shift.Tensor": functools.partial(_shifted, True),
        "convolution.default": _convolution,
        "linear.default": _linear,
        "addmm.default": _addmm,
        **extents.converters(),
        **recurrences(),
        **factorizations(),
        "nonzero.default": nonzero,
        "igamma.default": functools.partial(gammas.incomplete_gamma, False),
        "igammac.default": functools.partial(gammas.incomplete_gamma, True),
        "_linalg_eigh.default": spectra.eigh,
        "_linalg_svd.default": spectra.svd,
        "max_pool2d_with_indices.default": functools.partial(_max_pool, 2),
        "max_pool3d_with_indices.default": functools.partial(_max_pool, 3),
    }


def _extremum(name: str, node: Any, importer: Any) -> Any:
    from tvm import relax

    given, emit = settings_of(node), importer.block_builder.emit
    x, axes = importer.env[given["self"]], list(given["dim"]) or None
    return emit(getattr(relax.op, name)(x, axes, given["keepdim"]))


def _product(node: Any, importer: Any) -> Any:
    from tvm import relax

    given = settings_of(node)
    x = importer.env[given["self"]]
    return importer.block_builder.emit(relax.op.prod(x, given["dim"], given["keepdim"]))


def _hash(node: Any, importer: Any) -> Any:
    """The bits of each number as float64, or of whole numbers as int64, combined by exclusive or.

    Raises NotImplementedError for another mode of hashing.
    """
    from tvm import te, tirx

    given = settings_of(node)
    if given["mode"]:
        raise NotImplementedError(f"mode {given['mode']}")
    x = importer.env[given["self"]]
    wide = "float64" if "float" in str(x.ty.dtype) else "int64"
    rank = len(x.ty.shape)
    axes = {axis % rank for axis in given["dim"] or range(rank)} if rank else set()
    either = te.comm_reducer(lambda a, b: a ^ b, lambda dtype: tirx.const(0, dtype), name="either")

    def compute(x: Any) -> Any:
        bits = te.compute(
            x.shape, lambda *at: tirx.reinterpret("uint64", x(*at).astype(wide)), name="bits"
        )
        if not axes:
            return bits
        over = {axis: te.reduce_axis((0, x.shape[axis])) for axis in sorted(axes)}
        keeps = given["keepdim"]
        shape = [1 if axis in axes else x.shape[axis] for axis in range(rank)]
        shape = [each for axis, each in enumerate(shape) if keeps or axis not in axes]

        def combined(*at: Any) -> Any:
            rest = iter(at)
            places = []
            for axis in range(rank):
                if axis not in axes or keeps:
                    place = next(rest)
                places.append(over[axis] if axis in axes else place)
            return either(bits(*places), axis=list(over.values()))

        return te.compute(shape, combined, name="hash")

    return importer.block_builder.emit_te(compute, x, primfunc_name_hint="hash_tensor")


def _sort(node: Any, importer: Any) -> Any:
    """Ordered by whole numbers, NaN as the largest: no number is above or below NaN in TVM."""
    from tvm import relax

    given, emit = settings_of(node), importer.block_builder.emit
    x, axis = importer.env[given["self"]], given["dim"]
    order_of = x
    if "float" in str(x.ty.dtype):
        order_of = importer.block_builder.emit_te(in_whole_numbers, x, primfunc_name_hint="order")
    elif str(x.ty.dtype) in ("int8", "int16"):  # which TVM does not sort
        order_of = emit(relax.op.astype(x, "int32"))
    order = emit(relax.op.argsort(order_of, axis, given["descending"], dtype="int64"))
    return emit(relax.Tuple([emit(relax.op.gather_elements(x, order, axis=axis)), order]))


def in_whole_numbers(x: Any) -> Any:
    """Whole numbers that compare as floating-point ones do; zeros of either sign are equal."""
    from tvm import te, tirx

    size = 64 if str(x.dtype) == "float64" else 32
    whole, infinity = f"int{size}", 0x7FF << 52 if size == 64 else 0xFF << 23
    most = tirx.const(2 ** (size - 1) - 1, whole)

    def at(*place: Any) -> Any:
        bits = tirx.reinterpret(whole, x(*place).astype(f"float{size}"))
        magnitude = bits & most
        signed = tirx.Select(bits < 0, -magnitude, magnitude)
        return tirx.Select(magnitude > tirx.const(infinity, whole), most, signed)

    return te.compute(x.shape, at, name="order")


def _scatter_add(node: Any, importer: Any) -> Any:
    return _scattered(node, importer, "add")


def _scatter_reduce(node: Any, importer: Any) -> Any:
    given = settings_of(node)
    known = {"sum": "add", "prod": "mul", "amin": "min", "amax": "max"}
    if given["reduce"] not in known or not given["include_self"]:
        raise NotImplementedError(
            f"reduce={given['reduce']!r}, include_self={given['include_self']}"
        )
    return _scattered(node, importer, known[given["reduce"]])


def _scattered(node: Any, importer: Any, reduction: str) -> Any:
    from tvm import relax

    given = settings_of(node)
    x, index, source = (importer.env[given[name]] for name in ("self", "index", "src"))
    return importer.block_builder.emit(
        relax.op.scatter_elements(x, index, source, axis=given["dim"], reduction=reduction)
    )


def _max_pool(axes: int, node: Any, importer: Any) -> Any:
    """TVM's; where the positions of the maxima are used, both by a reduction of pairs.

    Pairs of bfloat16 are reduced in float32: TVM has no isnan of bfloat16.
    """
    from tvm import relax

    if not uses_more(node):
        return getattr(importer, f"_max_pool{axes}d_with_indices")(node)
    given = settings_of(node)
    x = importer.env[given["self"]]
    kernel, padding, dilation = (
        _per_axis(given[name], axes) for name in ("kernel_size", "padding", "dilation")
    )
    stride = _per_axis(given["stride"] or kernel, axes)
    shape = list(node.meta["val"][0].shape)
    for axis, extent in enumerate(x.ty.shape.values):
        if isinstance(shape[axis], int):
            continue
        shape[axis] = extent
        if (place := axis - len(shape) + axes) >= 0:
            beyond = dilation[place] * (kernel[place] - 1) + 1
            shape[axis] = (extent + 2 * padding[place] - beyond) // stride[place] + 1
    compute = functools.partial(
        _largest, shape=shape, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )
    builder, hint = importer.block_builder, "max_pool_with_indices"
    if str(x.ty.dtype) != "bfloat16":
        return builder.emit_te(compute, x, primfunc_name_hint=hint)
    wide = builder.emit(relax.op.astype(x, "float32"))
    found = builder.emit_te(compute, wide, primfunc_name_hint=hint)
    largest = builder.emit(relax.op.astype(builder.emit(relax.TupleGetItem(found, 0)), "bfloat16"))
    return builder.emit(relax.Tuple([largest, builder.emit(relax.TupleGetItem(found, 1))]))


def _per_axis(given: Any, axes: int) -> list[int]:
    listed: list[int] = list(given) if isinstance(given, (list, tuple)) else [given]
    return listed * axes if len(listed) == 1 else listed


def _largest(
    x: Any,
    *,
    shape: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Any:
    """Tensor expressions: each window's first largest element, or last NaN, and its place."""
    from tvm import te, tirx

    axes = len(kernel)
    lead = len(shape) - axes
    extents = x.shape[lead:]
    beyond = te.max_value("int64")
    floats = "float" in str(x.dtype)
    least = tirx.const(-math.inf, x.dtype) if floats else te.min_value(x.dtype)
    window = [te.reduce_axis((0, each), name=f"k{i}") for i, each in enumerate(kernel)]

    def better(one: Any, other: Any) -> Any:
        known = tirx.any(one[1] > other[1], tirx.all(one[1] == other[1], one[0] < other[0]))
        if not floats:
            return known
        unknown = tirx.any(tirx.Not(tirx.isnan(other[1])), one[0] > other[0])
        return tirx.Select(tirx.isnan(one[1]), unknown, known)

    largest = te.comm_reducer(
        lambda one, other: tuple(
            tirx.Select(better(one, other), a, b) for a, b in zip(one, other, strict=True)
        ),
        lambda place, value: (beyond, least),
        name="largest",
    )

    def of(*indices: Any) -> Any:
        places = [
            index * s + k * d - p
            for index, s, k, d, p in zip(
                indices[lead:], stride, window, dilation, padding, strict=True
            )
        ]
        inside = tirx.all(
            *(
                condition
                for place, extent in zip(places, extents, strict=True)
                for condition in (place >= 0, place < extent)
            )
        )
        flat = places[0]
        for place, extent in zip(places[1:], extents[1:], strict=True):
            flat = flat * extent + place
        value = tirx.if_then_else(inside, x(*indices[:lead], *places), least)
        place = tirx.if_then_else(inside, flat.astype("int64"), beyond)
        return largest((place, value), axis=window)

    found = te.compute(shape, of, name="largest")
    return found[1], found[0]


def _broadcast(operands: Sequence[Any], importer: Any) -> list[Any]:
    """The shape that operands of one type have together; its extents may be open."""
    from tvm import relax

    together = operands[0]
    for other in operands[1:]:
        together = importer.block_builder.normalize(relax.op.minimum(together, other))
    return list(together.ty.shape.values)


def _of_the_c_library(name: str, node: Any, importer: Any, *, is_bessel: bool = False) -> Any:
    """A function of the C library, element by element; Bessel's are NaN at infinity."""
    from tvm import te, tirx, topi

    operands = [importer.env[each] for each in node.args]
    dtype = str(operands[0].ty.dtype)
    if dtype not in ("float32", "float64"):
        raise NotImplementedError(f"for {dtype}")
    called = name + ("f" if dtype == "float32" else "")
    shape = _broadcast(operands, importer)

    def of(*numbers: Any) -> Any:
        found = tirx.call_pure_extern(dtype, called, *numbers)
        if not is_bessel:
            return found
        known = tirx.abs(numbers[0]) < tirx.const(math.inf, dtype)
        return tirx.if_then_else(known, found, tirx.const(math.nan, dtype))

    def compute(*tensors: Any) -> Any:
        wide = [topi.broadcast_to(each, shape) for each in tensors]
        return te.compute(shape, lambda *i: of(*(each(*i) for each in wide)))

    return importer.block_builder.emit_te(compute, *operands, primfunc_name_hint=name)


def _next_after(node: Any, importer: Any) -> Any:
    """The C library's; of 16 bits, by the numbers' bits as whole numbers."""
    from tvm import te, tirx, topi

    operands = [importer.env[each] for each in node.args]
    dtype = str(operands[0].ty.dtype)
    if dtype not in ("float16", "bfloat16"):
        return _of_the_c_library("nextafter", node, importer)
    # A bfloat16 is the first half of a float32.
    kept, bits, lowest = ("float32", "int32", 16) if dtype == "bfloat16" else (dtype, "int16", 0)
    shape = _broadcast(operands, importer)
    step, zero = tirx.const(1 << lowest, bits), tirx.const(0, kept)

    def of(x: Any, y: Any) -> Any:
        at = tirx.reinterpret(bits, x)
        away = tirx.Select(y > x, x > zero, x < zero)
        next_to_zero = tirx.Select(y > zero, step, step | tirx.min_value(bits))
        moved = tirx.Select(x == zero, next_to_zero, tirx.Select(away, at + step, at - step))
        found = tirx.Select(x == y, y, tirx.reinterpret(kept, moved))
        return tirx.Select(tirx.any(tirx.isnan(x), tirx.isnan(y)), x + y, found)

    def compute(*tensors: Any) -> Any:
        x, y = (topi.cast(topi.broadcast_to(each, shape), kept) for each in tensors)
        return topi.cast(te.compute(shape, lambda *i: of(x(*i), y(*i))), dtype)

    return importer.block_builder.emit_te(compute, *operands, primfunc_name_hint="nextafter")


def _sign_bit(node: Any, importer: Any) -> Any:
    """The sign's bit: no comparison tells the sign of NaN."""
    from tvm import te, tirx, topi

    x = importer.env[node.args[0]]
    dtype = str(x.ty.dtype)
    wide = "float64" if dtype == "float64" else "float32"  # 16 bits keep their sign
    bits = wide.replace("float", "int") if "float" in dtype else dtype

    def compute(x: Any) -> Any:
        def of(*at: Any) -> Any:
            value = x(*at)
            if "float" in dtype:
                value = tirx.reinterpret(bits, value.astype(wide))
            return value < tirx.const(0, bits)

        return topi.cast(te.compute(x.shape, of), "bool")

    return importer.block_builder.emit_te(compute, x, primfunc_name_hint="signbit")


def _viewed_as(node: Any, importer: Any) -> Any:
    """The same bits as numbers of another type.

    Raises NotImplementedError for types of another size, and for bfloat16, which TVM stores as
    something else.
    """
    from tvm import DataType, te, tirx

    x, wanted = importer.env[node.args[0]], importer._convert_data_type(node.args[1])
    given = str(x.ty.dtype)
    if wanted == given:
        return x
    known = {given, wanted}.isdisjoint(("bool", "bfloat16"))
    if not known or DataType(given).bits != DataType(wanted).bits:
        raise NotImplementedError(f"{given} viewed as {wanted}")

    def compute(x: Any) -> Any:
        return te.compute(x.shape, lambda *at: tirx.reinterpret(wanted, x(*at)))

    return importer.block_builder.emit_te(compute, x, primfunc_name_hint="bits")


def _int_mm(node: Any, importer: Any) -> Any:
    """Products of int8, summed in int32."""
    from tvm import relax

    one, other = (importer.env[each] for each in node.args)
    return importer.block_builder.emit(relax.op.matmul(one, other, out_dtype="int32"))


def _shifted(right: bool, node: Any, importer: Any) -> Any:
    """Whole numbers shifted; by as many bits as they have, or by fewer than 0, nothing is left."""
    import tvm
    from tvm import te, tirx, topi

    operands = [importer.env[each] for each in node.args]
    dtype = tvm.DataType(str(operands[0].ty.dtype))
    signed = not str(dtype).startswith("uint")
    most = tirx.const(int(dtype.bits) - (right and signed), str(dtype))
    shape = _broadcast(operands, importer)

    none = tirx.const(0, str(dtype))

    def one(x: Any, by: Any) -> Any:
        known = tirx.all(by >= none, by < most)
        safe = tirx.Select(known, by, none)
        beyond = x >> most if right and signed else none
        return tirx.Select(known, x >> safe if right else x << safe, beyond)

    def compute(*tensors: Any) -> Any:
        x, by = (topi.broadcast_to(each, shape) for each in tensors)
        return te.compute(shape, lambda *i: one(x(*i), by(*i)))

    return importer.block_builder.emit_te(compute, *operands, primfunc_name_hint="shift")


def _linear(node: Any, importer: Any) -> Any:
    """TVM's; of float16 the bias is added before the sums are rounded, as PyTorch does it."""
    from tvm import relax

    given, emit = settings_of(node), importer.block_builder.emit
    x, weight = importer.env[given["input"]], importer.env[given["weight"]]
    if given["bias"] is None or str(x.ty.dtype) != "float16":
        return importer._linear(node)
    product = emit(relax.op.matmul(x, emit(relax.op.permute_dims(weight)), out_dtype="float32"))
    return _rounded_sum(importer, product, importer.env[given["bias"]])


def _addmm(node: Any, importer: Any) -> Any:
    """Like `_linear`, of a sum with factors."""
    from tvm import relax

    given, emit = settings_of(node), importer.block_builder.emit
    bias, x, y = (importer.env[given[name]] for name in ("self", "mat1", "mat2"))
    if str(x.ty.dtype) != "float16" or not given["beta"]:
        return importer._addmm(node)
    product = emit(relax.op.matmul(x, y, out_dtype="float32"))
    return _rounded_sum(importer, product, bias, beta=given["beta"], alpha=given["alpha"])


def _rounded_sum(
    importer: Any, product: Any, bias: Any, *, beta: float = 1, alpha: float = 1
) -> Any:
    """alpha * product + beta * bias, the product in float32, as float16."""
    from tvm import relax

    emit = importer.block_builder.emit
    terms = []
    for term, factor in ((product, alpha), (emit(relax.op.astype(bias, "float32")), beta)):
        scaled = term if factor == 1 else relax.op.multiply(term, relax.const(factor, "float32"))
        terms.append(emit(scaled))
    return emit(relax.op.astype(emit(relax.op.add(*terms)), "float16"))


def _convolution(node: Any, importer: Any) -> Any:
    """TVM's, and the transposed ones of volumes; of float16 with the bias as in `_linear`."""
    from tvm import relax

    given = settings_of(node)
    x, weight = importer.env[given["input"]], importer.env[given["weight"]]
    if not given["transposed"] and given["bias"] is not None and str(x.ty.dtype) == "float16":
        return _biased_convolution(node, importer, given["bias"])
    if not given["transposed"] or x.ty.ndim != 5:
        return importer._convolution(node)
    emit = importer.block_builder.emit
    found = emit(
        relax.op.nn.conv3d_transpose(
            x,
            weight,
            strides=list(given["stride"]),
            padding=list(given["padding"]),
            output_padding=list(given["output_padding"]),
            dilation=list(given["dilation"]),
            groups=given["groups"],
        )
    )
    if given["bias"] is None:
        return found
    bias = emit(relax.op.reshape(importer.env[given["bias"]], (1, -1, 1, 1, 1)))
    return emit(relax.op.add(found, bias))


def _biased_convolution(node: Any, importer: Any, name: Any) -> Any:
    """A convolution of float16, whose bias has this name."""
    from tvm import relax

    bias, axes = importer.env[name], node.meta["val"].ndim - 2
    importer.env[name] = None
    try:
        rounded = importer._convolution(node)
    finally:
        importer.env[name] = bias
    # `keeping_types` has it as float32's, rounded.
    exact = importer.block_builder.lookup_binding(rounded).args[0]
    bias = importer.block_builder.emit(relax.op.reshape(bias, (1, -1, *[1] * axes)))
    return _rounded_sum(importer, exact, bias)
