"""Lab 3's product: a function compiled, linked and run for every machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.pages import ROOT, run_blocks
from tvm_practice import engines
from tvm_practice.tvm_export import cross
from tvm_practice.tvm_export.errors import Missing

FUNCTIONS = "tests.labs.cross_compile_functions"
# Of 64 products a step of the inner loop: by registers of 16, 8 or 4.
ARITHMETIC = {
    "x86-64-v2": {"mul xmm": 16, "add xmm": 16},
    "x86-64-v3": {"fma ymm": 8},
    "x86-64-v4": {"fma zmm": 4},
    "aarch64": {"fma v": 16},
    "wasm32": {"mul v128": 16, "add v128": 16},
}


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine",
    [
        # zig builds the C library of another machine at its first use
        pytest.param(each, marks=[] if each.startswith("x86") else pytest.mark.pages)
        for each in ARITHMETIC
    ],
)
def test_the_function_runs_on_each_machine(
    machine: str, session: engines.Session, tmp_path: Path
) -> None:
    triples = {"aarch64": "aarch64-linux-gnu", "wasm32": "wasm32-unknown-wasi"}
    triple = triples.get(machine, "x86_64-linux-gnu")
    if machine.startswith("x86"):
        reason = session.call(f"{FUNCTIONS}:not_runnable", {"machine": machine})
        if reason and not reason.startswith("code for"):
            pytest.skip(reason)
    try:
        cross.compiler(triple)
        cross.launcher(triple)
    except Missing as missing:
        pytest.skip(str(missing))
    found = session.call(f"{FUNCTIONS}:run_for", {"machine": machine, "folder": str(tmp_path)})
    assert found["error"] < 1e-4
    share = {what: count / 16 for what, count in found["arithmetic"].items()}
    wanted = {what: count / 16 for what, count in ARITHMETIC[machine].items()}
    times = next(iter(share.values())) / next(iter(wanted.values()))  # LLVM may unroll
    assert share == {what: each * times for what, each in wanted.items()}


@pytest.mark.pages
@pytest.mark.slow
def test_the_lab_where_nothing_is_installed(tmp_path: Path) -> None:
    """Without qemu and Node it says what is missing, in a line, and ends well."""
    hidden = tmp_path / "bin"  # all of the system's programs but these
    hidden.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith(("qemu", "node")) and not (hidden / tool.name).exists():
                (hidden / tool.name).symlink_to(tool)
    done = subprocess.run(
        [sys.executable, "-m", "tvm_practice.labs.cross_compile", "--solutions", "--quick"],
        env={**os.environ, "PATH": str(hidden), "PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=570,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "qemu-user-static" in done.stdout and "largest error" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.pages
@pytest.mark.slow
def test_the_labs_page(tmp_path: Path) -> None:
    """Its command exports for two targets, of which this machine can run one."""
    [printed] = run_blocks("labs/3-cross_compile.md", tmp_path)
    assert "verified" in printed and "not run   code for aarch64" in printed
