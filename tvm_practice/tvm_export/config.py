"""What an export is asked to do."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tvm_practice.engines import CLASSIC, CURRENT, Engine
from tvm_practice.tvm_export.speed_passes import SpeedPass
from tvm_practice.tvm_export.tuners.search import Search

Tuner = Literal["autotvm", "ansor", "metaschedule"]
Precision = Literal["float32", "bfloat16", "float16"]
CalibrationMethod = Literal["minmax", "percentile", "entropy"]
Extent = int | str


# The artifacts' tolerance: what reordering sums in float32 does to logits of order one.
ATOL = RTOL = 1e-3
# The least cosine between outputs of 16-bit products and float64's.
MIN_COSINE = 0.999
MIN_COSINE_INT8 = 0.99


class ExportSettings(BaseModel):
    """An export's settings, whoever asks. A bad value raises pydantic.ValidationError.

    Attributes:
        target: "llvm" for this machine's processor, or a target in either engine's spelling.
        tuning_trials: schedules to measure, over all the model's tasks; 0 for no tuning.
        tuning_log: where records go: a file (classic) or a folder (current). None: not kept.
        use_ansor: tune with Ansor rather than AutoTVM.
        tuner: which tuner, by name; overrides `use_ansor`. "auto": MetaSchedule, whose engine
            runs everywhere; `chosen_tuner` says which it came to.
        engine: which TVM; follows from the tuner. Untuned exports default to `current`.
        input_shapes: names and shapes of the inputs, in their order. A shape may have a name in
            place of an extent, {"image": ("batch", 3, 224, 224)}: the current engine then makes
            one artifact for every value of it. Extents must be those of the example. More names
            than the example has tensors: the rest are made, and given by name.
        search: how the tuner is to search, see `tuners.search.Search`.
        opt_level: of TVM's passes, 0 to 3.
        converters: of PyTorch operators that TVM lacks: by operator's name, or "module:function"
            of their factory, see `converters.find_converters`.
        atol, rtol: how far an output may be from PyTorch's: atol + rtol * |PyTorch's|.
        verify_data: an .npz file of inputs to verify on, see `draws.read_data`; None: drawn ones.
        precision: the type of the operands of matrix products and convolutions; see `precision`.
        quantize: "int8" for linear layers in 8-bit integers, see `quantization`.
        keep_float: names of layers that `quantize` leaves, or of modules, all of whose layers it
            leaves.
        calibration: an .npz file of inputs, as `verify_data`; with it, `quantize` takes
            convolutions too, with scales from the ranges of their inputs there. Of four or more,
            every fourth is left out and verified on.
        calibration_method: how values make a range, see `calibration.calibrated`.
        without: passes for speed alone that are left out, to see what they gain.
        min_cosine: with 16-bit or 8-bit products, the least cosine between an output and the
            float64 output, both taken as vectors; replaces `atol` and `rtol`. None: `MIN_COSINE`,
            or `MIN_COSINE_INT8` with `quantize`.
        steps: package of functions that replace the product's own, see `steps.Steps`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str = "llvm"
    tuning_trials: int = Field(default=0, ge=0)
    tuning_log: Path | None = None
    use_ansor: bool = False
    tuner: Tuner | Literal["auto"] | None = None
    engine: Engine | None = None
    input_shapes: dict[str, tuple[Extent, ...]] | None = None
    search: Search = Field(default_factory=Search)
    opt_level: int = Field(default=3, ge=0, le=3)
    without: tuple[SpeedPass, ...] = ()
    converters: str | dict[str, Callable[..., Any]] | None = None
    atol: float = Field(default=ATOL, ge=0, allow_inf_nan=False)
    rtol: float = Field(default=RTOL, ge=0, allow_inf_nan=False)
    verify_data: Path | None = None
    precision: Precision = "float32"
    quantize: Literal["int8"] | None = None
    keep_float: tuple[str, ...] = ()
    calibration: Path | None = None
    calibration_method: CalibrationMethod = "minmax"
    min_cosine: float | None = Field(default=None, ge=0, le=1)
    steps: str | None = None

    @model_validator(mode="after")
    def _one_story(self) -> "ExportSettings":
        if self.use_ansor and self.tuner not in (None, "ansor"):
            raise ValueError(f"use_ansor=True contradicts tuner={self.tuner!r}")
        if self.chosen_tuner and (reason := self.search.why_not_for(self.chosen_tuner)):
            raise ValueError(f"search.{reason}")
        if odd := [each for each in self.dynamic_extents if not each.isidentifier()]:
            raise ValueError(
                f"input_shapes: {', '.join(odd)} is no name of an open extent, which has letters, "
                "digits and underscores"
            )
        if self.dynamic_extents and self.chosen_engine == CLASSIC:
            raise ValueError(
                f"input_shapes: {', '.join(self.dynamic_extents)} is no number, and the classic "
                "engine takes numbers only"
            )
        if self.precision != "float32" and self.chosen_engine == CLASSIC:
            raise ValueError(
                f"precision: only the current engine has {self.precision}; this is the classic one"
            )
        if self.without and self.chosen_engine == CLASSIC:
            raise ValueError(
                f"without: only the current engine's export has {', '.join(self.without)}"
            )
        if self.without and self.quantize:
            raise ValueError("without: int8 layers need all passes; leave out --quantize")
        if self.quantize and self.chosen_engine == CLASSIC:
            raise ValueError("quantize: only the current engine has int8; this is the classic one")
        if self.quantize and self.precision != "float32":
            raise ValueError(f"quantize: what it leaves is float32, not {self.precision}")
        if self.keep_float and not self.quantize:
            raise ValueError("keep_float: needs quantize; without it every layer stays float")
        if self.calibration and not self.quantize:
            raise ValueError("calibration: needs quantize, whose scales it gives")
        if self.calibration_method != "minmax" and not self.calibration:
            raise ValueError("calibration_method: needs calibration, the data it is about")
        if self.min_cosine is not None and self.precision == "float32" and not self.quantize:
            raise ValueError(
                "min_cosine: needs quantize, or precision bfloat16 or float16; float32 is held to "
                "atol and rtol"
            )
        if self.dynamic_extents and self.chosen_tuner:
            raise ValueError("input_shapes: a tuner measures one shape; give numbers, or no trials")
        if self.chosen_tuner and self.engine not in (None, self._engine_of(self.chosen_tuner)):
            raise ValueError(
                f"tuner={self.chosen_tuner!r} is of the {self._engine_of(self.chosen_tuner)} "
                f"engine, not engine={self.engine!r}"
            )
        return self

    @staticmethod
    def _engine_of(tuner: Tuner) -> Engine:
        return CURRENT if tuner == "metaschedule" else CLASSIC

    @property
    def chosen_tuner(self) -> Tuner | None:
        """The tuner that will run; None when nothing is tuned."""
        if self.tuner is not None:
            return "metaschedule" if self.tuner == "auto" else self.tuner
        if self.use_ansor:
            return "ansor"
        if not self.tuning_trials:
            return None
        return "metaschedule" if self.engine == CURRENT else "autotvm"

    @property
    def tunes(self) -> bool:
        """Whether anything is tuned."""
        return self.chosen_tuner is not None and self.tuning_trials > 0

    @property
    def measures_elsewhere(self) -> bool:
        """Whether a search may be for a target that this machine cannot run."""
        return self.chosen_tuner is not None and self.search.tracker is not None

    @property
    def chosen_engine(self) -> Engine:
        """The TVM that the export runs on."""
        if self.chosen_tuner is not None:
            return self._engine_of(self.chosen_tuner)
        return self.engine or CURRENT

    @property
    def least_cosine(self) -> float | None:
        """The cosine that outputs must reach; None where they are held to `atol` and `rtol`."""
        if self.precision == "float32" and not self.quantize:
            return None
        usual = MIN_COSINE_INT8 if self.quantize else MIN_COSINE
        return usual if self.min_cosine is None else self.min_cosine

    @property
    def dynamic_extents(self) -> list[str]:
        """The names that stand for extents in `input_shapes`."""
        shapes = (self.input_shapes or {}).values()
        return sorted({each for shape in shapes for each in shape if isinstance(each, str)})


class ExportConfig(ExportSettings):
    """The settings of an export in this process. A bad value raises pydantic.ValidationError.

    Attributes:
        example_input: what the model is called with: a tensor, a tuple of arguments, or a mapping
            of them by name. An argument may hold tensors within tuples, lists, mappings and
            dataclasses.
        steps: "tvm_practice" for the learner's functions, "solutions" for the reference ones,
            None for the product's own.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    example_input: Any
    steps: Literal["solutions", "tvm_practice"] | None = None

    @property
    def args(self) -> tuple[Any, ...]:
        """The example inputs that are given by position."""
        given = self.example_input
        if isinstance(given, Mapping):
            return ()
        return tuple(given) if isinstance(given, tuple | list) else (given,)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The example inputs that are given by name."""
        given = self.example_input
        return dict(given) if isinstance(given, Mapping) else {}
