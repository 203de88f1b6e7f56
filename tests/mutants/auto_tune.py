"""Wrong solutions of phase 5."""

from tests.mutants import edited, mutant, right, right_edited


@mutant("matmul_template", message="many configurations")
def no_knobs(m, n, k):
    from tvm import te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    i_outer, i_inner = schedule[C].split(i, factor=8)
    j_outer, j_inner = schedule[C].split(j, factor=32)
    schedule[C].reorder(i_outer, j_outer, r, i_inner, j_inner)
    schedule[C].vectorize(j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    return schedule, [A, B, C]


@mutant("matmul_template", message=r"whether a split uses cfg\[")
def knobs_defined_but_not_used(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    cfg = autotvm.get_config()
    cfg.define_knob("rows", [4, 8, 16])
    cfg.define_knob("columns", [16, 32, 64])
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    i_outer, i_inner = schedule[C].split(i, factor=8)
    j_outer, j_inner = schedule[C].split(j, factor=32)
    schedule[C].reorder(i_outer, j_outer, r, i_inner, j_inner)
    schedule[C].vectorize(j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    return schedule, [A, B, C]


@mutant("matmul_template", message="innermost loop is vectorized")
def rows_innermost(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    cfg = autotvm.get_config()
    cfg.define_knob("rows", [4, 8, 16])
    cfg.define_knob("columns", [16, 32, 64])
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    i_outer, i_inner = schedule[C].split(i, factor=cfg["rows"].val)
    j_outer, j_inner = schedule[C].split(j, factor=cfg["columns"].val)
    schedule[C].reorder(i_outer, j_outer, r, j_inner, i_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    return schedule, [A, B, C]


@mutant("matmul_template", message="shared among the threads")
def not_parallel(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    cfg = autotvm.get_config()
    cfg.define_split("tile_i", C.op.axis[0], num_outputs=2)
    cfg.define_split("tile_j", C.op.axis[1], num_outputs=2)
    schedule = te.create_schedule(C.op)
    i_outer, i_inner = cfg["tile_i"].apply(schedule, C, C.op.axis[0])
    j_outer, j_inner = cfg["tile_j"].apply(schedule, C, C.op.axis[1])
    schedule[C].reorder(i_outer, j_outer, r, i_inner, j_inner)
    schedule[C].vectorize(j_inner)
    return schedule, [A, B, C]


@mutant("matmul_template", message="a sum over all")
def sizes_rounded_down(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k // 8 * 8), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    cfg = autotvm.get_config()
    cfg.define_knob("rows", [4, 8, 16])
    cfg.define_knob("columns", [16, 32, 64])
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    i_outer, i_inner = schedule[C].split(i, factor=cfg["rows"].val)
    j_outer, j_inner = schedule[C].split(j, factor=cfg["columns"].val)
    schedule[C].reorder(i_outer, j_outer, r, i_inner, j_inner)
    schedule[C].vectorize(j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    return schedule, [A, B, C]


@mutant("tune_autotvm", message="do_fork=False")
def two_builders_that_do_not_fork(task, *, trials, log):
    from tvm import autotvm

    option = autotvm.measure_option(
        builder=autotvm.LocalBuilder(n_parallel=2), runner=autotvm.LocalRunner(number=1)
    )
    autotvm.tuner.XGBTuner(task, loss_type="reg").tune(
        n_trial=trials, measure_option=option, callbacks=[autotvm.callback.log_to_file(log)]
    )


@mutant("apply_autotvm", message="fastest valid record(.|\n)*, the first of the log")
def applies_the_first_of_autotvm(task, log):
    from tvm import autotvm

    for measured, result in autotvm.record.load_from_file(log):
        if result.error_no == 0 and measured.task.workload == task.workload:
            with task.target:
                return task.instantiate(measured.config)
    raise ValueError("no record")


@mutant("apply_autotvm", message="fastest valid record(.|\n)*, the last of the log")
def applies_the_last_of_autotvm(task, log):
    from tvm import autotvm

    found = None
    for measured, result in autotvm.record.load_from_file(log):
        if result.error_no == 0 and measured.task.workload == task.workload:
            found = measured.config
    if found is None:
        raise ValueError("no record")
    with task.target:
        return task.instantiate(found)


@mutant("apply_autotvm", message="none of the log's records")
def applies_the_best_of_another_task(task, log):
    from tvm import autotvm

    records = [each for each in autotvm.record.load_from_file(log) if each[1].error_no == 0]
    measured, _ = min(records, key=lambda record: record[1].costs[0])
    with task.target:
        return task.instantiate(measured.config)


@mutant("apply_autotvm", message="an error when the log has no valid record")
def falls_back_in_silence(task, log):
    from tvm import autotvm

    with task.target:
        config = autotvm.apply_history_best(log).query(task.target, task.workload)
        if config.is_fallback:
            config = task.config_space.get(0)
        return task.instantiate(config)


@mutant("tune_ansor", message="num_measure_trials=")
def one_round_only(tasks, weights, *, trials, log):
    from tvm import auto_scheduler

    from tvm_practice.tvm_export.tuners.ansor import fast_search_params, measuring

    with measuring(tasks, trials, log) as measure:
        auto_scheduler.TaskScheduler(tasks, weights, callbacks=[]).tune(
            auto_scheduler.TuningOptions(
                num_measure_trials=2,
                num_measures_per_round=1,
                builder=measure.builder,
                runner=measure.runner,
                measure_callbacks=[auto_scheduler.RecordToFile(log), measure.callback],
                verbose=0,
            ),
            search_policy_params=fast_search_params(),
        )


@mutant("tune_ansor", message=r"TaskScheduler\(tasks, weights\)")
def tunes_the_first_task_only(tasks, weights, *, trials, log):
    from tvm import auto_scheduler

    from tvm_practice.tvm_export.tuners.ansor import fast_search_params, measuring

    with measuring(tasks, trials, log) as measure:
        auto_scheduler.TaskScheduler(tasks[:1], callbacks=[]).tune(
            auto_scheduler.TuningOptions(
                num_measure_trials=trials,
                num_measures_per_round=trials,
                builder=measure.builder,
                runner=measure.runner,
                measure_callbacks=[auto_scheduler.RecordToFile(log), measure.callback],
                verbose=0,
            ),
            search_policy_params=fast_search_params(),
        )


@mutant("tune_ansor", message="the tasks as given")
def tunes_for_a_plain_processor(tasks, weights, *, trials, log):
    import json
    from pathlib import Path

    import tvm
    from tvm import auto_scheduler

    from tvm_practice.tvm_export.tuners.ansor import fast_search_params, measuring

    plain = [
        auto_scheduler.SearchTask(
            func=json.loads(task.workload_key)[0],
            args=json.loads(task.workload_key)[1:],
            target=tvm.target.Target("llvm -num-cores=1"),
        )
        for task in tasks
    ]
    with measuring(plain, trials, log) as measure:
        known = log if Path(log).exists() else None
        auto_scheduler.TaskScheduler(plain, weights, load_log_file=known, callbacks=[]).tune(
            auto_scheduler.TuningOptions(
                num_measure_trials=trials,
                num_measures_per_round=2,
                builder=measure.builder,
                runner=measure.runner,
                measure_callbacks=[auto_scheduler.RecordToFile(log), measure.callback],
                verbose=0,
            ),
            search_policy_params=fast_search_params(),
        )


@mutant("apply_ansor", message="fastest valid record(.|\n)*, the last of the log")
def applies_the_last_of_ansor(task, log):
    from tvm import auto_scheduler

    found = None
    for measured, result in auto_scheduler.RecordReader(log):
        if result.error_no == 0 and measured.task.workload_key == task.workload_key:
            found = measured.state
    if found is None:
        raise RuntimeError("no record")
    schedule, tensors = task.compute_dag.apply_steps_from_state(found)
    return schedule, tensors


@mutant("apply_ansor", message="none of the log's records")
def takes_failed_trials_for_fast(task, log):
    from tvm import auto_scheduler

    mine = [
        (float(result.costs[0]), measured.state)
        for measured, result in auto_scheduler.RecordReader(log)
        if measured.task.workload_key == task.workload_key
    ]
    if not mine:
        raise RuntimeError("no record")
    schedule, tensors = task.compute_dag.apply_steps_from_state(min(mine, key=lambda r: r[0])[1])
    return schedule, tensors


@mutant("apply_ansor", message="none of the log's records")
def does_not_read_the_log(task, log):
    from tvm import te

    tensors = list(task.compute_dag.tensors)
    return te.create_schedule(tensors[-1].op), tensors


@mutant("metaschedule_space", message="numbers that the search chooses")
def fixed_tiles(schedule):
    block = schedule.get_sblock("C")
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, 8])
    j_outer, j_inner = schedule.split(j, [None, 8])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.vectorize(j_inner)
    schedule.parallel(schedule.fuse(i_outer, j_outer))


@mutant("metaschedule_space", message="factors of the splits that the search chooses")
def samples_that_are_not_used(schedule):
    block = schedule.get_sblock("C")
    i, j, k = schedule.get_loops(block)
    schedule.sample_perfect_tile(i, n=2, max_innermost_factor=16)
    schedule.sample_perfect_tile(j, n=2, max_innermost_factor=16)
    i_outer, i_inner = schedule.split(i, [None, 8])
    j_outer, j_inner = schedule.split(j, [None, 8])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.vectorize(j_inner)
    schedule.parallel(schedule.fuse(i_outer, j_outer))


@mutant("metaschedule_space", message="preserve_unit_loops=True")
def calls_that_depend_on_the_samples(schedule):
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    rows = schedule.sample_perfect_tile(i, n=3, max_innermost_factor=64)
    columns = schedule.sample_perfect_tile(j, n=3, max_innermost_factor=64)
    i_outer, i_middle, i_inner = schedule.split(i, rows)
    j_outer, j_middle, j_inner = schedule.split(j, columns)
    schedule.reorder(i_outer, j_outer, i_middle, j_middle, k, i_inner, j_inner)
    schedule.reverse_compute_at(write_back, j_middle)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.vectorize(j_inner)
    schedule.parallel(schedule.fuse(i_outer, j_outer))


@mutant("metaschedule_space", message="innermost loop is vectorized")
def forgets_to_vectorize(schedule):
    block = schedule.get_sblock("C")
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, schedule.sample_perfect_tile(i, n=2))
    j_outer, j_inner = schedule.split(j, schedule.sample_perfect_tile(j, n=2))
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.parallel(schedule.fuse(i_outer, j_outer))


@mutant("metaschedule_space", message="shared among the threads")
def forgets_to_parallelize(schedule):
    block = schedule.get_sblock("C")
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, schedule.sample_perfect_tile(i, n=2))
    j_outer, j_inner = schedule.split(j, schedule.sample_perfect_tile(j, n=2))
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.vectorize(j_inner)


@mutant("tune_metaschedule", message="max_trials_global=")
def too_many_trials(contexts, weights, *, trials, work_dir):
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners.metaschedule import cost_model, measuring

    with measuring(contexts, trials, work_dir) as measure:
        return ms.tune.tune_tasks(
            tasks=contexts,
            task_weights=weights,
            work_dir=work_dir,
            max_trials_global=trials * 2,
            num_trials_per_iter=4,
            builder=measure.builder,
            runner=measure.runner,
            cost_model=cost_model(),
            measure_callbacks=[
                *ms.measure_callback.MeasureCallback.create("default"),
                measure.callback,
            ],
        )


@mutant("tune_metaschedule", message="default measure callbacks")
def without_the_default_callbacks(contexts, weights, *, trials, work_dir):
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners.metaschedule import cost_model, measuring

    with measuring(contexts, trials, work_dir) as measure:
        return ms.tune.tune_tasks(
            tasks=contexts,
            task_weights=weights,
            work_dir=work_dir,
            max_trials_global=trials,
            num_trials_per_iter=min(2, trials),
            builder=measure.builder,
            runner=measure.runner,
            cost_model=cost_model(),
            measure_callbacks=[measure.callback],
        )


@mutant("tune_metaschedule", message="the tasks weighted as given")
def tunes_the_first_context_only(contexts, weights, *, trials, work_dir):
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners.metaschedule import cost_model, measuring

    with measuring(contexts, trials, work_dir) as measure:
        return ms.tune.tune_tasks(
            tasks=contexts[:1],
            task_weights=weights[:1],
            work_dir=work_dir,
            max_trials_global=trials,
            num_trials_per_iter=trials,
            builder=measure.builder,
            runner=measure.runner,
            cost_model=cost_model(),
            measure_callbacks=[
                *ms.measure_callback.MeasureCallback.create("default"),
                measure.callback,
            ],
        )


@mutant("apply_metaschedule", message="fastest valid record(.|\n)*seen: *the record of")
def applies_the_slowest_of_metaschedule(mod, database, target):
    import tvm
    import tvm_ffi

    functions = {variable.name_hint: function for variable, function in mod.functions.items()}
    for name, function in functions.items():
        workload = tvm.IRModule({"main": function})
        for record in database.get_all_tuning_records():  # fastest first
            if tvm_ffi.structural_equal(record.workload.mod, workload):
                schedule = tvm.s_tir.Schedule(workload)
                record.trace.apply_to_schedule(schedule, remove_postproc=False)
                functions[name] = schedule.mod["main"]
    return tvm.IRModule(functions)


@mutant("apply_metaschedule", message="none of the log's records")
def applies_nothing(mod, database, target):
    return mod


@mutant("apply_metaschedule", message="keep their names|functions first")
def applies_to_one_function(mod, database, target):
    import tvm

    name = mod.get_global_vars()[0].name_hint
    workload = tvm.IRModule({"main": mod[name]})
    schedule = database.query_schedule(workload, target, "main")
    return schedule.mod if schedule is not None else mod


edited(
    "matmul_template",
    "only_the_write_back_vectorized",
    {"    schedule[tile].vectorize(column)\n": ""},
    message="that of the sum and not of a copy alone",
)
edited(
    "matmul_template",
    "a_knob_that_nothing_uses",
    {'cfg["unroll_k"].val': "2"},
    message="loops that differ with each value of the knob unroll_k",
)
edited(
    "tune_autotvm",
    "without_a_cost_model",
    {
        "autotvm.tuner.XGBTuner(": "autotvm.tuner.RandomTuner(",
        'plan_size=plan_size(trials), feature_type="knob", loss_type="reg", num_threads=1': "",
    },
    message="no autotvm.tuner.XGBTuner was made",
)
edited(
    "tune_autotvm",
    "learns_after_64_trials",
    {"plan_size=plan_size(trials), ": ""},
    message="plan_size= of XGBTuner",
)
edited(
    "tune_ansor",
    "weights_ignored",
    {"tasks, weights, load_log_file": "tasks, load_log_file"},
    message="the tasks weighted as given",
)
edited(
    "tune_ansor",
    "does_not_go_on_from_the_log",
    {"load_log_file=log if Path(log).exists() else None, ": ""},
    message="a search that goes on from the log",
)
edited(
    "apply_autotvm",
    "one_configuration_for_all_logs",
    {"task.instantiate(config)": "task.instantiate(task.config_space)"},
    message="the schedule of the fastest valid record",
)
edited(
    "apply_autotvm",
    "raises_another_error",
    {"raise ValueError(": "raise KeyError("},
    message="ValueError when the log has no valid record",
)
edited(
    "metaschedule_space",
    "rows_are_four",
    {
        "i_outer, i_middle, i_inner = schedule.split(i, rows)": "i_outer, i_middle, i_inner = "
        "schedule.split(i, [None, 1, 4])"
    },
    message="factors of the splits that the search chooses",
)
edited(
    "metaschedule_space",
    "only_the_write_back_in_vectors",
    {"    schedule.vectorize(j_inner)\n": ""},
    message="that of the sum and not of a copy alone",
)
edited(
    "tune_metaschedule",
    "tasks_of_one_weight",
    {"task_weights=weights": "task_weights=[1.0] * len(contexts)"},
    message="the tasks weighted as given",
)
edited(
    "tune_metaschedule",
    "chooses_at_random",
    {"cost_model=cost_model()": 'cost_model="random"'},
    message="a cost model set for few trials",
)


@right("matmul_template")
def two_knobs_without_a_buffer(m, n, k):
    from tvm import autotvm, te

    left = te.placeholder((m, k), "float32", name="left")
    right = te.placeholder((k, n), "float32", name="right")
    r = te.reduce_axis((0, k))
    out = te.compute((m, n), lambda i, j: te.sum(left[i, r] * right[r, j], axis=r), name="out")
    schedule = te.create_schedule(out.op)
    config = autotvm.get_config()
    config.define_split("rows", schedule[out].op.axis[0], num_outputs=2)
    config.define_split("columns", schedule[out].op.axis[1], num_outputs=2)
    i_0, i_1 = config["rows"].apply(schedule, out, out.op.axis[0])
    j_0, j_1 = config["columns"].apply(schedule, out, out.op.axis[1])
    schedule[out].reorder(i_0, j_0, r, i_1, j_1)
    schedule[out].vectorize(j_1)
    schedule[out].parallel(schedule[out].fuse(i_0, j_0))
    return schedule, [left, right, out]


@right("apply_ansor")
def from_the_records_state(task, log):
    from tvm import auto_scheduler

    best, _ = auto_scheduler.load_best_record(log, task.workload_key)
    if best is None:
        raise RuntimeError(f"{log} has no valid record")
    return task.compute_dag.apply_steps_from_state(best.state)


edited(
    "metaschedule_space",
    "rows_of_tiles_only",
    {"schedule.parallel(schedule.fuse(i_outer, j_outer))": "schedule.parallel(i_outer)"},
    message="the fused loop parallel",
)


edited(
    "matmul_template",
    "threads_as_a_choice",
    {
        '    cfg.define_knob("rows"': '    cfg.define_knob("threads", [1, 0])\n'
        '    cfg.define_knob("rows"',
        "    schedule[C].parallel(tiles)": '    if cfg["threads"].val:\n'
        "        schedule[C].parallel(tiles)",
    },
    message="a parallel loop in every configuration",
)


edited(
    "matmul_template",
    "vectors_where_tiles_divide",
    {
        "    schedule[tile].vectorize(column)": '    if n % cfg["columns"].val == 0:\n'
        "        schedule[tile].vectorize(column)"
    },
    message="every configuration|the innermost loop is vectorized",
)


@right("matmul_template")
def factors_of_the_sizes(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    schedule = te.create_schedule(C.op)
    cfg = autotvm.get_config()
    i, j = schedule[C].op.axis
    cfg.define_split("rows", i, num_outputs=2)
    cfg.define_split("columns", j, num_outputs=2)
    i_outer, i_inner = cfg["rows"].apply(schedule, C, i)
    j_outer, j_inner = cfg["columns"].apply(schedule, C, j)
    schedule[C].reorder(i_outer, j_outer, r, i_inner, j_inner)
    schedule[C].vectorize(j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    return schedule, [A, B, C]


@mutant("apply_metaschedule", message="records looked up for the target given")
def for_this_machine(mod, database, target):
    from tvm import relax

    from tvm_practice.engines import host_target

    with host_target(), database:
        return relax.transform.MetaScheduleApplyDatabase()(mod)


edited(
    "matmul_template",
    "parallel_steps_as_a_choice",
    {
        "    schedule[tile].vectorize(column)": '    cfg.define_knob("shared", [0, 1])\n'
        '    if cfg["shared"].val:\n        schedule[tile].parallel(k_outer)\n'
        "    schedule[tile].vectorize(column)"
    },
    message="no steps of the sum among the threads",
)
edited(
    "tune_autotvm",
    "ends_when_nothing_is_faster",
    {"            n_trial=trials,": "            n_trial=trials,\n            early_stopping=2,"},
    message="whatever their times|n_trial= of tune",
)


@right("matmul_template")
def order_of_rows_and_steps_as_a_choice(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    cfg = autotvm.get_config()
    for name, values in (("columns", [8, 16, 48]), ("rows", [1, 3, 8]), ("order", [0, 1])):
        cfg.define_knob(name, values)
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    i_outer, i_inner = schedule[C].split(i, factor=cfg["rows"].val)
    j_outer, j_inner = schedule[C].split(j, factor=cfg["columns"].val)
    order = [i_inner, r] if cfg["order"].val else [r, i_inner]
    schedule[C].reorder(i_outer, j_outer, *order, j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    schedule[C].vectorize(j_inner)
    return schedule, [A, B, C]


@mutant("metaschedule_space", message="in each of 96 samples")
def decisions_given(schedule):
    block = schedule.get_sblock("C")
    i, j, k = schedule.get_loops(block)
    a, b, c = (
        schedule.sample_perfect_tile(
            i, n=2, max_innermost_factor=16, decision=[int(schedule.get(i).extent), 1]
        ),
        schedule.sample_perfect_tile(
            j, n=2, max_innermost_factor=64, decision=[1, int(schedule.get(j).extent)]
        ),
        schedule.sample_perfect_tile(k, n=2, max_innermost_factor=8),
    )
    io, ii = schedule.split(i, a)
    jo, ji = schedule.split(j, b)
    ko, ki = schedule.split(k, c)
    schedule.reorder(io, jo, ko, ki, ii, ji)
    schedule.vectorize(ji)
    schedule.parallel(schedule.fuse(io, jo))


edited(
    "tune_autotvm",
    "eight_trials_at_most",
    {"n_trial=trials": "n_trial=min(trials, 8)"},
    message="n_trial=33",
)


edited(
    "matmul_template",
    "one_thread_for_few_rows",
    {"    schedule[C].parallel(tiles)": "    if m >= 64:\n        schedule[C].parallel(tiles)"},
    message="a parallel loop in every configuration",
)
edited(
    "matmul_template",
    "a_long_sum_rounded_down",
    {"te.reduce_axis((0, k)": "te.reduce_axis((0, k - k % 4 if k > 64 else k)"},
    message="a sum over all",
)
edited(
    "matmul_template",
    "eight_rows_at_most",
    {'factor=cfg["rows"].val': 'factor=min(cfg["rows"].val, 8)'},
    message="each value of the knob rows",
)
edited(
    "tune_ansor",
    "the_default_builder",
    {"                builder=measure.builder,\n": ""},
    message="TVM's own builder",
)
edited(
    "tune_metaschedule",
    "without_progress",
    {"                measure.callback,\n": ""},
    message="after them one that shows progress",
)
edited(
    "tune_metaschedule",
    "progress_before_the_records",
    {
        '                *ms.measure_callback.MeasureCallback.create("default"),\n': "",
        "                measure.callback,\n": "                measure.callback,\n"
        '                *ms.measure_callback.MeasureCallback.create("default"),\n',
    },
    message="after them one that shows progress",
)


edited(
    "apply_autotvm",
    "leaves_the_target_current",
    {"    with task.target:": "    task.target.__enter__()\n    with task.target:"},
    message="leaves TVM's current target",
)
edited(
    "apply_metaschedule",
    "leaves_the_database_current",
    {"    with target, database:": "    database.__enter__()\n    with target:"},
    message="leaves MetaSchedule's current database",
)


edited(
    "metaschedule_space",
    "columns_by_the_factors_of_rows",
    {"schedule.split(j, columns)": "schedule.split(j, [None, rows[1], rows[2]])"},
    message="each loop split by the factors",
)
edited(
    "metaschedule_space",
    "steps_of_a_list",
    {
        "schedule.split(k, steps)": "schedule.split(\n        k, [None, "
        "schedule.sample_categorical([1, 2, 4], [0.4, 0.3, 0.3])]\n    )"
    },
    message="each loop split by the factors",
)


edited(
    "search_task",
    "registers_nothing_twice",
    {"f=matmul, override=True": "f=matmul"},
    message="search_task to run|registered already",
)
edited(
    "search_task",
    "the_functions_own_name",
    {
        "register_workload(name, f": 'register_workload("matmul", f',
        "SearchTask(func=name": 'SearchTask(func="matmul"',
    },
    message="the workload's name, and",
)
edited(
    "search_task",
    "a_workload_of_one_size",
    {
        "def matmul(m: int, n: int, k: int)": "def matmul(*numbers: int)",
    },
    message="the workload of .* returns",
)
edited(
    "search_task",
    "rows_and_columns_exchanged",
    {"args=(m, n, k)": "args=(n, m, k)"},
    message="func= and args= of SearchTask",
)
edited(
    "search_task",
    "for_any_processor",
    {"target=target": 'target="llvm"'},
    message="target= of SearchTask",
)
edited(
    "search_task",
    "the_result_first",
    {"return [A, B, C]": "return [C, A, B]"},
    message="the order of the tensors|search_task to run",
)
edited(
    "search_task",
    "a_workload_of_doubles",
    {
        '(m, k), name="A"': '(m, k), "float64", name="A"',
        '(k, n), name="B"': '(k, n), "float64", name="B"',
    },
    message="their dtype",
)
edited(
    "search_task",
    "b_is_transposed",
    {'(k, n), name="B"': '(n, k), name="B"', "B[r, j]": "B[j, r]"},
    message="returns .A, B, C.",
)
edited(
    "search_task",
    "keeps_the_first_of_a_name",
    {
        "    def matmul(m: int, n: int, k: int)": "    from tvm.auto_scheduler.workload_registry "
        "import WORKLOAD_FUNC_REGISTRY\n\n    sizes = (m, n, k)\n\n    def matmul(*_: int)",
        "        A = te.placeholder(": "        m, n, k = sizes\n        A = te.placeholder(",
        "    auto_scheduler.register_workload(name, f=matmul, override=True)": "    "
        "WORKLOAD_FUNC_REGISTRY.setdefault(name, matmul)",
    },
    message="the workload of .* returns",
)
edited(
    "tune_task",
    "a_model_after_100_trials",
    {"num_warmup_sample=round_size - 1": ""},
    message="num_warmup_sample= of XGBModel",
)
edited(
    "tune_task",
    "the_tasks_own_policy",
    {"task.tune(options, policy)": "task.tune(options)"},
    message="a search by the policy that was made",
)
edited(
    "tune_task",
    "a_model_that_guesses",
    {"SketchPolicy(task, model,": "SketchPolicy(task, auto_scheduler.RandomModel(),"},
    message="whose cost model is an XGBModel",
)
edited(
    "tune_task",
    "the_default_population",
    {"params=fast_search_params(), ": ""},
    message="a small search population",
)
edited(
    "tune_task",
    "all_in_one_round",
    {"num_measures_per_round=round_size": "num_measures_per_round=trials"},
    message="num_measures_per_round=",
)
edited(
    "tune_task",
    "eight_of_one_task_at_most",
    {"num_measure_trials=trials": "num_measure_trials=min(trials, 8)"},
    message="num_measure_trials=33",
)
edited(
    "tune_task",
    "writes_no_records",
    {"auto_scheduler.RecordToFile(log)": "measure.callback"},
    message="RecordToFile",
)
edited(
    "tune_task",
    "shows_no_progress",
    {", measure.callback]": "]"},
    message="one that shows progress",
)
edited(
    "tune_task",
    "in_two_searches",
    {
        "        task.tune(options, policy)": "        task.tune(options, policy)\n"
        "        task.tune(options, policy)"
    },
    message="one tune.. for all trials|trials in the log",
)
edited(
    "tune_task",
    "ends_where_nothing_is_faster",
    {
        "            verbose=0,\n        )\n        task": "            verbose=0,\n"
        "            early_stopping=5,\n        )\n        task"
    },
    message="early_stopping= of TuningOptions",
)
edited(
    "tune_ansor",
    "ansor_ends_where_nothing_is_faster",
    {
        "                verbose=0,\n": "                verbose=0,\n"
        "                early_stopping=5,\n"
    },
    message="early_stopping= of TuningOptions",
)
edited(
    "tune_task",
    "the_runner_of_tvm",
    {"            runner=measure.runner,\n": ""},
    message="TVM's own runner",
)
edited(
    "tune_task",
    "removes_the_log",
    {
        "    round_size = ": "    from pathlib import Path\n\n"
        "    Path(log).unlink(missing_ok=True)\n"
        "    round_size = "
    },
    message="do not delete the file before",
)


@right("search_task")
def registers_a_lambda(name, m, n, k, target):
    from tvm import auto_scheduler, te

    def declared(rows, columns, steps):
        a = te.placeholder((rows, steps), "float32", name="a")
        b = te.placeholder((steps, columns), "float32", name="b")
        r = te.reduce_axis((0, steps), name="r")
        return [
            a,
            b,
            te.compute((rows, columns), lambda i, j: te.sum(a[i, r] * b[r, j], axis=[r])),
        ]

    auto_scheduler.register_workload(name, f=declared, override=True)
    key = auto_scheduler.make_workload_key(name, (m, n, k))
    return auto_scheduler.SearchTask(workload_key=key, target=target)


edited(
    "matmul_template",
    "eight_rows_where_one_step_is_unrolled",
    {'factor=cfg["rows"].val': 'factor=cfg["rows"].val if cfg["unroll_k"].val > 1 else 8'},
    message="the same schedule for .*rows.* and .*rows",
)
edited(
    "tune_autotvm",
    "begins_each_search_alike",
    {
        "    from tvm import autotvm\n": "    import numpy as np\n    from tvm import autotvm\n\n"
        "    np.random.seed(0)\n"
    },
    message="seeds NumPy's shared generator",
)
edited(
    "search_task",
    "in_small_letters",
    {
        "register_workload(name, f": "register_workload(name.lower(), f",
        "SearchTask(func=name": "SearchTask(func=name.lower()",
    },
    message="the workload's name, and",
)
edited(
    "search_task",
    "of_512_at_most",
    {
        "        A = te.placeholder(": "        m, n, k = (min(each, 512) for each in (m, n, k))\n"
        "        A = te.placeholder("
    },
    message="returns .A, B, C.|A.*differ",
)
edited(
    "search_task",
    "registered_unless_known",
    {
        "    auto_scheduler.register_workload(name, f=matmul, override=True)": "    from tvm.auto_"
        "scheduler.workload_registry import WORKLOAD_FUNC_REGISTRY\n\n"
        "    if name not in WORKLOAD_FUNC_REGISTRY:\n"
        "        auto_scheduler.register_workload(name, f=matmul)"
    },
    message="returns .A, B, C.",
)
edited(
    "search_task",
    "kept_for_the_numbers",
    {
        "    from tvm import auto_scheduler": "    kept = search_task.__dict__\n"
        "    if (name, m, n, k) in kept:\n        return kept[name, m, n, k]\n"
        "    from tvm import auto_scheduler",
        "    return auto": "    kept[name, m, n, k] = auto",
        "target=target)": "target=target)\n    return kept[name, m, n, k]",
    },
    message="target= of SearchTask",
)
edited(
    "search_task",
    "a_single_element_twice",
    {"te.sum(A[i, r] * B[r, j]": "te.sum(A[i, r] * B[r, j] * (2.0 if m == n == 1 else 1.0)"},
    message="the formula of the workload",
)
edited(
    "search_task",
    "registered_once_in_a_process",
    {
        "    auto_scheduler.register_workload(name, f=matmul, override=True)": "    if name not in "
        "search_task.__dict__:\n"
        "        auto_scheduler.register_workload(name, f=matmul, override=True)\n"
        "        search_task.__dict__[name] = True"
    },
    message="returns .A, B, C.",
)
edited(
    "tune_task",
    "a_log_of_json_alone",
    {"RecordToFile(log)": 'RecordToFile(log if log.endswith(".json") else log + ".json")'},
    message="RecordToFile.log.",
)
edited(
    "tune_task",
    "one_search_for_a_log",
    {
        "    round_size = ": "    done = tune_task.__dict__\n    if log in done:\n        return\n"
        "    done[log] = True\n    round_size = "
    },
    message="no models",
)
edited(
    "tune_task",
    "whole_rounds_at_most",
    {"num_measure_trials=trials": "num_measure_trials=max(1, trials // round_size) * round_size"},
    message="num_measure_trials=",
)


edited(
    "matmul_template",
    "one_thread_for_sixteen_rows",
    {
        "    schedule[C].parallel(tiles)": '    if cfg["rows"].val != 16:\n'
        "        schedule[C].parallel(tiles)"
    },
    message="a parallel loop in every configuration",
)
edited(
    "matmul_template",
    "one_thread_for_tiles_of_one_size",
    {
        "    schedule[C].parallel(tiles)": '    size = cfg["rows"].val, cfg["columns"].val, '
        'cfg["unroll_k"].val\n    if size != (12, 64, 4):\n        schedule[C].parallel(tiles)'
    },
    message="a parallel loop in every configuration",
)
edited(
    "matmul_template",
    "no_vectors_for_sixteen_rows",
    {
        "    schedule[C].vectorize(j_inner)": '    if cfg["rows"].val != 16:\n'
        "        schedule[C].vectorize(j_inner)",
        "    schedule[tile].vectorize(column)": '    if cfg["rows"].val != 16:\n'
        "        schedule[tile].vectorize(column)",
    },
    message="a vectorized loop in every configuration|the innermost loop is vectorized",
)
edited(
    "tune_task",
    "shows_progress_of_64",
    {"measuring([task], trials, log)": "measuring([task], 64, log)"},
    message="the second argument of measuring",
)
edited(
    "tune_task",
    "recovers_another_log",
    {"measuring([task], trials, log)": 'measuring([task], trials, f"{log}.tmp")'},
    message="the last argument of measuring",
)
edited(
    "tune_autotvm",
    "shows_progress_of_64_trials",
    {"measuring(task, trials, log)": "measuring(task, 64, log)"},
    message="the second argument of measuring",
)
edited(
    "tune_autotvm",
    "recovers_another_log_of_autotvm",
    {"measuring(task, trials, log)": 'measuring(task, trials, f"{log}.tmp")'},
    message="the last argument of measuring",
)
edited(
    "tune_autotvm",
    "a_loss_that_xgboost_refuses",
    {'loss_type="reg"': 'loss_type="rank"'},
    message="loss_type= of XGBTuner",
)
edited(
    "tune_ansor",
    "shows_progress_of_64_schedules",
    {"measuring(tasks, trials, log)": "measuring(tasks, 64, log)"},
    message="the second argument of measuring",
)
edited(
    "tune_ansor",
    "weights_of_other_tasks",
    {"            tasks, weights, load": "            tasks[::-1], weights, load"},
    message="the tasks as given",
)
edited(
    "tune_metaschedule",
    "shows_progress_of_64_samples",
    {"measuring(contexts, trials, work_dir)": "measuring(contexts, 64, work_dir)"},
    message="the second argument of measuring",
)
edited(
    "tune_metaschedule",
    "recovers_another_folder",
    {"measuring(contexts, trials, work_dir)": 'measuring(contexts, trials, f"{work_dir}-tmp")'},
    message="the last argument of measuring",
)
edited(
    "tune_metaschedule",
    "sixteen_trials_for_a_task_at_most",
    {
        "            max_trials_global=trials,\n": "            max_trials_global=trials,\n"
        "            max_trials_per_task=16,\n"
    },
    message="max_trials_per_task=",
)
edited(
    "tune_metaschedule",
    "task_after_task",
    {
        "            max_trials_global=trials,\n": "            max_trials_global=trials,\n"
        '            task_scheduler="round-robin",\n'
    },
    message="task_scheduler=",
)
edited(
    "tune_metaschedule",
    "the_runner_of_metaschedule",
    {"            runner=measure.runner,\n": ""},
    message="TVM's own runner",
)
edited(
    "metaschedule_space",
    "vectors_where_the_sample_is_long",
    {
        "    schedule.vectorize(j_inner)\n": "    if int(schedule.get(j_inner).extent) >= 4:\n"
        "        schedule.vectorize(j_inner)\n"
    },
    message="the same calls whatever is sampled|the innermost loop is vectorized",
)
edited(
    "metaschedule_space",
    "threads_where_the_sample_has_many_tiles",
    {
        "    schedule.parallel(schedule.fuse(i_outer, j_outer))": "    tiles = schedule.fuse("
        "i_outer, j_outer)\n    if int(schedule.get(tiles).extent) >= 8:\n"
        "        schedule.parallel(tiles)"
    },
    message="the same calls whatever is sampled",
)


@mutant("apply_autotvm", message="none of the log's records")
def applies_the_best_of_another_template(task, log):
    import numpy as np
    from tvm import autotvm

    mine = [
        (np.mean(result.costs), measured.config)
        for measured, result in autotvm.record.load_from_file(log)
        if result.error_no == 0 and measured.task.args == task.args
    ]
    if not mine:
        raise ValueError(f"{log} has no record of {task.args}")
    with task.target:
        return task.instantiate(min(mine, key=lambda each: each[0])[1])


@mutant("apply_ansor", message="none of the log's records")
def applies_the_best_of_another_workload(task, log):
    import json

    import numpy as np
    from tvm import auto_scheduler

    sizes = json.loads(task.workload_key)[1:]
    mine = [
        (np.mean([float(each) for each in result.costs]), measured.state)
        for measured, result in auto_scheduler.RecordReader(log)
        if result.error_no == 0 and json.loads(measured.task.workload_key)[1:] == sizes
    ]
    if not mine:
        raise RuntimeError(f"{log} has no record of {sizes}")
    best = min(mine, key=lambda each: each[0])[1]
    schedule, tensors = task.compute_dag.apply_steps_from_state(best)
    return schedule, tensors


@right("apply_autotvm")
def from_the_records(task, log):
    import numpy as np
    from tvm import autotvm

    mine = {
        float(np.mean(result.costs)): measured.config
        for measured, result in autotvm.record.load_from_file(log)
        if result.error_no == 0 and measured.task.workload == task.workload
    }
    if not mine:
        raise ValueError(f"{log} has no valid record of {task.name}")
    with task.target:
        return task.instantiate(mine[min(mine)])


@right("apply_metaschedule")
def operator_after_operator(mod, database, target):
    import tvm

    applied = tvm.IRModule(dict(mod.functions.items()))
    for variable, function in mod.functions.items():
        if isinstance(function, tvm.tirx.PrimFunc):
            name = variable.name_hint
            found = database.query_schedule(tvm.IRModule({"main": function}), target, name)
            if found is not None:
                scheduled = found.mod["main"].with_attr("global_symbol", name)
                applied.update_func(variable, scheduled)
    return applied


@mutant("apply_metaschedule", message="apply_metaschedule to run")
def schedules_main_as_well(mod, database, target):
    import tvm
    import tvm_ffi

    applied = tvm.IRModule(dict(mod.functions.items()))
    for variable, function in mod.functions.items():
        workload = tvm.IRModule({"main": function})
        schedule = tvm.s_tir.Schedule(workload)
        found = [
            each
            for each in database.get_all_tuning_records()
            if tvm_ffi.structural_equal(each.workload.mod, workload)
        ]
        if found:
            best = min(found, key=lambda each: float(each.run_secs[0]))
            best.trace.apply_to_schedule(schedule, remove_postproc=False)
            applied.update_func(variable, schedule.mod["main"])
    return applied


@right("apply_metaschedule")
def functions_by_their_names(mod, database, target):
    import tvm
    from tvm import relax

    with target, database:
        applied = relax.transform.MetaScheduleApplyDatabase()(mod)
    names = [variable.name_hint for variable in applied.get_global_vars()]
    return tvm.IRModule({name: applied[name] for name in names})


@right("tune_metaschedule")
def by_the_shorter_name(contexts, weights, *, trials, work_dir):
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners import budget, metaschedule

    callbacks = list(ms.measure_callback.MeasureCallback.create("default"))
    with metaschedule.measuring(contexts, trials, work_dir) as measure:
        return ms.tune_tasks(
            tasks=contexts,
            task_weights=weights,
            work_dir=work_dir,
            max_trials_global=trials,
            max_trials_per_task=trials,
            num_trials_per_iter=budget.trials_per_round(trials, len(contexts)),
            builder=measure.builder,
            runner=measure.runner,
            database="json",
            cost_model=metaschedule.cost_model(),
            measure_callbacks=[*callbacks, measure.callback],
            task_scheduler="gradient",
        )


@right("tune_autotvm")
def by_position(task, *, trials, log):
    from tvm.autotvm import callback
    from tvm.autotvm.tuner import XGBTuner

    from tvm_practice.tvm_export.tuners import autotvm, budget

    tuner = XGBTuner(task, budget.plan_size(trials), "knob", "reg", 1)
    with autotvm.measuring(task, trials, log) as measure:
        tuner.tune(trials, measure.option, None, (callback.log_to_file(log), measure.callback))


@right("tune_ansor")
def options_by_position(tasks, weights, *, trials, log):
    from pathlib import Path

    from tvm.auto_scheduler import RecordToFile, TaskScheduler, TuningOptions

    from tvm_practice.tvm_export.tuners import ansor, budget

    known = {"load_log_file": log} if Path(log).is_file() else {}
    scheduler = TaskScheduler(tasks, weights, callbacks=[], **known)
    size = budget.trials_per_round(trials, len(tasks))
    with ansor.measuring(tasks, trials, log) as measure:
        callbacks = [RecordToFile(log), measure.callback]
        scheduler.tune(
            TuningOptions(trials, None, size, 0, measure.builder, measure.runner, callbacks),
            search_policy_params=ansor.fast_search_params(),
        )


right_edited(
    "tune_ansor",
    "weights_in_an_objective",
    {
        "tasks, weights, load_log_file": (
            "tasks, objective_func=lambda costs: sum(w * c for w, c in zip(weights, costs)), "
            "load_log_file"
        )
    },
)


right_edited(
    "tune_task",
    "tells_the_model_later",
    {
        "XGBModel(num_warmup_sample=round_size - 1)": (
            "XGBModel()\n    model.num_warmup_sample = round_size"
        )
    },
)
right_edited(
    "tune_autotvm",
    "tells_the_tuner_later",
    {
        "task, plan_size=plan_size(trials), feature_type": "task, feature_type",
        "        learn_from(": "        tuner.plan_size = plan_size(trials)\n        learn_from(",
    },
)
right_edited(
    "tune_ansor",
    "makes_the_policies",
    {
        "            search_policy_params=fast_search_params(),\n": (
            "            search_policy=[\n"
            "                auto_scheduler.SketchPolicy(\n"
            "                    task, model, params=fast_search_params(), verbose=0\n"
            "                )\n"
            "                for task in tasks\n"
            "            ],\n"
        ),
        "        scheduler.tune(\n": (
            "        model = auto_scheduler.XGBModel(num_warmup_sample=0)\n"
            "        scheduler.tune(\n"
        ),
    },
)


@right("tune_task")
def in_whole_rounds(task, *, trials, log):
    from tvm import auto_scheduler as search

    from tvm_practice.tvm_export.tuners import ansor, budget

    size = budget.trials_per_round(trials, 1)
    rounded = -(-trials // size) * size
    model = search.XGBModel(verbose_eval=0, num_warmup_sample=size)
    policy = search.SketchPolicy(task, model, params=ansor.fast_search_params(), verbose=0)
    with ansor.measuring([task], rounded, log) as measure:
        options = search.TuningOptions(
            rounded,
            early_stopping=-1,
            num_measures_per_round=size,
            verbose=0,
            builder=measure.builder,
            runner=measure.runner,
            measure_callbacks=[search.RecordToFile(log), measure.callback],
        )
        task.tune(options, search_policy=policy)


@right("metaschedule_space")
def columns_outermost(schedule):
    def cut(loop):
        return schedule.split(loop, schedule.sample_perfect_tile(loop, n=2))

    rows, columns, steps = schedule.get_loops(schedule.get_sblock("C"))
    (i_0, i_1), (j_0, j_1), (k_0, k_1) = map(cut, (rows, columns, steps))
    schedule.reorder(j_0, i_0, k_0, k_1, i_1, j_1)
    schedule.vectorize(j_1)
    schedule.parallel(schedule.fuse(j_0, i_0))


@right("search_task")
def below_the_decorator(name, m, n, k, target):
    from tvm import auto_scheduler, te

    @auto_scheduler.register_workload(name, override=True)
    def product(rows, columns, depth):
        X = te.placeholder((rows, depth), name="X")
        Y = te.placeholder((depth, columns), name="Y")
        r = te.reduce_axis((0, depth))
        Z = te.compute((rows, columns), lambda x, y: te.sum(X[x, r] * Y[r, y], r), "Z")
        return [X, Y, Z]

    return auto_scheduler.SearchTask(func=name, args=[m, n, k], target=target)


edited(
    "matmul_template",
    "two_rows_where_a_tile_does_not_divide",
    {'factor=cfg["rows"].val': 'factor=cfg["rows"].val if m % cfg["rows"].val == 0 else 2'},
    message="the same schedule for .*rows.* and .*rows|each value of the knob rows",
)
edited(
    "matmul_template",
    "columns_of_half_the_matrix_at_most",
    {'factor=cfg["columns"].val': 'factor=min(cfg["columns"].val, n // 4 + 1)'},
    message="the same schedule for .*columns.* and .*columns",
)


@right("matmul_template")
def three_levels_of_rows(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    cfg = autotvm.get_config()
    cfg.define_split("rows", i, num_outputs=3, policy="verbose")
    cfg.define_split("columns", j, num_outputs=2, filter=lambda each: each.size[-1] <= 64)
    i_0, i_1, i_2 = cfg["rows"].apply(schedule, C, i)
    j_0, j_1 = cfg["columns"].apply(schedule, C, j)
    schedule[C].reorder(i_0, j_0, i_1, r, i_2, j_1)
    schedule[C].vectorize(j_1)
    schedule[C].parallel(schedule[C].fuse(i_0, j_0))
    return schedule, [A, B, C]


@right("matmul_template")
def unrolled_by_an_annotation(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    schedule = te.create_schedule(C.op)
    cfg = autotvm.get_config()
    for name, values in (("rows", [2, 4, 8]), ("columns", [8, 16, 32]), ("steps", [2, 4])):
        cfg.define_knob(name, values)
    stage = schedule[C]
    i_0, j_0, i_1, j_1 = stage.tile(*C.op.axis, cfg["rows"].val, cfg["columns"].val)
    k_0, k_1 = stage.split(r, cfg["steps"].val)
    stage.reorder(i_0, j_0, k_0, k_1, i_1, j_1)
    cfg.define_annotate("unrolled", [k_1, i_1], policy="try_unroll")
    cfg["unrolled"].apply(schedule, C, [k_1, i_1])
    stage.vectorize(j_1)
    stage.parallel(stage.fuse(i_0, j_0))
    return schedule, [A, B, C]


@right("matmul_template")
def limit_of_unrolling_by_a_pragma(m, n, k):
    from tvm import autotvm, te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    schedule = te.create_schedule(C.op)
    cfg = autotvm.get_config()

    def powers(least, most):
        return [1 << power for power in range(7) if least <= 1 << power <= most]

    cfg.define_knob("rows", powers(2, min(m, 16)) or [1])
    cfg.define_knob("columns", powers(min(n, 2), min(n, 64)) or [1])
    cfg.define_knob("limit", [0, 16] if m > 1 else [0])
    stage = schedule[C]
    i_0, j_0, i_1, j_1 = stage.tile(*C.op.axis, cfg["rows"].val, cfg["columns"].val)
    stage.reorder(i_0, j_0, r, i_1, j_1)
    tiles = stage.fuse(i_0, j_0)
    stage.pragma(tiles, "auto_unroll_max_step", cfg["limit"].val)
    stage.pragma(tiles, "unroll_explicit", False)
    stage.vectorize(j_1)
    stage.parallel(tiles)
    return schedule, [A, B, C]


@right("apply_autotvm")
def reads_the_log_itself(task, log):
    import numpy as np
    from tvm import autotvm

    best, least = None, float("inf")
    for given, result in autotvm.record.load_from_file(log):
        of_task = given.task.workload == task.workload and str(given.target) == str(task.target)
        if of_task and result.error_no == 0 and np.mean(result.costs) < least:
            best, least = given.config, np.mean(result.costs)
    if best is None:
        raise ValueError(f"{log} has no valid record of {task.name}")
    with task.target:
        schedule, tensors = task.instantiate(best)
    return schedule, tensors


@right("apply_autotvm")
def with_the_log_as_context(task, log):
    from pathlib import Path

    from tvm import autotvm

    with task.target, autotvm.apply_history_best(str(Path(log))) as context:
        if (found := context.query(task.target, task.workload)).is_fallback:
            raise ValueError("the log has no valid record of the task")
        return task.instantiate(found)


edited(
    "search_task",
    "sums_of_at_most_4096",
    {"(0, k)": "(0, min(k, 4096))"},
    message="the formula of the workload",
)


edited(
    "matmul_template",
    "sums_of_at_most_1024",
    {"te.reduce_axis((0, k)": "te.reduce_axis((0, min(k, 1024))"},
    message="a sum over all",
)


edited(
    "apply_autotvm",
    "instantiates_without_the_target",
    {("with task.target:\n        config"): ("if True:\n        config")},
    message="in the context of the task's target",
)


edited(
    "apply_metaschedule",
    "prefers_the_current_target",
    {"with target, database:": "with database, target.current(allow_none=True) or target:"},
    message="records looked up for the target given",
)


edited(
    "tune_metaschedule",
    "one_default_callback_for_a_single_task",
    {
        '*ms.measure_callback.MeasureCallback.create("default"),': (
            "*(ms.measure_callback.MeasureCallback.create('default') if "
            "len(contexts) > 1 else [ms.measure_callback.AddToDatabase()]),"
        )
    },
    message="default measure callbacks",
)


edited(
    "metaschedule_space",
    "does_not_sample_an_odd_k",
    {
        ("steps = schedule.sample_perfect_tile(k, n=2, max_innermost_factor=8)"): (
            "steps = schedule.sample_perfect_tile(k, n=2, "
            "max_innermost_factor=8) if int(schedule.get(k).extent) % 2 == 0 "
            "else [None, 1]"
        )
    },
    message="factors of the splits that the search chooses",
)


edited(
    "matmul_template",
    "tiles_of_m_rows_at_most",
    {'factor=cfg["rows"].val': 'factor=min(cfg["rows"].val, m)'},
    message="a schedule of its own",
)


edited(
    "apply_metaschedule",
    "leaves_a_single_function_alone",
    {
        "return relax.transform.MetaScheduleApplyDatabase()(mod)": (
            "return relax.transform.MetaScheduleApplyDatabase()(mod) if "
            "len(mod.functions) > 1 else mod"
        )
    },
    message="also on the PrimFunc of one matmul",
)


edited(
    "tune_autotvm", "ignores_trials", {"n_trial=trials": "n_trial=2"}, message="n_trial=.* of tune"
)


edited(
    "tune_autotvm",
    "writes_no_log",
    {"autotvm.callback.log_to_file(log)": "measure.callback"},
    message="callbacks=.*log_to_file",
)


edited(
    "tune_autotvm",
    "starts_the_log_anew",
    {
        "    with measuring(task, trials, log) as measure:": (
            "    from pathlib import Path\n\n    Path(log).unlink(missing_ok=True)\n"
            "    with measuring(task, trials, log) as measure:"
        )
    },
    message="do not delete the file before",
)


edited(
    "tune_ansor",
    "keeps_no_records",
    {"auto_scheduler.RecordToFile(log)": "measure.callback"},
    message="RecordToFile",
)


edited(
    "tune_ansor",
    "large_weights_as_one",
    {"tasks, weights,": "tasks, [1.0] * len(tasks) if sum(weights) > 100 else weights,"},
    message="the tasks weighted as given",
)


edited(
    "metaschedule_space",
    "odd_columns_serial",
    {
        "    rows = schedule.sample": (
            "    odd = int(schedule.get(j).extent) % 2\n    rows = schedule.sample"
        ),
        "    schedule.vectorize(j_inner)": ("    if not odd:\n        schedule.vectorize(j_inner)"),
    },
    message="innermost loop vectorized",
)


edited(
    "matmul_template",
    "columns_of_c_as_a_value",
    {"[8, 16, 32, 64, 128]": "[8, 16, 32, 64, n]"},
    message="different|differ|schedule of",
)


edited(
    "search_task",
    "hardware_of_its_own",
    {
        "target=target)": (
            "target=target, hardware_params=auto_scheduler.HardwareParams(2, "
            "16, 64, target=target))"
        )
    },
    message="the hardware as the target has it",
)


edited(
    "apply_ansor",
    "compatible_records_as_well",
    {"task.apply_best(log)": "task.apply_best(log, include_compatible=True)"},
    message="no valid record",
)


edited(
    "tune_autotvm",
    "records_valid_trials_alone",
    {
        "autotvm.callback.log_to_file(log), measure": (
            "(lambda tuner, inputs, results: autotvm.callback.log_to_file(log)(tuner, "
            "*zip(*[p for p in zip(inputs, results) if p[1].error_no == 0])) if "
            "any(r.error_no == 0 for r in results) else None), measure"
        ),
    },
    message="each record",
)


edited(
    "apply_autotvm",
    "refuses_a_failed_end",
    {
        "    with task.target:": (
            "    if list(autotvm.record.load_from_file(log))[-1][1].error_no:\n"
            "        raise ValueError('the search failed')\n"
            "    with task.target:"
        ),
    },
    message="the search failed",
)


edited(
    "metaschedule_space",
    "fuses_one_loop",
    {
        "schedule.parallel(schedule.fuse(i_outer, j_outer))": (
            "schedule.parallel(schedule.fuse(i_outer))\n"
            "    schedule.parallel(j_outer) if False else None"
        ),
    },
    message="with several loops",
)


edited(
    "apply_metaschedule",
    "loses_patterns",
    {
        "return relax.transform.MetaScheduleApplyDatabase()(mod)": (
            "out = relax.transform.MetaScheduleApplyDatabase()(mod)\n"
            "    for gv in list(out.get_global_vars()):\n"
            "        out[gv] = out[gv].without_attr('op_pattern') if out[gv].attrs and "
            "'op_pattern' in out[gv].attrs else out[gv]\n"
            "    return out"
        ),
    },
    message="with its attributes",
)


edited(
    "matmul_template",
    "one_order_for_one_row",
    {
        "outer = [j_outer, i_outer] if": "outer = [j_outer, i_outer] if m > 1 and",
    },
    message="a schedule of its own",
)


edited(
    "search_task",
    "rewrites_the_layout_of_b",
    {
        "target=target)": (
            "target=target, "
            "layout_rewrite_option=auto_scheduler.LayoutRewriteOption.REWRITE_FOR_PRE_T"
            "RANSFORMED)"
        ),
    },
    message="layout_rewrite_option",
)


edited(
    "tune_task",
    "explores_at_random_alone",
    {
        "params=fast_search_params()": "params={**fast_search_params(), 'eps_greedy': 1.0}",
    },
    message="the parameters of ansor",
)


edited(
    "apply_autotvm",
    "fastest_by_the_sum_of_runs",
    {
        (
            "        config = autotvm.apply_history_best(log).query(task.target, "
            "task.workload)\n"
            "        if config.is_fallback:\n"
        ): (
            "        found = [(sum(r.costs), n, i.config) for n, (i, r) in "
            "enumerate(autotvm.record.load_from_file(log)) if i.task.workload == "
            "task.workload and str(i.target) == str(task.target) and r.error_no == 0]\n"
            "        config = min(found)[2] if found else None\n"
            "        if config is None:\n"
        ),
    },
    message="the fastest valid record",
)


edited(
    "tune_ansor",
    "goes_on_from_long_logs",
    {
        "if Path(log).exists() else None": (
            "if Path(log).exists() and Path(log).stat().st_size > 2000 else None"
        ),
    },
    message="whatever it contains",
)


edited(
    "apply_metaschedule",
    "applies_to_three_functions",
    {
        "        return relax.transform.MetaScheduleApplyDatabase()(mod)": (
            "        out = relax.transform.MetaScheduleApplyDatabase()(mod)\n"
            "        names = [gv.name_hint for gv in out.get_global_vars()]\n"
            "        if len(names) > 3:\n"
            "            out = mod\n"
            "        return out"
        ),
    },
    message="the fastest valid record",
)


edited(
    "matmul_template",
    "leaves_a_tall_column_serial",
    {
        "    schedule[C].parallel(tiles)": (
            "    if n > cfg['columns'].val or m < 1000:\n        schedule[C].parallel(tiles)"
        ),
    },
    message="a parallel loop in every configuration",
)


edited(
    "apply_autotvm",
    "reads_five_hundred_records",
    {
        (
            "        config = "
            "autotvm.apply_history_best(log).query(task.target, "
            "task.workload)\n"
            "        if config.is_fallback:\n"
        ): (
            "        import statistics\n"
            "        found = [(statistics.mean(r.costs), n, i.config) "
            "for n, (i, r) in "
            "enumerate(list(autotvm.record.load_from_file(log))[:500]) "
            "if i.task.workload == task.workload and str(i.target) == "
            "str(task.target) and r.error_no == 0]\n"
            "        config = min(found)[2] if found else None\n"
            "        if config is None:\n"
        ),
    },
    message="has no valid record",
)


edited(
    "apply_metaschedule",
    "keeps_by_the_module",
    {
        "    from tvm import relax\n": (
            "    from tvm import relax\n"
            "    import tvm_ffi\n"
            "    kept = apply_metaschedule.__dict__\n"
            "    key = tvm_ffi.structural_hash(mod), str(target)\n"
            "    if key in kept:\n"
            "        return kept[key]\n"
        ),
        ("        return relax.transform.MetaScheduleApplyDatabase()(mod)"): (
            "        kept[key] = "
            "relax.transform.MetaScheduleApplyDatabase()(mod)\n"
            "        return kept[key]"
        ),
    },
    message="which had another one",
)


for _wrong, _policy, _told in (
    (
        "makes_policies_without_a_model",
        "task, params=fast_search_params()",
        "policies whose XGBModel",
    ),
    (
        "makes_policies_of_many",
        "task, auto_scheduler.XGBModel(num_warmup_sample=0)",
        "a small search population",
    ),
):
    edited(
        "tune_ansor",
        _wrong,
        {
            "            search_policy_params=fast_search_params(),\n": (
                "            search_policy=[\n"
                f"                auto_scheduler.SketchPolicy({_policy}, verbose=0)\n"
                "                for task in tasks\n"
                "            ],\n"
            )
        },
        message=_told,
    )
edited(
    "tune_task",
    "warms_up_for_two_rounds",
    {"round_size - 1)": "2 * round_size)"},
    message="a model that is used after the first round",
)


for _name, _cost in (
    ("by_the_geometric_mean", "statistics.geometric_mean(costs)"),
    ("without_the_first_run", "statistics.mean(costs[1:] or costs)"),
):
    edited(
        "apply_autotvm",
        _name,
        {
            "        config = autotvm.apply_history_best(log).query(task.target, task.workload)\n"
            "        if config.is_fallback:\n": (
                "        import statistics\n"
                "        found = []\n"
                "        for given, result in autotvm.record.load_from_file(log):\n"
                "            costs = result.costs\n"
                "            if given.task.workload == task.workload and result.error_no == 0:\n"
                f"                found.append(({_cost}, len(found), given.config))\n"
                "        config = min(found)[2] if found else None\n"
                "        if config is None:\n"
            ),
        },
        message="the fastest valid record",
    )
    edited(
        "apply_ansor",
        _name,
        {
            "    schedule, tensors = task.apply_best(log)\n": (
                "    import statistics\n"
                "    from tvm import auto_scheduler\n"
                "    found = []\n"
                "    for given, result in auto_scheduler.load_records(log):\n"
                "        costs = [float(each) for each in result.costs]\n"
                "        same = given.task.workload_key == task.workload_key\n"
                "        if same and str(given.task.target) == str(task.target):\n"
                "            if result.error_no == 0:\n"
                f"                found.append(({_cost}, len(found), given.state))\n"
                "    if not found:\n"
                "        raise RuntimeError('no valid record')\n"
                "    schedule, tensors = task.compute_dag.apply_steps_from_state(\n"
                "        min(found)[2], task.layout_rewrite_option\n"
                "    )\n"
            ),
        },
        message="the fastest valid record",
    )


edited(
    "apply_autotvm",
    "by_the_mean_in_microseconds",
    {
        "        config = autotvm.apply_history_best(log).query(task.target, task.workload)\n"
        "        if config.is_fallback:\n": (
            "        found = []\n"
            "        for given, result in autotvm.record.load_from_file(log):\n"
            "            if given.task.workload == task.workload and result.error_no == 0:\n"
            "                mean = sum(result.costs) / len(result.costs)\n"
            "                found.append((round(mean * 1e6), len(found), given.config))\n"
            "        config = min(found)[2] if found else None\n"
            "        if config is None:\n"
        ),
    },
    message="the fastest valid record",
)
edited(
    "apply_ansor",
    "by_the_mean_in_microseconds",
    {
        "    schedule, tensors = task.apply_best(log)\n": (
            "    from tvm import auto_scheduler\n"
            "    found = []\n"
            "    for given, result in auto_scheduler.load_records(log):\n"
            "        costs = [float(each) for each in result.costs]\n"
            "        same = given.task.workload_key == task.workload_key\n"
            "        if same and str(given.task.target) == str(task.target):\n"
            "            if result.error_no == 0:\n"
            "                cost = round(sum(costs) / len(costs) * 1e6)\n"
            "                found.append((cost, len(found), given.state))\n"
            "    if not found:\n"
            "        raise RuntimeError('no valid record')\n"
            "    schedule, tensors = task.compute_dag.apply_steps_from_state(\n"
            "        min(found)[2], task.layout_rewrite_option\n"
            "    )\n"
        ),
    },
    message="the fastest valid record",
)


edited(
    "search_task",
    "copies_the_result_once_more",
    {
        "        return [A, B, C]": (
            '        D = te.compute((m, n), lambda i, j: C[i, j], name="D")\n'
            "        return [A, B, D]"
        ),
    },
    message="in one stage",
)
edited(
    "search_task",
    "multiplies_in_float64",
    {
        "te.sum(A[i, r] * B[r, j], axis=r)": (
            'te.sum((A[i, r].astype("float64") * B[r, j].astype("float64")).astype("float32"), r)'
        ),
    },
    message="products and sums in float32",
)


edited(
    "tune_ansor",
    "rounds_the_trials_down",
    {
        "num_measure_trials=trials": (
            "num_measure_trials=max(1, trials // trials_per_round(trials, len(tasks)))"
            " * trials_per_round(trials, len(tasks))"
        ),
    },
    message="as many as asked for in total",
)
edited(
    "tune_ansor",
    "subtracts_the_records_of_the_log",
    {
        "    with measuring(": (
            "    if Path(log).exists():\n"
            "        known = len(Path(log).read_text().splitlines())\n"
            "        trials = max(len(tasks), trials - known)\n"
            "    with measuring("
        ),
    },
    message="as many as asked for in total",
)
edited(
    "tune_metaschedule",
    "subtracts_the_records_of_the_folder",
    {
        "    with measuring(": (
            "    from pathlib import Path\n"
            "    old = Path(work_dir) / 'database_tuning_record.json'\n"
            "    if old.exists():\n"
            "        trials = max(len(contexts), trials - len(old.read_text().splitlines()))\n"
            "    with measuring("
        ),
    },
    message="as many as asked for in total",
)


edited(
    "matmul_template",
    "b_transposed_where_k_is_n",
    {"A[i, r] * B[r, j]": "A[i, r] * (B[j, r] if k == n else B[r, j])"},
    message="the formula",
)


edited(
    "metaschedule_space",
    "rows_of_a_tile_in_parallel",
    {"schedule.unroll(i_inner)": "schedule.parallel(i_inner)"},
    message="one parallel loop around each statement",
)

edited(
    "tune_autotvm",
    "a_thousand_trials_at_most",
    {"n_trial=trials": "n_trial=min(trials, 1000)"},
    message="however many there are",
)

edited(
    "apply_autotvm",
    "reads_the_last_lines",
    {
        "    with task.target:\n": "    with open(log) as file:\n"
        "        lines = file.readlines()[-40:]\n"
        "    import tempfile\n\n"
        '    with tempfile.NamedTemporaryFile("w", delete=False) as file:\n'
        "        file.writelines(lines)\n"
        "    log = file.name\n"
        "    with task.target:\n"
    },
    message="records more|no valid record",
)

edited(
    "search_task",
    "on_the_current_target",
    {
        "    return auto_scheduler.SearchTask(": "    import tvm\n\n"
        "    target = tvm.target.Target.current() or target\n"
        "    return auto_scheduler.SearchTask("
    },
    message="a task for the target",
)


edited(
    "tune_task",
    "a_thousand_trials_at_most",
    {"num_measure_trials=trials": "num_measure_trials=min(trials, 1000)"},
    message="num_measure_trials",
)
edited(
    "tune_ansor",
    "ten_thousand_trials_at_most",
    {"num_measure_trials=trials": "num_measure_trials=min(trials, 10_000)"},
    message="num_measure_trials",
)
edited(
    "tune_metaschedule",
    "ten_thousand_trials_at_most",
    {"max_trials_global=trials": "max_trials_global=min(trials, 10_000)"},
    message="max_trials_global",
)
edited(
    "apply_metaschedule",
    "loses_functions_without_a_symbol",
    {
        "return relax.transform.MetaScheduleApplyDatabase()(mod)": (
            "applied = relax.transform.MetaScheduleApplyDatabase()(mod)\n"
            "        symbols = {\n"
            "            each: function\n"
            "            for each, function in applied.functions.items()\n"
            '            if each.name_hint == "main" or "global_symbol" in (function.attrs or {})\n'
            "        }\n"
            "        return type(mod)(symbols)"
        )
    },
    message="a module with the functions",
)

edited(
    "apply_autotvm",
    "sizes_in_any_order",
    {
        "        config = autotvm.apply_history_best(log).query(task.target, task.workload)\n"
        "        if config.is_fallback:\n": (
            "        found = []\n"
            "        for given, result in autotvm.record.load_from_file(log):\n"
            "            of = given.task\n"
            "            alike = of.name == task.name and sorted(of.args) == sorted(task.args)\n"
            "            if alike and not result.error_no:\n"
            "                mean = sum(map(float, result.costs)) / len(result.costs)\n"
            "                found.append((mean, len(found), given.config))\n"
            "        config = min(found)[2] if found else None\n"
            "        if config is None:\n"
        )
    },
    message="none of the log's records",
)

edited(
    "apply_ansor",
    "sizes_in_any_order",
    {
        "    schedule, tensors = task.apply_best(log)\n": (
            "    import json\n"
            "    from tvm import auto_scheduler\n"
            "    found = []\n"
            "    name, *sizes = json.loads(task.workload_key)\n"
            "    for given, result in auto_scheduler.load_records(log):\n"
            "        other, *numbers = json.loads(given.task.workload_key)\n"
            "        alike = other == name and sorted(numbers) == sorted(sizes)\n"
            "        if alike and not result.error_no:\n"
            "            mean = sum(map(float, result.costs)) / len(result.costs)\n"
            "            found.append((mean, len(found), given.state))\n"
            "    if not found:\n"
            '        raise RuntimeError("no record")\n'
            "    schedule, tensors = task.compute_dag.apply_steps_from_state(min(found)[2])\n"
        )
    },
    message="none of the log's records|fastest valid record",
)


edited(
    "tune_autotvm",
    "seeds_and_puts_the_state_back",
    {
        "        tuner.tune(\n": "        import numpy as np\n\n"
        "        state = np.random.get_state()\n        np.random.seed(trials)\n"
        "        tuner.tune(\n",
        "measure.callback],\n        )": "measure.callback],\n        )\n"
        "        np.random.set_state(state)",
    },
    message="two searches that begin with different configurations",
)

edited(
    "tune_ansor",
    "the_largest_weighted_latency",
    {
        "tasks, weights, load_log_file": (
            "tasks, objective_func=lambda costs: max(w * c for w, c in zip(weights, costs)), "
            "load_log_file"
        )
    },
    message="the weighted sum of latencies",
)

edited(
    "metaschedule_space",
    "unrolls_where_a_step_has_several",
    {
        "    schedule.unroll(k_inner)\n": (
            "    if int(schedule.get(steps[1])) > 1:\n        schedule.unroll(k_inner)\n"
        )
    },
    message="the same calls whatever is sampled",
)
edited(
    "metaschedule_space",
    "unrolls_another_loop_where_a_step_has_several",
    {
        "    schedule.unroll(k_inner)\n": (
            "    schedule.unroll(k_inner if int(schedule.get(steps[1])) > 1 else k_outer)\n"
        )
    },
    message="the same calls whatever is sampled",
)


@mutant("apply_autotvm", message="fastest valid record")
def by_the_first_three_runs(task, log):
    from statistics import fmean

    from tvm import autotvm

    best, seconds = None, float("inf")
    for measured, result in autotvm.record.load_from_file(log):
        if measured.task.workload != task.workload or result.error_no != 0:
            continue
        if (mean := fmean(result.costs[:3])) < seconds:
            best, seconds = measured.config, mean
    if best is None:
        raise ValueError(f"no valid record in {log}")
    with task.target:
        return task.instantiate(best)


edited(
    "tune_ansor",
    "gives_tasks_up",
    {
        "                verbose=0,\n            ),\n": (
            "                verbose=0,\n            ),\n            per_task_early_stopping=2,\n"
        )
    },
    message="until all of them are spent",
)


edited(
    "matmul_template",
    "divisors_of_the_sizes",
    {
        "[1, 2, 4, 6, 8, 12, 16]": "[each for each in (1, 2, 4, 8, 16) if m % each == 0]",
        "[8, 16, 32, 64, 128]": "[each for each in (1, 2, 4, 8, 16) if n % each == 0]",
        '"unroll_k", [1, 2, 4, 8]': '"unroll_k", [each for each in (1, 2, 4, 8) if k % each == 0]',
        '"columns_first", [0, 1]': '"columns_first", [0]',
    },
    message="sizes that are prime|space of many configurations",
)


right_edited(
    "tune_autotvm",
    "writes_and_shows_in_one_callback",
    {
        "        tuner.tune(\n": "        write = autotvm.callback.log_to_file(log)\n\n"
        "        def both(*measured):\n"
        "            write(*measured)\n            measure.callback(*measured)\n\n"
        "        tuner.tune(\n",
        "[autotvm.callback.log_to_file(log), measure.callback]": "[both]",
    },
)
edited(
    "tune_autotvm",
    "only_writes",
    {", measure.callback]": "]"},
    message="one that shows progress",
)
right_edited(
    "tune_ansor",
    "writes_and_shows_in_one_callback",
    {
        "        scheduler.tune(\n": "        class Both(type(measure.callback)):\n"
        "            def callback(self, policy, inputs, results):\n"
        "                auto_scheduler.save_records(log, inputs, results)\n"
        "                super().callback(policy, inputs, results)\n\n"
        "        scheduler.tune(\n",
        "[auto_scheduler.RecordToFile(log), measure.callback]": "[Both()]",
    },
)


@mutant("tune_ansor", message="one that shows progress")
def writes_in_one_callback(tasks, weights, *, trials, log):
    from pathlib import Path

    from tvm import auto_scheduler

    from tvm_practice.tvm_export.tuners import ansor, budget

    known = log if Path(log).exists() else None
    with ansor.measuring(tasks, trials, log) as measure:
        scheduler = auto_scheduler.TaskScheduler(tasks, weights, load_log_file=known, callbacks=[])
        options = auto_scheduler.TuningOptions(
            num_measure_trials=trials,
            num_measures_per_round=budget.trials_per_round(trials, len(tasks)),
            builder=measure.builder,
            runner=measure.runner,
            measure_callbacks=[auto_scheduler.RecordToFile(log)],
            verbose=0,
        )
        scheduler.tune(options, search_policy_params=ansor.fast_search_params())


edited(
    "matmul_template",
    "excludes_large_tiles",
    {
        '    cfg.define_knob("columns_first", [0, 1])\n': (
            '    cfg.define_knob("columns_first", [0, 1])\n'
            "    cfg.multi_filter(lambda each: each['rows'].val * each['columns'].val <= 1024)\n"
        )
    },
    message="all combinations of the knobs' values",
)
