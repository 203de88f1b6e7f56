"""The workloads in TVM by hand: tensor expressions, and a schedule for each.

Each function takes the shapes of its arguments and returns a tvm.s_tir.Schedule of a PrimFunc
main(*arguments, result). A product's rows and columns must be multiples of those of
`register_tile`, the extent of a reduction a multiple of the lanes of a vector register.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import te

from solutions.manual_schedule import packed_matmul, register_block
from tvm_practice import engines
from tvm_practice.engines.blocking import packed_blocking, register_tile
from tvm_practice.labs.workloads.loaded import Loaded
from tvm_practice.labs.workloads.problems import EPSILON
from tvm_practice.tvm_export.rules.cpu.vector_math import vectorizable_math

Shape = tuple[int, ...]


def matmul(a: Shape, b: Shape) -> Any:
    return packed_matmul(a[0], b[1], a[1], **packed_blocking(b[1]))


def softmax(x: Shape) -> Any:
    X = te.placeholder(x, name="X")
    largest = reduced(x, lambda *at: X(*at), te.max, "largest")
    exponent = te.compute(x, lambda i, j: te.exp(X[i, j] - largest[i]), name="exponent")
    total = reduced(x, lambda *at: exponent(*at), te.sum, "total")
    Y = te.compute(x, lambda i, j: exponent[i, j] / total[i], name="Y")
    return row_by_row([X, Y])


def layer_norm(x: Shape, gain: Shape, bias: Shape) -> Any:
    X, G, B = (
        te.placeholder(each, name=name) for each, name in ((x, "X"), (gain, "G"), (bias, "B"))
    )
    total = reduced(x, lambda *at: X(*at), te.sum, "total")
    mean = te.compute(x[:1], lambda i: total[i] / x[1], name="mean")
    squares = reduced(x, lambda i, j: (X[i, j] - mean[i]) * (X[i, j] - mean[i]), te.sum, "squares")
    scale = te.compute(x[:1], lambda i: 1 / te.sqrt(squares[i] / x[1] + EPSILON), name="scale")
    Y = te.compute(x, lambda i, j: (X[i, j] - mean[i]) * scale[i] * G[j] + B[j], name="Y")
    return row_by_row([X, G, B, Y])


def mlp(x: Shape, w1: Shape, b1: Shape, w2: Shape, b2: Shape) -> Any:
    shapes = {"X": x, "W1": w1, "B1": b1, "W2": w2, "B2": b2}
    X, W1, B1, W2, B2 = (te.placeholder(shape, name=name) for name, shape in shapes.items())
    up = product(X, W1, "up")
    biased = te.compute(up.shape, lambda i, j: up[i, j] + B1[j], name="biased")
    hidden = te.compute(up.shape, lambda i, j: gelu(biased[i, j]), name="hidden")
    down = product(hidden, W2, "down")
    Y = te.compute(x, lambda i, j: down[i, j] + B2[j], name="Y")
    schedule = scheduled([X, W1, B1, W2, B2, Y])
    for name, epilogue in (("up", ("biased", "hidden")), ("down", ("Y",))):
        block = schedule.get_sblock(name)
        i, j, k = schedule.get_loops(block)
        panel, inside = schedule.split(j, [None, register_tile()[1]])
        schedule.reorder(panel, i, inside, k)
        schedule.parallel(panel)
        packed = schedule.get_sblock(f"{name}_packed")
        schedule.compute_at(packed, panel)
        schedule.vectorize(schedule.get_loops(packed)[-1])
        in_registers(schedule, name, epilogue)
    return schedule


def attention(q: Shape, k: Shape, v: Shape) -> Any:
    heads, tokens, width = q
    Q, K, V = (te.placeholder(q, name=name) for name in "QKV")
    square = (heads, tokens, tokens)
    turned = te.compute((heads, width, tokens), lambda h, d, j: K[h, j, d], name="turned")
    d = te.reduce_axis((0, width), name="d")
    scores = te.compute(
        square, lambda h, i, j: te.sum(Q[h, i, d] * turned[h, d, j], axis=d), name="scores"
    )
    largest = reduced(square, lambda *at: scores(*at), te.max, "largest")
    exponent = te.compute(
        square,
        lambda h, i, j: te.exp((scores[h, i, j] - largest[h, i]) * width**-0.5),
        name="exponent",
    )
    total = reduced(square, lambda *at: exponent(*at), te.sum, "total")
    t = te.reduce_axis((0, tokens), name="t")
    weighted = te.compute(
        q, lambda h, i, c: te.sum(exponent[h, i, t] * V[h, t, c], axis=t), name="weighted"
    )
    Y = te.compute(q, lambda h, i, c: weighted[h, i, c] / total[h, i], name="Y")
    schedule = row_by_row([Q, K, V, Y], besides=("scores", "weighted"))  # a "row" is a head
    in_registers(schedule, "scores", ())
    in_registers(schedule, "weighted", ())
    return schedule


def gelu(x: Any) -> Any:
    return x * 0.5 * (1 + te.erf(x * 0.5**0.5))


def reduced(shape: Shape, value: Callable[..., Any], combine: Callable[..., Any], name: str) -> Any:
    """`combine` over the last axis: first each lane over its elements, then over the lanes."""
    lanes = engines.host().vector_lanes
    *rows, columns = shape
    step = te.reduce_axis((0, columns // lanes), name="step")
    lane = te.reduce_axis((0, lanes), name="lane")
    by_lane = te.compute(
        (*rows, lanes),
        lambda *at: combine(value(*at[:-1], step * lanes + at[-1]), axis=step),
        name=f"{name}_lanes",
    )
    return te.compute(tuple(rows), lambda *at: combine(by_lane(*at, lane), axis=lane), name=name)


def product(a: Any, b: Any, name: str) -> Any:
    """a · b, with b packed: the columns that a tile reads lie together."""
    columns = register_tile()[1]
    (m, k), n = a.shape, b.shape[1]
    packed = te.compute(
        (n // columns, k, columns), lambda p, r, j: b[r, p * columns + j], name=f"{name}_packed"
    )
    r = te.reduce_axis((0, k), name="r")
    return te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, r] * packed[j // columns, r, j % columns], axis=r),
        name=name,
    )


def scheduled(tensors: list[Any]) -> Any:
    function = te.create_prim_func(tensors).with_attr("global_symbol", "main")
    return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))


def row_by_row(tensors: list[Any], besides: Sequence[str] = ()) -> Any:
    """Compute all stages of a row while it is cached: rows in parallel, elements in vectors."""
    schedule = scheduled(tensors)
    *before, last = schedule.get_child_blocks(schedule.get_sblock("root"))
    row = schedule.get_loops(last)[0]
    schedule.parallel(row)
    for block in reversed(before):
        schedule.compute_at(block, row)
    names = {str(schedule.get(block).name_hint): block for block in (*before, last)}
    for name, block in names.items():
        loops = schedule.get_loops(block)
        if name.endswith("_lanes"):
            schedule.reorder(loops[-1], loops[-2])
            schedule.vectorize(loops[-2])
            schedule.decompose_reduction(block, loops[-1])
        elif name not in besides and f"{name}_lanes" not in names and len(loops) > 1:
            lanes = engines.host().vector_lanes
            schedule.vectorize(schedule.split(loops[-1], [None, lanes])[1])
    return schedule


def in_registers(schedule: Any, name: str, epilogue: Sequence[str]) -> None:
    """Keep a product's tile in registers, and apply the epilogue before it is written."""
    register_block(schedule, schedule.get_sblock(name), *register_tile(), 4)
    for each in epilogue:
        schedule.reverse_compute_inline(schedule.get_sblock(each))


def load(workload: str, inputs: Sequence[np.ndarray]) -> Loaded:
    schedule = globals()[workload](*(each.shape for each in inputs))
    function = vectorizable_math(schedule.mod["main"])
    module = tvm.compile(tvm.IRModule({"main": function}), target=engines.host_target())
    arguments = [tvm.runtime.tensor(each) for each in inputs]
    shape = [int(extent) for extent in function.params[-1].shape]
    output = tvm.runtime.tensor(np.zeros(shape, "float32"))
    compiled = module["main"]

    def result() -> np.ndarray:
        compiled(*arguments, output)
        array: np.ndarray = output.numpy()
        return array

    return Loaded(lambda: compiled(*arguments, output), result)
