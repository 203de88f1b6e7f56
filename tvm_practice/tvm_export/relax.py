"""The current engine's part of an export: MetaSchedule, default schedules, virtual machine."""

import os
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tvm_practice.engines import CURRENT
from tvm_practice.measure import Stopwatch
from tvm_practice.tvm_export.beside_untuned import with_faster
from tvm_practice.tvm_export.calling import as_array
from tvm_practice.tvm_export.compiling import compiling
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.extremes import keeping_nan
from tvm_practice.tvm_export.graph_json import graph_json
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.lowering.falling import with_rising_dividends
from tvm_practice.tvm_export.lowering.floored_division import (
    with_wide_division,
    without_division_by_zero,
)
from tvm_practice.tvm_export.lowering.folding import kept_from_folding
from tvm_practice.tvm_export.lowering.rounded_casts import with_casts_by_bits
from tvm_practice.tvm_export.lowering.truth import chosen_in_names, kept_in_bytes
from tvm_practice.tvm_export.profiling import plain_name, profile_operators
from tvm_practice.tvm_export.quiet import native_stderr_to
from tvm_practice.tvm_export.rules import cpu as cpu_rules
from tvm_practice.tvm_export.rules import gpu as gpu_rules
from tvm_practice.tvm_export.rules.cpu.loops import CONSTANTS
from tvm_practice.tvm_export.rules.first_match import Decision
from tvm_practice.tvm_export.run_time_checks.divisors import DIVISION_CHECK
from tvm_practice.tvm_export.run_time_checks.extents import EXTENT_CHECK
from tvm_practice.tvm_export.run_time_checks.indices import INDEX_CHECK, names_of
from tvm_practice.tvm_export.running import RelaxRunner
from tvm_practice.tvm_export.targets import device_of, why_not_runnable
from tvm_practice.tvm_export.tuners import metaschedule, nothing_to_tune, remote, summary
from tvm_practice.tvm_export.tuners.budget import worth_tuning
from tvm_practice.tvm_export.tuners.finals import fastest_records, schedule_default
from tvm_practice.tvm_export.tuners.history import MadeBy
from tvm_practice.tvm_export.tuners.records import exclusively, require_own
from tvm_practice.tvm_export.tuners.search import searching
from tvm_practice.wording import number_of

TUNERS = ("metaschedule",)


def tune(export: Export) -> Export:
    """The module with the best of the measured schedules applied; `log` is a folder of records.

    Trials go to the operators that take most of the untuned model's time. A function's best
    records are timed once more, in turns with its default schedule, which functions without a
    faster record get. Raises BadInput if the log is another target's or tuner's, or in use.
    """
    log, tuner = export.log, export.tuner
    assert log is not None and tuner is not None
    watch = Stopwatch(export.seconds)
    search = export.settings.search
    remotely = search.tracker is not None
    default = export.default or _untuned(export)
    with exclusively(log):
        require_own(log, tuner, export.target)
        metaschedule.recover(log)
        before = require_own(log, tuner, export.target)
        with watch("profile"):
            times = _shares_on_a_server(export) if remotely else _profile(default, _inputs(export))
        with watch("tune"), native_stderr_to(log / "stderr"):
            tasks = _measure_schedules(export, log, before, times)
        if not tasks:
            tuning = nothing_to_tune("MetaSchedule")
            return replace(export, default=default, tuning=tuning, seconds=watch.seconds)
        with watch("choose"):
            found = fastest_records(
                export.module,
                metaschedule.open_database(log),
                export.target,
                times=partial(remote.function_times, search=search) if remotely else None,
            )
            apply = export.steps.apply_metaschedule
            module = apply(export.module, found.chosen, export.target)
            own = apply(export.module, found.best, export.target) if found.slower else None
    kept, slower = found.kept, found.slower
    tuning = summary(metaschedule.history(log), before) | {
        "tasks": len(tasks),
        "records_kept": kept,
        "records_slower_than_default": slower,
        "records_stayed": kept > 0,
        "note": f"tuned {number_of(len(tasks), 'task')} with {sum(tasks):.0%} of the untuned "
        f"model's time; for {kept} the best record was faster than the default schedule, for "
        f"{slower} it was not and the default stayed",
    }
    return replace(
        export,
        module=module,
        own_records=own,
        made_by=found.made_by(export.module),
        default=default,
        tuning=tuning,
        seconds=watch.seconds,
    )


def _untuned(export: Export) -> GraphModule:
    return build(schedule(replace(export, tuner=None))).result


def _inputs(export: Export) -> list[Any]:
    return [as_array(each) for each in export.call.tensors]


def _profile(built: GraphModule, inputs: list[Any]) -> dict[str, float]:
    """The share of a run's time by the name of the function before it was scheduled."""
    built(*inputs)
    return {plain_name(each.name): each.share for each in profile_operators(built.runner)}


def _shares_on_a_server(export: Export) -> dict[str, float]:
    """What `_profile` gives, of every function alone on a server of the search."""
    import tvm
    import tvm_ffi
    from tvm import relax

    calls: Counter[str] = Counter()

    def count(expression: Any) -> None:
        called = next(iter(getattr(expression, "args", ())), None)
        if isinstance(called, tvm.ir.GlobalVar):
            calls[str(called.name_hint)] += 1

    relax.analysis.post_order_visit(export.module["main"], count)
    seconds: dict[int, float] = {}
    times = {}
    for name, function in export.module.functions_items():
        if not isinstance(function, tvm.tirx.PrimFunc):
            continue
        key = tvm_ffi.structural_hash(function.without_attr("global_symbol"))
        if key not in seconds:
            default = schedule_default(function, export.target)
            constants = {int(each) for each in (function.attrs or {}).get(CONSTANTS, ())}
            [seconds[key]] = remote.function_times(
                [default], constants, export.target, search=export.settings.search
            )
        times[str(name.name_hint)] = calls[str(name.name_hint)] * seconds[key]
    return {name: each / sum(times.values()) for name, each in times.items()}


def _measure_schedules(
    export: Export, log: Path, before: int, times: dict[str, float]
) -> list[float]:
    """Measure schedules until `log` has all trials, `before` of which are there already.

    Returns the share of the model's time of each task that trials went to.
    """
    trials = export.trials
    with searching(export.settings.search, most=trials - before):
        contexts, weights = metaschedule.extract_contexts(export.module, export.target)
        shares = _shares(export.module, contexts, times)
        chosen = worth_tuning(shares, trials)
        if chosen and trials > before:
            # Less than one per task is too little to divide; the limit ends it in time.
            export.steps.tune_metaschedule(
                [contexts[index] for index in chosen],
                [weights[index] for index in chosen],
                trials=max(trials - before, len(chosen)),
                work_dir=str(log),
            )
            metaschedule.recover(log)
    return [shares[index] for index in chosen]


def _shares(module: Any, contexts: list[Any], times: dict[str, float]) -> list[float]:
    """Of the model's time, each task's part: that of all functions equal to its own."""
    import tvm
    import tvm_ffi

    keys = {
        str(name.name_hint): tvm_ffi.structural_hash(each.without_attr("global_symbol"))
        for name, each in module.functions_items()
        if isinstance(each, tvm.tirx.PrimFunc)
    }
    by_key: dict[int, float] = {}
    for name, share in times.items():
        if name in keys:
            by_key[keys[name]] = by_key.get(keys[name], 0.0) + share
    return [by_key.get(keys.get(str(each.task_name), 0), 0.0) for each in contexts]


def schedule(export: Export) -> Export:
    """Every function that no record is applied to, scheduled by the target's default rules."""
    decisions: list[Decision] = []
    watch = Stopwatch(export.seconds)
    with watch("build"):
        module = schedule_defaults(export.module, export.target, report=decisions)
    stages = export.stages | {"scheduled": module}
    return replace(
        export, module=module, stages=stages, decisions=tuple(decisions), seconds=watch.seconds
    )


def build(export: Export) -> Export:
    """The scheduled module compiled; the untuned build where records do not make it faster.

    The tuner's own result is compiled too where the artifact has something else.
    """
    watch = Stopwatch(export.seconds)
    with watch("build"):
        built = own = _compiled(export)
    if export.own_records is not None:
        with watch("choose"):
            made_by: dict[str, MadeBy] = dict.fromkeys(export.made_by, "record")
            alone = replace(export, module=export.own_records, made_by=made_by)
            own = _compiled(schedule(alone))
    made = replace(export, built=replace(built, seconds=watch.seconds), seconds=watch.seconds)
    return with_faster(made, own)


# Passes that fail on some models, by their errors: the setting of a context without each.
_FAILING: dict[str, tuple[str, Any]] = {
    # TVM names a common subexpression after its use where some of its uses are within a `Let`.
    # LLVM finds common subexpressions too.
    "has been used before definition": ("config", {"tirx.disable_cse_tir": True}),
    # It looks for reshapes, of which it makes views, and fails at some indices of open extents.
    "Error in pass: RewriteDataflowReshape": ("disabled_pass", ["RewriteDataflowReshape"]),
    # So does it where another extent is 0, and TVM does not say which pass fails.
    "out of bounds": ("disabled_pass", ["RewriteDataflowReshape"]),
}


def _executable(export: Export) -> Any:
    """TVM's executable of the module of an export, compiled without a pass that fails on it."""
    import tvm

    without: dict[str, Any] = {}
    while True:
        context = tvm.transform.PassContext(opt_level=export.settings.opt_level, **without)
        quiet = native_stderr_to(os.devnull)
        try:
            with quiet, context, compiling(export.target, export.settings.without):
                return export.steps.build_relax(export.module, export.target)
        except (tvm.error.InternalError, IndexError) as error:
            more = dict(setting for said, setting in _FAILING.items() if said in str(error))
            if more.keys() <= without.keys():
                raise
            without |= more


def _compiled(export: Export) -> GraphModule:
    """The module of an export as it is now, compiled."""
    target = export.target
    executable = _executable(export)
    graph, weight_bytes = graph_json(export.stages["optimized"])
    runs_here = why_not_runnable(target) is None
    return GraphModule(
        engine=CURRENT,
        tuner=export.tuner,
        runner=RelaxRunner(executable, device=device_of(target)) if runs_here else None,
        compiled=executable,
        scheduled=export.module,
        graph_json=graph,
        weight_bytes=weight_bytes,
        target=str(target),
        inputs=export.call.inputs,
        tuning=export.tuning,
        rules={each.function: each.rule for each in export.decisions}
        | dict.fromkeys(names_of(export.module, INDEX_CHECK), "index check")
        | dict.fromkeys(names_of(export.module, DIVISION_CHECK), "division check")
        | dict.fromkeys(names_of(export.module, EXTENT_CHECK), "extent check"),
        declined={each.function: each.declined for each in export.decisions if each.declined},
        made_by={name: export.made_by.get(name, "rule") for name in _plain_names(export.module)},
    )


def _plain_names(module: Any) -> list[str]:
    """The names of a module's PrimFuncs before their weights were packed ahead."""
    import tvm

    return [
        plain_name(str(name.name_hint))
        for name, function in module.functions_items()
        if isinstance(function, tvm.tirx.PrimFunc)
    ]


def schedule_defaults(mod: Any, target: Any, *, report: list[Decision] | None = None) -> Any:
    """Every function of a module that no tuner has scheduled, scheduled by the target's rules.

    See `rules.cpu.schedule_defaults` and `rules.gpu.schedule_defaults`.
    """
    if "gpu" in target.keys:
        scheduled = gpu_rules.schedule_defaults(mod, target, report=report)
    else:
        scheduled = keeping_nan(cpu_rules.schedule_defaults(mod, target, report=report))
    divided = with_casts_by_bits(with_wide_division(kept_from_folding(scheduled)))
    kept = kept_in_bytes(without_division_by_zero(with_rising_dividends(divided)))
    return chosen_in_names(kept)
