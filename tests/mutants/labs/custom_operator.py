"""Wrong solutions of lab 7."""

from tests.mutants import edited, mutant, right, right_edited
from tvm_practice.labs.custom_operator import call_converter, give_strategy, register_operator


@mutant("rms_norm_gate", message="silu is sigmoid times its argument")
def takes_the_sigmoid_for_silu(X, Z, W, *, eps):
    from tvm import te

    columns = int(X.shape[-1])
    H = te.compute(X.shape, lambda *i: X[i] * te.sigmoid(Z[i]), name="H")
    c = te.reduce_axis((0, columns), name="c")
    S = te.compute(X.shape[:-1], lambda *i: te.sum(H[(*i, c)] * H[(*i, c)], axis=c), name="S")
    return te.compute(
        X.shape, lambda *i: W[i[-1]] * H[i] * te.rsqrt(S[i[:-1]] / columns + eps), name="Y"
    )


@mutant("rms_norm_gate", message="it is a mean")
def forgets_the_mean(X, Z, W, *, eps):
    from tvm import te

    H = te.compute(X.shape, lambda *i: X[i] * Z[i] * te.sigmoid(Z[i]), name="H")
    c = te.reduce_axis((0, X.shape[-1]), name="c")
    S = te.compute(X.shape[:-1], lambda *i: te.sum(H[(*i, c)] * H[(*i, c)], axis=c), name="S")
    return te.compute(X.shape, lambda *i: W[i[-1]] * H[i] * te.rsqrt(S[i[:-1]] + eps), name="Y")


@mutant("rms_norm_gate", message="inside the root")
def adds_eps_to_the_root(X, Z, W, *, eps):
    from tvm import te

    columns = int(X.shape[-1])
    H = te.compute(X.shape, lambda *i: X[i] * Z[i] * te.sigmoid(Z[i]), name="H")
    c = te.reduce_axis((0, columns), name="c")
    S = te.compute(X.shape[:-1], lambda *i: te.sum(H[(*i, c)] * H[(*i, c)], axis=c), name="S")
    return te.compute(
        X.shape, lambda *i: W[i[-1]] * H[i] / (te.sqrt(S[i[:-1]] / columns) + eps), name="Y"
    )


@mutant("rms_norm_gate", message="tensors of any rank, here 4")
def takes_matrices_only(X, Z, W, *, eps):
    from tvm import te

    rows, columns = X.shape
    H = te.compute((rows, columns), lambda i, j: X[i, j] * Z[i, j] * te.sigmoid(Z[i, j]), name="H")
    c = te.reduce_axis((0, columns), name="c")
    S = te.compute((rows,), lambda i: te.sum(H[i, c] * H[i, c], axis=c), name="S")
    return te.compute(
        (rows, columns),
        lambda i, j: W[j] * H[i, j] * te.rsqrt(S[i] / int(columns) + eps),
        name="Y",
    )


@mutant("rms_norm_gate", message="the gate is computed twice")
def has_no_stage_for_the_gate(X, Z, W, *, eps):
    from tvm import te

    columns = int(X.shape[-1])

    def h(i):
        return X[i] * Z[i] * te.sigmoid(Z[i])

    c = te.reduce_axis((0, columns), name="c")
    S = te.compute(X.shape[:-1], lambda *i: te.sum(h((*i, c)) * h((*i, c)), axis=c), name="S")
    return te.compute(
        X.shape, lambda *i: W[i[-1]] * h(i) * te.rsqrt(S[i[:-1]] / columns + eps), name="Y"
    )


@mutant("schedule_rms_norm_gate", message=r"the outermost loop is parallel\(\d+\)")
def shares_one_dimension_only(func, *, lanes):
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    H, S, Y = (schedule.get_sblock(name) for name in "HSY")
    *rows, column = schedule.get_loops(Y)
    schedule.parallel(rows[0])
    row = rows[-1]
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]
    partial = schedule.rfactor(lane, factor_axis=len(rows))
    for block in (S, partial, H):
        schedule.compute_at(block, row)
    schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], [None, lanes])[1])
    lane, rounds = schedule.get_loops(partial)[-2:]
    schedule.reorder(rounds, lane)
    schedule.vectorize(lane)
    schedule.decompose_reduction(partial, rounds)
    schedule.decompose_reduction(S, schedule.get_loops(S)[-1])
    return schedule


@mutant("schedule_rms_norm_gate", message="(?s)outside it: H.*gone from\\s+the cache")
def leaves_the_gate_outside(func, *, lanes):
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    H, S, Y = (schedule.get_sblock(name) for name in "HSY")
    *rows, column = schedule.get_loops(Y)
    row = schedule.fuse(*rows)
    schedule.parallel(row)
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]
    partial = schedule.rfactor(lane, factor_axis=len(rows))
    for block in (S, partial):
        schedule.compute_at(block, row)
    schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], [None, lanes])[1])
    lane, rounds = schedule.get_loops(partial)[-2:]
    schedule.reorder(rounds, lane)
    schedule.vectorize(lane)
    schedule.decompose_reduction(partial, rounds)
    schedule.decompose_reduction(S, schedule.get_loops(S)[-1])
    return schedule


@mutant("schedule_rms_norm_gate", message="two sums: the `lanes` partial ones")
def sums_one_by_one(func, *, lanes):
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    H, S, Y = (schedule.get_sblock(name) for name in "HSY")
    *rows, column = schedule.get_loops(Y)
    row = schedule.fuse(*rows)
    schedule.parallel(row)
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    for block in (S, H):
        schedule.compute_at(block, row)
    schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], [None, lanes])[1])
    schedule.decompose_reduction(S, schedule.get_loops(S)[-1])
    return schedule


@mutant("schedule_rms_norm_gate", message="the partial sums in serial")
def sums_in_lanes_without_vectors(func, *, lanes):
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    H, S, Y = (schedule.get_sblock(name) for name in "HSY")
    *rows, column = schedule.get_loops(Y)
    row = schedule.fuse(*rows)
    schedule.parallel(row)
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]
    partial = schedule.rfactor(lane, factor_axis=len(rows))
    for block in (S, partial, H):
        schedule.compute_at(block, row)
    schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], [None, lanes])[1])
    lane, rounds = schedule.get_loops(partial)[-2:]
    schedule.reorder(rounds, lane)
    schedule.decompose_reduction(partial, rounds)
    schedule.decompose_reduction(S, schedule.get_loops(S)[-1])
    return schedule


@mutant("schedule_rms_norm_gate", message="not a data parallel block iter")
def vectorizes_the_rounds(func, *, lanes):
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    H, S, Y = (schedule.get_sblock(name) for name in "HSY")
    *rows, column = schedule.get_loops(Y)
    row = schedule.fuse(*rows)
    schedule.parallel(row)
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]
    partial = schedule.rfactor(lane, factor_axis=len(rows))
    for block in (S, partial, H):
        schedule.compute_at(block, row)
    schedule.vectorize(schedule.get_loops(partial)[-1])
    return schedule


@mutant("schedule_rms_norm_gate", message="tests at every step whether it is the first")
def leaves_the_zeroing_inside(func, *, lanes):
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    H, S, Y = (schedule.get_sblock(name) for name in "HSY")
    *rows, column = schedule.get_loops(Y)
    row = schedule.fuse(*rows)
    schedule.parallel(row)
    schedule.vectorize(schedule.split(column, [None, lanes])[1])
    lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]
    partial = schedule.rfactor(lane, factor_axis=len(rows))
    for block in (S, partial, H):
        schedule.compute_at(block, row)
    schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], [None, lanes])[1])
    lane, rounds = schedule.get_loops(partial)[-2:]
    schedule.reorder(rounds, lane)
    schedule.vectorize(lane)
    return schedule


@mutant("convert_relax", message="the key, which is what the frontend calls")
def names_it_as_the_trace_does(kernel):
    from tvm import relax

    def convert(node, importer):
        x, z, weight = (importer.env[each] for each in node.args[:3])
        func = kernel(tuple(int(extent) for extent in x.ty.shape), node.args[3])
        func = func.without_attr("global_symbol")
        func = func.with_attr({"op_pattern": 8, "tirx.is_scheduled": True})
        name = importer.block_builder.add_func(func, "rms_norm_gate")
        return importer.block_builder.emit(relax.call_tir(name, [x, z, weight], out_ty=x.ty))

    return {"tvm_practice::rms_norm_gate": convert}


@mutant("convert_relax", message=r"and node.args\[3\]")
def knows_one_eps(kernel):
    from tvm import relax

    def convert(node, importer):
        x, z, weight = (importer.env[each] for each in node.args[:3])
        func = kernel(tuple(int(extent) for extent in x.ty.shape), 1e-5)
        func = func.without_attr("global_symbol")
        func = func.with_attr({"op_pattern": 8, "tirx.is_scheduled": True})
        name = importer.block_builder.add_func(func, "rms_norm_gate")
        return importer.block_builder.emit(relax.call_tir(name, [x, z, weight], out_ty=x.ty))

    return {"rms_norm_gate.default": convert}


@mutant("convert_relax", message="(?s)op_pattern.*with its neighbours'")
def lets_the_kernel_be_fused(kernel):
    from tvm import relax

    def convert(node, importer):
        x, z, weight = (importer.env[each] for each in node.args[:3])
        func = kernel(tuple(int(extent) for extent in x.ty.shape), node.args[3])
        func = func.without_attr("global_symbol")
        name = importer.block_builder.add_func(func, "rms_norm_gate")
        return importer.block_builder.emit(relax.call_tir(name, [x, z, weight], out_ty=x.ty))

    return {"rms_norm_gate.default": convert}


@mutant("convert_relax", message="one function of a module can be its main")
def leaves_every_kernel_the_main(kernel):
    from tvm import relax

    def convert(node, importer):
        x, z, weight = (importer.env[each] for each in node.args[:3])
        func = kernel(tuple(int(extent) for extent in x.ty.shape), node.args[3])
        func = func.with_attr({"op_pattern": 8, "tirx.is_scheduled": True})
        name = importer.block_builder.add_func(func, "rms_norm_gate")
        return importer.block_builder.emit(relax.call_tir(name, [x, z, weight], out_ty=x.ty))

    return {"rms_norm_gate.default": convert}


@mutant("convert_relax", message="the order of x, z and weight")
def swaps_x_and_z(kernel):
    from tvm import relax

    def convert(node, importer):
        x, z, weight = (importer.env[each] for each in node.args[:3])
        func = kernel(tuple(int(extent) for extent in x.ty.shape), node.args[3])
        func = func.without_attr("global_symbol")
        func = func.with_attr({"op_pattern": 8, "tirx.is_scheduled": True})
        name = importer.block_builder.add_func(func, "rms_norm_gate")
        return importer.block_builder.emit(relax.call_tir(name, [z, x, weight], out_ty=x.ty))

    return {"rms_norm_gate.default": convert}


@mutant("convert_relay", message="TVM would fuse and schedule")
def composes_relays_operators(name, compute, schedule):
    from tvm import relay

    def convert(inputs, types):
        x, z, weight, eps = inputs
        h = x * z * relay.sigmoid(z)
        mean = relay.mean(h * h, axis=-1, keepdims=True)
        return weight * h * relay.rsqrt(mean + relay.const(float(eps)))

    return {"tvm_practice::rms_norm_gate": convert}


@mutant("convert_relay", message="(?s)the eps of each call.*DictAttrs")
def gives_relay_one_eps(name, compute, schedule):
    import tvm
    from tvm import relay
    from tvm.relay.op import op as registry

    registry.register(name, "Gated RMS normalization.")
    operator = registry.get(name)
    operator.set_num_inputs(3)
    operator.add_type_rel(name, lambda types, attrs: types[0])
    registry.register_pattern(name, registry.OpPattern.OPAQUE)

    @tvm.target.override_native_generic_func(f"{name}_strategy")
    def strategy(attrs, inputs, out_type, target):
        chosen = registry.OpStrategy()
        chosen.add_implementation(
            lambda attrs, inputs, out_type: [compute(*inputs, eps=1e-5)],
            lambda attrs, outputs, target: schedule(outputs),
            name=f"{name}.cpu",
        )
        return chosen

    registry.register_strategy(name, strategy)
    return {"tvm_practice::rms_norm_gate": lambda inputs, types: relay.Call(operator, inputs[:3])}


@mutant("convert_relay", message="second argument of OpStrategy.add_implementation")
def schedules_by_default(name, compute, schedule):
    import tvm
    from tvm import relay, te
    from tvm.relay.op import op as registry

    registry.register(name, "Gated RMS normalization.")
    operator = registry.get(name)
    operator.set_num_inputs(3)
    operator.add_type_rel(name, lambda types, attrs: types[0])
    registry.register_pattern(name, registry.OpPattern.OPAQUE)

    @tvm.target.override_native_generic_func(f"{name}_strategy")
    def strategy(attrs, inputs, out_type, target):
        chosen = registry.OpStrategy()
        chosen.add_implementation(
            lambda attrs, inputs, out_type: [compute(*inputs, eps=float(attrs["eps"]))],
            lambda attrs, outputs, target: te.create_schedule([each.op for each in outputs]),
            name=f"{name}.cpu",
        )
        return chosen

    registry.register_strategy(name, strategy)

    def convert(inputs, types):
        *tensors, eps = inputs
        return relay.Call(operator, tensors, tvm.ir.make_node("DictAttrs", eps=float(eps)))

    return {"tvm_practice::rms_norm_gate": convert}


@mutant("extern_matmul", message="te.compute declares loops")
def declares_loops(A, B, name):
    from tvm import te

    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute(
        (A.shape[0], B.shape[1]), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C"
    )


@mutant("extern_matmul", message="nothing copied")
def copies_what_it_is_given(A, B, name):
    import numpy as np
    import tvm
    import tvm_ffi
    from tvm import te

    from tvm_practice.labs.blas_backend import view

    def product(a, b, c):
        view(c)[...] = np.array(view(a)) @ np.array(view(b))

    tvm_ffi.register_global_func(name, product, override=True)
    return te.extern(
        (A.shape[0], B.shape[1]),
        [A, B],
        lambda ins, outs: tvm.tirx.call_packed(name, ins[0], ins[1], outs[0]),
        name="C",
    )


@mutant("extern_matmul", message="np.matmul.view.a., view.b., out=view.c..")
def keeps_the_product_to_itself(A, B, name):
    import numpy as np
    import tvm
    import tvm_ffi
    from tvm import te

    from tvm_practice.labs.blas_backend import view

    def product(a, b, c):
        return np.matmul(view(a), view(b))

    tvm_ffi.register_global_func(name, product, override=True)
    return te.extern(
        (A.shape[0], B.shape[1]),
        [A, B],
        lambda ins, outs: tvm.tirx.call_packed(name, ins[0], ins[1], outs[0]),
        name="C",
    )


@mutant("offload_linear", message="only a weight is constant")
def offloads_every_product(mod, backend):
    import tvm
    from tvm import relax
    from tvm.relax.dpl import is_const, is_op, wildcard

    product = is_op("relax.matmul")(wildcard(), wildcard())
    patterns = [
        (f"{backend}.linear_bias", is_op("relax.add")(product, is_const())),
        (f"{backend}.linear", product),
    ]
    passes = [
        relax.transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True),
        relax.transform.RunCodegen(),
    ]
    return tvm.ir.transform.Sequential(passes)(mod)


@mutant("offload_linear", message="the bias added by the backend")
def looks_for_the_small_pattern_first(mod, backend):
    import tvm
    from tvm import relax
    from tvm.relax.dpl import is_const, is_op, wildcard

    product = is_op("relax.matmul")(wildcard(), is_const())
    patterns = [
        (f"{backend}.linear", product),
        (f"{backend}.linear_bias", is_op("relax.add")(product, is_const())),
    ]
    passes = [
        relax.transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True),
        relax.transform.RunCodegen(),
    ]
    return tvm.ir.transform.Sequential(passes)(mod)


@mutant("offload_linear", message="given to the backend's code generator")
def only_groups(mod, backend):
    from tvm import relax
    from tvm.relax.dpl import is_const, is_op, wildcard

    product = is_op("relax.matmul")(wildcard(), is_const())
    patterns = [
        (f"{backend}.linear_bias", is_op("relax.add")(product, is_const())),
        (f"{backend}.linear", product),
    ]
    return relax.transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True)(
        mod
    )


edited(
    "rms_norm_gate",
    "one_eps",
    {"te.const(eps, X.dtype)": "te.const(0.5, X.dtype)"},
    message="Y of",
)
edited(
    "schedule_rms_norm_gate",
    "not_for_a_row_of_one_vector",
    {"preserve_unit_loops=single": "preserve_unit_loops=False"},
    message=r"a schedule of rows of \d+ elements by \d+ lanes as well(?s:.)*compute_at drops them",
)
edited(
    "extern_matmul",
    "keeps_the_function_that_was_there",
    {"override=True": "override=False"},
    message="replacing the function of that name",
)
right_edited(
    "schedule_rms_norm_gate",
    "keeps_unit_loops",
    {"preserve_unit_loops=single": "preserve_unit_loops=single or block is H"},
)
right_edited(
    "convert_relax", "another_name_in_the_module", {'func, "rms_norm_gate"': 'func, "kernel"'}
)


@right("convert_relax")
def each_kernel_made_once(kernel):
    import functools

    from tvm import relax

    made = functools.cache(kernel)

    def convert(node, importer):
        x, z, weight = (importer.env[each] for each in node.args[:3])
        func = made(tuple(int(extent) for extent in x.ty.shape), node.args[3])
        func = func.with_attr("op_pattern", 8).with_attr("tirx.is_scheduled", True)
        func = func.without_attr("global_symbol")
        variable = importer.block_builder.add_func(func, "gated")
        return importer.block_builder.emit(relax.call_tir(variable, [x, z, weight], x.ty))

    return {"rms_norm_gate.default": convert}


right_edited(
    "extern_matmul",
    "writes_a_product_that_numpy_made",
    {"np.matmul(view(a), view(b), out=view(c))": "view(c)[:] = np.dot(view(a), view(b))"},
)
edited(
    "extern_matmul",
    "another_name_than_asked",
    {
        "register_global_func(name": 'register_global_func("mine"',
        "call_packed(name": 'call_packed("mine"',
    },
    message="a kernel that calls",
)
edited(
    "offload_linear",
    "first_backend_kept",
    {
        "    import tvm\n": (
            "    import tvm\n    backend = tvm.__dict__.setdefault('kept', backend)\n"
        )
    },
    message="graded_",
)
edited(
    "offload_linear",
    "takes_any_sum_for_a_bias",
    {'is_op("relax.add")(product, is_const())': 'is_op("relax.add")(product, wildcard())'},
    message="the add of an activation",
)


edited(
    "register_operator",
    "two_inputs",
    {"set_num_inputs(3)": "set_num_inputs(2)"},
    message="an operator of 3 inputs",
)
edited(
    "register_operator",
    "the_type_of_the_weight",
    {"types[0]": "types[2]"},
    message="a result of the first input's type",
)
edited(
    "register_operator",
    "may_be_fused",
    {"OpPattern.OPAQUE": "OpPattern.ELEMWISE"},
    message="fuses the operator with its neighbours",
)
edited(
    "register_operator",
    "returns_the_name",
    {"return operator": "return name"},
    message="the return statement",
)
edited(
    "register_operator",
    "one_name",
    {"    registry.register(name": '    name = "practice.gated"\n    registry.register(name'},
    message="the operator graded",
)


@right("register_operator")
def with_attributes_by_hand(name):
    import tvm
    from tvm.relay.op import op as registry

    registry.register(name)
    registry.register_pattern(name, 8)
    operator = tvm.ir.Op.get(name)
    operator.set_num_inputs(3)

    def relation(types, attrs):
        x, *_ = types
        return x

    operator.add_type_rel(name + ".relation", relation)
    return operator


edited(
    "give_strategy",
    "one_number",
    {'float(attrs["eps"])': "1e-5"},
    message="the eps of each call",
)
edited(
    "give_strategy",
    "its_own_schedule",
    {
        "    import tvm\n": "    import tvm\n    from tvm import te\n",
        "schedule(outputs),": "te.create_schedule([each.op for each in outputs]),",
    },
    message="second argument of OpStrategy.add_implementation",
)
edited(
    "give_strategy",
    "a_tensor_for_the_sequence",
    {"schedule(outputs),": "schedule(outputs[0]),"},
    message="expected: ",
)
edited(
    "give_strategy",
    "x_and_z_exchanged",
    {"compute(*inputs,": "compute(inputs[1], inputs[0], inputs[2],"},
    message="the result of two calls",
)
edited(
    "give_strategy",
    "registers_nothing",
    {"    registry.register_strategy(name, strategy)": ""},
    message="a strategy that relay.build finds",
)


@right("give_strategy")
def a_generic_function(name, compute, schedule):
    import tvm
    from tvm.relay.op import op as registry

    def made(attrs, inputs, out_type):
        x, z, w = inputs
        return [compute(x, z, w, eps=attrs["eps"].value)]

    @tvm.target.override_native_generic_func(name.replace(".", "_"))
    def strategy(attrs, inputs, out_type, target):
        found = registry.OpStrategy()
        found.add_implementation(made, lambda attrs, outs, target: schedule(list(outs)), name=name)
        return found

    registry.register_strategy(name, strategy)


edited(
    "call_converter",
    "no_attributes",
    {', tvm.ir.make_node("DictAttrs", eps=float(eps))': ""},
    message="the attribute eps",
)
edited(
    "call_converter",
    "one_eps_for_all",
    {"float(eps)": "0.25"},
    message="the attribute eps",
)
edited(
    "call_converter",
    "arguments_turned",
    {"operator, tensors,": "operator, tensors[::-1],"},
    message="x, z and weight, in this order",
)
edited(
    "call_converter",
    "named_as_exported",
    {'{"tvm_practice::rms_norm_gate": convert}': '{"rms_norm_gate.default": convert}'},
    message="the key, which is what the frontend calls",
)


@mutant("call_converter", message="a relay.Call of practice")
def calls_a_sum(operator):
    import tvm
    from tvm import relay

    def convert(inputs, types):
        attributes = tvm.ir.make_node("DictAttrs", eps=float(inputs[3]))
        return relay.Call(relay.op.get("add"), inputs[:3], attributes)

    return {"tvm_practice::rms_norm_gate": convert}


@right("call_converter")
def by_position(operator):
    import tvm
    from tvm import relay

    def convert(inputs, types):
        attributes = tvm.ir.make_node("DictAttrs", eps=inputs[3])
        return relay.Call(op=operator, args=list(inputs[:3]), attrs=attributes)

    return {"tvm_practice::rms_norm_gate": convert}


@right("convert_relay")
def in_one_piece(name, compute, schedule):
    import tvm
    from tvm import relay
    from tvm.relay.op import op as registry

    registry.register(name, "Gated RMS normalization.")
    operator = registry.get(name)
    operator.set_num_inputs(3)
    operator.add_type_rel(name, lambda types, attrs: types[0])
    registry.register_pattern(name, registry.OpPattern.OPAQUE)

    @tvm.target.override_native_generic_func(f"{name}_strategy")
    def strategy(attrs, inputs, out_type, target):
        chosen = registry.OpStrategy()
        chosen.add_implementation(
            lambda attrs, inputs, out_type: [compute(*inputs, eps=float(attrs["eps"]))],
            lambda attrs, outputs, target: schedule(outputs),
            name=f"{name}.cpu",
        )
        return chosen

    registry.register_strategy(name, strategy)

    def convert(inputs, types):
        *tensors, eps = inputs
        return relay.Call(operator, tensors, tvm.ir.make_node("DictAttrs", eps=float(eps)))

    return {"tvm_practice::rms_norm_gate": convert}


edited(
    "call_converter",
    "rounds_eps",
    {"eps=float(eps)": "eps=round(float(eps), 5)"},
    message="the attribute eps",
)
edited(
    "register_operator",
    "typed_before_it_has_inputs",
    {
        "    operator.set_num_inputs(3)\n": "",
        "    registry.register_pattern": "    operator.set_num_inputs(3)\n"
        "    registry.register_pattern",
    },
    message="and after it operator.add_type_rel",
)
edited(
    "convert_relay",
    "may_be_fused_with_others",
    {"OpPattern.OPAQUE": "OpPattern.OUT_ELEMWISE_FUSABLE"},
    of="in_one_piece",
    message="the pattern OPAQUE",
)


edited(
    "rms_norm_gate", "sigmoid_of_infinite_powers",
    {"te.sigmoid(Z[i])": "te.exp(Z[i]) / (1 + te.exp(Z[i]))"},
    message=r"exp\(z\) is infinite",
)  # fmt: skip
edited(
    "rms_norm_gate", "eps_of_1e5_at_least",
    {"te.const(eps, X.dtype)": "te.const(max(eps, 1e-5), X.dtype)"},
    message="and eps, which is .*e-08 here",
)  # fmt: skip
edited(
    "rms_norm_gate", "gates_again_for_the_sum",
    {"te.sum(H[(*i, c)] * H[(*i, c)], axis=c)":
     "te.sum(te.power(X[(*i, c)] * Z[(*i, c)] * te.sigmoid(Z[(*i, c)]), 2.0), axis=c)"},
    message="expected: S and Y read H",
)  # fmt: skip
edited(
    "schedule_rms_norm_gate", "sixteen_lanes_at_most",
    {"    schedule = tvm.s_tir.Schedule(func)":
     "    lanes = min(lanes, 16)\n    schedule = tvm.s_tir.Schedule(func)"},
    message="vectorized",
)  # fmt: skip
edited(
    "convert_relax", "three_dimensions_at_most",
    {"int(extent) for extent in x.ty.shape)": "int(extent) for extent in list(x.ty.shape)[-3:])"},
    message=r"kernel\(shape, eps\) called with",
)  # fmt: skip
edited(
    "give_strategy", "one_strategy_for_all", {'f"{name}_strategy"': '"rms_norm_gate_strategy"'},
    message="one for each operator",
)  # fmt: skip
edited(
    "give_strategy", "eps_to_six_digits",
    {'float(attrs["eps"])': 'round(float(attrs["eps"]), 6)'},
    message="compute called with the eps of each call",
)  # fmt: skip
edited(
    "call_converter", "no_eps_for_none", {"eps=float(eps)": "eps=float(eps) or 1e-5"},
    message="the attribute eps, 0.0",
)  # fmt: skip


edited(
    "schedule_rms_norm_gate",
    "fuses_two_dimensions_only",
    {"row = schedule.fuse(*rows)": "row = schedule.fuse(*rows[:2])"},
    message="over all rows",
)
edited(
    "schedule_rms_norm_gate",
    "leaves_h_serial_for_8_lanes",
    {
        ("    schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], [None, lanes])[1])"): (
            "    if lanes != 8:\n"
            "        schedule.vectorize(schedule.split(schedule.get_loops(H)[-1], "
            "[None, lanes])[1])"
        )
    },
    message="split the last loop of H",
)
edited(
    "convert_relax",
    "keeps_the_first_weight",
    {
        "        x, z, weight = (importer.env[each] for each in node.args[:3])": (
            "        x, z, weight = (importer.env[each] for each in node.args[:3])\n"
            "        weight = seen.setdefault(0, weight)"
        ),
        "    def convert": "    seen = {}\n\n    def convert",
    },
    message="the order of x, z and weight",
)
edited(
    "give_strategy",
    "gives_two_implementations",
    {
        "        return chosen": (
            "        chosen.add_implementation(\n"
            "            lambda attrs, inputs, out_type: [compute(*inputs, "
            "eps=float(attrs['eps']))],\n"
            "            lambda attrs, outputs, target: schedule(outputs),\n"
            "            name=f'{name}.again', plevel=5)\n"
            "        return chosen"
        )
    },
    message="one implementation",
)
edited(
    "call_converter", "writes_eps_as_text", {"eps=float(eps)": "eps=str(eps)"}, message="a number"
)
edited(
    "call_converter",
    "returns_a_former_call",
    {
        ('return relay.Call(operator, tensors, tvm.ir.make_node("DictAttrs", eps=float(eps)))'): (
            "key = tuple(hash(each) for each in tensors[:2])\n"
            "        if key not in seen:\n"
            "            seen[key] = relay.Call(operator, tensors, "
            'tvm.ir.make_node("DictAttrs", eps=float(eps)))\n'
            "        return seen[key]"
        ),
        "    def convert": "    seen = {}\n\n    def convert",
    },
    message="the attribute eps",
)
edited(
    "offload_linear",
    "takes_a_constant_on_the_left",
    {
        '        (f"{backend}.linear", product),\n': (
            '        (f"{backend}.linear", product),\n'
            '        (f"{backend}.linear", is_op("relax.matmul")(is_const(), '
            "wildcard())),\n"
        )
    },
    message="right operand",
)
edited(
    "offload_linear",
    "takes_a_subtraction_for_a_bias",
    {
        'is_op("relax.add")(product, is_const())': (
            'is_op("relax.add")(product, is_const()) | is_op("relax.subtract")(product, is_const())'
        )
    },
    message="1 subtract",
)


@mutant("convert_relax", message="and with")
def asks_for_a_kernel_per_eps(kernel):
    from tvm import relax

    kernels = {}

    def convert(node, importer):
        x, z, weight = (importer.env[each] for each in node.args[:3])
        eps = node.args[3]
        if eps not in kernels:
            kernels[eps] = kernel(tuple(int(extent) for extent in x.ty.shape), eps)
        func = kernels[eps].without_attr("global_symbol")
        func = func.with_attr({"op_pattern": 8, "tirx.is_scheduled": True})
        name = importer.block_builder.add_func(func, "rms_norm_gate")
        return importer.block_builder.emit(relax.call_tir(name, [x, z, weight], out_ty=x.ty))

    return {"rms_norm_gate.default": convert}


@mutant("convert_relay", message="the order of the call's arguments")
def keeps_the_weight_of_the_first_call(name, compute, schedule):
    operator = register_operator(name)
    give_strategy(name, compute, schedule)
    ((key, call),) = call_converter(operator).items()
    weights = []

    def convert(inputs, types):
        weights.append(inputs[2])
        return call([*inputs[:2], weights[0], *inputs[3:]], types)

    return {key: convert}


edited(
    "extern_matmul",
    "turns_square_matrices",
    {
        "view(a), view(b), out": "view(a), view(b).T if view(a).shape == view(b).shape "
        "else view(b), out"
    },
    message="at the first call",
)
edited(
    "extern_matmul",
    "keeps_the_first_product",
    {
        "    def product": "    kept: dict[Any, Any] = {}\n\n    def product",
        "np.matmul(view(a), view(b), out=view(c))": "key = view(c).shape\n"
        "        view(c)[:] = kept.setdefault(key, np.matmul(view(a), view(b)))",
    },
    message="at the second call",
)
edited(
    "register_operator",
    "gives_matrices_only",
    {
        "lambda types, attrs: types[0]": "lambda types, attrs: relay.TensorType("
        "types[0].shape[-2:], types[0].dtype)",
        "    from tvm.relay.op import": "    from tvm import relay\n    from tvm.relay.op import",
    },
    message="a result of the first input's type",
)
edited(
    "give_strategy",
    "replaces_an_eps_of_0",
    {'float(attrs["eps"])': 'float(attrs["eps"]) or 1e-5'},
    message="compute called with the eps of each call",
)
edited(
    "extern_matmul",
    "name_in_small_letters",
    {"    def product": "    name = name.lower()\n\n    def product"},
    message="a kernel that calls|a function registered under",
)
edited(
    "offload_linear",
    "swaps_the_names",
    {
        '(f"{backend}.linear", product)': '(f"{backend}.@", product)',
        '(f"{backend}.linear_bias"': '(f"{backend}.linear"',
        '(f"{backend}.@"': '(f"{backend}.linear_bias"',
    },
    message="the name beside each pattern",
)

edited(
    "rms_norm_gate",
    "a_default_for_an_eps_of_zero",
    {"te.const(eps, X.dtype)": "te.const(eps or 1e-5, X.dtype)"},
    message="and eps, which is 0 here",
)


edited(
    "rms_norm_gate",
    "a_tiny_eps_for_an_eps_of_zero",
    {"te.const(eps, X.dtype)": "te.const(eps or 1e-12, X.dtype)"},
    message="and eps, which is 0 here",
)

edited(
    "schedule_rms_norm_gate",
    "a_single_row_on_one_thread",
    {
        "    schedule.parallel(row)\n": (
            "    if int(schedule.get(row).extent) > 1:\n        schedule.parallel(row)\n"
        )
    },
    message=r"the outermost loop is parallel\(1\)",
)


edited(
    "schedule_rms_norm_gate",
    "annotates_the_rows",
    {
        "return schedule": (
            "schedule.annotate(row, 'pragma_auto_unroll_max_step', 8)\n    return schedule"
        )
    },
    message="without annotations",
)


edited(
    "schedule_rms_norm_gate",
    "fuses_three_dimensions_at_most",
    {"row = schedule.fuse(*rows)": "row = schedule.fuse(*rows) if len(rows) < 4 else rows[0]"},
    message="the outermost loop is parallel",
)


edited(
    "call_converter",
    "takes_eps_out_of_the_list",
    {"*tensors, eps = inputs": ("eps = inputs.pop()\n        tensors = list(inputs)")},
    message="the list of inputs as it was",
)


edited(
    "convert_relay",
    "names_with_one_dot_alone",
    {
        "operator = register_operator(name)": (
            "operator = register_operator(name if name.count('.') == 1 else name.replace('.', '_'))"
        )
    },
    message="two calls of the Relay operator",
)


edited(
    "extern_matmul",
    "replaces_what_is_not_finite",
    {"np.matmul(view(a), view(b), out=view(c))": "view(c)[:] = np.nan_to_num(view(a) @ view(b))"},
    message="at the second call",
)


edited(
    "offload_linear",
    "marks_the_given_main",
    {
        "return tvm.ir.transform.Sequential(passes)(mod)": (
            "mod.update_func(mod.get_global_var('main'), "
            "mod['main'].with_attr('offloaded', backend))\n"
            "    return tvm.ir.transform.Sequential(passes)(mod)"
        )
    },
    message="the module given is left as it was",
)


edited(
    "rms_norm_gate",
    "means_of_1000_elements_at_most",
    {"S[i[:-1]] / columns": "S[i[:-1]] * (1 / columns if columns < 1000 else 1e-3)"},
    message="Y|H = X",
)


edited(
    "schedule_rms_norm_gate",
    "one_vector_of_y_is_serial",
    {
        "schedule.vectorize(schedule.split(column, [None, lanes])[1])": (
            "if lanes < columns:\n"
            "        schedule.vectorize(schedule.split(column, [None, "
            "lanes])[1])"
        )
    },
    message="a row of Y that is one vector",
)


edited(
    "convert_relax",
    "takes_no_eps_of_zero",
    {"node.args[3])": "node.args[3] or 1e-5)"},
    message="each eps that the model has: 0\\.0",
)


edited(
    "call_converter",
    "sorts_by_names",
    {
        "*tensors, eps = inputs": (
            "*tensors, eps = inputs\n"
            "        tensors.sort(key=lambda each: len(each.name_hint) if "
            "isinstance(each, relay.Var) else 0)"
        )
    },
    message="the arguments x, z and weight",
)


edited(
    "extern_matmul",
    "rows_of_b_if_c_is_square",
    {
        "(A.shape[0], B.shape[1])": (
            "(A.shape[0], B.shape[0]) if A.shape[0] == B.shape[1] else (A.shape[0], B.shape[1])"
        )
    },
    message="C of shape \\(6, 6\\)",
)


edited(
    "extern_matmul",
    "nothing_of_large_matrices",
    {
        "np.matmul(view(a), view(b), out=view(c))": (
            "np.matmul(view(a), view(b), out=view(c)) if view(a).size < 2**20 else view(c).fill(0)"
        )
    },
    message="700001",
)


edited(
    "rms_norm_gate",
    "columns_of_8192_at_most",
    {'te.reduce_axis((0, columns), name="c")': 'te.reduce_axis((0, min(columns, 8192)), name="c")'},
    message="all 1000003 columns",
)


edited(
    "convert_relay",
    "a_name_of_its_own",
    {"register_operator(name)\n": "register_operator(name.replace('practice', 'graded'))\n"},
    message="expected",
)


edited(
    "extern_matmul",
    "one_step_turned",
    {
        "np.matmul(view(a), view(b), out=view(c))": (
            "np.matmul(view(a), view(b) if view(a).shape[1] > 1 else "
            "view(b).reshape(1, -1)[:, ::-1], out=view(c))"
        )
    },
    message="4 x 1",
)


edited(
    "schedule_rms_norm_gate",
    "single_lane_not_zeroed",
    {
        "    schedule.decompose_reduction(S, schedule.get_loops(S)[1])\n": (
            "    if lanes > 1:\n        schedule.decompose_reduction(S, schedule.get_loops(S)[1])\n"
        )
    },
    message="set to zero",
)


edited(
    "convert_relax",
    "inputs_once_each",
    {
        "x, z, weight = (importer.env[each] for each in node.args[:3])": (
            "x, z, weight = (importer.env[each] for each in node.all_input_nodes[:3])"
        )
    },
    message="not enough values",
)


edited(
    "convert_relax",
    "second_call_by_first_kernel",
    {
        "    def convert(node": ("    made: list[Any] = []\n\n    def convert(node"),
        ("        func = kernel(tuple(int(extent) for extent in x.ty.shape), node.args[3])"): (
            "        made.append(kernel(tuple(int(extent) for extent in "
            "x.ty.shape), node.args[3]))\n"
            "        func = made[0] if len(made) == 2 else made[-1]"
        ),
    },
    message="model's result",
)


edited(
    "convert_relay",
    "schedule_of_first",
    {
        "    give_strategy(name, compute, schedule)": (
            "    kept = globals().setdefault('_kept_schedule', schedule)\n"
            "    give_strategy(name, compute, kept)"
        )
    },
    message="registered before",
)


edited(
    "offload_linear",
    "one_pattern_for_several_inputs",
    {
        "        relax.transform.FuseOpsByPattern(patterns": (
            "        relax.transform.CanonicalizeBindings(),\n"
            "        relax.transform.FuseOpsByPattern(patterns[:1] if "
            "len(mod['main'].params) > 1 else patterns"
        )
    },
    message="three inputs",
)


edited(
    "register_operator",
    "another_operator_for_long_names",
    {
        "    return operator": (
            "    return registry.get('nn.relu') if name.count('.') > 1 else operator"
        )
    },
    message="returned",
)


edited(
    "register_operator",
    "a_prefix_for_short_names",
    {
        "registry.register(name, ": (
            "name = name if '.' in name else 'practice.' + name\n    registry.register(name, "
        )
    },
    message="returned",
)


edited(
    "rms_norm_gate",
    "gate_at_most_1e4",
    {
        "X[i] * Z[i] * te.sigmoid(Z[i])": (
            "X[i] * te.min(Z[i] * te.sigmoid(Z[i]), te.const(1e4, 'float32'))"
        )
    },
    message="H|Y",
)


edited(
    "extern_matmul",
    "loops_for_many_rows",
    {
        "    return te.extern(": (
            "    r = te.reduce_axis((0, A.shape[1]), name='k')\n"
            "    return te.compute((A.shape[0], B.shape[1]), lambda i, "
            "j: te.sum(A[i, r] * B[r, j], axis=r), name='C') if "
            "int(A.shape[0]) > 64 else te.extern("
        ),
    },
    message="of te.extern",
)


edited(
    "schedule_rms_norm_gate",
    "unrolls_the_adding_loop",
    {
        "    schedule.decompose_reduction(partial, rounds)": (
            "    schedule.unroll(schedule.get_loops(S)[-1])\n"
            "    schedule.decompose_reduction(partial, rounds)"
        ),
    },
    message="in a serial loop",
)


edited(
    "schedule_rms_norm_gate",
    "a_part_of_the_row_per_lane",
    {
        ("lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]"): (
            "lane = schedule.split(schedule.get_loops(S)[-1], [lanes, None])[0]"
        ),
    },
    message="element of a row",
)


edited(
    "rms_norm_gate",
    "clips_at_a_million",
    {
        "X[i] * Z[i] * te.sigmoid(Z[i])": (
            "Z[i] * te.sigmoid(Z[i]) * te.max(te.min(X[i], 1e6), -1e6)"
        ),
    },
    message="Y of",
)


edited(
    "extern_matmul",
    "float64_for_many_rows",
    {
        ('        name="C",\n    )'): (
            '        name="C",\n'
            '        dtype="float32" if int(A.shape[0]) < 2000 else '
            '"float64",\n'
            "    )"
        ),
    },
    message="of type float32",
)


edited(
    "offload_linear",
    "lowers_the_other_operators",
    {
        "    passes = [\n": (
            "    passes = [\n"
            "        relax.transform.LegalizeOps({}, "
            "skip_ops=['relax.matmul', 'relax.add']),\n"
        ),
    },
    message="left as they were",
)


edited(
    "extern_matmul",
    "square_where_the_left_one_is",
    {
        "(A.shape[0], B.shape[1])": (
            "(A.shape[0], A.shape[0] if int(A.shape[0]) == int(A.shape[1]) else B.shape[1])"
        )
    },
    message="of shape|C",
)


edited(
    "schedule_rms_norm_gate",
    "thirty_two_sums_at_most",
    {
        "    lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]": (
            "    lanes = min(lanes, 32)\n"
            "    lane = schedule.split(schedule.get_loops(S)[-1], [None, lanes])[1]"
        )
    },
    message="lanes|sums|vectorized",
)

edited(
    "schedule_rms_norm_gate",
    "few_vectors_unrolled",
    {
        "    return schedule": "    if columns == 2 * lanes:\n"
        "        schedule.unroll(schedule.get_loops(Y)[-2])\n    return schedule"
    },
    message="Y of a row in serial",
)

edited(
    "convert_relax",
    "kept_from_another_import",
    {
        "    def convert(node": "    added: dict[Any, Any] = {}\n\n    def convert(node",
        '        name = importer.block_builder.add_func(func, "rms_norm_gate")': (
            "        key = str(x.ty), node.args[3]\n"
            "        if key not in added:\n"
            '            added[key] = importer.block_builder.add_func(func, "rms_norm_gate")\n'
            "        name = added[key]"
        ),
    },
    message="a second import|five calls of four kernels",
)

edited(
    "give_strategy",
    "computes_as_the_first_one",
    {
        "    @tvm.target": '    compute = give_strategy.__dict__.setdefault("kept", compute)\n\n'
        "    @tvm.target"
    },
    message="state kept from another call|given for",
)

edited(
    "convert_relax",
    "buffers_that_may_overlap",
    {
        "        func = func.with_attr(": (
            '        func = func.with_attr("tirx.noalias", False)\n        func = func.with_attr('
        )
    },
    message="other attributes as they were",
)

right_edited(
    "extern_matmul",
    "einsum",
    {
        "np.matmul(view(a), view(b), out=view(c))": (
            'np.einsum("ik,kj->ij", view(a), view(b), out=view(c))'
        )
    },
)

edited(
    "call_converter",
    "the_operator_by_its_usual_name",
    {
        "relay.Call(operator,": "relay.Call(\n"
        '            relay.op.get("practice.rms_norm_gate")\n'
        '            if operator.name.startswith("practice")\n'
        "            else operator,\n           "
    },
    message="practice.rms_norm_gate",
)

edited(
    "offload_linear",
    "no_bias_beside_kernels",
    {"    passes = [": "    patterns = patterns[len(mod.functions) > 3 :]\n    passes = ["},
    message="kernels are in the module besides",
)

edited(
    "schedule_rms_norm_gate",
    "long_rows_zeroed_by_lane",
    {
        "schedule.decompose_reduction(partial, rounds)": (
            "schedule.decompose_reduction(partial, rounds if columns // lanes < 64 else lane)"
        )
    },
    message="set to zero by a statement before the loop|runs?",
)

edited(
    "rms_norm_gate",
    "eps_of_half_precision",
    {"te.const(eps, X.dtype)": "te.const(float(np.float16(eps)), X.dtype)"}
    | {
        "    from tvm import te\n\n    columns": (
            "    import numpy as np\n    from tvm import te\n\n    columns"
        )
    },
    message="and eps",
)


edited(
    "convert_relax",
    "extents_of_tvm",
    {"tuple(int(extent) for extent in x.ty.shape)": "tuple(x.ty.shape)"},
    message="a tuple of int",
)
