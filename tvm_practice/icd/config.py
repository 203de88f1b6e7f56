"""A run's configuration: a file, overrides on top, validated as a whole.

config = load_config("configs/mlp.json", ["measure.repeats=50"])

A mistake is a BadInput whose message is one line: where it is, what is wrong, the nearest name.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tvm_practice.tvm_export.config import (
    ATOL,
    RTOL,
    CalibrationMethod,
    ExportSettings,
    Precision,
    Tuner,
)
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.example_inputs import ExampleTensor
from tvm_practice.tvm_export.loading import did_you_mean
from tvm_practice.tvm_export.request import MOST_CALLS, ExportRequest
from tvm_practice.tvm_export.tuners.search import Search

Mode = Literal["eager", "compiled", "iterative"]


_DEEPEST = 100


class Section(BaseModel):
    """A part of the configuration: no unknown keys, no conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ModelSection(Section):
    """Which model, on which inputs."""

    loader: str = Field(
        description="`module:factory`, or a file of `torch.export.save` or `torch.jit.save`. The "
        "factory returns a torch module, or a module and its example inputs: a tensor, a tuple of "
        "them, or a dictionary by argument name.",
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$|\.(pt2|pt|pth|ts|torchscript)$",
    )
    example: list[ExampleTensor] | None = Field(
        default=None,
        description="Shapes of the inputs. The factory's own are resized to them; where it returns "
        "none, they are drawn. One shape alone is that of every input shaped like the first.",
    )


class PipelineSection(Section):
    """What PyTorch is given a chance to do."""

    mode: Mode = Field(
        default="eager",
        description="`eager`: the model as it is. `compiled`: torch.compile. `iterative`: a greedy "
        "search that keeps what is verified and significantly faster.",
    )
    rounds: int = Field(
        default=20,
        ge=6,
        le=MOST_CALLS,
        description="Rounds of each interleaved comparison; fewer than 6 can show nothing at 95%.",
    )
    atol: float = Field(
        default=ATOL,
        ge=0,
        allow_inf_nan=False,
        description="Absolute tolerance against the eager outputs.",
    )
    rtol: float = Field(
        default=RTOL,
        ge=0,
        allow_inf_nan=False,
        description="Relative tolerance against the eager outputs.",
    )


class MeasureSection(Section):
    """How latency is measured, and whether TVM is measured too."""

    warmup: int = Field(
        default=20, ge=0, le=MOST_CALLS, description="Calls of the PyTorch model that are not kept."
    )
    repeats: int = Field(
        default=200, ge=1, le=MOST_CALLS, description="Calls of the PyTorch model, one sample each."
    )
    tvm_enable: bool = Field(
        default=False, description="Export the model to TVM and measure that too."
    )
    tvm_target: str = Field(
        default="llvm", min_length=1, description="TVM target; `llvm` is this machine's processor."
    )
    tvm_trials: int = Field(
        default=0,
        ge=0,
        description="Schedules the tuner may measure, over all tasks; 0 for no tuning.",
    )
    tvm_use_ansor: bool = Field(default=False, description="Tune with Ansor rather than AutoTVM.")
    tvm_tuner: Tuner | None = Field(default=None, description="The tuner by name.")
    tvm_repeats: int = Field(
        default=200, ge=1, le=MOST_CALLS, description="Calls of the TVM model, one sample each."
    )
    tvm_warmup: int = Field(
        default=20, ge=0, le=MOST_CALLS, description="Calls of the TVM model that are not kept."
    )
    tvm_log: str | None = Field(
        default=None,
        min_length=1,
        description="Tuning records, which a further run goes on from; `OUT/tvm_records/TUNER` if "
        "not given.",
    )
    tvm_artifacts_dir: str | None = Field(
        default=None, min_length=1, description="Folder of the artifacts; `OUT/tvm` if not given."
    )

    tvm_search: Search = Field(
        default=Search(), description="How the tuner searches; its keys are optional."
    )
    tvm_input_shapes: dict[str, list[int | str]] | None = Field(
        default=None,
        description="Names and shapes of the inputs, in their order. A name in place of an extent "
        "leaves it open; an untuned export is then for every value of it.",
    )
    tvm_converters: str | None = Field(
        default=None,
        description="`module:function` that returns converters of operators that TVM lacks.",
    )
    tvm_opt_level: int = Field(
        default=3, ge=0, le=3, description="Optimization level of TVM's passes."
    )
    tvm_atol: float = Field(
        default=ATOL,
        ge=0,
        allow_inf_nan=False,
        description="Absolute tolerance against PyTorch's outputs.",
    )
    tvm_rtol: float = Field(
        default=RTOL,
        ge=0,
        allow_inf_nan=False,
        description="Relative tolerance against PyTorch's outputs.",
    )
    tvm_verify_data: str | None = Field(
        default=None,
        min_length=1,
        description="An .npz file of inputs to verify on, arrays by the inputs' names; drawn ones "
        "if not given.",
    )
    tvm_precision: Precision = Field(
        default="float32",
        description="Type of the numbers that matrix products and convolutions multiply; sums stay "
        "float32.",
    )
    tvm_quantize: Literal["int8"] | None = Field(
        default=None, description="Linear layers in 8-bit integers; not if not given."
    )
    tvm_keep_float: list[str] = Field(
        default_factory=list, description="Layers, or modules, that tvm_quantize leaves in float32."
    )
    tvm_calibration: str | None = Field(
        default=None,
        min_length=1,
        description="An .npz file of inputs; with it, tvm_quantize takes convolutions too.",
    )
    tvm_calibration_method: CalibrationMethod = Field(
        default="minmax",
        description="How the values of these inputs make a range; see `--calibration-method`.",
    )
    tvm_min_cosine: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="With 16-bit or 8-bit products, the least cosine between an output and "
        "float64's; replaces the tolerances; 0.999, or 0.99 with tvm_quantize, if not given.",
    )

    @model_validator(mode="after")
    def _one_story(self) -> "MeasureSection":
        if self.tvm_use_ansor and self.tvm_tuner not in (None, "ansor"):
            raise ValueError(f"tvm_use_ansor=true contradicts tvm_tuner={self.tvm_tuner}")
        try:
            ExportSettings.model_validate(self.settings())
        except ValidationError as error:
            text = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise ValueError(f"tvm_{text}") from None
        return self

    def settings(self) -> dict[str, Any]:
        """What is asked of the export, by the names that `ExportSettings` has for it."""
        return {
            "target": self.tvm_target,
            "tuning_trials": self.tvm_trials,
            "tuning_log": self.tvm_log,
            "use_ansor": self.tvm_use_ansor,
            "tuner": self.tvm_tuner,
            "search": self.tvm_search,
            "input_shapes": self.tvm_input_shapes,
            "converters": self.tvm_converters,
            "opt_level": self.tvm_opt_level,
            "atol": self.tvm_atol,
            "rtol": self.tvm_rtol,
            "verify_data": self.tvm_verify_data,
            "precision": self.tvm_precision,
            "quantize": self.tvm_quantize,
            "keep_float": self.tvm_keep_float,
            "calibration": self.tvm_calibration,
            "calibration_method": self.tvm_calibration_method,
            "min_cosine": self.tvm_min_cosine,
        }


class RunConfig(Section):
    """The configuration of a run."""

    model: ModelSection
    pipeline: PipelineSection = PipelineSection()
    measure: MeasureSection = MeasureSection()
    seed: int = Field(
        default=0, ge=0, description="PyTorch's seed while the model and its inputs are made."
    )

    def export_request(self, out: Path) -> ExportRequest:
        """The export to TVM that the configuration asks for.

        Args:
            out: the run's folder, which has records and artifacts unless the configuration says
                where.
        """
        measure = self.measure
        request = ExportRequest(
            model=self.model.loader,
            example=self.model.example,
            model_seed=self.seed,
            artifacts=Path(measure.tvm_artifacts_dir or out / "tvm"),
            warmup=measure.tvm_warmup,
            repeats=measure.tvm_repeats,
            replace=True,  # a run of another configuration is
            **measure.settings(),
        )
        if request.tunes and request.tuning_log is None:
            log = out / "tvm_records" / str(request.chosen_tuner)
            return request.model_copy(update={"tuning_log": log})
        return request


def load_config(file: Path | str, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a JSON or YAML file, put `key.key=value` overrides on top, validate.

    Values of overrides are YAML: `true`, `3`, `[1, 2]`, `some text`. Raises BadInput.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    try:
        _require_shallow(Path(file).read_text(encoding="utf-8"), str(file))
        given: Any = OmegaConf.load(file)
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror or error}") from None
    except YAMLError as error:
        raise BadInput(f"{file} is neither JSON nor YAML: {_yaml_problem(error)}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not a text file in UTF-8") from None
    if not OmegaConf.is_dict(given):
        raise BadInput(f"{file} holds a list, not keys such as model.loader")
    for override in overrides:
        key, equals, _ = override.partition("=")
        if not equals or not all(key.split(".")):
            raise BadInput(f"override {override!r} is not of the form key=value")
        try:
            _require_shallow(override.partition("=")[2], f"override {key}")
            given = OmegaConf.merge(given, OmegaConf.from_dotlist([override]))
        except YAMLError as error:
            raise BadInput(f"override {override!r}: {_yaml_problem(error)}") from None
        except OmegaConfBaseException as error:
            raise BadInput(f"override {override!r}: {_first_line(error)}") from None
    try:
        plain = OmegaConf.to_container(given, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise BadInput(f"{file}: {_first_line(error)}") from None
    overrides = _with_newer_name(plain, str(file), overrides)
    try:
        return RunConfig.model_validate(plain)
    except ValidationError as error:
        raise BadInput(_explain(error, str(file), overrides)) from None


def _with_newer_name(plain: Any, file: str, overrides: Sequence[str]) -> list[str]:
    """Put graph.loader, the older name of model.loader, under the newer one.

    Args:
        plain: the configuration, which is changed.
        file: its name.
        overrides: of which the last one counts.

    Returns the overrides by the newer name. Raises BadInput if the two names differ in the file.
    """
    older, newer = "graph.loader", "model.loader"
    graph = plain.get("graph")
    if isinstance(graph, dict) and "loader" in graph:
        loader = graph.pop("loader")
        if not graph:
            del plain["graph"]
        model = plain.setdefault("model", {})
        given = [each.partition("=")[0] for each in overrides]
        last = [each for each in given if each in (older, newer)][-1:]
        if not isinstance(model, dict) or (last == [newer] and "loader" in model):
            pass  # the one is to be refused; the other counts
        elif "loader" not in model or last == [older]:
            model["loader"] = loader
        elif model["loader"] != loader:
            raise BadInput(f"{file}: {older} is the older name of {newer}, and the two differ")
    return [re.sub(rf"^{re.escape(older)}=", f"{newer}=", each) for each in overrides]


def _require_shallow(text: str, what: str) -> None:
    """Raise BadInput for YAML so deep that reading it would exhaust the stack, a crash."""
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > _DEEPEST:
                raise BadInput(f"{what} is nested more than {_DEEPEST} deep")
    except yaml.YAMLError:  # which reading it will tell
        return


def keys(section: type[BaseModel] = RunConfig, prefix: str = "") -> Iterator[str]:
    """The dotted names of all settings, `model.example[].shape` for the entries of a list."""
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from keys(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name
    if section is ModelSection:
        yield from keys(ExampleTensor, f"{prefix}example[].")


def _yaml_problem(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or _first_line(error)
    return f"{problem}, line {mark.line + 1}, column {mark.column + 1}" if mark else problem


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")


def _explain(error: ValidationError, file: str, overrides: Sequence[str]) -> str:
    """The first problem as one line, after the file or the override that it came from."""
    # A name that is not known first: it is often why another is missing.
    problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    place = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]
    ).removeprefix(".")
    overridden = any(_touches(each.partition("=")[0], place) for each in overrides)
    source = "--override" if overridden else file
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{source}: {_problem(problem, place)}{more}"


def _touches(key: str, place: str) -> bool:
    """Whether a setting of `key` is at `place`, above it or within it."""
    shorter, longer = sorted((key, place), key=len)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))


def _problem(problem: Any, place: str) -> str:
    kind, value = problem["type"], problem["input"]
    shown = f"{place}={json.dumps(value, default=str)}"
    if kind == "extra_forbidden":
        if isinstance(value, dict) and value:
            place = f"{place}.{next(iter(value))}"
        general, known = re.sub(r"\[\d+\]", "[]", place), list(keys())
        last = place.rpartition(".")[2]
        same_end = [each for each in known if each.rpartition(".")[2] == last]
        return f"unknown key {place}{did_you_mean(general, same_end or known)}"
    if kind == "missing":
        return f"{'model.loader' if place == 'model' else place} is missing"
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
        return f"{shown} is none of {', '.join(names)}{did_you_mean(str(value), names)}"
    if kind == "string_pattern_mismatch":
        return f"{shown} is not of the form module:factory, nor a file, .pt2 or .pt"
    if kind == "model_type":
        return f"{shown} is not a section with keys of its own"
    text = re.sub(r"^(Value error,|Input|String) ", "", problem["msg"])
    return f"{place}: {text}" if kind == "value_error" else f"{shown} {text}"
