"""`artifact`: run, bench, profile and inspect on both engines, and what is refused."""

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tvm_practice import artifact, engines

FUNCTIONS = "tests.tvm_export.artifacts_functions"
ROWS, WIDTH, OUT = 2, 5, 3


@pytest.fixture(scope="module")
def made(
    session: engines.Session, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Any]]:
    """An export of a dense layer, and its output on ones."""
    folder = tmp_path_factory.mktemp(session.engine) / "artifacts"
    return folder, session.call(f"{FUNCTIONS}:export", {"folder": str(folder)})


@pytest.fixture
def shared(session: engines.Session, monkeypatch: pytest.MonkeyPatch) -> engines.Session:
    """The command runs in that process, where a person's run starts one."""

    @contextlib.contextmanager
    def opened(engine: engines.Engine, **_: Any) -> Iterator[engines.Session]:
        assert engine == session.engine
        yield session

    monkeypatch.setattr(engines, "Session", opened)
    return session


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may start an engine."""

    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("an engine was started")

    monkeypatch.setattr(engines, "Session", started)


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(artifact.main, [str(each) for each in arguments])


def inputs(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "in.npz", **(arrays or {"input_0": np.ones((ROWS, WIDTH), "float32")}))
    return folder / "in.npz"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_run_writes_the_models_outputs(
    shared: engines.Session, made: tuple[Path, list[Any]], dtype: str, tmp_path: Path
) -> None:
    folder, expected = made
    given = inputs(tmp_path, input_0=np.ones((ROWS, WIDTH), dtype))
    done = invoke("run", folder, "--inputs", given, "--outputs", tmp_path / "out.npz")
    assert done.exit_code == 0, done.output
    assert f"output_0  float32 [{ROWS}, {OUT}]" in done.output
    with np.load(tmp_path / "out.npz") as outputs:
        assert outputs.files == ["output_0"]
        np.testing.assert_allclose(outputs["output_0"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        ({"x": np.ones(3)}, "holds x; the model's inputs are input_0"),
        ({"input_0": np.ones((ROWS, 4), "float32")}, "the model takes float32 [2, 5]"),
        ({"input_0": np.ones((ROWS, WIDTH), "int32")}, "input_0 is int32"),
    ],
)
def test_inputs_that_are_not_the_models_are_refused(
    shared: engines.Session,
    made: tuple[Path, list[Any]],
    arrays: dict[str, Any],
    named: str,
    tmp_path: Path,
) -> None:
    given = inputs(tmp_path, **arrays)
    done = invoke("run", made[0], "--inputs", given, "--outputs", tmp_path / "out.npz")
    assert done.exit_code == 2 and named in done.output
    assert len(done.output.splitlines()) == 1 and not (tmp_path / "out.npz").exists()


def test_profile_names_functions_what_made_them_and_memory(
    shared: engines.Session, made: tuple[Path, list[Any]]
) -> None:
    done = invoke("profile", made[0], "--runs", 2, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    operators = found["operators"]
    assert sum(each["share"] for each in operators) == pytest.approx(1)
    assert all(each["milliseconds"] > 0 and each["calls"] >= 1 for each in operators)
    [dense] = [each for each in operators if re.search("dense|matmul", each["name"])]
    assert dense["made_by"] == "rule"
    assert (dense["rule"] is not None) == (shared.engine == "current")
    memory = found["memory"]
    assert (memory["inputs"], memory["outputs"]) == (4 * ROWS * WIDTH, 4 * ROWS * OUT)
    storages = memory["storages"]
    assert {"bytes": 4 * ROWS * OUT, "function": dense["name"]} in storages
    shown = invoke("profile", made[0], "--runs", 1).output
    assert "allocations" in shown and "rule" in shown and "100%" in shown


def test_bench_measures(shared: engines.Session, made: tuple[Path, list[Any]]) -> None:
    done = invoke("bench", made[0], "--warmup", 1, "--repeats", 7, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["count"], found["warmup"]) == (7, 1) and 0 < found["p50"] <= found["p99"]
    assert "median" in invoke("bench", made[0], "--warmup", 0, "--repeats", 2).output


def test_drawn_inputs_have_the_extents_asked_for() -> None:
    from tvm_practice.tvm_export.inputs import Input, drawn

    open_batch = (Input("x", ("n", 3), "float32"), Input("y", ("n",), "int64"))
    assert [each.shape for each in drawn(open_batch, {"n": 4}).values()] == [(4, 3), (4,)]
    assert {each.dtype.name for each in drawn(open_batch, {}).values()} == {"float32", "int64"}
    with pytest.raises(ValueError, match="no open extent m; the open ones are n"):
        drawn(open_batch, {"m": 1})


def test_inspect_starts_nothing(no_process: None, made: tuple[Path, list[Any]]) -> None:
    done = invoke("inspect", made[0])
    assert done.exit_code == 0, done.output
    for said in ("tests:one", "input_0  float32 [2, 5]", "deploy_lib.tar, whole", "function  rule"):
        assert said in done.output
    whole = json.loads((made[0] / "metadata.json").read_text())
    assert json.loads(invoke("inspect", made[0], "--json").stdout) == whole


@pytest.mark.parametrize("command", ["inspect", "bench", "profile", "run"])
def test_a_wrong_digest_is_refused_before_code_is_loaded(
    no_process: None, made: tuple[Path, list[Any]], command: str, tmp_path: Path
) -> None:
    more = ("--inputs", inputs(tmp_path), "--outputs", "out.npz") if command == "run" else ()
    done = invoke(command, made[0], *more, "--sha256", "0" * 64)
    assert done.exit_code == 2 and "the SHA-256" in done.output, done.output


def test_the_right_digest_is_accepted(
    shared: engines.Session, made: tuple[Path, list[Any]]
) -> None:
    digest = hashlib.sha256((made[0] / "metadata.json").read_bytes()).hexdigest()
    done = invoke("bench", made[0], "--repeats", 1, "--warmup", 0, "--sha256", digest.upper())
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("spoiled", "named"),
    [("metadata.json", "missing"), ("deploy_lib.tar", "damaged"), (None, "no such folder")],
)
def test_a_folder_that_is_no_whole_export(
    no_process: None, made: tuple[Path, list[Any]], spoiled: str | None, named: str, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    if spoiled:
        shutil.copytree(made[0], folder)
        (folder / spoiled).write_bytes(b"x")
        if named == "missing":
            (folder / spoiled).unlink()
    done = invoke("bench", folder)
    assert done.exit_code == 2 and named in done.output and str(folder) in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--extent", "batch"], "NAME=N"),
        (["--extent", "batch=0"], "NAME=N"),
        (["--extent", "batch=2", "--inputs", "in.npz"], "--extent"),
    ],
)
def test_a_bad_extent_is_named(
    no_process: None, made: tuple[Path, list[Any]], options: list[str], named: str
) -> None:
    done = invoke("bench", made[0], *options)
    assert done.exit_code == 2 and named in done.output
