"""Lab 8: low precision.

A number of 8 or 16 bits takes less memory than a float32, and processors have instructions that
multiply many of them at once. This lab follows a linear layer from its real numbers to those
instructions:

    round         float32 to bfloat16: the same exponent, fewer digits
    quantize      real numbers to integers, with a scale and a zero point
    pack          weights in the order in which an instruction reads them
    tensorize     loops into an instruction for 64 products of bytes (VNNI)
    requantize    int32 sums back to bytes: the epilogue, the step after the product
    tiles         registers that hold a matrix (AMX), 8192 products of bfloat16 per instruction

Your processor need not have these instructions. The checks read the loops and the calls, and run
your kernels with the instruction replaced by its arithmetic.

The pieces:

    x.view("uint32")                        numpy: the same bytes as another type
    np.rint(x), np.moveaxis(x, axis, -1)    nearest integers, halves to even; an axis moved last
    schedule.decompose_reduction(block, loop)
                                            sets the sums to zero before this loop, in a block that
                                            it returns
    schedule.tensorize(loop, name)          replaces the loops from this one inwards by an
                                            *intrinsic*: a description in loops, which must fit
                                            yours, and the instruction that is put in their place;
                                            see tvm_practice/labs/integer_products.py
    te.round(x), te.min(x, y), te.max(x, y), x.astype("uint8"), te.const(255, "float32")
    from tvm.script import tirx as T        for functions that are written as loops in Python:
        @T.prim_func(s_tir=True)            Python's text becomes a PrimFunc
        A: T.Buffer((rows, k), "bfloat16")  an argument
        for i in range(n):                  a loop
        T.evaluate(call)                    a call for its effect
        T.call_llvm_intrin("int32", "llvm.x86.tilezero", T.uint8(0))
                                            an instruction by LLVM's name; tile numbers are T.uint8
        T.address_of(A[i, j])               a pointer to an element
        T.int64(128)                        a number of that type; strides are T.int64 (T is tirx,
                                            so the full names are tirx.int64 and tirx.uint8)
    The instructions for tiles, and their arguments:
        ldtilecfg(pointer)                  reads 64 bytes of configuration, sets all tiles to zero
        tilezero(tile)
        tileloadd64(tile, pointer, stride)  stride: bytes from one row in memory to the next
        tilestored64(tile, pointer, stride)
        tdpbf16ps(sums, left, right)        sums += left · right
        tilerelease()

The worked example is `column_scales`. Write the functions below it, then run

    python -m tvm_practice.labs.low_precision
    pytest -m lab8
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvm_practice.course.phase import phase_command


def column_scales(weight: np.ndarray, *, bits: int = 8) -> np.ndarray:
    """Worked example: the scale of each column's signed integers, with zero point 0.

    Weights spread evenly around 0, so their range is symmetric, and no zero point is needed.

    Args:
        weight: float32 (k, n).
        bits: of an integer.

    Returns:
        float32 (n,): with it the column's largest absolute value is the largest integer.
    """
    largest = np.abs(weight).max(axis=0)
    # A column of zeros needs a scale as well.
    scales: np.ndarray = np.where(largest > 0, largest, 1) / (2 ** (bits - 1) - 1)
    return scales.astype("float32")


def round_to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Round float32 numbers to the nearest bfloat16, by integer arithmetic on their bits.

    A bfloat16 is the upper half of a float32: its sign, its exponent, 7 bits of its fraction. Of
    two that are equally near, the one whose last bit is 0 is taken. Signs of zeros and subnormal
    numbers need no case of their own, and whatever rounds past the largest bfloat16 becomes an
    infinity. A NaN must stay a NaN, even if only its lower half tells it from infinity.

    Args:
        x: float32, of any shape; it is only read.

    Returns:
        The bits as uint16, of x's shape.
    """
    raise NotImplementedError("view x's bits, add a rounding term, keep the upper half")


def affine_parameters(low: float, high: float, *, bits: int = 8) -> tuple[float, int]:
    """Choose the scale and zero point of unsigned q, which stand for (q - zero_point) * scale.

    Padding and ReLU produce 0.0, so an integer must stand for it exactly: widen the range until it
    holds 0.0. Then scale is the range divided by the largest q, 2**bits - 1, and zero_point the
    integer nearest to -low / scale. An empty range, 0.0 to 0.0, has scale 1.0.

    Args:
        low: the least number to be represented.
        high: the largest one.
        bits: of an unsigned number.

    Returns:
        The scale, a float, and the zero point, an int from 0 to 2**bits - 1.
    """
    raise NotImplementedError("widen the range, divide it, and place 0.0")


def quantize(
    x: np.ndarray, scale: Any, zero_point: Any, *, signed: bool, bits: int = 8, axis: int = -1
) -> np.ndarray:
    """Replace each number by the nearest integer q, which stands for (q - zero_point) * scale.

    Divide first, then round, halves to even; add the zero point; and saturate: a result past the
    least or largest integer of `bits` bits becomes that integer; it does not wrap around.

    Args:
        x: float32, of rank 1 or more.
        scale: a number, or an array of one scale per index of `axis`.
        zero_point: an integer, or an array likewise.
        signed: whether the integers are -2**(bits - 1) to 2**(bits - 1) - 1; else from 0 on.
        bits: of an integer, at most 8.
        axis: of x, to which arrays of scales and zero points belong.

    Returns:
        An array of x's shape: int8 if signed, else uint8.
    """
    raise NotImplementedError("divide, round, add, clip, and only then change the type")


def dequantize(q: np.ndarray, scale: Any, zero_point: Any, *, axis: int = -1) -> np.ndarray:
    """Compute the numbers (q - zero_point) * scale that integers stand for.

    A difference of two numbers of 8 bits has 9: it must not wrap around.

    Args:
        q: int8 or uint8, of rank 1 or more.
        scale: a number, or an array of one scale per index of `axis`.
        zero_point: an integer, or an array likewise.
        axis: of q, to which arrays of scales and zero points belong.

    Returns:
        A float32 array of q's shape.
    """
    raise NotImplementedError("widen, subtract, multiply")


def fold_zero_point(
    weight: np.ndarray, zero_point: int, bias: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Compute the int32 that is added to each column of an integer product.

    Real inputs are (x - zero_point) * x_scale, real weights w * w_scale. So column j of the real
    product is scale[j] * sum over k of (x - zero_point) * w, with scale = x_scale * w_scale. The
    instruction multiplies x as it is. The zero point's part of the sum does not depend on x:
    subtract it from the bias, which is first brought into units of scale and rounded.

    Args:
        weight: int8 (k, n).
        zero_point: of the inputs, 0 to 255.
        bias: float32 (n,), in real units.
        scale: float32 (n,): of the products of each column.

    Returns:
        int32 (n,).
    """
    raise NotImplementedError("the sums of the weights over k, times the zero point")


def pack_weights(weight: np.ndarray, *, group: int) -> np.ndarray:
    """Lay weights out as the instruction reads them: a vector of 16 columns, each a group of k.

    The instruction adds the products of `group` neighbours in k to each of 16 sums. So element
    [p, g, j, e] of the result is weight[g * group + e, 16 * p + j]: one step of the instruction
    reads 64 bytes in a row. Where the weight has no such element, it is 0.

    Args:
        weight: (k, n) of any type of 8 or 16 bits; neither k nor n need be divisible.
        group: elements in 32 bits: 4 of int8, 2 of bfloat16.

    Returns:
        Panels [n / 16][k / group][16][group], rounded up, of the weight's type; contiguous.
    """
    raise NotImplementedError("pad, reshape to groups and panels, transpose")


def schedule_vnni(schedule: Any, block: Any, *, rows: int, intrinsic: str) -> None:
    """Schedule an integer product onto an instruction for 16 columns and 4 steps of k.

    `tvm_practice.labs.integer_products.declare` declares the product. Its loops become
    i_outer, j_outer, k_outer, i_inner, j_inner, k_inner; i_outer and j_outer are fused and
    parallel, i_inner is unrolled, so that `rows` vectors of sums stay in registers. The sums are
    set to zero before k_outer, by a statement of its own whose columns are vectorized: the
    instruction only adds. Then the loops j_inner and k_inner become one call of the intrinsic.
    TVM refuses `parallel` around a sum that is decomposed: mark that loop before.

    Args:
        schedule: a tvm.s_tir.Schedule of the product, changed in place.
        block: the product's block; its loops are i, j and k.
        rows: the extent of i_inner; divides the rows of the product.
        intrinsic: the name of a registered intrinsic whose description fits j_inner and k_inner.
    """
    raise NotImplementedError("split, reorder, decompose_reduction, tensorize")


def requantized(C: Any, bias: Any, multiplier: Any, zero_point: int) -> Any:
    """Declare the epilogue Y = saturated(round((C + bias[j]) * multiplier[j]) + zero_point).

    C and bias are added as int32, where the sum is exact. The product is in float32, and round
    rounds to the nearest integer, halves to even. Saturation turns values below 0 into 0 and values
    above 255 into 255. With zero_point 0 it is a ReLU at no cost.

    Args:
        C: a te.Tensor (rows, columns), int32: the integer product.
        bias: a te.Tensor (columns,), int32: as `fold_zero_point` gives it.
        multiplier: a te.Tensor (columns,), float32: scale of the products over that of the result.
            (C + bias[j]) * multiplier[j] + zero_point fits in 32 bits.
        zero_point: of the result, 0 to 255.

    Returns:
        The te.Tensor Y (rows, columns), uint8, named "Y".
    """
    raise NotImplementedError("add, scale, round, shift, limit: one te.compute")


def tile_configuration(tiles: Mapping[int, tuple[int, int]]) -> np.ndarray:
    """Write the 64 bytes from which a thread configures its tile registers.

    Byte 0 is the palette, 1: eight tiles of up to 16 rows of 64 bytes. Tile t's bytes per row are a
    16-bit number at byte 16 + 2 * t, low byte first; its rows are byte 48 + t. All else, such as
    the start row in byte 1, is 0.

    Args:
        tiles: by number, 0 to 7: rows, at most 16, and bytes per row, at most 64.

    Returns:
        A new uint8 array of 64 elements.
    """
    raise NotImplementedError("64 bytes of zeros, and a few that are not")


def amx_product(rows: int, k: int) -> Any:  # a tvm.tirx.PrimFunc
    """Write C = A · B on tile registers, in bfloat16 with sums in float32.

    For each 16 rows of C: set tile 0 to zero; for each 32 steps of k load 16 x 32 elements of A
    into tile 1, 16 x 32 of B into tile 2, and add their product to tile 0; then store tile 0.
    Tiles are configured once, at the start, from the first argument, and released at the end.

    Args:
        rows: of A and C, a multiple of 16.
        k: columns of A, a multiple of 32.

    Returns:
        A PrimFunc of four buffers: the configuration (64,), uint8; A (rows, k), bfloat16;
        B (k / 2, 32), bfloat16, whose row p has elements 2 * p and 2 * p + 1 of each column side
        by side, as panel 0 of `pack_weights` with groups of 2; and C (rows, 16), float32.
    """
    raise NotImplementedError("a T.prim_func of tile instructions")


main = phase_command("labs.low_precision", "Lab 8: low precision.")

if __name__ == "__main__":
    main()
