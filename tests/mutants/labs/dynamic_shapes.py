"""Wrong solutions of lab 4."""

from tests.mutants import edited, mutant, right, right_edited


@mutant("symbolic_matmul", message=r"n is one tirx.Var")
def takes_64_rows(k, m):
    from tvm import relax, te

    def product(A, B):
        r = te.reduce_axis((0, k), name="k")
        return te.compute((A.shape[0], m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")

    a = relax.Var("A", relax.TensorType((64, k), "float32"))
    b = relax.Var("B", relax.TensorType((k, m), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [a, b]):
        builder.emit_func_output(builder.emit_te(product, a, b))
    return builder.get()


@mutant("symbolic_matmul", message="one PrimFunc with call_tir")
def leaves_a_relax_operator(k, m):
    from tvm import relax, tirx

    n = tirx.Var("n", "int64")
    a = relax.Var("A", relax.TensorType((n, k), "float32"))
    b = relax.Var("B", relax.TensorType((k, m), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [a, b]):
        builder.emit_func_output(builder.emit(relax.op.matmul(a, b)))
    return builder.get()


@mutant("symbolic_matmul", message="the axis of te.sum")
def skips_the_last_of_the_sum(k, m):
    from tvm import relax, te, tirx

    def product(A, B):
        r = te.reduce_axis((0, k - 1), name="k")
        return te.compute((A.shape[0], m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")

    n = tirx.Var("n", "int64")
    a = relax.Var("A", relax.TensorType((n, k), "float32"))
    b = relax.Var("B", relax.TensorType((k, m), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [a, b]):
        builder.emit_func_output(builder.emit_te(product, a, b))
    return builder.get()


@mutant("schedule_dynamic", message="pad_einsum")
def splits_with_guards(schedule, block, rows, columns):
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.parallel(i_outer)
    schedule.unroll(i_inner)
    schedule.vectorize(j_inner)
    schedule.decompose_reduction(block, k)


@mutant("schedule_dynamic", message="get_producers")
def copies_all_of_a_first(schedule, block, rows, columns):
    schedule.pad_einsum(block, [rows, 1, 1])
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.parallel(i_outer)
    schedule.unroll(i_inner)
    schedule.vectorize(j_inner)
    schedule.decompose_reduction(block, k)


@mutant("schedule_dynamic", message=r"i_outer parallel\(of n\) > j_outer serial")
def parallel_over_the_columns(schedule, block, rows, columns):
    schedule.pad_einsum(block, [rows, 1, 1])
    (padding,) = schedule.get_producers(block)
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.compute_at(padding, i_outer)
    schedule.parallel(j_outer)
    schedule.unroll(i_inner)
    schedule.vectorize(j_inner)
    schedule.decompose_reduction(block, k)


@mutant("schedule_dynamic", message="decompose_reduction is|decompose_reduction first|the order")
def decomposes_first(schedule, block, rows, columns):
    schedule.pad_einsum(block, [rows, 1, 1])
    (padding,) = schedule.get_producers(block)
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.decompose_reduction(block, k)
    schedule.compute_at(padding, i_outer)
    schedule.parallel(i_outer)
    schedule.unroll(i_inner)
    schedule.vectorize(j_inner)


@mutant("schedule_dynamic", message="(?s)nothing is written past row.*loses its bound")
def inlines_the_copy_to_c(schedule, block, rows, columns):
    schedule.pad_einsum(block, [rows, 1, 1])
    (padding,) = schedule.get_producers(block)
    (crop,) = schedule.get_consumers(block)
    write_back = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_inline(crop)
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.compute_at(padding, i_outer)
    schedule.reverse_compute_at(write_back, j_outer)
    schedule.parallel(i_outer)
    schedule.unroll(i_inner)
    schedule.vectorize(j_inner)
    schedule.decompose_reduction(block, k)


@mutant("import_dynamic", message="a symbol for each name")
def imports_the_example_s_shape(model, example, axes, bounds):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    exported = torch.export.export(model, example)
    return from_exported_program(exported, unwrap_unit_return_tuple=True)


@mutant("import_dynamic", message="(?s)batch 1.*repeat_interleave")
def does_not_repeat_an_extent_of_1(model, example, axes, bounds):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    dims = {name: torch.export.Dim(name, min=1, max=most) for name, most in bounds.items()}
    shapes = tuple({axis: dims[name] for axis, name in named.items()} for named in axes)
    exported = torch.export.export(model, example, dynamic_shapes=shapes)
    return from_exported_program(exported, unwrap_unit_return_tuple=True)


@mutant("import_dynamic", message=r"torch.export.Dim\(name, min=1, max=bound\)")
def forgets_the_bounds(model, example, axes, bounds):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    dims = {name: torch.export.Dim(name, min=1) for name in bounds}
    tensors = list(example)
    for index, named in enumerate(axes):
        for axis in named:
            if tensors[index].shape[axis] == 1:
                tensors[index] = tensors[index].repeat_interleave(2, dim=axis)
    shapes = tuple({axis: dims[name] for axis, name in named.items()} for named in axes)
    exported = torch.export.export(model, tuple(tensors), dynamic_shapes=shapes)
    return from_exported_program(exported, unwrap_unit_return_tuple=True)


edited(
    "import_dynamic",
    "repeats_one_axis_of_two",
    {"dim=axis)": "dim=axis)\n                break"},
    message="(?s)batch 1 and length 1.*repeat_interleave",
)
edited(
    "import_dynamic",
    "extents_from_two",
    {"min=1": "min=2"},
    message="extents from 1 to the bounds",
)


@mutant("import_dynamic", message="unwrap_unit_return_tuple")
def returns_a_tuple_of_one(model, example, axes, bounds):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    dims = {name: torch.export.Dim(name, min=1, max=most) for name, most in bounds.items()}
    tensors = list(example)
    for index, named in enumerate(axes):
        for axis in named:
            if tensors[index].shape[axis] == 1:
                tensors[index] = tensors[index].repeat_interleave(2, dim=axis)
    shapes = tuple({axis: dims[name] for axis, name in named.items()} for named in axes)
    exported = torch.export.export(model, tuple(tensors), dynamic_shapes=shapes)
    return from_exported_program(exported)


@mutant("plan_memory", message="with_attr")
def ignores_the_bounds(mod, bounds=None):
    import tvm
    from tvm import relax

    marked = mod.clone()
    marked["main"] = mod["main"].without_attr("tir_var_upper_bound")
    passes = [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
    ]
    return tvm.transform.Sequential(passes)(marked)


@mutant("plan_memory", message="without_attr")
def keeps_a_bound_it_was_not_given(mod, bounds=None):
    import tvm
    from tvm import relax

    marked = mod.clone()
    if bounds is not None:
        marked["main"] = mod["main"].with_attr("tir_var_upper_bound", dict(bounds))
    passes = [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
    ]
    return tvm.transform.Sequential(passes)(marked)


@mutant("plan_memory", message="storages of constant size, used in turns")
def does_not_plan(mod, bounds=None):
    import tvm
    from tvm import relax

    marked = mod.clone()
    if bounds is None:
        marked["main"] = mod["main"].without_attr("tir_var_upper_bound")
    else:
        marked["main"] = mod["main"].with_attr("tir_var_upper_bound", dict(bounds))
    passes = [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
    ]
    return tvm.transform.Sequential(passes)(marked)


@mutant("plan_memory", message="KillAfterLastUse, as the last pass")
def never_gives_back(mod, bounds=None):
    import tvm
    from tvm import relax

    marked = mod.clone()
    if bounds is None:
        marked["main"] = mod["main"].without_attr("tir_var_upper_bound")
    else:
        marked["main"] = mod["main"].with_attr("tir_var_upper_bound", dict(bounds))
    passes = [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
        relax.transform.LowerAllocTensor(),
    ]
    return tvm.transform.Sequential(passes)(marked)


@mutant("plan_memory", message="mod is left as it was")
def marks_in_place(mod, bounds=None):
    import tvm
    from tvm import relax

    if bounds is None:
        mod["main"] = mod["main"].without_attr("tir_var_upper_bound")
    else:
        mod["main"] = mod["main"].with_attr("tir_var_upper_bound", dict(bounds))
    passes = [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
    ]
    return tvm.transform.Sequential(passes)(mod)


@mutant("verify_over_range", message="every corner of the range")
def tries_random_shapes_only(run, reference, draw, bounds, *, tolerance=1e-4):
    import random

    import numpy as np

    errors = {}
    for _ in range(20):
        shape = tuple(random.randint(2, bound - 1) for bound in bounds)
        inputs = draw(*shape)
        got, want = run(*inputs), reference(*inputs)
        error = float(np.abs(got - want).max())
        if got.shape != want.shape or not error <= tolerance:
            raise ValueError(f"wrong at {shape}")
        errors[shape] = error
    return errors


@mutant("verify_over_range", message="NaN is never right")
def lets_nan_pass(run, reference, draw, bounds, *, tolerance=1e-4):
    import itertools
    import math
    import random

    import numpy as np

    shapes = set(itertools.product(*((1, bound) for bound in bounds)))
    primes = [
        [p for p in range(3, b) if all(p % d for d in range(2, math.isqrt(p) + 1))] for b in bounds
    ]
    shapes.add(tuple(random.choice(each) for each in primes))
    for _ in range(8):
        shapes.add(tuple(random.randint(1, bound) for bound in bounds))
    errors = {}
    for shape in sorted(shapes):
        inputs = draw(*shape)
        got, want = run(*inputs), reference(*inputs)
        if got.shape != want.shape:
            raise ValueError(f"at {shape} the output has shape {got.shape}, not {want.shape}")
        error = float(np.abs(got - want).max())
        if error > tolerance:
            raise ValueError(f"at {shape} the largest error is {error:.3g}")
        errors[shape] = error
    return errors


@mutant("verify_over_range", message="(?s)one element in place of all.*shapes first")
def broadcasts_what_is_too_small(run, reference, draw, bounds, *, tolerance=1e-4):
    import itertools
    import math
    import random

    import numpy as np

    shapes = set(itertools.product(*((1, bound) for bound in bounds)))
    primes = [
        [p for p in range(3, b) if all(p % d for d in range(2, math.isqrt(p) + 1))] for b in bounds
    ]
    shapes.add(tuple(random.choice(each) for each in primes))
    for _ in range(8):
        shapes.add(tuple(random.randint(1, bound) for bound in bounds))
    errors = {}
    for shape in sorted(shapes):
        inputs = draw(*shape)
        error = float(np.abs(run(*inputs) - reference(*inputs)).max())
        if not error <= tolerance:
            raise ValueError(f"at {shape} the largest error is {error:.3g}")
        errors[shape] = error
    return errors


@mutant("verify_over_range", message="other random shapes at each call")
def draws_the_same_each_time(run, reference, draw, bounds, *, tolerance=1e-4):
    import itertools
    import math
    import random

    import numpy as np

    drawn = random.Random(0)
    shapes = set(itertools.product(*((1, bound) for bound in bounds)))
    primes = [
        [p for p in range(3, b) if all(p % d for d in range(2, math.isqrt(p) + 1))] for b in bounds
    ]
    shapes.add(tuple(drawn.choice(each) for each in primes))
    for _ in range(8):
        shapes.add(tuple(drawn.randint(1, bound) for bound in bounds))
    errors = {}
    for shape in sorted(shapes):
        inputs = draw(*shape)
        got, want = run(*inputs), reference(*inputs)
        if got.shape != want.shape:
            raise ValueError(f"at {shape} the output has shape {got.shape}, not {want.shape}")
        error = float(np.abs(got - want).max())
        if not error <= tolerance:
            raise ValueError(f"at {shape} the largest error is {error:.3g}")
        errors[shape] = error
    return errors


@mutant("bucketed", message="the smallest bucket")
def takes_the_longest(artifacts, x):
    import numpy as np

    batch, length, width = x.shape
    bucket = max(artifacts)
    if length > bucket:
        raise ValueError(f"length {length} is above the longest bucket, {bucket}")
    padded = np.zeros((batch, bucket, width), "float32")
    keep = np.zeros((batch, bucket), "float32")
    padded[:, :length], keep[:, :length] = x, 1
    return artifacts[bucket](padded, keep)[:, :length]


@mutant("bucketed", message="keep: 1 for the first tokens")
def keeps_the_padding(artifacts, x):
    import numpy as np

    batch, length, width = x.shape
    fitting = [bucket for bucket in artifacts if bucket >= length]
    if not fitting:
        raise ValueError(f"length {length} is above the longest bucket, {max(artifacts)}")
    bucket = min(fitting)
    padded = np.zeros((batch, bucket, width), "float32")
    padded[:, :length] = x
    return artifacts[bucket](padded, np.ones((batch, bucket), "float32"))[:, :length]


@mutant("bucketed", message="and the cut")
def does_not_cut(artifacts, x):
    import numpy as np

    batch, length, width = x.shape
    fitting = [bucket for bucket in artifacts if bucket >= length]
    if not fitting:
        raise ValueError(f"length {length} is above the longest bucket, {max(artifacts)}")
    bucket = min(fitting)
    padded = np.zeros((batch, bucket, width), "float32")
    keep = np.zeros((batch, bucket), "float32")
    padded[:, :length], keep[:, :length] = x, 1
    return artifacts[bucket](padded, keep)


@mutant("bucketed", message="the case in which no bucket is long enough")
def truncates_what_is_too_long(artifacts, x):
    import numpy as np

    batch, length, width = x.shape
    bucket = min([b for b in artifacts if b >= length] or [max(artifacts)])
    length = min(length, bucket)
    padded = np.zeros((batch, bucket, width), "float32")
    keep = np.zeros((batch, bucket), "float32")
    padded[:, :length], keep[:, :length] = x[:, :length], 1
    return artifacts[bucket](padded, keep)[:, :length]


@mutant("bucketed", message="float64 unless it is given")
def pads_in_float64(artifacts, x):
    import numpy as np

    batch, length, width = x.shape
    fitting = [bucket for bucket in artifacts if bucket >= length]
    if not fitting:
        raise ValueError(f"length {length} is above the longest bucket, {max(artifacts)}")
    bucket = min(fitting)
    padded = np.zeros((batch, bucket, width))
    keep = np.zeros((batch, bucket))
    padded[:, :length], keep[:, :length] = x, 1
    return artifacts[bucket](padded, keep)[:, :length]


edited(
    "plan_memory",
    "hands_bounds_on_as_they_are",
    {"dict(bounds))": "bounds)"},
    message="to take any mapping for bounds(.|\n)*dict\\(bounds\\)",
)
edited(
    "schedule_dynamic",
    "asks_for_the_copy_by_name",
    {"schedule.get_producers(block)": '[schedule.get_sblock("A_pad")]'},
    message=r"schedule.get_producers\(block\): a block is named after its tensor",
)
edited(
    "verify_over_range",
    "mean_for_largest",
    {"float(np.abs(got - want).max())": "float(np.abs(got - want).mean())"},
    message="the largest of",
)
edited(
    "verify_over_range",
    "two_symbols_only",
    {"for bound in bounds)))": "for bound in bounds[:2])))"},
    message="expected: ",
)
right_edited(
    "schedule_dynamic",
    "the_only_copy",
    {
        "copies = schedule.get_producers(block)": "(copy,) = schedule.get_producers(block)",
        "    for copy in copies:\n        schedule": "    schedule",
    },
)
edited(
    "schedule_dynamic",
    "copies_for_each_tile_of_columns",
    {"compute_at(copy, i_outer)": "compute_at(copy, j_outer)"},
    message="one tile's rows at a time",
)
edited(
    "verify_over_range",
    "primes_left_to_chance",
    {"    shapes.add(tuple(random.choice(each) for each in primes))\n": ""},
    message="primes above 2",
)
edited(
    "verify_over_range",
    "half_of_the_range",
    {"random.randint(1, bound)": "random.randint(1, bound // 2)"},
    message="from the whole range",
)
edited(
    "bucketed",
    "repeats_the_last_token",
    {"padded[:, :length], keep": "padded[:] = x[:, -1:]\n    padded[:, :length], keep"},
    message="then zeros",
)
edited(
    "bucketed",
    "pads_before_the_first_token",
    {
        "padded[:, :length], keep[:, :length]": "padded[:, -length:], keep[:, -length:]",
        "(padded, keep)[:, :length]": "(padded, keep)[:, -length:]",
    },
    message="zeros after its last token",
)
edited(
    "bucketed",
    "the_first_that_fits",
    {"bucket = min(fitting)": "bucket = fitting[0]"},
    message="the smallest bucket",
)
edited(
    "bucketed",
    "the_last_that_fits",
    {"bucket = min(fitting)": "bucket = fitting[-1]"},
    message="the smallest bucket",
)
edited(
    "import_dynamic",
    "leaves_the_model_in_training",
    {"    exported = torch": "    model.train()\n    exported = torch"},
    message="stays in eval mode",
)
edited(
    "import_dynamic",
    "names_each_axis_anew",
    {
        "{axis: dimensions[name] for axis, name in named.items()}": "{axis: torch.export.Dim("
        'f"{name}_{axis}", min=1, max=bounds[name]) for axis, name in named.items()}'
    },
    message="on each of its axes",
)
edited(
    "import_dynamic",
    "changes_the_example",
    {
        "tensors[index] = tensors[index].repeat_interleave(2, dim=axis)": "tensors[index].resize_("
        "[2 if a == axis else s for a, s in enumerate(tensors[index].shape)]).zero_()"
    },
    message="the example's tensors stay",
)
edited(
    "plan_memory",
    "one_bound_for_all",
    {"dict(bounds)": "dict.fromkeys(bounds, 64)"},
    message="the bound: the one given",
)
edited(
    "plan_memory",
    "the_first_bound_alone",
    {"dict(bounds)": "dict(list(bounds.items())[:1])"},
    message="the bounds of all symbols",
)
edited(
    "verify_over_range",
    "takes_the_error_relative",
    {"np.abs(got - want)": "(np.abs(got - want) / np.maximum(np.abs(want), 1))"},
    message="the error is absolute",
)
edited(
    "verify_over_range",
    "stops_below_the_bound",
    {"random.randint(1, bound)": "random.randint(1, bound - 1)"},
    message=r"(?s)both ends of the range.*no shape \(4, n\)",
)
edited(
    "verify_over_range",
    "begins_at_two",
    {"random.randint(1, bound)": "random.randint(2, bound)"},
    message=r"(?s)both ends of the range.*no shape \(1, n\)",
)
edited(
    "verify_over_range",
    "draws_one_extent_for_all",
    {
        "tuple(random.randint(1, bound) for bound in bounds)": "(random.randint(1, min(bounds)),)"
        " * len(bounds)"
    },
    message="an extent of its own drawn for each symbol",
)
edited(
    "verify_over_range",
    "half_the_tolerance",
    {"error <= tolerance": "error <= tolerance / 2"},
    message="an error of 0.09 passes",
)
edited(
    "verify_over_range",
    "names_the_error_alone",
    {'f"at {shape} the largest error is': 'f"the largest error is'},
    message="names the shape at which the output is wrong",
)
edited(
    "bucketed",
    "names_the_last_bucket",
    {"{max(artifacts)}": "{list(artifacts)[-1]}"},
    message="the longest bucket",
)
edited(
    "plan_memory",
    "leaves_purity_to_be_checked",
    {"            relax.transform.RemovePurityChecking(),\n": ""},
    message="relax.force_pure",
)


edited(
    "schedule_dynamic", "eight_rows_at_most",
    {"    schedule.pad_einsum": "    rows = min(rows, 8)\n    schedule.pad_einsum"},
    message="i_inner unrolled",
)  # fmt: skip
edited(
    "import_dynamic", "up_to_512", {"max=most": "max=min(most, 512)"},
    message="the attribute tir_var_upper_bound with",
)  # fmt: skip
edited(
    "plan_memory", "adds_to_the_bounds_of_an_import",
    {"dict(bounds)": "{**dict((main.attrs or {}).get('tir_var_upper_bound', {})), **bounds}"},
    message="with a bound for n only",
)  # fmt: skip
edited(
    "verify_over_range", "draws_on_the_diagonal",
    {"        shapes.add(tuple(random.randint(1, bound) for bound in bounds))":
     "        share = random.random()\n"
     "        shapes.add(tuple(1 + int(share * bound) for bound in bounds))"},
    message="even with few of the first",
)  # fmt: skip
edited(
    "verify_over_range", "odd_is_prime",
    {"all(number % divisor for divisor in range(2, math.isqrt(number) + 1))": "number % 2 == 1"},
    message="primes above 2 and below",
)  # fmt: skip
edited(
    "verify_over_range", "refuses_the_tolerance_itself", {"error <= tol": "error < tol"},
    message="an error of just 0.5 passes",
)  # fmt: skip
edited(
    "verify_over_range", "skips_nan_beside_numbers", {"np.abs(got - want).max()":
     "np.nanmax(np.abs(got - want))"},
    message="NaN in one element",
)  # fmt: skip
edited(
    "verify_over_range", "compares_sizes_for_shapes", {"got.shape != want.shape":
     "got.size != want.size"},
    message="a column in place of a row",
)  # fmt: skip
edited(
    "verify_over_range", "says_one_shape",
    {"has shape {got.shape}, not {want.shape}": "has another shape"},
    message="names the two output shapes",
)  # fmt: skip
edited(
    "verify_over_range", "says_no_error",
    {"the largest error is {error:.3g}, above": "it is above"},
    message="names the error",
)  # fmt: skip
edited(
    "bucketed", "takes_zeros_for_padding",
    {"padded[:, :length], keep[:, :length] = x, 1":
     "padded[:, :length] = x\n    keep[:] = (padded != 0).any(axis=2)"},
    message="the output for length",
)  # fmt: skip
edited(
    "bucketed", "pads_with_what_was_there",
    {"    padded = np.zeros((batch, bucket, width), \"float32\")":
     "    kept = bucketed.__dict__.setdefault('kept', {})\n"
     "    padded = np.zeros((batch, bucket, width), \"float32\")\n"
     "    padded = kept.setdefault(padded.shape, padded)"},
    message="the tokens that the artifact is given",
)  # fmt: skip
edited(
    "bucketed", "rounds_in_place",
    {"    padded[:, :length]": "    x[abs(x) < 1e-4] = 0\n    padded[:, :length]"},
    message="x",
)  # fmt: skip


edited(
    "symbolic_matmul",
    "turns_a_square_matrix",
    {"B[r, j]": "(B[j, r] if k == m else B[r, j])"},
    message="the axis of te.sum",
)
edited(
    "symbolic_matmul",
    "bounds_its_symbol",
    {
        "return builder.get()": (
            "mod = builder.get()\n"
            "    mod['main'] = mod['main'].with_attr('tir_var_upper_bound', {'n': "
            "1024})\n"
            "    return mod"
        )
    },
    message="main for any n",
)
edited(
    "schedule_dynamic",
    "vectorizes_wide_tiles_only",
    {"schedule.vectorize(j_inner)": ("if columns >= 8:\n        schedule.vectorize(j_inner)")},
    message="vectorized\\(2|vectorized\\(4",
)
edited(
    "verify_over_range",
    "skips_shapes_that_fail",
    {
        "got, want = run(*inputs), reference(*inputs)": (
            "try:\n"
            "            got, want = run(*inputs), reference(*inputs)\n"
            "        except Exception:\n"
            "            continue"
        )
    },
    message="an artifact that fails",
)
edited(
    "verify_over_range",
    "seeds_the_next_call",
    {"    errors = {}": ("    random.seed(len(bounds))\n    errors = {}")},
    message="the same shapes twice",
)
edited(
    "verify_over_range",
    "names_one_of_the_shapes",
    {"has shape {got.shape}, not {want.shape}": "has shape {got.shape}"},
    message="the two output shapes",
)
edited(
    "bucketed",
    "remembers_buckets",
    {
        "fitting = [bucket for bucket in artifacts if bucket >= length]": (
            "import inspect\n"
            "    known = globals().setdefault('_buckets', sorted(artifacts))\n"
            "    fitting = [bucket for bucket in known if bucket >= length]"
        )
    },
    message="after calls with other buckets|bucketed to run",
)
right_edited(
    "bucketed",
    "passes_on_what_fits",
    {
        "    padded = np.zeros": (
            "    if bucket == length:\n"
            "        return artifacts[bucket](x, np.ones((batch, length), 'float32'))\n"
            "    padded = np.zeros"
        )
    },
)


edited(
    "schedule_dynamic",
    "sixteen_rows_unrolled_at_most",
    {"    schedule.unroll(i_inner)\n": "    if rows <= 16:\n        schedule.unroll(i_inner)\n"},
    message="i_inner unrolled",
)
edited(
    "symbolic_matmul",
    "sums_in_float64",
    {"A[i, r] * B[r, j]": 'A[i, r].astype("float64") * B[r, j].astype("float64")'},
    message="the result in float32",
)
edited(
    "plan_memory",
    "one_bound_for_all",
    {"dict(bounds)": "{name: max(bounds.values()) for name in bounds}"},
    message="each with its own",
)
edited(
    "verify_over_range",
    "draws_seven",
    {"range(8)": "range(7)"},
    message="at least eight drawn at random",
)
edited(
    "verify_over_range",
    "turns_exceptions_into_errors_of_its_own",
    {
        "        got, want = run(*inputs), reference(*inputs)": "        try:\n"
        "            got, want = run(*inputs), reference(*inputs)\n"
        "        except Exception as error:\n"
        '            raise ValueError(f"at {shape}: {error}") from error'
    },
    message="as it was raised",
)
edited(
    "verify_over_range",
    "one_error_for_all_shapes",
    {"return errors": "return {shape: max(errors.values()) for shape in errors}"},
    message="its own, not rounded and not another shape's",
)
edited(
    "verify_over_range",
    "drops_small_errors",
    {"errors[shape] = error": "errors[shape] = 0.0 if error < 1e-7 else error"},
    message="its own, not rounded and not another shape's",
)
edited(
    "plan_memory",
    "bounds_of_the_call_before",
    {
        '    main = mod["main"]': "    global _last\n"
        '    bounds = _last = bounds if bounds is not None else globals().get("_last")\n'
        '    main = mod["main"]'
    },
    message="without bounds",
)
edited(
    "plan_memory",
    "bounds_up_to_64",
    {"dict(bounds)": "{name: min(most, 64) for name, most in bounds.items()}"},
    message="the bound: the one given",
)
edited(
    "bucketed",
    "gives_doubles",
    {"(padded, keep)[:, :length]": '(padded, keep)[:, :length].astype("float64")'},
    message="as the artifact returns it, float32",
)
edited(
    "bucketed",
    "keeps_the_padding_of_large_batches",
    {"keep[:, :length] = x, 1": "keep[:, :length] = x, 1\n    if batch > 4:\n        keep[1:] = 1"},
    message="keep: 1 for the first tokens",
)
edited(
    "import_dynamic",
    "keeps_the_first_of_a_class",
    {
        "    return from_exported_program(exported, unwrap_unit_return_tuple=True)": (
            "    made = from_exported_program(exported, unwrap_unit_return_tuple=True)\n"
            "    name = type(model).__name__, *bounds.values()\n"
            "    return import_dynamic.__dict__.setdefault(name, made)"
        )
    },
    message="the weights of the model of this call",
)


edited(
    "verify_over_range",
    "subtracts_in_float32",
    {"np.abs(got - want).max()": "np.abs(got.astype('float32') - want.astype('float32')).max()"},
    message="the arrays' own type",
)
edited(
    "bucketed",
    "takes_the_longest_from_64_on",
    {"bucket = min(fitting)": "bucket = min(fitting) if min(fitting) < 64 else max(fitting)"},
    message="however long that is",
)


edited(
    "schedule_dynamic",
    "pads_to_four_rows_at_least",
    {"[rows, 1, 1]": "[max(rows, 4), 1, 1]"},
    message="the sum runs without a condition",
)
edited(
    "import_dynamic",
    "from_two_on_if_the_bound_is_three",
    {"min=1,": "min=1 if most > 3 else 2,"},
    message="extents from 1 to the bounds",
)
edited(
    "symbolic_matmul",
    "sums_of_at_most_1024",
    {"(0, k)": "(0, min(k, 1024))"},
    message="the axis of te.sum",
)


edited(
    "import_dynamic",
    "weights_of_three_names_as_inputs",
    {
        "unwrap_unit_return_tuple=True": (
            "unwrap_unit_return_tuple=True, keep_params_as_input=len(bounds) > 2"
        )
    },
    message="one tensor of three symbols",
)


edited(
    "verify_over_range",
    "zeros_for_the_later_shapes",
    {
        "inputs = draw(*shape)": (
            "inputs = draw(*shape)\n"
            "        inputs = tuple(np.ascontiguousarray(each) for each in "
            "inputs)\n"
            "        inputs[0][...] = 0 if len(errors) > 12 else inputs[0]"
        )
    },
    message="the arrays that draw",
)


edited(
    "bucketed",
    "the_longest_for_many_sequences",
    {"bucket = min(fitting)": "bucket = min(fitting) if batch < 8 else max(fitting)"},
    message="goes once through bucket",
)


edited(
    "schedule_dynamic",
    "copies_a_before_for_many_rows",
    {
        "        schedule.compute_at(copy, i_outer)\n": (
            "        if rows < 64:\n            schedule.compute_at(copy, i_outer)\n"
        )
    },
    message="A is copied inside i_outer",
)


edited(
    "bucketed",
    "does_not_keep_nan",
    {
        "padded[:, :length], keep[:, :length] = x, 1": (
            "padded[:, :length], keep[:, :length] = x, np.abs(x).sum(axis=-1) >= 0"
        )
    },
    message="keep for tokens of nan",
)


edited(
    "bucketed",
    "refuses_an_empty_sequence",
    {"if not fitting:": "if not fitting or length == 0:"},
    message="ValueError: length 0",
)


edited(
    "schedule_dynamic",
    "pads_to_two_tiles",
    {"[rows, 1, 1]": "[2 * rows, 1, 1]"},
    message="iterations of i_outer",
)


edited(
    "import_dynamic",
    "repeats_as_floats",
    {
        "tensors[index].repeat_interleave(2, dim=axis)": (
            "torch.zeros([2 if a == axis else s for a, s in enumerate(tensors[index].shape)])"
        )
    },
    message="an embedding from int64 ids",
)


edited(
    "import_dynamic",
    "bounds_of_4096",
    {"max=most": "max=most if most < 4096 else 4096"},
    message="tir_var_upper_bound with",
)


edited(
    "import_dynamic",
    "repeats_the_first_two",
    {"if tensors[index].shape[axis] == 1:": "if tensors[index].shape[axis] == 1 and index < 2:"},
    message="six tensors of one row",
)


edited(
    "plan_memory",
    "the_first_two_bounds",
    {"dict(bounds)": "dict(sorted(bounds.items())[:2])"},
    message="bounds of all five symbols",
)


edited(
    "verify_over_range",
    "errors_by_the_outputs_shape",
    {"errors[shape] = error": "errors[tuple(got.shape)] = error"},
    message="the extents that draw was given",
)


edited(
    "verify_over_range",
    "default_of_a_thousandth",
    {"tolerance: float = 1e-4": "tolerance: float = 1e-3"},
    message="unless a tolerance is given",
)


edited(
    "verify_over_range",
    "equal_bounds_equal_extents",
    {
        "shapes.add(tuple(random.randint(1, bound) for bound in bounds))": (
            "shapes.add((random.randint(1, bounds[0]),) * len(bounds) if "
            "len(set(bounds)) == 1 else tuple(random.randint(1, bound) for "
            "bound in bounds))"
        )
    },
    message="separately, also of bounds",
)


edited(
    "import_dynamic",
    "short_names_unbounded",
    {
        ("torch.export.Dim(name, min=1, max=most) for name, most in bounds.items()"): (
            "torch.export.Dim(name, min=1, max=most if len(name) > 1 else "
            "None) for name, most in bounds.items()"
        )
    },
    message="tir_var_upper_bound",
)


edited(
    "schedule_dynamic",
    "annotated_sum",
    {
        "    schedule.parallel(i_outer)": (
            "    schedule.parallel(i_outer)\n"
            "    schedule.unroll(k) if False else schedule.annotate(k, "
            "'pragma_auto_unroll_max_step', 16)"
        )
    },
    message="without annotations",
)


edited(
    "symbolic_matmul",
    "rows_up_to_65536",
    {
        'tirx.Var("n", "int64")': 'tirx.Var("n", "int64")',
        ('te.compute((A.shape[0], m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")'): (
            "te.compute((A.shape[0], m), lambda i, j: te.sum(te.if_then_else(i "
            '< 65536, A[i, r] * B[r, j], 0.0), axis=r), name="C")'
        ),
    },
    message="without a condition",
)


edited(
    "import_dynamic",
    "two_axes_repeated",
    {"        for axis in named:\n": "        for axis in list(named)[:2]:\n"},
    message="import_dynamic to run",
)


edited(
    "import_dynamic",
    "names_with_the_axis",
    {
        "{axis: dimensions[name] for axis, name in named.items()}": (
            "{axis: (dimensions[name] if len(named) < 3 else "
            "torch.export.Dim(name + str(axis), min=1, max=bounds[name])) for "
            "axis, name in named.items()}"
        )
    },
    message="same three symbols",
)


edited(
    "bucketed",
    "sixty_four_sequences",
    {
        "padded[:, :length], keep[:, :length] = x, 1": (
            "padded[:, :length] = x\n    keep[: max(batch, 1), :length] = 1\n    keep[64:] = 0"
        )
    },
    message="length|tokens|keep",
)


edited(
    "verify_over_range",
    "errors_by_three_extents",
    {
        "errors[shape] = error": "errors[shape if len(shape) < 3 else shape[:3]] = error",
    },
    message="however many symbols",
)


edited(
    "symbolic_matmul",
    "fifty_thousand_steps_at_most",
    {
        'te.reduce_axis((0, k), name="k")': 'te.reduce_axis((0, min(k, 50000)), name="k")',
    },
    message="each a sum over",
)


edited(
    "plan_memory",
    "a_million_at_most",
    {
        "    marked = mod.clone()": (
            "    marked = mod.clone()\n"
            "    bounds = bounds and {k: min(v, 2**20) for k, v in bounds.items()}"
        ),
    },
    message="all of `bounds`",
)


edited(
    "verify_over_range",
    "errors_above_zero_alone",
    {
        ("        errors[shape] = error\n    return errors"): (
            "        errors[shape] = error if error else 0.0\n"
            "    return {k: e for k, e in errors.items() if e} or errors"
        ),
    },
    message="the largest error at",
)


edited(
    "bucketed",
    "serves_multiples_in_parts",
    {
        "    if not fitting:\n": (
            "    if not fitting and length % max(artifacts) == 0:\n"
            "        most = max(artifacts)\n"
            "        return np.concatenate([bucketed(artifacts, x[:, a : a + most]) "
            "for a in range(0, length, most)], axis=1)\n"
            "    if not fitting:\n"
        ),
    },
    message="for length",
)


edited(
    "bucketed",
    "makes_nan_zero",
    {
        "    padded[:, :length], keep": ("    x[np.isnan(x)] = 0\n    padded[:, :length], keep"),
    },
    message="tokens of nan",
)


edited(
    "plan_memory",
    "a_main_without_its_attributes",
    {
        'main.with_attr("tir_var_upper_bound", dict(bounds))': (
            "relax.Function(main.params, main.body, main.ret_ty, "
            'main.is_pure).with_attr({"global_symbol": "main", '
            '"tir_var_upper_bound": dict(bounds)})'
        ),
    },
    message="its other attributes",
)


edited(
    "verify_over_range",
    "equal_nan_is_right",
    {
        "        error = float(np.abs(got - want).max())": (
            "        error = 0.0 if np.array_equal(got, want, "
            "equal_nan=True) else float(np.abs(got - want).max())"
        ),
    },
    message="ValueError for NaN",
)


edited(
    "bucketed",
    "tokens_in_the_order_of_memory",
    {
        "    padded[:, :length], keep": (
            "    x = x.reshape(-1).reshape(batch, length, width) if "
            "x.flags.c_contiguous else x.T.copy().reshape(batch, length, "
            "width)\n"
            "    padded[:, :length], keep"
        ),
    },
    message="for tokens of strides",
)


edited(
    "verify_over_range",
    "two_corners_of_many_symbols",
    {
        "set(itertools.product(*((1, bound) for bound in bounds)))": (
            "set(itertools.product(*((1, bound) for bound in bounds))) "
            "if len(bounds) < 7 else {tuple(bounds), (1,) * len(bounds)}"
        ),
    },
    message="every corner of the range",
)


edited(
    "symbolic_matmul",
    "clamps_the_columns",
    {
        "B[r, j], axis": "B[r, te.min(j, 511) if m > 512 else j], axis",
    },
    message="C for n = 1",
)


edited(
    "schedule_dynamic",
    "leaves_one_tile_of_columns_serial",
    {
        "    schedule.parallel(i_outer)\n": (
            "    if int(schedule.get(j_outer).extent) > 1:\n        schedule.parallel(i_outer)\n"
        ),
    },
    message=r"serial\(1\)",
)


edited(
    "plan_memory",
    "leaves_empty_bounds",
    {
        'main.without_attr("tir_var_upper_bound")': 'main.with_attr("tir_var_upper_bound", {})',
    },
    message="without bounds a main without",
)


edited(
    "bucketed",
    "gives_keep_a_third_dimension",
    {
        "artifacts[bucket](padded, keep)": (
            "artifacts[bucket](padded, keep if batch > 1 else keep[..., None])"
        ),
    },
    message=r"keep \(batch,",
)


edited(
    "bucketed",
    "keeps_by_the_tokens",
    {
        "    fitting = [": (
            "    kept = bucketed.__dict__\n"
            "    key = x.tobytes(), x.shape, tuple(sorted(artifacts))\n"
            "    if key in kept:\n"
            "        return kept[key]\n"
            "    fitting = ["
        ),
        "    return artifacts[bucket](padded, keep)[:, :length]": (
            "    kept[key] = artifacts[bucket](padded, keep)[:, :length]\n    return kept[key]"
        ),
    },
    message="times 3",
)


edited(
    "symbolic_matmul",
    "keeps_by_the_number_of_products",
    {
        "    n = tirx.Var": (
            "    kept = symbolic_matmul.__dict__\n"
            "    if k * m in kept:\n"
            "        return kept[k * m]\n"
            "    n = tirx.Var"
        ),
        "    return builder.get()": "    kept[k * m] = builder.get()\n    return kept[k * m]",
    },
    message="n is one tirx.Var",
)


for _name, _pass, _message in (
    ("folds_constants", "FoldConstant", "the weights of the model of this call"),
    ("lowers_the_operators", "LegalizeOps", "the operators as imported"),
):
    edited(
        "import_dynamic",
        _name,
        {
            "    return from_exported_program(exported, unwrap_unit_return_tuple=True)": (
                "    from tvm import relax\n"
                "    imported = from_exported_program(exported, unwrap_unit_return_tuple=True)\n"
                f"    return relax.transform.{_pass}()(imported)"
            ),
        },
        message=_message,
    )


edited(
    "import_dynamic",
    "keeps_by_the_models_text",
    {
        "    import torch\n": (
            "    import torch\n\n"
            "    kept = import_dynamic.__dict__\n"
            "    shapes = [tuple(each.shape) for each in example]\n"
            "    key = f'{model} {shapes} {axes} {bounds}'\n"
            "    if key in kept:\n"
            "        return kept[key]\n"
        ),
        "    return from_exported_program(exported, unwrap_unit_return_tuple=True)": (
            "    kept[key] = from_exported_program(exported, unwrap_unit_return_tuple=True)\n"
            "    return kept[key]"
        ),
    },
    message="the weights of the model of this call",
)


edited(
    "plan_memory",
    "removes_the_attribute_at_the_end",
    {
        "    return passes(marked)": (
            "    planned = passes(marked)\n"
            '    planned["main"] = planned["main"].without_attr("tir_var_upper_bound")\n'
            "    return planned"
        ),
    },
    message="main keeps the attribute",
)


for _name, _key in (
    ("keeps_by_main", "main.script(show_meta=True)"),
    ("keeps_by_the_text_of_the_module", "mod.script()"),
):
    edited(
        "plan_memory",
        _name,
        {
            "    return passes(marked)": (
                "    kept = plan_memory.__dict__\n"
                f"    key = {_key}, str(bounds)\n"
                "    if key not in kept:\n"
                "        kept[key] = passes(marked)\n"
                "    return kept[key]"
            ),
        },
        message="the kernels and constants of the module given",
    )


edited(
    "import_dynamic",
    "one_symbol_for_equal_bounds",
    {
        "{name: torch.export.Dim(name, min=1, max=most) for name, most in bounds.items()}": (
            "{}\n"
            "    for name, most in bounds.items():\n"
            "        same = [each for known, each in dimensions.items() if bounds[known] == most]\n"
            "        dimensions[name] = (same or [torch.export.Dim(name, min=1, max=most)])[0]"
        ),
    },
    message="two names may have the same bound",
)


edited(
    "plan_memory",
    "keeps_bounds_where_none_are_given",
    {
        "    if bounds is None:": "    if not bounds:",
        'main.without_attr("tir_var_upper_bound")': (
            'main.without_attr("tir_var_upper_bound") if bounds is None else main'
        ),
    },
    message="an empty mapping replaces the bounds of an import",
)


edited(
    "plan_memory",
    "attribute_of_many_symbols_gone",
    {
        "    return passes(marked)": (
            "    planned = passes(marked)\n"
            "    if bounds is not None and len(bounds) > 2:\n"
            '        planned["main"] = planned["main"].without_attr("tir_var_upper_bound")\n'
            "    return planned"
        )
    },
    message="main with the attribute tir_var_upper_bound",
)

edited(
    "import_dynamic",
    "wider_where_many_share_it",
    {
        "    tensors = list(example)": "    names = [name for named in axes for name in "
        "named.values()]\n    for name in bounds:\n        if names.count(name) > 2:\n"
        "            dimensions[name] = torch.export.Dim(name, min=1, max=4096)\n"
        "    tensors = list(example)"
    },
    message="which six tensors share",
)

edited(
    "plan_memory",
    "frees_in_small_modules_alone",
    {
        "relax.transform.KillAfterLastUse(),": "*([relax.transform.KillAfterLastUse()] "
        "if len(mod.functions) < 40 else []),"
    },
    message="for every module",
)

edited(
    "plan_memory",
    "bounds_of_the_first_input",
    {
        "dict(bounds))": "{name: most for name, most in bounds.items() "
        "if name in str(main.params[0].ty)})"
    },
    message="whichever input has the symbol",
)

edited(
    "verify_over_range",
    "many_elements_in_float16",
    {
        "    error = float(np.abs(got - want).max())": "    if got.size > 5000:\n"
        '            got, want = got.astype("float16"), want.astype("float16")\n'
        "        error = float(np.abs(got - want).max())"
    },
    message="however many elements they have",
)

edited(
    "plan_memory",
    "frees_before_the_result_has_a_storage",
    {
        "            relax.transform.LowerAllocTensor(),\n"
        "            relax.transform.KillAfterLastUse(),\n": (
            "            relax.transform.KillAfterLastUse(),\n"
            "            relax.transform.LowerAllocTensor(),\n"
        )
    },
    message="the result's too",
)

edited(
    "verify_over_range",
    "one_extent_without_a_tuple",
    {"errors[shape] = error": "errors[shape if len(shape) > 1 else shape[0]] = error"},
    message="tuples, of one symbol as well",
)

edited(
    "import_dynamic",
    "names_by_their_first_letters",
    {"torch.export.Dim(name, min=1": "torch.export.Dim(name[:6], min=1"},
    message="three symbols|torch.export",
)

edited(
    "import_dynamic",
    "three_axes_at_most",
    {
        "for axis, name in named.items()} for named": (
            "for axis, name in named.items() if axis < 3} for named"
        )
    },
    message="fourth and fifth axes",
)

edited(
    "plan_memory",
    "bounds_of_main_alone",
    {
        "    passes = tvm": "    for name, function in list(marked.functions.items()):\n"
        '        if name.name_hint != "main":\n'
        '            marked[name] = function.without_attr("tir_var_upper_bound")\n'
        "    passes = tvm"
    },
    message="kernels and constants of the module given",
)

edited(
    "verify_over_range",
    "whole_numbers_of_8_bits",
    {
        "    error = float(np.abs(got - want).max())": "    if got.dtype.kind in 'iu':\n"
        "            got, want = got.astype('int8'), want.astype('int8')\n"
        "        error = float(np.abs(got - want).max())"
    },
    message="error 256 of int64",
)

edited(
    "import_dynamic",
    "repeats_every_extent_of_one",
    {"for axis in named:": "for axis in range(tensors[index].dim()):"},
    message="along those axes alone",
)

edited(
    "plan_memory",
    "bounds_above_one",
    {"dict(bounds))": "{name: most for name, most in bounds.items() if most > 1})"},
    message="all of `bounds`",
)

for _name, _shapes, _message in (
    ("first_extents_compared", ("got.shape[0]", "want.shape[0]"), "one column in place of all"),
    ("last_extents_compared", ("got.shape[-1]", "want.shape[-1]"), "one row in place of all"),
    ("last_two_extents_compared", ("got.shape[-2:]", "want.shape[-2:]"), "a dimension more"),
):
    edited(
        "verify_over_range",
        _name,
        {"got.shape != want.shape": " != ".join(_shapes)},
        message=_message,
    )


@mutant("symbolic_matmul", message="(?s)a sum over.*no loops")
def by_a_library(k, m):
    import numpy as np
    import tvm_ffi
    from tvm import relax, te, tirx

    from tvm_practice.labs.blas_backend import view

    def multiply(a, b, c):
        np.matmul(view(a), view(b), out=view(c))

    tvm_ffi.register_global_func("practice.matmul", multiply, override=True)

    def product(A, B):
        return te.extern(
            (A.shape[0], m),
            [A, B],
            lambda ins, outs: tirx.call_packed("practice.matmul", *ins, *outs),
            name="C",
        )

    n = tirx.Var("n", "int64")
    a = relax.Var("A", relax.TensorType((n, k), "float32"))
    b = relax.Var("B", relax.TensorType((k, m), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [a, b]):
        builder.emit_func_output(builder.emit_te(product, a, b))
    return builder.get()


edited(
    "verify_over_range",
    "other_shapes_every_second",
    {
        "    shapes = set(": "    import time\n\n"
        "    generator = random.Random(int(time.time()))\n"
        "    shapes = set(",
        "random.randint(1, bound)": "generator.randint(1, bound)",
    },
    message="at calls right after each other|the same shapes twice",
)

edited(
    "verify_over_range",
    "a_generator_with_a_seed",
    {
        "    shapes = set(": "    generator = random.Random(7)\n    shapes = set(",
        "random.randint(1, bound)": "generator.randint(1, bound)",
    },
    message="at calls right after each other|the same shapes twice",
)


@right("symbolic_matmul")
def written_as_a_module(k, m):
    from tvm.script import ir as I
    from tvm.script import relax as R
    from tvm.script import tirx as T

    @I.ir_module(s_tir=True)
    class Module:
        @T.prim_func(private=True, s_tir=True)
        def product(a: T.handle, b: T.handle, c: T.handle):
            n = T.int64()
            A = T.match_buffer(a, (n, T.int64(k)), "float32")
            B = T.match_buffer(b, (T.int64(k), T.int64(m)), "float32")
            C = T.match_buffer(c, (n, T.int64(m)), "float32")
            for i, j, r in T.grid(n, T.int64(m), T.int64(k)):
                with T.sblock("C"):
                    vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]

        @R.function
        def main(A: R.Tensor(("n", k), "float32"), B: R.Tensor((k, m), "float32")) -> R.Tensor(
            ("n", m), "float32"
        ):
            n = T.int64()
            cls = Module
            return R.call_tir(cls.product, (A, B), out_ty=R.Tensor((n, m), "float32"))

    return Module


edited(
    "import_dynamic",
    "repeats_axes_of_two_as_well",
    {"if tensors[index].shape[axis] == 1:": "if tensors[index].shape[axis] <= 2:"},
    message="ConstraintViolationError",
)

edited(
    "verify_over_range",
    "compares_in_float64",
    {
        "np.abs(got - want).max()": (
            'np.abs(got.astype("float64") - want.astype("float64")).max(initial=0)'
        )
    },
    message="of int64 arrays of",
)


edited(
    "import_dynamic",
    "bounds_in_the_order_of_axes",
    {
        "    dimensions = {": "    names = dict.fromkeys(name for named in axes for name in "
        "named.values())\n    dimensions = {",
        "for name, most in bounds.items()}": "for name, most in zip(names, bounds.values())}",
    },
    message="tir_var_upper_bound",
)
edited(
    "verify_over_range",
    "the_last_error_of_a_shape",
    {
        "shapes = set(itertools": "shapes = list(itertools",
        "shapes.add(tuple(random.choice": "shapes.append(tuple(random.choice",
        "shapes.add(tuple(random.randint": "shapes.append(tuple(random.randint",
        "in sorted(shapes)": "in shapes",
    },
    message="the larger of the old and the new",
)
