"""Refused: a packed function, which could be PyTorch's, computes the product."""

import tvm
from tvm import te


def product(m, n, k):
    X, W = te.placeholder((m, k), name="X"), te.placeholder((k, n), name="W")
    bias, R = te.placeholder((n,), name="bias"), te.placeholder((m, n), name="R")
    Y = te.extern(
        (m, n),
        [X, W, bias, R],
        lambda ins, outs: tvm.tirx.call_packed("my.torch.product", *ins, *outs),
        name="Y",
    )
    return te.create_prim_func([X, W, bias, R, Y])
