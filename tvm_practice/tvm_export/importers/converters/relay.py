"""Converters for classic TVM, given to `from_pytorch` as its custom_convert_map.

Each takes the operator's inputs, converted, and their types, as TVM's own converters do. And a
correction of TVM's own conversion.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.refusals import Refused

Converter = Callable[[Sequence[Any], Sequence[str]], Any]


def converters() -> dict[str, Converter]:
    """By operator's name, for `import_relay`."""
    return {
        "aten::linear": linear,
        "aten::diff": diff,
        "aten::roll": roll,
        "aten::gelu": gelu,
        "aten::layer_norm": layer_norm,
        "aten::tril": _triangle(is_lower=True),
        "aten::triu": _triangle(is_lower=False),
        "aten::scaled_dot_product_attention": attention,
    }


def computed_before(data: Any) -> Any:
    """`data`, not fused with the operator that a converter makes of it.

    What a converter names several times is repeated as often if it is fused: TVM takes minutes
    for a few such operators in a row.
    """
    from tvm import relay

    return data if isinstance(data, relay.Constant) else relay.annotation.stop_fusion(data)


def linear(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::linear(input, weight, bias)` for an input of any rank, as one matrix product.

    TVM's own converter turns an input of three dimensions into a batched product whose weight is
    broadcast over the batch, for which there is no fast schedule: two layers of BERT-base take
    seconds. Here the leading dimensions are made one.
    """
    from tvm import relay

    data, weight, bias = inputs[:3]
    *leading, width = shape_of(data)
    is_vector = len(shape_of(weight)) == 1  # the product then has no last dimension
    if is_vector:
        weight = relay.expand_dims(weight, 0)
    rows = data if len(leading) == 1 else relay.reshape(data, (-1, width))
    product = relay.nn.dense(rows, weight)
    if isinstance(bias, relay.Expr):
        product = relay.nn.bias_add(product, bias) if shape_of(bias) else relay.add(product, bias)
    if len(leading) == 1 and not is_vector:
        return product
    return relay.reshape(product, leading if is_vector else (*leading, shape_of(weight)[0]))


def diff(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::diff(input, n, dim, prepend, append)`: differences of neighbours, n times.

    TVM has no converter. GPT-2's attention mask is made with it.
    """
    from tvm import relay

    data, times, axis = inputs[0], int(inputs[1]), int(inputs[2])
    parts = [inputs[3], data, inputs[4]]
    data = relay.concatenate([each for each in parts if each is not None], axis)
    axis %= len(shape_of(data))
    for _ in range(times):
        length = shape_of(data)[axis]
        later = relay.take(data, relay.const(range(1, length), "int64"), axis=axis)
        earlier = relay.take(data, relay.const(range(length - 1), "int64"), axis=axis)
        data = relay.not_equal(later, earlier) if types[0] == "bool" else later - earlier
    return data


def roll(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::roll(input, shifts, dims)`; without dims of all elements in a row.

    TVM's own converter reads outside the input where a shift exceeds its extent.
    """
    from tvm import relay

    data, shifts, axes = inputs[0], inputs[1], list(inputs[2])
    shape = shape_of(data)
    if not axes:
        data, axes = relay.reshape(data, (-1,)), [0]
    for shift, axis in zip(shifts, axes, strict=True):
        extent = shape_of(data)[axis]
        places = [(place - int(shift)) % extent for place in range(extent)]
        data = relay.take(data, relay.const(places, "int64"), axis=axis)
    return relay.reshape(data, shape)


def gelu(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::gelu(input, approximate)`. TVM's own converter drops the second argument."""
    from tvm import relay

    data, dtype = inputs[0], types[0]
    half, one = relay.const(0.5, dtype), relay.const(1.0, dtype)
    if inputs[1] == "tanh":
        cubed = data * data * data * relay.const(0.044715, dtype)
        within = relay.tanh((data + cubed) * relay.const(math.sqrt(2 / math.pi), dtype))
    else:
        within = relay.erf(data * relay.const(math.sqrt(0.5), dtype))
    return data * half * (one + within)


def layer_norm(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::layer_norm(input, normalized_shape, weight, bias, eps)`.

    TVM's own converter refuses more than one axis.
    """
    import numpy as np
    from tvm import relay

    (data, shape, weight, bias), eps, dtype = inputs[:4], float(inputs[4]), types[0]
    whole, count = shape_of(data), math.prod(shape)
    scale, shift = (
        relay.const(np.full(count, value), dtype) if each is None else relay.reshape(each, (count,))
        for each, value in ((weight, 1), (bias, 0))
    )
    rows = data if len(shape) == 1 else relay.reshape(data, (*whole[: -len(shape)], count))
    found = relay.nn.layer_norm(rows, scale, shift, axis=-1, epsilon=eps)
    return found if len(shape) == 1 else relay.reshape(found, whole)


def _triangle(*, is_lower: bool) -> Converter:
    """`aten::tril(input, diagonal)` or `aten::triu`; TVM cannot compile its own in some places."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        import numpy as np
        from tvm import relay

        data, diagonal = inputs[0], int(inputs[1])
        rows, columns = shape_of(data)[-2:]
        kept = np.tri(rows, columns, diagonal - (not is_lower), dtype="bool")
        kept = kept if is_lower else ~kept
        return relay.where(relay.const(kept), data, relay.const(0, types[0]))

    return converted


def attention(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::scaled_dot_product_attention` of (…, rows, width), with leading axes that broadcast.

    TVM's own converter drops the scale. A row without an element that the mask lets through is 0.
    Raises Refused with dropout.
    """
    import numpy as np
    from tvm import relay

    query, key, value, mask, dropout, is_causal, scale, shares_heads = inputs
    if dropout:
        raise Refused("scaled_dot_product_attention with dropout")
    if shares_heads:
        heads = shape_of(query)[-3]
        key, value = (
            relay.repeat(each, heads // shape_of(each)[-3], len(shape_of(each)) - 3)
            for each in (key, value)
        )
    leading = np.broadcast_shapes(*(shape_of(each)[:-2] for each in (query, key, value)))
    query, key, value = (_matrices(each, leading) for each in (query, key, value))
    (_, rows, width), columns, dtype = shape_of(query), shape_of(key)[1], types[0]
    scale = 1 / math.sqrt(width) if scale is None else scale
    scores = relay.nn.batch_matmul(query * relay.const(scale, dtype), key)
    scores = relay.reshape(scores, (*leading, rows, columns))
    never = relay.const(-math.inf, dtype)
    if is_causal:
        scores = relay.where(relay.const(np.tri(rows, columns, dtype="bool")), scores, never)
    elif mask is not None:
        scores = relay.where(mask, scores, never) if types[3] == "bool" else scores + mask
    weights = relay.nn.softmax(scores, -1)
    if mask is not None:
        is_empty = relay.all(relay.equal(scores, never), -1, keepdims=True)
        weights = relay.where(is_empty, relay.const(0.0, dtype), weights)
    weights = _matrices(weights, leading)
    found = relay.nn.batch_matmul(weights, value, transpose_b=False)
    return relay.reshape(found, (*leading, rows, shape_of(value)[-1]))


def _matrices(data: Any, leading: Sequence[int]) -> Any:
    """A tensor broadcast to these leading axes, which are made one."""
    from tvm import relay

    shape = shape_of(data)
    if shape[:-2] != tuple(leading):
        data = relay.broadcast_to(data, (*leading, *shape[-2:]))
    return relay.reshape(data, (math.prod(leading), *shape[-2:]))


def one_parameter_per_name(module: Any) -> Any:
    """A Relay module whose main has each parameter once.

    `from_pytorch` makes an input anew, with the same name, for each operator that takes it in a
    list; the executor would set one of them and leave the others unwritten.
    """
    import tvm
    from tvm import relay

    main = module["main"]
    first: dict[str, Any] = {}
    for each in main.params:
        first.setdefault(each.name_hint, each)
    again = {
        each: kept for each in main.params if not (kept := first[each.name_hint]).same_as(each)
    }
    if not again:
        return module
    changed = tvm.IRModule(module.functions, module.type_definitions)
    changed["main"] = relay.Function(list(first.values()), relay.bind(main.body, again))
    return changed


def sums_as_products(module: Any) -> Any:
    """A Relay module with 2 * x in place of x + x.

    relay.build would do so itself, but its SimplifyExpr fails on the expression of x.
    """
    import tvm
    from tvm import relay
    from tvm.relay import dataflow_pattern as pattern

    class Doubled(pattern.DFPatternCallback):  # type: ignore[misc]  # TVM has no types
        def __init__(self) -> None:
            super().__init__(require_type=True)
            self.x = pattern.wildcard()
            self.pattern = pattern.is_op("add")(self.x, self.x)

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            dtype = pre.checked_type.dtype
            if dtype == "bool":
                return post
            return node_map[self.x][0] * relay.const(2, dtype)

    changed = tvm.IRModule(module.functions, module.type_definitions)
    changed["main"] = pattern.rewrite(Doubled(), module["main"], module)
    return changed


def without_empty_results(module: Any) -> Any:
    """A Relay module with zeros in place of calls whose result has no elements.

    There is nothing to compute, and TVM's concatenation writes beyond such a result.
    """
    import tvm
    from tvm import relay
    from tvm.relay import ExprMutator

    def is_empty(expression: Any) -> bool:
        kind = expression.checked_type
        return isinstance(kind, relay.TensorType) and any(
            isinstance(each, tvm.tir.IntImm) and int(each) == 0 for each in kind.shape
        )

    class Emptied(ExprMutator):  # type: ignore[misc]  # TVM has no types
        def visit_call(self, call: Any) -> Any:
            if is_empty(call):
                return relay.zeros(call.checked_type.shape, call.checked_type.dtype)
            return super().visit_call(call)

        def visit_tuple_getitem(self, item: Any) -> Any:
            if is_empty(item):
                return relay.zeros(item.checked_type.shape, item.checked_type.dtype)
            return super().visit_tuple_getitem(item)

    typed = relay.transform.InferType()(module)
    found: list[Any] = []

    def look(node: Any) -> None:
        if isinstance(node, (relay.Call, relay.TupleGetItem)) and is_empty(node):
            found.append(node)

    relay.analysis.post_order_visit(typed["main"], look)
    if not found:
        return module
    changed = tvm.IRModule(typed.functions, typed.type_definitions)
    changed["main"] = Emptied().visit(typed["main"])
    return changed


def shape_of(expression: Any) -> tuple[int, ...]:
    """The extents of an expression's result."""
    from tvm.relay.frontend.common import infer_shape

    shape: tuple[int, ...] = infer_shape(expression)
    return shape
