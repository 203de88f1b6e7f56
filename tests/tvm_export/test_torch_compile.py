"""torch.compile(backend="tvm_practice"): what TVM runs, what PyTorch runs, and that both agree."""

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tests.pages import ROOT
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.torch_compile_functions"
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def call(process_of: Processes) -> Any:
    """A call of one of the functions, in the process that all of these tests share."""

    def in_process(name: str, **arguments: Any) -> Any:
        return process_of("current").call(f"{FUNCTIONS}:{name}", arguments)

    return in_process


def test_its_entry_point_names_a_function() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    [value] = re.findall(
        r'\[project.entry-points.torch_dynamo_backends\]\ntvm_practice = "(.+)"', text
    )
    point = importlib.metadata.EntryPoint("tvm_practice", value, "torch_dynamo_backends")
    assert callable(point.load())


def test_every_effect_of_a_model_is_pytorchs(call: Any) -> None:
    """In-place writes, views, copies, constants, strides; nothing is shared that was not."""
    found = call("everything")
    assert found["error"] < TOLERANCE and found["aliases"]
    assert found["calls"][0] == found["calls"][1]
    assert found["counted"] == {"built": 1}


def test_what_tvm_lacks_stays_with_pytorch(call: Any) -> None:
    found = call("mixed")
    for error, _ in found.values():
        assert error < TOLERANCE
    assert found["spectrum"][1] == {"built": 2}
    assert found["branches"][1] == {"built": 3}
    assert found["recurrent"][1] == {"built": 1}


def test_equal_elements_stay_in_their_order(call: Any) -> None:
    assert call("ties") == {"error": 0, "counted": {"built": 1}}


def test_a_part_without_inputs_is_tvms(call: Any) -> None:
    found = call("without_inputs")
    assert found["error"] == 0
    assert found["counted"] == {"built": 2}


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("refused", "no sigmoid today"),
        pytest.param("wrong", "are wrong", marks=pytest.mark.pages),
    ],
)
def test_an_operator_refused_or_wrong_is_left_out(call: Any, how: str, why: str) -> None:
    found = call("not_taken", how=how)
    assert found["error"] < TOLERANCE
    assert found["counted"] == {"refused": 1, "built": 2}
    [line] = found["said"]
    assert "leaves sigmoid to PyTorch" in line and why in line and "\n" not in line


def test_gradients_are_pytorchs(call: Any) -> None:
    found = call("gradients")
    assert found["gradient"] == 0
    assert found["with"] == {"gradients": 1}
    assert max(found["no_grad"], found["inference_mode"]) < TOLERANCE
    assert found["without"]["built"] >= 1


def test_open_extents_are_one_build_or_one_for_each(call: Any) -> None:
    found = call("extents")
    assert found["open"][0] < TOLERANCE and found["open"][1] == {"built": 1}
    assert found["each"][0] < TOLERANCE and found["each"][1] == {"built": 2}
    assert found["of a range"] < TOLERANCE


def test_weights_that_change_are_seen(call: Any) -> None:
    """Each change costs a build, until they are inputs."""
    found = call("weights")
    assert max(found["errors"]) < TOLERANCE
    assert found["built"] == [1, 2, 3, 4, 4, 4]
    assert found["inputs"] == {"built": 1}


@pytest.mark.pages
def test_inputs_may_lie_anywhere_in_memory(call: Any) -> None:
    for name, (error, built) in call("odd_inputs").items():
        assert error < TOLERANCE and built == 1, name


def test_an_index_out_of_bounds_is_an_index_error(call: Any) -> None:
    assert call("indices") == ["IndexError", "right", "IndexError", "IndexError", "right"]


def test_calls_from_several_threads(call: Any) -> None:
    found = call("threads")
    assert found["calls"] == 200 and found["error"] < TOLERANCE
    assert found["counted"] == {"built": 1}


@pytest.mark.pages
@pytest.mark.parametrize("refuse", [False, True])
def test_another_process_takes_the_build_from_disk(call: Any, refuse: bool, tmp_path: Path) -> None:
    """And what the exporter refused is not asked for again."""
    first = call("kept", folder=str(tmp_path), refuse=refuse)
    with engines.Session(engines.CURRENT) as session:
        second = session.call(f"{FUNCTIONS}:kept", {"folder": str(tmp_path), "refuse": refuse})
    assert max(first["error"], second["error"]) < TOLERANCE
    if refuse:
        assert first["counted"] == {"refused": 1, "built": 2}
        assert second["counted"] == {"refused": 1, "loaded": 2}
    else:
        assert (first["counted"], second["counted"]) == ({"built": 1}, {"loaded": 1})


def test_a_library_that_does_not_load_is_built_anew(call: Any, tmp_path: Path) -> None:
    call("kept", folder=str(tmp_path))
    [library] = tmp_path.glob("*/library.so")
    library.write_bytes(b"not a library")
    assert call("kept", folder=str(tmp_path))["counted"] == {"built": 1}


def test_a_bad_option_is_told_in_a_line(call: Any) -> None:
    given = [{"trails": 3}, {"trials": -1}, {"target": "cuda"}, {"target": "llvm -mcpu=power9"}]
    unknown, negative, cuda, power = call("options", given=given)
    assert unknown.startswith("BadInput: no option 'trails'; did you mean trials?")
    assert negative.startswith("BadInput: option trials=-1: ")
    assert cuda == "BadInput: target 'cuda': torch.compile's tensors are on the CPU; use llvm"
    assert power.startswith("BadInput: ") and "power9" in power


@pytest.mark.pages
@pytest.mark.slow
def test_trials_are_measured_and_recorded(call: Any, tmp_path: Path) -> None:
    found = call("tuned", folder=str(tmp_path))
    assert found["error"] < TOLERANCE and found["counted"] == {"built": 1}
    assert found["trials"] == 2
