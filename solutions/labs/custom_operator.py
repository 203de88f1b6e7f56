"""Reference answers of lab 7."""

from collections.abc import Callable, Sequence
from typing import Any


def rms_norm_gate(X: Any, Z: Any, W: Any, *, eps: float) -> Any:
    """Declare Y = W · H / sqrt(mean of H² over a row + eps), with H = X · silu(Z).

    Use TOPI's form, so that a converter can pass any tensors of a model: a row is the last
    dimension, and there may be any number of others before it, at least one. There are three
    stages: "H" as in `gate`; "S", the sum of H² over each row, without the last dimension; and
    "Y".

    Args:
        X: a te.Tensor (…, columns), float32.
        Z: a te.Tensor of the same shape.
        W: a te.Tensor (columns,): the weight of each column.
        eps: added to the mean as it is, even if 0. Above 0, it saves a row of zeros from a division
            by zero.

    Returns:
        The te.Tensor Y (…, columns).
    """
    from tvm import te

    columns = int(X.shape[-1])
    H = te.compute(X.shape, lambda *i: X[i] * Z[i] * te.sigmoid(Z[i]), name="H")
    c = te.reduce_axis((0, columns), name="c")
    S = te.compute(X.shape[:-1], lambda *i: te.sum(H[(*i, c)] * H[(*i, c)], axis=c), name="S")
    return te.compute(
        X.shape,
        lambda *i: W[i[-1]] * H[i] * te.rsqrt(S[i[:-1]] / columns + te.const(eps, X.dtype)),
        name="Y",
    )


def schedule_rms_norm_gate(func: Any, *, lanes: int) -> Any:
    """Schedule `rms_norm_gate` for a processor: row by row, in the cache of one core.

    - All dimensions before the last are fused into one loop over rows, in parallel; H, S and Y are
      computed inside it, so that a row of H is still in the cache when Y reads it.
    - The last dimension of H and of Y is split by `lanes` and vectorized.
    - A sum over a row cannot be vectorized: every step needs the one before. `rfactor` splits it
      into `lanes` sums, side by side in a vector register: sum s takes the elements s, s + lanes, …
      of the row. S adds them up in a serial loop. The loop over the lanes is innermost and
      vectorized. compute_at makes new loops in the order of the block's iterators, the indices of
      its statement, of which rfactor's is the first: reorder the loops after it. It drops loops of
      one iteration unless preserve_unit_loops=True.
    - A separate statement before the adding loop sets each sum to zero: decompose_reduction, last,
      for both sums.

    Args:
        func: the PrimFunc of X, Z, W and Y that te.create_prim_func makes from `rms_norm_gate`.
        lanes: elements in a vector register; they divide the columns. A row may be one vector, and
            a vector one element.

    Returns:
        The tvm.s_tir.Schedule.
    """
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    H, S, Y = (schedule.get_sblock(name) for name in "HSY")
    *rows, column = schedule.get_loops(Y)
    columns = int(schedule.get(column).extent)
    row = schedule.fuse(*rows)
    schedule.parallel(row)
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]
    partial = schedule.rfactor(lane, factor_axis=len(rows))
    # TVM would drop a loop of one iteration: with one lane, or a whole row in one vector.
    single = lanes in (1, columns)
    for block in (S, partial, H):
        schedule.compute_at(block, row, preserve_unit_loops=single)
    schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], [None, lanes])[1])
    _, lane, *_, rounds = schedule.get_loops(partial)  # loops of one iteration may be between
    schedule.reorder(rounds, lane)
    schedule.vectorize(lane)
    schedule.decompose_reduction(partial, rounds)
    schedule.decompose_reduction(S, schedule.get_loops(S)[1])
    return schedule


def convert_relax(kernel: Callable[[tuple[int, ...], float], Any]) -> dict[str, Any]:
    """Current TVM: a converter for from_exported_program's custom_convert_map.

    A converter takes the torch.fx.Node of the call and the importer. `importer.env` holds the
    Relax variable of every node converted so far; `importer.block_builder` adds functions to the
    module and calls to its main.

    The kernel is already scheduled. Say so with two attributes of the PrimFunc: "op_pattern" 8
    (opaque) keeps FuseOps from merging it with its neighbours, and "tirx.is_scheduled" True keeps
    rules for default schedules away. Remove a third: the kernel has the "global_symbol" main, a
    name that belongs to the model's own main.

    Args:
        kernel: takes the shape of x, a tuple of int, and eps; returns a scheduled PrimFunc of x, z,
            weight and the result, as a Schedule has it.

    Returns:
        {"rms_norm_gate.default": the converter}: the operator's name in an exported program,
        without its namespace. The call's arguments (x, z, weight, eps) are in the node's `args`.
    """
    from tvm import relax

    def convert(node: Any, importer: Any) -> Any:
        x, z, weight = (importer.env[each] for each in node.args[:3])
        func = kernel(tuple(int(extent) for extent in x.ty.shape), node.args[3])
        func = func.without_attr("global_symbol")
        func = func.with_attr({"op_pattern": 8, "tirx.is_scheduled": True})
        name = importer.block_builder.add_func(func, "rms_norm_gate")
        return importer.block_builder.emit(relax.call_tir(name, [x, z, weight], out_ty=x.ty))

    return {"rms_norm_gate.default": convert}


def register_operator(name: str) -> Any:  # a tvm.ir.Op
    """Classic TVM: put an operator into Relay's registry, with its type and pattern.

    It has three inputs. Its type relation, a function of the inputs' types and the call's
    attributes, gives the result the type of the first input. Its pattern is OPAQUE, so that it is
    not fused with its neighbours.

    Args:
        name: the operator's name, such as "practice.rms_norm_gate". A process can register a
            name only once.

    Returns:
        The operator.
    """
    from tvm.relay.op import op as registry

    registry.register(name, "Gated RMS normalization.")
    operator = registry.get(name)
    operator.set_num_inputs(3)
    operator.add_type_rel(name, lambda types, attrs: types[0])
    registry.register_pattern(name, registry.OpPattern.OPAQUE)
    return operator


def give_strategy(
    name: str, compute: Callable[..., Any], schedule: Callable[[Sequence[Any]], Any]
) -> None:
    """Classic TVM: register how relay.build makes loops of a call of an operator.

    A strategy takes (attrs, inputs, out_type, target) and returns an OpStrategy with one
    implementation: a function of (attrs, inputs, out_type) that returns a list of the output
    tensors, and one of (attrs, outputs, target) that returns their schedule. The call's attribute
    "eps" is the number that `compute` is given.

    Args:
        name: the name of an operator of `register_operator`.
        compute: `rms_norm_gate`: takes X, Z, W and eps, returns Y.
        schedule: takes the output tensors in a sequence, returns their te.Schedule.
    """
    import tvm
    from tvm.relay.op import op as registry

    @tvm.target.override_native_generic_func(f"{name}_strategy")  # type: ignore[untyped-decorator]
    def strategy(attrs: Any, inputs: Any, out_type: Any, target: Any) -> Any:
        chosen = registry.OpStrategy()
        chosen.add_implementation(
            lambda attrs, inputs, out_type: [compute(*inputs, eps=float(attrs["eps"]))],
            lambda attrs, outputs, target: schedule(outputs),
            name=f"{name}.cpu",
        )
        return chosen

    registry.register_strategy(name, strategy)


def call_converter(operator: Any) -> dict[str, Any]:
    """Classic TVM: a converter for from_pytorch's custom_convert_map that calls an operator.

    The converter takes [x, z, weight, eps], a list that it leaves as it is, and their types. It
    returns a relay.Call of the operator with x, z and weight as arguments, and eps in the call's
    attributes, a "DictAttrs".

    Args:
        operator: as `register_operator` returns it.

    Returns:
        {"tvm_practice::rms_norm_gate": the converter}: the operator's name in a trace.
    """
    import tvm
    from tvm import relay

    def convert(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        *tensors, eps = inputs
        return relay.Call(operator, tensors, tvm.ir.make_node("DictAttrs", eps=float(eps)))

    return {"tvm_practice::rms_norm_gate": convert}


def convert_relay(
    name: str, compute: Callable[..., Any], schedule: Callable[[Sequence[Any]], Any]
) -> dict[str, Any]:
    """Classic TVM: register a Relay operator, and return a converter for custom_convert_map.

    Call the three steps above, or write it in one piece.

    A Relay operator is a name in a registry, with attributes. This one has three inputs; a type
    relation, a function of the inputs' types and the call's attributes that returns the result's
    type; the pattern OPAQUE, so that it is not fused with its neighbours; and a strategy, which
    gives relay.build a compute function and a schedule function. The call carries eps in its
    attributes, a "DictAttrs".

    Args:
        name: the Relay operator's name, such as "practice.rms_norm_gate". A process can register a
            name only once.
        compute: `rms_norm_gate`: takes X, Z, W and eps, returns Y.
        schedule: takes the output tensors in a sequence, returns their te.Schedule.

    Returns:
        {"tvm_practice::rms_norm_gate": the converter}: the operator's name in a trace. The
        converter takes [x, z, weight, eps], a list that it leaves as it is, and their types,
        and returns a relay.Call.
    """
    operator = register_operator(name)
    give_strategy(name, compute, schedule)
    return call_converter(operator)


def extern_matmul(A: Any, B: Any, name: str) -> Any:
    """Declare C = A · B, computed by numpy where the kernel runs.

    Register a function (a, b, c) with TVM under `name` (replacing any function of that name): it
    writes the product of a and b to c and copies none of the three. Compiled code passes it bare
    DLTensors, on which numpy.from_dlpack crashes; `view` of tvm_practice.labs.blas_backend wraps
    the memory of one in an array.

    Args:
        A: a te.Tensor (rows, inner), float32.
        B: a te.Tensor (inner, columns).
        name: the function's name in TVM's registry of global functions.

    Returns:
        The te.Tensor C (rows, columns), from te.extern.
    """
    import numpy as np
    import tvm
    import tvm_ffi
    from tvm import te

    from tvm_practice.labs.blas_backend import view

    def product(a: Any, b: Any, c: Any) -> None:
        np.matmul(view(a), view(b), out=view(c))

    tvm_ffi.register_global_func(name, product, override=True)
    return te.extern(
        (A.shape[0], B.shape[1]),
        [A, B],
        lambda ins, outs: tvm.tirx.call_packed(name, ins[0], ins[1], outs[0]),
        name="C",
    )


def offload_linear(mod: Any, backend: str) -> Any:
    """Offload every linear layer of a Relax module to a backend.

    A linear layer is a relax.matmul with a constant right operand, plus the relax.add of a
    constant to its result if there is one. A product of two activations is not a linear layer.
    Name the patterns f"{backend}.linear" and f"{backend}.linear_bias".

    FuseOpsByPattern turns each match into a function and its constants into arguments. RunCodegen
    passes the functions to the global function f"relax.ext.{backend}" and replaces them with calls
    of the modules that it returns.

    Args:
        mod: an IRModule as imported and folded, its operators not lowered yet; not changed.
        backend: a name under which a code generator is registered.

    Returns:
        A new IRModule.
    """
    import tvm
    from tvm import relax
    from tvm.relax.dpl import is_const, is_op, wildcard

    product = is_op("relax.matmul")(wildcard(), is_const())
    patterns = [  # the first that matches is taken, so the larger one comes first
        (f"{backend}.linear_bias", is_op("relax.add")(product, is_const())),
        (f"{backend}.linear", product),
    ]
    passes = [
        relax.transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True),
        relax.transform.RunCodegen(),
    ]
    return tvm.ir.transform.Sequential(passes)(mod)
