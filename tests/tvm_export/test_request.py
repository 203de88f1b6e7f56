"""A request: what an export is asked for, there and back as JSON."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tvm_practice.tvm_export.config import ExportConfig, ExportSettings
from tvm_practice.tvm_export.request import ExportRequest

MINIMAL: dict[str, Any] = {"model": "tests:one", "artifacts": "runs/one"}
FULL: dict[str, Any] = {
    **MINIMAL,
    "example": [{"shape": [2, 3], "dtype": "int64"}],
    "target": "llvm -mcpu=core-avx2",
    "tuner": "autotvm",
    "tuning_trials": 7,
    "tuning_log": "runs/log",
    "search": {"seconds": 60, "policy": "ga", "rpc_tracker": "here:9190"},
    "opt_level": 2,
    "without": [],
    "input_shapes": {"image": [2, 3]},
    "converters": "mine:converters",
    "atol": 1e-4,
    "rtol": 0.0,
    "verify_data": "x.npz",
    "precision": "float32",
    "keep_float": [],
    "steps": "tvm_practice",
    "warmup": 3,
    "repeats": 4,
    "dump_ir": True,
    "force": True,
    "reuse": True,
}


@pytest.mark.parametrize("given", [MINIMAL, FULL], ids=["minimal", "full"])
def test_it_travels_as_json(given: dict[str, Any]) -> None:
    request = ExportRequest.model_validate(given)
    arguments = json.loads(json.dumps(request.arguments()))
    assert arguments.keys() == {"request"}
    assert ExportRequest.model_validate(arguments["request"]) == request


def test_it_is_frozen_and_knows_no_other_field() -> None:
    request = ExportRequest.model_validate(MINIMAL)
    with pytest.raises(ValidationError):
        request.target = "cuda"
    with pytest.raises(ValidationError, match="trails"):
        ExportRequest.model_validate({**MINIMAL, "trails": 3})


def test_settings_are_those_of_a_configuration() -> None:
    """Whatever an in-process export can be told can be asked for, and is judged alike."""
    assert set(ExportConfig.model_fields) - {"example_input"} == set(ExportSettings.model_fields)
    assert set(ExportSettings.model_fields) < set(ExportRequest.model_fields)
    for kind, given in ((ExportConfig, {"example_input": None}), (ExportRequest, MINIMAL)):
        with pytest.raises(ValidationError, match="contradicts"):
            kind.model_validate({**given, "use_ansor": True, "tuner": "metaschedule"})
        with pytest.raises(ValidationError, match="policy: autotvm has"):
            kind.model_validate({**given, "tuner": "autotvm", "search": {"policy": "sketch.xgb"}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "float8"}, "'float32', 'bfloat16' or 'float16'"),
        ({"precision": "bfloat16", "engine": "classic"}, "only the current engine has bfloat16"),
        ({"precision": "float16", "tuner": "ansor"}, "only the current engine has float16"),
        ({"min_cosine": 0.9}, "needs quantize, or precision bfloat16 or float16"),
        ({"quantize": "int4"}, "'int8'"),
        ({"quantize": "int8", "engine": "classic"}, "only the current engine has int8"),
        ({"quantize": "int8", "precision": "bfloat16"}, "what it leaves is float32, not bfloat16"),
        ({"keep_float": ["head"]}, "keep_float: needs quantize"),
        ({"calibration": "x.npz"}, "calibration: needs quantize"),
        ({"quantize": "int8", "calibration_method": "entropy"}, "needs calibration"),
        ({"precision": "bfloat16", "min_cosine": 1.1}, "less than or equal to 1"),
        ({"without": ["speed"]}, "'attention', 'batch-normalization'"),
        ({"without": ["padding"], "engine": "classic"}, "only the current engine's export has pad"),
        ({"without": ["padding"], "quantize": "int8"}, "int8 layers need all passes"),
    ],
)
def test_precision_is_one_story(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ExportRequest.model_validate({**MINIMAL, **settings})


def test_the_least_cosine() -> None:
    def least(**settings: Any) -> float | None:
        return ExportRequest.model_validate({**MINIMAL, **settings}).least_cosine

    assert least() is None and least(precision="float32") is None
    assert least(precision="bfloat16") == 0.999 and least(quantize="int8") == 0.99
    assert least(precision="bfloat16", min_cosine=0.0) == 0.0


def test_what_metadata_keeps_of_it() -> None:
    asked = ExportRequest.model_validate(FULL).configuration
    assert asked["tuner"] == "autotvm" and asked["tuning_trials"] == 7
    assert asked["search"] == {"seconds": 60, "policy": "ga", "rpc_tracker": "here:9190"}
    assert not {"force", "reuse", "artifacts", "model"} & asked.keys()
    assert json.loads(json.dumps(asked)) == asked


@pytest.mark.parametrize(
    ("settings", "tunes"),
    [({}, False), ({"tuner": "ansor"}, False), ({"tuning_trials": 4}, True)],
)
def test_only_trials_tune(settings: dict[str, Any], tunes: bool) -> None:
    assert ExportRequest.model_validate({**MINIMAL, **settings}).tunes is tunes
