"""One model by every compiler: a child process for each engine, and a row for each compiler.

    compared = compare_compilers("tvm_practice.models:load_mlp", ["eager", "relax"], trials=0,
                                 example=None, out=Path("runs/bench/mlp"), command="…")
    compared.report.rows

Each process times its builds in turns with PyTorch eager. So every figure has a baseline that was
taken in the same seconds, on as many threads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import Field, TypeAdapter

from tvm_practice import engines
from tvm_practice.engines import Engine
from tvm_practice.tvm_export.artifacts.schema import LatencyRecord, Record
from tvm_practice.tvm_export.config import Tuner
from tvm_practice.tvm_export.request import ExportRequest
from tvm_practice.tvm_export.variants import BuildRecord, VariantRecord

Compiler = Literal[
    "eager",
    "compile",
    "compile-max",
    "onnx",
    "openvino",
    "relay",
    "autotvm",
    "ansor",
    "relax",
    "metaschedule",
]
LABELS: dict[Compiler, str] = {
    "eager": "PyTorch eager",
    "compile": "torch.compile",
    "compile-max": "torch.compile, max",
    "onnx": "ONNX Runtime",
    "openvino": "OpenVINO",
    "relay": "Relay, untuned",
    "autotvm": "Relay, AutoTVM",
    "ansor": "Relay, Ansor",
    "relax": "Relax, untuned",
    "metaschedule": "Relax, MetaSchedule",
}
SCHEMA_VERSION: Literal[1] = 1
REPORT = "report.json"
# Of each engine, its compilers and the tuner of each.
ENGINES: dict[Engine, dict[Compiler, Tuner | None]] = {
    "classic": {"relay": None, "autotvm": "autotvm", "ansor": "ansor"},
    "current": {"relax": None, "metaschedule": "metaschedule"},
}
IR: dict[Engine, str] = {"classic": "Relay", "current": "Relax"}
TUNERS: dict[Compiler, Tuner] = {
    name: tuner for lane in ENGINES.values() for name, tuner in lane.items() if tuner
}
# Beside eager, in a process without TVM.
_RIVALS: tuple[Compiler, ...] = ("compile", "compile-max", "onnx", "openvino")
_MEASURE_RIVALS = "tvm_practice.tvm_export.baselines:measure_baselines"
_EXPORT = "tvm_practice.tvm_export.pipeline:export_variants"
# Settings that only TVM's compilers get.
_FOR_TVM = (
    "verify_data",
    "precision",
    "quantize",
    "keep_float",
    "calibration",
    "calibration_method",
    "min_cosine",
    "without",
)
_VARIANTS = TypeAdapter(list[VariantRecord])
_RIVALS_BUILDS = TypeAdapter(dict[Compiler, BuildRecord])


def variant_label(engine: Engine, tuner: Tuner | None) -> str:
    """An engine's build by a tuner, or untuned, in tables: `Relax, MetaSchedule`."""
    [name] = [name for name, each in ENGINES[engine].items() if each == tuner]
    return LABELS[name]


class _Named(Record):
    name: Compiler


class Row(BuildRecord, _Named):  # whose first field is the name
    """One compiler on the model."""

    eager: LatencyRecord | None = Field(
        description="Eager PyTorch's, in turns with this row; null for eager's own row."
    )
    trials: int | None = Field(description="Schedules that its tuner measured.")

    @classmethod
    def of(cls, name: Compiler, build: BuildRecord, eager: LatencyRecord | None) -> "Row":
        """The row of a build that was timed in turns with eager, if it was timed."""
        return cls(
            name=name,
            eager=eager if build.latency else None,
            trials=build.tuning.trials if build.tuning else None,
            **{each: getattr(build, each) for each in BuildRecord.model_fields},
        )

    @property
    def label(self) -> str:
        """The compiler's name in tables."""
        return LABELS[self.name]


class Report(Record):
    """report.json of a comparison of compilers."""

    schema_version: Literal[1]
    command: str = Field(description="The command line.")
    model: str = Field(description="module:factory.")
    parameters: int = Field(description="How many the model has.")
    notes: list[str] = Field(description="Peculiarities of the model.")
    threads: int = Field(description="Of each compiler.")
    environment: dict[str, Any] = Field(description="Machine and software; measure.environment.")
    rows: list[Row]

    def to_dict(self) -> dict[str, Any]:
        """As JSON; a part of a record that nobody told, raw samples say, is left out."""
        return self.model_dump(mode="json", exclude_unset=True)


@dataclass(frozen=True)
class Comparison:
    """A report, and pictures of the model.

    Attributes:
        report: see `Report`.
        graphs: by IR, the picture of the graph; see `viz.exported`.
        kernels: the pictures of the largest kernels; see `viz.exported`.
    """

    report: Report
    graphs: dict[str, Any] = field(default_factory=dict)
    kernels: list[dict[str, Any]] = field(default_factory=list)


def compare_compilers(
    model: str,
    asked: Sequence[Compiler],
    *,
    trials: int,
    example: list[dict[str, Any]] | None,
    out: Path,
    command: str,
    tolerances: Mapping[str, Any] | None = None,
    export: str = _EXPORT,
    output: IO[Any] | None = None,
) -> Comparison:
    """Build, verify and time a model by each compiler; write `out`/report.json after each engine.

    Args:
        model: "module:factory", see `loading.load`.
        asked: the compilers. Eager is always there.
        trials: schedules each tuner may measure, over all the model's tasks.
        example: [{"shape", "dtype"}] of the inputs, for a factory that returns none.
        out: folder; made once the model has been run.
        command: for the report.
        tolerances: any of atol, rtol and the names in `_FOR_TVM`; see `ExportSettings`.
        export: the function, "module:name", that the process of an engine calls:
            `pipeline.export_variants`, or one that adds pictures to its result.
        output: where the children's output goes; None: this process's.

    Returns:
        The report and the pictures. A compiler that is missing or fails has a row that says so.

    Raises:
        BadInput: the model or its inputs.
        engines.EngineError: PyTorch itself could not be measured.
    """
    from tvm_practice.tvm_export.writing import write_json

    given: dict[str, Any] = {"model": model, "example": example}
    own = dict(tolerances or {})
    rivals = {"names": [name for name in _RIVALS if name in asked]} | own
    for name in _FOR_TVM:
        rivals.pop(name, None)
    report = _with_rivals(given | rivals, command, output)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / REPORT, report.to_dict())
    found = Comparison(report)
    for engine, lane in ENGINES.items():
        if wanted := [name for name in lane if name in asked]:
            request = ExportRequest.model_validate(
                given | own | {"artifacts": out / engine, "tuning_trials": trials, "engine": engine}
            )
            tuners = [lane[name] for name in wanted if lane[name]]
            told = _lane(engine, export, request.arguments() | {"tuners": tuners}, output)
            report.rows.extend(_rows(engine, wanted, told))
            write_json(out / REPORT, report.to_dict())
            if "graph" in told:
                found.graphs[IR[engine]] = told["graph"]
            found.kernels.extend(told.get("kernels", ()))
    return found


def _with_rivals(given: dict[str, Any], command: str, output: IO[Any] | None) -> Report:
    """The report with the rows of eager and of the compilers that are timed beside it."""
    from tvm_practice.measure import environment

    with engines.Session(engines.CURRENT, output=output) as session:
        measured = session.call(_MEASURE_RIVALS, given)
    eager = LatencyRecord.model_validate(measured["pytorch"])
    builds = _RIVALS_BUILDS.validate_python(measured["variants"])
    return Report(
        schema_version=SCHEMA_VERSION,
        command=command,
        model=given["model"],
        parameters=measured["parameters"],
        notes=measured["notes"],
        threads=engines.thread_count(),
        environment=environment(),
        rows=[
            Row.of("eager", BuildRecord(status="ok", latency=eager), None),
            *(Row.of(name, build, eager) for name, build in builds.items()),
        ],
    )


def _lane(
    engine: Engine, export: str, arguments: dict[str, Any], output: IO[Any] | None
) -> dict[str, Any]:
    """The result of `export`; of a process that ended, one variant that says so."""
    try:
        with engines.Session(engine, output=output) as session:
            lane: dict[str, Any] = session.call(export, arguments)
            return lane
    except engines.EngineUnavailable as missing:
        variant = {"status": "missing", "reason": missing.line}
    except engines.PlainError as error:
        variant = {"status": "failed", "reason": error.line}
    except OSError as error:
        variant = {"status": "failed", "reason": str(error)}
    return {"pytorch": None, "variants": [variant]}


def _rows(engine: Engine, wanted: Sequence[Compiler], lane: dict[str, Any]) -> list[Row]:
    """The rows of one engine. A variant that stopped the lane speaks for those after it."""
    variants = _VARIANTS.validate_python(lane["variants"])
    eager = LatencyRecord.model_validate(lane["pytorch"]) if lane["pytorch"] else None
    by_tuner = {variant.tuner: variant for variant in variants}
    instead = VariantRecord(status="failed", reason="the engine's process gave no result for it")
    if variants and variants[0].status != "ok":
        instead = variants[0]
    return [Row.of(name, by_tuner.get(ENGINES[engine][name], instead), eager) for name in wanted]
