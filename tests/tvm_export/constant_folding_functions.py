"""Constants folded by numpy and by TVM, called in a process of the current engine."""

from typing import Any

import numpy as np


def folded(model: str) -> dict[str, Any]:
    """A model's constant operators, folded: what is left, and what differs from TVM's.

    Args:
        model: "layer", "moves", "beyond", or "made", which numpy folds; or "rest", which it cannot.

    Returns {"operators": of the folded model, in their order, "same": whether its constants are
    TVM's, bit for bit, "constants": how many there are, "values": of them}.
    """
    import tvm
    from tvm import relax

    from tvm_practice.tvm_export.constant_folding import folded_constants, known_constants

    after = [relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination()]
    makers = {"layer": _module, "moves": _moves, "beyond": _beyond, "made": _made, "rest": _rest}
    module, fold = makers[model](), folded_constants if model == "rest" else known_constants
    own = tvm.ir.transform.Sequential([fold(), *after])(module)
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
    values = [each.tolist() for each in one]
    return {"operators": calls, "same": same, "constants": len(one), "values": values}


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


def _rest() -> Any:
    """Functions and sums of constants, one after the other, and a product with an input."""
    from tvm import relax

    random = np.random.default_rng(2)
    builder, op = relax.BlockBuilder(), relax.op
    x = relax.Var("x", relax.TensorType((5, 48), "float32"))
    rates = relax.const(random.normal(size=(48, 16)).astype("float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            emit = builder.emit
            decay = emit(op.negative(emit(op.exp(rates))))
            chances = emit(op.nn.softmax(emit(op.erf(decay)), axis=-1))
            halves = emit(op.split(emit(op.astype(chances, "float16")), 2, axis=1))
            means = emit(op.mean(emit(op.multiply(decay, chances)), axis=[0]))
            spread = emit(op.full((48, 200), relax.const(0.5), "float32"))
            product = emit(op.matmul(emit(op.exp(x)), emit(op.tanh(spread))))
            half = emit(op.cos(emit(relax.TupleGetItem(halves, 1))))
            found = builder.emit_output(relax.Tuple([product, decay, chances, means, half]))
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


def _moves() -> Any:
    """Slices, rows and joins of constants of several types, added to an input."""
    from tvm import relax

    random = np.random.default_rng(1)
    builder, op = relax.BlockBuilder(), relax.op
    x = relax.Var("x", relax.TensorType((2, 6, 3), "float32"))
    number = {
        kind: relax.const(random.integers(-9, 9, (4, 6, 3)).astype(kind), kind)
        for kind in ("float32", "int64", "float16")
    }
    at = relax.const([3, 0], "int64")
    with builder.function("main", [x]):
        with builder.dataflow():
            emit = builder.emit
            rows = [emit(op.take(each, at, axis=0)) for each in number.values()]
            parts = [
                emit(op.strided_slice(each, [2, 0], [-2, 0], [9, 4], [1, 2]))
                for each in number.values()
            ]
            joined = [emit(op.concat([each, each], axis=2)) for each in parts]
            stacked = [emit(op.stack([each, each], axis=1)) for each in rows]
            places = number["int64"]
            late = emit(op.less(places, relax.const(2, "int64")))
            both = emit(op.logical_and(late, emit(op.not_equal(places, relax.const(-1, "int64")))))
            shifted_index = relax.const(random.integers(0, 3, (4, 6, 5)), "int64")
            shifted = emit(op.where(both, emit(op.add(places, relax.const(6, "int64"))), places))
            joined += [emit(op.bitwise_xor(late, both)), shifted, emit(op.astype(both, "float32"))]
            joined.append(emit(op.broadcast_to(relax.const([[1], [2]], "int32"), (3, 2, 4))))
            joined.append(emit(op.gather_elements(shifted, shifted_index, axis=-1)))
            joined.append(emit(op.negative(emit(op.multiply(shifted, shifted)))))
            total = emit(op.add(x, rows[0]))
            found = builder.emit_output(relax.Tuple([total, *joined, *stacked, *rows]))
        builder.emit_func_output(found)
    return builder.get()


def _beyond() -> Any:
    """An index beyond the end, whose result TVM alone knows."""
    from tvm import relax

    builder = relax.BlockBuilder()
    numbers, at = relax.const(np.arange(6.0, dtype="float32")), relax.const([9, 0], "int64")
    with builder.function("main", []):
        with builder.dataflow():
            taken = builder.emit(relax.op.take(numbers, at, axis=0, mode="clip"))
            found = builder.emit_output(taken)
        builder.emit_func_output(found)
    return builder.get()


def _made() -> Any:
    """Numbers in a row, and one number many times."""
    from tvm import relax

    builder, op = relax.BlockBuilder(), relax.op
    with builder.function("main", []):
        with builder.dataflow():
            counted = builder.emit(op.arange(2, 11, 3, dtype="int64"))
            narrow = builder.emit(op.astype(counted, "int32"))
            filled = builder.emit(op.full((2, 3), relax.const(-7, "int64")))
            found = builder.emit_output(relax.Tuple([narrow, filled]))
        builder.emit_func_output(found)
    return builder.get()
