"""Layers in 8-bit integers: values, which layers, refusals, accuracy."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.relax_passes.quantization_functions"


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


def test_layers_are_computed_by_the_definition(session: engines.Session, tmp_path: Path) -> None:
    given = {"keep": ["behind"], "folder": str(tmp_path)}
    found = session.call(f"{FUNCTIONS}:compiled", given)
    errors = found["errors"]
    for name in ("first", "beside", "strided", "signed", "depthwise", "three"):
        # A step of an operand is far more than what rounding in float32 makes of the result.
        assert errors[f"{name} int8"] < 1e-5 < 1e-3 < errors[f"{name} float32"]
    for name in ("last", "grouped"):
        assert errors[f"{name} float32"] < 1e-5 < 1e-3 < errors[f"{name} int8"]
    assert found["told"] == ["2 linear layers and 4 convolutions in int8; float32: behind"]
    assert found["rows"] == 1  # what both read is quantized once


def test_bytes_go_from_one_convolution_to_the_next(
    session: engines.Session, tmp_path: Path
) -> None:
    found = session.call(f"{FUNCTIONS}:chained", {"folder": str(tmp_path)})
    assert found["error"] < found["of bytes"] / 10, found  # a sum at the middle of two steps
    assert found["layouts"] == ["nhwc"]
    assert not {"fallback", "unscheduled"} & set(found["rules"].values())
    # Of each but the last, one multiplication, one addition and one clip make bytes.
    steps = ("conv2d", "cast", "multiply", "add", "tir_round", "tir_clip", "cast", "cast")
    short = f"fused_{'_'.join(rf'{each}[0-9]*' for each in steps)}(_pad[0-9]*)?"
    assert sum(bool(re.fullmatch(short, each)) for each in found["rules"]) == 3, found["rules"]


def test_additions_and_maxima_read_bytes(session: engines.Session, tmp_path: Path) -> None:
    found = session.call(f"{FUNCTIONS}:residual", {"folder": str(tmp_path)})
    assert found["error"] < found["of bytes"] / 10, found
    assert not {"fallback", "unscheduled"} & set(found["rules"].values())
    (_, first), *others = found["results"]
    assert first == "int32"  # a word a pixel
    between = {dtype for extents, dtype in others if extents.endswith(", 16")}
    assert between == {"uint8"}, found["results"]


def test_of_two_convolutions_that_are_added_one_is_kept_in_16_bits(
    session: engines.Session, tmp_path: Path
) -> None:
    found = session.call(f"{FUNCTIONS}:shortcut", {"folder": str(tmp_path)})
    assert found["error"] < found["of bytes"] / 10, found
    assert not {"fallback", "unscheduled"} & set(found["rules"].values())
    assert found["layouts"] == ["nhwc"]
    between = [dtype for extents, dtype in found["results"] if extents.startswith("1, 7, 9, 16")]
    assert between.count("int16") == 1 and "float32" not in between, found["results"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keep": ["behind.lost"]}, "--keep-float behind.lost: .*; is it behind.last?"),
        ({"keep": ["first", "beside", "behind.last"]}, "int8: the model has no layer for it"),
        ({"keep": [], "target": "cuda -arch=sm_80"}, "int8 is for processors; .* is cuda"),
    ],
)
def test_refusals(session: engines.Session, settings: dict[str, object], said: str) -> None:
    line = session.call(f"{FUNCTIONS}:refusal", settings)
    assert "\n" not in line and re.search(said, line), line


@pytest.mark.pages
def test_an_artifact_is_near_float64_or_fails(session: engines.Session, tmp_path: Path) -> None:
    written = "tests.tvm_export.relax_passes.precision_functions:written"
    given: dict[str, Any] = {
        "folder": str(tmp_path / "one"),
        "quantize": "int8",
        "min_cosine": None,
    }
    metadata = session.call(written, given)["metadata"]
    assert metadata["configuration"]["quantize"] == "int8"
    found = metadata["verification"]
    assert found["min_cosine"] == 0.99 and found["reference"] == "pytorch in float64"
    assert 0.999 < found["cosine"] < 1 - 1e-7 and found["top1"] > 0.9
    assert "3 linear layers in int8" in metadata["notes"]
    made = session.call(written, given | {"folder": str(tmp_path / "two"), "min_cosine": 1.0})
    assert "less than --min-cosine 1.0" in made["told"]["reason"] and made["metadata"] == {}


def test_the_layer_that_int8_harms_most_is_found(session: engines.Session) -> None:
    made = session.call(f"{FUNCTIONS}:sensitivities", {})
    found, artifact = made["found"], made["artifact"]
    worst, second, _ = found["layers"]
    assert worst["layer"] == "rough" and worst["cosine"] > found["cosine"]
    assert worst["share"] > 0.5 > second["share"]
    assert sorted(found["inputs"]) == sorted(artifact["trials"])
    # What PyTorch computes with rounded operands is what the compiled integers do.
    assert 1 - found["cosine"] == pytest.approx(1 - artifact["cosine"], rel=0.05)
