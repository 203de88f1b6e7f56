"""`bench`: every row on the real engines, what is missing or wrong, the table, docs/bench.md."""

import importlib.util
import io
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.browser import require_sound
from tests.conftest import needs_classic
from tests.pages import run_blocks
from tests.test_command_lines import run
from tvm_practice import engines
from tvm_practice.measure import Latency, Ratio
from tvm_practice.tvm_export import baselines, compilers
from tvm_practice.tvm_export.artifacts.schema import (
    LatencyRecord,
    OwnRecord,
    RatioRecord,
    TuningRecord,
)
from tvm_practice.tvm_export.compilers import Compiler, Report, Row
from tvm_practice.tvm_export.config import ATOL, RTOL
from tvm_practice.tvm_export.variants import BuildRecord
from tvm_practice.viz import bench_page
from tvm_practice.viz.bench_page import table
from tvm_practice.viz.report import Block

MODULE = """
import torch

class Nested(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 8)

    def forward(self, pair, scale):
        first, second = pair
        hidden = self.layer(first + second)
        return {"scaled": hidden * scale, "sum": hidden.sum(1)}

def load_nested():
    return Nested(), {"pair": (torch.randn(4, 16), torch.randn(4, 16)), "scale": torch.ones(8)}

class Noise(torch.nn.Module):
    def forward(self, x):
        return torch.rand_like(x) * float("nan")

def load_noise():
    return Noise(), torch.ones(4, 16)

def load_dense():
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
"""
needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(each) is None for each in baselines.ONNX_PACKAGES),
    reason="the packages of the group onnx are not installed",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mymodule.py").write_text(MODULE)
    return tmp_path


def only(*names: str) -> list[str]:
    return [word for name in names for word in ("--only", name)]


@pytest.mark.slow
@pytest.mark.pages
@needs_onnx
@needs_classic
def test_all_that_needs_no_tuning(folder: Path) -> None:
    """On nested inputs and a dictionary of outputs; standard output is JSON and no more."""
    done = run("bench", "mymodule:load_nested", "--threads", "1", "--json", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report == json.loads((folder / "runs/bench/load_nested/report.json").read_text())
    rows = {row["name"]: row for row in report["rows"]}
    assert [*rows] == ["eager", "compile", "compile-max", "onnx", "openvino", "relay", "relax"]
    assert report["threads"] == 1 and report["environment"]["threads"] == "1"
    assert report["parameters"] == 16 * 8 + 8 and report["schema_version"] == 1
    assert report["environment"]["packages"]["onnxruntime"]
    if importlib.util.find_spec("openvino") is None:
        missing = rows.pop("openvino")
        assert missing["status"] == "missing" and "tvm-practice[rivals]" in missing["reason"]
    for row in rows.values():
        assert row["status"] == "ok" and row["latency"]["p50"] > 0, row
    for row in [*rows.values()][1:]:
        assert row["verified"] and row["max_error"] < 1e-4, row
        low, high = row["ratio"]["ci95"]
        assert low <= row["ratio"]["value"] <= high and row["eager"]["count"] >= 3
        assert row["seconds"] and min(row["seconds"].values()) > 0


@pytest.mark.slow
@pytest.mark.pages
@needs_classic
def test_chosen_tuners_on_described_inputs(folder: Path) -> None:
    """Ansor is not asked for and does not run; nor does the table show the untuned build."""
    shape = ("--example-shape", "4", "16", "--trials", "4", "--out", "here")
    names = only("autotvm", "metaschedule")
    done = run("bench", "mymodule:load_dense", *shape, *names, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {
        row["name"]: row for row in json.loads((folder / "here/report.json").read_text())["rows"]
    }
    assert rows.keys() == {"eager", "autotvm", "metaschedule"}
    for name in ("autotvm", "metaschedule"):
        assert rows[name]["status"] == "ok" and rows[name]["verified"], rows[name]
        assert 0 < rows[name]["trials"] <= 4
        metadata = json.loads((folder / rows[name]["artifacts"] / "metadata.json").read_text())
        assert metadata["model"] == "mymodule:load_dense" and metadata["tuner"] == name
    assert not list((folder / "here").rglob("*ansor*"))
    drawn = done.stdout[done.stdout.index("built by") :]
    assert "Relay, AutoTVM" in drawn and ", untuned" not in drawn.partition("written")[0]
    assert max(map(len, drawn[: drawn.index("Relay, AutoTVM:")].splitlines())) <= 80
    page = (folder / "here/report.html").read_text(encoding="utf-8")
    for shown in ("mymodule:load_dense", "Trials of each task", "its body runs", "fused"):
        assert shown in page
    require_sound(folder / "here/report.html")  # last: it skips without a browser


@pytest.mark.pages
@pytest.mark.slow
def test_wrong_outputs_and_operators_that_are_not_known(folder: Path) -> None:
    """Both are failures, and neither keeps the other from its row."""
    done = run("bench", "mymodule:load_noise", *only("relax", "compile"), folder=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    rows = json.loads((folder / "runs/bench/load_noise/report.json").read_text())["rows"]
    eager, compiled, relax = rows
    assert eager["status"] == "ok"
    assert compiled["status"] == "failed" and compiled["verified"] is False
    assert compiled["latency"]["p50"] > 0 and "elements are wrong" in compiled["reason"]
    assert relax["status"] == "failed" and "rand_like" in relax["reason"]
    assert relax["latency"] is None and "WRONG" in done.stdout


@pytest.mark.pages
@pytest.mark.slow
def test_what_is_missing_is_a_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "cache"))
    names = only("relay", "compile")
    done = run("bench", "mymodule:load_nested", *names, folder=folder, without_classic=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((folder / "runs/bench/load_nested/report.json").read_text())["rows"]
    assert {row["name"]: row["status"] for row in rows} == {
        "eager": "ok", "compile": "missing", "relay": "missing",
    }  # fmt: skip
    assert "torch.compile: torch.compile needs a C++ compiler" in done.stdout
    assert "Relay, untuned: classic TVM is not available" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("package", baselines.ONNX_PACKAGES)
def test_without_a_package_of_onnx(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    reason = baselines.missing_package()
    assert reason and package in reason and "tvm-practice[onnx]" in reason


def test_a_compiler_that_computes_something_else() -> None:
    """In one element of one output."""
    import torch

    from tvm_practice.tvm_export.calling import as_array, as_call

    call = as_call(torch.nn.Linear(16, 8).eval(), (torch.randn(4, 16),))
    with torch.inference_mode():
        right = [as_array(each) for each in call.module(*call.tensors)]
    tolerances = {"atol": ATOL, "rtol": RTOL}
    assert baselines._judged(right, right, call, **tolerances).verified
    wrong = [right[0].copy()]
    wrong[0][1, 2] += 0.1
    judged = baselines._judged(wrong, right, call, **tolerances)
    assert judged.status == "failed" and not judged.verified
    assert "1 of 32 elements" in str(judged.reason)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (engines.EngineUnavailable("it is not here"), "missing"),
        (engines.EngineDied("it is not here"), "failed"),
        (engines.RemoteError("a.Kind", "it is not here\nmore", ""), "failed"),
    ],
)
def test_an_engine_that_ends_has_rows(
    error: Exception, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(engines, "Session", refuse)
    rows = compilers._rows("classic", ["relay", "ansor"], compilers._lane("classic", "", {}, None))
    assert [(row.name, row.status) for row in rows] == [("relay", status), ("ansor", status)]
    assert all(str(row.reason).endswith("it is not here") for row in rows)


def row(name: Compiler, milliseconds: float, ratio: float, *, stable: bool = True) -> Row:
    slow = milliseconds if stable else 2 * milliseconds
    samples = Latency((milliseconds, milliseconds, milliseconds, slow, slow))
    latency = LatencyRecord.model_validate(samples.to_dict())
    build = BuildRecord(
        status="ok",
        latency=latency,
        ratio=RatioRecord.of(Ratio(ratio, ratio / 2, ratio * 2)),
        verified=True,
        max_error=1.2e-7,
        tuning=TuningRecord(trials=12_000),
        seconds={"import": 1.0, "tune": 36_000.0},
    )
    return Row.of(name, build, latency)


def report_of(*rows: Row) -> Report:
    return Report(
        schema_version=1, command="bench m:f", model="m:f", parameters=1_500_000, notes=[],
        threads=2, environment={}, rows=list(rows),
    )  # fmt: skip


def drawn(*rows: Row) -> str:
    screen = io.StringIO()
    Console(file=screen, width=80).print(table(report_of(*rows)))
    return screen.getvalue()


def test_the_table_fits_80_columns_whatever_the_figures() -> None:
    shown = drawn(
        row("metaschedule", 12_345.6, 123.4, stable=False),
        row("relax", 0.001_234, 0.001_2, stable=False),
        Row.of("compile", BuildRecord(status="missing", reason="none"), None),
    )
    assert max(map(len, shown.splitlines())) <= 80 and "…" not in shown
    for text in ("12346 ~", " 123 ", "61.70–247", "0.001 ~", "1e-07", "12000", "36001", "missing"):
        assert text in shown, (text, shown)
    assert "unstable" in shown and "1.5 M parameters" in shown


def test_only_unstable_figures_are_marked() -> None:
    assert "~" not in drawn(row("relax", 1.0, 1.0))
    wrong = row("relax", 1.0, 1.0).model_copy(update={"verified": False, "max_error": None})
    assert "WRONG" in drawn(wrong)


def test_only_what_is_right_is_charted(monkeypatch: pytest.MonkeyPatch) -> None:
    charted: list[str] = []

    def chart(ratios: Mapping[str, Any], *, baseline: str) -> Block:
        charted.extend(ratios)
        return Block("text", text="a chart")

    monkeypatch.setattr("tvm_practice.viz.report.latency_block", chart)
    wrong = row("compile", 1.0, 0.02).model_copy(update={"verified": False})
    eager = Row.of("eager", BuildRecord(status="ok"), None)
    bench_page._summary(report_of(eager, wrong, row("relax", 1.0, 0.5)))
    assert charted == ["Relax, untuned"]


def test_a_tuners_own_result_is_a_row_of_its_own() -> None:
    """Where default schedules replaced slower records, the tuner can still be seen losing."""
    shipped, lost = row("metaschedule", 1.0, 0.5), row("relax", 1.5, 0.75)
    assert lost.latency is not None and lost.ratio is not None
    own = OwnRecord(latency=lost.latency, ratio_to_pytorch=lost.ratio)
    shown = drawn(shipped.model_copy(update={"tuners_own": own}))
    below = shown[shown.index("its records alone") :]
    assert "1.50" in below and "0.750" in below and "0.500" not in below
    assert max(map(len, shown.splitlines())) <= 80


def test_a_row_in_json_has_every_field_and_no_raw_samples() -> None:
    """Readers of report.json take a field that is not known as null, not as missing."""
    missing = Row.of("compile", BuildRecord(status="missing", reason="none"), None)
    report = report_of(row("relax", 1.0, 1.0), missing).to_dict()
    for told in report["rows"]:
        assert next(iter(told)) == "name"
        assert told.keys() == {
            "name", "status", "reason", "latency", "eager", "ratio", "verified", "max_error",
            "verification", "trials", "tuning", "tuners_own", "seconds", "artifacts", "operators",
        }  # fmt: skip
    assert "samples" not in report["rows"][0]["latency"]
    assert report["rows"][0]["tuning"] == {"trials": 12_000}
    assert Report.model_validate(report).to_dict() == report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mymodule:load_dense", "--only", "autotvm"], "--only autotvm needs --trials"),
        (["mymodule:load_dense", "--only", "tensorrt"], "tensorrt"),
        (["mymodule:load_dense", "--example-shape", "0"], "positive whole numbers"),
        (["mymodule:load_dense", "--example-shape", "2", "--example-dtype", "int3"], "dtype"),
        (["mymodule:load_dense", "--trials", "-1"], "--trials"),
        (["mymodule:load_dense"], "returned no example inputs"),
        (["mymodul:load_dense"], "did you mean mymodule?"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], message: str, folder: Path) -> None:
    done = run("bench", *arguments, folder=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "runs").exists()


@pytest.mark.pages
@pytest.mark.slow
@needs_onnx
@needs_classic
def test_the_pages_commands_run_in_order(tmp_path: Path) -> None:
    def smaller(block: str) -> str:
        # The other tuners and baselines on the whole have tests of their own above.
        block = re.sub(r"--trials \d+", "--trials 3 --only relax", block)
        block = re.sub(r"(bench tvm_practice.models:load_resnet18)\n", r"\1 --only onnx\n", block)
        return block.replace("load_resnet18", "load_small_resnet").replace("224", "64")

    printed = run_blocks("bench.md", tmp_path, smaller=smaller)
    assert len(printed) == 6 and "(1, 10)" in printed[-1]
    assert json.loads((tmp_path / "mymodel.json").read_text())["threads"] == 2
