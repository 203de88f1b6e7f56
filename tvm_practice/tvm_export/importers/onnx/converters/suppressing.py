"""NonMaxSuppression: of boxes that overlap, those with the highest scores.

https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html; where it leaves something open, as
ONNX Runtime does it: of equal scores the first box is taken first, and boxes without an area
suppress nothing.
"""

from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.converters.kernels import call_kernel
from tvm_practice.tvm_export.importers.converters.nonzero import indices_of_nonzero
from tvm_practice.tvm_export.importers.converters.own_relax import in_whole_numbers
from tvm_practice.tvm_export.importers.onnx.converters.base import Node

# TVM's own is of as many rows as could be selected, and a later operator meets fewer.
_KERNEL = """@T.prim_func(private=True, s_tir=True)
def suppress(
    corners: T.Buffer(({batches}, {boxes}, 4), "float32"),
    scores: T.Buffer(({batches}, {classes}, {boxes}), "float32"),
    order: T.Buffer(({batches}, {classes}, {boxes}), "int64"),
    selected: T.Buffer(({batches}, {classes}, {most}), "int64"),
):
    T.func_attr({attributes})
    taken = T.sblock_alloc_buffer((1,), "int64")
    rank = T.sblock_alloc_buffer((1,), "int64")
    other = T.sblock_alloc_buffer((1,), "int64")
    box = T.sblock_alloc_buffer((1,), "int64")
    common = T.sblock_alloc_buffer((1,), "float32")
    whole = T.sblock_alloc_buffer((1,), "float32")
    with T.sblock("suppress"):
        T.reads(corners[0:{batches}, 0:{boxes}, 0:4], scores[0:{batches}, 0:{classes}, 0:{boxes}],
                order[0:{batches}, 0:{classes}, 0:{boxes}])
        T.writes(selected[0:{batches}, 0:{classes}, 0:{most}])
        for n, c in T.grid({batches}, {classes}):
            for i in range({most}):
                selected[n, c, i] = T.int64(-1)
            taken[0] = T.int64(0)
            rank[0] = T.int64(0)
            while rank[0] < T.int64({boxes}) and taken[0] < T.int64({most}):
                box[0] = order[n, c, rank[0]]
                rank[0] = rank[0] + T.int64(1)
                if scores[n, c, box[0]] > T.float32({least}):
                    other[0] = T.int64(0)
                    while other[0] < taken[0]:
                        common[0] = T.max(
                            T.min(corners[n, box[0], 2], corners[n, selected[n, c, other[0]], 2])
                            - T.max(corners[n, box[0], 0], corners[n, selected[n, c, other[0]], 0]),
                            T.float32(0),
                        ) * T.max(
                            T.min(corners[n, box[0], 3], corners[n, selected[n, c, other[0]], 3])
                            - T.max(corners[n, box[0], 1], corners[n, selected[n, c, other[0]], 1]),
                            T.float32(0),
                        )
                        whole[0] = (
                            (corners[n, box[0], 2] - corners[n, box[0], 0])
                            * (corners[n, box[0], 3] - corners[n, box[0], 1])
                            + (corners[n, selected[n, c, other[0]], 2]
                               - corners[n, selected[n, c, other[0]], 0])
                            * (corners[n, selected[n, c, other[0]], 3]
                               - corners[n, selected[n, c, other[0]], 1])
                            - common[0]
                        )
                        if common[0] > T.float32(0) and common[0] / whole[0] > T.float32({overlap}):
                            other[0] = T.int64({boxes}) + T.int64(1)
                        other[0] = other[0] + T.int64(1)
                    if other[0] <= T.int64({boxes}):
                        selected[n, c, taken[0]] = box[0]
                        taken[0] = taken[0] + T.int64(1)
                else:
                    rank[0] = T.int64({boxes})
"""


def non_maximum_suppression(node: Node) -> Any:
    """Rows of (batch, class, box), the boxes of a class by falling score."""
    from tvm import relax

    most, overlap, least = (node.known(position) for position in (2, 3, 4))
    if most is None or most.item() <= 0:
        raise node.refused("no output is asked for, max_output_boxes_per_class is 0")
    boxes, scores = node.inputs[:2]
    batches, classes, count = node.shape(1)
    if 0 in (batches, classes, count):
        raise node.refused("there are no boxes")
    corners = node.compute(
        _corners, boxes, name="corners", given=(bool(node.get("center_point_box", 0)),)
    )
    falling = node.compute(in_whole_numbers, node.emit(relax.op.negative(scores)), name="order")
    order = node.emit(relax.op.argsort(falling, -1, dtype="int64"))
    limit = min(int(most.item()), count)
    [selected] = call_kernel(
        node.builder,
        _KERNEL,
        "suppress",
        [corners, scores, order],
        [(batches, classes, limit)],
        "int64",
        batches=batches,
        classes=classes,
        boxes=count,
        most=limit,
        overlap=_number(overlap, 0.0),
        least=_number(least, -np.inf),
    )
    is_taken = node.emit(relax.op.greater_equal(selected, relax.const(0, "int64")))
    rows = indices_of_nonzero(node.builder, is_taken, node.builder.get_unique_name("rows"))
    return node.compute(_with_boxes, rows, selected, name="selected")


def _number(given: np.ndarray | None, otherwise: float) -> str:
    """As TVMScript writes it."""
    value = otherwise if given is None else float(given.item())
    return repr(value) if np.isfinite(value) else f'"{value}"'


def _corners(boxes: Any, by_center: bool) -> Any:
    """(least y, least x, most y, most x) of boxes; by their center it is x before y."""
    from tvm import te, tirx

    def of(n: Any, box: Any, at: Any) -> Any:
        axis, is_most = at % 2, at >= 2
        if by_center:
            half = boxes[n, box, axis + 2] / 2
            return boxes[n, box, axis] + tirx.Select(is_most, half, -half)
        one, other = boxes[n, box, axis], boxes[n, box, axis + 2]
        return tirx.Select(is_most, tirx.max(one, other), tirx.min(one, other))

    return te.compute(boxes.shape, of, name="corners")


def _with_boxes(rows: Any, selected: Any) -> Any:
    from tvm import te, tirx

    def of(row: Any, at: Any) -> Any:
        box = selected[rows[row, 0], rows[row, 1], rows[row, 2]]
        return tirx.Select(at == 2, box, rows[row, at])

    return te.compute(rows.shape, of, name="selected")


CONVERTERS = {"NonMaxSuppression": non_maximum_suppression}
