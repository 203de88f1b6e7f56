"""What is handed from one stage of an export to the next."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.engines import Engine
from tvm_practice.tvm_export.config import ExportSettings, Tuner
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.rules.first_match import Decision
from tvm_practice.tvm_export.steps import Steps
from tvm_practice.tvm_export.tuners.history import MadeBy

if TYPE_CHECKING:
    from tvm_practice.tvm_export.calling import Call
    from tvm_practice.tvm_export.loading import Loaded


@dataclass(frozen=True)
class Export:
    """A model on its way through the stages of `pipeline`; each returns it with more filled in.

    Attributes:
        settings: what is asked for.
        engine: the TVM that it is compiled by.
        call: the model as a function of tensors, and its example inputs.
        steps: the functions that stages are made of.
        tuner: which tuner; None for none.
        trials: schedules that it may measure, those in `log` included.
        log: where its records go and are gone on from.
        loaded: the model and its outputs, where a factory made it.
        target: as the engine has it; from the import on.
        module: the model's IR as the last stage left it.
        stages: its IR after each stage so far: "imported", "optimized", "scheduled".
        default: the untuned build, which a tuned one is held against.
        records: classic engine: the dispatch context that has the build use records.
        own_records: current engine: the module, classic: the dispatch context, with the tuner's
            best record of every function; None where `module` or `records` has them all.
        made_by: "record" or "fallback", of each function that the tuner has a record for.
        decisions: current engine: the default rule of each function that has no record.
        tuning: what the tuner did, see `artifacts.schema.TuningRecord`.
        built: the compiled model, its inputs set.
        own: the tuner's own result, compiled, where `built` has default schedules in its place.
        own_figures: its latency and ratio, as `artifacts.schema.OwnRecord` has them.
        status: "ok", or of a verification that is not: "failed", or "todo" for an unwritten step.
        verification, latency, ratio: as `artifacts.schema` has them; None before, and of a target
            that this machine cannot run.
        seconds: what each stage took.
        notes: what the person should know, a line each.
    """

    settings: ExportSettings
    engine: Engine
    call: "Call"
    steps: Steps
    tuner: Tuner | None = None
    trials: int = 0
    log: Path | None = None
    loaded: "Loaded | None" = None
    target: Any = None
    module: Any = None
    stages: dict[str, Any] = field(default_factory=dict)
    default: GraphModule | None = None
    records: Any = None
    own_records: Any = None
    made_by: dict[str, MadeBy] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    tuning: dict[str, Any] = field(default_factory=dict)
    built: GraphModule | None = None
    own: GraphModule | None = None
    own_figures: dict[str, Any] | None = None
    status: str = "ok"
    verification: dict[str, Any] | None = None
    latency: dict[str, Any] | None = None
    ratio: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        call: "Call",
        settings: ExportSettings,
        *,
        engine: Engine | None = None,
        loaded: "Loaded | None" = None,
    ) -> "Export":
        """The export of a model as its settings have it, before the first stage."""
        return cls(
            settings=settings,
            engine=engine or settings.chosen_engine,
            call=call,
            steps=Steps(settings.steps),
            tuner=settings.chosen_tuner if settings.tunes else None,
            trials=settings.tuning_trials,
            log=settings.tuning_log,
            loaded=loaded,
            notes=loaded.notes if loaded else (),
        )

    @property
    def not_run(self) -> str | None:
        """Why this machine cannot run code for the target; None if it can."""
        from tvm_practice.tvm_export.targets import why_not_runnable

        return why_not_runnable(self.target)

    @property
    def is_wrong(self) -> bool:
        """Whether it was verified and its outputs are not PyTorch's."""
        return self.status == "failed"

    @property
    def result(self) -> GraphModule:
        """The compiled model."""
        assert self.built is not None, "the export was not built yet"
        return self.built
