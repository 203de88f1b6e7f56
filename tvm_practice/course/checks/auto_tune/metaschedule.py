"""MetaSchedule: a design space, its search, the best records applied to a module."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tvm_practice.course.checks.auto_tune.common import (
    PHASE,
    Called,
    all_loops,
    calls_of,
    expect_different,
    expect_measuring,
    expect_records,
    expect_trials,
    expect_vectorized_and_parallel,
    measuring_calls,
)
from tvm_practice.course.expect import (
    draw_distinct,
    draw_normal,
    expect,
    expect_close,
    expect_type,
    fail,
    fresh_rng,
    path_to,
    show,
)
from tvm_practice.course.lowering import build_module
from tvm_practice.course.nests import accumulation, expect_loops
from tvm_practice.course.products import expect_product, matmul_function
from tvm_practice.course.tuning_logs import committed, draw_seconds, expect_best
from tvm_practice.engines import CURRENT, host_target
from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.running import run_relax
from tvm_practice.viz.loop_nest import format_nest, loop_nest, paths
from tvm_practice.wording import number_of


def _demonstrate_space(metaschedule_space: Callable[..., None]) -> str:
    import tvm

    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": matmul_function(64, 64, 64)}), seed=7)
    metaschedule_space(schedule)
    return format_nest(loop_nest(schedule.mod["main"]))


@PHASE.exercise(
    "metaschedule_space",
    engine=CURRENT,
    title="a design space for MetaSchedule",
    hints=(
        "It is phase 2's schedule with other numbers: each factor of a split is drawn, not "
        "written. Which loops should the search be free to split, and into how many?",
        "schedule.sample_perfect_tile(loop, n=2, max_innermost_factor=64) gives `n` factors for "
        "schedule.split. More loops make a larger space: three factors for i and j, two for k. The "
        "search replays your calls with other samples, so their number must not depend on them: "
        "pass preserve_unit_loops=True to compute_at and reverse_compute_at, or TVM drops loops "
        "of one iteration and get_loops returns fewer of them.",
        "i_outer, i_inner = schedule.split(i, schedule.sample_perfect_tile(i, n=2, "
        "max_innermost_factor=64)), and j likewise. Then reorder as in phase 2, "
        "parallel(fuse(i_outer, j_outer)), and vectorize(j_inner).",
    ),
    looks_like="""
        for i_0_j_0_fused in parallel(2):
            for i_1 in serial(16):
                for j_1 in serial(1):
                    for k_0 in serial(32):
                        for k_1 in unrolled(2):
                            for i_2 in unrolled(4):
                                for j_2 in vectorized(32):
                                    C: C_local <- A, B, C_local
                    for ax0 in serial(4):
                        for ax1 in vectorized(32):
                            C_local: C <- C_local
    """,
    demonstrate=_demonstrate_space,
)
def check_metaschedule_space(metaschedule_space: Callable[..., None]) -> None:
    import tvm

    m, n, k = draw_distinct(3, [24, 36, 40, 48, 56, 60, 64, 72])
    module = tvm.IRModule({"main": matmul_function(m, n, k)})
    schedule = tvm.s_tir.Schedule(module)
    metaschedule_space(schedule)
    kinds = [str(instruction.kind.name) for instruction in schedule.trace.insts]
    expect(
        any(kind.startswith("Sample") for kind in kinds),
        expected="numbers that the search chooses: sample_perfect_tile, sample_categorical",
        seen=f"only {', '.join(dict.fromkeys(kinds))}" if kinds else "no primitive at all",
        look="the factors of the splits, and whether `schedule` is changed in place, not a copy",
    )
    _expect_sampled_factors(schedule)
    _expect_choices(metaschedule_space, module)
    _expect_fused_tiles(schedule)
    nests = [loop_nest(each["main"]) for each in _sampled_modules(metaschedule_space, module)]
    expect_different(
        nests,
        "loops that differ from sample to sample",
        "whether the splits use the sampled factors",
    )
    expect_vectorized_and_parallel(nests)
    loops = [loop for nest in nests for loop in all_loops(nest)]
    wrong = [loop for loop in loops if loop.name[0] == "k" and loop.kind in _AT_ONCE]
    expect_loops(
        not wrong,
        wrong,
        "no loop over k is parallel or vectorized: its iterations add to the same elements",
        "the loops that are fused and run in parallel",
    )
    nested = [
        path
        for nest in nests
        for path, _ in paths(nest)
        if sum(loop.kind == "parallel" for loop in path) > 1
    ]
    expect_loops(
        not nested,
        nested[0] if nested else [],
        "one parallel loop around each statement: the fused tile loops",
        "schedule.parallel of a loop inside the tiles, whose threads would start at every step",
    )
    for rows, columns, steps in ((m, n, k), (37, 41, 29)):
        odd = tvm.IRModule({"main": matmul_function(rows, columns, steps)})
        sampled = _sampled_modules(metaschedule_space, odd)[0]
        expect_product(
            build_module(sampled),
            (rows, steps),
            (steps, columns),
            look="the calls on the schedule",
        )
    for sizes in ((37, 41, 29), (m + 1, n, k), (m, n + 1, k), (m, n, k + 1), (1024, 1024, 1024)):
        other = tvm.s_tir.Schedule(tvm.IRModule({"main": matmul_function(*sizes)}))
        metaschedule_space(other)
        _expect_sampled_factors(other)
        around = accumulation(loop_nest(other.mod["main"]))[0]
        expect_loops(
            around[-1].kind == "vectorized" and around[0].kind == "parallel",
            around,
            f"the innermost loop vectorized and the outermost parallel, for sizes {sizes}",
            "vectorize and parallel, whatever the sizes are: sampled factors divide them",
        )


_AT_ONCE = ("parallel", "vectorized")
# A factor that one of ten samples has is among so many, but for one draw in 20,000.
_SAMPLES = 96


def _expect_sampled_factors(schedule: Any) -> None:
    """The splits of i, j and k take factors that were sampled."""
    fixed = [
        int(factor)
        for instruction in schedule.trace.insts
        if str(instruction.kind.name) == "Split"
        for factor in instruction.inputs[1:]
        if isinstance(getattr(factor, "value", factor), int)
    ]
    expect(
        not fixed,
        expected="factors of the splits that the search chooses",
        seen=f"{', '.join(map(str, fixed))}, whatever is sampled",
        look="schedule.sample_perfect_tile for each loop that is split",
    )
    sampled = [each for each in schedule.trace.insts if "SamplePerfectTile" in str(each.kind.name)]
    factors = {each.inputs[0]: list(each.outputs) for each in sampled}
    foreign = [
        str(split.inputs[0])
        for split in schedule.trace.insts
        if str(split.kind.name) == "Split"
        and not all(
            any(each.same_as(own) for own in factors.get(split.inputs[0], ()))
            for each in split.inputs[1:]
            if each is not None
        )
    ]
    expect(
        not foreign,
        expected="each loop split by the factors that sample_perfect_tile gives for it",
        seen=f"{len(foreign)} loop{'s' * (len(foreign) > 1)} split by others",
        look="schedule.split(loop, schedule.sample_perfect_tile(loop, …)): those of another loop, "
        "or of sample_categorical, need not divide it",
    )
    expect(
        len(sampled) > 1,
        expected="sampled factors for rows and for columns",
        seen=f"{len(sampled)} sample_perfect_tile",
        look="schedule.sample_perfect_tile of i and of j",
    )


def _expect_choices(metaschedule_space: Callable[..., None], module: Any) -> None:
    """No loop is cut in the same way each time."""
    import tvm

    decided: dict[int, set[str]] = {}
    made: set[str] = set()
    for seed in range(1, 1 + _SAMPLES):
        schedule = tvm.s_tir.Schedule(module, seed=seed)
        metaschedule_space(schedule)
        trace = schedule.trace
        sampled = [each for each in trace.insts if "SamplePerfectTile" in str(each.kind.name)]
        for at, each in enumerate(sampled):
            decided.setdefault(at, set()).add(str(trace.decisions[each]))
        made.add(re.sub(r", decision=(\[[^\]]*\]|\d+)", "", str(trace)))
    same = [", ".join(each) for each in decided.values() if len(each) == 1]
    expect(
        not same,
        expected="factors that differ from sample to sample",
        seen=f"{' and '.join(same)} in each of {_SAMPLES} samples",
        look="decision= and max_innermost_factor= of sample_perfect_tile",
    )
    expect(
        len(made) == 1,
        expected="the same calls whatever is sampled: the search makes them once, and replays "
        "them with other samples",
        seen=f"{len(made)} different lists of calls in {_SAMPLES} samples",
        look="an `if` on the extent of a loop whose split is sampled; compute_at and "
        "reverse_compute_at without preserve_unit_loops=True, which drop loops of some samples",
    )


def _expect_fused_tiles(schedule: Any) -> None:
    """A loop that runs in parallel is one that was fused of several."""
    calls = schedule.trace.insts
    fused = [
        loop
        for each in calls
        if str(each.kind.name) == "Fuse" and len(each.inputs) > 1
        for loop in each.outputs
    ]
    parallel = [each.inputs[0] for each in calls if str(each.kind.name) == "Parallel"]
    expect(
        not parallel or any(loop.same_as(each) for loop in parallel for each in fused),
        expected="the outer tile loops fused, and the fused loop parallel",
        seen=f"{number_of(len(fused), 'call')} of schedule.fuse with several loops, "
        f"{len(parallel)} of schedule.parallel",
        look="schedule.parallel(schedule.fuse(i_outer, j_outer))",
    )


def _sampled_modules(space: Callable[..., None], module: Any) -> list[Any]:
    """Modules that the search would measure first, its own rewriting of them included."""
    from tvm_practice.tvm_export.tuners.metaschedule import make_context

    context = make_context(module, host_target(), space=space)
    try:
        context.pre_tuning(max_trials=8, num_trials_per_iter=8)
        candidates = context.generate_measure_candidates()
    except RuntimeError as error:
        raise fail(
            "calls that the search can replay with other samples",
            str(error).strip().splitlines()[-1],
            "get_loops after compute_at: without preserve_unit_loops=True their number depends "
            "on the samples",
        ) from error
    expect(
        bool(candidates),
        expected="a space with schedules that build",
        seen="none of the samples was valid",
        look="vectorize of long loops, and other steps that TVM's verifiers refuse",
    )
    return [candidate.sch.mod for candidate in candidates]


def _demonstrate_tune_metaschedule(tune_metaschedule: Callable[..., Any]) -> str:
    from tvm_practice.tvm_export.tuners.metaschedule import make_context
    from tvm_practice.tvm_export.tuners.search import Search, searching

    with searching(Search(), most=2):
        context = make_context(matmul_function(32, 32, 32), host_target())
    with tempfile.TemporaryDirectory() as folder:
        database = tune_metaschedule([context], [1.0], trials=2, work_dir=folder)
        files = sorted(path.name for path in Path(folder).glob("database_*.json"))
    return f"a database of {len(database)} records in {' and '.join(files)}"


@PHASE.exercise(
    "tune_metaschedule",
    engine=CURRENT,
    title="search with MetaSchedule",
    hints=(
        "One call, ms.tune.tune_tasks, takes tasks, weights, a folder, numbers of trials, a "
        "builder and a runner; it returns the database. The file's table has its options.",
        "tune_tasks(tasks=contexts, task_weights=weights, work_dir=work_dir, "
        "max_trials_global=trials, …). "
        "with measuring(contexts, trials, work_dir) as measure: gives builder=measure.builder and "
        "runner=measure.runner. num_trials_per_iter=trials_per_round(trials, len(contexts)).",
        "measure_callbacks=[*ms.measure_callback.MeasureCallback.create('default'), "
        "measure.callback]: the default ones write the database and train the model; "
        "cost_model=cost_model().",
    ),
    looks_like="a database of 2 records in database_tuning_record.json and database_workload.json",
    demonstrate=_demonstrate_tune_metaschedule,
)
def check_tune_metaschedule(tune_metaschedule: Callable[..., Any]) -> None:
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners.metaschedule import history, make_context
    from tvm_practice.tvm_export.tuners.search import Search, searching

    target, trials = host_target(), 4
    m, n, k = draw_distinct(3, [16, 24, 32, 40, 48])
    shapes = [(m, n, k), (m + 8, k, n)]
    with searching(Search(), most=trials):  # a search for as few takes a fraction of the time
        contexts = [
            make_context(matmul_function(*shape), target, name=f"matmul_{index}")
            for index, shape in enumerate(shapes)
        ]
    _expect_other_searches(tune_metaschedule, contexts, ms.database.MemoryDatabase())
    with tempfile.TemporaryDirectory() as folder:
        with calls_of(ms.tune, "tune_tasks", also=[ms]) as calls, measuring_calls() as measuring:
            database = tune_metaschedule(contexts, [1.0, 3.0], trials=trials, work_dir=folder)
        expect_type(
            database,
            ms.database.Database,
            "tune_metaschedule returns the database",
            look="return the result of ms.tune.tune_tasks",
        )
        expect_records(
            Path(folder) / "database_tuning_record.json",
            "work_dir=, and the default measure callbacks, which write the database",
        )
        expect_trials(
            history(folder), trials, "max_trials_global= and num_trials_per_iter= of tune_tasks"
        )
        _expect_tune_tasks(calls, trials)
        expect_measuring(measuring, trials, folder)
        _expect_search_goes_on(tune_metaschedule, contexts, database, folder)
    for context, shape in zip(contexts, shapes, strict=True):
        record = database.query_tuning_record(context.mod, target, "main")
        expect(
            record is not None,
            expected="records of both tasks, for their target",
            seen=f"none of the matmul {'x'.join(str(size) for size in shape)}",
            look="tasks=contexts: all of them, as given",
        )


@contextmanager
def _not_searching(database: Any) -> Iterator[Called]:
    """Calls of MetaSchedule's search, none of which is carried out: they return `database`."""
    from tvm.s_tir import meta_schedule as ms

    with (
        calls_of(ms.tune, "tune_tasks", instead=lambda *_, **__: database, also=[ms]) as calls,
        contextlib.suppress(NothingMeasured),
    ):
        yield calls


def _expect_search_goes_on(
    tune_metaschedule: Callable[..., Any], contexts: Sequence[Any], database: Any, folder: str
) -> None:
    """A further call keeps the records of `folder` and searches on from them."""

    def records() -> dict[str, str]:
        return {path.name: path.read_text() for path in Path(folder).glob("database_*.json")}

    before = records()
    with _not_searching(database) as calls:
        tune_metaschedule(contexts, [1.0, 3.0], trials=4, work_dir=folder)
    kept = records() == before
    expect(
        kept and bool(calls) and str(calls[-1]["work_dir"]) == folder,
        expected="a later call that goes on from the database of work_dir",
        seen="another folder" if kept else "its files were changed before",
        look="work_dir= of tune_tasks, and statements that remove files",
    )
    _expect_tune_tasks(calls, 4)  # besides those in the folder


def _expect_other_searches(
    tune_metaschedule: Callable[..., Any], contexts: Sequence[Any], database: Any
) -> None:
    """Other tasks, weights and numbers of trials reach tune_tasks as they are."""
    for given, weights, many in (
        (contexts[:1], [7.0], 1),
        (contexts, [0.5, 2.0], 100),
        (contexts[::-1], [9.0, 2.0], 1000),
        (contexts, [3.0, 0.25], int(fresh_rng().integers(20_000, 90_000))),
    ):
        with (
            tempfile.TemporaryDirectory() as folder,
            _not_searching(database) as calls,
            measuring_calls() as measuring,
        ):
            tune_metaschedule(given, weights, trials=many, work_dir=folder)
        _expect_tune_tasks(calls, many, weights)
        expect_measuring(measuring, many, folder)
        expect(
            all(a is b or a.same_as(b) for a, b in zip(calls[-1]["tasks"], given, strict=True)),
            expected="the tasks as given, in their order",
            seen="other ones",
            look="tasks=contexts",
        )


def _expect_tune_tasks(calls: Called, trials: int, given: Sequence[float] = (1.0, 3.0)) -> None:
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners.budget import trials_per_round

    expect(
        bool(calls),
        expected="ms.tune.tune_tasks called",
        seen="it was not",
        look="from tvm.s_tir import meta_schedule as ms; ms.tune.tune_tasks(...)",
    )
    options = calls[-1]
    weights = [float(each) for each in options["task_weights"]]
    expect(
        weights == list(given) and len(options["tasks"]) == len(given),
        expected=f"the tasks weighted as given, {list(given)}, all {len(given)} of them",
        seen=f"{len(options['tasks'])} weighted {weights}",
        look="task_weights=weights",
    )
    expect(
        options["max_trials_global"] == trials,
        expected=f"max_trials_global={trials}, as many as asked for in total",
        seen=f"{options['max_trials_global']}",
        look="max_trials_global=trials of tune_tasks",
    )
    least = options["max_trials_per_task"]
    expect(
        least is None or least >= trials,
        expected="trials that go to the tasks with the most to gain, all to one task if necessary",
        seen=f"at most {least} for each",
        look="max_trials_per_task= of tune_tasks, which need not be given",
    )
    scheduler = options["task_scheduler"]
    expect(
        "round"
        not in str(type(scheduler) if not isinstance(scheduler, str) else scheduler).lower(),
        expected="tune_tasks' default task scheduler, which takes the weights into account",
        seen=f"{scheduler if isinstance(scheduler, str) else type(scheduler).__name__}",
        look="task_scheduler= of tune_tasks: in a round robin, all tasks get equally many trials",
    )
    default = [each for each in ("builder", "runner") if isinstance(options[each], str)]
    expect(
        not default,
        expected="a builder and a runner that start quickly",
        seen=f"TVM's own {' and '.join(default)}, whose processes import for seconds",
        look="builder= and runner= of tune_tasks: those of metaschedule.measuring",
    )
    size = trials_per_round(trials, len(given))
    expect(
        options["num_trials_per_iter"] <= size and (options["num_trials_per_iter"] > 1 or size < 4),
        expected=f"rounds of {size}: trials_per_round(trials, len(contexts))",
        seen=f"{options['num_trials_per_iter']}",
        look="num_trials_per_iter=",
    )
    callbacks = [type(each).__name__ for each in options["measure_callbacks"] or ()]
    default = [
        type(each).__name__ for each in ms.measure_callback.MeasureCallback.create("default")
    ]
    expect(
        set(default) <= set(callbacks[:-1]) and not hasattr(ms.measure_callback, callbacks[-1]),
        expected="MetaSchedule's default measure callbacks, and after them one that shows progress",
        seen=", ".join(callbacks) or "none",
        look='measure_callbacks=[*MeasureCallback.create("default"), measure.callback]',
    )
    model = options["cost_model"]
    expect(
        "random" not in str(type(model) if not isinstance(model, str) else model).lower()
        and not isinstance(model, str),
        expected="a cost model set for few trials",
        seen=f"{model if isinstance(model, str) else type(model).__name__}",
        look="cost_model=cost_model() of tvm_practice.tvm_export.tuners.metaschedule",
    )


def _demonstrate_apply_metaschedule(apply_metaschedule: Callable[..., Any]) -> str:
    import tvm
    from tvm.s_tir import meta_schedule as ms

    function, target = matmul_function(64, 64, 64), host_target()
    database = ms.database.MemoryDatabase()
    committed(database, function, target, [4, 16, 8], [0.003, 0.001, 0.002])
    applied = apply_metaschedule(tvm.IRModule({"main": function}), database, target)
    return format_nest(loop_nest(applied["main"]))


@PHASE.exercise(
    "apply_metaschedule",
    engine=CURRENT,
    title="MetaSchedule's best records in a module",
    hints=(
        "There is a pass for it, which works on one matmul as on a model. It has no argument "
        "for the database: where does it find it?",
        "relax.transform.MetaScheduleApplyDatabase() takes the target and the database from the "
        "context: `with target, database:`.",
        "with target, database: return relax.transform.MetaScheduleApplyDatabase()(mod), after "
        "`from tvm import relax`.",
    ),
    looks_like="""
        for i_0 in serial(4):
            for i_1 in serial(16):
                for j in serial(64):
                    for k in serial(64):
                        C: C <- A, B, C
    """,
    demonstrate=_demonstrate_apply_metaschedule,
)
def check_apply_metaschedule(apply_metaschedule: Callable[..., Any]) -> None:
    import tvm
    import tvm_ffi
    from tvm.s_tir import meta_schedule as ms

    target = host_target()
    m, n, k = draw_distinct(3, range(33, 64))
    shapes = {"first": (m, n, k), "second": (n, k, m), "untuned": (k, m, n)}
    functions = {name: matmul_function(*shape, name=name) for name, shape in shapes.items()}
    # As a function of a model, which has its pattern.
    functions["untuned"] = functions["untuned"].with_attr({"op_pattern": 4, "practice.kept": 1})
    # FuseTIR's functions are a module's own: no other module calls them by a symbol.
    functions["own"] = matmul_function(n, m, k, name="own").without_attr("global_symbol")
    database = ms.database.MemoryDatabase()
    records = {
        name: committed(
            database, functions[name], target, draw_distinct(4, range(2, 16)), draw_seconds(4)
        )
        for name in ("first", "second")
    }
    given = tvm.IRModule(functions)
    applied = apply_metaschedule(given, database, target)
    expect_type(
        applied,
        tvm.IRModule,
        "apply_metaschedule returns an IRModule",
        look="the return statement; if the database is queried: it knows single functions, and "
        "None where it has no record",
    )
    for name, function in functions.items():
        expect(
            format_nest(loop_nest(given[name])) == format_nest(loop_nest(function)),
            expected="the module given as it was",
            seen=f"its function {name} was changed",
            look="assigning to mod[...] changes mod itself",
        )
    names = sorted(variable.name_hint for variable in applied.get_global_vars())
    expect(
        names == sorted(functions),
        expected=f"a module with the functions {', '.join(sorted(functions))}",
        seen=", ".join(names) or "none",
        look="the pass changes the functions of `mod` and keeps their names",
    )
    for name, found in records.items():
        expect_best(
            loop_nest(applied[name]),
            found,
            f"MetaScheduleApplyDatabase on the whole module; this is its function {name}",
        )
        m, n, k = shapes[name]
        main = tvm.IRModule({"main": applied[name].with_attr("global_symbol", "main")})
        expect_product(
            build_module(main),
            (m, k),
            (k, n),
            what=f"C of {name}",
            look="the module that is returned",
        )
    for name in ("untuned", "own"):
        expect(
            tvm_ffi.structural_equal(applied[name], functions[name]),
            expected="the function without a record as it was, with its attributes "
            + ", ".join(sorted(functions[name].attrs.keys())),
            seen=show(path_to(loop_nest(applied[name]), "C", look="the block C"))
            + f" and the attributes {', '.join(sorted((applied[name].attrs or {}).keys()))}",
            look="apply only the database's records",
        )
    for name, found in records.items():  # a module of one function
        single = apply_metaschedule(tvm.IRModule({"main": functions[name]}), database, target)
        look = "MetaScheduleApplyDatabase, also on the PrimFunc of one matmul"
        expect_best(loop_nest(single["main"]), found, look)
    # The same module, with another database.
    another = ms.database.MemoryDatabase()
    best = committed(
        another, functions["first"], target, draw_distinct(4, range(16, 32)), draw_seconds(4)
    )
    again = apply_metaschedule(given, another, target)
    look = "the database given: the module is that of a call before, which had another one"
    expect_best(loop_nest(again["first"]), best, look)
    _expect_asked_for(apply_metaschedule, functions["untuned"])
    _expect_own_target(apply_metaschedule, functions["untuned"])
    _expect_model_runs(apply_metaschedule, shapes["first"])
    _expect_all_applied(apply_metaschedule)


def _expect_all_applied(apply_metaschedule: Callable[..., Any]) -> None:
    """Each function of a module of many has its record applied."""
    import tvm
    from tvm.s_tir import meta_schedule as ms

    database, records = ms.database.MemoryDatabase(), dict[str, Any]()
    functions = dict[str, Any]()
    for at, size in enumerate(draw_distinct(24, range(2, 64))):
        name = f"matmul_{at}"
        functions[name] = matmul_function(size, size + 1, size + 2, name=name)
        records[name] = committed(
            database, functions[name], host_target(), draw_distinct(2, range(2, 16)), [0.002, 0.001]
        )
    applied = apply_metaschedule(tvm.IRModule(functions), database, host_target())
    for name, found in records.items():
        look = f"MetaScheduleApplyDatabase, of all functions; this is {name} of {len(functions)}"
        expect_best(loop_nest(applied[name]), found, look)


def _expect_model_runs(apply_metaschedule: Callable[..., Any], sizes: Sequence[int]) -> None:
    """A Relax model still calls its operators after the record of one was applied."""
    import tvm
    from tvm import relax
    from tvm.s_tir import meta_schedule as ms

    m, n, k = sizes
    target = host_target()
    A, B, C = (relax.TensorType(shape, "float32") for shape in ((m, k), (k, n), (m, n)))
    builder = relax.BlockBuilder()
    arguments = [relax.Var("A", A), relax.Var("B", B)]
    with builder.function("main", arguments):
        kernel = builder.add_func(matmul_function(m, n, k, name="matmul"), "matmul")
        builder.emit_func_output(builder.emit(relax.call_tir(kernel, arguments, out_ty=C)))
    model = builder.get()
    database = ms.database.MemoryDatabase()
    records = committed(
        database, model["matmul"], target, draw_distinct(4, range(2, 16)), draw_seconds(4)
    )
    applied = apply_metaschedule(model, database, target)
    look = "MetaScheduleApplyDatabase on the whole module, here a Relax model of one operator"
    expect_best(loop_nest(applied["matmul"]), records, look)
    inputs = draw_normal((m, k), (k, n))
    (got,) = run_relax(tvm.compile(applied, target), inputs)
    expect_close(got, inputs[0] @ inputs[1], what="the model's result", look=look)


def _expect_own_target(apply_metaschedule: Callable[..., Any], function: Any) -> None:
    """A database is asked for records of the target given, whatever target is current outside."""
    import tvm
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms

    asked: list[str] = []

    @derived_object
    class Noting(ms.database.PyDatabase):  # type: ignore[misc]
        def has_workload(self, mod: Any) -> bool:
            return False

        def query_tuning_record(self, mod: Any, target: Any, workload_name: str) -> None:
            asked.append(str(target))

        def query_schedule(self, mod: Any, target: Any, workload_name: str) -> None:
            asked.append(str(target))

        def query_ir_module(self, mod: Any, target: Any, workload_name: str) -> None:
            asked.append(str(target))

    target = tvm.target.Target({"kind": "llvm", "num-cores": 3})
    with tvm.target.Target({"kind": "llvm", "num-cores": 5}):
        apply_metaschedule(tvm.IRModule({"untuned": function}), Noting(), target)
    expect(
        set(asked) <= {str(target)},
        expected=f"records looked up for the target given, {target}",
        seen=f"for {', '.join(sorted(set(asked)))}",
        look="`with target, database:`; the argument, not the target that is current already",
    )


def _expect_asked_for(apply_metaschedule: Callable[..., Any], function: Any) -> None:
    """A database is asked for records in the context of the target given, or of none."""
    import tvm
    from tvm.s_tir import meta_schedule as ms

    target = tvm.target.Target({"kind": "llvm", "num-cores": 3})
    asked: list[str] = []

    def schedule_fn(_: Any) -> bool:
        asked.append(str(tvm.target.Target.current(allow_none=True) or target))
        return False  # there is no record

    apply_metaschedule(
        tvm.IRModule({"untuned": function}), ms.database.ScheduleFnDatabase(schedule_fn), target
    )
    expect(
        set(asked) <= {str(target)},
        expected=f"records looked up for the target given, {target}",
        seen=f"for {', '.join(sorted(set(asked)))}",
        look="`with target, database:`; the argument, not this machine's target",
    )
