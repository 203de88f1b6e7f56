"""Constants folded by numpy and by TVM, called in a process of the current engine."""

from typing import Any

import numpy as np


def folded() -> dict[str, Any]:
    """A model's constant operators, folded by numpy: what is left, and what differs from TVM's.

    Returns {"operators": of the folded model, in their order, "same": whether its constants are
    TVM's, bit for bit, "constants": how many there are}.
    """
    import tvm
    from tvm import relax

    from tvm_practice.tvm_export.constant_folding import known_constants

    after = [relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination()]
    module = _module()
    own = tvm.ir.transform.Sequential([known_constants(), *after])(module)
    theirs = tvm.ir.transform.Sequential([relax.transform.FoldConstant(), *after])(module)
    one, other = _constants(own), _constants(theirs)
    calls: list[str] = []
    relax.analysis.post_order_visit(
        own["main"],
        lambda each: calls.append(str(each.op.name)) if isinstance(each, relax.Call) else None,
    )
    same = len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(one, other, strict=False)
    )
    return {"operators": calls, "same": same, "constants": len(one)}


def _module() -> Any:
    """A batch normalization of a layer's weights, their transpose, and what is no constant."""
    from tvm import relax
    from tvm.tirx import FloatImm

    random = np.random.default_rng(0)

    def constant(*shape: int) -> Any:
        return relax.const(random.uniform(0.1, 2, size=shape).astype("float32"))

    builder, op = relax.BlockBuilder(), relax.op
    x = relax.Var("x", relax.TensorType((5, 48), "float32"))
    weight, scale, variance = constant(33, 48), constant(33), constant(33)
    with builder.function("main", [x]):
        with builder.dataflow():
            emit = builder.emit
            spread = emit(op.add(emit(op.multiply(variance, variance)), FloatImm("float32", 1e-5)))
            deviation = emit(op.sqrt(spread))
            factor = emit(op.expand_dims(emit(op.divide(scale, deviation)), [1]))
            scaled = emit(op.multiply(weight, factor))
            product = emit(op.matmul(x, emit(op.permute_dims(scaled))))
            less = emit(op.reshape(emit(op.subtract(scale, deviation)), (1, 33)))
            found = builder.emit_output(op.add(product, emit(op.negative(less))))
        builder.emit_func_output(found)
    return builder.get()


def _constants(module: Any) -> list[np.ndarray]:
    import tvm
    from tvm import relax

    found: list[np.ndarray] = []

    def look(each: Any) -> None:
        if isinstance(each, tvm.ir.GenericConst):
            found.append(each.value.numpy())

    relax.analysis.post_order_visit(module["main"], look)
    return found
