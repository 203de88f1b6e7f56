"""The phases and `main` as a person runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import require_sound
from tvm_practice.course.catalog import MODULES

ROOT = Path(__file__).parent.parent
PACKAGES = ["engines", "course", "icd", "viz"]
COMMANDS = [
    *MODULES, "main", "run_autotvm", "artifact", "compare_tvm_results", "bench",
    "compile_onnx", "farm", "sensitivity",
    *PACKAGES,
]  # fmt: skip


def run(
    module: str, *arguments: str, folder: Path, without_classic: bool = False
) -> "subprocess.CompletedProcess[str]":
    environment = dict(os.environ, COLUMNS="80")
    path = [str(ROOT)]
    if without_classic:
        path.insert(0, str(ROOT / "tests" / "without_classic"))
    environment["PYTHONPATH"] = os.pathsep.join(path)
    return subprocess.run(
        [sys.executable, "-m", f"tvm_practice.{module}", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=570,
    )


def quick_help(module: str, *arguments: str, folder: Path) -> str:
    """What `--help` prints; asserts that it has examples and imports nothing slow.

    Lab 8 may import NumPy: its answers are NumPy's functions, so its file begins with that import.

    Args:
        module: its whole name, which Python finds from `folder`.
        arguments: before `--help`.
        folder: the working directory.
    """
    slow = {"tvm", "torch", "numpy", "scipy", "matplotlib", "omegaconf"}
    if module == "tvm_practice.labs.low_precision":
        slow.remove("numpy")
    code = (
        f"import sys, runpy; sys.argv = ['x', *{arguments}, '--help']\n"
        f"try: runpy.run_module({module!r}, run_name='__main__')\n"
        "except SystemExit as end: assert end.code in (0, None)\n"
        f"slow = {slow} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    assert "Examples:" in shown.stdout
    return shown.stdout


@pytest.mark.real_processes
@pytest.mark.parametrize("module", COMMANDS)
def test_help_has_examples_and_needs_no_tvm(module: str, tmp_path: Path) -> None:
    name = f"{module}.__main__" if module in PACKAGES else module
    quick_help(f"tvm_practice.{name}", folder=tmp_path)


@pytest.mark.pages  # the README's commands
@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_each_phase_runs_with_the_solutions(module: str, tmp_path: Path) -> None:
    done = run(module, "--solutions", "--quick", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Key question." in done.stdout and "To do" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.pages  # whole programs
@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_each_phase_runs_as_the_learner_has_it(module: str, tmp_path: Path) -> None:
    done = run(module, "--quick", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Key question." in done.stdout


@pytest.mark.slow
def test_a_phase_runs_without_the_classic_engine(tmp_path: Path) -> None:
    """`main`, below, has the tuners and the adapter."""
    done = run("te_basics", "--solutions", "--quick", folder=tmp_path, without_classic=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "requirements-classic.txt" in done.stdout


@pytest.mark.pages
@pytest.mark.slow
def test_main_exports_the_mlp_on_both_engines(tmp_path: Path) -> None:
    done = run("main", "--solutions", "--model", "mlp", "--trials", "4", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "runs" / "report.json").read_text())
    assert not report["failures"]
    variants = {
        (lane["engine"], variant["tuner"]): variant
        for lane in report["models"]["mlp"]
        for variant in lane["variants"]
    }
    assert {tuner for _, tuner in variants} == {None, "autotvm", "ansor", "metaschedule"}
    for variant in variants.values():
        assert variant["verified"] and variant["max_error"] < 1e-3
        assert variant["latency"]["p50"] > 0 and variant["ratio"]["value"] > 0
        folder = tmp_path / variant["artifacts"]
        for name in ("deploy_lib.tar", "deploy_graph.json", "deploy_params.bin", "summary.json"):
            assert (folder / name).stat().st_size > 0
        assert json.loads((folder / "metadata.json").read_text())["verification"]["verified"]
    page = (tmp_path / "runs" / "report.html").read_text(encoding="utf-8")
    for shown in ("MLP 784-512-256-10", "Relax, MetaSchedule", "optimized and fused"):
        assert shown in page
    require_sound(tmp_path / "runs" / "report.html")  # last: it skips without a browser


@pytest.mark.pages
@pytest.mark.slow
def test_main_works_unwritten_and_without_the_classic_engine(tmp_path: Path) -> None:
    """With the stubs, or whatever the learner has, unwritten steps are no failures."""
    done = run(
        "main", "--model", "mlp", "--trials", "4", folder=tmp_path, without_classic=True
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "requirements-classic.txt" in done.stdout and "MetaSchedule" in done.stdout
    report = json.loads((tmp_path / "runs" / "report.json").read_text())
    if "todo" in report["exercises"].values():
        assert "to do" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--phase", "6"], "--phase"),
        (["--trials", "0"], "--trials"),
        (["--model", "gpt5"], "--model"),
        (["--out", "file"], "--out"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_a_bad_argument_is_named(arguments: list[str], word: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("main", *arguments, folder=tmp_path)
    assert done.returncode == 2 and word in done.stderr


def test_a_bad_thread_count_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "many")
    done = run("te_basics", folder=tmp_path)
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "TVM_NUM_THREADS='many'" in done.stdout + done.stderr


def test_course_hint_and_check(tmp_path: Path) -> None:
    hint = run("course", "hint", "matmul", "--level", "3", folder=tmp_path)
    assert hint.returncode == 0 and "Hint 3 of 3" in hint.stdout
    assert run("course", "check", "matmul", "--solutions", folder=tmp_path).returncode == 0
    unknown = run("course", "hint", "matmull", folder=tmp_path)
    assert unknown.returncode == 2 and "did you mean matmul?" in unknown.stderr
