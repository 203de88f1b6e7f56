"""Lab 7: an operator of your own.

A model uses an operator that neither TVM knows: Mamba-2's gated RMS normalization, registered
with PyTorch in `tvm_practice/labs/gated_layer.py`. It takes the same steps as TVM's own operators:

    compute      a tensor expression in the form of TOPI, TVM's library of operators: tensors in,
                 a tensor out, any rank
    schedule     turns that expression's loops into loops for a processor
    convert      the function that an import from PyTorch calls for the operator: one per engine

There are two ways to hand work to a library:

    call_packed  a function outside TVM, called by its name, computes a tensor
    offload      patterns find parts of a graph, and your own backend makes a module of each;
                 TVM calls this BYOC, bring your own codegen

The pieces:

    te.rsqrt(x), te.const(0.1, X.dtype)     1 / sqrt(x); a constant of that type
    schedule.get(loop).extent               the extent of a loop
    schedule.rfactor(loop, factor_axis=0)   makes one sum per iteration of a sum's loop, and returns
                                            their block; the old block then adds them up.
                                            factor_axis: their axis in the new buffer
    importer.env[node]                      the Relax variable x of a node; x.ty is its type, with
                                            x.ty.shape
    importer.block_builder                  add_func(function, "name") adds a function,
                                            emit(relax.call_tir(added, [x], out_ty=x.ty)) a call
    func.without_attr("global_symbol")      func without an attribute; with_attr adds one
    tvm.relay.op.op.register(name, "Text."), tvm.relay.op.op.get(name); beside them
        register_pattern(name, OpPattern.OPAQUE), register_strategy(name, strategy)
        operator.set_num_inputs(3), and after it operator.add_type_rel(name, relation)
        @tvm.target.override_native_generic_func("name") of a strategy, each with another name; it
        fills an OpStrategy() by add_implementation(compute, schedule, name="name")
        float(attrs["eps"])                 an attribute of a call, as a Python number
    relay.Call(operator, arguments, tvm.ir.make_node("DictAttrs", eps=0.1))
    tvm_ffi.register_global_func(name, function, override=True)
                                            makes a Python function known to TVM by a name
    te.extern(shape, [A, B], lambda ins, outs: tvm.tirx.call_packed(name, *ins, *outs), name="C")
    from tvm.relax.dpl import is_const, is_op, wildcard
        is_op("relax.add")(wildcard(), is_const())
                                            a pattern: the sum of anything and a constant, in either
                                            order
    relax.transform.FuseOpsByPattern([(name, pattern)], bind_constants=…, annotate_codegen=…)
                                            makes a function of each match; of several patterns the
                                            first that matches is taken. Constants stay inside the
                                            function (bind_constants=True) or become its arguments;
                                            annotate_codegen=True marks it for RunCodegen
    relax.transform.RunCodegen()            replaces the marked functions

The worked examples are `gate`, the first half of the operator, with `schedule_gate`;
`schedule_classic`, the operator's schedule in classic TVM; and `convert_as_expression`, a converter
that leaves the schedule to TVM. Write the functions below them, then run

    python -m tvm_practice.labs.custom_operator
    pytest -m lab7
"""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.course.phase import phase_command

LANES = 16  # elements of a vector


def gate(X: Any, Z: Any) -> Any:
    """Worked example: H = X · silu(Z), element by element, in TOPI's form.

    Args:
        X: a te.Tensor of any rank.
        Z: a te.Tensor of the same shape.

    Returns:
        The te.Tensor H, of that shape.
    """
    from tvm import te

    # `*i` takes any number of indices.
    return te.compute(X.shape, lambda *i: X[i] * Z[i] * te.sigmoid(Z[i]), name="H")


def schedule_gate(func: Any, *, lanes: int) -> Any:
    """Worked example: `gate` for a processor: rows in parallel, columns in vectors.

    Args:
        func: the PrimFunc of X, Z and H that te.create_prim_func makes from `gate`.
        lanes: elements in a vector register.

    Returns:
        The tvm.s_tir.Schedule.
    """
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    *rows, column = schedule.get_loops(schedule.get_sblock("H"))
    schedule.parallel(schedule.fuse(*rows))
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    return schedule


def schedule_classic(outputs: Sequence[Any]) -> Any:
    """Worked example: `rms_norm_gate` in classic TVM, in the form of TOPI's schedule functions.

    Args:
        outputs: the tensor Y of `rms_norm_gate`, in a sequence: an operator may have several.

    Returns:
        The te.Schedule: rows run in parallel; H and the sum of a row are computed just before its
        Y.
    """
    from tvm import te

    (Y,) = outputs
    schedule = te.create_schedule(Y.op)
    stages = {each.op.name: each for each in Y.op.input_tensors}
    H, S = stages["H"], stages["S"]
    *rows, column = Y.op.axis
    row = schedule[Y].fuse(*rows)
    schedule[Y].parallel(row)
    schedule[Y].vectorize(schedule[Y].split(column, factor=LANES)[1])
    (reduced,) = S.op.reduce_axis
    lane = schedule[S].split(reduced, factor=LANES)[1]
    partial = schedule.rfactor(S, lane, factor_axis=len(rows))
    (outer,) = partial.op.reduce_axis
    schedule[partial].reorder(outer, partial.op.axis[-1])
    schedule[partial].vectorize(partial.op.axis[-1])
    schedule[H].vectorize(schedule[H].split(H.op.axis[-1], factor=LANES)[1])
    for stage in (S, partial, H):
        schedule[stage].compute_at(schedule[Y], row)
    return schedule


def convert_as_expression(compute: Callable[..., Any]) -> dict[str, Any]:
    """Worked example: a converter that puts a tensor expression into the graph.

    TVM then treats it as its own: fused with its neighbours, scheduled by a rule or a tuner.

    Args:
        compute: `rms_norm_gate`: takes X, Z, W and eps, returns Y.

    Returns:
        {"rms_norm_gate.default": the converter}, for from_exported_program's custom_convert_map.
    """

    def convert(node: Any, importer: Any) -> Any:
        tensors = [importer.env[each] for each in node.args[:3]]
        return importer.block_builder.emit_te(
            compute, *tensors, eps=node.args[3], primfunc_name_hint="rms_norm_gate"
        )

    return {"rms_norm_gate.default": convert}


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
    raise NotImplementedError("declare H, S and Y with te.compute and a lambda of *i")


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
    raise NotImplementedError("fuse and parallelize the rows, rfactor, compute_at, vectorize")


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
    raise NotImplementedError("add the kernel to the module, emit a relax.call_tir of it")


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
    raise NotImplementedError("register, get, set_num_inputs, add_type_rel, register_pattern")


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
    raise NotImplementedError("a strategy that fills an OpStrategy, then register_strategy")


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
    raise NotImplementedError("a function of (inputs, types) that returns a relay.Call")


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
    raise NotImplementedError("register the operator, its type relation and its strategy")


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
    raise NotImplementedError("register a function that calls np.matmul, then te.extern it")


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
    raise NotImplementedError("write the patterns, run FuseOpsByPattern and RunCodegen")


main = phase_command("labs.custom_operator", "Lab 7: an operator of your own.")

if __name__ == "__main__":
    main()
