"""Every command ends in one line where its output cannot be written or its folder is gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ("engines", "run_autotvm", "icd", "course", "te_basics", "viz", "farm", "compile_onnx")

pytestmark = pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="has no /dev/full")


@pytest.mark.parametrize("module", COMMANDS)
def test_a_full_disk_is_one_line(module: str) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", f"tvm_practice.{module}", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (ended.returncode, ended.stderr) == (1, "error: No space left on device\n")


def test_a_folder_that_was_deleted_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    code = (
        "import os, sys, runpy; os.rmdir(os.getcwd()); sys.argv = ['run_autotvm', '--help']\n"
        "runpy.run_module('tvm_practice.run_autotvm', run_name='__main__')"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (2, "error: the working directory was deleted\n")
