"""Reference answers of lab 7."""

from collections.abc import Callable, Sequence
from typing import Any


def rms_norm_gate(X: Any, Z: Any, W: Any, *, eps: float) -> Any:
    """Declare Y = W · H / sqrt(mean of H² over a row + eps), with H = X · silu(Z).

    In TOPI's form, so that a converter can give it whatever tensors a model has: a row is the
    last dimension, and there may be any number of others before it, one at least. Three stages:
    "H" as in `gate`; "S", the sum of H² over each row, without the last dimension; and "Y".

    Args:
        X: a te.Tensor (…, columns), float32.
        Z: one of the same shape.
        W: a te.Tensor (columns,): the weight of each column.
        eps: added to the mean, so that a row of zeros is not divided by zero.

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
    """Schedule `rms_norm_gate` for a processor: a row at a time, in the cache of one core.

    - All dimensions before the last are fused to one loop over rows, in parallel; H, S and Y are
      computed inside it, so that a row of H is still in the cache when Y reads it.
    - The last dimension of H and of Y is split by `lanes` and vectorized.
    - A sum over a row cannot be vectorized: every step needs the one before. `rfactor` makes
      `lanes` sums of it, side by side in a vector register, and S then adds those up. The loop
      over the lanes is the innermost one, vectorized: compute_at makes the loops anew, in the
      order of the block's iterators, and has to be followed by a reorder.
    - What sets a sum to zero is a statement of its own before the loop that adds:
      decompose_reduction, last, for both sums.

    Args:
        func: the PrimFunc of X, Z, W and Y that te.create_prim_func makes of `rms_norm_gate`.
        lanes: elements in a vector register; they divide the columns.

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
    # With one lane, or all of a row in one vector, a loop of one iteration would be dropped.
    single = lanes in (1, columns)
    for block in (S, partial, H):
        schedule.compute_at(block, row, preserve_unit_loops=single)
    schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], [None, lanes])[1])
    lane, rounds = schedule.get_loops(partial)[-2:]
    schedule.reorder(rounds, lane)
    schedule.vectorize(lane)
    schedule.decompose_reduction(partial, rounds)
    schedule.decompose_reduction(S, schedule.get_loops(S)[1])
    return schedule


def convert_relax(kernel: Callable[[tuple[int, ...], float], Any]) -> dict[str, Any]:
    """Current TVM: a converter, as from_exported_program takes it in custom_convert_map.

    A converter is called with the torch.fx.Node of the call and the importer. `importer.env`
    holds the Relax variable of every node converted so far; `importer.block_builder` adds
    functions to the module and calls to its main.

    The kernel has its schedule already. Two attributes of the PrimFunc are to say so:
    "op_pattern" 8 (opaque) keeps FuseOps from merging it with its neighbours, and
    "tirx.is_scheduled" keeps rules for default schedules away. A third has to go: a Schedule
    leaves its function the "global_symbol" main, which the model's own main has.

    Args:
        kernel: takes the shape of x and eps, returns a scheduled PrimFunc of x, z, weight and
            the result, as a Schedule has it.

    Returns:
        {"rms_norm_gate.default": the converter}: the operator's name in an exported program.
        The operator's arguments (x, z, weight, eps) are in the node's `args`.
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


def convert_relay(
    name: str, compute: Callable[..., Any], schedule: Callable[[Sequence[Any]], Any]
) -> dict[str, Any]:
    """Classic TVM: register a Relay operator, and give a converter for custom_convert_map.

    A Relay operator is a name in a registry with attributes: three inputs; a type relation, a
    function of the inputs' types and the call's attributes that returns the result's type; the
    pattern OPAQUE, so that it is not fused with its neighbours; and a strategy, which gives
    relay.build a compute function and a schedule function. The call carries eps in its attributes,
    a "DictAttrs".

    Args:
        name: of the Relay operator, "practice.rms_norm_gate" say. A process can register a name
            once only.
        compute: `rms_norm_gate`: takes X, Z, W and eps, returns Y.
        schedule: takes the output tensors in a sequence, returns their te.Schedule.

    Returns:
        {"tvm_practice::rms_norm_gate": the converter}: the operator's name in a trace. The
        converter takes [x, z, weight, eps] and their types, and returns a relay.Call.
    """
    import tvm
    from tvm import relay
    from tvm.relay.op import op as registry

    registry.register(name, "Gated RMS normalization.")
    operator = registry.get(name)
    operator.set_num_inputs(3)
    operator.add_type_rel(name, lambda types, attrs: types[0])
    registry.register_pattern(name, registry.OpPattern.OPAQUE)

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

    def convert(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        *tensors, eps = inputs
        return relay.Call(operator, tensors, tvm.ir.make_node("DictAttrs", eps=float(eps)))

    return {"tvm_practice::rms_norm_gate": convert}


def extern_matmul(A: Any, B: Any, name: str) -> Any:
    """Declare C = A · B, computed by numpy where the kernel runs.

    A function (a, b, c) is registered with TVM under `name` (replacing what has that name): it
    writes the product of a and b to c, with no copy of any of them. Compiled code gives it bare
    DLTensors, on which numpy.from_dlpack crashes; `view` of tvm_practice.labs.blas_backend makes
    an array on the memory of one.

    Args:
        A: a te.Tensor (rows, inner), float32.
        B: a te.Tensor (inner, columns).
        name: of the function, in TVM's registry of global functions.

    Returns:
        The te.Tensor C (rows, columns), of te.extern.
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
    """Give every linear layer of a Relax module to a backend.

    A linear layer is a relax.matmul with a constant right operand, and the relax.add of a
    constant to its result if there is one. A product of two activations is none.
    Its patterns are called f"{backend}.linear" and f"{backend}.linear_bias".

    FuseOpsByPattern makes a function of each match, and constants arguments of it; RunCodegen
    gives the functions to the global function f"relax.ext.{backend}" and puts calls of what that
    returns in their place.

    Args:
        mod: an IRModule as imported and folded, its operators not lowered yet; left as it was.
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
