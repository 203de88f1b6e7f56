"""Converters for classic TVM, given to `from_pytorch` as its custom_convert_map.

Each takes the operator's inputs, converted, and their types, as TVM's own converters do. And a
correction of TVM's own conversion.
"""

from collections.abc import Callable, Sequence
from typing import Any

Converter = Callable[[Sequence[Any], Sequence[str]], Any]


def converters() -> dict[str, Converter]:
    """By operator's name, for `import_relay`."""
    return {"aten::linear": linear, "aten::diff": diff, "aten::roll": roll}


def linear(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::linear(input, weight, bias)` for an input of any rank, as one matrix product.

    TVM's own converter turns an input of three dimensions into a batched product whose weight is
    broadcast over the batch, for which there is no fast schedule: two layers of BERT-base take
    seconds. Here the leading dimensions are made one.
    """
    from tvm import relay

    data, weight, bias = inputs[:3]
    *leading, width = _shape(data)
    is_vector = len(_shape(weight)) == 1  # the product then has no last dimension
    if is_vector:
        weight = relay.expand_dims(weight, 0)
    rows = data if len(leading) == 1 else relay.reshape(data, (-1, width))
    product = relay.nn.dense(rows, weight)
    if isinstance(bias, relay.Expr):
        product = relay.nn.bias_add(product, bias) if _shape(bias) else relay.add(product, bias)
    if len(leading) == 1 and not is_vector:
        return product
    return relay.reshape(product, leading if is_vector else (*leading, _shape(weight)[0]))


def diff(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::diff(input, n, dim, prepend, append)`: differences of neighbours, n times.

    TVM has no converter. GPT-2's attention mask is made with it.
    """
    from tvm import relay

    data, times, axis = inputs[0], int(inputs[1]), int(inputs[2])
    parts = [inputs[3], data, inputs[4]]
    data = relay.concatenate([each for each in parts if each is not None], axis)
    axis %= len(_shape(data))
    for _ in range(times):
        length = _shape(data)[axis]
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
    shape = _shape(data)
    if not axes:
        data, axes = relay.reshape(data, (-1,)), [0]
    for shift, axis in zip(shifts, axes, strict=True):
        extent = _shape(data)[axis]
        places = [(place - int(shift)) % extent for place in range(extent)]
        data = relay.take(data, relay.const(places, "int64"), axis=axis)
    return relay.reshape(data, shape)


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


def _shape(expression: Any) -> tuple[int, ...]:
    from tvm.relay.frontend.common import infer_shape

    shape: tuple[int, ...] = infer_shape(expression)
    return shape
