"""The run: what metrics.json holds, whatever becomes of the export to TVM."""

import errno
import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from tvm_practice import engines, measure
from tvm_practice.icd import runner, search
from tvm_practice.icd.config import RunConfig
from tvm_practice.icd.metrics import Metrics
from tvm_practice.measure import Comparison, Latency, Ratio
from tvm_practice.tvm_export import loading
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.request import ExportRequest
from tvm_practice.tvm_export.tuners.search import Search

MODELS = "tests.icd.models"
FUNCTIONS = "tests.icd.functions"
QUICK: dict[str, Any] = {"warmup": 1, "repeats": 5}
TVM: dict[str, Any] = {**QUICK, "tvm_enable": True, "tvm_repeats": 7, "tvm_warmup": 3}


def config(model: str = "small", mode: str = "eager", **measure: Any) -> RunConfig:
    return RunConfig.model_validate(
        {
            "model": {"loader": f"{MODELS}:{model}"},
            "pipeline": {"mode": mode, "rounds": 6},
            "measure": measure or QUICK,
        }
    )


def read(out: Path) -> dict[str, Any]:
    """metrics.json, which must fit its schema and stand alone in the folder."""
    text = (out / "metrics.json").read_text()
    Metrics.model_validate_json(text)
    assert not [each for each in out.iterdir() if each.name.startswith(".")]
    content: dict[str, Any] = json.loads(text)
    return content


def test_another_models_artifacts_are_found_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "tvm").mkdir()
    content = {"schema_version": 1, "engine": "current", "model": "mine:other"}
    (tmp_path / "tvm" / "metadata.json").write_text(json.dumps(content))
    with pytest.raises(BadInput, match=r"holds the artifacts of mine:other; give another --out"):
        runner.run(config(**TVM), tmp_path)
    assert not (tmp_path / "metrics.json").exists()


def test_an_eager_run(tmp_path: Path) -> None:
    runner.run(config(), tmp_path / "new" / "folder")
    found = read(tmp_path / "new" / "folder")
    assert found["latency"] == found["eager"]
    latency = found["latency"]
    assert latency["count"] == len(latency["samples"]) == 5 and latency["warmup"] == 1
    assert latency["mean"] == pytest.approx(sum(latency["samples"]) / 5) and latency["unit"] == "ms"
    assert set(latency) >= {"std", "p50", "p90", "p95", "p99", "ci95", "stable"}
    assert found["configuration"]["model"]["loader"] == f"{MODELS}:small"
    assert found["configuration"]["measure"]["repeats"] == 5
    assert found["threads"] == engines.thread_count() and found["environment"]["processor"]
    assert found["model"]["parameters"] == 28
    assert found["model"]["inputs"] == [{"name": "input_0", "shape": [3, 6], "dtype": "float32"}]
    assert found["tvm_baseline"] is None and found["pipeline"]["choices"] == []


def test_pytorch_is_given_the_threads_that_tvm_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()
    monkeypatch.setenv("TVM_NUM_THREADS", "1")
    try:
        assert runner.run(config(), tmp_path).threads == torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_a_search_is_recorded_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons say that channels-last is faster, and nothing else."""

    def compared(runs: Any, *, baseline: str, rounds: int) -> Comparison:
        faster = runs[next(reversed(runs))] in channels_last
        ratio = Ratio(0.5, 0.4, 0.6) if faster else Ratio(1.0, 0.9, 1.1)
        latency = {name: Latency((1.0, 3.0), 3) for name in runs}
        return Comparison(baseline, latency, dict.fromkeys(runs, ratio))

    def runnable(variant: search.Variant, loaded: Any) -> Any:
        run = make_runnable(variant, loaded)
        if variant.choices[-1:] == ("channels_last",):
            channels_last.append(run)
        return run

    channels_last: list[Any] = []
    make_runnable = search.runnable
    monkeypatch.setattr(search, "runnable", runnable)
    monkeypatch.setattr(measure, "compare_interleaved", compared)
    fewer = [each for each in search.choices(1) if each.name != "compile"]
    monkeypatch.setattr(search, "choices", lambda threads: fewer)
    said: list[str] = []
    runner.run(config("conv", "iterative"), tmp_path, say=said.append)
    found = read(tmp_path)
    steps = {step["choice"]: step for step in found["pipeline"]["search"]}
    assert list(steps) == ["fuse_conv_bn", "channels_last", "bfloat16"]
    assert steps["fuse_conv_bn"]["status"] == "not_faster"
    assert steps["channels_last"]["status"] == "kept" and steps["channels_last"]["on"] == []
    assert steps["bfloat16"]["on"] == ["channels_last"]
    assert found["pipeline"]["choices"] == ["channels_last"]
    assert found["pipeline"]["verification"]["verified"]
    assert found["pipeline"]["ratio_to_eager"]["ci95"] == [0.4, 0.6]
    assert found["eager"]["samples"] == [1.0, 3.0] and found["latency"]["count"] == 5
    assert any(line.strip().startswith("channels_last: kept") for line in said)


def test_a_search_that_gained_nothing_in_the_end_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compared(runs: Any, *, baseline: str, rounds: int) -> Comparison:
        ratio = Ratio(0.5, 0.4, 0.6) if baseline == "best" else Ratio(1.0, 0.9, 1.1)
        latency = {name: Latency((1.0, 3.0), 3) for name in runs}
        return Comparison(baseline, latency, dict.fromkeys(runs, ratio))

    monkeypatch.setattr(measure, "compare_interleaved", compared)
    only = [each for each in search.choices(1) if each.name == "channels_last"]
    monkeypatch.setattr(search, "choices", lambda threads: only)
    runner.run(config("conv", "iterative"), tmp_path)
    assert any("not significantly faster than eager" in note for note in read(tmp_path)["notes"])


def test_a_compiler_that_fails_is_told_and_eager_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_nothing(module: Any) -> Any:
        def refuse(*_: Any) -> None:
            try:
                raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found in g++")
            except RuntimeError as cause:
                raise ValueError("backend='inductor' raised:") from cause

        return refuse

    monkeypatch.setattr(torch, "compile", compile_nothing)
    said: list[str] = []
    runner.run(config(mode="compiled"), tmp_path, say=said.append)
    found = read(tmp_path)
    assert found["pipeline"]["choices"] == [] and found["latency"]["mean"] > 0
    assert "needs a C++ compiler" in found["pipeline"]["reason"]
    assert any("the eager model is measured" in line for line in said)


def test_a_compiled_model_with_other_outputs_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda module: lambda x: module(x) + 1)
    runner.run(config(mode="compiled"), tmp_path)
    pipeline = read(tmp_path)["pipeline"]
    assert pipeline["choices"] == [] and "elements are wrong" in pipeline["reason"]
    assert pipeline["verification"]["verified"] is False


def test_a_compiled_run_has_its_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda module: module)
    runner.run(config(mode="compiled"), tmp_path)
    found = read(tmp_path)
    assert found["pipeline"]["choices"] == ["compile"] and found["pipeline"]["ratio_to_eager"]
    assert found["eager"]["count"] == 6 and found["latency"]["count"] == 5


# The export to TVM: a function of the tests in its place, in a real child process.


@pytest.fixture(scope="module")
def children() -> Iterator[dict[str, engines.Session]]:
    """A child process an engine for all tests: starting one takes seconds."""
    started: dict[str, engines.Session] = {}
    yield started
    for child in started.values():
        child.close()


@pytest.fixture
def one_child(
    children: dict[str, engines.Session], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    start = engines.Session

    def reuse(engine: engines.Engine, *, output: Any = None) -> Any:
        if engine not in children:
            children[engine] = start(engine)
        return nullcontext(children[engine])

    with monkeypatch.context() as patched:
        patched.setattr(engines, "Session", reuse)
        yield


def stand_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "EXPORT", f"{FUNCTIONS}:{name}")


@pytest.mark.parametrize(
    ("settings", "asked", "engine"),
    [
        ({}, {"tuner": None, "tuning_trials": 0, "tuning_log": None}, "current"),
        (
            {"tvm_trials": 9, "tvm_tuner": "metaschedule", "tvm_target": "llvm -mcpu=core-avx2"},
            {"tuner": "metaschedule", "tuning_trials": 9, "target": "llvm -mcpu=core-avx2",
             "tuning_log": "OUT/tvm_records/metaschedule"},
            "current",
        ),
        (
            {"tvm_trials": 9, "tvm_log": "logs/mine.log", "tvm_artifacts_dir": "elsewhere"},
            {"tuning_log": "logs/mine.log", "artifacts": "elsewhere"},
            "classic",
        ),
        ({"tvm_trials": 9, "tvm_use_ansor": True}, {"use_ansor": True}, "classic"),
        (
            {"tvm_input_shapes": {"image": ["batch", 6]}, "tvm_converters": "mine:converters",
             "tvm_opt_level": 2, "tvm_atol": 1e-5, "tvm_rtol": 0.0, "tvm_verify_data": "x.npz"},
            {"input_shapes": {"image": ["batch", 6]}, "converters": "mine:converters",
             "opt_level": 2, "atol": 1e-5, "rtol": 0.0, "verify_data": "x.npz"},
            "current",
        ),
        (
            {"tvm_precision": "bfloat16", "tvm_min_cosine": 0.99},
            {"precision": "bfloat16", "min_cosine": 0.99},
            "current",
        ),
        (
            {"tvm_quantize": "int8", "tvm_keep_float": ["head"], "tvm_calibration": "x.npz"}
            | {"tvm_calibration_method": "entropy"},
            {"quantize": "int8", "keep_float": ["head"], "calibration": "x.npz"}
            | {"calibration_method": "entropy"},
            "current",
        ),
        (
            {"tvm_trials": 9, "tvm_search": {"seconds": 60, "policy": "ga"}},
            {"search": Search(seconds=60, policy="ga").model_dump()},
            "classic",
        ),
    ],
)  # fmt: skip
def test_what_the_export_is_asked_for(
    settings: dict[str, Any],
    asked: dict[str, Any],
    engine: engines.Engine,
    one_child: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if reason := engines.unavailable_reason(engine):
        pytest.skip(reason)
    stand_in("answer", monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    out = tmp_path / "out"
    runner.run(config(**TVM, **settings), out)
    baseline = read(out)["tvm_baseline"]
    assert baseline["status"] == "ok" and baseline["reason"] is None, baseline
    got = baseline["tuning"]["asked"]
    assert baseline["engine"] == engine and baseline["tuner"] == ExportRequest(**got).chosen_tuner
    assert baseline["latency"]["mean"] == 2.0 and baseline["ratio_to_eager"]["value"] == 0.8
    assert baseline["verification"]["verified"] and baseline["seconds"] == {"build": 1.5}
    assert baseline["tuning_trials"] == settings.get("tvm_trials", 0)
    assert baseline["use_ansor"] == settings.get("tvm_use_ansor", False)
    assert baseline["tuning"]["note"] is None  # an infinity is not JSON
    assert got["model"] == f"{MODELS}:small" and got["example"] is None
    assert (got["warmup"], got["repeats"], got["steps"]) == (3, 7, None)
    assert baseline["artifacts_dir"] == got["artifacts"]
    expected = {"artifacts": f"{out}/tvm", "target": "llvm", **asked}
    for name, value in expected.items():
        want = value.replace("OUT", str(out)) if isinstance(value, str) else value
        assert got[name] == want, name
    if got["tuning_log"] is not None:
        assert Path(got["tuning_log"]).parent.is_dir()


def test_described_inputs_are_handed_on(
    one_child: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("answer", monkeypatch)
    described = config("without_inputs", **TVM).model_dump()
    described["model"]["example"] = [{"shape": [5, 6]}]
    runner.run(RunConfig.model_validate(described), tmp_path)
    asked = read(tmp_path)["tvm_baseline"]["tuning"]["asked"]
    assert asked["example"] == [{"shape": [5, 6], "dtype": None}]


@pytest.mark.parametrize("model", ["unrepeatable", "within_a_function"])
def test_tvm_is_given_the_model_that_pytorch_was_measured_with(
    model: str, one_child: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its factory makes another each time; if it cannot be handed over, by the seed."""

    def keep(*arguments: Any, **options: Any) -> Any:
        measured.append(load(*arguments, **options))
        return measured[-1]

    measured: list[Any] = []
    load = loading.load
    monkeypatch.setattr(runner, "load", keep)
    stand_in("tells_the_model", monkeypatch)
    described = config(model, **TVM).model_dump() | {"seed": 7}
    runner.run(RunConfig.model_validate(described), tmp_path)
    given = read(tmp_path)["tvm_baseline"]["tuning"]
    [loaded] = measured
    assert given["seed"] == 7 and given["input"] == loaded.args[0].tolist()
    assert given["weight"] == loaded.module.weight.tolist()


@pytest.mark.parametrize(
    ("function", "status", "said"),
    [
        ("fails_as_tvm_does", "failed", "RuntimeError: Check failed: (ndim == 2)"),
        ("lacks_a_package", "missing_dependencies", "No module named 'xgboost'"),
        ("lacks_an_engine", "missing_dependencies", "libcuda"),
        ("answers_nothing", "failed", "the export answered something else"),
        ("answers_half", "failed", "the export answered something else"),
    ],
)
def test_an_export_that_fails_does_not_fail_the_run(
    one_child: None,
    function: str,
    status: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in(function, monkeypatch)
    runner.run(config(**TVM), tmp_path)
    found = read(tmp_path)
    baseline = found["tvm_baseline"]
    assert (baseline["status"], baseline["latency"]) == (status, None)
    assert said in baseline["reason"] and "\n" not in baseline["reason"]
    assert found["latency"]["count"] == 5


def test_an_export_that_dies_does_not_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("dies", monkeypatch)
    runner.run(config(**TVM), tmp_path)
    baseline = read(tmp_path)["tvm_baseline"]
    assert baseline["status"] == "failed" and "exit status 7" in baseline["reason"]


def test_a_missing_engine_is_a_missing_dependency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(engine: str, **_: Any) -> None:
        raise engines.EngineUnavailable(f"{engine} TVM is not available: no Python package bitblas")

    monkeypatch.setattr(engines, "Session", unavailable)
    runner.run(config(**TVM, tvm_trials=4), tmp_path)
    baseline = read(tmp_path)["tvm_baseline"]
    assert baseline["status"] == "missing_dependencies" and "bitblas" in baseline["reason"]
    assert baseline["engine"] == "classic" and baseline["tuner"] == "autotvm"


def test_an_interrupted_export_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("is_interrupted", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        runner.run(config(**TVM), tmp_path)
    found = read(tmp_path)
    assert found["latency"]["count"] == 5
    assert found["tvm_baseline"]["status"] == "failed"
    assert found["tvm_baseline"]["reason"] == "the run ended before the export did"


def test_another_target_than_pytorchs_is_noted(
    one_child: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("fails_as_tvm_does", monkeypatch)
    runner.run(config(**TVM, tvm_target="cuda -arch=sm_80"), tmp_path)
    assert any("TVM was asked for cuda -arch=sm_80" in note for note in read(tmp_path)["notes"])


def test_a_full_disk_leaves_the_metrics_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metrics.json").write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tvm_practice.tvm_export.writing.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        runner.run(config(), tmp_path)
    assert (tmp_path / "metrics.json").read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.json"]


def test_an_out_that_is_a_file_is_told_before_the_model_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot write to"):
        runner.run(config("raises"), tmp_path / "file")
    with pytest.raises(BadInput, match="cannot write to"):
        runner.run(config("raises"), tmp_path / "file" / "below")


def test_a_bad_thread_count_is_the_persons_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "many")
    with pytest.raises(BadInput, match="TVM_NUM_THREADS='many'"):
        runner.run(config(), tmp_path)
