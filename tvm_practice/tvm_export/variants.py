"""The record of one build of a model, by a tuner or another compiler; JSON-ready."""

from typing import Literal

from pydantic import Field

from tvm_practice.tvm_export.artifacts.schema import (
    LatencyRecord,
    OwnRecord,
    RatioRecord,
    Record,
    TuningRecord,
    VerificationRecord,
)
from tvm_practice.tvm_export.config import Tuner


class OperatorRecord(Record):
    """One function's part of a run of the model; see `profiling.OperatorTime`."""

    name: str
    calls: int = Field(description="In one run of the model.")
    milliseconds: float = Field(description="Of all these calls together.")
    share: float = Field(description="Of the sum over all functions.")
    schedule: str = Field(
        description="The default rule that made it, `index check`, `division check`, or `record`."
    )


class BuildRecord(Record):
    """How a build went, and its figures once it ran; times in milliseconds."""

    status: Literal["ok", "todo", "failed", "missing"]
    reason: str | None = Field(default=None, description="Why it is not ok; one line.")
    latency: LatencyRecord | None = None
    ratio: RatioRecord | None = Field(
        default=None, description="Its time over eager PyTorch's, measured interleaved."
    )
    verified: bool | None = Field(default=None, description="Whether its outputs are PyTorch's.")
    max_error: float | None = Field(
        default=None, description="Largest absolute error, if verified."
    )
    verification: VerificationRecord | None = None
    tuners_own: OwnRecord | None = Field(
        default=None,
        description="The tuner's own result, where default schedules replaced some of it.",
    )
    seconds: dict[str, float] | None = Field(default=None, description="Of each stage.")
    tuning: TuningRecord | None = None
    artifacts: str | None = Field(default=None, description="The folder that has it.")
    operators: list[OperatorRecord] | None = Field(
        default=None, description="Where the time goes, the most first; of the current engine."
    )

    @property
    def explanation(self) -> str | None:
        """A sentence on it: why it is not ok, or how its tuning went; None for nothing to say."""
        return self.reason or (self.tuning.note if self.tuning else None)


class VariantRecord(BuildRecord):
    """A build by TVM."""

    tuner: Tuner | None = Field(default=None, description="null if untuned.")
