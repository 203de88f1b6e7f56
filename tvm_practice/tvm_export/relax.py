"""The current engine's lane: torch.export, Relax, MetaSchedule, virtual machine."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm_practice.engines import CURRENT
from tvm_practice.measure import compare_interleaved
from tvm_practice.tvm_export.calling import Call, as_array
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.importers.converters import Converters
from tvm_practice.tvm_export.importers.converters.relax import corrections
from tvm_practice.tvm_export.lane import Stopwatch, told_in_a_line
from tvm_practice.tvm_export.profiling import plain_name, profile_operators
from tvm_practice.tvm_export.quiet import native_stderr_to, quiet_frontends
from tvm_practice.tvm_export.rules import cpu as cpu_rules
from tvm_practice.tvm_export.rules import gpu as gpu_rules
from tvm_practice.tvm_export.rules.cpu import mark_constants
from tvm_practice.tvm_export.rules.first_match import Decision
from tvm_practice.tvm_export.rules.gpu import compiling_kernels
from tvm_practice.tvm_export.running import RelaxRunner
from tvm_practice.tvm_export.steps import Steps
from tvm_practice.tvm_export.targets import device_of, why_not_runnable
from tvm_practice.tvm_export.tuners import metaschedule, nothing_to_tune, summary
from tvm_practice.tvm_export.tuners.budget import worth_tuning
from tvm_practice.tvm_export.tuners.finals import fastest_records
from tvm_practice.tvm_export.tuners.records import exclusively, require_own
from tvm_practice.tvm_export.tuners.search import Search, searching

_WAY_OUT = (
    "--converters can give what it lacks; --tuner autotvm or ansor import by Relay, from a trace"
)
# Of the comparison of the tuned with the untuned model.
_ROUNDS, _SECONDS = 15, 10.0


class RelaxLane:
    """A model as a Relax module of fused functions, to be built untuned or with records."""

    tuners: tuple[str, ...] = ("metaschedule",)

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
        self._target = with_host(target)
        self._inputs = list(call.names)
        watch = Stopwatch()
        relax = told_in_a_line("Relax", _WAY_OUT)
        quiet = native_stderr_to(os.devnull)  # it warns of every gather
        with watch("import"), relax, quiet_frontends(), quiet, corrections():
            if any(call.dynamic):
                module = _import_dynamic(call, converters)
            else:
                module = steps.import_relax(call.module, call.tensors, converters=dict(converters))
        with watch("optimize"), native_stderr_to(os.devnull):
            self._module = optimized(module, steps)
        self._example = [as_array(each) for each in call.tensors]
        self._default: GraphModule | None = None
        self._seconds = watch.seconds
        self.notes: list[str] = []
        self.stages: dict[str, Any] = {"imported": module, "optimized": self._module}

    def untuned(self) -> GraphModule:
        """Built with the adapter's own default schedules, see `rules.cpu`."""
        if self._default is None:
            self._default = self._build(self._module, None, Stopwatch(self._seconds), {})
        return self._default

    def tuned(
        self, tuner: str, *, trials: int, log: Path, search: Search | None = None
    ) -> GraphModule:
        """Built with the best of `trials` measured schedules; `log` is a folder of records.

        Trials go to the operators that take most of the untuned model's time. A function's best
        records are timed once more, in turns with its default schedule, which functions without a
        faster record get; and so does the whole model if it is not faster with records.
        """
        watch = Stopwatch(self._seconds)
        default = self.untuned()
        with exclusively(log):
            require_own(log, tuner, self._target)
            metaschedule.recover(log)
            before = require_own(log, tuner, self._target)
            with watch("profile"):
                times = self._profile(default)
            with watch("tune"), native_stderr_to(log / "stderr"):
                tasks = self._tune(trials, before, times, log, search or Search())
            if not tasks:
                return replace(default, tuner=tuner, tuning=nothing_to_tune("MetaSchedule"))
            with watch("choose"):
                best, kept, slower = fastest_records(
                    self._module, metaschedule.open_database(log), self._target
                )
                module = self._steps.apply_metaschedule(self._module, best, self._target)
        measured = metaschedule.history(log)
        tuning = summary(measured, before) | {
            "tasks": len(tasks),
            "records_kept": kept,
            "records_slower_than_default": slower,
            "note": f"{len(tasks)} tasks with {sum(tasks):.0%} of the untuned model's time were "
            f"tuned; for {kept} the best record was faster than the default schedule, for "
            f"{slower} it was not and the default stayed",
        }
        built = self._build(module, tuner, watch, tuning)
        with watch("choose"):
            slower_in_all = kept > 0 and not _runs_faster(built, default, self._example)
        if slower_in_all:
            tuning["note"] += "; with them the whole model was not faster: all defaults stayed"
            built = replace(default, tuner=tuner, tuning=tuning)
        built.seconds = watch.seconds
        return built

    def _profile(self, built: GraphModule) -> dict[str, float]:
        """The share of a run's time by the name of the function before it was scheduled."""
        built(*self._example)
        return {plain_name(each.name): each.share for each in profile_operators(built.runner)}

    def _tune(
        self, trials: int, before: int, times: dict[str, float], log: Path, search: Search
    ) -> list[float]:
        """Measure schedules until there are `trials`, `before` of them there already.

        Returns the share of the model's time of each task that trials went to.
        """
        with searching(search, most=trials - before):
            contexts, weights = metaschedule.extract_contexts(self._module, self._target)
            shares = self._shares(contexts, times)
            chosen = worth_tuning(shares, trials)
            if chosen and trials > before:
                # Less than one a task is too little to divide; the limit ends it in time.
                self._steps.tune_metaschedule(
                    [contexts[index] for index in chosen],
                    [weights[index] for index in chosen],
                    trials=max(trials - before, len(chosen)),
                    work_dir=str(log),
                )
                metaschedule.recover(log)
        return [shares[index] for index in chosen]

    def _shares(self, contexts: list[Any], times: dict[str, float]) -> list[float]:
        """Of the model's time, each task's part: that of all functions equal to its own."""
        import tvm
        import tvm_ffi

        keys = {
            str(name.name_hint): tvm_ffi.structural_hash(each.without_attr("global_symbol"))
            for name, each in self._module.functions_items()
            if isinstance(each, tvm.tirx.PrimFunc)
        }
        by_key: dict[int, float] = {}
        for name, share in times.items():
            if name in keys:
                by_key[keys[name]] = by_key.get(keys[name], 0.0) + share
        return [by_key.get(keys.get(str(each.task_name), 0), 0.0) for each in contexts]

    def _build(
        self, module: Any, tuner: str | None, watch: Stopwatch, tuning: dict[str, Any]
    ) -> GraphModule:
        import tvm

        decisions: list[Decision] = []
        with watch("build"):
            module = schedule_defaults(module, self._target, report=decisions)
        level = tvm.transform.PassContext(opt_level=self._opt_level)
        with watch("build"), native_stderr_to(os.devnull), level, compiling_kernels(self._target):
            executable = self._steps.build_relax(module, self._target)
        self.stages["scheduled"] = module
        device = device_of(self._target)
        return GraphModule(
            engine=CURRENT,
            tuner=tuner,
            runner=None
            if why_not_runnable(self._target)
            else RelaxRunner(executable, device=device),
            compiled=executable,
            graph_json=tvm.ir.save_json(self._module),
            target=str(self._target),
            input_names=self._inputs,
            seconds=watch.seconds,
            tuning=tuning,
            rules={each.function: each.rule for each in decisions},
            declined={each.function: each.declined for each in decisions if each.declined},
        )


def schedule_defaults(mod: Any, target: Any, *, report: list[Decision] | None = None) -> Any:
    """Every function of a module that no tuner has scheduled, scheduled by the target's rules.

    See `rules.cpu.schedule_defaults` and `rules.gpu.schedule_defaults`.
    """
    rules = gpu_rules if str(target.kind.name) == "cuda" else cpu_rules
    return rules.schedule_defaults(mod, target, report=report)


def with_host(target: Any) -> Any:
    """A target whose host code, on a GPU what launches its kernels, is for any such processor."""
    import tvm

    if str(target.kind.name) == "llvm" or target.host is not None:
        return target
    return tvm.target.Target(target, host="llvm")


def optimized(module: Any, steps: Steps) -> Any:
    """A Relax module of fused functions, ready to be scheduled.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.
        steps: whose optimize_relax is called.
    """
    return mark_constants(steps.optimize_relax(fold_batch_normalization(module)))


def fold_batch_normalization(module: Any) -> Any:
    """A Relax module whose convolutions carry the batch normalization that follows them.

    Its scale goes into the weights and its shift becomes an addition, so that a subtraction, a
    division and a multiplication of every element are gone. A normalization that follows something
    else stays; and all stay where a convolution's own output is used as well, because TVM would
    then compute it twice.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.
    """
    import tvm
    from tvm import relax

    passes = tvm.ir.transform.Sequential(
        [
            relax.transform.CanonicalizeBindings(),
            relax.transform.FoldBatchnormToConv2D(),
            relax.transform.CanonicalizeBindings(),
            relax.transform.FoldConstant(),
        ]
    )
    folded = passes(module)
    return folded if _convolutions(folded) == _convolutions(module) else module


def _convolutions(module: Any) -> int:
    """How many convolutions its main calls."""
    from tvm import relax

    found = 0

    def look(expression: Any) -> None:
        nonlocal found
        operator = getattr(expression, "op", None)
        found += getattr(operator, "name", None) == "relax.nn.conv2d"

    relax.analysis.post_order_visit(module["main"], look)
    return found


def _import_dynamic(call: Call, converters: Converters) -> Any:
    """As phase 4's import_relax, for any value of the extents that have names."""
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    names = {name for axes in call.dynamic for name in axes.values()}
    dimensions = {name: torch.export.Dim(name, min=1) for name in names}
    shapes = [{axis: dimensions[name] for axis, name in axes.items()} for axes in call.dynamic]
    tensors = list(call.tensors)
    for index, axes in enumerate(call.dynamic):
        for axis in axes:
            if tensors[index].shape[axis] == 1:  # which PyTorch would take for a constant
                tensors[index] = tensors[index].repeat_interleave(2, dim=axis)
    # The module takes its tensors as *arguments: one argument, a tuple, to PyTorch.
    exported = torch.export.export(call.module, tuple(tensors), dynamic_shapes=(tuple(shapes),))
    return from_exported_program(
        exported, unwrap_unit_return_tuple=True, custom_convert_map=dict(converters)
    )


def _runs_faster(one: GraphModule, other: GraphModule, inputs: list[Any]) -> bool:
    """Whether a whole model runs faster than another build of it, timed in turns."""
    for each in (one, other):
        each(*inputs)
    compared = compare_interleaved(
        {"one": one.run, "other": other.run},
        baseline="other",
        rounds=_ROUNDS,
        time_limit=_SECONDS,
    )
    return compared.ratio["one"].value < 1
