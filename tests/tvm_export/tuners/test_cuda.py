"""Tuning for CUDA on a machine without a GPU: all but the times is real."""

from pathlib import Path

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.tvm_export.cuda import NO_COMPILER, compiler

FUNCTIONS = "tests.tvm_export.tuners.cuda_functions"


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.skipif(compiler() is None, reason=NO_COMPILER)
def test_candidates_are_compiled_and_the_runner_says_that_there_is_no_device(
    session: engines.Session, tmp_path: Path
) -> None:
    found = session.call(f"{FUNCTIONS}:without_a_device", {"folder": str(tmp_path / "out")})
    assert "no cuda device here" in found["said"]
    assert len(found["errors"]) >= 4
    assert set(found["errors"]) == {"RuntimeError: no cuda device here"}


@pytest.mark.pages
@pytest.mark.slow
def test_records_become_kernels_with_the_right_values(
    session: engines.Session, tmp_path: Path
) -> None:
    found = session.call(f"{FUNCTIONS}:tuned", {"folder": str(tmp_path / "out")})
    assert found["records"] == 1 and found["bound"] >= 1 and found["kernels"]
    assert found["error"] < 1e-4 and found["spread"] > 1


CLASSIC_FUNCTIONS = "tests.tvm_export.tuners.classic_cuda_functions"
COMPILED = {"it crashes or its process died"}  # of a trial that built and did not run


@pytest.fixture(scope="module")
def classic(process_of: Processes) -> engines.Session:
    return process_of(engines.CLASSIC)


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.skipif(compiler() is None, reason=NO_COMPILER)
@pytest.mark.parametrize(
    ("tuner", "functions"),
    [("autotvm", ["conv2d_nchw.cuda", "dense_small_batch.gpu"]), ("ansor", None)],
)
def test_classic_candidates_are_compiled_and_recorded_without_a_device(
    classic: engines.Session, tmp_path: Path, tuner: str, functions: list[str] | None
) -> None:
    given = {"folder": str(tmp_path / "out"), "tuner": tuner}
    found = classic.call(f"{CLASSIC_FUNCTIONS}:tuned_without_a_device", given)
    assert "measured nothing: all of its 4 trials failed" in found["said"]
    assert "no cuda device here" in found["said"] + found["shown"]
    assert len(found["errors"]) == found["targets"] == 4
    assert set(found["errors"]) >= COMPILED
    assert len(found["functions"]) == 2
    assert functions is None or found["functions"] == functions


@pytest.mark.pages
@pytest.mark.skipif(compiler() is None, reason=NO_COMPILER)
def test_the_classic_engine_exports_for_cuda(classic: engines.Session, tmp_path: Path) -> None:
    given = {"folder": str(tmp_path / "out")}
    found = classic.call(f"{CLASSIC_FUNCTIONS}:exported", given)
    assert found["status"] == "ok" and found["engine"] == "classic"
    assert found["not_run"] == "no CUDA device"
    assert found["kernels"] and found["rules"] == ["rule"]
