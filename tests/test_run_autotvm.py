"""`run_autotvm` on a person's own model, and what it says to mistakes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.pages import run_blocks
from tests.test_command_lines import run
from tvm_practice import run_autotvm

MODULE = """
import torch

def load_convolution():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten())

def load_nan():
    class Nan(torch.nn.Module):
        def forward(self, x):
            return x * float("nan")
    return Nan(), torch.ones(2, 2)

def raises():
    raise RuntimeError("no checkpoint here")

def nothing():
    return None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mymodule.py").write_text(MODULE)
    return tmp_path


CONVOLUTION = ("mymodule:load_convolution", "--example-shape", "1", "3", "16", "16")
SHORT = ("--measure-repeats", "5", "--measure-warmup", "1")


@pytest.mark.pages
@pytest.mark.real_processes
@pytest.mark.slow
def test_an_own_model_is_exported_and_verified(folder: Path) -> None:
    """Once; the same command again shows what is there."""
    with (folder / "mymodule.py").open("a") as module:
        module.write("import tvm  # which is imported before the exporter does\n")
    arguments = (*CONVOLUTION, *SHORT)
    done = run("run_autotvm", *arguments, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified" in done.stdout
    artifacts = folder / "runs" / "tvm" / "load_convolution"
    metadata = json.loads((artifacts / "metadata.json").read_text())
    assert metadata["verification"]["verified"] and metadata["latency"]["count"] == 5
    written = {each: each.stat().st_mtime_ns for each in artifacts.iterdir()}
    same = run("run_autotvm", *arguments, folder=folder)
    first, _, rest = same.stdout.partition("\n")
    assert same.returncode == 0 and rest == done.stdout, same.stdout + same.stderr
    assert first.startswith("unchanged since ") and first.endswith("; --again exports anew")
    assert {each: each.stat().st_mtime_ns for each in artifacts.iterdir()} == written


def test_what_is_there_is_reused_unless_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def export(engine: str, _: str, arguments: dict[str, Any], **__: Any) -> None:
        asked.append((engine, arguments["request"]["engine"], arguments["request"]["reuse"]))
        raise SystemExit(0)

    monkeypatch.setattr(run_autotvm, "_call", export)
    for options in ([], ["--again"], ["--engine", "classic"]):
        done = CliRunner().invoke(run_autotvm.main, ["mymodule:load_nan", *options])
        assert done.exit_code == 0, done.output
    assert asked == [
        ("current", "current", True),
        ("current", "current", False),
        ("classic", "classic", True),
    ]


@pytest.mark.pages
@pytest.mark.slow
def test_several_targets_have_a_folder_each(folder: Path) -> None:
    targets = ("--target", "llvm", "--target", "llvm -mcpu=core-avx2")
    done = run("run_autotvm", *CONVOLUTION, *targets, *SHORT, "--json", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = json.loads(done.stdout)
    assert first["artifacts"] != second["artifacts"] and "core-avx2" in second["target"]


def test_where_one_target_fails_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(engine: str, function: str, arguments: dict[str, Any], **_: Any) -> Any:
        target = arguments.get("request", {}).get("target")
        if target == "llvm":
            raise OSError("the disk is full")
        return {"status": "ok", "target": target, "not_run": "another processor"}

    monkeypatch.setattr(run_autotvm, "_call", call)
    targets = ["--target", "llvm", "--target", "llvm -mcpu=core-avx2"]
    done = CliRunner().invoke(run_autotvm.main, ["mymodule:load_nan", *targets, "--json"])
    assert done.exit_code == 1 and done.stderr == "run_autotvm: llvm: the disk is full\n"
    first, second = json.loads(done.stdout)
    assert first == {"status": "failed", "target": "llvm", "reason": "the disk is full"}
    assert second["status"] == "ok"


@pytest.mark.parametrize(("tuner", "said"), [("ansor", "; 2 trials are kept in "), (None, "\n")])
def test_a_search_that_is_stopped_says_what_it_leaves(
    tuner: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        (tmp_path / "records-ansor").write_text("{}\n{}\n")
        raise KeyboardInterrupt

    monkeypatch.setattr(run_autotvm, "_call", stop)
    search = ["--tuner", tuner, "--tuning-trials", "4"] if tuner else []
    arguments = ["mymodule:load_nan", *search, "--artifacts", str(tmp_path)]
    done = CliRunner().invoke(run_autotvm.main, arguments)
    assert done.exit_code == 130 and f"\nstopped{said}" in done.stderr
    assert not tuner or str(tmp_path / "records-ansor") in done.stderr


def test_an_export_without_a_ratio_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """For CUDA beside a PyTorch without it: a note says why, there is nothing to print."""
    latency = {"p50": 1.0, "mean": 1.0, "count": 5, "stable": True, "verdict": "measured"}
    verification = {"verified": True, "max_error": 0.0, "pytorch_error": None, "trials": ["zeros"]}
    run_autotvm._print_run(latency, None, verification)
    assert capsys.readouterr().out.splitlines() == [
        "latency   median 1.000 ms, mean 1.000 ms of 5",
        "verified  on 1 input, largest error 0",
    ]


def test_the_accuracy_of_16_bit_products_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    latency = {"p50": 1.0, "mean": 1.0, "count": 5, "stable": True, "verdict": "measured"}
    verification = {"verified": True, "max_error": 0.01, "pytorch_error": None, "trials": ["zeros"]}
    accuracy = {"cosine": 0.99996, "top1": 0.97, "reference": "pytorch in float64"}
    run_autotvm._print_run(latency, None, verification | accuracy)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "verified  on 1 input, largest error 0.01",
        "accuracy  cosine 0.999960 to pytorch in float64, same top-1 in 97.0% of rows",
    ]


@pytest.mark.slow
def test_wrong_outputs_are_said_and_are_a_failure(folder: Path) -> None:
    done = run("run_autotvm", "mymodule:load_nan", *SHORT, folder=folder)
    assert done.returncode == 1 and "WRONG" in done.stdout
    assert "artifacts not written" in done.stdout
    assert not list((folder / "runs").rglob("metadata.json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mymodul:load_convolution"], "did you mean mymodule?"),
        (["mymodule:load_convolutions"], "did you mean load_convolution?"),
        (["mymodule:raises"], "no checkpoint here"),
        (["mymodule:nothing"], "returned None"),
        (["mymodule:load_convolution"], "returned no example inputs"),
        (["mymodule:load_convolution", "--example-shape", "1", "4", "16", "16"], "refuses"),
        (["mymodule:load_nan", "--example-shape", "1x"], "'1x'"),
        (["mymodule:load_nan", "--example-shape", "0"], "positive whole numbers"),
        (["mymodule:load_nan", "--example-shape", "2", "2", "--example-dtype", "int3"], "dtype"),
        (["mymodule:load_nan", "--use-ansor", "--tuner", "metaschedule"], "contradicts"),
        (
            ["mymodule:load_nan", "--engine", "current", "--tuner", "ansor"],
            "tuner='ansor' is of the classic engine",
        ),
        (["mymodule:load_nan", "--tuning-trials", "-1"], "--tuning-trials"),
        (["mymodule:load_nan", "--tuner", "grid"], "--tuner"),
        (["mymodule"], "mymodule"),
        (["mymodule:load_nan", "--opt-level", "4"], "--opt-level"),
        (["mymodule:load_nan", "--atol", "-1"], "--atol"),
        (["mymodule:load_nan", "--verify-data", "none.npz"], "cannot read none.npz"),
        (["mymodule:load_nan", "--early-stopping", "0"], "--early-stopping"),
        (["mymodule:load_nan", "--tuning-seconds", "soon"], "--tuning-seconds"),
        (["mymodule:load_nan", "--seed", "-1"], "--seed"),
        (["mymodule:load_nan", "--cost-model", "mlp"], "--cost-model"),
        (["mymodule:load_nan", "--rpc-tracker", "here"], "host:port"),
        (
            ["mymodule:load_nan", "--tuner", "ansor", "--tuning-trials", "4", "--policy", "ga"],
            "sketch.xgb",
        ),
        (["mymodule:load_nan", "--input-shape", "x:2"], "NAME=1,3,224,224"),
        (["mymodule:load_nan", "--input-shape", "x=2,3"], "input_shapes"),
        (["mymodule:load_nan", "--target", "lllvm"], "did you mean llvm?"),
        (["mymodule:load_nan", "--target", "llvm -mcpu=skylak"], "skylake"),
        (["mymodule:load_nan", "--target", "llvm", "--target", "llvm -mcpu=skylak"], "skylake"),
        (
            ["mymodule:load_nan", "--tuner", "metaschedule", "--tuning-trials", "4"]
            + ["--target", "llvm", "--target", "llvm -mtriple=aarch64-linux-gnu"],
            "cannot be tuned for here: code for aarch64",
        ),
        (["mymodule:load_nan", "--target", "cuda -arch=80"], "of the form sm_80"),
        (["mymodule:load_nan", "--converters", "mymodul:own"], "did you mean mymodule?"),
        (["mymodule:load_nan", "--converters", "mymodule:load_nan"], "not a dictionary of conv"),
        (["mymodule:load_nan", "--target", "hexagon"], "exports are for llvm, cuda,"),
        (
            ["mymodule:load_nan", "--tuner", "autotvm", "--target", "cuda -arch=sm_80"]
            + ["--tuning-trials", "4"],
            "no CUDA device; --rpc-tracker",
        ),
        (
            ["mymodule:load_nan", "--tuner", "metaschedule", "--target", "cuda -arch=sm_999"]
            + ["--tuning-trials", "4"],
            "--rpc-tracker measures on a machine that can",
        ),
        (
            ["mymodule:load_nan", "--tuner", "metaschedule", "--target", "metal"]
            + ["--tuning-trials", "4"],
            "tuning is for processors and CUDA",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], message: str, folder: Path) -> None:
    done = run("run_autotvm", *arguments, folder=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "runs").exists()


def test_an_unknown_target_is_named(folder: Path) -> None:
    done = run("run_autotvm", "mymodule:load_nan", "--target", "llvm -mcpux=1", folder=folder)
    assert done.returncode != 0 and "mcpux" in done.stderr and "Traceback" not in done.stderr


def test_without_pytorch_it_is_said(folder: Path) -> None:
    (folder / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")")
    done = run("run_autotvm", "mymodule:load_nan", folder=folder)
    assert done.returncode == 3 and "No module named 'torch'" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not (folder / "runs").exists()


def test_without_the_classic_engine_its_tuners_are_refused(folder: Path) -> None:
    arguments = ("mymodule:load_nan", "--tuning-trials", "4", "--use-ansor", "--json")
    done = run("run_autotvm", *arguments, folder=folder, without_classic=True)
    assert done.returncode == 3 and "requirements-classic.txt" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    [result] = json.loads(done.stdout)
    assert result["status"] == "missing_dependencies" and result["reason"] in done.stderr


@pytest.mark.pages
@pytest.mark.slow
def test_another_models_artifacts_are_kept_unless_forced(folder: Path) -> None:
    where = ("--artifacts", "runs/shared", *SHORT)
    assert run("run_autotvm", *CONVOLUTION, *where, folder=folder).returncode == 0
    before = (folder / "runs/shared/metadata.json").read_bytes()
    refused = run("run_autotvm", "mymodule:load_nan", *where, folder=folder)
    assert refused.returncode == 2 and "--force" in refused.stderr
    assert (folder / "runs/shared/metadata.json").read_bytes() == before
    run("run_autotvm", "mymodule:load_nan", *where, "--force", folder=folder)
    assert b"load_nan" in (folder / "runs/shared/metadata.json").read_bytes()


@pytest.mark.slow
def test_the_ir_of_each_stage_and_the_rules(folder: Path) -> None:
    arguments = ("tvm_practice.models:load_mlp", "--dump-ir", "--verbose", *SHORT)
    done = run("run_autotvm", *arguments, folder=folder)
    assert done.returncode == 0 and "rule      contraction" in done.stdout
    stages = {each.name: each.read_text() for each in (folder / "runs/tvm/load_mlp/ir").iterdir()}
    assert sorted(stages) == ["1-imported.txt", "2-optimized.txt", "3-scheduled.txt"]
    assert "T.parallel" in stages["3-scheduled.txt"]
    assert "T.parallel" not in stages["2-optimized.txt"]


@pytest.mark.slow
def test_a_target_that_cannot_run_here_is_written_and_not_measured(folder: Path) -> None:
    target = ("--target", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    done = run("run_autotvm", *CONVOLUTION, *target, folder=folder)
    assert done.returncode == 0 and "not run   code for aarch64" in done.stdout, done.stderr
    metadata = json.loads((folder / "runs/tvm/load_convolution/metadata.json").read_text())
    assert metadata["latency"] is None and metadata["verification"] is None
    tuned = ("--tuner", "metaschedule", "--tuning-trials", "4")
    refused = run("run_autotvm", *CONVOLUTION, *target, *tuned, folder=folder)
    assert refused.returncode == 2 and "cannot be tuned for here" in refused.stderr


@pytest.mark.pages
@pytest.mark.slow
def test_the_exporters_page(tmp_path: Path) -> None:
    (tmp_path / "mymodule.py").write_text(
        "import torch\ndef load_model():\n    return torch.nn.Conv2d(3, 8, 3)\n"
    )

    def smaller(block: str) -> str:
        block = block.replace("load_resnet18", "load_small_resnet").replace("224", "64")
        return re.sub(r"--tuning-trials \d+", "--tuning-trials 4", block)

    printed = run_blocks("export.md", tmp_path, smaller=smaller)
    assert len(printed) == 8
    assert all(
        re.search(r"verified  on \d+ inputs?, largest error", each)
        for each in printed
        if "cuda" not in each and "cosine without" not in each
    )
    assert "all 3 layers in int8: cosine to float64" in printed[-1]
    assert "not run   code for aarch64" in printed[1]
