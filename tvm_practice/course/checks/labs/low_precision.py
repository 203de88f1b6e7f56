"""Lab 8's exercises and how they are graded: values against numpy, then loops and calls."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    expect_type,
    expect_unchanged,
    fail,
    fresh_rng,
    show,
    show_nest,
)
from tvm_practice.course.lowering import build_expressions, build_module, lower_expression
from tvm_practice.course.nests import expect_no_pragma
from tvm_practice.engines import CURRENT
from tvm_practice.engines.host import flags
from tvm_practice.labs.integer_products import PORTABLE, VNNI, declare, register_intrinsics
from tvm_practice.labs.simulated_tiles import (
    TileFault,
    Tiles,
    allowed,
    assembly,
    instructions_of,
    run_on_tiles,
    run_simulated,
)
from tvm_practice.viz.loop_nest import Loop, format_nest, loop_nest, paths
from tvm_practice.wording import number_of

PHASE = Phase(
    number=8,
    module="labs.low_precision",
    title="low precision",
    lanes=(CURRENT,),
    question=(
        "A vector instruction multiplies four times as many bytes as float32 numbers. Why is int8 "
        "not four times as fast, and where does each lost bit cost accuracy?"
    ),
)

Function = Callable[..., Any]
_LANES = 16


def _expect_array(got: Any, want: np.ndarray, *, name: str, look: str) -> np.ndarray:
    """`got` is an array of `want`'s type and shape; the values are not compared."""
    expect(
        isinstance(got, np.ndarray | np.generic),
        expected=f"{name} returns a numpy array",
        seen=f"a {type(got).__name__}",
        look="the return statement",
    )
    expect(
        (got.dtype, got.shape) == (want.dtype, want.shape),
        expected=f"{name}'s result of type {want.dtype} and shape {want.shape}",
        seen=f"{got.dtype} of {got.shape}",
        look=look
        if got.dtype == want.dtype
        else "the type of the result: the last astype, or the dtype= where the array is made; "
        f"and {look}",
    )
    return np.asarray(got)


def _expect_equal(
    got: Any,
    want: np.ndarray,
    *,
    name: str,
    look: str,
    of: Callable[[tuple[int, ...]], str] = lambda at: "",
    wrong: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Type, shape, every element; what is known to come out `wrong` says where to look instead."""
    seen = _expect_array(got, want, name=name, look=look)
    if np.array_equal(seen, want):
        return
    at = tuple(int(each[0]) for each in np.nonzero(np.atleast_1d(seen != want)))
    at = at[: want.ndim]
    hint = next((hint for hint, each in (wrong or {}).items() if np.array_equal(seen, each)), look)
    differ = int((seen != want).sum())
    raise fail(
        f"{name}{of(at)} is {want[at]} at {list(at)}",
        f"{seen[at]}; {differ} of {want.size} elements differ",
        hint,
    )


# float32 bits that rounding has to get right, by what they try.
_ROUNDED = {
    "a number halfway between two goes to the one whose last bit is 0": (
        0x3F808000, 0x3F818000, 0xBF808000, 0xBF818000, 0x40490000 + 0x8000,
    ),
    "a NaN stays a NaN: rounding must not carry into its exponent, nor drop all of its fraction": (
        0x7F800001, 0xFF800001, 0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F80FFFF,
    ),
    "infinities, and numbers that round past the largest bfloat16": (
        0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7F8000, 0x7F7F7FFF,
    ),
    "zeros keep their signs, and subnormal numbers are rounded like others": (
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00008001, 0x007FFFFF, 0x80400001,
        0x00018000, 0x00008000,
    ),
    "the nearest of the two: the part cut off may be more than half": (
        0x3F80FFFF, 0x3F808001, 0x3F807FFF, 0xC0490FDB, 0x3EAAAAAB, 0x3DCCCCCD,
    ),
}  # fmt: skip


@np.errstate(over="ignore", invalid="ignore")  # of NaN and of what is past the largest
def _nearest_bfloat16(x: np.ndarray) -> np.ndarray:
    """The bits by distances in float64; those of a NaN are not decided."""
    below = (x.view("uint32") >> 16).astype("uint32")

    def value(upper: np.ndarray) -> np.ndarray:
        wide = (upper << 16).astype("uint32").view("float32").astype("float64")
        finite: np.ndarray = np.where(np.isinf(wide), np.copysign(2.0**128, wide), wide)
        return finite

    exact = np.where(np.isinf(x), np.copysign(2.0**128, x), x.astype("float64"))
    down, up = np.abs(exact - value(below)), np.abs(value(below + 1) - exact)
    rounds_up = ~np.isinf(x) & ((up < down) | ((up == down) & (below % 2 == 1)))
    nearest: np.ndarray = (below + rounds_up).astype("uint16")
    return nearest


@PHASE.exercise(
    "round_to_bfloat16",
    engine=CURRENT,
    title="round float32 to bfloat16 by integer arithmetic",
    hints=(
        "Cutting off the lower half rounds towards zero. Which number, added to the bits before, "
        "makes it round to the nearest? A carry into the exponent is right.",
        "Adding 0x7FFF carries if more than half is cut off. Add the last bit that stays as well, "
        "and a tie carries only to an odd number. A NaN must not take part; one bit of its "
        "fraction has to be set in the upper half.",
        "bits = x.view('uint32'); nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16; "
        "np.where(np.isnan(x), (bits >> 16) | 0x40, nearest).astype('uint16').",
    ),
    looks_like="""
        1.00390625  3f808000 -> 3f80
        1.01171875  3f818000 -> 3f82
        3.14159274  40490fdb -> 4049
        -0.00000000 80000000 -> 8000
        nan         7f800001 -> 7fc0
    """,
    demonstrate=lambda function: _rounded_text(function),
)
def check_round_to_bfloat16(round_to_bfloat16: Function) -> None:
    name = "round_to_bfloat16"
    for look, given in _ROUNDED.items():
        bits = np.array(given, "uint32")
        _expect_rounded(round_to_bfloat16, bits.view("float32"), name, look)
    drawn = fresh_rng().integers(0, 2**32, (37, 11), dtype="uint32").view("float32")
    many = fresh_rng().integers(0, 2**32, (3, 101_009), dtype="uint32").view("float32")
    nans = np.array([0x7FFFFFFF, 0xFF800001], "uint32").view("float32")
    single = (*(nans[at : at + 1].reshape(()) for at in range(2)), np.array(drawn[0, 0]))
    ties = np.array([0x3F808000, 0xBF808000, 0x3F818000, 0xBF818000], "uint32").view("float32")
    shapes = (
        *((4,), (2, 2), (1, 4, 1), (2, 1, 2, 1)),
        *((1, 2, 1, 2, 1), (2, 1, 1, 1, 2), (1, 1, 1, 1, 4)),
        *((1, 1, 2, 1, 1, 2), (2, 1, 1, 1, 1, 1, 2)),
        *((1,) * 7 + last for last in ((2, 2), (4, 1), (1, 4))),
    )
    deep = (*(ties.reshape(each) for each in shapes), drawn[:36].reshape(3, 4, 3, 11))
    again = np.broadcast_to(ties[1:2], (3, 4)), np.broadcast_to(ties, (3, 4))  # not contiguous
    for x in (*again, drawn, drawn.T, drawn[:0], *single, drawn[::-1], many, *deep):
        _expect_rounded(round_to_bfloat16, x, name, "the result has x's shape, whatever that is")
    own = "rounded by integer arithmetic on the bits of x"
    look = 'x.view("uint32"), a rounding term that is added, and >> 16'
    libraries = dict.fromkeys(("ml_dtypes", "torch", "jax", "tensorflow"))
    try:
        with mock.patch.dict(sys.modules, libraries):
            round_to_bfloat16(drawn.copy().view(_Watched))
    except ImportError as error:
        raise fail(own, f"by a library: {error}", look) from error
    except _Converted as error:
        raise fail(own, "by a change of type, to a library's bfloat16", look) from error


class _Converted(Exception):
    """An array was made one of bfloat16."""


class _Watched(np.ndarray):
    """An array that becomes none of bfloat16, as a library of number types makes one."""

    def astype(self, dtype: Any, *given: Any, **named: Any) -> Any:
        if np.dtype(dtype).name == "bfloat16":
            raise _Converted
        return super().astype(dtype, *given, **named)


def _expect_rounded(function: Function, x: np.ndarray, name: str, look: str) -> None:
    before = x.copy()
    got, want = function(x), _nearest_bfloat16(x)
    expect_unchanged(before.view("uint32"), x.view("uint32"), "x")
    got = _expect_array(got, want, name=name, look=look)
    nan = np.isnan(x)
    right = np.where(nan, (got & 0x7FFF) > 0x7F80, got == want)
    if right.all():
        return
    at = tuple(int(each) for each in np.argwhere(~right)[0])
    bits = x.view("uint32")
    raise fail(
        f"the bfloat16 of {bits[at]:#010x} ({x[at]:g}) is "
        + ("a NaN" if nan[at] else f"{want[at]:#06x}"),
        f"{got[at]:#06x}",
        look,
    )


def _rounded_text(function: Function) -> str:
    bits = np.array([0x3F808000, 0x3F818000, 0x40490FDB, 0x80000000, 0x7F800001], "uint32")
    x = bits.view("float32")
    return "\n".join(
        f"{f'{number:.8f}':11s} {before:08x} -> {after:04x}"
        for number, before, after in zip(x, bits, function(x), strict=True)
    )


@PHASE.exercise(
    "affine_parameters",
    engine=CURRENT,
    title="choose a scale and a zero point for a range",
    hints=(
        "There are 2**bits integers, with one step fewer between them. Which range must they "
        "cover, if 0.0 has to be one of the numbers?",
        "low = min(low, 0.0), high = max(high, 0.0). The integer 0 stands for low, so the one "
        "that stands for 0.0 is -low / scale steps further, rounded.",
        "scale = (high - low) / (2**bits - 1) or 1.0; return scale, round(-low / scale).",
    ),
    looks_like="""
        -1.0 to 3.0: scale 0.015686, zero point 64
        2.0 to 4.0: scale 0.015686, zero point 0
        -4.0 to -2.0: scale 0.015686, zero point 255
        0.0 to 0.0: scale 1.000000, zero point 0
    """,
    demonstrate=lambda function: _affine_text(function),
)
def check_affine_parameters(affine_parameters: Function) -> None:
    rng = fresh_rng()
    a, b = (float(each) for each in rng.uniform(0.5, 9.0, 2))
    widths = range(16, 0, -1)
    cases = {
        "a range on both sides of 0": [
            *((-a, b), (-a / 100, b * 100), (-a * 1000, b)),
            *((-a, a), (-a * 1e-32, b * 1e-32), (-a * 1e32, b * 1e32)),
        ],
        "a range of Python's floats, which are float64": [
            *((-a * 1e-50, b * 1e-50), (-a * 1e40, b * 1e40)),
        ],
        "a range above 0 is widened down to 0.0": [(a, a + b), (0.0, b), (a, a)],
        "a range below 0 is widened up to 0.0": [(-a - b, -a), (-a, 0.0), (-a, -a)],
        "an empty range has scale 1.0": [(0.0, 0.0)],
    }
    for bits in (8, *draw_distinct(2, range(2, 8))):
        # Zero points that are rounded up, and down.
        for part in (0.75, 0.25):
            place = int(rng.integers(1, 2**bits - 2)) + part
            cases["a range on both sides of 0"].append((-place * a, (2**bits - 1 - place) * a))
    for look, ranges in cases.items():
        for low, high in ranges:
            for bits in widths:
                options = {} if bits == 8 else {"bits": bits}
                _expect_affine(affine_parameters(low, high, **options), low, high, bits, look)


def _expect_affine(given: Any, low: float, high: float, bits: int, look: str) -> None:
    text = f"{low:g} to {high:g} in {bits} bits"
    expect(
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], float | np.floating)
        and isinstance(given[1], int | np.integer),
        expected="a scale, which is a float, and a zero point, which is an int",
        seen=repr(given),
        look="the return statement",
    )
    scale, zero_point = given
    wide = max(high, 0.0) - min(low, 0.0)
    want = wide / (2**bits - 1) if wide else 1.0
    expect(
        math.isclose(scale, want, rel_tol=1e-6),
        expected=f"{text}: scale {want:.6g}",
        seen=f"{scale:.6g}",
        look=f"the range over its steps, 2**bits - 1 of them; {look}",
    )
    place = -min(low, 0.0) / want
    expect(
        abs(zero_point - place) <= 0.5 + 1e-6,
        expected=f"{text}: zero point {round(place)}, the integer nearest to {place:.8g}",
        seen=str(zero_point),
        look=f"-low / scale, rounded; {look}",
    )


def _affine_text(function: Function) -> str:
    lines = []
    for low, high in ((-1.0, 3.0), (2.0, 4.0), (-4.0, -2.0), (0.0, 0.0)):
        scale, zero_point = function(low, high)
        lines.append(f"{low} to {high}: scale {scale:.6f}, zero point {zero_point}")
    return "\n".join(lines)


def _limits(signed: bool, bits: int) -> tuple[int, int]:
    low = -(2 ** (bits - 1)) if signed else 0
    return low, low + 2**bits - 1


def _along(values: Any, axis: int, rank: int) -> Any:
    """Scales, or zero points, in a shape that broadcasts along an axis."""
    values = np.asarray(values)
    if values.ndim == 0:
        return values
    return values.reshape([-1 if each == axis % rank else 1 for each in range(rank)])


def _quantized(
    x: np.ndarray, scale: Any, zero_point: Any, signed: bool, bits: int, axis: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The integers, and what usual mistakes make of them."""
    dtype = "int8" if signed else "uint8"
    low, high = _limits(signed, bits)
    scale, zero = (_along(each, axis, x.ndim) for each in (scale, zero_point))
    steps = x.astype("float64") / scale

    def limited(values: np.ndarray, least: int = low, most: int = high) -> np.ndarray:
        result: np.ndarray = np.clip(values, least, most).astype(dtype)
        return result

    away = np.copysign(np.floor(np.abs(steps) + 0.5), steps)
    wide = _limits(signed, 8)
    mistakes = {
        "round, np.rint: a change of type cuts off": limited(np.trunc(steps) + zero),
        "halves go to the even integer, as np.rint has them": limited(away + zero),
        "round first, then add the zero point": limited(np.rint(steps + zero)),
        "the zero point is added": limited(np.rint(steps)),
        "the limits follow from the number of bits": limited(np.rint(steps) + zero, *wide),
        "saturate before the change of type: it wraps around": (
            np.clip(np.rint(steps) + zero, -(2.0**62), 2.0**62).astype("int64").astype(dtype)
        ),
    }
    return limited(np.rint(steps) + zero), mistakes


@PHASE.exercise(
    "quantize",
    engine=CURRENT,
    title="quantize with a scale and a zero point, per tensor or per channel",
    hints=(
        "Four steps, in one order only: divide, round, add, saturate. An array of scales has to "
        "meet the right axis; numpy broadcasts along the last one.",
        "np.moveaxis(x, axis, -1) makes the axis the last, and again with the two exchanged moves "
        "it back. np.clip saturates; the least integer is 0, or -(2 ** (bits - 1)).",
        "np.clip(np.rint(np.moveaxis(x, axis, -1) / scale) + zero_point, low, low + 2**bits - 1), "
        "then .astype('int8' if signed else 'uint8') and np.moveaxis(..., -1, axis).",
    ),
    looks_like="""
        x                         -9.00  -0.50   0.00   0.25   0.75   9.00
        unsigned, zero point 5        0      4      5      5      7     23
        signed, 4 bits               -8     -1      0      0      2      7
    """,
    demonstrate=lambda function: _quantized_text(function),
)
def check_quantize(quantize: Function) -> None:
    rng = fresh_rng()
    halves = rng.integers(-600, 600, (9, 6, 4)).astype("float32") / 2
    zero = int(rng.integers(10, 60)) * 2 + 1
    per_row = {"scale": 2.0 ** rng.permutation(6).astype("float32"), "axis": 1}
    shifts = rng.permutation(np.arange(1, 9, 2))
    cases: list[tuple[str, dict[str, Any]]] = [
        ("one scale, unsigned", {"scale": 1.0, "zero_point": zero, "signed": False}),
        ("one scale, signed", {"scale": 2.0, "zero_point": 0, "signed": True}),
        ("a zero point above 127", {"scale": 1.0, "zero_point": zero + 120, "signed": False}),
        ("a negative zero point", {"scale": 1.0, "zero_point": -zero, "signed": True}),
        ("4 bits", {"scale": 16.0, "zero_point": 3, "signed": False, "bits": 4}),
        ("4 signed bits", {"scale": 16.0, "zero_point": 0, "signed": True, "bits": 4}),
        ("a scale per index of axis 1", {**per_row, "zero_point": 0, "signed": True}),
        (
            "a zero point per index of the last axis",
            {"scale": np.float32(2.0), "zero_point": shifts, "signed": False},
        ),
    ]
    for what, options in cases:
        _expect_quantized(quantize, halves, what, options)
    first = {"scale": np.arange(1, 10) / 4, "zero_point": 7, "signed": False, "axis": 0}
    _expect_quantized(quantize, halves, "a scale per index of axis 0", first)
    square = rng.integers(-600, 600, (6, 6)).astype("float32") / 2
    both = {**per_row, "zero_point": np.arange(1, 13, 2), "signed": False, "axis": 0}
    _expect_quantized(quantize, square, "a scale and a zero point per row", both)
    for axis, places in ((0, 6), (1, 6), (-2, 6)):  # one of them a number, the other an array
        many = np.arange(places)
        for what, part in (
            ("zero point", {"scale": 2.0, "zero_point": 2 * many + 1}),
            ("scale", {"scale": 2.0**many, "zero_point": zero}),
        ):
            along = {**part, "signed": False, "axis": axis}
            _expect_quantized(quantize, square, f"a {what} per index of axis {axis}", along)
    for bits in (*range(2, 9), 1):
        for signed in (False, True):
            few = {"scale": 1.0, "zero_point": bits % 3, "signed": signed, "bits": bits}
            _expect_quantized(quantize, halves, f"{bits} bits", few)
            # Halves, and numbers next to them, of which few saturate.
            near = rng.integers(-(2 << bits), 2 << bits, (9, 6)) / 2
            near += rng.choice([0.0, 2.0**-12, -(2.0**-12)], near.shape)
            for scale in (2.0, np.full(6, 2.0)):
                _expect_quantized(
                    quantize, 2 * near.astype("float32"), f"{bits} bits", {**few, "scale": scale}
                )
    # Halves, and numbers next to a half, which float16 would round to one.
    for x, axis, count in _of_all_ranks(
        lambda shape: rng.integers(-600, 600, shape) / 2 + rng.choice([0.0, 0.45], shape)
    ):
        along = {
            "scale": 2.0 ** rng.integers(0, 5, count).astype("float32"),
            "zero_point": rng.integers(0, 40, count) * 2,
            "signed": bool(count % 2),
            "bits": int(rng.integers(2, 9)),
            "axis": axis,
        }
        what = f"axis {axis} of shape {x.shape}"
        _expect_quantized(quantize, x.astype("float32"), what, along)
    each = {"scale": np.array([1, 2, 3], "float32"), "zero_point": np.array([0, 1, 5])}
    of_one_axis = {**each, "signed": True, "axis": 0}
    _expect_quantized(quantize, np.full(3, 6, "float32"), "an axis alone", of_one_axis)
    # Halves of scales that are no powers of two: the product with 1 / scale is not one of them.
    scales = np.array([3, 7, 11, 49, 107, 1001], "float32")
    products = rng.integers(-100, 100, (60, 6)).astype("float32") / 2 * scales
    inexact = {"scale": scales, "zero_point": 0, "signed": True}
    _expect_quantized(quantize, products, "scales of 3 to 1001", inexact)
    for power in (-40, 40):
        tiny = {"scale": 2.0**power, "zero_point": zero, "signed": False}
        _expect_quantized(quantize, halves * np.float32(2.0**power), f"a scale of 2**{power}", tiny)
    one = np.array([131.45], "float32")  # in float16 it would be halfway
    _expect_quantized(quantize, one, "a single number", cases[0][1])
    huge = np.array([[1e10, -1e10, 3e38, -3e38, np.inf, -np.inf]], "float32")
    _expect_quantized(quantize, huge, "numbers beyond int32", cases[0][1])


def _of_all_ranks(
    draw: Callable[[tuple[int, ...]], np.ndarray],
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Arrays of 1 to 5 dimensions, all equal, all 1 or all different, with an axis and its extent.

    An axis counts from the front or from the back; some arrays are not contiguous, or empty.
    """
    for rank in range(1, 6):
        different = tuple(int(each) for each in fresh_rng().permutation([1, 2, 3, 4, 5])[:rank])
        for shape in (different, (3,) * rank, (1,) * rank):
            for axis in {0, rank - 1, rank // 2}:
                yield draw(shape), axis, shape[axis]
                yield draw(shape[::-1]).T, axis - rank, shape[axis]
    yield draw((0, 4)), 1, 4


def _expect_quantized(
    quantize: Function, x: np.ndarray, what: str, options: dict[str, Any]
) -> None:
    given = x.copy()
    got = quantize(given, **options)
    expect_unchanged(x, given, "x")
    whole = {"bits": 8, "axis": -1, **options}
    want, mistakes = _quantized(x, **whole)
    _expect_equal(
        got,
        want,
        name=f"quantize, {what},",
        look="divide, round, add the zero point, saturate, along the axis",
        of=lambda at: f" of {x[at]:g}" if at else "",
        wrong=mistakes,
    )


def _quantized_text(function: Function) -> str:
    x = np.array([-9, -0.5, 0, 0.25, 0.75, 9], "float32")
    rows = {
        "x": [f"{each:.2f}" for each in x],
        "unsigned, zero point 5": function(x, 0.5, 5, signed=False),
        "signed, 4 bits": function(x, 0.5, 0, signed=True, bits=4),
    }
    return "\n".join(
        f"{name:24s}" + "".join(f"{each!s:>7}" for each in row) for name, row in rows.items()
    )


@PHASE.exercise(
    "dequantize",
    engine=CURRENT,
    title="compute the numbers that integers stand for",
    hints=(
        "One subtraction and one product. What type does the difference of two uint8 numbers have?",
        "Widen q first, with .astype('int32'). As in quantize, np.moveaxis(q, axis, -1) puts the "
        "axis of the scales last.",
        "moved = np.moveaxis(q, axis, -1).astype('int32'); then "
        "np.moveaxis((moved - zero_point) * scale, -1, axis).astype('float32').",
    ),
    looks_like="""
        0 3 5 200 255 -> -2.5 -1.0 0.0 97.5 125.0
    """,
    demonstrate=lambda function: _dequantized_text(function),
)
def check_dequantize(dequantize: Function) -> None:
    rng = fresh_rng()
    unsigned = rng.integers(0, 256, (7, 5, 3)).astype("uint8")
    signed = rng.integers(-128, 128, (5, 5)).astype("int8")
    scales = rng.uniform(0.01, 2.0, 5).astype("float32")
    zeros = rng.integers(100, 256, 5).astype("uint8")
    cases: list[tuple[str, np.ndarray, dict[str, Any]]] = [
        ("of uint8", unsigned, {"scale": 0.125, "zero_point": np.uint8(200)}),
        ("of int8", signed, {"scale": float(scales[0]), "zero_point": -100}),
        ("per index of axis 1", unsigned, {"scale": scales, "zero_point": zeros, "axis": 1}),
        ("per row", signed, {"scale": scales, "zero_point": 0, "axis": 0}),
        ("per column", signed, {"scale": scales, "zero_point": np.arange(-2, 3)}),
        ("per index of the last axis", unsigned, {"scale": scales[:3], "zero_point": zeros[:3]}),
        ("per index of axis 0", unsigned[:5], {"scale": scales, "zero_point": zeros, "axis": 0}),
        (
            "of one scale and a zero point per row",
            signed,
            {
                "scale": 0.5,
                "zero_point": zeros,
                "axis": 0,
            },
        ),
        ("of one scale", unsigned, {"scale": 0.125, "zero_point": zeros, "axis": 1}),
    ]
    for q, axis, count in _of_all_ranks(lambda shape: rng.integers(-128, 128, shape)):
        along = {
            "scale": rng.uniform(0.01, 2.0, count).astype("float32"),
            "zero_point": rng.integers(-60, 60, count) * 2,
            "axis": axis,
        }
        kind = "int8" if count % 2 else "uint8"
        cases.append((f"along axis {axis} of shape {q.shape}", q.astype(kind), along))
    for what, q, options in cases:
        before = q.copy()
        got = dequantize(q, **options)
        expect_unchanged(before, q, "q")
        axis = options.get("axis", -1)
        scale, zero = (_along(options[key], axis, q.ndim) for key in ("scale", "zero_point"))
        want = (q.astype("float64") - zero) * scale
        look = "subtract in a wider type, then multiply; the axis of scale and zero_point"
        _expect_array(got, want.astype("float32"), name="dequantize", look=look)
        expect_close(got, want, what=f"the numbers {what}", look=look, atol=1e-5, rtol=1e-5)


def _dequantized_text(function: Function) -> str:
    q = np.array([0, 3, 5, 200, 255], "uint8")
    return f"{' '.join(map(str, q))} -> {' '.join(map(str, function(q, 0.5, 5)))}"


@PHASE.exercise(
    "fold_zero_point",
    engine=CURRENT,
    title="fold the inputs' zero point into the bias",
    hints=(
        "Multiply out (x - zero_point) * w. One of the two sums does not depend on x.",
        "That sum is zero_point times the sum of a column's weights over k. A sum of many int8 "
        "needs int32: weight.sum(axis=0, dtype='int32').",
        "np.rint(bias / scale).astype('int32') - zero_point * weight.sum(axis=0, dtype='int32').",
    ),
    looks_like="""
        weight [[1, -2], [3, 4]], zero point 10, bias [0.5, -1.0], scale [0.25, 0.5]: [-38, -22]
    """,
    demonstrate=lambda function: _folded_text(function),
)
def check_fold_zero_point(fold_zero_point: Function) -> None:
    rng = fresh_rng()
    sizes = ((900, 7, None), (24, 24, None), (1, 5, 0), (33, 1, 255), (16, 8, 1), (200_001, 2, 3))
    for k, n, zero in sizes:
        weight = rng.integers(-128, 128, (k, n)).astype("int8")
        # An odd sum, whose product with an odd zero point is beyond float32's integers.
        weight[:, 0] = 127 - rng.integers(0, 4, k)
        weight[0, 0] -= 1 - int(weight[:, 0].sum(dtype="int64")) % 2
        if zero is None:
            zero = int(rng.integers(90, 125)) * 2 + 1 if k > n else int(rng.integers(90, 250))
        scale = (2.0 ** rng.integers(-9, -3, n)).astype("float32")
        steps = rng.integers(-(2**20), 2**20, n) + rng.choice([-0.375, 0.25, 0.375], n)
        steps[0] = 2 * (steps[0] // 2) + 0.25  # even: what is folded is odd
        if n > 2:  # float32 holds it, and no half besides
            steps[1] = 2.0**23 + 2 * int(rng.integers(2**20)) + 1
        steps[n - 1] = rng.choice([-(2.0**29), 2.0**29])  # float32 holds it
        bias = (steps * scale).astype("float32")
        given = weight.copy(), bias.copy(), scale.copy()
        got = fold_zero_point(given[0], zero, given[1], given[2])
        for name, before, after in zip(
            ("weight", "bias", "scale"), (weight, bias, scale), given, strict=True
        ):
            expect_unchanged(before, after, name)
        columns = weight.astype("int64").sum(axis=0)
        own = np.rint(bias / scale).astype("int64")
        mistakes = {
            "the zero point's contribution is subtracted": own + zero * columns,
            "it includes the bias, in units of scale": -zero * columns,
            "it includes the zero point times the sum of the weights": own,
            "round, np.rint: a change of type cuts off": (
                np.trunc(bias / scale).astype("int64") - zero * columns
            ),
            "the bias is divided by scale": np.rint(bias).astype("int64") - zero * columns,
            "the sum of many int8 needs more than 16 bits": (
                own - (zero * columns).astype("int16").astype("int64")
            ),
        }
        _expect_equal(
            got,
            (own - zero * columns).astype("int32"),
            name="the folded bias",
            look="np.rint(bias / scale) as int32, minus zero_point times the column's sum, over k, "
            "axis 0, in int32",
            wrong=mistakes,
        )


def _folded_text(function: Function) -> str:
    weight = np.array([[1, -2], [3, 4]], "int8")
    bias, scale = np.array([0.5, -1.0], "float32"), np.array([0.25, 0.5], "float32")
    return (
        f"weight {weight.tolist()}, zero point 10, bias {bias.tolist()}, "
        f"scale {scale.tolist()}: {function(weight, 10, bias, scale).tolist()}"
    )


@PHASE.exercise(
    "pack_weights",
    engine=CURRENT,
    title="lay weights out as the instruction reads them",
    hints=(
        "Four axes come from two: which two belong to k, and which to n? Cut first, then "
        "reorder the axes.",
        "np.pad(weight, ((0, -k % group), (0, -n % 16))) makes both divisible. reshape gives "
        "[k / group][group][n / 16][16], transpose the order asked for.",
        "padded.reshape(-(-k // group), group, -(-n // 16), 16).transpose(2, 0, 3, 1), made "
        "contiguous by np.ascontiguousarray.",
    ),
    looks_like="""
        weight (6, 18), group 4: int8 (2, 2, 16, 4)
        panel 0, k 0 to 3: [0, 18, 36, 54] [1, 19, 37, 55] ...
        panel 1, k 4 to 7: [88, 106, 0, 0] [89, 107, 0, 0] [0, 0, 0, 0] ...
    """,
    demonstrate=lambda function: _packed_text(function),
)
def check_pack_weights(pack_weights: Function) -> None:
    rng = fresh_rng()
    k, n = int(rng.integers(9, 30)) * 4, int(rng.integers(2, 5)) * _LANES
    shapes = [(k, n), (k + 1, n), (k - 1, n + 5), (3, 7), (64, 64), (4, 288), (1, 1), (1, 40)]
    shapes += [(4, 16), (300, 1), *((each, each) for each in (2, 4, 8, 16, 32))]
    shapes += shapes[:1]  # another weight of the same shape
    cases = [(shape, *kind) for shape in shapes for kind in (("int8", 4), ("uint16", 2))]
    cases += [((k - 1, n), "int16", 2), ((k, n - 5), "uint8", 4), ((k + 1, n + 3), "float16", 2)]
    for shape, dtype, group in cases:
        # What float16 holds exactly, or all of an integer.
        most = 2048 if dtype == "float16" else np.iinfo(dtype).max
        weight = rng.integers(1, most, shape).astype(dtype)
        given = weight.copy(order="F" if shape[0] % 2 else "C")
        got = pack_weights(given, group=group)
        expect_unchanged(weight, given, "weight")
        want, wrong = _panels(weight, group)
        _expect_equal(
            got,
            want,
            name=f"a weight of {shape} in groups of {group}",
            look="element [p, g, j, e] is weight[g * group + e, 16 * p + j], or 0",
            wrong=wrong,
        )
        expect(
            bool(got.flags.c_contiguous),
            expected="the panels are contiguous: 64 bytes in a row per step",
            seen=f"strides of {got.strides} bytes",
            look="np.ascontiguousarray: transpose moves no element",
        )
    same = rng.integers(-128, 128, (k + 2, n)).astype("int8")
    for weight in (same, same.view("uint8")):
        _expect_equal(
            pack_weights(weight.copy(), group=4),
            _panels(weight, 4)[0],
            name=f"a weight of {weight.dtype} after one of int8 and the same bytes",
            look="state kept from an earlier call: the result has the weight's type",
        )


def _panels(weight: np.ndarray, group: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The panels, element by element, and layouts that are mistaken for them."""
    k, n = weight.shape
    steps, panels = -(-k // group), -(-n // _LANES)
    want = np.zeros((panels, steps, _LANES, group), weight.dtype)
    for row in range(k):
        for panel in range(panels):
            part = weight[row, panel * _LANES : (panel + 1) * _LANES]
            want[panel, row // group, : len(part), row % group] = part
    columns_last = want.transpose(0, 1, 3, 2)
    wrong = {
        "a group's elements are neighbours, and columns follow: [16][group]": (
            columns_last.reshape(want.shape)
        )
    }
    return want, wrong


def _packed_text(function: Function) -> str:
    weight = np.arange(108).reshape(6, 18).astype("int8")
    packed = function(weight, group=4)
    return (
        f"weight (6, 18), group 4: {packed.dtype} {packed.shape}\n"
        f"panel 0, k 0 to 3: {' '.join(str(each.tolist()) for each in packed[0, 0, :2])} ...\n"
        f"panel 1, k 4 to 7: {' '.join(str(each.tolist()) for each in packed[1, 1, :3])} ..."
    )


def _product_schedule(m: int, k: int, n: int) -> tuple[Any, Any]:
    """A fresh schedule of the integer product, and its block."""
    import tvm
    from tvm import te

    register_intrinsics()
    function = te.create_prim_func(declare(m, k, n)).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock("C")


@PHASE.exercise(
    "schedule_vnni",
    engine=CURRENT,
    title="tensorize an integer product",
    hints=(
        "First phase 2's tile, with k split as well; the two innermost loops must be those of "
        "the intrinsic. The intrinsic does not set the sums to zero.",
        "split i by rows, j by 16, k by 4; reorder; decompose_reduction(block, k_outer) returns "
        "the block that sets the sums to zero, and get_loops of it ends with its columns.",
        "After reorder(i_outer, j_outer, k_outer, i_inner, j_inner, k_inner): "
        "parallel(fuse(i_outer, j_outer)), unroll(i_inner), decompose_reduction, vectorize its "
        "last loop, and tensorize(j_inner, intrinsic).",
    ),
    looks_like="""
        for i_0_j_0_fused in parallel(4):
            for i_1_init in unrolled(4):
                for j_1_init in vectorized(16):
                    C_init: C <- constant
            for k_0 in serial(3):
                for i_1 in unrolled(4):
                    C_update_o: c <- c, w, x
    """,
    demonstrate=lambda function: _tensorized_text(function),
)
def check_schedule_vnni(schedule_vnni: Function) -> None:
    rng = fresh_rng()
    for rows in (*draw_distinct(1, (2, 4)), *draw_distinct(1, (3, 5))):
        m, k, n = rows * int(rng.integers(2, 4)), 4 * int(rng.integers(5, 9)), 32
        schedule, block = _product_schedule(m, k, n)
        schedule_vnni(schedule, block, rows=rows, intrinsic=VNNI)
        _expect_tensorized(schedule, (m, k, n), rows)
        vnni = schedule.mod
        schedule, block = _product_schedule(m, k, n)
        name = _portable_by_another_name()
        schedule_vnni(schedule, block, rows=rows, intrinsic=name)
        used = [
            str(each.attrs[0]) for each in schedule.trace.insts if each.kind.name == "Tensorize"
        ]
        expect(
            used == [name],
            expected=f"the intrinsic that was given, {name}",
            seen=", ".join(used) or "none",
            look="schedule.tensorize(j_inner, intrinsic)",
        )
        x = rng.integers(0, 256, (m, k)).astype("uint8")
        weight = rng.integers(-128, 128, (k, n)).astype("int8")
        want = x.astype("int32") @ weight.astype("int32")
        for mod in [schedule.mod, *([vnni] if "avx512_vnni" in flags() else [])]:
            got = _run_product(mod, x, _panels(weight, 4)[0], n)
            look = "the statement that sets the sums to zero, and its place"
            _expect_equal(got, want, name="C", look=look)
    many, most = int(rng.integers(9, 17)), int(rng.integers(25, 60))
    # One row, more than usual, and as many rows, steps and columns as each other.
    for rows, (m, k, n) in (
        (1, (2, 8, 48)),
        (many, (2 * many, 8, 48)),
        (16, (32, 64, 64)),
        (2, (64, 256, 32)),
        (8, (24, 16, 112)),
        (24, (48, 8, 32)),
        (most, (2 * most, 8, 32)),
        (4, (4, 8, 16)),  # a single tile
        (3, (6, 4, 32)),  # a single step
    ):
        schedule, block = _product_schedule(m, k, n)
        schedule_vnni(schedule, block, rows=rows, intrinsic=VNNI)
        _expect_tensorized(schedule, (m, k, n), rows)


def _portable_by_another_name() -> str:
    """The name of an intrinsic that any processor can run, registered just now."""
    from tvm.s_tir import TensorIntrin

    name = f"graded_dot_{fresh_rng().integers(10**9)}"
    portable = TensorIntrin.get(PORTABLE)
    TensorIntrin.register(name, portable.desc, portable.impl, override=True)
    return name


def _run_product(mod: Any, x: np.ndarray, packed: np.ndarray, columns: int) -> np.ndarray:
    import tvm

    out = tvm.runtime.tensor(np.full((len(x), columns), 12345, "int32"))
    build_module(mod)(tvm.runtime.tensor(x), tvm.runtime.tensor(packed), out)
    result: np.ndarray = out.numpy()
    return result


def _expect_tensorized(schedule: Any, sizes: Sequence[int], rows: int) -> None:
    """The call of the instruction, the loops around it, and those of the zeros."""
    expect_no_pragma(schedule)
    function = schedule.mod["main"]
    m, k, n = sizes
    nest = loop_nest(function)
    called = [each for each in instructions_of(function) if "vpdpbusd" in each]
    expect(
        len(called) == 1,
        expected="one call of the instruction, vpdpbusd, instead of the two innermost loops",
        seen=show_nest(nest),
        look="schedule.tensorize(j_inner, intrinsic), by the name that is given",
    )
    zeros = [path for path, each in paths(nest) if not each.reads]
    sums = [path for path, each in paths(nest) if each.reads]
    expect(
        len(zeros) == len(sums) == 1,
        expected="one statement that sets sums to zero, and one that adds",
        seen=show_nest(nest),
        look="schedule.decompose_reduction(block, k_outer)",
    )
    tiles = m // rows * (n // _LANES)
    around = [("parallel", tiles)]
    _expect_loops(
        sums[0],
        [*around, ("serial", k // 4), ("unrolled", rows)],
        "the loops around the call",
        "split, reorder, parallel of the fused outer loops, unroll of i_inner",
    )
    kind = (
        "serial" if any(each.kind == "serial" for each in zeros[0][len(around) :]) else "unrolled"
    )
    _expect_loops(
        zeros[0],
        [*around, (kind, rows), ("vectorized", _LANES)],
        "the loops that set the sums to zero",
        "decompose_reduction at k_outer, after unroll; vectorize its block's last loop",
    )
    if n > _LANES:
        _expect_row_tiles_outside(function)


def _expect_row_tiles_outside(function: Any) -> None:
    """Of the fused loop's iterations, the first two are tiles of the same rows."""
    import tvm
    import tvm_ffi
    from tvm import s_tir, tirx

    loops: list[Any] = []
    blocks: list[Any] = []
    tvm_ffi.structural_walk(function.body, (tirx.For, loops.append))
    tvm_ffi.structural_walk(function.body, (s_tir.SBlockRealize, blocks.append))
    place = next(each.iter_values[0] for each in blocks if len(each.iter_values) > 1)
    analyzer = tvm.sym.Analyzer()
    for loop in loops:
        value = int(loop.kind == tirx.ForKind.PARALLEL)
        analyzer.bind(loop.loop_var, tirx.const(value, str(loop.loop_var.ty.dtype)))
    row = analyzer.simplify(place)
    expect(
        int(row) == 0,
        expected="i_outer outside j_outer: iteration 1 of the fused loop begins in row 0 as well",
        seen=f"it begins in row {row}",
        look="the order of reorder, and of fuse",
    )


def _expect_loops(
    loops: Sequence[Loop], wanted: Sequence[tuple[str, int]], what: str, look: str
) -> None:
    expect(
        [(loop.kind, loop.extent) for loop in loops] == list(wanted),
        expected=f"{what}: {' > '.join(f'{kind}({extent})' for kind, extent in wanted)}",
        seen=show(loops),
        look=look,
    )


def _tensorized_text(schedule_vnni: Function) -> str:
    schedule, block = _product_schedule(8, 12, 32)
    schedule_vnni(schedule, block, rows=4, intrinsic=VNNI)
    return format_nest(loop_nest(schedule.mod["main"]))


def _epilogue(requantized: Function, shape: tuple[int, int], zero_point: int) -> list[Any]:
    from tvm import te

    C = te.placeholder(shape, "int32", name="C")
    bias = te.placeholder(shape[1:], "int32", name="bias")
    multiplier = te.placeholder(shape[1:], "float32", name="multiplier")
    return [C, bias, multiplier, requantized(C, bias, multiplier, zero_point)]


@PHASE.exercise(
    "requantized",
    engine=CURRENT,
    title="declare the epilogue: int32 sums to bytes",
    hints=(
        "One te.compute over rows and columns. The order matters: which steps are exact as "
        "int32, which need float32, and which must come before the last change of type?",
        "Add bias as int32, then .astype('float32'); multiply; te.round; add the zero point; "
        "te.max and te.min against te.const(0, 'float32') and te.const(255, 'float32').",
        "te.compute(C.shape, lambda i, j: te.max(te.min(te.round((C[i, j] + bias[j])"
        ".astype('float32') * multiplier[j]) + te.const(zero_point, 'float32'), …), …)"
        ".astype('uint8'), name='Y').",
    ),
    looks_like="""
        for i in serial(2):
            for j in serial(3):
                Y: Y <- C, bias, multiplier
    """,
    demonstrate=lambda function: format_nest(
        loop_nest(lower_expression(_epilogue(function, (2, 3), 0)))
    ),
)
def check_requantized(requantized: Function) -> None:
    rng = fresh_rng()
    odd = int(rng.integers(10, 60)) * 2 + 1
    cases = ((5, 37, odd), (23, 23, 0), (1, 6, odd), (4, 16, 255), (64, 3, 128), (2, 8, 1))
    for rows, columns, zero_point in (*cases, (5003, 3, odd), (3, 7001, odd)):
        tensors = _epilogue(requantized, (rows, columns), zero_point)
        Y = tensors[-1]
        expect(
            hasattr(Y, "op") and (Y.op.name, str(Y.dtype)) == ("Y", "uint8"),
            expected='a te.Tensor named "Y" of type uint8',
            seen=f"{Y.op.name!r} of type {Y.dtype}" if hasattr(Y, "op") else type(Y).__name__,
            look="name= of te.compute, and the last .astype",
        )
        C = rng.integers(-700, 700, (rows, columns)).astype("int32")
        bias = rng.integers(-300, 300, columns).astype("int32")
        # Products that are halfway between two integers, and sums that float32 cannot hold.
        multiplier = rng.choice([0.5, 0.25, 1.0, 0.125], columns).astype("float32")
        bias[0], C[:, 0], multiplier[0] = -(2**25), 2**25 + 1 + 2 * rng.integers(0, 40, rows), 1
        # Products that 32 bits hold and 16 do not.
        C[:, 1], multiplier[1] = rng.choice([-(2**20), 2**20], rows), 1000
        C[:, 2], multiplier[2] = 2**15 + rng.integers(0, 2**14, rows), 1
        if columns > 3:  # what wraps around in 16 bits to a number in range
            C[:, 3], bias[3], multiplier[3] = 2**16 + rng.integers(0, 255, rows), 0, 1
        if columns > 4:  # halfway in float32 alone
            (C[:, 4], multiplier[4]), bias[4] = _halfway_in_float32(), 0
        got = build_expressions(tensors[:-1], [Y])(C, bias, multiplier)[0]
        want, mistakes = _epilogues(C, bias, multiplier, zero_point)
        _expect_equal(
            got,
            want,
            name="Y",
            look="add, scale, round, add the zero point, saturate",
            wrong=mistakes,
        )


def _halfway_in_float32() -> tuple[int, np.float32]:
    """A sum and a multiplier whose product is rounded otherwise in float32 than in float64."""
    rng = fresh_rng()
    while True:
        sums = rng.integers(1, 2**20, 1_000_000)
        multipliers = rng.uniform(1e-6, 9e-5, sums.size).astype("float32")
        short = np.rint(sums.astype("float32") * multipliers)
        found = np.flatnonzero(short != np.rint(sums * multipliers.astype("float64")))
        if found.size:
            return int(sums[found[0]]), multipliers[found[0]]


def _epilogues(
    C: np.ndarray, bias: np.ndarray, multiplier: np.ndarray, zero: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Y, and what usual mistakes make of it."""
    scaled = (C + bias).astype("float32") * multiplier

    def limited(values: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.clip(values, 0, 255).astype("uint8")
        return result

    away = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    in_float = (C.astype("float32") + bias.astype("float32")) * multiplier
    mistakes = {
        "saturate before the change of type: it wraps around": (
            (np.rint(scaled) + zero).astype("int64").astype("uint8")
        ),
        "the zero point is added": limited(np.rint(scaled)),
        "round, te.round: a change of type cuts off": limited(np.trunc(scaled) + zero),
        "round first, then add the zero point": limited(np.rint(scaled + zero)),
        "halves go to the even integer": limited(away + zero),
        "add the bias as int32, where it is exact": limited(np.rint(in_float) + zero),
        "multiply in float32": limited(np.rint((C + bias) * multiplier.astype("float64")) + zero),
        "each column has its own multiplier": limited(
            np.rint((C + bias).astype("float32") * multiplier[0]) + zero
        ),
        "the bias is added before the product": limited(np.rint(C * multiplier) + bias + zero),
        "a ReLU differs from clipping at the zero point, unless that is 0": limited(
            np.maximum(np.rint(scaled) + zero, zero)
        ),
    }
    return limited(np.rint(scaled) + zero), mistakes


@PHASE.exercise(
    "tile_configuration",
    engine=CURRENT,
    title="write the bytes that configure tile registers",
    hints=(
        "64 bytes, of which at most 17 are not zero. Which numbers have two bytes each?",
        "configuration = np.zeros(64, 'uint8'); byte 0 is 1. A tile has two bytes from "
        "16 + 2 * tile on, of which the low one comes first, and one at 48 + tile.",
        "for tile, (rows, row_bytes) in tiles.items(): configuration[16 + 2 * tile] = row_bytes; "
        "configuration[48 + tile] = rows. 64 fits the low byte.",
    ),
    looks_like="""
        tile 0: 16 rows of 64 bytes; tile 3: 7 rows of 24 bytes
        byte 0: 1, byte 16: 64, byte 22: 24, byte 48: 16, byte 51: 7
    """,
    demonstrate=lambda function: _configuration_text(function),
)
def check_tile_configuration(tile_configuration: Function) -> None:
    rng = fresh_rng()
    drawn = {
        int(tile): (int(rng.integers(1, 16)), 4 * int(rng.integers(5, 16)))
        for tile in rng.permutation(8)[:5]
    }
    again = dict.fromkeys(drawn, (16, 64))  # the same tiles, of another size
    earlier: list[tuple[Any, np.ndarray]] = []
    every = [
        {at % 8: (at % 16 + 1, at + 1), (at + 3) % 8: (16 - at % 16, 64 - at)} for at in range(64)
    ]
    for tiles in (
        {0: (16, 64)},
        {},
        {2: (0, 0), 3: (1, 1)},
        drawn,
        again,
        dict.fromkeys(range(8), (16, 64)),
        *every,
    ):
        want = np.zeros(64, "uint8")
        want[0] = 1
        for tile, (rows, row_bytes) in tiles.items():
            want[[16 + 2 * tile, 48 + tile]] = row_bytes, rows
        given = dict(tiles)
        got = tile_configuration(given)
        _expect_equal(
            got,
            want,
            name=f"the configuration of {tiles}",
            look="byte 0, bytes 16 + 2 * tile for the bytes per row, bytes 48 + tile for the rows",
        )
        expect(
            given == tiles,
            expected=f"the tiles, {tiles}, only read",
            seen=f"they became {given}",
            look="the statement that removes or changes an entry of tiles",
        )
        earlier.append((got, want))
    expect(
        all(np.array_equal(got, want) for got, want in earlier),
        expected="an array of its own for each call",
        seen="a later call changed the array that an earlier one returned",
        look="the place where the 64 bytes are made: inside the function",
    )


def _configuration_text(function: Function) -> str:
    configuration = function({0: (16, 64), 3: (7, 24)})
    told = [f"byte {at}: {configuration[at]}" for at in np.flatnonzero(configuration)]
    return "tile 0: 16 rows of 64 bytes; tile 3: 7 rows of 24 bytes\n" + ", ".join(told)


def _tile_arrays(rows: int, k: int) -> tuple[list[np.ndarray], np.ndarray]:
    """A kernel's four arguments, drawn anew, C of NaNs, and the product."""
    rng = fresh_rng()
    upper = [
        (rng.standard_normal(shape, dtype="float32").view("uint32") >> 16).astype("uint16")
        for shape in ((rows, k), (k, _LANES))
    ]
    configuration = np.zeros(64, "uint8")
    configuration[0] = 1
    configuration[[16, 18, 20]], configuration[48:51] = 64, 16
    packed = _panels(upper[1], 2)[0].reshape(k // 2, 32)
    C = np.full((rows, _LANES), np.nan, "float32")
    a, b = ((each.astype("uint32") << 16).view("float32").astype("float64") for each in upper)
    return [configuration, upper[0], packed, C], a @ b


_CHANGES_PER_PRODUCT = ("tilezero", "tilestored64")


@PHASE.exercise(
    "amx_product",
    engine=CURRENT,
    title="multiply in bfloat16 on tile registers",
    hints=(
        "Two loops: over 16 rows of C at a time, and in it over 32 steps of k. Which "
        "instructions run once per call, once per 16 rows, and once per step?",
        "T.call_llvm_intrin('int32', 'llvm.x86.tileloadd64', T.uint8(1), T.address_of(A[i * 16, "
        "s * 32]), T.int64(2 * k)) in T.evaluate: the stride is in bytes. A tile of B has 16 rows "
        "of 32 elements, from row s * 16 of B on.",
        "ldtilecfg; for i in range(rows // 16): tilezero(0); for s in range(k // 32): "
        "tileloadd64(1, A), tileloadd64(2, B), tdpbf16ps(0, 1, 2); then tilestored64(0, C); and "
        "after the loops tilerelease.",
    ),
    looks_like="""
        16 rows, k = 64: ldtilecfg tilezero tileloadd64 tileloadd64 tdpbf16ps tileloadd64 \
tileloadd64 tdpbf16ps tilestored64 tilerelease
    """,
    demonstrate=lambda amx_product: _tile_calls(amx_product),
)
def check_amx_product(amx_product: Function) -> None:
    from tvm import tirx

    rng = fresh_rng()
    drawn = 16 * int(rng.integers(2, 5)), 32 * int(rng.integers(2, 5))
    # Some differ in a step of one number alone.
    some, many = (32 * int(rng.integers(*each)) for each in ((9, 14), (130, 150)))
    large = 16 * int(rng.integers(8, 12)), 32 * int(rng.integers(20, 30))
    high = 16 * int(rng.integers(70, 140)), 32
    deep = 16, 32 * int(rng.integers(600, 700))
    sizes = [(16, 32), drawn, (96, 32), (16, some), (64, 64), (64, 96), (16, many), large, high]
    for rows, k in (*sizes, deep, (80, 96)):
        func = amx_product(rows, k)
        expect_type(func, tirx.PrimFunc, "amx_product returns a PrimFunc")
        arrays, want = _tile_arrays(rows, k)
        shapes = [(tuple(each.shape), str(each.dtype)) for each in func.params]
        wanted = [
            (each.shape, "bfloat16" if each.dtype == "uint16" else str(each.dtype))
            for each in arrays
        ]
        expect(
            [(tuple(map(int, shape)), dtype) for shape, dtype in shapes] == wanted,
            expected=f"four buffers: {', '.join(f'{dtype} {shape}' for shape, dtype in wanted)}",
            seen=", ".join(f"{dtype} {shape}" for shape, dtype in shapes),
            look="the arguments: configuration, A, B, C",
        )
        tiles = _expect_simulated(func, arrays)
        _expect_order(tiles.calls, rows // 16, k // 32)
        what = f"C of {rows} rows, k = {k}"
        look = (
            "the elements that a tile is loaded from, the strides in bytes (of A, 2 * k), "
            "tdpbf16ps's tiles (sums, A, B), when tile 0 is set to zero, and loops, all serial"
        )
        expect_close(arrays[3], want, what=what, look=look, atol=1e-3, rtol=1e-4)
        _expect_numbers(tiles)
    listing = assembly(func)
    expect(
        "tdpbf16ps" in listing,
        expected="the assembly for a processor with tiles multiplies with tdpbf16ps",
        seen="no such instruction",
        look="T.call_llvm_intrin and the tile numbers",
    )
    if allowed():  # the processor itself, where it has tiles
        arrays, want = _tile_arrays(rows, k)
        run_on_tiles(func, arrays)
        expect_close(arrays[3], want, what="C on tiles", look=look, atol=1e-3, rtol=1e-4)


def _expect_simulated(func: Any, arrays: Sequence[np.ndarray]) -> Tiles:
    expect(
        "llvm.x86.tdpbf16ps" in instructions_of(func),
        expected="tiles are multiplied by llvm.x86.tdpbf16ps",
        seen=", ".join(instructions_of(func)) or "no call of LLVM's",
        look="T.call_llvm_intrin",
    )
    try:
        return run_simulated(func, arrays)
    except TileFault as fault:
        raise fail(
            "instructions that a processor can execute",
            str(fault),
            "the order of the instructions, their pointers, strides in bytes, also of the store, "
            "and the tiles of tdpbf16ps: sums, left, right",
        ) from fault


def _expect_order(calls: Sequence[str], products: int, steps: int) -> None:
    """Configured once, first; released once, last; and so many of each in between."""
    expect(
        calls[:1] == ["ldtilecfg"] and calls.count("ldtilecfg") == 1,
        expected="tiles are configured once, at the start",
        seen=f"{calls.count('ldtilecfg')} times, and {calls[0]} comes first",
        look="ldtilecfg, before the loops",
    )
    expect(
        calls[-1:] == ["tilerelease"] and calls.count("tilerelease") == 1,
        expected="tiles are released once, at the end",
        seen=f"{calls.count('tilerelease')} times, and {calls[-1]} comes last",
        look="tilerelease, after the loops",
    )
    counts = dict.fromkeys(_CHANGES_PER_PRODUCT, products)
    counts |= {"tdpbf16ps": products * steps, "tileloadd64": 2 * products * steps}
    for name, count in counts.items():
        expect(
            calls.count(name) == count,
            expected=f"{count} times {name}: {products} times 16 rows, {steps} times 32 of k",
            seen=f"{number_of(calls.count(name), 'time')}",
            look="the loop around each instruction",
        )


def _expect_numbers(tiles: Tiles) -> None:
    expect(
        tiles.products == {(0, 1, 2)},
        expected="tiles 1, of A, and 2, of B, multiplied into tile 0: tdpbf16ps(0, 1, 2)",
        seen=", ".join(f"tdpbf16ps{each}" for each in sorted(tiles.products)),
        look="the tile numbers of the loads and of the product",
    )


def _tile_calls(amx_product: Function) -> str:
    arrays, _ = _tile_arrays(16, 64)
    return f"16 rows, k = 64: {' '.join(run_simulated(amx_product(16, 64), arrays).calls)}"
