"""What a killed process leaves in temporary files is removed by a later one; what lives stays."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from tvm_practice.engines.temporary import TemporaryFolder, remove_abandoned, temporary_parent

HOLDER = """
import sys, time
from pathlib import Path
from tvm_practice.engines.temporary import TemporaryFolder
held = TemporaryFolder(Path(sys.argv[1]))
print(held.path, flush=True)
time.sleep(60)
"""


@pytest.mark.real_processes
def test_the_folder_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().rstrip())
        (folder / "candidate.so").touch()
        remove_abandoned(tmp_path)
        assert (folder / "candidate.so").exists()  # its owner lives
        holder.kill()
    with TemporaryFolder(tmp_path) as mine:
        assert list(tmp_path.iterdir()) == [mine]
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_lock_is_removed_when_it_is_old(tmp_path: Path) -> None:
    with TemporaryFolder(tmp_path) as made:
        name = made.name
    (tmp_path / name).mkdir()
    remove_abandoned(tmp_path)
    assert (tmp_path / name).exists()  # its owner is about to lock it
    os.utime(tmp_path / name, (time.time() - 100,) * 2)
    (tmp_path / "other").mkdir()
    (tmp_path / f"{name}-link").symlink_to(tmp_path / "other")
    remove_abandoned(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(["other", f"{name}-link"])


COMMAND = """
import click, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup, which ignores it
from tvm_practice import engines
from tvm_practice.engines.command_line import Command

@click.command(cls=Command)
def main():
    with engines.Session("current") as session:
        print(session._child.pid, flush=True)
        session.call(
            "tests.engines.functions:sleep_until_interrupted",
            {"started": sys.argv[1], "interrupted": sys.argv[1] + "-interrupted"},
            activate=False,
        )

main([])
"""


@pytest.mark.real_processes
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_stopped_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started = tmp_path / "started"
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(started)],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        child = psutil.Process(int(process.stdout.readline()))
        while not started.exists():
            assert process.poll() is None
            time.sleep(0.05)
        assert list(temporary.iterdir())
        process.send_signal(how)
        assert process.stderr.read() == f"stopped by {how.name}\n"
        assert process.wait() == 128 + how
    assert not list(temporary.iterdir())
    assert not child.is_running()


STARTING = """
import os, runpy, signal, sys

def interrupt(event, arguments):
    if event == "import" and arguments[0] == {module!r}:
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["-m", "--help"]
runpy.run_module("tvm_practice.run_autotvm", run_name="__main__", alter_sys=True)
"""


@pytest.mark.real_processes
@pytest.mark.parametrize("module", ["click", "tvm_practice.tvm_export.cli"])
def test_ctrl_c_while_a_command_starts_is_130_without_a_traceback(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STARTING.format(module=module)], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (130, "stopped\n")


def test_asking_for_the_folder_of_temporary_files_writes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own way writes one, which a kill in that moment leaves behind."""

    def probe() -> str:
        raise AssertionError("a file would be written")

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "gettempdir", probe)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert temporary_parent() == tmp_path
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    assert temporary_parent() == tmp_path
