"""ONNX Runtime's operators on quantized tensors, as ONNX's own on dequantized ones.

ONNX Runtime's quantizer writes them where a model is not to have pairs of QuantizeLinear and
DequantizeLinear. Each reads tensors with their scales and zero points and quantizes what its
operator makes of their numbers. `quantized_models` turns most of these into integer operators.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.graphs import attributes

DOMAIN = "com.microsoft"
_FIRST = 0, 1, 2  # the inputs of a tensor, its scale and its zero point
_SECOND = 3, 4, 5


@dataclass(frozen=True)
class _Function:
    """An operator of quantized tensors.

    Attributes:
        operator: what it computes of their numbers.
        reads: the inputs of each tensor, its scale and its zero point.
        writes: those of its result's scale and zero point.
        given: the inputs before, that are as they are.
    """

    operator: str
    reads: tuple[tuple[int, int, int], ...]
    writes: tuple[int, int]
    given: tuple[int, ...] = ()


_FUNCTIONS = {
    "QLinearAdd": _Function("Add", (_FIRST, _SECOND), (6, 7)),
    "QLinearAveragePool": _Function("AveragePool", (_FIRST,), (3, 4)),
    "QLinearGlobalAveragePool": _Function("GlobalAveragePool", (_FIRST,), (3, 4)),
    "QLinearLeakyRelu": _Function("LeakyRelu", (_FIRST,), (3, 4)),
    "QLinearMul": _Function("Mul", (_FIRST, _SECOND), (6, 7)),
    "QLinearSigmoid": _Function("Sigmoid", (_FIRST,), (3, 4)),
    "QLinearSoftmax": _Function("Softmax", (_FIRST,), (3, 4)),
    "QLinearWhere": _Function("Where", ((1, 2, 3), (4, 5, 6)), (7, 8), given=(0,)),
}
_OWN = ("channels_last", "opset")  # attributes that ONNX's operators do not have


def body_of(node: Any) -> list[Any] | None:
    """The nodes that compute the same as a node of this domain; None for an unknown one."""
    if (make := _SPECIAL.get(node.op_type)) is not None:
        return make(node)
    function, given = _FUNCTIONS.get(node.op_type), attributes(node)
    if function is None or given.get("channels_last") or given.get("opset", 13) < 13:
        return None
    body = Body(node)
    tensors = [node.input[place] for place in function.given]
    tensors += [body.numbers(places) for places in function.reads]
    kept = {name: value for name, value in given.items() if name not in _OWN}
    return body.ended(body.add(function.operator, tensors, **kept), function.writes)


def _concatenation(node: Any) -> list[Any]:
    """QLinearConcat: the result's scale and zero point come first, any number of tensors after."""
    body = Body(node)
    places = range(2, len(node.input), 3)
    tensors = [body.numbers((place, place + 1, place + 2)) for place in places]
    return body.ended(body.add("Concat", tensors, axis=attributes(node)["axis"]), (0, 1))


def _product(node: Any) -> list[Any]:
    """QGemm: the bias is int32, of the product's scale; a result without a scale is no integer."""
    body, given = Body(node), attributes(node)
    tensors = [body.numbers(_FIRST), body.numbers(_SECOND, axis=0 if given.get("transB") else 1)]
    if bias := body.input(6):
        factors = body.add("Mul", [node.input[1], node.input[4]])
        if given.get("alpha", 1.0) != 1:
            alpha = body.add("Constant", [], value_float=given["alpha"])
            factors = body.add("Mul", [factors, alpha])
        wide = body.add("Cast", [bias], to=float32())
        tensors.append(body.add("Mul", [wide, factors]))
    return body.ended(body.add("Gemm", tensors, **given), (7, 8))


def _product_of_integers(node: Any) -> list[Any]:
    """MatMulIntegerToFloat: the sums times both scales, and a bias."""
    body = Body(node)
    found = body.scaled_product(node.input[:2], node.input[2:4], (body.input(4), body.input(5)))
    return body.ended(body.biased(found, 6), ())


def _product_quantized_first(node: Any) -> list[Any]:
    """DynamicQuantizeMatMul: the first matrix is quantized by its own extremes."""
    body = Body(node)
    first, scale, zero = body.add_several("DynamicQuantizeLinear", [node.input[0]], 3)
    scales, zeros = (scale, node.input[2]), (zero, body.input(3))
    found = body.scaled_product((first, node.input[1]), scales, zeros)
    return body.ended(body.biased(found, 4), ())


def _product_of_blocks(node: Any) -> list[Any] | None:
    """MatMulNBits of 4 bits: two neighbours of a row in a byte, a scale for each block of them.

    The weights are (outputs, blocks, bytes). Zero points come two in a byte too, or are 8. None for
    other numbers of bits, zero points that are not bytes, and rows in another order.
    """
    body, given = Body(node), attributes(node)
    if given.get("bits", 4) != 4 or body.input(4):
        return None
    inputs, outputs, size = int(given["K"]), int(given["N"]), int(given["block_size"])
    blocks = -(-inputs // size)

    def whole(*values: int) -> str:
        return body.constant(np.array(values, np.int64))

    def numbers(packed: str, count: int) -> str:
        """Each byte's low half, then its high one, as (outputs, blocks, count) of float32."""
        one = whole(1)
        rows = body.add("Reshape", [packed, whole(outputs, -1, 1)])
        sixteen = body.constant(np.array(16, np.uint8))
        low, high = (body.add(each, [rows, sixteen]) for each in ("Mod", "Div"))
        both = body.add("Concat", [low, high], axis=2)
        flat = body.add("Reshape", [both, whole(outputs, -1)])
        ends = whole(0), whole(blocks * count)
        flat = body.add("Slice", [flat, *ends, one])
        rows = body.add("Reshape", [flat, whole(outputs, blocks, count)])
        return body.add("Cast", [rows], to=float32())

    scales = body.add("Reshape", [node.input[2], whole(outputs, blocks, 1)])
    wide = body.add("Cast", [scales], to=float32())
    eight = body.add("Constant", [], value_float=8.0)
    zeros = numbers(node.input[3], 1) if body.input(3) else eight
    apart = body.add("Sub", [numbers(node.input[1], size), zeros])
    rows = body.add("Reshape", [body.add("Mul", [apart, wide]), whole(outputs, -1)])
    ends = [whole(each) for each in (0, inputs, 1)]
    weight = body.add("Transpose", [body.add("Slice", [rows, *ends])], perm=[1, 0])
    weight = body.add("CastLike", [weight, node.input[0]])
    return body.ended(body.biased(body.add("MatMul", [node.input[0], weight]), 5), ())


_SPECIAL: dict[str, Callable[[Any], list[Any] | None]] = {
    "DynamicQuantizeMatMul": _product_quantized_first,
    "MatMulIntegerToFloat": _product_of_integers,
    "MatMulNBits": _product_of_blocks,
    "QGemm": _product,
    "QLinearConcat": _concatenation,
}


class Body:
    """The nodes that replace a node."""

    def __init__(self, node: Any):
        self._node = node
        self._nodes: list[Any] = []
        self._names = _names(node)

    def input(self, place: int) -> str:
        """The name of an input; empty where it is left out."""
        return str(self._node.input[place]) if place < len(self._node.input) else ""

    def numbers(self, places: Sequence[int], axis: int | None = None) -> str:
        """The numbers that a tensor, its scale and its zero point stand for.

        Args:
            places: of the three inputs.
            axis: of a scale for each index of it.
        """
        given = [name for name in map(self.input, places) if name]
        return self.add("DequantizeLinear", given, **({} if axis is None else {"axis": axis}))

    def add(self, operator: str, inputs: Sequence[str], **given: Any) -> str:
        """Another node's output."""
        return self.add_several(operator, inputs, 1, **given)[0]

    def add_several(
        self, operator: str, inputs: Sequence[str], count: int, **given: Any
    ) -> list[str]:
        """Another node's outputs."""
        helper: Any = importlib.import_module("onnx.helper")
        names = [next(self._names) for _ in range(count)]
        self._nodes.append(helper.make_node(operator, list(inputs), names, **given))
        return names

    def scaled_product(
        self, tensors: Sequence[str], scales: Sequence[str], zeros: Sequence[str]
    ) -> str:
        """The product of two matrices of integers, times their scales."""
        while zeros and not zeros[-1]:
            zeros = zeros[:-1]
        whole = self.add("MatMulInteger", [*tensors, *zeros])
        wide = self.add("Cast", [whole], to=float32())
        return self.add("Mul", [wide, self.add("Mul", list(scales))])

    def times(self, made: str, factor: float) -> str:
        """What was made times a number, both of the first input's type, which is known."""
        constant = self.add("Constant", [], value_float=factor)
        number = self.add("CastLike", [constant, self.input(0)])
        return self.add("Mul", [made, number])

    def biased(self, made: str, place: int) -> str:
        """What was made plus an input, if that is given."""
        return self.add("Add", [made, self.input(place)]) if self.input(place) else made

    def constant(self, value: np.ndarray) -> str:
        """A tensor that is known."""
        helper: Any = importlib.import_module("onnx.numpy_helper")
        return self.add("Constant", [], value=helper.from_array(np.asarray(value)))

    def asks(self, place: int) -> bool:
        """Whether the node has a further output."""
        return place < len(self._node.output) and bool(self._node.output[place])

    def output(self, made: str, place: int) -> None:
        """Name a tensor that was made as a further output, if that output is asked for."""
        helper: Any = importlib.import_module("onnx.helper")
        if self.asks(place):
            self._nodes.append(helper.make_node("Identity", [made], [self._node.output[place]]))

    def ended(self, made: str, places: Sequence[int]) -> list[Any]:
        """All nodes, of which the last quantizes `made`, if there is a scale."""
        given = [name for name in map(self.input, places) if name]
        if given:
            self.add("QuantizeLinear", [made, *given])
        self._nodes[-1].output[0] = self._node.output[0]
        return self._nodes


def _names(node: Any) -> Iterator[str]:
    number = 0
    while True:
        yield f"{node.output[0]}/{node.op_type}/{number}"
        number += 1


def float32() -> int:
    return _code("FLOAT")


def int32() -> int:
    return _code("INT32")


def int64() -> int:
    return _code("INT64")


def _code(name: str) -> int:
    onnx: Any = importlib.import_module("onnx")
    return int(getattr(onnx.TensorProto, name))
