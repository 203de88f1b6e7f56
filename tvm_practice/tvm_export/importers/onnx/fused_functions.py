"""Operators that ONNX Runtime's optimizer fuses, as ONNX's own one after the other.

They stand in models that were saved after its optimization.
"""

from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.onnx.graphs import attributes
from tvm_practice.tvm_export.importers.onnx.quantized_functions import Body, float32

# An activation's parameters, in the order of `activation_params`.
_PARAMETERS = {
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}


def body_of(node: Any) -> list[Any] | None:
    """The nodes that compute the same as a node of this domain; None for an unknown one."""
    make = _MADE.get(node.op_type)
    return None if make is None else make(node)


def _convolution(node: Any) -> list[Any] | None:
    """FusedConv: a tensor may be added before the activation. None for an unknown activation."""
    body, given = Body(node), attributes(node)
    activation, settings = _name(given.pop("activation", "")), given.pop("activation_params", ())
    if activation and activation not in _PARAMETERS:
        return None
    made = body.add("Conv", [body.input(0), body.input(1), body.input(2)], **given)
    made = body.biased(made, 3)
    if activation:
        parameters = dict(zip(_PARAMETERS[activation], settings, strict=False))
        made = body.add(activation, [made], **parameters)
    return body.ended(made, ())


def _gemm(node: Any) -> list[Any] | None:
    """FusedGemm. None for an unknown activation."""
    body, given = Body(node), attributes(node)
    activation = _name(given.pop("activation", ""))
    names = ("alpha", "beta")
    parameters = {each: given.pop(f"activation_{each}", None) for each in names}
    given.pop("activation_gamma", None)
    if activation not in _PARAMETERS:
        return None
    made = body.add("Gemm", list(node.input), **given)
    kept = {each: parameters[each] for each in _PARAMETERS[activation]}
    kept = {name: value for name, value in kept.items() if value is not None}
    return body.ended(body.add(activation, [made], **kept), ())


def _name(given: Any) -> str:
    return given.decode() if isinstance(given, bytes) else str(given)


def _scaled_product(node: Any) -> list[Any] | None:
    """FusedMatMul: of transposed matrices, times `alpha`. None where axes of batches move."""
    body, given = Body(node), attributes(node)
    if given.get("transBatchA") or given.get("transBatchB"):
        return None
    if given.get("transA") or given.get("transB"):
        # Their last two axes are exchanged, however many there are before.
        one, other = "ji" if given.get("transA") else "ij", "kj" if given.get("transB") else "jk"
        equation = f"...{one},...{other}->...ik"
        made = body.add("Einsum", list(node.input), equation=equation)
    else:
        made = body.add("MatMul", list(node.input))
    alpha = given.get("alpha", 1.0)
    return body.ended(made if alpha == 1 else body.times(made, alpha), ())


def _quick_gelu(node: Any) -> list[Any]:
    """QuickGelu: x sigmoid(alpha x)."""
    body = Body(node)
    inner = body.times(node.input[0], attributes(node).get("alpha", 1.702))
    return body.ended(body.add("Mul", [node.input[0], body.add("Sigmoid", [inner])]), ())


def _root_mean_square(node: Any) -> list[Any] | None:
    """SimplifiedLayerNormalization: over the last axis. None over more."""
    if attributes(node).get("axis", -1) != -1:
        return None
    body = Body(node)
    return body.ended(_normalized(body, body.input(0), _epsilon(node, 1e-5), 1, 1), ())


def _added_root_mean_square(node: Any) -> list[Any]:
    """SkipSimplifiedLayerNormalization: of the sum of two tensors and a bias."""
    body = Body(node)
    total = body.biased(body.add("Add", [body.input(0), body.input(1)]), 3)
    body.output(total, 3)
    return body.ended(_normalized(body, total, _epsilon(node, 1e-12), 2, 2), ())


def _added_normalization(node: Any) -> list[Any]:
    """SkipLayerNormalization: of the sum of two tensors and a bias."""
    body = Body(node)
    total = body.biased(body.add("Add", [body.input(0), body.input(1)]), 4)
    body.output(total, 3)
    epsilon, tensors = _epsilon(node, 1e-12), [total, body.input(2), body.input(3)]
    tensors = tensors if tensors[-1] else tensors[:-1]
    asked = 1 + max((place for place in (1, 2) if body.asks(place)), default=0)
    made = body.add_several("LayerNormalization", tensors, asked, axis=-1, epsilon=epsilon)
    for place, each in enumerate(made[1:], 1):
        body.output(each, place)
    return body.ended(body.add("Identity", [made[0]]), ())


def _epsilon(node: Any, usual: float) -> float:
    return float(attributes(node).get("epsilon", usual))


def _normalized(body: Body, given: str, epsilon: float, scale: int, inverse: int) -> str:
    """A tensor over the root of its mean square along the last axis, in float32, times a scale.

    Args:
        body: of the node.
        given: the tensor.
        epsilon: what is added to the mean.
        scale: the place of the scale among the inputs.
        inverse: the place among the outputs of one over the root.
    """
    wide = body.add("Cast", [given], to=float32())
    last = body.add("Constant", [], value_ints=[-1])
    squares = body.add("ReduceSum", [body.add("Mul", [wide, wide]), last])
    count = body.add("Gather", [body.add("Shape", [given]), last])
    mean = body.add("Div", [squares, body.add("Cast", [count], to=float32())])
    small = body.add("Constant", [], value_float=epsilon)
    root = body.add("Sqrt", [body.add("Add", [mean, small])])
    over = body.add("Reciprocal", [root])
    body.output(over, inverse)
    narrow = body.add("CastLike", [body.add("Mul", [wide, over]), body.input(0)])
    return body.add("Mul", [narrow, body.input(scale)])


_MADE: dict[str, Callable[[Any], list[Any] | None]] = {
    "FusedConv": _convolution,
    "FusedGemm": _gemm,
    "FusedMatMul": _scaled_product,
    "QuickGelu": _quick_gelu,
    "SimplifiedLayerNormalization": _root_mean_square,
    "SkipLayerNormalization": _added_normalization,
    "SkipSimplifiedLayerNormalization": _added_root_mean_square,
}
IN_ONNX = {"SimplifiedLayerNormalization"}
"""Those that ONNX Runtime writes as if they were ONNX's own."""
