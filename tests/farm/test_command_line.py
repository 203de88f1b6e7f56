"""The farm on this machine's loopback; `tests/container` has it between containers."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tvm_practice.engines import ENGINES, Engine, unavailable_reason
from tvm_practice.farm.servers import TRACKER_PORTS

ROOT = Path(__file__).parent.parent.parent
FARM = [sys.executable, "-m", "tvm_practice.farm"]
# In the container this names the farm of Compose.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "TVM_PRACTICE_TRACKER"}


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*FARM, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=ENVIRONMENT,
        timeout=500,
    )


@pytest.mark.parametrize("command", [[], ["tracker"], ["server"], ["status"], ["tune"]])
def test_help(command: list[str], tmp_path: Path) -> None:
    shown = _run(*command, "--help", folder=tmp_path)
    assert shown.returncode == 0 and "Usage:" in shown.stdout


def test_it_runs_with_what_the_image_holds(tmp_path: Path) -> None:
    """The container's image has `farm` and `engines` alone, and the workspace may be empty."""
    package = tmp_path / "tvm_practice"
    for part in ("farm", "engines"):
        shutil.copytree(ROOT / "tvm_practice" / part, package / part)
    (package / "__init__.py").touch()
    environment = {**ENVIRONMENT, "PYTHONPATH": str(tmp_path)}
    shown = subprocess.run(
        [sys.executable, "-c", "import tvm_practice.farm.__main__ as it; print(it.__file__)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert shown.stdout.startswith(str(tmp_path)), shown.stderr


@pytest.fixture(scope="module")
def ports() -> Iterator[None]:
    """The farm's ports, which another process of this test run may have: then it is waited for."""
    lock = Path(tempfile.gettempdir()) / f"tvm-practice-farm-{os.getuid()}.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not all(map(_free, TRACKER_PORTS.values())):
            pytest.skip("a farm is running here")
        yield


def test_a_port_in_use_is_one_line(ports: None, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", TRACKER_PORTS["current"])):
        refused = _run("tracker", "--engine", "current", "--host", "127.0.0.1", folder=tmp_path)
    assert refused.returncode == 1
    message = "no current tracker on 127.0.0.1:9190: Address already in use"
    assert refused.stderr.startswith(message) and len(refused.stderr.splitlines()) == 1


def test_no_tracker(ports: None, tmp_path: Path) -> None:
    status = _run("status", folder=tmp_path)
    assert status.returncode == 1
    assert "no tracker at 127.0.0.1:9190" in status.stdout
    tune = _run("tune", "--engine", "current", "--wait", "0", folder=tmp_path)
    assert tune.returncode == 1
    assert re.fullmatch(r"no current tracker at 127.0.0.1:9190\..*farm tracker\n", tune.stderr)


@pytest.mark.real_processes
def test_unknown_tracker(tmp_path: Path) -> None:
    tune = _run("tune", "--tracker", "no.such.host.invalid", "--wait", "0", folder=tmp_path)
    assert tune.returncode == 1
    assert "tracker at no.such.host.invalid" in tune.stderr and "Traceback" not in tune.stderr


@pytest.fixture(scope="module")
def farm(ports: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tracker and a server of each engine; ends them, and sees that they leave no process."""
    folder = tmp_path_factory.mktemp("farm")
    started = [
        subprocess.Popen([*FARM, command], cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        for command in ("tracker", "server")
    ]
    try:
        yield folder
    finally:
        family = [
            member
            for each in started
            for member in psutil.Process(each.pid).children(recursive=True)
        ]
        for each in reversed(started):
            each.terminate()
        codes = [each.wait(timeout=60) for each in started]
        _, alive = psutil.wait_procs(family, timeout=20)
        for member in alive:
            os.kill(member.pid, signal.SIGKILL)
    assert codes == [128 + signal.SIGTERM] * 2
    assert alive == []


@pytest.mark.real_processes
@pytest.mark.slow
@pytest.mark.pages
@pytest.mark.parametrize("engine", ENGINES)
def test_tunes(farm: Path, engine: Engine) -> None:
    """The trials asked for are measured and recorded, and a second run adds to them."""
    if reason := unavailable_reason(engine):
        pytest.skip(reason)
    arguments = ["tune", "--engine", engine, "--trials", "4", "--size", "32", "--wait", "120"]
    for _ in range(2):
        done = _run(*arguments, "--out", "records", folder=farm)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{engine}: 4 trials measured, 0 failed" in done.stdout
    name = {"classic": "ansor.json", "current": "database_tuning_record.json"}[engine]
    assert len((farm / "records" / engine / name).read_text().splitlines()) == 8
    status = _run("status", "--engine", engine, folder=farm)
    assert status.returncode == 0
    assert re.search(rf"^{engine}: cpu: 127\.0\.0\.1:\d+; 0 trials waiting$", status.stdout, re.M)


@pytest.mark.real_processes
@pytest.mark.slow
@pytest.mark.pages
def test_an_export_is_tuned_on_it(farm: Path) -> None:
    """`run_autotvm` measures on the farm's servers, by the key they have if none is named."""
    if reason := unavailable_reason("current"):
        pytest.skip(reason)
    waiting = ["tune", "--engine", "current", "--trials", "1", "--size", "32", "--wait", "120"]
    assert _run(*waiting, "--out", "first", folder=farm).returncode == 0
    command = [sys.executable, "-m", "tvm_practice.run_autotvm", "tvm_practice.models:load_mlp"]
    command += ["--tuner", "metaschedule", "--tuning-trials", "4", "--measure-repeats", "5"]
    command += ["--rpc-tracker", f"127.0.0.1:{TRACKER_PORTS['current']}", "--artifacts", "mlp"]
    done = subprocess.run(command, cwd=farm, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    tuning = json.loads((farm / "mlp" / "metadata.json").read_text())["tuning"]
    assert tuning["trials"] == 4 and tuning["errors"] == 0
