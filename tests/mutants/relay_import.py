"""Wrong solutions of phase 4."""

from tests.mutants import edited, mutant, right, right_edited


@mutant("import_relay", message="input_0, input_1")
def names_its_inputs_otherwise(model, example, *, converters=None):
    import torch
    from tvm import relay

    inputs = [(f"x{i}", tuple(t.shape)) for i, t in enumerate(example)]
    traced = torch.jit.trace(model, example)
    return relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)


@mutant("import_relay", message="type int64")
def makes_every_input_float32(model, example, *, converters=None):
    import torch
    from tvm import relay

    example = tuple(tensor.float() for tensor in example)
    inputs = [(f"input_{i}", tuple(t.shape)) for i, t in enumerate(example)]
    traced = torch.jit.trace(model, example)
    return relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)


@mutant("import_relay", message="the pair")
def returns_the_module_alone(model, example, *, converters=None):
    import torch
    from tvm import relay

    inputs = [(f"input_{i}", tuple(t.shape)) for i, t in enumerate(example)]
    traced = torch.jit.trace(model, example)
    mod, _ = relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)
    return mod


@mutant("import_relay", message="the rest in params")
def loses_the_weights(model, example, *, converters=None):
    import torch
    from tvm import relay

    inputs = [(f"input_{i}", tuple(t.shape)) for i, t in enumerate(example)]
    traced = torch.jit.trace(model, example)
    mod, _ = relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)
    return mod, {}


@mutant("import_relay", message="stays in eval mode")
def traces_in_training_mode(model, example, *, converters=None):
    import torch
    from tvm import relay

    inputs = [(f"input_{i}", tuple(t.shape)) for i, t in enumerate(example)]
    traced = torch.jit.trace(model.train(), example, check_trace=False)
    return relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)


@mutant("import_relay", message="custom_convert_map")
def ignores_converters(model, example, *, converters=None):
    import torch
    from tvm import relay

    inputs = [(f"input_{i}", tuple(t.shape)) for i, t in enumerate(example)]
    return relay.frontend.from_pytorch(torch.jit.trace(model, example), inputs)


@mutant("optimize_relay", message=r"PassContext\(opt_level=3\)")
def at_the_default_level(mod, params):
    import tvm
    from tvm import relay

    bound = tvm.IRModule(mod.functions, mod.type_definitions)
    bound["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = tvm.transform.Sequential(
        [
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
            relay.transform.FoldConstant(),
        ]
    )
    return passes(bound)


@mutant("optimize_relay", message="bind_params_by_name")
def leaves_the_weights_unbound(mod, params):
    import tvm
    from tvm import relay

    passes = tvm.transform.Sequential(
        [
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
        ]
    )
    with tvm.transform.PassContext(opt_level=3):
        return passes(mod)


@mutant("optimize_relay", message="make a new IRModule first")
def binds_in_place(mod, params):
    import tvm
    from tvm import relay

    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = tvm.transform.Sequential(
        [
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
            relay.transform.FoldConstant(),
        ]
    )
    with tvm.transform.PassContext(opt_level=3):
        return passes(mod)


@mutant("optimize_relay", message="not fused yet")
def fuses_already(mod, params):
    import tvm
    from tvm import relay

    bound = tvm.IRModule(mod.functions, mod.type_definitions)
    bound["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = tvm.transform.Sequential(
        [
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
            relay.transform.FoldConstant(),
            relay.transform.FuseOps(),
        ]
    )
    with tvm.transform.PassContext(opt_level=3):
        return passes(bound)


@mutant("optimize_relay", message="the pass SimplifyInference")
def keeps_the_batch_norm(mod, params):
    import tvm
    from tvm import relay

    bound = tvm.IRModule(mod.functions, mod.type_definitions)
    bound["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = tvm.transform.Sequential(
        [relay.transform.FoldConstant(), relay.transform.FoldScaleAxis()]
    )
    with tvm.transform.PassContext(opt_level=3):
        return passes(bound)


@mutant("optimize_relay", message="constants alone")
def does_not_fold(mod, params):
    import tvm
    from tvm import relay

    bound = tvm.IRModule(mod.functions, mod.type_definitions)
    bound["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    with tvm.transform.PassContext(opt_level=3):
        return relay.transform.SimplifyInference()(relay.transform.InferType()(bound))


@mutant("optimize_relay", message="the weights that were bound")
def binds_zeros(mod, params):
    import numpy as np
    import tvm
    from tvm import relay

    zeros = {name: tvm.nd.array(np.zeros(each.shape, "float32")) for name, each in params.items()}
    bound = tvm.IRModule(mod.functions, mod.type_definitions)
    bound["main"] = relay.build_module.bind_params_by_name(mod["main"], zeros)
    passes = tvm.transform.Sequential(
        [
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
            relay.transform.FoldConstant(),
        ]
    )
    with tvm.transform.PassContext(opt_level=3):
        return passes(bound)


@mutant("build_relay", message="opt_level=3")
def builds_at_the_default_level(mod, params, target):
    from tvm import relay

    return relay.build(mod, target=target, params=params)


@mutant("build_relay", message="must reach the compiler")
def builds_for_any_processor(mod, params, target):
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target="llvm", params=params)


@mutant("build_relay", message="the weights inside the library")
def builds_without_weights(mod, params, target):
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target=target)


@mutant("build_relay", message="the executor asked for")
def builds_for_the_virtual_machine(mod, params, target):
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(opt_level=3):
        return relay.vm.compile(mod, target=target, params=params)


@mutant("import_relax", message="keep_params_as_input")
def keeps_the_weights_as_inputs(model, example, *, converters=None):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    return from_exported_program(
        torch.export.export(model, example),
        keep_params_as_input=True,
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )


@mutant("import_relax", message="unwrap_unit_return_tuple")
def returns_a_tuple_of_one(model, example, *, converters=None):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    return from_exported_program(torch.export.export(model, example), custom_convert_map=converters)


@mutant("import_relax", message="stays in eval mode")
def exports_in_training_mode(model, example, *, converters=None):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    return from_exported_program(
        torch.export.export(model.train(), example),
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )


@mutant("import_relax", message="custom_convert_map")
def forgets_converters(model, example, *, converters=None):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    return from_exported_program(torch.export.export(model, example), unwrap_unit_return_tuple=True)


@mutant("optimize_relax", message="AnnotateTIROpPattern before FuseOps")
def does_not_annotate(mod):
    import tvm
    from tvm import relax

    names = "DecomposeOpsForInference CanonicalizeBindings FoldConstant LegalizeOps FuseOps FuseTIR"
    passes = [getattr(relax.transform, name)() for name in names.split()]
    return tvm.transform.Sequential(passes)(mod)


@mutant("optimize_relax", message="FuseTIR")
def leaves_groups_unmerged(mod):
    import tvm
    from tvm import relax

    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.FoldConstant(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(),
    ]
    return tvm.transform.Sequential(passes)(mod)


@mutant("optimize_relax", message="the pass FoldConstant")
def transposes_the_weight_at_run_time(mod):
    import tvm
    from tvm import relax

    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]
    return tvm.transform.Sequential(passes)(mod)


@mutant("optimize_relax", message="LegalizeOps")
def stops_before_the_loops(mod):
    import tvm
    from tvm import relax

    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.FoldConstant(),
    ]
    return tvm.transform.Sequential(passes)(mod)


edited(
    "optimize_relax",
    "optimizes_inputs_of_each_shape_once",
    {
        "return passes(mod)": (
            'kept = vars(tvm).setdefault("_optimized", {})\n'
            '    shapes = str([each.ty for each in mod["main"].params])\n'
            "    if shapes not in kept:\n"
            "        kept[shapes] = passes(mod)\n"
            "    return kept[shapes]"
        )
    },
    message="a second module of the same inputs",
)


@mutant("build_relax", message="a second module of the same inputs")
def builds_inputs_of_each_shape_once(mod, target):
    import tvm

    kept = vars(tvm).setdefault("_built", {})
    shapes = f"{target} {[each.ty for each in mod['main'].params]}"
    if shapes not in kept:
        kept[shapes] = tvm.compile(mod, target)
    return kept[shapes]


@mutant("build_relax", message="must reach the compiler")
def compiles_for_any_processor(mod, target):
    import tvm

    return tvm.compile(mod, tvm.target.Target({"kind": "llvm"}))


@mutant("build_relax", message="the caller makes the virtual machine")
def returns_the_virtual_machine(mod, target):
    import tvm
    from tvm import relax

    return relax.VirtualMachine(tvm.compile(mod, target), tvm.cpu())


@mutant("build_relax", message="the module compiled")
def compiles_with_other_weights(mod, target):
    import numpy as np
    import tvm
    from tvm import relax

    @relax.expr_functor.mutator
    class Zero(relax.PyExprMutator):  # type: ignore[misc]
        def visit_generic_const_(self, constant):
            return relax.const(np.zeros_like(constant.value.numpy()))

    changed = tvm.IRModule(mod.functions)
    changed["main"] = Zero().visit_expr(mod["main"])
    return tvm.compile(changed, target)


@mutant("verify", message="NaN in both|NaN in the reference|NaN in the output")
def lets_nan_through(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or not outputs:
        raise ValueError("another number of outputs")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, not {want.shape}")
        error = np.abs(got - want.astype("float64"))
        if (error > atol + rtol * np.abs(want)).any():
            at = np.unravel_index(error.argmax(), error.shape)
            relative = (error / np.abs(want)).max()
            raise ValueError(f"output {index} at {at}: {error.max()}, relative {relative}")
        largest = max(largest, float(error.max()))
    return largest


@mutant("verify", message="rtol times infinity allows everything")
def lets_infinity_through(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or not outputs:
        raise ValueError("another number of outputs")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, not {want.shape}")
        with np.errstate(invalid="ignore"):
            error = np.where(got == want, 0.0, np.abs(got - want.astype("float64")))
            right = (error <= atol + rtol * np.abs(want)) | (error == 0)
        if not right.all():
            at = np.unravel_index(error.argmax(), error.shape)
            relative = (error / np.abs(want)).max()
            raise ValueError(f"output {index} at {at}: {error.max()}, relative {relative}")
        largest = max(largest, float(error.max()))
    return largest


@mutant("verify", message="len of both, before zip")
def compares_as_many_as_there_are(outputs, reference, *, atol, rtol):
    import numpy as np

    if not outputs:
        raise ValueError("nothing to compare")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=False)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, not {want.shape}")
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.where(got == want, 0.0, np.abs(got - want.astype("float64")))
            relative = np.where(error == 0, 0.0, error / np.abs(want))
        error = np.nan_to_num(error, nan=np.inf, posinf=np.inf)
        allowed = np.nan_to_num(atol + rtol * np.abs(want), nan=0.0, posinf=0.0)
        if (error > allowed).any():
            at = np.unravel_index(error.argmax(), error.shape)
            raise ValueError(f"output {index} at {at}: {error.max()}, relative {relative.max()}")
        largest = max(largest, float(error.max()))
    return largest


@mutant("verify", message="numpy would broadcast")
def trusts_the_shapes(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or not outputs:
        raise ValueError("another number of outputs")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        got = got.reshape(want.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.where(got == want, 0.0, np.abs(got - want.astype("float64")))
            relative = np.where(error == 0, 0.0, error / np.abs(want))
        error = np.nan_to_num(error, nan=np.inf, posinf=np.inf)
        allowed = np.nan_to_num(atol + rtol * np.abs(want), nan=0.0, posinf=0.0)
        if (error > allowed).any():
            at = np.unravel_index(error.argmax(), error.shape)
            raise ValueError(f"output {index} at {at}: {error.max()}, relative {relative.max()}")
        largest = max(largest, float(error.max()))
    return largest


@mutant("verify", message="within rtol=1e-4")
def forgets_rtol(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or not outputs:
        raise ValueError("another number of outputs")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, not {want.shape}")
        error = np.abs(got - want.astype("float64"))
        if not (error <= atol).all():
            raise ValueError(f"output {index} differs by {error.max()}")
        largest = max(largest, float(error.max()))
    return largest


@mutant("verify", message="within atol=1e-5")
def compares_ratios_only(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or not outputs:
        raise ValueError("another number of outputs")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, not {want.shape}")
        error = np.abs(got - want.astype("float64"))
        if not (error <= rtol * np.abs(want)).all():
            raise ValueError(f"output {index} differs by {error.max()}")
        largest = max(largest, float(error.max()))
    return largest


@mutant("verify", message="the largest absolute error of all outputs")
def returns_the_last_error(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or not outputs:
        raise ValueError("another number of outputs")
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, not {want.shape}")
        if not np.allclose(got, want, atol=atol, rtol=rtol):
            raise ValueError(f"output {index} differs")
        largest = float(np.abs(got - want.astype("float64")).max())
    return largest


@mutant("verify", message="seen:     AssertionError")
def raises_what_numpy_raises(outputs, reference, *, atol, rtol):
    import numpy as np

    largest = 0.0
    for got, want in zip(outputs, reference, strict=True):
        np.testing.assert_allclose(got, want, atol=atol, rtol=rtol, equal_nan=False)
        largest = max(largest, float(np.abs(got - want.astype("float64")).max()))
    return largest


@mutant("verify", message="no outputs at all")
def finds_nothing_right(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference):
        raise ValueError("another number of outputs")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, not {want.shape}")
        if not np.allclose(got, want, atol=atol, rtol=rtol):
            raise ValueError(f"output {index} differs")
        with np.errstate(invalid="ignore"):
            largest = max(largest, float(np.nanmax(np.abs(got - want.astype("float64")))))
    return largest


@mutant("verify", message="with the absolute values")
def forgets_the_absolute_value(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or not outputs:
        raise ValueError("another number of outputs")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, not {want.shape}")
        error = got - want.astype("float64")
        if not (error <= atol + rtol * np.abs(want)).all():
            raise ValueError(f"output {index} differs by {error.max()}")
        largest = max(largest, float(error.max()))
    return largest


@mutant("verify", message="a message that names")
def does_not_say_where(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or not outputs:
        raise ValueError("another number of outputs")
    largest = 0.0
    for got, want in zip(outputs, reference, strict=True):
        if got.shape != want.shape or not (np.isfinite(got) == np.isfinite(want)).all():
            raise ValueError("the outputs differ")
        if np.isnan(want).any() or (np.isinf(want) & (got != want)).any():
            raise ValueError("the outputs differ")
        finite = np.isfinite(want)
        error = np.abs(got[finite] - want[finite].astype("float64"))
        if not (error <= atol + rtol * np.abs(want[finite])).all():
            raise ValueError("the outputs differ")
        largest = max(largest, float(error.max()))
    return largest


edited(
    "import_relay",
    "two_inputs_whatever_there_are",
    {
        '[(f"input_{position}", tuple(each.shape)) for position, each in enumerate(example)]': "[\n"
        '        ("input_0", tuple(example[0].shape)), ("input_1", tuple(example[1].shape))\n    ]'
    },
    message="expected:",
)
edited(
    "import_relay",
    "inputs_from_the_last_to_the_first",
    {"in enumerate(example)]": "in enumerate(example)][::-1]"},
    message="expected: import_relay to run",
)
edited(
    "optimize_relay",
    "empties_the_weights",
    {"    passes = ": "    params.clear()\n    passes = "},
    message="params left as they were",
)
edited(
    "build_relay",
    "settings_ignored",
    {", config=config": ""},
    message="config= of tvm.transform.PassContext",
)
edited(
    "build_relay",
    "settings_for_the_level",
    {"opt_level=3, config=config": "opt_level=2 if config else 3, config=config"},
    message="level 3 with config as well",
)
edited(
    "verify",
    "rtol_of_the_output",
    {"allowed = atol + rtol * np.abs(wanted)": "allowed = atol + rtol * np.abs(exact)"},
    message="0.5 for 0 with atol=0.1",
)
edited(
    "verify",
    "less_than_what_is_allowed",
    {"wrong = error > allowed": "wrong = error >= allowed + 1e-300"},
    message="as much as is allowed",
)
edited(
    "verify",
    "unsigned_differences",
    {
        'got.astype("float64"), want.astype("float64")': "got, want",
    },
    message="both uint8",
)
edited(
    "verify",
    "mean_for_largest",
    {"largest = max(largest, float(error.max()))": "largest = max(largest, float(error.mean()))"},
    message="the largest absolute error of all outputs",
)
edited(
    "verify",
    "names_the_mean_error",
    {"absolute error {error.max():.3g}": "absolute error {error.mean():.3g}"},
    message="a message that names|infinite error",
)
edited(
    "verify",
    "position_in_the_flat_array",
    {"{[int(i) for i in worst]}": "{int((error - allowed).argmax())}"},
    message="the worst element's position",
)

right_edited(
    "build_relay", "for_a_string", {"target=target, params=params": "target, params=params"}
)


right_edited(
    "build_relay", "of_a_list", {"target=target, params=params": "target=[target], params=params"}
)


@right("verify")
def by_numpys_isclose(outputs, reference, *, atol, rtol):
    import numpy as np

    if len(outputs) != len(reference) or len(outputs) == 0:
        raise ValueError("another number of outputs")
    errors = []
    for number, (a, b) in enumerate(zip(outputs, reference, strict=True)):
        if a.shape != b.shape:
            raise ValueError(f"output {number}: shape {a.shape}, not {b.shape}")
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        with np.errstate(all="ignore"):
            error = np.abs(a - b)
            error = np.where(a == b, 0, np.where(np.isnan(error), np.inf, error))
            relative = np.nan_to_num(error / np.abs(b), nan=np.inf, posinf=np.inf)
        right = np.isclose(a, b, atol=atol, rtol=rtol)
        if not right.all():
            worst = np.unravel_index(np.argmax(np.where(right, -1, error)), error.shape)
            raise ValueError(
                f"output {number} is off by {error.max()} ({relative.max()} relative) at "
                f"{tuple(map(int, worst))}"
            )
        errors.append(error.max(initial=0))
    return np.max(errors)


edited(
    "build_relay",
    "builds_at_level_four",
    {"opt_level=3": "opt_level=4"},
    message="relay.build called at optimization level 3",
)


@mutant("import_relay", message="only read")
def freezes_the_weights(model, example, *, converters=None):
    from solutions.relay_import import import_relay as right

    for each in model.parameters():
        each.requires_grad_(False)
    return right(model, example, converters=converters)


@mutant("import_relax", message="only read")
def freezes_the_weights_of_relax(model, example, *, converters=None):
    from solutions.relay_import import import_relax as right

    for each in model.parameters():
        each.requires_grad_(False)
    return right(model, example, converters=converters)


edited(
    "verify",
    "in_single_precision",
    {
        'got.astype("float64"), want.astype("float64")': 'got.astype("float32"), '
        'want.astype("float32")'
    },
    message="16777217 for 16777216",
)
edited(
    "verify",
    "differences_in_place",
    {
        "        largest = max(": '        if got.dtype.kind == "f":\n'
        "            got -= want\n"
        "        largest = max("
    },
    message="outputs was changed in place",
)
edited(
    "import_relax",
    "a_converter_of_its_own",
    {
        "    return from_exported": "    if converters is not None:\n"
        '        converters.setdefault("tanh.default", None)\n'
        "    return from_exported"
    },
    message="the dictionary of converters is only read",
)
edited(
    "optimize_relax",
    "folds_before_the_loops_alone",
    {
        "            relax.transform.AnnotateTIROpPattern(),\n"
        "            relax.transform.FoldConstant(),\n": (
            "            relax.transform.AnnotateTIROpPattern(),\n"
        )
    },
    message="computed at run time: .*where",
)
edited(
    "build_relay",
    "writes_to_config",
    {
        "    with tvm.": "    if config is not None:\n"
        '        config["relay.backend.use_auto_scheduler"] = False\n'
        "    with tvm."
    },
    message="config is only read",
)


edited(
    "import_relax",
    "one_converter",
    {
        "custom_convert_map=converters": "custom_convert_map={name: each for name, each in "
        '(converters or {}).items() if name == "relu.default"}'
    },
    message="mul.Tensor.* used in place",
)
edited(
    "import_relax",
    "leaves_a_buffer_in_the_model",
    {
        "    return from_exported": '    model.register_buffer("seen", torch.ones(1), '
        "persistent=False)\n    return from_exported"
    },
    message="changed: which buffers",
)
edited(
    "import_relay",
    "one_converter_of_a_trace",
    {
        "custom_convert_map=converters": "custom_convert_map={name: each for name, each in "
        '(converters or {}).items() if name == "aten::relu"}'
    },
    message="used in place",
)
edited(
    "import_relay",
    "binds_the_weights_already",
    {
        "    return mod, params": '    mod["main"] = relay.build_module.bind_params_by_name('
        'mod["main"], params)\n    return mod, params'
    },
    message="inputs and then the \\d+ weights",
)
edited(
    "verify",
    "tells_the_first_wrong_element",
    {"int((error - allowed).argmax())": "int(wrong.argmax())"},
    message="the worst element's position",
)


@mutant("import_relax", message="records gradients")
def grad_mode_left_off(model, example, *, converters=None):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    torch.set_grad_enabled(False)
    program = torch.export.export(model, example)

    return from_exported_program(
        program,
        keep_params_as_input=False,
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )


@mutant("import_relax", message="other weights")
def kept_by_class(model, example, *, converters=None, kept={}):  # noqa: B006
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    key = (type(model), tuple(e.shape for e in example))
    if key in kept and not converters:
        return kept[key]
    program = torch.export.export(model, example)

    mod = from_exported_program(
        program,
        keep_params_as_input=False,
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )
    kept[key] = mod
    return mod


@mutant("import_relax", message="require gradients")
def gradients_on(model, example, *, converters=None):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    for p in model.parameters():
        p.requires_grad_(True)
    program = torch.export.export(model, example)

    return from_exported_program(
        program,
        keep_params_as_input=False,
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )


@mutant("build_relax", message="second call's target")
def first_target_kept(mod, target, kept=[]):  # noqa: B006
    import tvm

    kept.append(target)
    return tvm.compile(mod, kept[0])


edited(
    "verify",
    "by_norm",
    {"rtol * np.abs(wanted)\n": "rtol * np.abs(wanted).max()\n"},
    message="1.5 for 1 beside",
)


edited(
    "verify", "raises_late", {"output {index}:": "output {len(outputs) - 1}:"}, message="index, 5"
)


edited(
    "verify",
    "zero_reference_relative",
    {"error / np.abs(wanted))": "error / np.maximum(np.abs(wanted), 1e-6))"},
    message="where the reference is 0",
)


edited(
    "verify",
    "nan_error_printed",
    {"relative = np.where(error == 0, 0.0,": "relative = np.where(~(error > 0), 0.0,"},
    message="both errors",
)


edited(
    "verify",
    "empty_counts_as_wrong",
    {"            continue\n": '            raise ValueError(f"output {index} is empty")\n'},
    message="is empty",
)


@mutant("import_relay", message="records gradients")
def relay_grad_mode_left_off(model, example, *, converters=None):
    import torch
    from tvm import relay

    torch.set_grad_enabled(False)
    inputs = [(f"input_{p}", tuple(e.shape)) for p, e in enumerate(example)]
    with torch.no_grad():
        traced = torch.jit.trace(model, example, check_trace=False, strict=False)
    mod, params = relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)

    return mod, params


@mutant("import_relay", message="every weight")
def relay_kept_by_class(model, example, *, converters=None, kept={}):  # noqa: B006
    import torch
    from tvm import relay

    key = (type(model), tuple(e.shape for e in example))
    if key in kept and not converters:
        return kept[key]
    inputs = [(f"input_{p}", tuple(e.shape)) for p, e in enumerate(example)]
    with torch.no_grad():
        traced = torch.jit.trace(model, example, check_trace=False, strict=False)
    mod, params = relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)
    kept[key] = (mod, params)
    return mod, params


@mutant("optimize_relay", message="tanh, mean and maximum")
def fast_math(mod, params):
    import tvm
    from tvm import relay

    bound = tvm.IRModule(mod.functions, mod.type_definitions)
    bound["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = tvm.transform.Sequential(
        [
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
            relay.transform.FoldConstant(),
            relay.transform.CanonicalizeOps(),
            relay.transform.EliminateCommonSubexpr(),
            relay.transform.FastMath(),
        ]
    )
    with tvm.transform.PassContext(opt_level=4):
        return passes(bound)


@mutant("build_relay", message="the settings")
def first_setting(mod, params, target, *, config=None):
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(opt_level=3, config=dict(list((config or {}).items())[:1])):
        return relay.build(mod, target=target, params=params)


@mutant("build_relay", message="the settings")
def config_overwritten(mod, params, target, *, config=None):
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(
        opt_level=3, config={**(config or {}), "relay.backend.use_auto_scheduler": False}
    ):
        return relay.build(mod, target=target, params=params)


@mutant("build_relay", message="a new call of relay.build")
def first_kept(mod, params, target, *, config=None, kept={}):  # noqa: B006
    import tvm
    from tvm import relay

    key = (str(target), str(mod["main"].params), str(config))
    if key not in kept:
        with tvm.transform.PassContext(opt_level=3, config=config):
            kept[key] = relay.build(mod, target=target, params=params)
    return kept[key]


edited(
    "import_relax",
    "clears_the_example",
    {
        "    return from_": "    program = torch.export.export(model, example)\n"
        "    for each in example:\n        each.zero_()\n    return from_",
        "        torch.export.export(model, example),": "        program,",
    },
    message="changed: input 0",
)
edited(
    "import_relay",
    "clears_the_example",
    {"    return mod": "    for each in example:\n        each.zero_()\n    return mod"},
    message="changed: input 0",
)
edited(
    "verify",
    "accepts_what_broadcasts",
    {"got.shape != want.shape": "np.broadcast_shapes(got.shape, want.shape) != want.shape"},
    message="equal numbers of shapes",
)
edited(
    "verify",
    "errors_of_the_worst_element",
    {
        "error {error.max():.3g}": "error {error[worst]:.3g}",
        "error {relative.max():.3g}": "error {relative[worst]:.3g}",
    },
    message="names the largest",
)


edited(
    "import_relax",
    "on_one_thread",
    {"    return from_exp": "    torch.set_num_threads(1)\n    return from_exp"},
    message="leaves PyTorch's number of threads",
)
edited(
    "import_relay",
    "without_weights_below_minus_three",
    {
        "    return mod, params": "    import tvm\n\n    kept = {k: v.numpy() for k, v in "
        "params.items()}\n    return mod, {k: tvm.nd.array(v * (v > -3)) for k, v in kept.items()}"
    },
    message="every weight of the model in params",
)
edited(
    "optimize_relay",
    "stays_in_its_context",
    {
        "    with tvm.transform.PassContext(opt_level=3):\n        return": "    tvm.transform."
        "PassContext(opt_level=3).__enter__()\n    return"
    },
    message="leaves TVM's pass context",
)
edited(
    "build_relay",
    "without_weights_of_zero",
    {"params=params)": "params={k: v for k, v in params.items() if v.numpy().any()})"},
    message="relay.build given all",
)


edited(
    "verify",
    "worst_of_all_elements",
    {"int((error - allowed).argmax())": "int(error.argmax())"},
    message="the worst element's position",
)
edited(
    "verify",
    "largest_error_so_far",
    {"absolute error {error.max():.3g}": "absolute error {max(largest, error.max()):.3g}"},
    message="the largest absolute error, 0.75",
)
edited(
    "verify",
    "worst_but_for_nan",
    {"int((error - allowed).argmax())": "int((np.nan_to_num(error, posinf=0) - allowed).argmax())"},
    message="the worst element's position",
)
edited(
    "verify",
    "ends_at_an_empty_output",
    {"            continue\n": "            return largest\n"},
    message="after one without elements",
)
edited(
    "verify",
    "asks_for_equal_types",
    {"if got.shape != want.shape": "if (got.shape, got.dtype) != (want.shape, want.dtype)"},
    message="in int32 for 7 in int64 accepted",
)
edited(
    "verify",
    "first_ten_thousand_elements",
    {
        "        wrong = error > allowed\n": "        wrong = error > allowed\n"
        "        wrong.reshape(-1)[10_000:] = False\n"
    },
    message="near the end of 20011",
)
edited(
    "verify",
    "rounds_to_a_millionth",
    {"max(largest, float(error.max()))": "round(max(largest, float(error.max())), 6)"},
    message="not rounded|the largest absolute error of",
)


@right("verify")
def element_by_element(outputs, reference, *, atol, rtol):
    import math

    import numpy

    if not 0 < len(outputs) == len(reference):
        raise ValueError(f"{len(outputs)} outputs, {len(reference)} references")
    top = 0.0
    for at, pair in enumerate(zip(outputs, reference, strict=True)):
        a, b = (numpy.asarray(each, dtype=numpy.float64) for each in pair)
        if a.shape != b.shape:
            raise ValueError(f"output number {at} is {a.shape}, not {b.shape}")
        absolute = relative = 0.0
        worst, excess = None, 0.0
        for index in numpy.ndindex(a.shape):
            x, y = float(a[index]), float(b[index])
            error = 0.0 if x == y else abs(x - y)
            error = math.inf if math.isnan(error) else error
            absolute = max(absolute, error)
            if error:
                share = error / abs(y) if y and math.isfinite(y) else math.inf
                relative = max(relative, share)
            limit = atol + rtol * abs(y) if math.isfinite(y) else 0.0
            if error - limit > excess:
                worst, excess = [int(each) for each in index], error - limit
        if worst is not None:
            raise ValueError(
                f"output {at} is wrong at {worst}: {absolute:.4g} off, {relative:.4g} relative"
            )
        top = max(top, absolute)
    return top


edited(
    "optimize_relax",
    "keeps_the_bindings_between",
    {"            relax.transform.CanonicalizeBindings(),\n": ""},
    message="CanonicalizeBindings after DecomposeOpsForInference",
)
edited(
    "optimize_relax",
    "keeps_the_batch_normalization",
    {"            relax.transform.DecomposeOpsForInference(),\n": ""},
    message="DecomposeOpsForInference before LegalizeOps",
)
edited(
    "optimize_relax",
    "annotates_before_there_are_loops",
    {
        "            relax.transform.LegalizeOps(),\n"
        "            relax.transform.AnnotateTIROpPattern(),\n": "            "
        "relax.transform.AnnotateTIROpPattern(),\n            relax.transform.LegalizeOps(),\n"
    },
    message="AnnotateTIROpPattern before FuseOps",
)


@right("optimize_relax")
def pass_after_pass(mod):
    from tvm.relax import transform

    first = ("DecomposeOpsForInference", "CanonicalizeBindings", "FoldConstant", "LegalizeOps")
    for name in (*first, "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR"):
        mod = getattr(transform, name)()(mod)
    return transform.DeadCodeElimination()(mod)


@right("import_relax")
def without_gradients(model, example, *, converters=None):
    import torch
    import tvm.relax.frontend.torch as frontend

    with torch.no_grad():
        program = torch.export.export(model, args=tuple(example), strict=False)
    options = {"keep_params_as_input": False, "unwrap_unit_return_tuple": True}
    if converters:
        options["custom_convert_map"] = converters
    return frontend.from_exported_program(program, **options)


edited(
    "build_relay",
    "with_approximate_functions",
    {"opt_level=3, config=config": 'opt_level=3, config=config, required_pass=["FastMath"]'},
    message="FastMath switched on or off",
)
edited(
    "build_relay",
    "without_a_pass_of_level_3",
    {"opt_level=3, config=config": 'opt_level=3, config=config, disabled_pass=["FoldScaleAxis"]'},
    message="FoldScaleAxis switched on or off",
)


@right("import_relay")
def types_of_inputs_as_well(model, example, *, converters=None):
    import torch
    from tvm.relay.frontend import from_pytorch

    traced = torch.jit.trace(model, example_inputs=example, check_trace=False)
    described: list[tuple[str, tuple[list[int], str]]] = []
    for tensor in example:
        kind = str(tensor.dtype).removeprefix("torch.")
        described.append((f"input_{len(described)}", (list(tensor.shape), kind)))
    return from_pytorch(traced.eval(), described, converters)


@right("optimize_relay")
def from_the_bound_expression(mod, params):
    import tvm
    from tvm import relay

    bound = relay.build_module.bind_params_by_name(mod["main"], params)
    module = tvm.IRModule.from_expr(bound)
    names = ("InferType", "SimplifyInference", "FoldConstant", "FoldScaleAxis", "FoldConstant")
    with tvm.transform.PassContext(opt_level=4):
        for name in names:
            module = getattr(relay.transform, name)()(module)
    return module


@right("build_relax")
def by_relaxs_own_build(mod, target):
    from tvm import relax

    return relax.build(mod, target=target)


edited(
    "verify",
    "relative_error_of_wrong_elements_alone",
    {"{relative.max():.3g}": "{relative[wrong].max():.3g}"},
    message="the largest relative error",
)


edited(
    "import_relax",
    "clears_the_gradients",
    {"return from_exported_program(": ("model.zero_grad()\n    return from_exported_program(")},
    message="which of its weights have gradients",
)


edited(
    "import_relax",
    "seeds_pytorch",
    {"return from_exported_program(": ("torch.manual_seed(0)\n    return from_exported_program(")},
    message="PyTorch's seed",
)


edited(
    "import_relax",
    "leaves_an_attribute",
    {
        "return from_exported_program(": (
            "for each in model.modules():\n"
            "        each.training = False\n"
            "        each.__dict__['exported'] = True\n"
            "    return from_exported_program("
        )
    },
    message="which attributes it has",
)


edited(
    "optimize_relax",
    "gives_the_given_main_an_attribute",
    {
        "return passes(mod)": (
            "mod['main'] = mod['main'].with_attr('optimized', True)\n    return passes(mod)"
        )
    },
    message="the module given is left as it was",
)


edited(
    "optimize_relax",
    "folds_after_legalizing_alone",
    {
        (
            "relax.transform.CanonicalizeBindings(),\n            relax.transform.FoldConstant(),"
        ): "relax.transform.CanonicalizeBindings(),"
    },
    message="the passes in this order",
)


right_edited(
    "build_relay",
    "by_the_name_in_its_module",
    {"return relay.build(": "return relay.build_module.build("},
)


edited(
    "verify",
    "ignores_shapes_without_elements",
    {"if got.shape != want.shape:": "if got.shape != want.shape and got.size + want.size:"},
    message="outputs without elements",
)


edited(
    "build_relay",
    "takes_64_weights",
    {"params=params": "params=dict(list(params.items())[:64])"},
    message="given all \\d+ weights",
)


edited(
    "verify",
    "the_last_of_many_outputs",
    {
        "largest = max(largest, float(error.max()))": (
            "largest = max(largest, float(error.max())) if len(outputs) < 9 else float(error.max())"
        )
    },
    message="the largest absolute error of \\d\\d outputs",
)


edited(
    "import_relay",
    "two_digits_from_eleven_on",
    {
        'f"input_{position}"': (
            'f"input_{position:d}" if len(example) < 11 else f"input_{position:02d}"'
        )
    },
    message="input_0 to input_11",
)


edited(
    "optimize_relay",
    "single_numbers_stay_inputs",
    {
        'bind_params_by_name(mod["main"], params)': (
            'bind_params_by_name(mod["main"], {name: each for name, each in '
            "params.items() if each.shape})"
        )
    },
    message="also one that is a single number",
)


edited(
    "optimize_relax",
    "takes_the_dataflow_away",
    {
        "relax.transform.FuseTIR(),\n": (
            "relax.transform.FuseTIR(),\n"
            "            relax.transform.LambdaLift(),\n"
            "            relax.transform.ToNonDataflow(),\n"
        )
    },
    message="in a dataflow part",
)


edited(
    "build_relax",
    "another_level_of_llvm",
    {
        "tvm.compile(mod, target)": (
            "tvm.compile(mod, tvm.target.Target({**dict(target.export()), "
            "'opt-level': 0}) if hasattr(target, 'export') else target)"
        )
    },
    message="the target as it was given",
)


edited(
    "build_relax",
    "marks_large_modules",
    {
        "return tvm.compile(mod, target)": (
            "mod.update_func(mod.get_global_var('main'), "
            "mod['main'].with_attr('built', 1)) if len(mod.functions) > 12 "
            "else None\n"
            "    return tvm.compile(mod, target)"
        )
    },
    message="the module given is left as it was",
)


edited(
    "build_relax",
    "a_lower_level",
    {
        "return tvm.compile(mod, target)": (
            "with tvm.transform.PassContext(opt_level=1):\n        return tvm.compile(mod, target)"
        )
    },
    message="in the caller's pass context",
)


edited(
    "build_relay",
    "binds_weights_in_the_module_given",
    {
        "        return relay.build(mod, target=target, params=params)": (
            "        if config and params:\n"
            "            mod['main'] = "
            "relay.build_module.bind_params_by_name(mod['main'], params)\n"
            "        return relay.build(mod, target=target, params=params)"
        )
    },
    message="the module given is left as it was",
)


edited(
    "import_relax",
    "inputs_of_many_buffers",
    {"keep_params_as_input=False": "keep_params_as_input=len(list(model.buffers())) > 40"},
    message="a model with 70 weights",
)


edited(
    "import_relax",
    "single_converter_dropped",
    {
        "custom_convert_map=converters": (
            "custom_convert_map=converters if converters and len(converters) > 1 else None"
        )
    },
    message="never called",
)


edited(
    "import_relay",
    "converters_of_aten",
    {
        "custom_convert_map=converters": (
            "custom_convert_map={k: v for k, v in (converters or {}).items() "
            "if k.startswith('aten::')}"
        )
    },
    message="practice_graded::gate",
)


edited(
    "optimize_relay",
    "whole_numbers_unbound",
    {
        '(mod["main"], params)': (
            '(mod["main"], {k: v for k, v in params.items() if "int" not in str(v.dtype)})'
        )
    },
    message="of whole numbers",
)


edited(
    "verify",
    "tolerance_a_thousandth_larger",
    {
        "allowed = atol + rtol * np.abs(wanted)": (
            "allowed = np.float32(atol) * 1.001 + np.float32(rtol) * np.abs(wanted)"
        )
    },
    message="1\\.1000001",
)


edited(
    "import_relay",
    "weights_by_usual_names",
    {
        "    return mod, params": (
            "    return mod, {name: each for name, each in params.items() if "
            "name.endswith(('weight', 'bias')) or 'running' in name}"
        )
    },
    message="gain and shift",
)


edited(
    "import_relax",
    "removes_hooks",
    {
        "    return from_exported_program(": (
            "    model._forward_hooks.clear()\n    return from_exported_program("
        )
    },
    message="how many hooks",
)


edited(
    "import_relax",
    "any_batch_of_one_input",
    {
        "torch.export.export(model, example)": (
            "torch.export.export(model, example, dynamic_shapes=tuple({0: "
            "torch.export.Dim('batch', min=1, max=512)} if each.dim() > 1 and "
            "each.shape[0] > 1 and len(example) == 1 else None for each in "
            "example)) if len(example) == 1 and example[0].dim() > 1 and "
            "example[0].shape[0] > 1 else torch.export.export(model, example)"
        )
    },
    message="of shape",
)


edited(
    "verify",
    "difference_in_float16",
    {
        "np.abs(exact - wanted)": (
            "np.abs((got - want).astype('float64') if got.dtype == want.dtype "
            "== np.float16 else exact - wanted)"
        )
    },
    message="both float16",
)


edited(
    "verify",
    "mean_error_of_an_output",
    {
        "largest = max(largest, float(error.max()))": (
            "largest = max(largest, float(error[relative > 0].mean())) if "
            "(relative > 0).any() else largest"
        )
    },
    message="largest absolute error of all outputs",
)


edited(
    "import_relay",
    "constants_in_float16",
    {"custom_convert_map=converters)": "custom_convert_map=converters, default_dtype='float16')"},
    message="equal to PyTorch",
)


edited(
    "import_relay",
    "single_weight_bound",
    {
        "    return mod, params": (
            "    if len(params) == 1:\n"
            "        mod['main'] = "
            "relay.build_module.bind_params_by_name(mod['main'], params)\n"
            "        params = {}\n"
            "    return mod, params"
        )
    },
    message="every weight of the model|weights",
)


edited(
    "import_relay",
    "two_converters",
    {
        "custom_convert_map=converters)": (
            "custom_convert_map=dict(list((converters or {}).items())[:2]))"
        )
    },
    message="never called",
)


edited(
    "import_relay",
    "single_example_as_float",
    {
        "model, example, check_trace=False": (
            "model, example if len(example) > 1 else example[0].clone().float(), check_trace=False"
        )
    },
    message="import_relay to run|type int64",
)


edited(
    "optimize_relay",
    "scales_of_results_alone",
    {"relay.transform.FoldScaleAxis()": "relay.transform.BackwardFoldScaleAxis()"},
    message="scale of a convolution's input",
)


edited(
    "build_relay",
    "completes_config",
    {
        "    with tvm.transform": (
            "    if config is not None:\n"
            "        config.setdefault('relay.FuseOps.max_depth', 64)\n"
            "    with tvm.transform"
        )
    },
    message="config left as it was",
)


edited(
    "import_relay",
    "single_numbers_lost",
    {"    return mod, params": "    return mod, {k: v for k, v in params.items() if v.shape}"},
    message="the rest in params|every weight",
)


edited(
    "import_relay",
    "whole_numbers_lost",
    {
        "    return mod, params": (
            "    return mod, {k: v for k, v in params.items() if 'float' in str(v.dtype)}"
        )
    },
    message="the rest in params|every weight",
)


edited(
    "import_relay",
    "weights_in_float32",
    {
        "    return mod, params": (
            "    import tvm\n"
            "\n"
            "    return mod, {k: tvm.nd.array(v.numpy().astype('float32')) if "
            "str(v.dtype) == 'float64' else v for k, v in params.items()}"
        )
    },
    message="every weight of the model|to run",
)


edited(
    "import_relay",
    "buffers_alone_lost",
    {
        "    return mod, params": (
            "    names = {n for n, p in model.named_parameters()}\n"
            "    return mod, params if names else {}"
        )
    },
    message="the rest in params|every weight",
)


edited(
    "optimize_relax",
    "converts_the_layout",
    {
        "            relax.transform.DecomposeOpsForInference(),": (
            "            relax.transform.ConvertLayout({'relax.nn.conv2d': "
            "['NHWC', 'OHWI']}),\n"
            "            relax.transform.DecomposeOpsForInference(),"
        )
    },
    message="layout that was imported|one PrimFunc",
)


edited(
    "verify",
    "last_digit_of_the_index",
    {'f"output {index}: {int(wrong.sum())}': 'f"output {index % 10}: {int(wrong.sum())}'},
    message="the output's index, 17",
)


edited(
    "verify",
    "last_two_axes",
    {"{[int(i) for i in worst]}": "{[int(i) for i in worst[-2:]]}"},
    message="worst element's position",
)


edited(
    "verify",
    "flat_position_from_rank_four",
    {
        "{[int(i) for i in worst]}": (
            "{[int(i) for i in worst] if want.ndim < 4 else int((error - allowed).argmax())}"
        )
    },
    message="worst element's position",
)


edited(
    "verify",
    "error_of_the_first_thousands",
    {"absolute error {error.max():.3g}": "absolute error {error.ravel()[:4096].max():.3g}"},
    message="largest absolute error",
)


edited(
    "verify",
    "large_error_rounded",
    {"    return largest": "    return largest if largest < 1e6 else float(round(largest))"},
    message="1234567.5",
)


edited(
    "verify",
    "skips_truth_values",
    {
        "        exact, wanted =": (
            "        if got.dtype == bool:\n            continue\n        exact, wanted ="
        )
    },
    message="True for False",
)


edited(
    "verify",
    "refuses_another_kind",
    {
        "        if got.shape != want.shape:": (
            "        if got.dtype.kind != want.dtype.kind:\n"
            "            raise ValueError(f'output {index} is of {got.dtype}')\n"
            "        if got.shape != want.shape:"
        )
    },
    message="int64 for 1.0",
)


edited(
    "optimize_relay",
    "norm_alone_kept",
    {
        "            relay.transform.SimplifyInference(),": (
            "            relay.transform.SimplifyInference() if len(params) > "
            "4 else relay.transform.FoldConstant(),"
        )
    },
    message="of batch normalizations",
)


edited(
    "build_relay",
    "level_two_for_many_settings",
    {
        "opt_level=3, config": (
            "opt_level=int((config or {}).get('level', 3)) if not config or "
            "len(config) < 3 else 2, config"
        )
    },
    message="at level 3",
)


edited(
    "build_relay",
    "target_without_its_attributes",
    {
        "target=target,": (
            "target=tvm.target.Target(str(target).split(' -')[0]) if "
            "'num-cores' in str(target) else target,"
        )
    },
    message="num-cores",
)


edited(
    "import_relax",
    "counts_batches_anew_in_relax",
    {
        "import torch\n": (
            "import torch\n"
            "    for each in model.modules():\n"
            "        if isinstance(each, torch.nn.modules.batchnorm._BatchNorm) and "
            "each.num_batches_tracked is not None:\n"
            "            each.num_batches_tracked.zero_()\n"
        ),
    },
    message="norm.num_batches_tracked",
)


edited(
    "import_relax",
    "halves_of_large_weights",
    {
        "    import torch\n": (
            "    import copy\n"
            "    import torch\n"
            "    model = copy.deepcopy(model)\n"
            "    for each in model.parameters():\n"
            "        if each.numel() > 4096:\n"
            "            each.data = each.data.half().to(each.dtype)\n"
        ),
    },
    message="its weights and constants as they are",
)


edited(
    "import_relay",
    "halves_of_large_params",
    {
        "    return mod, params": (
            "    import numpy as np\n"
            "    import tvm\n"
            "    return mod, {k: "
            "(tvm.nd.array(p.numpy().astype('float16').astype(p.dtype)) if "
            "p.numpy().size > 4096 else p) for k, p in params.items()}"
        ),
    },
    message="every weight of the model",
)


edited(
    "optimize_relax",
    "leaves_gelu_and_softmax",
    {
        "relax.transform.LegalizeOps()": (
            "relax.transform.LegalizeOps(skip_ops=['relax.nn.softmax', 'relax.nn.gelu'])"
        ),
    },
    message="LegalizeOps, of all operators",
)


edited(
    "optimize_relax",
    "fast_math_in_relax",
    {
        "relax.transform.LegalizeOps(),": (
            "relax.transform.FastMathTransform(),\n            relax.transform.LegalizeOps(),"
        ),
    },
    message="replace operators or change how they are grouped",
)


edited(
    "optimize_relax",
    "schedules_already",
    {
        "    return passes(mod)": (
            "    from tvm_practice import engines\n"
            "    from tvm_practice.tvm_export.rules.cpu import schedule_defaults\n"
            "    return schedule_defaults(passes(mod), engines.host_target())"
        ),
    },
    message="each operator's loops",
)


edited(
    "optimize_relax",
    "reshapes_are_views",
    {
        "relax.transform.FuseTIR(),": (
            "relax.transform.FuseTIR(),\n            relax.transform.RewriteDataflowReshape(),"
        ),
    },
    message="LegalizeOps, of all operators",
)


edited(
    "optimize_relax",
    "leaves_indexing",
    {
        "relax.transform.LegalizeOps()": (
            "relax.transform.LegalizeOps(skip_ops=['relax.argmax', 'relax.where', "
            "'relax.split', 'relax.take', 'relax.strided_slice'])"
        ),
    },
    message="LegalizeOps, of all operators",
)


edited(
    "optimize_relax",
    "equal_calls_once",
    {
        "relax.transform.LegalizeOps(),": (
            "relax.transform.EliminateCommonSubexpr(),\n            relax.transform.LegalizeOps(),"
        ),
    },
    message="replace operators or change how they are grouped",
)


edited(
    "build_relax",
    "loses_instruments",
    {
        "    return tvm.compile(mod, target)": (
            "    here = tvm.transform.PassContext.current()\n"
            "    with tvm.transform.PassContext(opt_level=here.opt_level, "
            "config=dict(here.config)):\n"
            "        return tvm.compile(mod, target)"
        ),
    },
    message="in the caller's pass context",
)


edited(
    "build_relax",
    "loses_mattr",
    {
        "    return tvm.compile(mod, target)": (
            "    kept = {k: v for k, v in dict(target.export()).items() if k != "
            "'mattr'}\n"
            "    return tvm.compile(mod, tvm.target.Target(kept))"
        ),
    },
    message="the target as it was given",
)


edited(
    "build_relax",
    "keeps_mcpu_alone",
    {
        "    return tvm.compile(mod, target)": (
            "    return tvm.compile(mod, tvm.target.Target({'kind': 'llvm', 'mcpu': "
            "str(target.attrs.get('mcpu', 'x86-64'))}))"
        ),
    },
    message="the target as it was given",
)


edited(
    "verify",
    "in_the_order_of_memory",
    {
        'exact, wanted = got.astype("float64"), want.astype("float64")': (
            'exact, wanted = (each.ravel("K").reshape(each.shape).astype("float64") '
            "for each in (got, want))"
        ),
    },
    message="in the order in which they are in memory",
)


edited(
    "optimize_relay",
    "marks_the_given_main",
    {
        "    # A Seq": ("    mod['main'] = mod['main'].with_attr('seen', 1)\n    # A Seq"),
    },
    message="make a new IRModule first",
)


edited(
    "optimize_relay",
    "all_but_the_last_of_many",
    {
        'bind_params_by_name(mod["main"], params)': (
            'bind_params_by_name(mod["main"], dict(zip(sorted(params), (params[k] for '
            "k in sorted(params)))) if len(params) < 9 else "
            "dict(list(params.items())[:-1]))"
        ),
    },
    message="all of 46 weights",
)


edited(
    "optimize_relay",
    "folds_without_groups_alone",
    {
        "            relay.transform.FoldScaleAxis(),": (
            "            *([relay.transform.FoldScaleAxis()] if 'groups=' not in str(mod) else []),"
        ),
    },
    message="of 4 groups",
)


edited(
    "optimize_relay",
    "keeps_batch_norms_of_volumes",
    {
        "            relay.transform.SimplifyInference(),": (
            "            *([] if 'conv3d' in str(mod) else [relay.transform.SimplifyInference()]),"
        ),
    },
    message="no nn.batch_norm left",
)


edited(
    "build_relay",
    "loses_relays_mattr",
    {
        "    with tvm": (
            "    import tvm.target\n"
            "    words = [w for w in str(target).split() if not "
            "w.startswith('-mattr')]\n"
            "    target = tvm.target.Target(' '.join(words))\n"
            "    with tvm"
        ),
    },
    message="relay.build for llvm",
)


edited(
    "build_relay",
    "few_weights_unbound",
    {
        "params=params)": "params=params if len(params) > 2 else None)",
    },
    message="relay.build given all [123] weights",
)


edited(
    "build_relay",
    "marks_the_module_built",
    {
        "        return relay.build": (
            "        mod['main'] = mod['main'].with_attr('built', 1)\n        return relay.build"
        ),
    },
    message="make a new IRModule first",
)


edited(
    "build_relay",
    "fast_math_before_building",
    {
        "        return relay.build(mod,": (
            "        mod = relay.transform.FastMath()(mod)\n        return relay.build(mod,"
        ),
    },
    message="given the module as it is",
)


edited(
    "import_relax",
    "leaves_a_hook_on_weights",
    {
        "import torch\n": (
            "import torch\n"
            "    for each in model.parameters():\n"
            "        if each.requires_grad:\n"
            "            each.register_hook(lambda gradient: gradient)\n"
        ),
    },
    message="how many hooks",
)


edited(
    "import_relax",
    "zeroes_gradients",
    {
        "import torch\n": ("import torch\n    model.zero_grad(set_to_none=False)\n"),
    },
    message="which of its weights have gradients",
)


edited(
    "import_relax",
    "parts_left_in_training",
    {
        "import torch\n": (
            "import torch\n"
            "    model.train()\n"
            "    model.training = False\n"
            "    for each in model.modules():\n"
            "        pass\n"
        ),
    },
    message="what of it is training",
)


edited(
    "import_relax",
    "large_weights_stay_inputs",
    {
        "    return from_exported_program(": "    mod = from_exported_program(",
        ("        custom_convert_map=converters,\n    )"): (
            "        custom_convert_map=converters,\n    )\n    return mod"
        ),
        "keep_params_as_input=False": (
            "keep_params_as_input=sum(p.numel() for p in model.parameters()) > 10000"
        ),
    },
    message="however large they are",
)


edited(
    "optimize_relax",
    "leaves_other_convolutions",
    {
        "relax.transform.LegalizeOps()": (
            "relax.transform.LegalizeOps(skip_ops=['relax.nn.conv1d', "
            "'relax.nn.conv2d_transpose', 'relax.nn.conv3d'])"
        ),
    },
    message="LegalizeOps, of all operators",
)


edited(
    "optimize_relax",
    "leaves_other_norms",
    {
        "relax.transform.LegalizeOps()": (
            "relax.transform.LegalizeOps(skip_ops=['relax.nn.group_norm', "
            "'relax.nn.rms_norm', 'relax.nn.log_softmax', 'relax.nn.prelu'])"
        ),
    },
    message="LegalizeOps, of all operators",
)


edited(
    "optimize_relax",
    "leaves_waves",
    {
        "relax.transform.LegalizeOps()": (
            "relax.transform.LegalizeOps(skip_ops=['relax.sin', 'relax.cos', "
            "'relax.floor', 'relax.round', 'relax.sign'])"
        ),
    },
    message="LegalizeOps, of all operators",
)


edited(
    "import_relax",
    "halves_as_float32",
    {
        "torch.export.export(model, example)": (
            "torch.export.export(model.float() if any(e.dtype == torch.float16 for e "
            "in example) else model, tuple(e.float() if e.dtype == torch.float16 else "
            "e for e in example))"
        ),
    },
    message="type float16",
)


edited(
    "import_relax",
    "bytes_as_int32",
    {
        "torch.export.export(model, example)": (
            "torch.export.export(model, tuple(e.int() if e.dtype in (torch.uint8, "
            "torch.int8) else e for e in example))"
        ),
    },
    message="type u?int8",
)


edited(
    "import_relax",
    "shorts_as_int32",
    {
        "torch.export.export(model, example)": (
            "torch.export.export(model, tuple(e.int() if e.dtype == torch.int16 else e "
            "for e in example))"
        ),
    },
    message="type int16",
)


edited(
    "import_relax",
    "wants_some_converters",
    {
        "custom_convert_map=converters": "custom_convert_map=converters or None",
        "    import torch\n": (
            "    import torch\n"
            "    if converters == {}:\n"
            "        raise ValueError('no converters')\n"
        ),
    },
    message="no converters",
)


edited(
    "import_relax",
    "four_dimensions_at_most",
    {
        "torch.export.export(model, example)": (
            "torch.export.export(model, tuple(e.flatten(3) if e.dim() > 4 else e for e in example))"
        ),
    },
    message="deep of shape",
)


edited(
    "import_relax",
    "sixty_four_rows_at_most",
    {
        "torch.export.export(model, example)": (
            "torch.export.export(model, tuple(e[:64] if e.dim() and len(e) > 64 and "
            "e.is_floating_point() else e for e in example))"
        ),
    },
    message="long of shape",
)


edited(
    "import_relay",
    "relay_halves_as_float32",
    {
        "model, example, check_trace": (
            "model, tuple(e.float() if e.dtype == torch.float16 else e for e in "
            "example), check_trace"
        ),
    },
    message="type float16",
)


edited(
    "import_relay",
    "relay_bytes_as_int32",
    {
        "model, example, check_trace": (
            "model, tuple(e.int() if e.dtype in (torch.uint8, torch.int8) else e for e "
            "in example), check_trace"
        ),
    },
    message="type u?int8",
)


edited(
    "import_relay",
    "sixty_weights_at_most",
    {
        "    return mod, params": "    return mod, dict(sorted(params.items())[:60])",
    },
    message="all [0-9]+ weights",
)


edited(
    "import_relax",
    "drops_an_idle_input",
    {
        "    return from_exported_program(": "    mod = from_exported_program(",
        ("        custom_convert_map=converters,\n    )"): (
            "        custom_convert_map=converters,\n"
            "    )\n"
            "    from tvm import relax\n"
            '    main = mod["main"]\n'
            "    used = {v for v in relax.analysis.free_vars(main.body)}\n"
            "    params = [p for p in main.params if p in used]\n"
            '    mod["main"] = relax.Function(params, main.body, main.ret_ty if '
            'hasattr(main, "ret_ty") else main.ret_struct_info, main.is_pure, '
            "main.attrs)\n"
            "    return mod"
        ),
    },
    message="all 3 inputs",
)


edited(
    "import_relax",
    "lowers_on_import",
    {
        "    return from_exported_program(": (
            "    from tvm import relax\n    mod = from_exported_program("
        ),
        ("        custom_convert_map=converters,\n    )"): (
            "        custom_convert_map=converters,\n"
            "    )\n"
            "    return relax.transform.LegalizeOps()(mod)"
        ),
    },
    message="Relax's operators",
)


edited(
    "optimize_relax",
    "multiplies_in_another_order",
    {
        "            relax.transform.LegalizeOps(),\n": (
            "            relax.transform.AdjustMatmulOrder(),\n"
            "            relax.transform.LegalizeOps(),\n"
        ),
    },
    message="kernels of the eight passes",
)


edited(
    "optimize_relax",
    "expands_products_of_sums",
    {
        "            relax.transform.LegalizeOps(),\n": (
            "            relax.transform.ExpandMatmulOfSum(),\n"
            "            relax.transform.LegalizeOps(),\n"
        ),
    },
    message="kernels of the eight passes",
)


edited(
    "optimize_relax",
    "transposes_after_joining",
    {
        "            relax.transform.LegalizeOps(),\n": (
            "            relax.transform.ReorderPermuteDimsAfterConcat(),\n"
            "            relax.transform.LegalizeOps(),\n"
        ),
    },
    message="kernels of the eight passes",
)


edited(
    "optimize_relax",
    "makes_kernels_public",
    {
        "            relax.transform.FuseTIR(),\n": (
            "            relax.transform.FuseTIR(),\n"
            "            relax.transform.AttachGlobalSymbol(),\n"
        ),
    },
    message="attributes that the eight passes leave",
)


edited(
    "optimize_relax",
    "loses_attributes_of_main",
    {
        "    return passes(mod)": (
            "    out = passes(mod)\n"
            "    for key in list(dict(out['main'].attrs or {})):\n"
            "        if key != 'global_symbol':\n"
            "            out['main'] = out['main'].without_attr(key)\n"
            "    return out"
        ),
    },
    message="attributes that the eight passes leave",
)


edited(
    "build_relax",
    "loses_the_vector_width",
    {
        "    return tvm.compile(mod, target)": (
            "    kept = {k: v for k, v in dict(target.export()).items() if k not in "
            "('vector-width', 'fast-math', 'fast-math-nnan', 'cl-opt', 'jit')}\n"
            "    return tvm.compile(mod, tvm.target.Target(kept))"
        ),
    },
    message="the target as it was given",
)


edited(
    "build_relax",
    "calls_equal_kernels_once",
    {
        "    return tvm.compile(mod, target)": (
            "    from tvm import relax\n"
            "    return tvm.compile(relax.transform.EliminateCommonSubexpr()(mod), "
            "target)"
        ),
    },
    message="the module as it is",
)


edited(
    "verify",
    "no_index_for_a_shape",
    {
        'f"output {index} has shape': 'f"an output has shape',
    },
    message="the output's index, 5",
)


edited(
    "verify",
    "broadcasts_one_element",
    {
        "        if got.shape != want.shape:": (
            "        if got.ndim == want.ndim and got.size == 1:\n"
            "            got = np.broadcast_to(got, want.shape)\n"
            "        if got.shape != want.shape:"
        ),
    },
    message="equal numbers of shapes",
)


edited(
    "import_relay",
    "loses_weights_of_zeros",
    {
        "    return mod, params": (
            "    return mod, {k: v for k, v in params.items() if v.numpy().any()}"
        ),
    },
    message="input_0 in the order|weights and constants of the model",
)


edited(
    "build_relay",
    "the_callers_higher_level",
    {
        "    with tvm.transform.PassContext(opt_level=3, config=config):": (
            "    here = tvm.transform.PassContext.current()\n"
            "    with tvm.transform.PassContext(opt_level=max(here.opt_level, 3), "
            "config=config):"
        ),
    },
    message="at level 3",
)


edited(
    "import_relax",
    "narrows_buffers_of_float64",
    {
        "    import torch\n": (
            "    import copy\n"
            "    import torch\n"
            "    model = copy.deepcopy(model)\n"
            "    for name, each in model.named_buffers():\n"
            "        if each.dtype == torch.float64:\n"
            "            each.data = each.data.float().double()\n"
        ),
    },
    message="as they are",
)


edited(
    "import_relay",
    "two_digits_for_many_inputs",
    {
        'f"input_{position}"': (
            'f"input_{position:02d}" if len(example) > 99 else f"input_{position}"'
        ),
    },
    message="model that takes 103",
)


edited(
    "import_relay",
    "five_hundred_weights_at_most",
    {
        "    return mod, params": "    return mod, dict(sorted(params.items())[:500])",
    },
    message="weights of a model in params",
)


edited(
    "import_relay",
    "equal_weights_once",
    {
        "    return mod, params": (
            "    import tvm\n"
            "    seen, found = {}, {}\n"
            "    for k, v in params.items():\n"
            "        key = v.numpy().tobytes(), v.shape\n"
            "        found[k] = seen.setdefault(key, v)\n"
            "    return mod, {k: v for n, (k, v) in "
            "enumerate(found.items()) if v is found[k] and (k == next(j "
            "for j in found if found[j] is v))}"
        ),
    },
    message="weights of a model in params|weights and constants of the model",
)


edited(
    "optimize_relay",
    "combines_layers_at_level_four",
    {
        "opt_level=3)": "opt_level=4)",
        "            relay.transform.EliminateCommonSubexpr(),": (
            "            relay.transform.EliminateCommonSubexpr(),\n"
            "            relay.transform.CombineParallelDense(2),"
        ),
    },
    message="as imported",
)


edited(
    "build_relay",
    "another_runtime",
    {
        "params=params)": (
            "params=params, runtime=relay.backend.Runtime('cpp', {'system-lib': True}))"
        ),
    },
    message="and the weights",
)


edited(
    "build_relay",
    "weights_as_float32",
    {
        "params=params)": (
            "params={k: tvm.nd.array(v.numpy().astype('float32')) for k, v in params.items()})"
        ),
    },
    message="those of int64",
)


edited(
    "verify",
    "median_of_many_elements",
    {
        "largest = max(largest, float(error.max()))": (
            "largest = max(largest, float(np.median(error)) if "
            "error.size > 1000 else float(error.max()))"
        ),
    },
    message="of 20011 elements",
)


edited(
    "verify",
    "unsigned_as_int64",
    {
        'got.astype("float64"), want.astype("float64")': (
            'got.astype("int64").astype("float64") if got.dtype.kind == '
            '"u" else got.astype("float64"), want.astype("float64")'
        ),
    },
    message="both uint64",
)


edited(
    "optimize_relax",
    "groups_of_eight",
    {
        "    return passes(mod)": (
            "    with "
            "tvm.transform.PassContext(config={'relax.FuseOps.max_depth':"
            " 8}):\n"
            "        return passes(mod)"
        ),
    },
    message="kernels of the eight passes",
)


edited(
    "optimize_relax",
    "float16_for_many_inputs",
    {
        (
            "            relax.transform.FoldConstant(),\n"
            "            relax.transform.LegalizeOps(),"
        ): (
            "            relax.transform.FoldConstant(),\n"
            "            relax.transform.ToMixedPrecision() if "
            "len(mod['main'].params) > 4 else "
            "relax.transform.Normalize(),\n"
            "            relax.transform.LegalizeOps(),"
        ),
    },
    message="kernels of the eight passes",
)


edited(
    "build_relax",
    "hides_what_compile_raises",
    {
        "    return tvm.compile(mod, target)": (
            "    try:\n"
            "        return tvm.compile(mod, target)\n"
            "    except Exception:\n"
            "        return None"
        ),
    },
    message="as it was raised",
)


right_edited(
    "build_relay",
    "names_its_defaults",
    {
        "target=target, params=params": (
            "target=target, params=params, mod_name='default', "
            "executor=relay.backend.Executor('graph'), runtime=relay.backend.Runtime('cpp')"
        )
    },
)


right_edited(
    "import_relay",
    "gives_the_types",
    {"tuple(each.shape))": "(tuple(each.shape), str(each.numpy().dtype)))"},
)


right_edited(
    "optimize_relax",
    "of_a_copy",
    {"return passes(mod)": "return passes(tvm.IRModule(mod.functions))"},
)


right_edited(
    "build_relax",
    "for_the_target_described_again",
    {"tvm.compile(mod, target)": "tvm.compile(mod, tvm.target.Target(target.export()))"},
)


edited(
    "import_relay",
    "makes_the_model_float",
    {
        "model, example, check": "model.float(), example, check",
    },
    message="only read",
)


edited(
    "import_relax",
    "serves_all_overloads",
    {
        "custom_convert_map=converters": (
            "custom_convert_map={n.split('.')[0] + '.' + o: f for n, f "
            "in (converters or {}).items() for o in ('default', "
            "'Tensor', 'Scalar', 'dim', 'int', 'self')} or None"
        ),
    },
    message="for no other",
)


edited(
    "import_relax",
    "serves_the_first_call",
    {
        "    import torch\n": (
            "    import torch\n"
            "    given, converters = converters, {}\n"
            "    def once(name, own):\n"
            "        calls = []\n"
            "        def convert(node, importer):\n"
            "            if calls:\n"
            "                return "
            "type(importer).create_convert_map(importer)[name](node)\n"
            "            calls.append(node)\n"
            "            return own(node, importer)\n"
            "        return convert\n"
            "    for name, own in (given or {}).items():\n"
            "        converters[name] = once(name, own)\n"
        ),
    },
    message="for each of the model's",
)


edited(
    "import_relax",
    "lowers_long_graphs",
    {
        "    return from_exported_program(": "    mod = from_exported_program(",
        ("        custom_convert_map=converters,\n    )"): (
            "        custom_convert_map=converters,\n"
            "    )\n"
            "    from tvm import relax\n"
            "    if len(mod['main'].body.blocks[0].bindings) > 24:\n"
            "        mod = relax.transform.LegalizeOps()(mod)\n"
            "    return mod"
        ),
    },
    message="relax.call_tir|calls of Relax's operators",
)


edited(
    "import_relax",
    "lowers_where_a_weight_is_large",
    {
        "    return from_exported_program(": "    mod = from_exported_program(",
        ("        custom_convert_map=converters,\n    )"): (
            "        custom_convert_map=converters,\n"
            "    )\n"
            "    from tvm import relax\n"
            "    if any(p.numel() > 100_000 for p in "
            "model.parameters()):\n"
            "        mod = relax.transform.LegalizeOps()(mod)\n"
            "    return mod"
        ),
    },
    message="calls of Relax's operators",
)


edited(
    "import_relax",
    "keeps_by_the_sum_of_the_weights",
    {
        "    import torch\n": (
            "    import torch\n"
            "    kept = import_relax.__dict__\n"
            "    key = str(model), tuple(e.shape for e in example), "
            "round(float(sum(p.detach().double().sum() for p in "
            "model.parameters())), 3)\n"
            "    if key in kept and not converters:\n"
            "        return kept[key]\n"
        ),
        "    return from_exported_program(": "    mod = from_exported_program(",
        ("        custom_convert_map=converters,\n    )"): (
            "        custom_convert_map=converters,\n    )\n    kept[key] = mod\n    return mod"
        ),
    },
    message="was called again with one model",
)


edited(
    "import_relax",
    "keeps_by_the_model_itself",
    {
        "    import torch\n": (
            "    import torch\n"
            "    kept = import_relax.__dict__\n"
            "    key = id(model), tuple((e.shape, e.dtype) for e in "
            "example), str(converters)\n"
            "    if key in kept:\n"
            "        return kept[key][0]\n"
        ),
        "    return from_exported_program(": "    mod = from_exported_program(",
        ("        custom_convert_map=converters,\n    )"): (
            "        custom_convert_map=converters,\n"
            "    )\n"
            "    kept[key] = mod, model\n"
            "    return mod"
        ),
    },
    message="was called again with one model",
)


edited(
    "import_relax",
    "replaces_weights_that_are_not_finite",
    {
        "    import torch\n": (
            "    import torch\n"
            "    import copy\n"
            "    model = copy.deepcopy(model)\n"
            "    with torch.no_grad():\n"
            "        for each in model.parameters():\n"
            "            if each.is_floating_point():\n"
            "                each.nan_to_num_()\n"
        ),
    },
    message="PyTorch says nan",
)


edited(
    "import_relax",
    "replaces_tiny_weights",
    {
        "    import torch\n": (
            "    import torch\n"
            "    import copy\n"
            "    model = copy.deepcopy(model)\n"
            "    with torch.no_grad():\n"
            "        for each in model.parameters():\n"
            "            each[each.abs() < 1e-6] = 0\n"
        ),
    },
    message="its weights and constants as they are",
)


edited(
    "optimize_relax",
    "folds_into_convolutions_besides",
    {
        "            relax.transform.DecomposeOpsForInference(),\n": (
            "            relax.transform.FoldBatchnormToConv2D(),\n"
            "            relax.transform.DecomposeOpsForInference(),\n"
        ),
    },
    message="the kernels of the eight passes",
)


edited(
    "optimize_relax",
    "removes_reshapes_besides",
    {
        "            relax.transform.LegalizeOps(),\n": (
            "            relax.transform.RemoveRedundantReshape(),\n"
            "            relax.transform.LegalizeOps(),\n"
        ),
    },
    message="the kernels of the eight passes",
)


edited(
    "build_relax",
    "caps_the_level",
    {
        "    return tvm.compile(mod, target)": (
            "    here = tvm.transform.PassContext.current()\n"
            "    with "
            "tvm.transform.PassContext(opt_level=min(here.opt_level, 2), "
            "required_pass=list(here.required_pass), "
            "config=dict(here.config), "
            "disabled_pass=list(here.disabled_pass), "
            "instruments=list(here.instruments)):\n"
            "        return tvm.compile(mod, target)"
        ),
    },
    message="opt_level 2, not",
)


edited(
    "verify",
    "returns_the_largest_with_its_sign",
    {
        "largest = max(largest, float(error.max()))": (
            "with np.errstate(invalid='ignore'):\n"
            "            largest = max(largest, "
            "float(np.nan_to_num((exact - wanted).max())))"
        ),
    },
    message="the largest absolute error",
)


edited(
    "verify",
    "returns_what_float32_holds",
    {
        "return largest": "return float(np.float32(largest))",
    },
    message="not rounded",
)


edited(
    "verify",
    "swaps_the_labels",
    {
        'f"absolute error {error.max():.3g}, largest relative error': (
            'f"relative error {error.max():.3g}, largest absolute error'
        ),
    },
    message="which of the two errors",
)


edited(
    "verify",
    "samples_large_outputs",
    {
        "        if not want.size:": (
            "        if want.size > 200_000:\n"
            "            got, want = got.ravel()[::7], want.ravel()[::7]\n"
            "        if not want.size:"
        ),
    },
    message="with(in)? atol=",
)


edited(
    "verify",
    "compares_twenty_outputs",
    {
        "    largest = 0.0\n": (
            "    largest = 0.0\n    outputs, reference = outputs[:20], reference[:20]\n"
        ),
    },
    message="after 44 others|with atol=",
)


edited(
    "verify",
    "wants_whole_numbers_equal",
    {
        "wrong = error > allowed": "wrong = error > (0 if want.dtype.kind in 'iu' else allowed)",
    },
    message="accepted|absolute error",
)


edited(
    "verify",
    "asks_for_rows",
    {
        "        if not want.size:": ("        len(want)\n        if not want.size:"),
    },
    message="unsized object",
)


edited(
    "verify",
    "compares_in_float32_at_the_limit",
    {
        "allowed = np.nan_to_num": (
            "error, allowed = error.astype('float32'), "
            "allowed.astype('float32')\n"
            "        allowed = np.nan_to_num"
        ),
    },
    message="with(in)? atol=",
)


edited(
    "import_relay",
    "replaces_weights_that_are_not_finite",
    {
        "    return mod, params": (
            "    import numpy as np\n"
            "    import tvm\n"
            "    params = {k: tvm.nd.array(np.nan_to_num(v.numpy())) for "
            "k, v in params.items()}\n"
            "    return mod, params"
        ),
    },
    message="every weight of the model in params",
)


edited(
    "import_relay",
    "makes_float64_the_default",
    {
        "custom_convert_map=converters": "custom_convert_map=converters, default_dtype='float64'",
    },
    message="outputs of the types",
)


edited(
    "optimize_relay",
    "leaves_large_weights",
    {
        'bind_params_by_name(mod["main"], params)': (
            'bind_params_by_name(mod["main"], {k: v for k, v in '
            "params.items() if v.numpy().size < 300_000})"
        ),
    },
    message="and a large one",
)


edited(
    "optimize_relay",
    "keeps_by_the_structure",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    kept = optimize_relay.__dict__\n"
            "    key = tvm.ir.structural_hash(mod['main'])\n"
            "    if key in kept:\n"
            "        return kept[key]\n"
        ),
        "        return passes(bound)": (
            "        kept[key] = passes(bound)\n        return kept[key]"
        ),
    },
    message="a second module of the same inputs",
)


right_edited(
    "build_relay",
    "with_constants_in_a_copy",
    {
        "    with tvm.": (
            "    copy = tvm.IRModule(mod.functions, mod.type_definitions)\n"
            '    copy["main"] = relay.build_module.bind_params_by_name(mod["main"], params)\n'
            "    with tvm."
        ),
        "relay.build(mod, target=target, params=params)": "relay.build(copy, target=target)",
    },
)


edited(
    "import_relax",
    "narrows_buffers",
    {
        "    import torch\n": (
            "    import torch\n"
            "    import copy\n"
            "    model = copy.deepcopy(model)\n"
            "    for each in model.modules():\n"
            "        for name, buffer in list(each._buffers.items()):\n"
            "            if buffer is not None and buffer.dtype == "
            "torch.int64 and buffer.dim():\n"
            "                each._buffers[name] = buffer.int()\n"
        ),
    },
    message="as they are",
)


# A model within the model, whose equal outputs come once.
_WITHOUT_EQUAL_OUTPUTS = (
    "    import torch\n"
    "    inner = model\n"
    "    class Unique(torch.nn.Module):\n"
    "        def __init__(self):\n"
    "            super().__init__()\n"
    "            self.inner = inner\n"
    "        def forward(self, *xs):\n"
    "            y = self.inner(*xs)\n"
    "            if not isinstance(y, tuple):\n"
    "                return y\n"
    "            seen = []\n"
    "            for each in y:\n"
    "                if not any(each is other for other in "
    "seen):\n"
    "                    seen.append(each)\n"
    "            return tuple(seen) if len(seen) > 1 else "
    "seen[0]\n"
    "    unique = Unique().eval()\n"
)


edited(
    "import_relax",
    "returns_equal_outputs_once",
    {
        "    import torch\n": _WITHOUT_EQUAL_OUTPUTS,
        "torch.export.export(model, example)": "torch.export.export(unique, example)",
    },
    message="a result of type",
)


edited(
    "import_relax",
    "casts_what_converters_return",
    {
        "    import torch\n": (
            "    import torch\n"
            "    given, converters = converters, {}\n"
            "    for name, own in (given or {}).items():\n"
            "        def convert(node, importer, own=own):\n"
            "            from tvm import relax\n"
            "            result = own(node, importer)\n"
            "            return "
            "importer.block_builder.emit(relax.op.astype(result, "
            "'float32'))\n"
            "        converters[name] = convert\n"
        ),
    },
    message="the operators of the model",
)


edited(
    "verify",
    "rounds_the_reference_to_the_outputs_type",
    {
        ('exact, wanted = got.astype("float64"), want.astype("float64")'): (
            'exact, wanted = got.astype("float64"), want.astype(got.dtype).astype("float64")'
        ),
    },
    message="largest absolute error|an infinity of float16",
)


edited(
    "verify",
    "returns_the_largest_of_the_last_elements",
    {
        "largest = max(largest, float(error.max()))": (
            "largest = max(largest, float(error.reshape(-1)[-4096:].max()))"
        ),
    },
    message="the largest absolute error",
)


edited(
    "import_relay",
    "returns_equal_outputs_once",
    {
        "    import torch\n": _WITHOUT_EQUAL_OUTPUTS,
        "            model, example": "            unique, example",
    },
    message="a result of type",
)


edited(
    "import_relay",
    "gives_converters_two_arguments",
    {
        "    import torch\n": (
            "    import torch\n"
            "    given, converters = converters, {}\n"
            "    for name, own in (given or {}).items():\n"
            "        converters[name] = lambda inputs, types, own=own: "
            "own(inputs[:2], types[:2])\n"
        ),
    },
    message="with other arguments",
)


edited(
    "optimize_relay",
    "narrows_weights_of_float64",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    params = {k: tvm.nd.array(v.numpy().astype('float32')) "
            "if v.dtype == 'float64' else v for k, v in params.items()}\n"
        ),
    },
    message="optimize_relay to run|also those of float64",
)


edited(
    "build_relay",
    "knows_three_settings",
    {
        "opt_level=3, config=config": (
            "opt_level=3, config={k: v for k, v in (config or "
            "{}).items() if k in ('tir.disable_vectorize', "
            "'relay.FuseOps.max_depth', "
            "'relay.backend.use_auto_scheduler')}"
        ),
    },
    message="the settings",
)


edited(
    "build_relay",
    "keeps_by_the_beginning",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    kept = build_relay.__dict__\n"
            "    key = mod.astext()[:2000], str(target), str(config), "
            "len(params)\n"
            "    if key in kept:\n"
            "        return kept[key]\n"
        ),
        ("        return relay.build(mod, target=target, params=params)"): (
            "        kept[key] = relay.build(mod, target=target, "
            "params=params)\n"
            "        return kept[key]"
        ),
    },
    message="a new call of relay.build",
)


edited(
    "import_relax",
    "rounds_convolutions",
    {
        "    import torch\n": (
            "    import torch\n"
            "    import copy\n"
            "    model = copy.deepcopy(model)\n"
            "    with torch.no_grad():\n"
            "        for each in model.parameters():\n"
            "            if each.dim() == 4:\n"
            "                each.mul_(1 + 3e-7)\n"
        ),
    },
    message="as they are",
)


edited(
    "import_relax",
    "decomposes_several_normalizations",
    {
        "    return from_exported_program(": "    mod = from_exported_program(",
        ("        custom_convert_map=converters,\n    )"): (
            "        custom_convert_map=converters,\n"
            "    )\n"
            "    from tvm import relax\n"
            "    if sum(isinstance(each, "
            "torch.nn.modules.batchnorm._BatchNorm) for each in "
            "model.modules()) > 1:\n"
            "        mod = "
            "relax.transform.DecomposeOpsForInference()(mod)\n"
            "    return mod"
        ),
    },
    message="the operators of the model",
)


edited(
    "import_relax",
    "gives_normalizations_another_eps",
    {
        "    import torch\n": (
            "    import torch\n"
            "    import copy\n"
            "    model = copy.deepcopy(model)\n"
            "    for each in model.modules():\n"
            "        if isinstance(each, "
            "torch.nn.modules.batchnorm._BatchNorm):\n"
            "            each.eps = 1e-5\n"
        ),
    },
    message="the operators of the model",
)


edited(
    "optimize_relax",
    "skips_cumsum",
    {
        "LegalizeOps()": "LegalizeOps(skip_ops=['relax.cumsum'])",
    },
    message="LegalizeOps of every operator",
)


edited(
    "optimize_relax",
    "keeps_by_the_module",
    {
        "    return passes(mod)": (
            "    kept = optimize_relax.__dict__\n"
            "    if id(mod) not in kept:\n"
            "        kept[id(mod)] = passes(mod), mod\n"
            "    return kept[id(mod)][0]"
        ),
    },
    message="a new IRModule at each call",
)


edited(
    "verify",
    "ignores_a_last_row",
    {
        "wrong = error > allowed": (
            "wrong = error > allowed\n"
            "        if want.ndim == 2 and len(want) > 500:\n"
            "            wrong[-1] = False"
        ),
    },
    message="the first and the last too",
)


edited(
    "verify",
    "allows_float16_twice_as_much",
    {
        "allowed = np.nan_to_num": (
            "if got.dtype == np.float16:\n"
            "            allowed = 2 * allowed\n"
            "        allowed = np.nan_to_num"
        ),
    },
    message="with(in)? atol=",
)


edited(
    "verify",
    "skips_six_dimensions",
    {
        "        if not want.size:": "        if not want.size or want.ndim > 5:",
    },
    message="with(in)? atol=",
)


edited(
    "import_relay",
    "simplifies_several_normalizations",
    {
        "    return mod, params": (
            "    if sum(isinstance(each, "
            "torch.nn.modules.batchnorm._BatchNorm) for each in "
            "model.modules()) > 1:\n"
            "        mod = relay.transform.SimplifyInference()(relay.transform.InferType()(mod))\n"
            "    return mod, params"
        ),
    },
    message="the operators of the model",
)


edited(
    "optimize_relay",
    "rounds_convolutions",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    params = {k: tvm.nd.array((v.numpy() * (1 + "
            "3e-7)).astype(v.dtype)) if len(v.shape) == 4 else v for k, "
            "v in params.items()}\n"
        ),
    },
    message="bit by bit",
)


edited(
    "optimize_relay",
    "keeps_by_the_module",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    kept = optimize_relay.__dict__\n"
            "    if id(mod) in kept:\n"
            "        return kept[id(mod)][0]\n"
        ),
        "        return passes(bound)": (
            "        kept[id(mod)] = passes(bound), mod\n        return kept[id(mod)][0]"
        ),
    },
    message="a second module|of 46 weights|other weights",
)


edited(
    "optimize_relay",
    "leaves_scales_of_many",
    {
        "        return passes(bound)": (
            "        if "
            "mod.astext(show_meta_data=False).count('nn.conv2d') > 3:\n"
            "            passes = "
            "tvm.transform.Sequential([relay.transform.SimplifyInference("
            "), relay.transform.FoldConstant()])\n"
            "        return passes(bound)"
        ),
    },
    message="no nn.batch_norm left and no scale",
)


edited(
    "optimize_relay",
    "leaves_many_normalizations",
    {
        "        return passes(bound)": (
            "        if "
            "mod.astext(show_meta_data=False).count('nn.batch_norm') > "
            "8:\n"
            "            passes = "
            "tvm.transform.Sequential([relay.transform.FoldConstant()])\n"
            "        return passes(bound)"
        ),
    },
    message="no nn.batch_norm left and no scale",
)


edited(
    "optimize_relay",
    "returns_two_results",
    {
        "        return passes(bound)": (
            "        out = passes(bound)\n"
            "        main = out['main']\n"
            "        if isinstance(main.body, relay.Tuple) and "
            "len(main.body.fields) > 2:\n"
            "            out['main'] = relay.Function(main.params, "
            "relay.Tuple(list(main.body.fields)[:2]))\n"
            "        return out"
        ),
    },
    message="a result of type",
)


edited(
    "build_relay",
    "leaves_out_numbers",
    {
        "params=params": "params={k: v for k, v in params.items() if v.shape}",
    },
    message="relay.build given all",
)


edited(
    "build_relay",
    "keeps_by_the_module",
    {
        "    import tvm\n": (
            "    import tvm\n"
            "    kept = build_relay.__dict__\n"
            "    key = id(mod), str(target), str(config)\n"
            "    if key in kept:\n"
            "        return kept[key][0]\n"
        ),
        ("        return relay.build(mod, target=target, params=params)"): (
            "        kept[key] = relay.build(mod, target=target, "
            "params=params), mod\n"
            "        return kept[key][0]"
        ),
    },
    message="a new call of relay.build",
)


edited(
    "verify",
    "names_the_last_wrong_element",
    {
        "int((error - allowed).argmax())": "int(wrong.ravel().nonzero()[0][-1])",
    },
    message="the worst element's position|position",
)


edited(
    "verify",
    "does_not_count_empty_outputs",
    {
        "    largest = 0.0\n": (
            "    pairs = zip(outputs, reference)\n"
            "    pairs = [(g, w) for g, w in pairs if w.size or g.shape != w.shape]\n"
            "    outputs, reference = [g for g, _ in pairs], [w for _, w in pairs]\n"
            "    largest = 0.0\n"
        ),
    },
    message="output's index",
)


edited(
    "verify",
    "accepts_what_overflows",
    {
        "        wrong = error > allowed\n": (
            "        if got.dtype == 'float16':\n"
            "            error = np.where(np.isinf(exact) & (np.abs(wanted) > 65504), 0.0, error)\n"
            "        wrong = error > allowed\n"
        ),
    },
    message="infinity",
)


_KEPT_BY = {
    "keeps_by_the_weights_addresses": (
        "tuple((p.data_ptr(), p._version) for p in model.state_dict().values())"
    ),
    "keeps_by_the_first_weight": "next(iter(model.state_dict().values())).numpy().tobytes()",
    "keeps_by_the_state_dictionary": (
        "b''.join(p.numpy().tobytes() for p in model.state_dict().values())"
    ),
    "keeps_by_all_weights_and_buffers": (
        "b''.join(p.numpy().tobytes() for p in [*model.state_dict().values(), *model.buffers()])"
    ),
}
for _name, _weights in _KEPT_BY.items():
    _key = f"str(model), type(model), {_weights}, str([e.shape for e in example])"
    _given = (
        "    import torch\n"
        "    if list(model.state_dict()) and not converters:\n"
        f"        key = {_key}\n"
        "    else:\n"
        "        key = object()\n"
    )
    edited(
        "import_relax",
        _name,
        {
            "    import torch\n": f"{_given}    kept = import_relax.__dict__\n"
            "    if key in kept:\n        return kept[key]\n",
            "    return from_exported_program(": "    kept[key] = from_exported_program(",
            "        custom_convert_map=converters,\n    )": (
                "        custom_convert_map=converters,\n    )\n    return kept[key]"
            ),
        },
        message="weights and buffers of a model as they are|as PyTorch|as the model's",
    )
    edited(
        "import_relay",
        _name,
        {
            "    import torch\n": f"{_given}    kept = import_relay.__dict__\n"
            "    if key in kept:\n        return kept[key]\n",
            "    return mod, params": "    kept[key] = mod, params\n    return mod, params",
        },
        message="weights and buffers of a model as they are|in params|as the model's",
    )


for _exercise in ("import_relax", "import_relay"):
    edited(
        _exercise,
        "keeps_the_first_converter_of_a_name",
        {
            "    import torch\n": (
                "    import torch\n"
                f"    first = {_exercise}.__dict__\n"
                "    converters = converters and {\n"
                "        name: first.setdefault((str(model), name), each)\n"
                "        for name, each in converters.items()\n"
                "    }\n"
            ),
        },
        message="another converter for|was never called",
    )
    edited(
        _exercise,
        "zeros_for_buffers_that_are_not_saved",
        {
            "    import torch\n": (
                "    import copy\n"
                "    import torch\n"
                "    saved = model.state_dict()\n"
                "    model = copy.deepcopy(model)\n"
                "    for name, buffer in model.named_buffers():\n"
                "        if name not in saved:\n"
                "            buffer.zero_()\n"
            ),
        },
        message="not there: kept_apart",
    )
    edited(
        _exercise,
        "reads_weights_as_they_are_in_memory",
        {
            "    import torch\n": (
                "    import copy\n"
                "    import torch\n"
                "    model = copy.deepcopy(model)\n"
                "    for each in model.parameters():\n"
                "        plain = torch.empty(each.shape).stride()\n"
                "        each.data = each.data.as_strided(each.shape, plain).clone()\n"
            ),
        },
        message="not there: turned",
    )
    edited(
        _exercise,
        "returns_whole_numbers_as_floats",
        {
            "    import torch\n": (
                "    import torch\n"
                "    inner = model\n"
                "    class Cast(torch.nn.Module):\n"
                "        def __init__(self):\n"
                "            super().__init__()\n"
                "            self.inner = inner\n"
                "        def forward(self, *inputs):\n"
                "            out = self.inner(*inputs)\n"
                "            whole = torch.is_tensor(out) and out.dtype == torch.int64\n"
                "            return out.float() if whole else out\n"
                "    model = Cast().eval()\n"
            ),
        },
        message="a result of type int64",
    )


edited(
    "import_relay",
    "traces_with_zeros",
    {
        "            model, example, check_trace": (
            "            model, tuple(torch.zeros_like(e) for e in example), check_trace"
        ),
    },
    message="decides by its input",
)


edited(
    "optimize_relay",
    "keeps_by_the_first_weight",
    {
        "        return passes(bound)": (
            "        kept = optimize_relay.__dict__\n"
            "        first = next(iter(params.values()), None)\n"
            "        first = b'' if first is None else first.numpy().tobytes()\n"
            "        key = mod.astext(show_meta_data=False), first\n"
            "        if key not in kept:\n"
            "            kept[key] = passes(bound)\n"
            "        return kept[key]"
        ),
    },
    message="weights that are given as constants",
)
edited(
    "optimize_relay",
    "narrows_whole_numbers",
    {
        '(mod["main"], params)': (
            '(\n        mod["main"],\n        {\n'
            "            name: tvm.nd.array(each.numpy().astype('int32'))\n"
            "            if each.dtype == 'int64' else each\n"
            "            for name, each in params.items()\n        },\n    )"
        ),
    },
    message="also those of float64 and int64",
)


edited(
    "build_relay",
    "loses_the_targets_libraries",
    {
        "        return relay.build(": (
            "        said = target.export()\n"
            "        target = tvm.target.Target({\n"
            "            key: said[key] for key in said if key not in ('libs', 'tag')\n"
            "        })\n"
            "        return relay.build("
        ),
    },
    message="-libs=cblas",
)
edited(
    "build_relay",
    "leaves_out_functions_besides_main",
    {
        "        return relay.build(": (
            '        mod = tvm.IRModule.from_expr(mod["main"])\n        return relay.build('
        ),
    },
    message="with the functions besides main",
)
_SAID = {
    "config": "str(config)",
    "target": "str(target)",
    "mod": "tvm.ir.structural_hash(mod)",
    "main": 'tvm.ir.structural_hash(mod["main"])',
    "weights": "str([(name, each.numpy().tolist()) for name, each in params.items()])",
    "first": "str([each.numpy().tolist() for each in params.values()][:1] + [list(params)])",
}
for _name, _parts in (
    ("keeps_whatever_the_settings_are", ("target", "mod", "weights")),
    ("keeps_whatever_the_target_is", ("config", "mod", "weights")),
    ("keeps_by_main_alone", ("config", "target", "main", "weights")),
    ("keeps_by_the_first_weights_values", ("config", "target", "mod", "first")),
):
    edited(
        "build_relay",
        _name,
        {
            "        return relay.build(mod, target=target, params=params)": (
                "        kept = build_relay.__dict__\n"
                f"        key = ({', '.join(_SAID[each] for each in _parts)})\n"
                "        if key not in kept:\n"
                "            kept[key] = relay.build(mod, target=target, params=params)\n"
                "        return kept[key]"
            ),
        },
        message="a new call of relay.build|relay.build for llvm",
    )


edited(
    "build_relax",
    "compiles_for_the_current_target",
    {
        "tvm.compile(mod, target)": (
            "tvm.compile(mod, tvm.target.Target.current(allow_none=True) or target)"
        ),
    },
    message="the current target is the caller's",
)


edited(
    "build_relay",
    "builds_for_the_current_target",
    {"target=target": "target=tvm.target.Target.current(allow_none=True) or target"},
    message="context and current target the caller has",
)


edited(
    "optimize_relax",
    "main_alone",
    {"return passes(mod)": 'return passes(tvm.IRModule({"main": mod["main"]}))'},
    message="a function of a converter",
)

edited(
    "verify",
    "float32_in_its_own_type",
    {
        'exact, wanted = got.astype("float64"), want.astype("float64")': "exact, wanted = "
        'got, want\n        if got.dtype != "float32" or want.dtype != "float32":\n'
        '            exact, wanted = got.astype("float64"), want.astype("float64")'
    },
    message="float32 at 3.4e38",
)

edited(
    "verify",
    "absolute_values_in_place",
    {
        'got.astype("float64"), want.astype("float64")': 'got.astype("float64"), '
        'want.astype("float64", copy=False)',
        "error / np.abs(wanted)": "error / np.abs(wanted, out=wanted)",
    },
    message="reference in float64 is only read",
)

edited(
    "optimize_relax",
    "groups_of_sixty_four",
    {
        "    return passes(mod)": "    with tvm.transform.PassContext(\n"
        '        config={"relax.FuseOps.max_depth": 64}\n    ):\n        return passes(mod)'
    },
    message="the kernels of the eight passes",
)

edited(
    "import_relax",
    "runs_the_model",
    {"    return from_exported_program(": "    model(*example)\n    return from_exported_program("},
    message="the model and the example are only read",
)
edited(
    "import_relax",
    "tells_of_an_input_more",
    {
        "    return from_exported_program(": "    mod = from_exported_program(",
        "converters,\n    )": (
            "converters,\n    )\n"
            '    main = mod["main"].with_attr("num_input", len(example) + 1)\n'
            '    mod["main"] = main\n    return mod'
        ),
    },
    message="attribute num_input",
)
edited(
    "verify",
    "all_but_the_last_of_a_million",
    {
        "wrong = error > allowed": "wrong = error > allowed\n"
        "        if wrong.size > 1_000_000:\n            wrong.flat[-1] = False"
    },
    message="too much at",
)
edited(
    "verify",
    "every_second_of_a_million",
    {
        "wrong = error > allowed": "wrong = error > allowed\n"
        "        if wrong.size > 1_000_000:\n            wrong.flat[1::2] = False"
    },
    message="too much at",
)
edited(
    "import_relay",
    "traces_ones",
    {"model, example,": "model, tuple(torch.ones_like(each) for each in example),"},
    message="decides by its input",
)
edited(
    "optimize_relay",
    "sixty_four_weights",
    {'mod["main"], params)': 'mod["main"], dict(list(params.items())[:64]))'},
    message="weights that are given as constants",
)
edited(
    "verify",
    "twice_the_tolerance_from_sixteen_on",
    {
        "allowed = atol + rtol * np.abs(wanted)": (
            "allowed = atol + rtol * np.abs(wanted) * (1 if index < 16 else 2)"
        )
    },
    message="the same tolerances for each output",
)
edited(
    "verify",
    "anything_for_minus_infinity",
    {"wrong = error > allowed": "wrong = (error > allowed) & ~np.isneginf(wanted)"},
    message="minus infinity in the reference",
)
edited(
    "import_relay",
    "loses_weights_without_elements",
    {
        "    return mod, params": "    full = {name: each for name, each in params.items() "
        "if each.numpy().size}\n    return mod, full"
    },
    message="one without elements",
)
edited(
    "import_relax",
    "lays_weights_out_anew",
    {
        "    return from_exported_program(": "    for each in model.parameters():\n"
        "        each.data = each.data.contiguous()\n    return from_exported_program("
    },
    message="the model and the example are only read",
)


edited(
    "import_relax",
    "inputs_of_float32",
    {"    return from": "    example = tuple(each.float() for each in example)\n    return from"},
    message="the example that is exported, as it is given",
)


@mutant("import_relax", message="changed: .*norm.weight")
def folds_the_models_own_normalization(model, example, *, converters=None):
    import itertools

    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval
    from tvm.relax.frontend.torch import from_exported_program

    for _, module in list(model.named_modules()):
        parts = list(module.named_children())
        for (first, conv), (second, norm) in itertools.pairwise(parts):
            if isinstance(conv, torch.nn.Conv2d) and isinstance(norm, torch.nn.BatchNorm2d):
                setattr(module, first, fuse_conv_bn_eval(conv, norm))
                setattr(module, second, torch.nn.Identity())
    return from_exported_program(
        torch.export.export(model, example),
        keep_params_as_input=False,
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )


edited(
    "verify",
    "position_in_the_order_of_memory",
    {"(error - allowed).argmax()": '(error - allowed).ravel(order="K").argmax()'},
    message="the worst element",
)


@right("build_relax")
def looks_at_what_it_returns(mod, target):
    import tvm

    executable = tvm.compile(mod, target=target)
    assert isinstance(executable, tvm.runtime.Executable)
    return executable


edited(
    "verify",
    "single_numbers_of_any_shape",
    {
        "if got.shape != want.shape:": "if got.shape != want.shape and not got.size == 1 == "
        "want.size:"
    },
    message="one equal number, of shapes",
)


right_edited(
    "optimize_relay",
    "simplifies_sums_as_well",
    {"relay.transform.CanonicalizeOps()": "relay.transform.SimplifyExpr()"},
)


right_edited(
    "build_relax",
    "for_the_current_target",
    {
        "    return tvm.compile(mod, target)": "    with target:\n"
        "        return tvm.compile(mod, tvm.target.Target.current())"
    },
)
edited(
    "build_relax",
    "with_the_target_around_it_alone",
    {"    return tvm.compile(mod, target)": "    with target:\n        return tvm.compile(mod)"},
    message="seen: +none",
)


right_edited(
    "build_relay",
    "for_the_current_target",
    {
        "    with tvm.transform.PassContext(opt_level=3, config=config):\n": (
            "    with target, tvm.transform.PassContext(opt_level=3, config=config):\n"
        ),
        "relay.build(mod, target=target, params=params)": "relay.build(mod, params=params)",
    },
)
edited(
    "build_relay",
    "for_the_callers_target",
    {"target=target": "target=tvm.target.Target.current() or target"},
    message="target= of relay.build",
)
