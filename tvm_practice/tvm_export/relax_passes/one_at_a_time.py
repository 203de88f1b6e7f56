"""Batches computed one example after the other, where all at once would not stay in the caches.

A convolutional network of small layers, such as MobileNetV2, computes little with each number that
it writes. With eight images its tensors are larger than the last cache, and every layer waits for
memory; with one they stay in the cache from one layer to the next.

    count = apart(module)                  # 1: all at once
    module = of_one(module)                # a model of one example, optimized like any other
    module = in_turns(optimized, count)    # its main takes the batch again

A model is taken apart only where every operator is known to compute each example on its own.
"""

import math
from collections.abc import Collection
from typing import Any

from tvm_practice.tvm_export.relax_passes.channels_last import calls, shape_of, work_of
from tvm_practice.tvm_export.relax_passes.requantization import operator_name

# Multiply-adds for each number written, as counted below, under which layers wait for memory:
# MobileNetV2 has 11. ResNet-50 has 109 and ResNet-18 has 220: they gain little or nothing.
_FEW = 35
# Bytes of a tensor between two layers, of the batch, from which it does not stay in a cache.
_LARGE = 1 << 24
_ELEMENTWISE = {
    *("abs", "add", "clip", "divide", "erf", "exp", "log", "maximum", "minimum", "multiply"),
    *("negative", "nn.gelu", "nn.gelu_tanh", "nn.leakyrelu", "nn.relu", "nn.silu", "power"),
    *("round", "rsqrt", "sigmoid", "sqrt", "subtract", "tanh"),
}
_OF_IMAGES = {"nn.adaptive_avg_pool2d", "nn.avg_pool2d", "nn.conv2d", "nn.max_pool2d"}


def batch_of(module: Any) -> int:
    """How many examples the one input of a model has, if its first axis counts them; else 1."""
    shapes = [shape_of(each) for each in module["main"].params]
    if len(shapes) != 1 or not shapes[0] or None in shapes[0] or len(module.functions) > 1:
        return 1
    return shapes[0][0] or 1


def apart(module: Any) -> int:
    """How many examples a model is to compute one after the other; 1: all at once.

    Args:
        module: as imported, the weights constants of its graph, and normalizations taken apart.
    """
    from tvm import relax

    count = batch_of(module)
    values = [each.value for block in module["main"].body.blocks for each in block.bindings]
    tensors = [shape_of(each) for each in values if isinstance(each, relax.Call)]
    convolutions = calls(module, "relax.nn.conv2d")
    if count < 2 or not convolutions or any(None in each for each in tensors):
        return 1
    products = sum(map(work_of, convolutions))
    written = [math.prod(e or 1 for e in each) for each in tensors if each[:1] == [count]]
    if products >= _FEW * sum(written) or 4 * max(written) < _LARGE:
        return 1
    return count if of_one(module) is not None else 1


def of_one(module: Any) -> Any | None:
    """A module like this one of which every example is computed alone; None where that is unsure.

    Args:
        module: as `apart` takes it.
    """
    from tvm import relax

    main = module["main"]
    [given] = main.params
    bindings = [each for block in main.body.blocks for each in block.bindings]
    batches = _batches(given, bindings)
    if batches is None or main.body.body not in batches:
        return None
    builder = relax.BlockBuilder()
    one = relax.Var(str(given.name), relax.TensorType([1, *shape_of(given)[1:]], given.ty.dtype))
    known: dict[Any, Any] = {given: one}
    with builder.function("main", [one]):
        with builder.dataflow():
            for each in bindings:
                made = known.get(each.value, each.value)
                if isinstance(made, relax.Call):
                    made = builder.emit(_called(made, known))
                known[each.var] = made
            result = builder.emit_output(known[main.body.body])
        builder.emit_func_output(result)
    expected = ([1, *shape_of(each)[1:]] for each in batches)
    alike = all(shape_of(known[e]) == shape for e, shape in zip(batches, expected, strict=True))
    return builder.get() if alike else None


def _batches(given: Any, bindings: list[Any]) -> set[Any] | None:
    """The variables that hold the batch; None where examples are not known to be kept apart."""
    import tvm
    from tvm import relax

    found: set[Any] = {given}
    others: set[Any] = set()
    for binding in bindings:
        value = binding.value
        if value in found:
            found.add(binding.var)
        elif value in others or isinstance(value, tvm.ir.GenericConst):
            others.add(binding.var)
        elif not isinstance(value, relax.Call):
            return None
        elif not any(each in found for each in _operands(value)):
            others.add(binding.var)
        elif not _keeps_apart(value, found):
            return None
        else:
            found.add(binding.var)
    return found


def in_turns(module: Any, count: int) -> Any:
    """A module that computes `count` examples one after the other, and joins the results.

    Args:
        module: of one example, of fused functions; it is left as it was.
        count: how many.
    """
    import tvm
    from tvm import relax, topi
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Renaming(PyExprMutator):  # type: ignore[misc]
        def __init__(self, known: dict[Any, Any]):
            super().__init__()
            self.known = known

        def visit_var_(self, var: Any) -> Any:
            return self.known.get(var, var)

        visit_dataflow_var_ = visit_var_

    main = module["main"]
    [given] = main.params
    functions = {name: each for name, each in module.functions_items() if name.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(functions))
    dtype = str(given.ty.dtype)
    batch = relax.Var(str(given.name), relax.TensorType([count, *shape_of(given)[1:]], dtype))
    bindings = [each for block in main.body.blocks for each in block.bindings]
    with builder.function("main", [batch]):
        with builder.dataflow():
            made = []
            for place in range(count):
                taken = builder.call_te(_example, batch, place, primfunc_name_hint="example")
                renaming = Renaming({given: builder.emit(taken)})
                for each in bindings:
                    renaming.known[each.var] = builder.emit(renaming.visit_expr(each.value))
                made.append(renaming.known[main.body.body])
            joined = builder.call_te(topi.concatenate, made, axis=0)
            result = builder.emit_output(joined)
        builder.emit_func_output(result)
    return builder.get()


def _example(batch: Any, place: int) -> Any:
    """One example of a batch, as a tensor expression."""
    from tvm import topi

    return topi.strided_slice(batch, [place], [place + 1], [1], axes=[0])


def _called(call: Any, known: dict[Any, Any]) -> Any:
    """A call whose operands are those in `known`, and whose shapes are of one example."""
    from tvm import relax

    def of(value: Any) -> Any:
        if isinstance(value, relax.Tuple):
            return relax.Tuple([of(each) for each in value.fields])
        return known.get(value, value)

    given = [of(each) for each in call.args]
    first = given[0] if given else None
    if isinstance(given[-1], relax.ShapeExpr) and first is not None and shape_of(first)[:1] == [1]:
        given[-1] = relax.ShapeExpr([1, *shape_of(call)[1:]])
    return relax.Call(call.op, given, call.attrs, call.ty_args)


def _keeps_apart(call: Any, examples: Collection[Any]) -> bool:
    """Whether an operator on a batch does the same with each example; of others it is not known."""
    name, shape, attributes = operator_name(call), shape_of(call), call.attrs
    operands = _operands(call)
    batches = [each in examples for each in operands]
    first = shape_of(operands[0])
    if name in _ELEMENTWISE or name == "concat":
        whole = [each for each, is_batch in zip(operands, batches, strict=True) if is_batch]
        beside = [each for each, is_batch in zip(operands, batches, strict=True) if not is_batch]
        if name == "concat" and (beside or int(attributes.axis) % len(shape) == 0):
            return False
        return all(len(shape_of(each)) == len(shape) for each in whole) and all(
            len(shape_of(each)) < len(shape) or shape_of(each)[0] == 1 for each in beside
        )
    if not batches[0] or any(batches[1:]):
        return False
    if name in _OF_IMAGES:
        layout = attributes.data_layout if name == "nn.conv2d" else attributes.layout
        return str(layout).startswith("N")
    if name in ("mean", "sum", "max"):
        axes = attributes.axis
        return axes is not None and all(int(each) % len(first) for each in axes)
    if name == "permute_dims":
        return attributes.axes is not None and int(attributes.axes[0]) == 0
    if name == "reshape":
        return bool(first[0] == shape[0])
    if name == "matmul":
        return len(shape_of(operands[1])) == 2 and len(first) >= 2
    if name == "nn.softmax":
        return int(attributes.axis) % len(shape) > 0
    if name == "nn.pad":
        return not any(map(int, attributes.pad_width[:2]))
    return False


def _operands(call: Any) -> list[Any]:
    """The tensors that a call reads."""
    from tvm import relax

    found = []
    for each in call.args:
        fields = each.fields if isinstance(each, relax.Tuple) else [each]
        found += [field for field in fields if isinstance(field.ty, relax.TensorType)]
    return found
