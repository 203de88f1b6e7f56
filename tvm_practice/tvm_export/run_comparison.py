"""A run's PyTorch latency beside the latency of TVM artifacts.

`speedup_vs_tvm` is TVM's mean over the run's mean: above 1 the run (ICD) is faster. The two were
measured in different processes, so its interval covers the spread of the samples and not what
else the machine did in between. `speedup_interleaved` does: it is the artifact's time over eager
PyTorch's, measured interleaved at export, over the run's own such ratio. A difference is called
significant when neither interval holds 1.
"""

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tvm_practice.tvm_export.artifacts.packing import SUFFIX, opened
from tvm_practice.tvm_export.artifacts.schema import SCHEMA_VERSION, OwnRecord
from tvm_practice.tvm_export.artifacts.whole import METADATA
from tvm_practice.tvm_export.errors import BadInput

# The fields that tell how an artifact was made, where its metadata has no configuration.
_MADE_BY = ("engine", "target", "tuner", "tuning")
_METHOD = "Student t on the logarithm of the ratio of means, standard errors from std and count"


class Row(BaseModel):
    """One artifact beside the run; times in milliseconds."""

    model_config = ConfigDict(extra="forbid")

    metrics: str = Field(description="The run's file.")
    metadata: str = Field(description="The artifact's file.")
    icd_latency_ms: float = Field(description="Mean latency of the run's PyTorch.")
    tvm_latency_ms: float = Field(description="Mean latency of the artifact.")
    speedup_vs_tvm: float = Field(description="tvm / icd; above 1 the run is faster.")
    speedup_ci95: tuple[float, float] | None = Field(
        description="Interval of tvm / icd; null where a file does not tell its spread."
    )
    interval_method: str = _METHOD
    speedup_interleaved: float | None = Field(
        description="The same by way of eager PyTorch: (tvm / eager) / (icd / eager), each ratio "
        "measured interleaved; null where a file has none."
    )
    speedup_interleaved_ci95: tuple[float, float] | None
    significant: bool | None = Field(
        description="Whether all intervals that are known leave out 1, on the same side."
    )
    own_latency_ms: float | None = Field(
        default=None,
        description="Mean latency of the tuner's own result, where the artifact has default "
        "schedules in place of some of it; null where it has none, and of an untuned one.",
    )
    own_speedup_vs_tvm: float | None = Field(default=None, description="Of that: own / icd.")
    own_speedup_ci95: tuple[float, float] | None = None
    own_speedup_interleaved: float | None = None
    own_speedup_interleaved_ci95: tuple[float, float] | None = None
    delta_ms: float = Field(description="tvm - icd; positive: the run is faster.")
    tvm_config: dict[str, Any] = Field(description="How the artifact was made.")
    tvm_verification: dict[str, Any] | None = Field(description="Its check against PyTorch.")
    notes: list[str] = Field(description="What stands in the way of comparing the two.")

    @property
    def name(self) -> str:
        """The artifact's folder."""
        return Path(self.metadata).resolve().parent.name

    @property
    def faster(self) -> str:
        """`ICD`, `TVM`, `neither` where the difference is not significant, `unknown`."""
        if self.significant is None:
            return "unknown"
        if not self.significant:
            return "neither"
        return "ICD" if self.speedup_vs_tvm > 1 else "TVM"


def compare(metrics: Path, metadata: Path) -> Row:
    """Compare a run's metrics.json with an artifact's metadata.json or summary.json.

    Raises BadInput for a file that is missing, is not JSON, or has no latency.
    """
    from tvm_practice.measure.comparison import ratio_interval

    run, artifact = _read(metrics), _read(metadata)
    if "pipeline" not in run:
        kind = "an artifact's record" if "engine" in run else "something else"
        raise BadInput(f"{metrics} is {kind}, not the metrics.json of a run")
    if "pipeline" in artifact:
        raise BadInput(f"{metadata} is a run's metrics.json, not an artifact's metadata.json")
    icd, tvm = _latency(metrics, run), _latency(metadata, artifact)
    interval = ratio_interval(tvm, icd)
    through_eager = interleaved_speedup(run, artifact)
    value, interleaved = through_eager or (None, None)
    configuration = artifact.get("configuration")
    if not isinstance(configuration, dict):
        configuration = {key: artifact[key] for key in _MADE_BY if key in artifact}
    verification = artifact.get("verification")
    return Row(
        metrics=str(metrics),
        metadata=str(metadata),
        icd_latency_ms=icd["mean"],
        tvm_latency_ms=tvm["mean"],
        speedup_vs_tvm=tvm["mean"] / icd["mean"],
        speedup_ci95=interval,
        speedup_interleaved=value,
        speedup_interleaved_ci95=interleaved,
        significant=_significant(interval, interleaved),
        delta_ms=tvm["mean"] - icd["mean"],
        **_own(run, artifact, icd),
        tvm_config=configuration,
        tvm_verification=verification if isinstance(verification, dict) else None,
        notes=_notes(run, artifact),
    )


def _own(run: dict[str, Any], artifact: dict[str, Any], icd: dict[str, Any]) -> dict[str, Any]:
    """The fields of a row on the tuner's own result; none where the artifact has no such record."""
    from tvm_practice.measure.comparison import ratio_interval

    try:
        own = OwnRecord.model_validate(artifact.get("tuners_own"))
    except ValidationError:
        return {}
    latency = own.latency.model_dump()
    ratio = {"ratio_to_pytorch": own.ratio_to_pytorch.model_dump()}
    value, interleaved = interleaved_speedup(run, ratio) or (None, None)
    return {
        "own_latency_ms": latency["mean"],
        "own_speedup_vs_tvm": latency["mean"] / icd["mean"],
        "own_speedup_ci95": ratio_interval(latency, icd),
        "own_speedup_interleaved": value,
        "own_speedup_interleaved_ci95": interleaved,
    }


def latency_of(file: Path) -> dict[str, Any]:
    """The latency in a run's or an artifact's file; raises BadInput as `compare` does."""
    return _latency(file, _read(file))


def _read(file: Path) -> dict[str, Any]:
    if file.suffix == SUFFIX and file.is_file():
        with opened(file) as folder:
            return _read(folder / METADATA)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except IsADirectoryError:
        raise BadInput(f"{file} is a folder; name its metrics.json or metadata.json") from None
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror or error}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadInput(f"{file} is not JSON: {error.msg}, {where}") from None
    except (UnicodeDecodeError, RecursionError):
        raise BadInput(f"{file} is not JSON") from None
    if not isinstance(content, dict):
        raise BadInput(f"{file} does not hold an object with keys")
    if (version := content.get("schema_version", SCHEMA_VERSION)) != SCHEMA_VERSION:
        raise BadInput(f"{file} has schema_version {version}; {SCHEMA_VERSION} is read here")
    return content


def _latency(file: Path, content: dict[str, Any]) -> dict[str, Any]:
    latency = content.get("latency")
    if not isinstance(latency, dict):
        raise BadInput(f"{file} has no latency: was it measured?")
    mean = latency.get("mean")
    if not isinstance(mean, int | float) or isinstance(mean, bool):
        raise BadInput(f"{file} has no number latency.mean")
    if not (math.isfinite(mean) and mean > 0):
        raise BadInput(f"{file}: latency.mean={mean} is not a time")
    unit = latency.get("unit", "ms")
    if unit != "ms":
        raise BadInput(f"{file}: latency.unit={unit!r}; only ms is read")
    return latency


def interleaved_speedup(
    run: dict[str, Any], artifact: dict[str, Any]
) -> tuple[float, tuple[float, float]] | None:
    """TVM's time over the run's, each as its interleaved ratio to eager PyTorch.

    The two ratios are independent, so their intervals' arms, on the logarithm, add as squares.

    Returns:
        The ratio and its 95% interval; None if a file has no interleaved ratio.
    """
    pipeline = run["pipeline"]
    ours: tuple[float, float, float] | None = (1.0, 1.0, 1.0)  # the eager model itself
    if not isinstance(pipeline, dict) or pipeline.get("choices"):
        ours = _ratio(pipeline.get("ratio_to_eager") if isinstance(pipeline, dict) else None)
    theirs = _ratio(artifact.get("ratio_to_pytorch"))
    if ours is None or theirs is None:
        return None
    value = theirs[0] / ours[0]
    below = math.hypot(math.log(theirs[0] / theirs[1]), math.log(ours[2] / ours[0]))
    above = math.hypot(math.log(theirs[2] / theirs[0]), math.log(ours[0] / ours[1]))
    return value, (value * math.exp(-below), value * math.exp(above))


def _ratio(given: Any) -> tuple[float, float, float] | None:
    """Value, lower and upper end of a stored ratio, if that is what it is."""
    try:
        value, (low, high) = given["value"], given["ci95"]
        found = float(value), float(low), float(high)
    except (TypeError, KeyError, ValueError):
        return None
    return found if all(math.isfinite(each) and each > 0 for each in found) else None


def _significant(*intervals: tuple[float, float] | None) -> bool | None:
    known = [each for each in intervals if each is not None]
    if not known:
        return None
    return all(low > 1 for low, _ in known) or all(high < 1 for _, high in known)


def _notes(run: dict[str, Any], artifact: dict[str, Any]) -> list[str]:
    """The differences between the two besides the compiler."""
    notes = []
    verification = artifact.get("verification")
    if not isinstance(verification, dict):
        notes.append("the artifact was not verified against PyTorch")
    elif not verification.get("verified"):
        notes.append("the artifact's outputs are NOT PyTorch's")
    here, there = run.get("environment") or {}, artifact.get("environment") or {}
    pairs = {
        "processors": (here.get("processor"), there.get("processor")),
        "models": ((run.get("model") or {}).get("loader"), artifact.get("model")),
        "thread counts": (run.get("threads"), _threads(artifact, there)),
        "devices": (run.get("device"), _device(artifact)),
    }
    for what, (ours, theirs) in pairs.items():
        if ours is not None and theirs is not None and str(ours) != str(theirs):
            notes.append(f"different {what}: {ours} (ICD) and {theirs} (TVM)")
    for name, content in {"ICD": run, "TVM": artifact}.items():
        if content["latency"].get("stable") is False:
            notes.append(f"{name}'s latency is unstable")
    return notes


def _threads(artifact: dict[str, Any], environment: dict[str, Any]) -> Any:
    return (artifact.get("engine_facts") or {}).get("threads") or environment.get("threads")


def _device(artifact: dict[str, Any]) -> str | None:
    """`cpu` for an llvm or c target; another target's own kind."""
    target = artifact.get("target")
    if not isinstance(target, str):
        return None
    if target.lstrip().startswith("{"):
        try:
            kind = str(json.loads(target).get("kind"))
        except json.JSONDecodeError:
            return None
    else:
        kind = target.split()[0] if target.split() else ""
    return {"llvm": "cpu", "c": "cpu"}.get(kind, kind)


def as_json(rows: Sequence[Row]) -> Any:
    """One comparison as an object, several as a list of them."""
    # By way of JSON text, in which whatever is not finite has become null.
    dumped = [json.loads(row.model_dump_json()) for row in rows]
    return dumped[0] if len(dumped) == 1 else dumped


def as_csv(rows: Sequence[Row]) -> str:
    """A line a comparison; the interval as two columns, objects and lists as JSON."""
    lines = []
    for row in rows:
        cells: dict[str, Any] = {}
        for name, value in row.model_dump(mode="json").items():
            if name.endswith("_ci95"):
                start = name.removesuffix("_ci95")
                cells[f"{start}_low"], cells[f"{start}_high"] = value or (None, None)
            else:
                cells[name] = json.dumps(value) if isinstance(value, dict | list) else value
        lines.append(cells)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
