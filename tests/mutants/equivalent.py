"""Variants made by machine that are right by the docstring, each with the reason.

By exercise: words of the change, as the command prints it, and why it is right all the same.
"""

_NAME = "the docstring asks for no name there"
_COPY = "how the copy to C loops is left open"
_WHERE = "where the partial sums are stored is left open"
_TAG = "TVM takes what follows local for a tag: the buffer is a thread's own"
_VALUES = "which values a knob has is left open"
_AS_MANY = "there are as many weights as tasks"
_VERBOSE = "the docstring asks for no silence"
_FLOAT32 = "relax.const makes a float32 of it"
_POOL = "the pool that it is for is replaced by the runner's own"
_LEVEL = "an implementation is chosen by its level, not by its name"
_ORDER = "each callback sees all results, in any order"
_REPAIR = "another repair, with little enough of the symptom"
_PROMOTED = "TVM makes a float32 of the integer"
_SAME_GRAPH = "the same functions come out: there is nothing to fold in between"

EQUIVALENT: dict[str, dict[str, str]] = {
    "te_basics.matmul": {
        "te.placeholder((k, n), name='B')": "float32 is what te.placeholder makes unless told",
    },
    "te_basics.dense_bias_relu": {
        "te.reduce_axis((0, inputs))": _NAME,
        "te.placeholder((outputs,), ": _NAME,
        "te.max(biased[i, j], -0.0)": "0 and -0 are equal",
    },
    "te_basics.softmax": {
        "te.reduce_axis((0, columns))": _NAME,
        "te.placeholder((rows, columns), ": _NAME,
    },
    "manual_schedule.pack_operand": {
        "te.all(r < k, at < size)": "both conditions must hold, in either order",
    },
    "manual_schedule.packed_product": {"name='kx'": _NAME},
    "schedule_analysis.compare_interleaved": {
        "(1999, rounds)": "one resample less moves no end by more than the resampling does",
    },
    "schedule_analysis.compile_variants": {
        ".with_attr('', 'main')": "a Schedule calls a lone function main in any case",
    },
    "schedule_analysis.parallel_pays_from": {
        "strict=False": "the three sequences are of one length",
    },
    "relay_import.verify": {
        "max(float(error.max()), largest)": "both orders have the same maximum",
        "nan=-0.0": "0 and -0 are equal",
        "np.errstate(divide='ignore')": "a warning is not an answer",
    },
    "relay_import.import_relax": {
        "model, example), unwrap_unit": "weights become constants unless told otherwise",
    },
    "relay_import.optimize_relax": {
        "LegalizeOps(), relax.transform.FoldConstant(), relax.transform.Annot": _SAME_GRAPH,
        "FuseOps(), relax.transform.FoldConstant(), relax.transform.FuseTIR": _SAME_GRAPH,
    },
    "relay_import.import_relay": {"strict=True": "the docstring promises nothing of dictionaries"},
    "relay_import.optimize_relay": {
        "SimplifyInference(), relay.transform.FoldScaleAxis()": _SAME_GRAPH,
        "CanonicalizeOps(), relay.transform.FoldScaleAxis()": _SAME_GRAPH,
        "EliminateCommonSubexpr(), relay.transform.FoldConstant()": _SAME_GRAPH,
        "Sequential([relay.transform.FoldConstant(), relay.transform.SimplifyInf": _SAME_GRAPH,
        "FoldScaleAxis(), relay.transform.FoldConstant(), relay.transform.Canonic": "relay.build "
        "computes what CanonicalizeOps makes of a bias",
        "tvm.IRModule(mod.functions)": "an imported model defines no types of its own",
        "opt_level=4": "no pass of the list has a level above 3",
    },
    "auto_tune.matmul_template": {
        "schedule[C].vectorize(j_inner) -> pass": _COPY,
        "[7, 16, 32, 64, 128]": _VALUES,
        "[8, 17, 32, 64, 128]": _VALUES,
        "[1, 2, 4, 5, 8, 12, 16]": _VALUES,
        "[1, 3, 4, 8]": _VALUES,
        "'localx'": _TAG,
    },
    "auto_tune.tune_autotvm": {
        "callbacks=[measure.callback, ": _ORDER,
        "plan_size=plan_size(trials), loss_type": "the docstring asks for no features",
        "num_threads=2": "the docstring asks for no number of threads",
        "feature_type='knob', num_threads": "reg is XGBTuner's loss unless told otherwise",
        "learn_from(tuner, log) -> pass": "the docstring asks for nothing of records made before",
    },
    "auto_tune.tune_ansor": {
        "trials_per_round(trials, len(weights)": _AS_MANY,
        "measure_callbacks=[measure.callback, ": _ORDER,
    },
    "auto_tune.tune_task": {
        "-> round_size = trials_per_round(trials)": "it counts one task unless told otherwise",
        "runner=measure.runner, measure_callbacks=[measure.callback, auto_scheduler.": _ORDER,
        "measure.callback], verbose=1)": _VERBOSE,
        "params=fast_search_params(), verbose=1)": _VERBOSE,
        "measure.callback])": _VERBOSE,
    },
    "auto_tune.tune_metaschedule": {
        "measure_callbacks=[measure.callback, *": _ORDER,
        "trials_per_round(trials, len(weights)": _AS_MANY,
    },
    "auto_tune.metaschedule_space": {
        "k_inner, k_outer, i_inner": "the order of the sum's two loops is left open",
    },
    "auto_tune.search_task": {
        "-> B = te.placeholder((k, n), name='": _NAME,
        "-> r = te.reduce_axis((0, k))": _NAME,
        "-> r = te.reduce_axis((0, k), name='": _NAME,
        "te.sum(A[i, r] * B[r, j], axis=r))": _NAME,
    },
    "labs.gpu_schedule.fragment_loops": {
        "reorder(row_tiles, column_tiles, rows)": "the columns are the innermost loop in any case",
    },
    "labs.gpu_schedule.tensorize_copies": {
        "(store, 'store'), (load_b, 'load_b')": "each copy is replaced by itself, in any order",
        "((load_b, 'load_b'), (load_a": "each copy is replaced by itself, in any order",
    },
    "labs.gpu_schedule.register_tile_classic": {
        "reorder(block_i, block_j, thread_i, thread_j, i)": "j is the innermost axis in any case",
    },
    "labs.gpu_schedule.tensor_core_template": {
        "-> B = te.placeholder((k, n), 'float16')": _NAME,
        "-> B = te.placeholder((k, n), 'float16', name='": _NAME,
        "bind_threads_classic([B, B, C], 8, 32)": "only the last of its tensors is scheduled",
    },
    "labs.deploy_cpp.image_to_label": {
        "relax.Var('', ": _NAME,
        "'classifierx'": _NAME,
        "/ np.array(std)": _FLOAT32,
    },
    "labs.cross_compile.compile_object": {
        "write_to_file(path)": "an object file is what is written unless told",
        "write_to_file(path, '')": "the ending of the path tells as much",
    },
    "labs.cross_compile.c_harness": {
        "kTVMFFINone};', *(f'  arguments[": "the result is declared before the arguments are set",
        "return 0; }', 'int (*__TVMBackendFreeWorkspace)": "two declarations, in either order",
        """'', '}', 'static void* allocate""": "an empty line before a brace",
    },
    "labs.tuning_farm.request_worker": {
        "create_connection((host, port)).close()": "the operating system ends the attempt, too",
    },
    "labs.tuning_farm.rpc_runner": {
        "max_workers=session_seconds": _POOL,
        "min_repeat_ms=20), max_workers=workers)": _POOL,
        "min_repeat_ms=20), initializer=": _POOL,
    },
    "labs.custom_operator.register_operator": {
        "'Gated RMS normalization.x'": "the description is for people",
        "registry.register(name)": "the description is for people",
    },
    "labs.custom_operator.give_strategy": {
        "name=f'{name}')": _LEVEL,
        "name=f'{compute}.cpu')": _LEVEL,
        "name=f'{name}.cpux')": _LEVEL,
        "func(f'{name}')": "the strategy is found by the operator, not by a name of its own",
        "_strategyx": "the strategy is found by the operator, not by a name of its own",
    },
    "labs.custom_operator.rms_norm_gate": {"-> c = te.reduce_axis((0, columns)": _NAME},
    "labs.custom_operator.convert_relax": {"add_func(func, '')": _NAME},
    "labs.custom_operator.extern_matmul": {"name='Cx'": _NAME},
    "labs.compilers_compared.online_softmax": {
        "te.placeholder((rows, columns), name='')": _NAME,
        "-> j = te.reduce_axis((0, columns), name='": _NAME,
        "-> reducer = te.comm_reducer(merge, nothing": _NAME,
    },
    "labs.compilers_compared.time_to_first_result": {
        "if said else ''": "the docstring asks for no words where standard error has none",
    },
    "puzzles.partial_sums": {
        "factor_axis=-1": _WHERE,
        "factor_axis=1": _WHERE,
    },
    "bug_hunts.parallel_sum": {
        "schedule[C].reorder(": _REPAIR,
        "j, i = C.op.axis": _REPAIR,
        "schedule[C].parallel(j)": _REPAIR,
    },
    "bug_hunts.lost_bound": {
        "schedule.reorder(part, tile, ": _REPAIR,
        "schedule.split(rows, [3, None])": _REPAIR,
        "schedule.decompose_reduction(block, k) -> pass": "where the zeroing stands is left open",
        "i, k, j = schedule.get_loops(": "the order of the loops in a tile is left open",
    },
    "bug_hunts.false_sharing": {
        "'localx'": _TAG,
    },
    "bug_hunts.column_walk": {
        "i_outer, i_inner = schedule.split(": _REPAIR,
        "j_outer, j_inner = schedule.split(": _REPAIR,
        "schedule.reorder(": _REPAIR,
        "j, i = schedule.get_loops(": _REPAIR,
    },
    "bug_hunts.strided_lanes": {
        "[8, None]": _REPAIR,
        "[None, 9]": "lanes side by side; their guard is the next hunt's",
        "[None, 7]": "lanes side by side; their guard is the next hunt's",
    },
    "bug_hunts.guarded_lanes": {"[8, None]": _REPAIR},
    "bug_hunts.huge_unroll": {
        "_, k, _ = schedule.get_loops(": _REPAIR,
        "schedule.split(": _REPAIR,
    },
    "labs.low_precision.round_to_bfloat16": {
        "bits >> 16 | 6": "which NaN stands for a NaN is left open",
    },
    "labs.low_precision.affine_parameters": {
        "-0.0": "0 and -0 are equal",
        "max(0.0, high)": "the larger of two, in either order",
        "min(0.0, low)": "the smaller of two, in either order",
    },
    "labs.low_precision.requantized": {
        "te.const(255))": _PROMOTED,
        "te.const(0))": _PROMOTED,
        "te.const(zero_point)": _PROMOTED,
        "te.max(te.const(0, ": "the larger of two, in either order",
        "te.min(te.const(255, ": "the smaller of two, in either order",
    },
    "labs.low_precision.quantize": {
        "np.clip(low, shifted, ": "the larger of two, in either order",
    },
    "labs.low_precision.schedule_vnni": {
        "i_inner, j_inner)": "k_inner is innermost as it is",
    },
    "labs.low_precision.pack_weights": {
        "+(-n // 16)": "numpy works out one negative extent",
        "+(-k // group)": "numpy works out one negative extent",
    },
    "labs.low_precision.amx_product": {
        "T.call_llvm_intrin('', ": "what a tile instruction returns is not used",
        "@T.prim_func()": "a function without blocks is the same in both forms",
    },
}
