"""What a run writes: metrics.json and its schema."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tvm_practice.engines import Engine
from tvm_practice.icd.config import Mode, RunConfig
from tvm_practice.tvm_export.artifacts.schema import (
    LatencyRecord,
    OwnRecord,
    RatioRecord,
    VerificationRecord,
)
from tvm_practice.tvm_export.config import Tuner


class Record(BaseModel):
    """A part of the metrics: what is not in its schema is an error."""

    model_config = ConfigDict(extra="forbid")


class SearchStep(Record):
    """One choice of the iterative search."""

    choice: str
    on: list[str] = Field(description="Choices kept before it.")
    status: Literal["kept", "not_faster", "not_verified", "not_applicable", "failed"]
    reason: str | None = None
    verification: VerificationRecord | None = None
    ratio: RatioRecord | None = Field(default=None, description="To the best variant before it.")
    best_ms: float | None = Field(default=None, description="Median of the best variant before it.")
    candidate_ms: float | None = Field(default=None, description="Median of the candidate.")
    seconds: float


class PipelineRecord(Record):
    """What was measured as PyTorch's latency."""

    mode: Mode
    choices: list[str] = Field(description="What was done to the eager model; empty: nothing.")
    reason: str | None = Field(default=None, description="Why the mode could not be had.")
    verification: VerificationRecord | None = None
    ratio_to_eager: RatioRecord | None = None
    search: list[SearchStep] = []


class TensorRecord(Record):
    name: str
    shape: list[int]
    dtype: str


class ModelRecord(Record):
    loader: str
    parameters: int
    inputs: list[TensorRecord]
    outputs: list[TensorRecord]


class TvmBaseline(Record):
    """What came of the export to TVM."""

    status: Literal["ok", "missing_dependencies", "failed"]
    reason: str | None = Field(default=None, description="Why there is no latency; one line.")
    latency: LatencyRecord | None = None
    ratio_to_eager: RatioRecord | None = Field(
        default=None, description="Interleaved, in its process."
    )
    tuners_own: OwnRecord | None = Field(
        default=None,
        description="The tuner's own result, where default schedules replaced some of it.",
    )
    verification: VerificationRecord | None = None
    target: str
    engine: Engine
    tuner: Tuner | None
    tuning_trials: int
    use_ansor: bool
    tuning: dict[str, Any] = Field(
        default={}, description="What the tuner did, as the export tells it."
    )
    artifacts_dir: str
    seconds: dict[str, float] = {}


class Metrics(Record):
    """metrics.json of a run."""

    schema_version: Literal[1] = 1
    environment: dict[str, Any] = Field(description="Machine and software; measure.environment.")
    device: str = Field(default="cpu", description="Where PyTorch ran.")
    threads: int = Field(description="Most threads that PyTorch and TVM were given.")
    configuration: RunConfig
    model: ModelRecord
    notes: list[str] = Field(description="What to know of the model and the figures.")
    pipeline: PipelineRecord
    latency: LatencyRecord = Field(description="PyTorch, as the pipeline chose.")
    eager: LatencyRecord = Field(description="PyTorch, eager; the same figure in mode eager.")
    tvm_baseline: TvmBaseline | None = Field(description="null where measure.tvm_enable is false.")
    seconds: dict[str, float] = Field(description="What each stage took.")
