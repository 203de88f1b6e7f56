"""Products uint8 × int8 with int32 sums: the expression, and the instruction as an intrinsic.

A tensor intrinsic is two PrimFuncs of the same buffers. The *description* has loops: `tensorize`
compares it with the loops to be replaced, and refuses them if they compute something else. The
*implementation* is put in their place; TVM trusts that it computes the same.

TVM 0.27 has an intrinsic of this description, "dot_16x4_vnni". Its LLVM refuses the call, because
LLVM 22 declares the instruction's operands as 64 bytes and no longer as 16 words.
"""

from functools import cache
from typing import Any

VNNI = "tvm_practice_vnni"
PORTABLE = "tvm_practice_dot"


def declare(m: int, k: int, n: int) -> list[Any]:
    """Declare C[i, j] = sum over k of X[i, k] * W[k, j], the weights packed.

    Args:
        m: rows of X and C.
        k: steps of the sum, a multiple of 4.
        n: columns of C, a multiple of 16.

    Returns:
        The tensors [X, W, C]: X (m, k) uint8; W (n / 16, k / 4, 16, 4) int8; C (m, n) int32.
    """
    from tvm import te

    X = te.placeholder((m, k), "uint8", name="X")
    W = te.placeholder((n // 16, k // 4, 16, 4), "int8", name="W")
    r = te.reduce_axis((0, k), name="k")

    def element(i: Any, j: Any) -> Any:
        weight = W[j // 16, r // 4, j % 16, r % 4]
        return te.sum(X[i, r].astype("int32") * weight.astype("int32"), axis=r)

    return [X, W, te.compute((m, n), element, name="C")]


@cache
def register_intrinsics() -> None:
    """Register both with TVM, once: `VNNI`, and `PORTABLE`, which any processor can run."""
    import tvm
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def description(
        x: T.Buffer((4,), "uint8", offset_factor=1),
        w: T.Buffer((16, 4), "int8", offset_factor=1),
        c: T.Buffer((16,), "int32", offset_factor=1),
    ):
        with T.sblock("root"):
            T.reads(c[0:16], x[0:4], w[0:16, 0:4])
            T.writes(c[0:16])
            for j in range(16):
                for k in range(4):
                    with T.sblock("dot"):
                        vj, vk = T.axis.remap("SR", [j, k])
                        c[vj] = c[vj] + T.cast(x[vk], "int32") * T.cast(w[vj, vk], "int32")

    @T.prim_func(s_tir=True)
    def vnni(
        x: T.Buffer((4,), "uint8", offset_factor=1),
        w: T.Buffer((16, 4), "int8", offset_factor=1),
        c: T.Buffer((16,), "int32", offset_factor=1),
    ):
        with T.sblock("root"):
            T.reads(c[0:16], x[0:4], w[0:16, 0:4])
            T.writes(c[0:16])
            # Four bytes of X, the same for each of the 16 columns; 64 bytes of W.
            c[T.ramp(0, 1, 16)] = T.call_llvm_pure_intrin(
                "int32x16",
                "llvm.x86.avx512.vpdpbusd.512",
                c.vload([0], "int32x16"),
                T.reinterpret(
                    "int8x64", T.broadcast(T.reinterpret("int32", x.vload([0], "uint8x4")), 16)
                ),
                w.vload([0, 0], "int8x64"),
            )

    @T.prim_func(s_tir=True)
    def portable(
        x: T.Buffer((4,), "uint8", offset_factor=1),
        w: T.Buffer((16, 4), "int8", offset_factor=1),
        c: T.Buffer((16,), "int32", offset_factor=1),
    ):
        with T.sblock("root"):
            T.reads(c[0:16], x[0:4], w[0:16, 0:4])
            T.writes(c[0:16])
            for j, k in T.grid(16, 4):
                c[j] = c[j] + T.cast(x[k], "int32") * T.cast(w[j, k], "int32")

    for name, implementation in ((VNNI, vnni), (PORTABLE, portable)):
        tvm.s_tir.TensorIntrin.register(name, description, implementation)
