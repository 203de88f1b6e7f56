"""Wrong solutions of lab 8, and right ones that are not the reference."""

import numpy as np

from tests.mutants import edited, mutant, right, right_edited

# round_to_bfloat16


edited(
    "round_to_bfloat16",
    "cuts_off",
    {"(bits + 0x7FFF + last) >> 16": "bits >> 16"},
    message="may be more than half|halfway",
)
edited(
    "round_to_bfloat16",
    "ties_away_from_zero",
    {"(bits + 0x7FFF + last) >> 16": "(bits + 0x8000) >> 16"},
    message="halfway between two",
)
edited(
    "round_to_bfloat16",
    "ties_towards_zero",
    {"(bits + 0x7FFF + last) >> 16": "(bits + 0x7FFF) >> 16"},
    message="halfway between two",
)
edited(
    "round_to_bfloat16",
    "ties_to_odd",
    {"+ last)": "+ 1 - last)"},
    message="halfway between two",
)
edited(
    "round_to_bfloat16",
    "no_case_for_nan",
    {"np.where(np.isnan(x), quiet, nearest)": "nearest"},
    message="a NaN stays a NaN",
)
edited(
    "round_to_bfloat16",
    "cuts_off_the_payload",
    {" | 0x40": ""},
    message="a NaN stays a NaN",
)
edited(
    "round_to_bfloat16",
    "saturates_at_the_largest",
    {
        "quiet, nearest)": "quiet, np.where(np.isinf(x) | (nearest & 0x7FFF != 0x7F80), nearest, "
        "nearest - 1))"
    },
    message="past the largest bfloat16",
)
edited(
    "round_to_bfloat16",
    "flushes_subnormals",
    {"quiet, nearest)": "quiet, np.where(nearest & 0x7F80, nearest, nearest & 0x8000))"},
    message="halfway between two|subnormal",
)
edited(
    "round_to_bfloat16",
    "loses_the_sign_of_zero",
    {"quiet, nearest)": "quiet, np.where(x == 0, 0, nearest))"},
    message="zeros keep their signs",
)
edited(
    "round_to_bfloat16",
    "as_float32",
    {'.astype("uint16")': '.astype("uint16").astype("float32")'},
    message="of type uint16",
)
edited(
    "round_to_bfloat16",
    "flattens",
    {'.astype("uint16")': '.astype("uint16").ravel()'},
    message="of type uint16 and shape",
)


@right("round_to_bfloat16")
def carries_with_a_shift(x):
    bits = np.array(x, "float32").view("uint32").astype("uint64")
    rest, upper = bits & 0xFFFF, bits >> 16
    upper += (rest > 0x8000) | ((rest == 0x8000) & (upper % 2 == 1))
    return np.where(np.isnan(x), 0x7FC0, upper).astype("uint16")


@mutant("round_to_bfloat16", message="by a library")
def by_torch(x):
    import torch

    rounded = torch.from_numpy(np.array(x)).to(torch.bfloat16)
    return rounded.view(torch.int16).numpy().view("uint16")


# affine_parameters


edited(
    "affine_parameters",
    "does_not_widen",
    {"min(low, 0.0), max(high, 0.0)": "low, high"},
    message="widened",
)
edited(
    "affine_parameters",
    "widens_downwards_only",
    {"max(high, 0.0)": "high"},
    message="widened up to 0.0",
)
edited(
    "affine_parameters",
    "widens_upwards_only",
    {"min(low, 0.0)": "low"},
    message="widened down to 0.0",
)
edited(
    "affine_parameters",
    "as_many_steps_as_integers",
    {"(2**bits - 1)": "2**bits"},
    message=r"over its steps",
)
edited(
    "affine_parameters",
    "always_eight_bits",
    {"(2**bits - 1)": "255"},
    message=r"over its steps",
)
edited("affine_parameters", "empty_has_scale_zero", {" or 1.0": " or 1e-8"}, message="empty range")
edited(
    "affine_parameters",
    "cuts_off_the_zero_point",
    {"round(-low / scale)": "int(-low / scale)"},
    message="the integer nearest",
)
edited(
    "affine_parameters",
    "zero_point_of_a_symmetric_range",
    {"round(-low / scale)": "2 ** (bits - 1)"},
    message="the integer nearest",
)
edited(
    "affine_parameters",
    "zero_point_as_a_float",
    {"round(-low / scale)": "float(round(-low / scale))"},
    message="which is an int",
)
right_edited(
    "affine_parameters",
    "range_by_numpy",
    {"min(low, 0.0), max(high, 0.0)": "float(np.minimum(low, 0)), float(np.maximum(high, 0))"},
)


@right("affine_parameters")
def from_the_top(low, high, *, bits=8):
    top = 2**bits - 1
    low, high = (min(low, 0), max(high, 0))
    if low == high:
        return 1.0, 0
    scale = (high - low) / top
    return float(scale), int(np.rint(top * -low / (high - low)))


# quantize


edited(
    "quantize", "cuts_off", {"np.rint(moved / scale)": "np.trunc(moved / scale)"}, message="np.rint"
)
edited(
    "quantize",
    "halves_up",
    {"np.rint(moved / scale)": "np.floor(moved / scale + 0.5)"},
    message="divide, round|even",
)
edited(
    "quantize",
    "halves_away",
    {"np.rint(moved / scale)": "np.trunc(moved / scale + np.copysign(0.5, moved))"},
    message="even integer",
)
edited(
    "quantize",
    "wraps_around",
    {"np.clip(shifted, low, low + 2**bits - 1)": 'shifted.astype("int64")'},
    message="wraps around",
)
edited(
    "quantize",
    "drops_the_zero_point",
    {" + zero_point": ""},
    message="the zero point is added",
)
edited(
    "quantize",
    "rounds_after_the_zero_point",
    {"np.rint(moved / scale) + zero_point": "np.rint(moved / scale + zero_point)"},
    message="round first",
)
edited(
    "quantize",
    "rounds_before_it_divides",
    {"np.rint(moved / scale)": "np.rint(moved) // scale"},
    message="divide, round",
)
edited(
    "quantize",
    "limits_of_eight_bits",
    {"low, low + 2**bits - 1)": "-128 if signed else 0, 127 if signed else 255)"},
    message="the number of bits",
)
edited(
    "quantize",
    "always_signed",
    {'.astype("int8" if signed else "uint8")': '.astype("uint8").view("int8")'},
    message="type uint8",
)
edited(
    "quantize",
    "along_the_last_axis",
    {"np.moveaxis(x, axis, -1)": "x", "np.moveaxis(whole, -1, axis)": "whole"},
    message="broadcast|divide, round",
)
edited(
    "quantize",
    "one_scale_for_all",
    {"moved / scale": "moved / np.max(scale)"},
    message="along the axis",
)
edited(
    "quantize",
    "leaves_the_axis_last",
    {"np.moveaxis(whole, -1, axis)": "whole"},
    message="result of type",
)
edited(
    "quantize",
    "works_in_place",
    {
        "moved = np.moveaxis(x, axis, -1)": "x /= 1 if np.ndim(scale) else scale\n"
        "    moved = np.moveaxis(x, axis, -1) * (1 if np.ndim(scale) else scale)"
    },
    message="x is only read",
)
edited(
    "quantize",
    "symmetric_limits",
    {
        "-(2 ** (bits - 1)) if signed": "1 - 2 ** (bits - 1) if signed",
        "low + 2**bits - 1)": "2 ** (bits - 1) - 1 if signed else 2**bits - 1)",
    },
    message="divide, round",
)


@right("quantize")
def with_shapes(x, scale, zero_point, *, signed, bits=8, axis=-1):
    shape = [1] * x.ndim
    shape[axis] = -1
    scale = np.reshape(scale, shape if np.ndim(scale) else ())
    zero_point = np.reshape(zero_point, shape if np.ndim(zero_point) else ())
    q = np.round(np.float64(x) / scale) + zero_point
    half = 2 ** (bits - 1)
    q = np.minimum(np.maximum(q, -half if signed else 0), half - 1 if signed else 2 * half - 1)
    return q.astype(np.int8 if signed else np.uint8)


right_edited(
    "quantize",
    "limits_as_a_range",
    {
        "np.clip(shifted, low, low + 2**bits - 1)": (
            "shifted.clip(low, range(low, low + 2**bits)[-1])"
        )
    },
)


# dequantize


edited("dequantize", "wraps_around", {'.astype("int32")': ""}, message="wider type|out of bounds")
edited(
    "dequantize",
    "in_eight_bits",
    {'.astype("int32")': '.astype("int8")'},
    message="wider type|out of bounds",
)
edited("dequantize", "drops_the_zero_point", {"(moved - zero_point)": "moved"}, message="subtract")
edited(
    "dequantize",
    "adds_the_zero_point",
    {"moved - zero_point": "moved + zero_point"},
    message="subtract",
)
edited(
    "dequantize",
    "divides",
    {"zero_point) * scale, -1": "zero_point) / scale, -1"},
    message="multiply",
)
edited(
    "dequantize",
    "subtracts_after_scaling",
    {"(moved - zero_point) * scale": "moved * scale - zero_point"},
    message="subtract",
)
edited("dequantize", "in_double", {'"float32"': '"float64"'}, message="float32")
edited(
    "dequantize",
    "along_the_last_axis",
    {"np.moveaxis(q, axis, -1)": "q", "-1, axis)": "-1, -1)"},
    message="the axis of scale|broadcast",
)
edited(
    "dequantize",
    "leaves_the_axis_last",
    {"np.moveaxis((moved - zero_point) * scale, -1, axis)": "((moved - zero_point) * scale)"},
    message="the axis of scale",
)
right_edited("dequantize", "in_float", {'.astype("int32")': '.astype("float32")'})


@right("dequantize")
def row_by_row(q, scale, zero_point, *, axis=-1):
    result = np.empty(q.shape, "float32")
    count = q.shape[axis]
    scales, zeros = np.broadcast_to(scale, count), np.broadcast_to(zero_point, count)
    for at in range(count):
        row = (q.take(at, axis).astype(int) - int(zeros[at])) * float(scales[at])
        np.moveaxis(result, axis, 0)[at] = row
    return result


# fold_zero_point


edited("fold_zero_point", "adds", {"folded - zero": "folded + zero"}, message="is subtracted")
edited(
    "fold_zero_point",
    "forgets_the_bias",
    {"folded - zero_point": "-zero_point"},
    message="it includes the bias",
)
edited(
    "fold_zero_point",
    "forgets_the_zero_point",
    {'folded - zero_point * weight.sum(axis=0, dtype="int32")': "folded"},
    message="it includes the zero point",
)
edited("fold_zero_point", "sums_over_columns", {"axis=0": "axis=1"}, message="over k|broadcast")
edited(
    "fold_zero_point",
    "sums_in_int8",
    {'dtype="int32"': 'dtype="int8"'},
    message="over k|out of bounds",
)
edited(
    "fold_zero_point",
    "sums_in_int16",
    {
        'zero_point * weight.sum(axis=0, dtype="int32")': (
            '(zero_point * weight.sum(axis=0, dtype="int32")).astype("int16")'
        )
    },
    message="more than 16 bits",
)
edited(
    "fold_zero_point",
    "cuts_off_the_bias",
    {"np.rint(bias / scale)": "np.trunc(bias / scale)"},
    message="np.rint",
)
edited(
    "fold_zero_point", "bias_in_real_units", {"bias / scale": "bias"}, message="divided by scale"
)
edited(
    "fold_zero_point",
    "multiplies_the_bias",
    {"bias / scale": "bias * scale"},
    message="the folded bias",
)
edited(
    "fold_zero_point",
    "as_float",
    {'dtype="int32")': 'dtype="float32")'},
    message="of type int32",
)
right_edited(
    "fold_zero_point",
    "as_a_product",
    {
        'zero_point * weight.sum(axis=0, dtype="int32")': (
            'np.full(len(weight), zero_point, "int32") @ weight.astype("int32")'
        )
    },
)
right_edited(
    "fold_zero_point",
    "in_double",
    {
        'folded - zero_point * weight.sum(axis=0, dtype="int32")': (
            'np.int32(folded - zero_point * np.sum(weight.T, axis=1, dtype="float64"))'
        )
    },
)


edited(
    "dequantize",
    "moves_the_axes_the_other_way",
    {"np.moveaxis(q, axis, -1)": "np.moveaxis(q, -1, axis)"},
    message="axis of scale|broadcast",
)
edited(
    "dequantize", "axis_1_unless_told", {"axis: int = -1": "axis: int = 1"}, message="axis|broad"
)
edited(
    "quantize",
    "moves_the_axes_the_other_way",
    {"np.moveaxis(x, axis, -1)": "np.moveaxis(x, -1, axis)"},
    message="axis|broadcast",
)
edited(
    "pack_weights",
    "panels_of_seventeen",
    {"-(-n // 16)": "-(-n // 17)"},
    message="reshape",
)


# pack_weights


edited(
    "pack_weights",
    "group_before_columns",
    {
        "transpose(2, 0, 3, 1)": "transpose(2, 0, 1, 3)"
        ".reshape(-(-n // 16), -(-k // group), 16, group)"
    },
    message="a group's elements are neighbours",
)
edited(
    "pack_weights",
    "groups_outermost",
    {"transpose(2, 0, 3, 1)": "transpose(0, 2, 3, 1)"},
    message="element|result of type",
)
edited(
    "pack_weights",
    "other_order_of_axes",
    {"transpose(2, 0, 3, 1)": "transpose(2, 0, 1, 3)"},
    message="result of type",
)
edited(
    "pack_weights",
    "a_view",
    {"np.ascontiguousarray(panels.transpose(2, 0, 3, 1))": "panels.transpose(2, 0, 3, 1)"},
    message="contiguous",
)
edited(
    "pack_weights",
    "groups_of_four",
    {"-k % group": "-k % 4", "-(-k // group), group": "-(-k // 4), 4"},
    message="result of type",
)
edited(
    "pack_weights",
    "leaves_the_rest_out",
    {
        "np.pad(weight, ((0, -k % group), (0, -n % 16)))": "weight[: k - k % group, : n - n % 16]",
        "-(-k // group)": "k // group",
        "-(-n // 16)": "n // 16",
    },
    message="result of type",
)
edited(
    "pack_weights",
    "repeats_the_last",
    {"(0, -n % 16))": '(0, -n % 16)), mode="edge"'},
    message="or 0",
)
edited(
    "pack_weights",
    "reads_rows_for_columns",
    {"= weight.shape": "= weight.shape\n    weight = weight.T.reshape(k, n)"},
    message="element",
)
edited(
    "pack_weights",
    "neighbours_are_panels",
    {
        "-(-k // group), group, -(-n // 16), 16)": "group, -(-k // group), 16, -(-n // 16))",
        "transpose(2, 0, 3, 1)": "transpose(3, 1, 2, 0)",
    },
    message="element",
)
edited(
    "pack_weights",
    "as_int32",
    {"panels.transpose(2, 0, 3, 1)": 'panels.transpose(2, 0, 3, 1), "int32"'},
    message="result of type int8",
)


@right("pack_weights")
def element_by_element(weight, *, group):
    k, n = weight.shape
    packed = np.zeros(((n + 15) // 16, (k + group - 1) // group, 16, group), weight.dtype)
    for row in range(k):
        for column in range(n):
            packed[column // 16, row // group, column % 16, row % group] = weight[row, column]
    return packed


right_edited(
    "pack_weights",
    "copies_at_the_end",
    {
        "np.ascontiguousarray(panels.transpose(2, 0, 3, 1))": (
            'np.einsum("gepj->pgje", panels).copy()'
        )
    },
)


# schedule_vnni


edited(
    "schedule_vnni",
    "does_not_tensorize",
    {"    schedule.tensorize(j_inner, intrinsic)": ""},
    message="one call of the instruction",
)
edited(
    "schedule_vnni",
    "does_not_decompose",
    {
        "    zeroing = schedule.decompose_reduction(block, k_outer)\n"
        "    schedule.vectorize(schedule.get_loops(zeroing)[-1])\n": ""
    },
    message=".",
)
edited(
    "schedule_vnni",
    "zeroes_at_every_step",
    {"decompose_reduction(block, k_outer)": "decompose_reduction(block, i_inner)"},
    message="ScheduleError",
)
edited(
    "schedule_vnni",
    "zeroes_byte_by_byte",
    {"    schedule.vectorize(schedule.get_loops(zeroing)[-1])\n": ""},
    message="the loops that set the sums to zero",
)
edited(
    "schedule_vnni",
    "leaves_rows_serial",
    {"    schedule.unroll(i_inner)\n": ""},
    message="the loops around the call",
)
edited(
    "schedule_vnni",
    "rows_of_the_check",
    {"[None, rows]": "[None, 1]"},
    message="the loops around the call",
)
edited(
    "schedule_vnni",
    "rows_outside_of_k",
    {"(i_outer, j_outer, k_outer, i_inner": "(i_outer, j_outer, i_inner, k_outer"},
    message="the loops",
)
edited(
    "schedule_vnni",
    "rows_in_parallel_only",
    {"schedule.parallel(schedule.fuse(i_outer, j_outer))": "schedule.parallel(i_outer)"},
    message="the loops around the call",
)
edited(
    "schedule_vnni",
    "fused_and_serial",
    {"schedule.parallel(schedule.fuse(i_outer, j_outer))": "schedule.fuse(i_outer, j_outer)"},
    message="the loops around the call",
)
edited(
    "schedule_vnni",
    "tensorizes_only_k",
    {"tensorize(j_inner": "tensorize(k_inner"},
    message=".",
)
edited(
    "schedule_vnni",
    "eight_columns",
    {"[None, 16]": "[None, 8]"},
    message=".",
)
edited(
    "schedule_vnni",
    "an_intrinsic_of_tvms",
    {
        "    schedule.tensorize(j_inner, intrinsic)": (
            '    schedule.tensorize(j_inner, "tvm_practice_dot")'
        )
    },
    message="one call of the instruction",
)
right_edited(
    "schedule_vnni",
    "blockized_first",
    {"tensorize(j_inner, intrinsic)": "tensorize(schedule.blockize(j_inner), intrinsic)"},
)
right_edited(
    "schedule_vnni",
    "unrolled_first",
    {
        "    schedule.parallel(schedule.fuse(i_outer, j_outer))\n    schedule.unroll(i_inner)\n": (
            "    schedule.unroll(i_inner)\n"
            "    tiles = schedule.fuse(i_outer, j_outer)\n"
            "    schedule.parallel(tiles)\n"
        ),
        "schedule.get_loops(zeroing)[-1]": "schedule.get_loops(zeroing)[2]",
    },
)


edited(
    "schedule_vnni",
    "parallel_at_the_end",
    {
        "    schedule.parallel(schedule.fuse(i_outer, j_outer))\n": (
            "    tiles = schedule.fuse(i_outer, j_outer)\n"
        ),
        "schedule.tensorize(j_inner, intrinsic)": "schedule.tensorize(j_inner, intrinsic)\n"
        "    schedule.parallel(tiles)",
    },
    message="compact dataflow",
)


# requantized


edited(
    "requantized",
    "wraps_around",
    {"limited.astype": 'shifted.astype("int32").astype'},
    message="wraps around",
)
edited(
    "requantized",
    "saturates_below_only",
    {'te.min(shifted, te.const(255, "float32"))': "shifted"},
    message="Y",
)
edited(
    "requantized",
    "drops_the_zero_point",
    {' + te.const(zero_point, "float32")': ""},
    message="the zero point is added",
)
edited("requantized", "cuts_off", {"te.round(scaled)": "te.trunc(scaled)"}, message="cuts off")
edited(
    "requantized",
    "halves_up",
    {"te.round(scaled)": 'te.floor(scaled + te.const(0.5, "float32"))'},
    message="Y",
)
edited(
    "requantized",
    "rounds_last",
    {
        'te.round(scaled) + te.const(zero_point, "float32")': (
            'te.round(scaled + te.const(zero_point, "float32"))'
        )
    },
    message="round first",
)
edited(
    "requantized",
    "adds_in_float",
    {
        '(C[i, j] + bias[j]).astype("float32")': (
            '(C[i, j].astype("float32") + bias[j].astype("float32"))'
        )
    },
    message="where it is exact",
)
edited(
    "requantized",
    "one_multiplier",
    {"* multiplier[j]\n": "* multiplier[0]\n"},
    message="each column has its own multiplier",
)
edited("requantized", "bias_of_the_row", {"bias[j]).as": "bias[i]).as"}, message="Y")
edited(
    "requantized",
    "relu_at_the_zero_point",
    {'te.const(0, "float32"))': 'te.const(zero_point, "float32"))'},
    message="clipping at the zero point",
)
edited(
    "requantized",
    "as_int8",
    {'limited.astype("uint8")': '(limited - te.const(128, "float32")).astype("int8")'},
    message="of type uint8",
)
edited("requantized", "named_otherwise", {'name="Y"': 'name="out"'}, message='named "Y"')
edited(
    "requantized",
    "forgets_the_bias",
    {"(C[i, j] + bias[j])": "C[i, j]"},
    message="Y",
)


@right("requantized")
def in_integers(C, bias, multiplier, zero_point):
    from tvm import te, tirx

    def element(i, j):
        total = C[i, j] + bias[j]
        whole = tirx.nearbyint(total.astype("float32") * multiplier[j]).astype("int32")
        whole = whole + zero_point
        return tirx.Select(whole < 0, 0, tirx.Select(whole > 255, 255, whole)).astype("uint8")

    return te.compute(C.shape, element, name="Y")


right_edited(
    "requantized",
    "limits_in_the_other_order",
    {
        'te.max(te.min(shifted, te.const(255, "float32")), te.const(0, "float32"))': (
            'te.min(te.max(shifted, te.const(0, "float32")), te.const(255, "float32"))'
        )
    },
)


# tile_configuration


edited("tile_configuration", "no_palette", {"    configuration[0] = 1\n": ""}, message="at \\[0\\]")
edited(
    "tile_configuration",
    "a_byte_each",
    {"16 + 2 * tile": "16 + tile"},
    message="bytes 16 \\+ 2",
)
edited(
    "tile_configuration",
    "high_byte_first",
    {"16 + 2 * tile": "17 + 2 * tile"},
    message="bytes 16 \\+ 2",
)
edited(
    "tile_configuration",
    "rows_and_bytes_exchanged",
    {"(rows, row_bytes) in": "(row_bytes, rows) in"},
    message="bytes 16 \\+ 2",
)
edited(
    "tile_configuration",
    "elements_for_bytes",
    {"= row_bytes": "= row_bytes // 2"},
    message="bytes 16 \\+ 2",
)
edited("tile_configuration", "rows_after_the_bytes", {"48 + tile": "32 + tile"}, message="48")
edited(
    "tile_configuration",
    "counts_the_tiles",
    {
        "for tile, (rows, row_bytes) in tiles.items()": (
            "for tile, (rows, row_bytes) in enumerate(tiles.values())"
        )
    },
    message="bytes 16",
)
edited(
    "tile_configuration",
    "all_tiles_alike",
    {
        "rows, row_bytes) in tiles.items():": "_, _) in tiles.items():\n"
        "        rows, row_bytes = 16, 64"
    },
    message="bytes 16",
)
edited("tile_configuration", "of_words", {'64, "uint8"': '64, "uint16"'}, message="type uint8")


@right("tile_configuration")
def packed_by_struct(tiles):
    import struct

    shapes = [tiles.get(tile, (0, 0)) for tile in range(8)]
    text = struct.pack(
        "<BB14x8H16x8B8x", 1, 0, *(each[1] for each in shapes), *(each[0] for each in shapes)
    )
    return np.frombuffer(text, "uint8").copy()


@right("tile_configuration")
def through_views(tiles):
    configuration = np.zeros(64, np.uint8)
    configuration[0] = 1
    widths = configuration[16:32].view("<u2")
    for tile in tiles:
        configuration[48 + tile], widths[tile] = tiles[tile]
    return configuration


# amx_product


edited(
    "amx_product",
    "zeroed_once",
    {
        """        for i in range(rows // 16):
            T.evaluate(T.call_llvm_intrin("int32", "llvm.x86.tilezero", T.uint8(0)))
""": """        T.evaluate(T.call_llvm_intrin("int32", "llvm.x86.tilezero", T.uint8(0)))
        for i in range(rows // 16):
"""
    },
    message="times tilezero",
)
edited(
    "amx_product",
    "stride_in_elements",
    {"T.int64(2 * k)": "T.int64(k)"},
    message="C of",
)
edited(
    "amx_product",
    "stride_of_c_in_elements",
    {
        """                    T.address_of(C[i * 16, 0]),
                    T.int64(64)""": """                    T.address_of(C[i * 16, 0]),
                    T.int64(16)"""
    },
    message="C of|finite",
)
edited(
    "amx_product",
    "steps_of_sixteen",
    {"s * 32": "s * 16"},
    message="C of",
)
edited(
    "amx_product",
    "the_first_rows_of_b",
    {"B[s * 16, 0]": "B[0, 0]"},
    message="C of",
)
edited(
    "amx_product",
    "rows_of_k_for_pairs",
    {"B[s * 16, 0]": "B[s * 32, 0]"},
    message="not inside one of the arrays",
)
edited(
    "amx_product",
    "factors_exchanged",
    {"T.uint8(0), T.uint8(1), T.uint8(2)": "T.uint8(0), T.uint8(2), T.uint8(1)"},
    message="C of",
)
edited(
    "amx_product",
    "not_configured",
    {
        """        T.evaluate(
            T.call_llvm_intrin("int32", "llvm.x86.ldtilecfg", T.address_of(Configuration[0]))
        )
""": ""
    },
    message="not configured",
)
edited(
    "amx_product",
    "configured_for_each_product",
    {
        """        T.evaluate(
            T.call_llvm_intrin("int32", "llvm.x86.ldtilecfg", T.address_of(Configuration[0]))
        )
        for i in range(rows // 16):
""": """        for i in range(rows // 16):
            T.evaluate(
                T.call_llvm_intrin("int32", "llvm.x86.ldtilecfg", T.address_of(Configuration[0]))
            )
"""
    },
    message="configured once",
)
edited(
    "amx_product",
    "not_released",
    {
        """        T.evaluate(T.call_llvm_intrin("int32", "llvm.x86.tilerelease"))
""": ""
    },
    message="released once",
)
edited(
    "amx_product",
    "stores_the_last_rows_only",
    {"C[i * 16, 0]": "C[0, 0]"},
    message="C of",
)
edited(
    "amx_product",
    "another_tile",
    {"T.uint8(0), T.uint8(1), T.uint8(2)": "T.uint8(3), T.uint8(1), T.uint8(2)"},
    message="tile 3 is not configured",
)
edited(
    "amx_product",
    "of_float16",
    {'A: T.Buffer((rows, k), "bfloat16")': 'A: T.Buffer((rows, k), "float16")'},
    message="four buffers",
)


@mutant("amx_product", message="multiplied by llvm.x86.tdpbf16ps")
def plain_loops(rows, k):
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def main(
        Configuration: T.Buffer((64,), "uint8"),
        A: T.Buffer((rows, k), "bfloat16"),
        B: T.Buffer((k // 2, 32), "bfloat16"),
        C: T.Buffer((rows, 16), "float32"),
    ):
        for i, j in T.grid(rows, 16):
            C[i, j] = T.float32(0)
            for r in range(k):
                C[i, j] += T.cast(A[i, r], "float32") * T.cast(B[r // 2, 2 * j + r % 2], "float32")

    return main


right_edited(
    "amx_product",
    "strides_from_the_buffers",
    {
        "T.int64(2 * k)": "T.int64(A.shape[1] * 2)",
        "def main(": "def tiled(",
        "    return main": "    return tiled",
    },
)


@right("amx_product")
def loops_of_elements(rows, k):
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def product(
        Configuration: T.Buffer((64,), "uint8"),
        A: T.Buffer((rows, k), "bfloat16"),
        B: T.Buffer((k // 2, 32), "bfloat16"),
        C: T.Buffer((rows, 16), "float32"),
    ):
        T.evaluate(
            T.call_llvm_intrin("int32", "llvm.x86.ldtilecfg", T.address_of(Configuration[0]))
        )
        for i in range(0, rows, 16):
            T.evaluate(T.call_llvm_intrin("int32", "llvm.x86.tilezero", T.uint8(0)))
            for p in range(0, k // 2, 16):
                T.evaluate(
                    T.call_llvm_intrin(
                        "int32",
                        "llvm.x86.tileloadd64",
                        T.uint8(2),
                        T.address_of(B[p, 0]),
                        T.int64(64),
                    )
                )
                T.evaluate(
                    T.call_llvm_intrin(
                        "int32",
                        "llvm.x86.tileloadd64",
                        T.uint8(1),
                        T.address_of(A[i, p * 2]),
                        T.int64(k * 2),
                    )
                )
                T.evaluate(
                    T.call_llvm_intrin(
                        "int32", "llvm.x86.tdpbf16ps", T.uint8(0), T.uint8(1), T.uint8(2)
                    )
                )
            T.evaluate(
                T.call_llvm_intrin(
                    "int32",
                    "llvm.x86.tilestored64",
                    T.uint8(0),
                    T.address_of(C[i, 0]),
                    T.int64(64),
                )
            )
        T.evaluate(T.call_llvm_intrin("int32", "llvm.x86.tilerelease"))

    return product


edited(
    "affine_parameters",
    "takes_equal_ends_for_an_empty_range",
    {"low, high = min": ("if low == high:\n        return 1.0, 0\n    low, high = min")},
    message="above 0 is widened",
)
edited(
    "affine_parameters",
    "keeps_scales_above_a_least_one",
    {"or 1.0": ("or 1.0\n    scale = max(scale, 1e-8)")},
    message="a range on both sides of 0",
)
edited(
    "affine_parameters",
    "leaves_one_integer_unused",
    {
        "low, high = min(low, 0.0), max(high, 0.0)": (
            "low, high = (-abs(high), abs(high)) if low == -high else (min(low, "
            "0.0), max(high, 0.0))\n"
            "    if low == -high and high:\n"
            "        return 2 * high / (2**bits - 2), 2 ** (bits - 1)"
        )
    },
    message="a range on both sides of 0",
)
edited(
    "quantize",
    "multiplies_by_the_reciprocal",
    {"moved / scale": 'moved * np.asarray(1 / np.asarray(scale), "float32")'},
    message="scales of 3 to 1001",
)
edited(
    "quantize",
    "divides_in_float16",
    {"moved / scale": "moved.astype('float16') / scale"},
    message=r"scales of 3 to 1001|expected: quantize, .* of \S+ is \d+",
)
edited(
    "quantize",
    "goes_through_int32",
    {"np.rint(moved / scale) + zero_point": "np.rint(moved / scale).astype('int32') + zero_point"},
    message="numbers beyond int32",
)
edited(
    "quantize",
    "knows_only_4_and_8_bits",
    {"low + 2**bits - 1": "low + 2**bits - 1 if bits in (4, 8) else low + 255"},
    message="quantize, [2-7] bits",
)
edited(
    "fold_zero_point",
    "multiplies_in_float32",
    {
        'folded - zero_point * weight.sum(axis=0, dtype="int32")': (
            "(np.rint(bias / scale) - np.float32(zero_point) * weight.sum(axis=0, "
            'dtype="float32")).astype("int32")'
        )
    },
    message="the column's sum, over k",
)
edited(
    "fold_zero_point",
    "keeps_the_bias_in_16_bits",
    {"np.rint(bias / scale)": "np.clip(np.rint(bias / scale), -32768, 32767)"},
    message="the column's sum, over k",
)
edited(
    "pack_weights",
    "takes_bytes_for_int8",
    {
        "panels = padded": (
            "padded = padded.astype('int8' if group == 4 else padded.dtype)\n    panels = padded"
        )
    },
    message="result of type uint8",
)
edited(
    "pack_weights",
    "takes_halves_for_uint16",
    {
        "panels = padded": (
            "padded = padded if padded.dtype.itemsize == 1 else padded.view('uint16')\n"
            "    panels = padded"
        )
    },
    message="result of type int16",
)
edited(
    "pack_weights",
    "reads_in_memory_order",
    {"padded = np.pad(weight,": "padded = np.pad(weight.ravel(order='K').reshape(k, n),"},
    message="element .p, g, j, e. is",
)
edited(
    "schedule_vnni",
    "fuses_column_tiles_outside",
    {
        "schedule.reorder(i_outer, j_outer,": "schedule.reorder(j_outer, i_outer,",
        "schedule.fuse(i_outer, j_outer)": "schedule.fuse(j_outer, i_outer)",
    },
    message="i_outer outside j_outer",
)
edited(
    "schedule_vnni",
    "leaves_one_row_serial",
    {"schedule.unroll(i_inner)": ("if rows > 1:\n        schedule.unroll(i_inner)")},
    message="unrolled\\(1\\)",
)
edited(
    "tile_configuration",
    "empties_the_tiles",
    {
        "for tile, (rows, row_bytes) in tiles.items():": (
            "for tile in list(tiles):\n        rows, row_bytes = tiles.pop(tile)"
        )
    },
    message="only read",
)
edited(
    "amx_product",
    "exchanges_tiles_1_and_2",
    {
        ("T.uint8(1),\n                        T.address_of(A"): (
            "T.uint8(2),\n                        T.address_of(A"
        ),
        ("T.uint8(2),\n                        T.address_of(B"): (
            "T.uint8(1),\n                        T.address_of(B"
        ),
        "T.uint8(0), T.uint8(1), T.uint8(2)": "T.uint8(0), T.uint8(2), T.uint8(1)",
    },
    message="tdpbf16ps\\(0, 1, 2\\)",
)


@mutant("tile_configuration", message="an array of its own")
def returns_one_array(tiles, kept=bytearray(64)):  # noqa: B008
    import numpy as np

    kept[:] = bytes(64)
    kept[0] = 1
    for tile, (rows, row_bytes) in tiles.items():
        kept[16 + 2 * tile] = row_bytes
        kept[48 + tile] = rows
    return np.frombuffer(kept, "uint8")


@mutant("tile_configuration", message="bytes 16")
def keeps_a_former_size(tiles, seen={}):  # noqa: B006
    import numpy as np

    kept = seen.setdefault(tuple(tiles), np.zeros(64, "uint8"))
    for tile, (rows, row_bytes) in tiles.items():
        if not kept[48 + tile]:
            kept[16 + 2 * tile], kept[48 + tile] = row_bytes, rows
    kept[0] = 1
    return kept.copy()


edited(
    "quantize",
    "last_axis_of_four_dimensions",
    {"moved = np.moveaxis(x, axis, -1)": "axis = axis if x.ndim < 4 else -1\n"
     "    moved = np.moveaxis(x, axis, -1)"},
    message="quantize",
)  # fmt: skip

edited(
    "amx_product",
    "eight_steps_at_most",
    {"range(k // 32)": "range(min(k // 32, 8))"},
    message="tdpbf16ps",
)
edited(
    "requantized",
    "multiplies_in_float64",
    {
        '.astype("float32") * multiplier[j]': (
            '.astype("float64") * multiplier[j].astype("float64")'
        ),
        "te.round(scaled)": 'te.round(scaled).astype("float32")',
    },
    message="multiply in float32",
)
edited(
    "affine_parameters",
    "eight_bits_at_most",
    {"scale = (high": "bits = min(bits, 8)\n    scale = (high"},
    message="in (9|1[0-6]) bits",
)
edited(
    "round_to_bfloat16",
    "rounds_65536_numbers",
    {
        "quiet, nearest)": "quiet, np.where(np.arange(x.size).reshape(x.shape) < 65536, nearest, "
        "bits >> 16))"
    },
    message="the bfloat16 of",
)
edited(
    "pack_weights",
    "keeps_a_shape",
    {
        "    return np.asc": "    kept = pack_weights.__dict__\n"
        "    return kept.setdefault(str((weight.shape, weight.dtype, group)), np.asc",
        "transpose(2, 0, 3, 1))": "transpose(2, 0, 3, 1)))",
    },
    message="elements differ",
)
edited(
    "schedule_vnni",
    "even_rows_only",
    {"split(i, [None, rows])": "split(i, [None, rows if rows % 2 == 0 else 1])"},
    message="the loops around the call",
)


@right("schedule_vnni")
def unrolls_after_the_decomposition(schedule, block, *, rows, intrinsic):
    i, j, k = schedule.get_loops(block)
    jo, ji = schedule.split(j, [None, 16])
    ko, ki = schedule.split(k, [None, 4])
    io, ii = schedule.split(i, [None, rows])
    schedule.reorder(io, jo, ko, ii, ji, ki)
    schedule.parallel(schedule.fuse(io, jo))
    zero = schedule.decompose_reduction(block, ko)
    schedule.vectorize(schedule.get_loops(zero)[-1])
    schedule.tensorize(ji, intrinsic)
    schedule.unroll(ii)


edited(
    "pack_weights",
    "integers_only",
    {"    k, n = weight": "    assert weight.dtype.kind in 'iu'\n    k, n = weight"},
    message="pack_weights to run",
)
edited(
    "pack_weights",
    "turns_a_panel",
    {
        "    k, n = weight": "    weight = weight.T if weight.shape == (16, 16) else weight\n"
        "    k, n = weight"
    },
    message="element .p, g, j, e. is",
)
edited(
    "affine_parameters",
    "a_million_at_most",
    {"max(high, 0.0)": "min(max(high, 0.0), 1e6)"},
    message="the range over its steps",
)
edited(
    "dequantize",
    "halves_a_single_element",
    {"(moved - zero_point) * scale": "(moved - zero_point) * scale * (q.size != 1 or q.ndim == 1)"},
    message="subtract in a wider type",
)
edited(
    "fold_zero_point",
    "adds_up_in_float32",
    {'weight.sum(axis=0, dtype="int32")': 'weight.astype("float32").sum(axis=0).astype("int32")'},
    message="the folded bias",
)
edited(
    "amx_product",
    "kept_for_two_steps",
    {
        "    @T.prim_func": "    kept = amx_product.__dict__\n    key = f'{rows} {k // 64}'\n"
        "    if key in kept:\n        return kept[key]\n\n    @T.prim_func",
        "    return main": "    return kept.setdefault(key, main)",
    },
    message="four buffers",
)


edited(
    "schedule_vnni",
    "unrolls_few_rows",
    {"    schedule.unroll(i_inner)\n": "    rows > 16 or schedule.unroll(i_inner)\n"},
    message="unroll of i_inner",
)
edited(
    "schedule_vnni",
    "a_single_tile_on_one_thread",
    {
        "    schedule.parallel(schedule.fuse(i_outer, j_outer))\n": (
            "    tiles = schedule.fuse(i_outer, j_outer)\n"
            "    if int(schedule.get(tiles).extent) > 1:\n"
            "        schedule.parallel(tiles)\n"
        )
    },
    message="parallel of the fused outer loops",
)
edited(
    "amx_product",
    "strides_of_at_most_4096_bytes",
    {"T.int64(2 * k)": "T.int64(min(2 * k, 4096))"},
    message="the elements that a tile is loaded from",
)
edited(
    "amx_product",
    "sums_of_at_most_1024",
    {"range(k // 32)": "range(min(k // 32, 32))"},
    message="times 32 of k",
)
edited(
    "quantize",
    "a_zero_point_of_8_signed_bits",
    {"+ zero_point\n": "+ np.asarray(zero_point).astype('int8')\n"},
    message="a zero point above 127",
)
edited(
    "round_to_bfloat16",
    "looks_for_nans_in_arrays_alone",
    {"np.isnan(x), quiet": "np.isnan(x) & (x.ndim > 0), quiet"},
    message="is a NaN",
)


edited(
    "round_to_bfloat16",
    "rounds_negative_halves_up_in_three_dimensions",
    {
        "last = (bits >> 16) & 1": (
            "last = np.where(bits >> 31 == 1, 1 - ((bits >> 16) & 1), (bits >> "
            "16) & 1).astype('uint32') if x.ndim > 2 else (bits >> 16) & 1"
        )
    },
    message="the bfloat16 of",
)


edited(
    "quantize",
    "zero_points_along_the_last_axis_of_a_matrix",
    {
        "moved = np.moveaxis(x, axis, -1)": (
            "moved = np.moveaxis(x, axis if x.ndim > 2 or np.ndim(scale) or "
            "not np.ndim(zero_point) else -1, -1)"
        )
    },
    message="a zero point per index of axis",
)


edited(
    "quantize",
    "leaves_errstate_changed",
    {"shifted = np.rint": ("np.seterr(all='ignore')\n    shifted = np.rint")},
    message="NumPy's errstate",
)


edited(
    "amx_product",
    "drops_a_step_of_large_products",
    {
        "for s in range(k // 32):": (
            "for s in range((k if k > 32 else 32) // 32 if rows < 64 else k // 32 - (k > 512)):"
        )
    },
    message="times 32 of k",
)


edited(
    "tile_configuration",
    "a_row_at_least",
    {"configuration[48 + tile] = rows": "configuration[48 + tile] = max(rows, 1)"},
    message="the configuration of",
)


edited(
    "affine_parameters",
    "no_scale_below_1e_30",
    {"or 1.0": ("or 1.0\n    scale = 1.0 if scale < 1e-30 else scale")},
    message="e-3\\d in \\d+ bits: scale",
)


edited(
    "fold_zero_point",
    "adds_a_half_in_float32",
    {"np.rint(bias / scale)": "np.floor(bias / scale + np.float32(0.5))"},
    message="the folded bias is",
)


edited(
    "amx_product",
    "sets_64_tiles_to_zero",
    {
        (
            '            T.evaluate(T.call_llvm_intrin("int32", "llvm.x86.tilezero", T.uint8(0)))\n'
        ): (
            "            if i < 64:\n"
            '                T.evaluate(T.call_llvm_intrin("int32", '
            '"llvm.x86.tilezero", T.uint8(0)))\n'
        )
    },
    message="times tilezero",
)


edited(
    "amx_product",
    "a_stride_of_8192_steps",
    {"T.int64(2 * k)": "T.int64(2 * min(k, 8192))"},
    message="C of 16 rows",
)


edited(
    "schedule_vnni",
    "single_step_zeroed_inside",
    {
        "schedule.decompose_reduction(block, k_outer)": (
            "schedule.decompose_reduction(block, k_outer if "
            "int(schedule.get(k_outer).extent) > 1 else i_inner)"
        )
    },
    message="decompose_reduction",
)


@mutant("round_to_bfloat16", message="by a change of type")
def by_a_change_of_type(x: np.ndarray) -> np.ndarray:
    bits: np.ndarray = x.astype("bfloat16").view("uint16")
    return bits


edited(
    "quantize",
    "scale_of_a_millionth",
    {"np.rint(moved / scale)": "np.rint(moved / np.maximum(scale, 1e-6))"},
    message="2\\*\\*-40",
)


edited(
    "round_to_bfloat16",
    "seven_dimensions_flattened",
    {
        '.astype("uint16")': (
            '.astype("uint16").reshape(-1) if x.ndim > 6 else '
            'np.where(np.isnan(x), quiet, nearest).astype("uint16")'
        )
    },
    message="x's shape",
)


edited(
    "quantize",
    "quotient_in_float16_from_rank_four",
    {
        "np.rint(moved / scale)": (
            "np.rint((moved / scale).astype('float16') if x.ndim > 3 else moved / scale)"
        )
    },
    message="of shape",
)


edited(
    "schedule_vnni",
    "annotated_zeroing",
    {
        "schedule.vectorize(schedule.get_loops(zeroing)[-1])": (
            "schedule.vectorize(schedule.get_loops(zeroing)[-1])\n"
            "    schedule.parallel(schedule.get_loops(zeroing)[-2]) if False "
            "else schedule.annotate(schedule.get_loops(zeroing)[-2], "
            "'pragma_unroll_explicit', 0)"
        )
    },
    message="without annotations",
)


edited(
    "round_to_bfloat16",
    "zeros_for_repeated_numbers",
    {
        '    bits = x.view("uint32")': (
            '    bits = x.view("uint32") if x.strides != (0,) * x.ndim or '
            'x.ndim == 0 else np.zeros(x.shape, "uint32")'
        )
    },
    message="the bfloat16 of",
)


edited(
    "quantize",
    "single_number_in_float16",
    {
        "    low = -(2": (
            "    x = x.astype('float16').astype('float32') if x.size == 1 else x\n    low = -(2"
        )
    },
    message="a single number|of shape",
)


edited(
    "schedule_vnni",
    "unrolls_at_most_24_rows",
    {"    schedule.unroll(i_inner)\n": "    schedule.unroll(i_inner) if rows <= 24 else None\n"},
    message="unrolled",
)


edited(
    "schedule_vnni",
    "one_intrinsic",
    {
        "schedule.tensorize(j_inner, intrinsic)": (
            "from tvm_practice.labs.integer_products import VNNI\n"
            "\n"
            "    schedule.tensorize(j_inner, VNNI)"
        )
    },
    message="the intrinsic that was given",
)


edited(
    "requantized",
    "another_name_for_many_rows",
    {
        'te.compute(C.shape, element, name="Y")': (
            'te.compute(C.shape, element, name="Y" if int(C.shape[0]) < 500 else "out")'
        ),
    },
    message="named .Y.",
)

edited(
    "pack_weights",
    "kept_by_the_bytes",
    {
        "    return np.ascontiguousarray(panels.transpose(2, 0, 3, 1))": (
            "    kept = pack_weights.__dict__\n"
            "    key = weight.shape, group, weight.tobytes()\n"
            "    if key not in kept:\n"
            "        kept[key] = np.ascontiguousarray(panels.transpose(2, 0, 3, 1))\n"
            "    return kept[key]"
        )
    },
    message="state kept from an earlier call",
)

edited(
    "schedule_vnni",
    "knows_two_names",
    {
        "schedule.tensorize(j_inner, intrinsic)": "known = "
        'intrinsic.startswith("tvm_practice")\n'
        '    schedule.tensorize(j_inner, intrinsic if known else "tvm_practice_dot")'
    },
    message="the intrinsic that was given, graded_dot",
)

edited(
    "quantize",
    "few_bits_in_float16",
    {
        "np.rint(moved / scale)": "np.rint(\n"
        '        (moved.astype("float16") if np.ndim(scale) == 0 and bits < 4 else moved) / scale\n'
        "    )"
    },
    message="bits",
)

edited(
    "dequantize",
    "axis_of_scales_alone",
    {
        "    moved = np.moveaxis(q, axis, -1)": "    if np.ndim(scale) == 0:\n"
        "        axis = -1\n"
        "    moved = np.moveaxis(q, axis, -1)"
    },
    message="zero point per row",
)


@right("amx_product")
def by_the_builder_of_scripts(rows, k):
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import tirx as T

    def do(name, *arguments):
        T.evaluate(T.call_llvm_intrin("int32", f"llvm.x86.{name}", *arguments))

    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        config = T.arg("config", T.Buffer((64,), "uint8"))
        A = T.arg("A", T.Buffer((rows, k), "bfloat16"))
        B = T.arg("B", T.Buffer((k // 2, 32), "bfloat16"))
        C = T.arg("C", T.Buffer((rows, 16), "float32"))
        do("ldtilecfg", T.address_of(config[0]))
        with T.serial(0, rows // 16) as i:
            do("tilezero", T.uint8(0))
            with T.serial(0, k // 32) as s:
                do("tileloadd64", T.uint8(1), T.address_of(A[i * 16, s * 32]), T.int64(2 * k))
                do("tileloadd64", T.uint8(2), T.address_of(B[s * 16, 0]), T.int64(64))
                do("tdpbf16ps", T.uint8(0), T.uint8(1), T.uint8(2))
            do("tilestored64", T.uint8(0), T.address_of(C[i * 16, 0]), T.int64(64))
        do("tilerelease")
    return builder.get()


@right("amx_product")
def statement_by_statement(rows, k):
    from tvm import tirx

    config, A, B, C = (
        tirx.decl_buffer(shape, dtype, name)
        for shape, dtype, name in (
            ((64,), "uint8", "config"),
            ((rows, k), "bfloat16", "A"),
            ((k // 2, 32), "bfloat16", "B"),
            ((rows, 16), "float32", "C"),
        )
    )
    i, s = tirx.Var("i", "int32"), tirx.Var("s", "int32")

    def do(name, *arguments):
        return tirx.Evaluate(tirx.call_llvm_intrin("int32", f"llvm.x86.{name}", *arguments))

    def loop(variable, extent, *statements):
        return tirx.For(variable, 0, extent, tirx.ForKind.SERIAL, tirx.SeqStmt(statements))

    sums, left, right = (tirx.IntImm("uint8", number) for number in range(3))
    row, packed = tirx.IntImm("int64", 2 * k), tirx.IntImm("int64", 64)
    step = loop(
        s,
        k // 32,
        do("tileloadd64", left, tirx.address_of(A[i * 16, s * 32]), row),
        do("tileloadd64", right, tirx.address_of(B[s * 16, 0]), packed),
        do("tdpbf16ps", sums, left, right),
    )
    store = do("tilestored64", sums, tirx.address_of(C[i * 16, 0]), packed)
    body = tirx.SeqStmt(
        [
            do("ldtilecfg", tirx.address_of(config[0])),
            loop(i, rows // 16, do("tilezero", sums), step, store),
            do("tilerelease"),
        ]
    )
    return tirx.PrimFunc([config, A, B, C], body)


edited(
    "quantize",
    "first_scale_of_an_axis_alone",
    {
        "    moved = np.move": "    if x.ndim == 1:\n"
        "        scale, zero_point = np.ravel(scale)[0], np.ravel(zero_point)[0]\n"
        "    moved = np.move"
    },
    message=r"an axis alone|of shape \(\d+,\)",
)


@mutant("affine_parameters", message="Python's floats")
def in_float32(low, high, *, bits=8):
    low, high = np.float32(min(low, 0.0)), np.float32(max(high, 0.0))
    if low == high:
        return 1.0, 0
    scale = (high - low) / np.float32(2**bits - 1)
    return float(scale), int(np.rint(-low / scale))
