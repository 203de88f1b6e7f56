"""What an export in a process of its own is asked to do, as JSON takes it there."""

from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from tvm_practice.engines import CLASSIC
from tvm_practice.tvm_export.config import ExportSettings
from tvm_practice.tvm_export.example_inputs import ExampleTensor

# What is called with a request, see `engines.Session.call`.
EXPORT = "tvm_practice.tvm_export.pipeline:export_model"

# More samples than that say no more, and do not fit memory when they are looked at.
MOST_CALLS = 1_000_000

_CONFIGURATION = {
    "target",
    "tuning_trials",
    "opt_level",
    "without",
    "input_shapes",
    "converters",
    "atol",
    "rtol",
    "verify_data",
    "precision",
    "quantize",
    "keep_float",
    "calibration",
    "calibration_method",
    "min_cosine",
    "warmup",
    "repeats",
    "steps",
    "dump_ir",
}


class ExportRequest(ExportSettings):
    """An export of a model that its factory makes. A bad value raises pydantic.ValidationError.

    Attributes:
        model: "module:factory", see `loading.load`.
        artifacts: folder to write; records go there too unless `tuning_log` says where.
        example: shapes of the inputs; see `example_inputs.resized`.
        model_seed: PyTorch's seed while the factory runs and inputs are drawn.
        resolved: file that `loading.hand_over` wrote, with the model and the inputs; None: the
            factory is called.
        converters: "module:function" of the person's own, see `converters.find_converters`.
        engine: which TVM; None: the tuner's, or untuned the one that is active.
        warmup: calls of the artifact that are not kept.
        repeats: calls of the artifact that are.
        dump_ir: write the model's IR after each stage to `artifacts`/ir.
        single_file: write `artifacts`/model.tvmp too, see `artifacts.packing`.
        c_source: folder for the model as C, see `c_source`; None: none is written.
        replace: write over any artifacts of the same model, an untuned export over a tuned one.
        force: write over another model's artifacts too, and artifacts whose outputs are wrong.
        reuse: make nothing anew where `artifacts` holds an export of the same.
    """

    model: str
    artifacts: Path
    example: list[ExampleTensor] | None = None
    model_seed: int = Field(default=0, ge=0)
    resolved: Path | None = None
    converters: str | None = None
    warmup: int = Field(default=50, ge=0, le=MOST_CALLS)
    repeats: int = Field(default=1000, ge=1, le=MOST_CALLS)
    dump_ir: bool = False
    single_file: bool = False
    c_source: Path | None = None
    replace: bool = False
    force: bool = False
    reuse: bool = False

    @model_validator(mode="after")
    def _c_source_is_possible(self) -> "ExportRequest":
        if self.c_source is not None and self.chosen_engine == CLASSIC:
            raise ValueError("c_source: only the current engine writes C; this is the classic one")
        if self.c_source is not None and self.dynamic_extents:
            extents = ", ".join(self.dynamic_extents)
            raise ValueError(f"c_source: {extents} is left open, and a model's C has fixed extents")
        return self

    def arguments(self) -> dict[str, Any]:
        """The request as the arguments of a call of EXPORT, which are JSON values."""
        return {"request": self.model_dump(mode="json")}

    @property
    def configuration(self) -> dict[str, Any]:
        """What is asked for, as metadata.json keeps it."""
        return self.model_dump(mode="json", include=_CONFIGURATION) | {
            "tuner": self.chosen_tuner,
            "search": self.search.model_dump(mode="json", exclude_defaults=True),
        }
