"""What metadata.json and summary.json of an export hold; their JSON Schema is made from it."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tvm_practice.engines import Engine
from tvm_practice.tvm_export.config import Tuner
from tvm_practice.tvm_export.tuners.history import MadeBy

if TYPE_CHECKING:
    from tvm_practice.measure import Ratio

SCHEMA_VERSION = 1


class Record(BaseModel):
    """A part of a file: what is not in its schema is an error, and so is a number like NaN."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class LatencyRecord(Record):
    """What `measure.Latency.to_dict` gives, in milliseconds."""

    unit: Literal["ms"]
    sample: str = Field(description="What one sample is.")
    count: int = Field(description="How many samples: the repeats.")
    warmup: int = Field(description="Calls before the first sample.")
    mean: float
    std: float
    p50: float
    p90: float
    p95: float
    p99: float
    ci95: tuple[float, float] = Field(description="Student-t interval of the mean.")
    stable: bool = Field(description="Whether the middle half lies within 15% of the median.")
    verdict: str | None = Field(
        default=None,
        description="measured, or unstable with the reason; null in older files.",
    )
    samples: list[float] | None = Field(
        default=None, description="Raw, in the order they were taken."
    )


class RatioRecord(Record):
    """Time over the baseline's time: median of interleaved rounds with its 95% interval."""

    value: float | None = Field(description="null if it could not be measured; see verdict.")
    ci95: tuple[float, float] | None
    verdict: str = Field(
        description="faster, slower, no significant difference, too few rounds, or not measured: "
        "and what disturbed the measurement."
    )
    disturbance: str | None = Field(
        default=None, description="What else used the machine meanwhile; null for nothing."
    )

    @classmethod
    def of(cls, ratio: "Ratio") -> "RatioRecord":
        return cls.model_validate(ratio.to_dict())


class VerificationRecord(Record):
    """Whether outputs are the eager model's: |output - eager| <= atol + rtol * |eager|.

    Where rounding alone is more than that, both are held against float64. With 16-bit or 8-bit
    products the cosine to float64 decides.
    """

    verified: bool
    max_error: float | None = Field(
        default=None, description="Largest absolute error, if verified."
    )
    atol: float
    rtol: float
    reason: str | None = Field(default=None, description="Why it is not verified; one line.")
    reference: str = Field(default="pytorch", description="What max_error is the distance from.")
    pytorch_error: float | None = Field(
        default=None, description="PyTorch's own distance from float64, if that was the judge."
    )
    cosine: float | None = Field(
        default=None,
        description="With 16-bit or 8-bit products: the least cosine between an output and "
        "the reference.",
    )
    min_cosine: float | None = Field(
        default=None, description="The least cosine allowed; it replaces atol and rtol."
    )
    top1: float | None = Field(
        default=None,
        description="With 16-bit or 8-bit products: the share of output rows whose largest "
        "element is at the same place as the reference's.",
    )
    kl: float | None = Field(
        default=None,
        description="With 16-bit or 8-bit products: the mean over output rows of Kullback and "
        "Leibler's divergence of their softmax from the reference's, in nats.",
    )
    trials: list[str] = Field(
        default_factory=list, description="Which inputs it was verified on; a line each."
    )


class InputRecord(Record):
    """One input, in the order of the model's."""

    name: str
    shape: list[int | str] | None = Field(
        description="Extents; a name is one left open. null where no example was given."
    )
    dtype: str | None


class FileRecord(Record):
    """What a file must be, so that a damaged one is found before it is loaded."""

    bytes: int
    sha256: str


class EngineRecord(Record):
    """The TVM that the artifact was built with, as `engines.describe` tells it."""

    engine: Engine
    version: str
    llvm: str
    cuda_in_build: bool
    cuda_device: bool = Field(description="Whether the machine that exported has one.")
    tuners: list[str]
    threads: int = Field(description="Threads that it was measured with.")


class ConfigurationRecord(Record):
    """What was asked for. Targets and tuners are as given; what they came to is beside it."""

    target: str
    tuner: str | None = None
    tuning_trials: int = 0
    warmup: int | None = Field(default=None, description="Calls before the first sample.")
    repeats: int | None = Field(default=None, description="Calls of the artifact, a sample each.")
    use_ansor: bool | None = None
    engine: Engine | None = None
    steps: str | None = None
    opt_level: int | None = None
    without: list[str] | None = None
    search: dict[str, Any] | None = None
    input_shapes: dict[str, list[int | str]] | None = None
    converters: str | None = None
    atol: float | None = None
    rtol: float | None = None
    verify_data: str | None = None
    precision: str | None = None
    quantize: str | None = None
    keep_float: list[str] | None = None
    calibration: str | None = None
    calibration_method: str | None = None
    min_cosine: float | None = None
    tuning_log: str | None = None
    dump_ir: bool | None = None


class TuningRecord(Record):
    """What the tuner did; an empty object for an untuned artifact."""

    tasks: int | None = Field(default=None, description="Kernels that the model has to tune.")
    trials: int | None = Field(default=None, description="Schedules in the log, measured or failed")
    trials_of_earlier_runs: int | None = Field(default=None, description="How many it held before.")
    errors: int | None = Field(default=None, description="Trials without a measured time.")
    best_ms: dict[str, float] | None = Field(default=None, description="Best time of each task.")
    records_kept: int | None = Field(
        default=None, description="Tasks whose best record was faster than the default schedule."
    )
    records_slower_than_default: int | None = None
    records_stayed: bool | None = Field(
        default=None,
        description="Whether the artifact has any of the tuner's schedules: false where default "
        "schedules made the whole model faster, or every function.",
    )
    ratio_to_untuned: RatioRecord | None = Field(
        default=None,
        description="The time of the model with the tuner's schedules over the untuned one's, in "
        "turns; null where no record stayed to compare.",
    )
    note: str | None = Field(default=None, description="The same in a sentence.")


class OwnRecord(Record):
    """The tuner's own result: the model with the best record of every function that has one.

    It was timed in turns with the artifact and with PyTorch.
    """

    latency: LatencyRecord
    ratio_to_pytorch: RatioRecord


class OriginRecord(Record):
    """Digests of the sources of an export, its configuration apart; see `origin`."""

    software: str = Field(description="Versions, code, processor, threads.")
    records: str | None = Field(description="The tuning log as it was left; null if untuned.")
    model: str = Field(description="Weights, attributes, code, example inputs and outputs.")


class Summary(Record):
    """summary.json: what is looked at first."""

    schema_version: Literal[1]
    engine: Engine
    model: str | None = Field(description="module:factory; null if the exporter did not say.")
    target: str
    tuner: Tuner | None = Field(description="null if untuned.")
    configuration: ConfigurationRecord | None = Field(
        default=None, description="What was asked for; null of an export made from Python."
    )
    tuning: TuningRecord = Field(default=TuningRecord(), description="What the tuner did.")
    verification: VerificationRecord | None
    latency: LatencyRecord | None = Field(description="Of the artifact; null if not measured.")
    ratio_to_pytorch: RatioRecord | None = Field(
        description="The artifact's time over eager PyTorch's, measured interleaved."
    )
    tuners_own: OwnRecord | None = Field(
        default=None,
        description="The tuner's own result where default schedules replaced some of it; null "
        "where the artifact is the tuner's own result, and of an untuned one.",
    )


class Metadata(Summary):
    """metadata.json: how the artifact was made, on which machine, and how it did."""

    features: list[str] = Field(
        default=[],
        description="What the code may use of a processor, by LLVM's names, as far as Linux tells "
        "of it; a machine that lacks one does not load the artifact.",
    )
    engine_facts: EngineRecord
    environment: dict[str, Any] = Field(description="Machine and software; measure.environment.")
    inputs: list[InputRecord]
    seconds: dict[str, float] = Field(
        description="What each stage took: import, optimize, tune, choose, build."
    )
    rules: dict[str, str] = Field(
        description="Current engine: the default rule of each function that has no record."
    )
    declined: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="Why the rules tried before it declined: by function, by rule.",
    )
    functions: dict[str, MadeBy] = Field(
        default_factory=dict,
        description="What made each function: record, a schedule that the tuner measured; rule, "
        "the default schedule; fallback, the default schedule in place of a slower record.",
    )
    files: dict[str, FileRecord] = Field(description="What the other files must be.")
    not_run: str | None = Field(default=None, description="Why it was not run; null if it was.")
    notes: list[str] = Field(default_factory=list, description="What is odd about the model.")
    origin: OriginRecord | None = Field(
        default=None,
        description="Tells whether the same export is there already; null of one whose search ran "
        "out of time, and of one made from Python.",
    )
