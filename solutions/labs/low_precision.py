"""Reference answers of lab 8."""

from collections.abc import Mapping
from typing import Any

import numpy as np


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
    bits = x.view("uint32")
    last = (bits >> 16) & 1
    nearest = (bits + 0x7FFF + last) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where(np.isnan(x), quiet, nearest).astype("uint16")


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
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (2**bits - 1) or 1.0
    return scale, round(-low / scale)


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
    low = -(2 ** (bits - 1)) if signed else 0
    moved = np.moveaxis(x, axis, -1)
    shifted = np.rint(moved / scale) + zero_point
    whole = np.clip(shifted, low, low + 2**bits - 1).astype("int8" if signed else "uint8")
    result: np.ndarray = np.moveaxis(whole, -1, axis)
    return result


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
    moved = np.moveaxis(q, axis, -1).astype("int32")
    real: np.ndarray = np.moveaxis((moved - zero_point) * scale, -1, axis).astype("float32")
    return real


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
    folded: np.ndarray = np.rint(bias / scale).astype("int32")
    result: np.ndarray = folded - zero_point * weight.sum(axis=0, dtype="int32")
    return result


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
    k, n = weight.shape
    padded = np.pad(weight, ((0, -k % group), (0, -n % 16)))
    panels = padded.reshape(-(-k // group), group, -(-n // 16), 16)
    return np.ascontiguousarray(panels.transpose(2, 0, 3, 1))


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
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, 16])
    k_outer, k_inner = schedule.split(k, [None, 4])
    schedule.reorder(i_outer, j_outer, k_outer, i_inner, j_inner, k_inner)
    schedule.parallel(schedule.fuse(i_outer, j_outer))
    schedule.unroll(i_inner)
    zeroing = schedule.decompose_reduction(block, k_outer)
    schedule.vectorize(schedule.get_loops(zeroing)[-1])
    schedule.tensorize(j_inner, intrinsic)


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
    from tvm import te

    def element(i: Any, j: Any) -> Any:
        scaled = (C[i, j] + bias[j]).astype("float32") * multiplier[j]
        shifted = te.round(scaled) + te.const(zero_point, "float32")
        limited = te.max(te.min(shifted, te.const(255, "float32")), te.const(0, "float32"))
        return limited.astype("uint8")

    return te.compute(C.shape, element, name="Y")


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
    configuration = np.zeros(64, "uint8")
    configuration[0] = 1
    for tile, (rows, row_bytes) in tiles.items():
        configuration[16 + 2 * tile] = row_bytes
        configuration[48 + tile] = rows
    return configuration


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
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def main(
        Configuration: T.Buffer((64,), "uint8"),
        A: T.Buffer((rows, k), "bfloat16"),
        B: T.Buffer((k // 2, 32), "bfloat16"),
        C: T.Buffer((rows, 16), "float32"),
    ):
        T.evaluate(
            T.call_llvm_intrin("int32", "llvm.x86.ldtilecfg", T.address_of(Configuration[0]))
        )
        for i in range(rows // 16):
            T.evaluate(T.call_llvm_intrin("int32", "llvm.x86.tilezero", T.uint8(0)))
            for s in range(k // 32):
                T.evaluate(
                    T.call_llvm_intrin(
                        "int32",
                        "llvm.x86.tileloadd64",
                        T.uint8(1),
                        T.address_of(A[i * 16, s * 32]),
                        T.int64(2 * k),
                    )
                )
                T.evaluate(
                    T.call_llvm_intrin(
                        "int32",
                        "llvm.x86.tileloadd64",
                        T.uint8(2),
                        T.address_of(B[s * 16, 0]),
                        T.int64(64),
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
                    T.address_of(C[i * 16, 0]),
                    T.int64(64),
                )
            )
        T.evaluate(T.call_llvm_intrin("int32", "llvm.x86.tilerelease"))

    return main
