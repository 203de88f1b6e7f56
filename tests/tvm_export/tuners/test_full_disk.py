"""A disk of its own for the tuning log, which fills while a model is tuned."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tvm_practice.engines import Engine, unavailable_reason

EXPORT = [sys.executable, "-m", "tvm_practice.run_autotvm", "tvm_practice.models:load_mlp"]
LOGS: dict[str, tuple[Engine, str]] = {
    "metaschedule": ("current", "records"),
    "autotvm": ("classic", "records.log"),
    "ansor": ("classic", "records.json"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A folder on a disk with room for so many bytes."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def make(size: int) -> Path:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tvm-practice-test", str(folder)],
            capture_output=True,
            text=True,
        )
        if mounted.returncode:
            pytest.skip(f"nothing can be mounted: {mounted.stderr.strip()}")
        return folder

    if shutil.which("mount") is None:
        pytest.skip("not installed: mount")
    yield make
    subprocess.run(["umount", str(folder)], capture_output=True)


@pytest.mark.real_processes
@pytest.mark.slow
@pytest.mark.pages
@pytest.mark.parametrize("tuner", LOGS)
def test_a_full_disk_is_told_in_a_line(
    tuner: str, disk: Callable[[int], Path], tmp_path: Path
) -> None:
    """The tuner's log does not fit: one line names it, and what was there before stays."""
    engine, name = LOGS[tuner]
    if reason := unavailable_reason(engine):
        pytest.skip(reason)
    log = disk(4096) / name
    command = [*EXPORT, "--tuner", tuner, "--tuning-trials", "16", "--measure-repeats", "5"]
    command += ["--tuning-log", str(log), "--artifacts", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    said = done.stderr.strip().splitlines()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(r"No space left on device|is the disk full", said[-1]), said
    assert str(log) in said[-1] and len(said[-1]) < 300
    assert not (tmp_path / "out").exists()
