"""The classic engine's lane: trace, Relay, AutoTVM or Ansor, graph executor."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm_practice.engines import CLASSIC
from tvm_practice.tvm_export.calling import Call
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.importers.converters import Converters
from tvm_practice.tvm_export.importers.converters import relay as relay_converters
from tvm_practice.tvm_export.lane import Stopwatch, told_in_a_line
from tvm_practice.tvm_export.quiet import decisions_fixed, native_stderr_to, quiet_frontends
from tvm_practice.tvm_export.running import RelayRunner
from tvm_practice.tvm_export.steps import Steps
from tvm_practice.tvm_export.targets import why_not_runnable
from tvm_practice.tvm_export.tuners import ansor as ansor_tuner
from tvm_practice.tvm_export.tuners import autotvm as autotvm_tuner
from tvm_practice.tvm_export.tuners import nothing_to_tune, require_valid, summary
from tvm_practice.tvm_export.tuners.records import exclusively, require_own
from tvm_practice.tvm_export.tuners.search import Search, searching

_WAY_OUT = "--converters can give what it lacks; --tuner metaschedule imports by Relax"


class RelayLane:
    """A model as a Relay module, to be built untuned or with a tuner's records."""

    tuners: tuple[str, ...] = ("autotvm", "ansor")

    def __init__(
        self,
        call: Call,
        *,
        target: Any,
        steps: Steps,
        opt_level: int = 3,
        converters: Converters,
    ):
        self._steps = steps
        self._opt_level = opt_level
        self._target = target
        self._inputs = list(call.names)
        watch = Stopwatch()
        relay = told_in_a_line("Relay", _WAY_OUT)
        quiet = native_stderr_to(os.devnull)
        with watch("import"), relay, quiet_frontends(), quiet, decisions_fixed() as self.notes:
            module, parameters = steps.import_relay(
                call.module,
                call.tensors,
                converters=relay_converters.converters() | dict(converters),
            )
        with watch("optimize"), native_stderr_to(os.devnull):
            module = relay_converters.sums_as_products(module)
            self._module = steps.optimize_relay(module, parameters)
        self._seconds = watch.seconds
        self.stages: dict[str, Any] = {"imported": module, "optimized": self._module}

    def untuned(self) -> GraphModule:
        """Built with TOPI's own schedules and their fallback configurations."""
        return self._build(self._module, None, Stopwatch(self._seconds), {})

    def tuned(
        self, tuner: str, *, trials: int, log: Path, search: Search | None = None
    ) -> GraphModule:
        """Built with the best of `trials` measured schedules; records are appended to `log`."""
        search = search or Search()
        with exclusively(log):
            require_own(log, tuner, self._target)
            autotvm_tuner.recover(log)
            before = require_own(log, tuner, self._target)
            if tuner == "autotvm":
                return self._autotvm(trials, before, log, search)
            return self._ansor(trials, before, log, search)

    def _autotvm(self, trials: int, before: int, log: Path, search: Search) -> GraphModule:
        from tvm import autotvm

        watch = Stopwatch(self._seconds)
        with watch("tune"), native_stderr_to(f"{log}.stderr"), searching(search) as going:
            tasks = _worth_tuning(
                autotvm.task.extract_from_program(
                    self._module["main"], target=self._target, params={}
                )
            )
            if not tasks:
                return replace(self.untuned(), tuner="autotvm", tuning=nothing_to_tune("AutoTVM"))
            done = autotvm_tuner.count_trials(tasks, log)
            shares = _shares(trials, tasks)
            for number, (task, share) in enumerate(zip(tasks, shares, strict=True), start=1):
                if share > done[number - 1] and not going.is_late:
                    print(f"task {number} of {len(tasks)}: {task.name}", flush=True)
                    self._tune_task(task, share - done[number - 1], log, search)
        measured = autotvm_tuner.history(log) if log.exists() else []
        require_valid(measured, "AutoTVM")
        with watch("choose"):
            chosen, kept, slower = _faster_than_fallback(tasks, log)
        tuning = summary(measured, before) | {
            "tasks": len(tasks),
            "records_kept": kept,
            "records_slower_than_default": slower,
            "note": f"{len(tasks)} tasks; for {kept} the best record was faster than TOPI's "
            f"fallback configuration, for {slower} it was not and the fallback stayed",
        }
        with autotvm.apply_history_best(chosen):
            return self._build(self._module, "autotvm", watch, tuning)

    def _tune_task(self, task: Any, trials: int, log: Path, search: Search) -> None:
        """Tune one of a model's tasks; that all its trials fail is said, and no reason to stop."""
        from tvm_practice.tvm_export.errors import NothingMeasured

        tune = autotvm_tuner.tune if search.policy else self._steps.tune_autotvm
        try:
            tune(task, trials=trials, log=str(log))
        except NothingMeasured as nothing:
            print(f"{task.name}: {nothing}; its fallback configuration stays", flush=True)

    def _ansor(self, trials: int, before: int, log: Path, search: Search) -> GraphModule:
        from tvm import auto_scheduler

        watch = Stopwatch(self._seconds)
        left = trials - before
        with watch("tune"), _dense_for_ansor(), native_stderr_to(f"{log}.stderr"):
            module = self._convolutions_as_nhwc()
            tasks, weights = auto_scheduler.extract_tasks(module["main"], {}, self._target)
            if not tasks:
                return replace(self.untuned(), tuner="ansor", tuning=nothing_to_tune("Ansor"))
            custom = search.policy or search.cost_model
            tune = ansor_tuner.tune if custom else self._steps.tune_ansor
            with searching(search, most=left):
                if left > 0:
                    # Less than one a task is too little to divide; the limit ends it in time.
                    tune(tasks, weights, trials=max(left, len(tasks)), log=str(log))
                    autotvm_tuner.recover(log)
        tuning = summary(ansor_tuner.history(log), before) | {
            "tasks": len(tasks),
            "note": f"{len(tasks)} tasks; Ansor's schedules replace TOPI's even where they are "
            "slower, so a small budget can lose to the untuned build",
        }
        with _dense_for_ansor(), auto_scheduler.ApplyHistoryBest(str(log)):
            config = {"relay.backend.use_auto_scheduler": True}
            return self._build(module, "ansor", watch, tuning, config=config)

    def _convolutions_as_nhwc(self) -> Any:
        """The module with channels last: Ansor's sketches vectorize the innermost axis."""
        import tvm
        from tvm import relay

        pools = ("nn.max_pool2d", "nn.avg_pool2d", "nn.adaptive_avg_pool2d")
        layouts = {"nn.conv2d": ["NHWC", "HWIO"], **{pool: ["NHWC"] for pool in pools}}
        passes = [relay.transform.ConvertLayout(layouts), relay.transform.FoldConstant()]
        with tvm.transform.PassContext(opt_level=3):
            return tvm.transform.Sequential(passes)(self._module)

    def _build(
        self,
        module: Any,
        tuner: str | None,
        watch: Stopwatch,
        tuning: dict[str, Any],
        config: dict[str, Any] | None = None,
    ) -> GraphModule:
        import tvm

        with watch("build"), quiet_frontends(), native_stderr_to(os.devnull):
            if self._opt_level == 3:  # phase 4's step builds at no other
                library = self._steps.build_relay(module, {}, self._target, config=config or {})
            else:
                with tvm.transform.PassContext(opt_level=self._opt_level, config=config or {}):
                    library = tvm.relay.build(module, target=self._target)
        self.stages["scheduled"] = module
        return GraphModule(
            engine=CLASSIC,
            tuner=tuner,
            runner=None if why_not_runnable(self._target) else RelayRunner(library),
            compiled=library,
            graph_json=library.get_graph_json(),
            target=str(self._target),
            input_names=self._inputs,
            seconds=watch.seconds,
            tuning=tuning,
        )


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


def _faster_than_fallback(tasks: Sequence[Any], log: Path) -> tuple[list[Any], int, int]:
    """The best record of each task that beats the configuration TOPI takes without records.

    Args:
        tasks: AutoTVM tasks of one target.
        log: records of theirs.

    Returns:
        The records, as `apply_history_best` takes them; how many tasks kept theirs; and how many
        had one that was slower.
    """
    from tvm import autotvm
    from tvm.autotvm.task.space import FallbackConfigEntity

    best: dict[Any, tuple[float, Any]] = {}
    for measured, result in autotvm.record.load_from_file(str(log)):
        workload = measured.task.workload
        if result.error_no == 0 and _mean(result.costs) < best.get(workload, (float("inf"),))[0]:
            best[workload] = (_mean(result.costs), (measured, result))
    kept = []
    slower = 0
    for task in tasks:
        if task.workload not in best:
            continue
        record = best[task.workload][1]
        if _config_is_faster(task, record[0].config, FallbackConfigEntity()):
            kept.append(record)
        else:
            slower += 1
    return kept, len(kept), slower


def _mean(seconds: Sequence[float]) -> float:
    return sum(seconds) / len(seconds)


def _config_is_faster(task: Any, one: Any, other: Any) -> bool:
    """Whether a task runs faster with configuration `one` than with `other`, timed in turns."""
    import numpy as np
    import tvm

    device = tvm.cpu()
    timers = []
    for config in (one, other):
        with task.target:
            schedule, tensors = task.instantiate(config)
            function = tvm.build(schedule, tensors, target=task.target)
        random = np.random.default_rng(0)
        arguments = [
            tvm.nd.array(
                random.standard_normal([int(extent) for extent in each.shape]).astype(each.dtype)
            )
            for each in tensors
        ]
        timer = function.time_evaluator(
            function.entry_name, device, number=1, repeat=1, min_repeat_ms=10
        )
        timers.append((timer, arguments))
    rounds = [[timer(*arguments).mean for timer, arguments in timers] for _ in range(5)]
    first, second = np.median(rounds, axis=0)
    return bool(first < second)


@contextmanager
def _dense_for_ansor() -> Iterator[None]:
    """Give Relay a dense that Ansor can tune, for as long as the block lasts.

    TOPI's own names its axes i0 and i1 in this build, and Ansor's layout rewriting, which looks
    for j and k, fails on every trial without a message.
    """
    from tvm import topi

    original = topi.nn.dense
    topi.nn.dense = _dense
    try:
        yield
    finally:
        topi.nn.dense = original


def _dense(
    data: Any,
    weight: Any,
    bias: Any = None,
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Any:
    """Y[i, j] = sum over k of data[i, k] * weight[j, k], with the signature of TOPI's dense."""
    from tvm import auto_scheduler, te, topi

    dtype = out_dtype or data.dtype
    batch, inputs = data.shape
    if auto_scheduler_rewritten_layout:
        outputs, _ = auto_scheduler.get_shape_from_rewritten_layout(
            auto_scheduler_rewritten_layout, ["j", "k"]
        )
        auto_scheduler.remove_index_check(weight)
    else:
        outputs, _ = weight.shape
    k = te.reduce_axis((0, inputs), name="k")
    product = te.compute(
        (batch, outputs),
        lambda i, j: te.sum(data[i, k].astype(dtype) * weight[j, k].astype(dtype), axis=k),
        name="dense",
        tag="dense",
        attrs={"layout_free_placeholders": [weight]},
    )
    if bias is not None:
        product = topi.add(product, bias.astype(dtype))
    if auto_scheduler_rewritten_layout:
        product = auto_scheduler.rewrite_compute_body(product, auto_scheduler_rewritten_layout)
    return product
