"""Operators legalized with TVM's own functions and once per kind of call."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def compared() -> dict[str, Any]:
    """A module of many like and nearly like calls, legalized both ways.

    Returns {"same": whether the modules are equal, "names": whether their functions have the same
    names, "calls": of operators, "made": how many loops TVM's own legalizations made for them}.
    """
    import tvm
    import tvm_ffi
    from tvm import relax

    from tvm_practice.tvm_export import legalized_once

    assert legalized_once.legalize_once.cache_info().currsize == 0, "a process of its own"
    module = _module()
    made: list[str] = []
    own: dict[str, Any] = {}
    for name in (f"relax.{each}" for each in legalized_once._OPERATORS):
        usual = _counting(tvm.ir.Op.get(name).get_attr("FLegalize"), name, made)
        own[name] = functools.partial(legalized_once._legalized, usual, {})
    theirs = relax.transform.LegalizeOps()(module)
    once = [relax.transform.LegalizeOps(own)(module) for _ in range(2)]
    names = [sorted(str(each.name_hint) for each, _ in one.functions_items()) for one in once]
    return {
        "same": all(tvm_ffi.structural_equal(theirs, each) for each in once),
        "names": [
            each == sorted(str(name.name_hint) for name, _ in theirs.functions_items())
            for each in names
        ],
        "calls": _count(module),
        "made": len(made),
    }


def _counting(usual: Callable[..., Any], name: str, made: list[str]) -> Callable[..., Any]:
    def counted(builder: Any, call: Any) -> Any:
        made.append(name)
        return usual(builder, call)

    return counted


def _count(module: Any) -> int:
    from tvm import relax

    return sum(
        isinstance(binding.value, relax.Call)
        for block in module["main"].body.blocks
        for binding in block.bindings
    )


def _module() -> Any:
    """Each kind of call several times, between calls that differ in one thing alone."""
    from tvm import relax

    builder, op = relax.BlockBuilder(), relax.op
    x = relax.Var("x", relax.TensorType((4, 6), "float32"))
    y = relax.Var("y", relax.TensorType((4, 6), "float32"))
    row = relax.Var("row", relax.TensorType((6,), "float32"))
    one = relax.Var("one", relax.TensorType((1,), "float32"))
    whole = relax.Var("whole", relax.TensorType((4, 6), "int32"))
    at = relax.Var("at", relax.TensorType((3,), "int64"))

    def scalar(value: float, dtype: str = "float32") -> Any:
        return relax.const(np.array(value, dtype))

    weight = relax.const(np.ones((6, 4), "float32"))
    with builder.function("main", [x, y, row, one, whole, at]):
        with builder.dataflow():
            made = []
            for _ in range(3):
                for call in (
                    *(op.multiply(x, x), op.multiply(x, y), op.multiply(y, y)),
                    *(op.add(x, y), op.add(y, x), op.add(x, x), op.add(x, row), op.add(row, x)),
                    *(op.add(whole, whole), op.multiply(x, scalar(0.5)), op.multiply(x, scalar(2))),
                    *(op.add(x, scalar(0.0)), op.add(x, scalar(-0.0)), op.add(scalar(1), x)),
                    *(op.exp(x), op.exp(row), op.astype(x, "int32"), op.astype(x, "float64")),
                    *(op.reshape(x, (6, 4)), op.reshape(x, (24,)), op.permute_dims(x)),
                    *(op.expand_dims(x, 0), op.expand_dims(x, 1), op.expand_dims(x, [0, 1])),
                    *(op.sum(x, 0), op.sum(x, 1), op.sum(x, 1, keepdims=True), op.sum(x)),
                    *(op.reshape(relax.const(np.ones(1, "float32")), ()), op.reshape(one, ())),
                    *(op.take(x, at, 0), op.take(x, at, 1), op.matmul(x, weight)),
                    *(op.matmul(x, op.permute_dims(y)), op.nn.softmax(x, 0), op.nn.softmax(x, 1)),
                    *(op.strided_slice(x, [0], [0], [2]), op.strided_slice(x, [0], [1], [3])),
                    *(op.strided_slice(x, [1], [0], [2]), op.clip(x, 0, 1), op.clip(x, 0, 2)),
                    *(op.where(op.less(x, y), x, y), op.where(op.less(y, x), x, y)),
                    op.nn.layer_norm(x, row, row, axes=-1),
                    op.nn.layer_norm(x, row, row, axes=-1, epsilon=0.5),
                ):
                    made.append(builder.emit(call))
            result = builder.emit_output(relax.Tuple(made))
        builder.emit_func_output(result)
    return builder.get()
