"""The classic engine's part of an export: AutoTVM or Ansor, TOPI's schedules, graph executor."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm_practice.engines import CLASSIC
from tvm_practice.measure import Stopwatch
from tvm_practice.tvm_export.beside_untuned import with_faster
from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.lowering.classic import keeping_floats
from tvm_practice.tvm_export.quiet import native_stderr_to, quiet_frontends
from tvm_practice.tvm_export.rules.gpu import compiling_kernels
from tvm_practice.tvm_export.running import RelayRunner
from tvm_practice.tvm_export.targets import device_of, why_not_runnable
from tvm_practice.tvm_export.tuners import ansor as ansor_tuner
from tvm_practice.tvm_export.tuners import autotvm as autotvm_tuner
from tvm_practice.tvm_export.tuners import nothing_to_tune, require_valid, summary
from tvm_practice.tvm_export.tuners.classic import hardware
from tvm_practice.tvm_export.tuners.dense_for_ansor import dense_for_ansor
from tvm_practice.tvm_export.tuners.fallback import faster_than_fallback
from tvm_practice.tvm_export.tuners.history import MadeBy
from tvm_practice.tvm_export.tuners.records import exclusively, require_own
from tvm_practice.tvm_export.tuners.remote import require_server
from tvm_practice.tvm_export.tuners.search import searching
from tvm_practice.wording import number_of

TUNERS = ("autotvm", "ansor")


def tune(export: Export) -> Export:
    """The module and the best of the measured schedules; records are appended to the file `log`.

    Raises BadInput if the log is another target's or tuner's, or in use, or no server answers.
    """
    log, tuner = export.log, export.tuner
    assert log is not None and tuner is not None
    if export.settings.search.tracker is not None:
        require_server(export.settings.search)
    with exclusively(log):
        require_own(log, tuner, export.target)
        autotvm_tuner.recover(log)
        before = require_own(log, tuner, export.target)
        tuned = (_autotvm if tuner == "autotvm" else _ansor)(export, log, before)
    if not tuned.tuning.get("records_stayed"):
        return tuned
    return replace(tuned, default=export.default or _compiled(replace(export, tuner=None), None))


def _autotvm(export: Export, log: Path, before: int) -> Export:
    from tvm import autotvm

    watch = Stopwatch(export.seconds)
    search = export.settings.search
    with watch("tune"), native_stderr_to(f"{log}.stderr"), searching(search) as going:
        tasks = _worth_tuning(
            autotvm.task.extract_from_program(
                export.module["main"], target=export.target, params={}
            )
        )
        if not tasks:
            return replace(export, tuning=nothing_to_tune("AutoTVM"))
        done = autotvm_tuner.count_trials(tasks, log)
        shares = _shares(export.trials, tasks)
        for number, (task, share) in enumerate(zip(tasks, shares, strict=True), start=1):
            if share > done[number - 1] and not going.is_late:
                print(f"task {number} of {len(tasks)}: {task.name}", flush=True)
                _tune_task(export, task, share - done[number - 1], log)
    measured = autotvm_tuner.history(log) if log.exists() else []
    require_valid(measured, "AutoTVM")
    with watch("choose"):
        found = faster_than_fallback(tasks, log, search=search)
    kept, slower = len(found.faster), len(found.slower)
    tuning = summary(measured, before) | {
        "tasks": len(tasks),
        "records_kept": kept,
        "records_slower_than_default": slower,
        "records_stayed": kept > 0,
        "note": f"{number_of(len(tasks), 'task')}; for {kept} the best record was faster than "
        f"TOPI's fallback configuration, for {slower} it was not and the fallback stayed",
    }
    best = [*found.faster, *found.slower]
    return replace(
        export,
        records=autotvm.apply_history_best(found.faster),
        own_records=autotvm.apply_history_best(best) if slower else None,
        tuning=tuning,
        seconds=watch.seconds,
    )


def _tune_task(export: Export, task: Any, trials: int, log: Path) -> None:
    """Tune one of a model's tasks; that all its trials fail is said, and no reason to stop."""
    own = export.steps.tune_autotvm
    tune_task = autotvm_tuner.tune if export.settings.search.policy else own
    try:
        tune_task(task, trials=trials, log=str(log))
    except NothingMeasured as nothing:
        print(f"{task.name}: {nothing}; its fallback configuration stays", flush=True)


def _ansor(export: Export, log: Path, before: int) -> Export:
    from tvm import auto_scheduler

    watch = Stopwatch(export.seconds)
    left = export.trials - before
    search = export.settings.search
    with watch("tune"), dense_for_ansor(), native_stderr_to(f"{log}.stderr"):
        module = _convolutions_as_nhwc(export.module)
        tasks, weights = auto_scheduler.extract_tasks(
            module["main"], {}, export.target, hardware_params=hardware(export.target)
        )
        if not tasks:
            return replace(export, tuning=nothing_to_tune("Ansor"))
        is_custom = search.policy or search.cost_model
        tune_tasks = ansor_tuner.tune if is_custom else export.steps.tune_ansor
        with searching(search, most=left):
            if left > 0:
                # Less than one per task is too little to divide; the limit ends it in time.
                tune_tasks(tasks, weights, trials=max(left, len(tasks)), log=str(log))
                autotvm_tuner.recover(log)
    tuning = summary(ansor_tuner.history(log), before) | {
        "tasks": len(tasks),
        "records_stayed": True,
        "note": f"{number_of(len(tasks), 'task')}, each with Ansor's best schedule, not TOPI's",
    }
    return replace(
        export,
        module=module,
        records=_AnsorsRecords(log),
        tuning=tuning,
        seconds=watch.seconds,
    )


class _AnsorsRecords:
    """A context: a build in it takes Ansor's best records.

    Attributes:
        used: the functions that it took one for; only after the build.
    """

    def __init__(self, log: Path):
        self._log = log
        self._opened = ExitStack()
        self.used: set[str] = set()

    def __enter__(self) -> "_AnsorsRecords":
        from tvm import auto_scheduler

        used = self.used

        class Watched(auto_scheduler.ApplyHistoryBest):  # type: ignore[misc]
            def _query_inside(self, target: Any, workload_key: str, func_name: str) -> Any:
                found = super()._query_inside(target, workload_key, func_name)
                if found is not None:
                    used.add(func_name)
                return found

        self._opened.enter_context(dense_for_ansor())
        self._opened.enter_context(Watched(str(self._log)))
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _convolutions_as_nhwc(module: Any) -> Any:
    """A module with channels last: Ansor's sketches vectorize the innermost axis."""
    import tvm
    from tvm import relay

    pools = ("nn.max_pool2d", "nn.avg_pool2d", "nn.adaptive_avg_pool2d")
    layouts = {"nn.conv2d": ["NHWC", "HWIO"], **{pool: ["NHWC"] for pool in pools}}
    passes = [relay.transform.ConvertLayout(layouts), relay.transform.FoldConstant()]
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(module)


def build(export: Export) -> Export:
    """The module compiled with the tuner's records; the untuned build where it is not slower.

    TOPI schedules what has no record while TVM compiles. The tuner's own result is compiled too
    where the artifact has something else.
    """
    watch = Stopwatch(export.seconds)
    with watch("build"):
        built = own = _compiled(export, export.records)
    if export.own_records is not None:
        with watch("choose"):
            own = _compiled(export, export.own_records)
    built = replace(built, seconds=watch.seconds)
    stages = export.stages | {"scheduled": export.module}
    made = replace(export, built=built, stages=stages, seconds=watch.seconds)
    return with_faster(made, own)


def _compiled(export: Export, records: Any) -> GraphModule:
    """The module of an export, compiled with these records."""
    context = nullcontext() if records is None else records
    kernels = compiling_kernels(export.target)
    with context, kernels, quiet_frontends(), native_stderr_to(os.devnull):
        library = _built(export)
    runs_here = why_not_runnable(export.target) is None
    return GraphModule(
        engine=CLASSIC,
        tuner=export.tuner,
        runner=RelayRunner(library, device=device_of(export.target)) if runs_here else None,
        compiled=library,
        graph_json=library.get_graph_json(),
        weight_bytes=sum(each.numpy().nbytes for each in library.get_params().values()),
        target=str(export.target),
        inputs=export.call.inputs,
        tuning=export.tuning,
        made_by=_made_by(library, records, export.target),
    )


def _built(export: Export) -> Any:
    import tvm

    level = export.settings.opt_level
    is_ansors = export.tuner == "ansor" and export.records is not None
    config = {"relay.backend.use_auto_scheduler": True} if is_ansors else {}
    if str(export.target.kind.name) in ("llvm", "c"):
        config |= keeping_floats()
    if level == 3:  # the step builds at no other
        return export.steps.build_relay(export.module, {}, export.target, config=config)
    with tvm.transform.PassContext(opt_level=level, config=config):
        return tvm.relay.build(export.module, target=export.target)


def _made_by(library: Any, records: Any, target: Any) -> dict[str, MadeBy]:
    """What scheduled each function of a library that was built with these records."""
    found: dict[str, MadeBy] = {}
    for name, facts in library.function_metadata.items():
        for function in facts.relay_primfuncs.values():
            if "schedule" in (function.attrs or {}):  # it is not the graph's own
                found[str(name)] = _maker(str(name), function.attrs["schedule"], records, target)
    return found


def _maker(name: str, schedule: Any, records: Any, target: Any) -> MadeBy:
    """What made one function's schedule."""
    from tvm.autotvm.task.topi_integration import get_workload

    if records is None:
        return "rule"
    if isinstance(records, _AnsorsRecords):
        return "record" if name in records.used else "rule"
    workload = get_workload([each.output(0) for each in schedule.outputs])
    if workload is None:
        return "rule"
    return "fallback" if records.query(target, workload).is_fallback else "record"


def _worth_tuning(tasks: Sequence[Any]) -> list[Any]:
    """The tasks without dense layers' second template, where it cannot win.

    TVM offers two templates for each dense layer and takes the better record. The one that does
    not pack the weight unrolls whole tiles: building a candidate takes up to half a minute, and
    with more than one row it loses. It is left out where its twin is there.
    """
    packed = {str(task.args) for task in tasks if task.name == "dense_pack.x86"}
    return [
        task
        for task in tasks
        if not (
            task.name == "dense_nopack.x86"
            and str(task.args) in packed
            and int(task.args[0][1][0]) > 1
        )
    ]


def _shares(trials: int, tasks: Sequence[Any]) -> list[int]:
    """Trials of each task: as many for one as for another, none more than its space has."""
    each, more = divmod(trials, len(tasks)) if tasks else (0, 0)
    return [
        min(each + (position < more), len(task.config_space)) for position, task in enumerate(tasks)
    ]
