"""The adapter: configuration, targets, artifacts that load without PyTorch, verification."""

import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from tests.conftest import Processes, needs_classic
from tvm_practice import engines
from tvm_practice.tvm_export import ExportConfig
from tvm_practice.tvm_export.errors import BadInput

FUNCTIONS = "tests.tvm_export.functions"


VARIANTS = [
    pytest.param(None, 0, "current", id="relax-untuned"),
    pytest.param(
        "metaschedule",
        4,
        "current",
        id="relax-metaschedule",
        marks=[pytest.mark.slow, pytest.mark.pages],
    ),
    pytest.param(None, 0, "classic", id="relay-untuned", marks=needs_classic),
    pytest.param(
        "autotvm", 4, "classic", id="relay-autotvm", marks=[needs_classic, pytest.mark.slow]
    ),
    pytest.param(
        *("ansor", 4, "classic"),
        id="relay-ansor",
        marks=[needs_classic, pytest.mark.slow, pytest.mark.pages],
    ),
]


@pytest.mark.parametrize(("tuner", "trials", "engine"), VARIANTS)
def test_artifacts_give_pytorchs_outputs_in_a_process_without_pytorch(
    tuner: str | None, trials: int, engine: engines.Engine, tmp_path: Path, process_of: Processes
) -> None:
    folder = tmp_path / "artifacts"
    made = process_of(engine).call(
        f"{FUNCTIONS}:round_trip",
        {"folder": str(folder), "tuner": tuner, "trials": trials, "engine": engine},
    )
    assert made["latency"]["mean"] > 0 and made["latency"]["count"] == 5
    assert {"import", "optimize", "build"} <= set(made["seconds"])
    if tuner:
        assert made["tuning"]["trials"] >= trials and "tune" in made["seconds"]
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["engine"] == engine and metadata["tuner"] == tuner
    assert metadata["environment"]["processor"] and metadata["latency"] == made["latency"]
    assert {each.name for each in folder.iterdir()} == {
        "deploy_lib.tar",
        "deploy_graph.json",
        "deploy_params.bin",
        "metadata.json",
        "summary.json",
    }
    assert [each.name for each in tmp_path.iterdir()] == ["artifacts"]

    loaded = engines.call(
        engine, f"{FUNCTIONS}:run_loaded", {"folder": str(folder), "x": made["x"]}
    )
    np.testing.assert_allclose(loaded["outputs"][0], made["expected"], rtol=1e-4, atol=1e-5)
    assert not loaded["torch"]


def test_artifacts_of_another_schema_are_refused(tmp_path: Path, process_of: Processes) -> None:
    (tmp_path / "metadata.json").write_text('{"schema_version": 99}')
    with pytest.raises(engines.RemoteError, match="schema_version 99"):
        process_of("current").call(
            f"{FUNCTIONS}:run_loaded", {"folder": str(tmp_path), "x": [[0.0]]}
        )


def test_a_wrong_output_is_told_where(process_of: Processes) -> None:
    message = process_of("current").call(f"{FUNCTIONS}:wrong_reference")
    assert "output 0" in message and "1, 2" in message


def test_what_is_no_module_is_refused(process_of: Processes) -> None:
    with pytest.raises(BadInput, match=r"of type function, which is no torch\.nn\.Module"):
        process_of("current").call(f"{FUNCTIONS}:of_a_function")


def test_a_sparse_example_is_refused(process_of: Processes) -> None:
    with pytest.raises(BadInput, match="the example has a sparse tensor"):
        process_of("current").call(f"{FUNCTIONS}:of_a_sparse_tensor")


def test_a_wrong_model_is_not_returned(process_of: Processes) -> None:
    said = process_of("current").call(f"{FUNCTIONS}:verified_or_not")
    assert "output 0: 6 of 6 elements are wrong" in said["verified"] and said["not"] is None


@pytest.mark.parametrize(
    ("engine", "tuner", "space"),
    [
        pytest.param("current", "metaschedule", "register-tiles", id="register-tiles"),
        pytest.param("classic", "autotvm", None, id="autotvm", marks=needs_classic),
    ],
)
def test_a_model_without_anything_to_tune(
    engine: engines.Engine, tuner: str, space: str | None, process_of: Processes
) -> None:
    """It is exported untuned, and says so."""
    given = {"tuner": tuner, "space": space}
    made = process_of(engine).call(f"{FUNCTIONS}:nothing_to_tune", given)
    assert made["error"] < 1e-6
    assert made["tuning"]["tasks"] == 0 and "exported untuned" in made["tuning"]["note"], made


def test_misuse_of_a_graph_module_is_named(process_of: Processes) -> None:
    said = process_of("current").call(f"{FUNCTIONS}:misuse")
    assert "input_0" in said["unknown"] and "0 inputs given, the model has 1" in said["count"]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"tuning_trials": -1}, "tuning_trials"),
        ({"tuner": "grid"}, "tuner"),
        ({"tunning_trials": 5}, "tunning_trials"),
        ({"tuner": "autotvm", "engine": "current"}, "engine"),
        ({"tuner": "metaschedule", "use_ansor": True}, "use_ansor"),
        ({"steps": "somewhere"}, "steps"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        ExportConfig.model_validate({"example_input": None, **settings})


@pytest.mark.parametrize(
    ("settings", "tuner", "engine"),
    [
        ({}, None, "current"),
        ({"engine": "classic"}, None, "classic"),
        ({"tuning_trials": 9}, "autotvm", "classic"),
        ({"tuning_trials": 9, "use_ansor": True}, "ansor", "classic"),
        ({"tuning_trials": 9, "engine": "current"}, "metaschedule", "current"),
        ({"tuning_trials": 9, "tuner": "metaschedule"}, "metaschedule", "current"),
    ],
)
def test_the_tuner_and_the_engine_follow(
    settings: dict[str, object], tuner: str | None, engine: str
) -> None:
    config = ExportConfig.model_validate({"example_input": None, **settings})
    assert (config.chosen_tuner, config.chosen_engine) == (tuner, engine)


def test_targets_on_the_current_engine(process_of: Processes) -> None:
    known, host, unknown, malformed = process_of("current").call(
        f"{FUNCTIONS}:targets",
        {"texts": ["llvm -mcpu=core-avx2", "llvm", "llvm -nonsense=1", "llvm mcpu"]},
    )
    assert "core-avx2" in known and "num-cores" in host
    assert unknown.startswith("ValueError: target 'llvm -nonsense=1'")
    assert malformed.startswith("ValueError: target 'llvm mcpu'")


@pytest.mark.pages
@pytest.mark.slow
def test_a_variant_that_fails_in_the_turns_leaves_the_others(
    process_of: Processes, tmp_path: Path
) -> None:
    given = {"folder": str(tmp_path), "failing": "metaschedule", "calls": 4}
    report = process_of("current").call(f"{FUNCTIONS}:variants_one_of_which_fails", given)
    good, failed = report["variants"]
    assert (failed["status"], failed["reason"]) == ("failed", "RuntimeError: the run failed")
    assert "artifacts" not in failed
    assert good["status"] == "ok" and good["latency"]["p50"] > 0 and report["pytorch"]["p50"] > 0
    assert (Path(good["artifacts"]) / "metadata.json").exists()
