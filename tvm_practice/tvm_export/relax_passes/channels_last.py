"""Convolutions with their channels last: NHWC through the graph, transposed at its ends alone.

Of a pixel the channels lie side by side then, and each is a lane of a vector: a 1x1 convolution is
a matrix product as it lies, with or without a stride, and a depthwise one reads whole vectors.

    module = with_channels_last(module)  # as imported, for a processor

An operator that is told here takes its operands with the channels last and gives its result so; a
transpose to the order of the model follows it, which the next such operator takes away again. What
another operator reads, or nobody, decides which transposes are left.
"""

import math
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.constant_folding import folded_constants
from tvm_practice.tvm_export.relax_passes.fused_padding import padded
from tvm_practice.tvm_export.rewriting import rewritten

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""The axes of a tensor whose channels go last, and back."""
# Of the elements that convolutions read and write, how many transposes may move at most.
_MOST_MOVED = 0.1
_UNARY = {"abs", "exp", "negative", "nn.gelu", "nn.relu", "nn.silu", "sigmoid", "sqrt", "tanh"}
_UNARY |= {"astype", "clip", "nn.leakyrelu", "round"}
_BINARY = {"add", "bitwise_xor", "divide", "maximum", "minimum", "multiply", "power", "subtract"}
_POOLING = {"nn.avg_pool2d", "nn.max_pool2d"}
# Of a convolution's operands and its sums.
_TYPES = {
    ("float32", "float32", "float32"),
    ("bfloat16", "bfloat16", "float32"),
    ("uint8", "int8", "int32"),
}


def with_channels_last(module: Any) -> Any:
    """A Relax module that convolves with the channels last, where that moves little else.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.

    Returns:
        The module as it was where it has no 2-D convolution, or one with an open extent, with
        weights that are no constant, or of types that are not in `_TYPES`. It also stays where
        transposes between the convolutions would move much.
    """
    import tvm
    from tvm import relax

    if not calls(module, "relax.nn.conv2d"):
        return module
    before = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        folded_constants(),
    ]
    ready = tvm.ir.transform.Sequential(before)(module)
    convolutions = calls(ready, "relax.nn.conv2d")
    if not all(map(_is_usual, convolutions)):
        return module
    changed = _moved(ready)
    after = [
        relax.transform.CanonicalizeBindings(),
        relax.transform.DeadCodeElimination(),
        folded_constants(),
        relax.transform.CanonicalizeBindings(),
    ]
    changed = tvm.ir.transform.Sequential(after)(changed)
    own = len(calls(module, "relax.permute_dims"))
    moved = sum(map(_elements, calls(changed, "relax.permute_dims")[own:]))
    touched = sum(_elements(each) + _elements(each.args[0]) for each in convolutions)
    return changed if moved <= _MOST_MOVED * touched else module


def _moved(module: Any) -> Any:
    """The module with every operator that is told here on tensors whose channels are last."""
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Moving(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            made = _with_last(call, self.lookup_binding, self.builder_)
            return call if made is None else made

    return rewritten(module, Moving(module))


def _with_last(call: Any, bound: Callable[[Any], Any], builder: Any) -> Any | None:
    """What replaces a call, of the shape and order of its result; None: it stays.

    Args:
        call: of an operator.
        bound: what a variable is bound to, or None.
        builder: of the function.
    """
    from tvm import relax

    name, emit = str(getattr(call.op, "name", "")).removeprefix("relax."), builder.emit

    def last(tensor: Any) -> Any | None:
        """The tensor with its channels last, if there is one or it is a constant."""
        if _is_constant(tensor):
            fits = _rank(tensor) in (0, 4)
            if not fits:
                return None
            return emit(relax.op.permute_dims(tensor, LAST)) if _rank(tensor) else tensor
        value: Any = bound(tensor) if isinstance(tensor, relax.Var) else None
        return value.args[0] if _permutes(value, FIRST) else None

    def first(tensor: Any) -> Any:
        return relax.op.permute_dims(emit(tensor), FIRST)

    if name == "nn.conv2d":
        data = last(call.args[0])
        if data is None:
            data = emit(relax.op.permute_dims(call.args[0], LAST))
        return first(_convolution(call, data, builder))
    tensors = [each for each in call.args if _rank(each) is not None]
    if all(map(_is_constant, tensors)):
        return None
    operands = [last(each) for each in tensors]
    if any(each is None for each in operands):
        return None
    if name in _BINARY:
        return first(getattr(relax.op, name)(*operands))
    if name in _UNARY:
        return first(relax.Call(call.op, [*operands, *call.args[1:]], call.attrs))
    if name in _POOLING:
        return first(_pooling(call, operands[0]))
    if name == "nn.pad":
        return None if (padded := _padding(call, operands[0], builder)) is None else first(padded)
    if name == "mean":
        return _mean(call, operands[0], first)
    if name == "reshape" and shape_of(operands[0])[1:3] == [1, 1]:
        return relax.op.reshape(operands[0], call.args[1])
    if name == "permute_dims" and _permutes(call, LAST):
        return operands[0]
    return None


def _convolution(call: Any, data: Any, builder: Any) -> Any:
    """A convolution of data whose channels are last; a padding is an operator before it."""
    from tvm import relax

    attributes = call.attrs
    up, left, down, right = (int(each) for each in attributes.padding)
    if up or left or down or right:
        data = builder.emit(padded(data, [0, 0, up, down, left, right, 0, 0], 0.0, builder))
    weights = builder.emit(relax.op.permute_dims(call.args[1], (2, 3, 1, 0)))
    return relax.op.nn.conv2d(
        data,
        weights,
        strides=[int(each) for each in attributes.strides],
        padding=[0, 0, 0, 0],
        dilation=[int(each) for each in attributes.dilation],
        groups=int(attributes.groups),
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_dtype=str(call.ty.dtype),
    )


def _pooling(call: Any, data: Any) -> Any:
    from tvm import relax

    attributes = call.attrs
    pool = getattr(relax.op.nn, str(call.op.name).rpartition(".")[2])
    return pool(
        data,
        pool_size=[int(each) for each in attributes.pool_size],
        strides=[int(each) for each in attributes.strides],
        padding=[int(each) for each in attributes.padding],
        dilation=[int(each) for each in attributes.dilation],
        ceil_mode=bool(attributes.ceil_mode),
        count_include_pad=bool(attributes.count_include_pad),
        layout="NHWC",
    )


def _padding(call: Any, data: Any, builder: Any) -> Any | None:
    """A padding with a constant; None for another."""
    attributes = call.attrs
    if str(attributes.pad_mode) != "constant":
        return None
    width = [int(each) for each in attributes.pad_width]
    moved = [width[2 * axis + side] for axis in LAST for side in (0, 1)]
    if not any(moved):
        return data
    return padded(data, moved, float(attributes.pad_value), builder)


def _mean(call: Any, data: Any, first: Callable[[Any], Any]) -> Any | None:
    """A mean over height and width; None over other axes."""
    from tvm import relax

    if call.attrs.axis is None or {int(each) % 4 for each in call.attrs.axis} != {2, 3}:
        return None
    keepdims = bool(call.attrs.keepdims)
    mean = relax.op.mean(data, axis=[1, 2], keepdims=keepdims)
    return first(mean) if keepdims else mean


def _is_usual(call: Any) -> bool:
    """Whether a convolution is NCHW, of such types, of constant weights and constant extents."""
    attributes = call.attrs
    layouts = (str(attributes.data_layout), str(attributes.kernel_layout))
    return (
        layouts == ("NCHW", "OIHW")
        and _is_constant(call.args[1])
        and tuple(str(each.ty.dtype) for each in (*call.args, call)) in _TYPES
        and None not in shape_of(call.args[0])
    )


def work_of(convolution: Any) -> int:
    """The multiply-adds of a convolution."""
    return _elements(convolution) * math.prod(
        each or 1 for each in shape_of(convolution.args[1])[1:]
    )


def calls(module: Any, operator: str) -> list[Any]:
    """Main's calls of an operator."""
    from tvm import relax

    found: list[Any] = []

    def look(expression: Any) -> None:
        if getattr(getattr(expression, "op", None), "name", None) == operator:
            found.append(expression)

    relax.analysis.post_order_visit(module["main"], look)
    return found


def _is_constant(expression: Any) -> bool:
    import tvm

    return isinstance(expression, tvm.ir.GenericConst)


def _rank(expression: Any) -> int | None:
    """How many axes a tensor has; None for anything else."""
    from tvm import relax

    kind = getattr(expression, "ty", None)
    return int(kind.ndim) if isinstance(kind, relax.TensorType) else None


def shape_of(tensor: Any) -> list[int | None]:
    """A tensor's extents, None for an open one; of anything else nothing."""
    shape = getattr(getattr(tensor, "ty", None), "shape", None)
    extents = [getattr(each, "value", None) for each in shape or ()]
    return [None if each is None else int(each) for each in extents]


def _elements(tensor: Any) -> int:
    return math.prod(each or 1 for each in shape_of(tensor))


def _permutes(expression: Any, axes: tuple[int, ...]) -> bool:
    """Whether an expression moves the axes of a tensor so."""
    name = str(getattr(getattr(expression, "op", None), "name", ""))
    if name != "relax.permute_dims" or expression.attrs.axes is None:
        return False
    return tuple(int(each) for each in expression.attrs.axes) == axes
