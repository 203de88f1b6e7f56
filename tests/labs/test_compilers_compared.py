"""Lab 6 beyond its exercises: the workloads in every framework, what is counted, the tables."""

import ast
import importlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solutions.labs.compilers_compared import count_lines, time_to_first_result
from tests.pages import run_blocks
from tvm_practice import engines
from tvm_practice.labs.workloads import problems, verifying
from tvm_practice.labs.workloads.comparing import Processes, first_result_command, measure
from tvm_practice.labs.workloads.counting import implementation
from tvm_practice.labs.workloads.frameworks import FRAMEWORKS, Framework, missing
from tvm_practice.labs.workloads.tables import HEADS, page, row, why_not

compilers: Any = importlib.import_module("benchmarks.compilers")  # no package to mypy

PACKAGE = "tvm_practice.labs.workloads"
QUICK_ONES = ("numpy", "tvm-by-hand")  # the others are with the pages


def _prepared(framework: str, tmp_path: Path) -> list[dict[str, Any]]:
    """The workloads of a framework, prepared in one process, which verifies them."""
    if reason := missing(FRAMEWORKS[framework]):
        pytest.skip(reason)
    if reason := engines.unavailable_reason("current"):
        pytest.skip(reason)
    tuned = FRAMEWORKS[framework].tuned  # a search takes its time
    with Processes(tmp_path / "log") as processes:
        found = []
        for workload in ("softmax", "mlp") if tuned else problems.PROBLEMS:
            arguments = {
                "framework": framework, "workload": workload, "size": "quick", "trials": 2,
            }  # fmt: skip
            found.append(processes.call(framework, "prepare", arguments))
        assert processes.call(framework, "sample", {"workload": "softmax"}) > 0
    return found


@pytest.mark.slow
@pytest.mark.parametrize("framework", QUICK_ONES)
def test_workloads(framework: str, tmp_path: Path) -> None:
    for prepared in _prepared(framework, tmp_path):
        assert prepared["error"] <= verifying.TOLERANCE and not prepared["interpreted"]


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize("framework", [each for each in FRAMEWORKS if each not in QUICK_ONES])
def test_workloads_that_take_longer(framework: str, tmp_path: Path) -> None:
    for prepared in _prepared(framework, tmp_path):
        assert prepared["error"] <= verifying.TOLERANCE


@pytest.mark.parametrize("workload", problems.PROBLEMS)
def test_exact_results_are_pytorchs(workload: str) -> None:
    """numpy's formulas, which all are held to, against PyTorch's operators in float64."""
    import torch

    from tvm_practice.labs.workloads import in_torch

    inputs = problems.draw(workload, "quick", seed=1)
    tensors = [torch.from_numpy(each.astype("float64")) for each in inputs]
    wanted = getattr(in_torch, workload)(*tensors).numpy()
    np.testing.assert_allclose(verifying.exact(workload, inputs), wanted, rtol=1e-9, atol=1e-12)
    assert wanted.shape == problems.PROBLEMS[workload]["quick"].result


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda result: result * 1.001, "off by"),
        (lambda result: np.where(result > 0, np.nan, result).astype("float32"), "off by nan"),
        (lambda result: result.astype("float64"), "float64"),
        (lambda result: result[1:], "of shape"),
    ],
)
def test_a_wrong_result_is_refused(spoil: Callable[[Any], Any], word: str) -> None:
    inputs = problems.draw("layer_norm", "quick")
    right = verifying.exact("layer_norm", inputs).astype("float32")
    assert verifying.verify("layer_norm", inputs, right) < 1e-6
    with pytest.raises(verifying.WrongResult, match=word):
        verifying.verify("layer_norm", inputs, spoil(right))


def test_a_softmax_that_overflows_is_refused() -> None:
    inputs = problems.draw("softmax", "quick")
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.exp(inputs[0])
        naive = exponent / exponent.sum(axis=1, keepdims=True)
    with pytest.raises(verifying.WrongResult):
        verifying.verify("softmax", inputs, naive)


@pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("workload", problems.PROBLEMS)
def test_every_workload_has_an_implementation(framework: Framework, workload: str) -> None:
    source = implementation(framework.module, workload)
    names = [each.name for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)]
    assert names[0] == workload and len(names) == len(set(names)) and "load" not in names
    assert count_lines(source) >= 2


def test_what_an_implementation_calls_is_counted() -> None:
    def names(module: str, function: str) -> list[str]:
        tree = ast.parse(implementation(f"{PACKAGE}.{module}", function))
        return [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]

    assert set(names("in_numpy", "mlp")) == {"mlp", "gelu"}
    assert set(names("in_triton", "mlp")) == {"mlp", "product", "matmul_kernel"}
    steps = {"pack_operand", "packed_product", "order_packed", "place_copies", "fill_registers"}
    assert set(names("in_tvm_by_hand", "matmul")) == {"matmul", "packed_matmul", *steps}
    assert implementation(f"{PACKAGE}.in_inductor", "mlp") == implementation(
        f"{PACKAGE}.in_torch", "mlp"
    )
    assert "@triton.jit" in implementation(f"{PACKAGE}.in_triton", "softmax")
    with pytest.raises(KeyError, match="no function sofmax"):
        implementation(f"{PACKAGE}.in_numpy", "sofmax")


def test_what_is_missing_is_said() -> None:
    absent = Framework("x", "X", "in_x", ("no_such_package",), "compare")
    assert missing(absent) == (
        "no Python package no_such_package. To install: pip install 'tvm-practice[compare]'"
    )


@pytest.mark.slow
def test_the_first_result_is_timed_in_a_process_of_its_own() -> None:
    command = first_result_command(FRAMEWORKS["numpy"], "softmax", size="quick", trials=2)
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("verified, off by ") and printed.count("\n") == 1
    assert 0 < time_to_first_result(command, runs=1) < 60


@pytest.mark.parametrize("arguments", [["nunpy", "softmax"], ["numpy", "sofmax"]])
def test_a_name_that_is_not_there_is_a_line(arguments: list[str]) -> None:
    command = [sys.executable, "-m", f"{PACKAGE}.first_result", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2 and "is not one of" in ended.stderr


@pytest.mark.pages
@pytest.mark.slow
def test_a_comparison_of_two(tmp_path: Path) -> None:
    with Processes(tmp_path / "log") as processes:
        cells = measure(
            "softmax",
            processes,
            size="quick",
            trials=2,
            runs=1,
            rounds=3,
            seconds=2,
            count_lines=count_lines,
            time_to_first_result=time_to_first_result,
            frameworks=("numpy", "torch"),
        )
    assert list(cells) == ["numpy", "torch"] and cells["torch"]["ratio"]["value"] == 1
    for cell in cells.values():
        assert cell["first_seconds"] > cell["load_seconds"] >= 0
        assert cell["latency"]["count"] == 3 and cell["busy"] > 0
        assert why_not(cell) is None and len(row(cell)) == len(HEADS) - 1


_CELL = {
    "lines": 5,
    "first_seconds": 2.0,
    "load_seconds": 0.5,
    "interpreted": False,
    "latency": {"p50": 1.234567},
    "ratio": {"value": 0.5, "ci95": [0.4, 0.6]},
    "pays_after": 810,
}


@pytest.mark.parametrize(
    ("cell", "text", "reason"),
    [
        (_CELL, ["5", "2.0", "0.50", "1.23", "0.50 (0.40–0.60)", "810"], None),
        (
            _CELL | {"pays_after": None},
            ["5", "2.0", "0.50", "1.23", "0.50 (0.40–0.60)", "never"],
            None,
        ),
        (
            {"load_seconds": 0.0, "latency": {"p50": 40.0}, "ratio": {"value": 1, "ci95": [1, 1]}},
            ["–", "–", "0.00", "40", "1", "–"],  # the baseline, with no function written
            None,
        ),
        (
            _CELL | {"ratio": {"value": 0.02, "ci95": [0.003, 12.345]}},
            ["5", "2.0", "0.50", "1.23", "0.02 (<.01–12.35)", "810"],
            None,
        ),
        ({"lines": 5, "missing": "no jax"}, ["5", *"–" * 5], "no jax"),
        ({"lines": 5, "failed": "it broke"}, ["5", *"–" * 5], "failed: it broke"),
        (
            {"lines": 9, "interpreted": True, "first_seconds": 3.0, "load_seconds": 0.0},
            ["9", "3.0", "0.00", "–", "–", "–"],
            "interpreted, because there is no GPU: correct, but its speed is not measured",
        ),
    ],
)
def test_a_cell_or_a_dash_with_its_reason(
    cell: dict[str, Any], text: list[str], reason: str | None
) -> None:
    assert row(cell) == text and why_not(cell) == reason


def _figures() -> dict[str, Any]:
    return {
        "environment": {"processor": "A processor", "date": "2026-01-02T03:04:05"},
        "packages": {"numpy": "2.0"},
        "threads": 2,
        "trials": 4,
        "size": "full",
        "workloads": {
            "softmax": {
                "text": "4096×1024",
                "frameworks": {"torch": _CELL, "jax": {"lines": 2, "missing": "no jax"}},
            }
        },
        "portability": {
            "tvm": {"command": ["python", "-m", "p"], "facts": [["ARM 64", True, "9 bytes"]]},
            "jax": {"command": ["python", "-m", "p"], "missing": "no jax"},
        },
    }


def test_the_page_of_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    tables = page(_figures())
    for wanted in ("A processor, 2 threads", "numpy 2.0", "| JAX (XLA) | 2 | –", "ARM 64"):
        assert wanted in tables
    copy, results = tmp_path / "page.md", tmp_path / "results.json"
    copy.write_text(compilers.PAGE.read_text())
    monkeypatch.setattr(compilers, "PAGE", copy)
    runner = CliRunner()
    assert runner.invoke(compilers.main, ["--results", str(results)]).exit_code == 2
    results.write_text(json.dumps(_figures() | {"size": "quick"}))
    assert runner.invoke(compilers.main, ["--results", str(results)]).exit_code == 2
    results.write_text(json.dumps(_figures()))
    for _ in range(2):  # the second time it replaces what it wrote
        assert runner.invoke(compilers.main, ["--results", str(results)]).exit_code == 0
    assert copy.read_text().count("### softmax, 4096×1024") == 1
    assert "## Key question" in copy.read_text()


def test_all_frameworks_take_the_same_arguments() -> None:
    """The formulas of numpy and PyTorch name a workload's arguments as its inputs are named."""
    from tvm_practice.labs.workloads import in_numpy, in_torch

    for workload, sizes in problems.PROBLEMS.items():
        for module in (in_numpy, in_torch):
            names = list(inspect.signature(getattr(module, workload)).parameters)
            assert names == list(sizes["full"].shapes)


@pytest.mark.pages
@pytest.mark.slow
def test_tvm_makes_code_for_other_processors() -> None:
    command = [sys.executable, "-m", f"{PACKAGE}.portability", "tvm", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    facts = {target: made for target, made, _ in json.loads(ended.stdout)}
    assert facts["ARM 64"] and facts["WebAssembly"] and facts["CUDA"] and facts["OpenCL"]


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize("framework", ["numpy", "torch", "inductor", "jax", "onnx", "triton"])
def test_what_others_make_code_for(framework: str) -> None:
    if reason := missing(FRAMEWORKS[framework]):
        pytest.skip(reason)
    command = [sys.executable, "-m", f"{PACKAGE}.portability", framework]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines and all(each.startswith(("yes ", "no ")) for each in lines)


@pytest.mark.pages
@pytest.mark.slow
def test_the_pages_commands(tmp_path: Path) -> None:
    [printed] = run_blocks("labs/6-compilers_compared.md", tmp_path)
    assert printed.count("verified") == 2 and "WebAssembly" in printed


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are listed on Linux only")
@pytest.mark.parametrize("threads", [1, 3])
def test_xla_has_the_threads_that_it_is_given(threads: int) -> None:
    if reason := missing(FRAMEWORKS["jax"]):
        pytest.skip(reason)
    code = (
        "from pathlib import Path\n"
        f"from {PACKAGE}.process import set_threads\n"
        "set_threads()\n"
        "import jax.numpy as jnp\n"
        "x = jnp.ones((256, 256)); (x @ x).block_until_ready()\n"
        "names = [(each / 'comm').read_text() for each in Path('/proc/self/task').iterdir()]\n"
        "print(sum('XLAEigen' in each for each in names))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TVM_NUM_THREADS": str(threads)},
    )
    assert int(ended.stdout) == threads


def test_rfactor_refuses_the_reductions_of_the_lab() -> None:
    """Where this fails, TVM has learned to split them: the page says that it has not."""
    if reason := engines.unavailable_reason("current"):
        pytest.skip(reason)
    with engines.Session(engines.CURRENT) as session:
        refused = session.call("tests.labs.compilers_compared_functions:refused_by_rfactor")
    assert refused == {"normalized": True, "online_softmax": True}
