"""A sandbox: bubblewrap's namespaces, with limits on time, memory and processes.

What runs in it sees the system's files without being able to write them, a home of its own that
is gone afterwards, no network, and no process but its own.
"""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from tvm_practice.engines import PlainError

# Both in a folder that is empty at first, and writable.
_HOME, _WORK = "/tmp/home", "/tmp/submission"
_LOOK_SECONDS = 0.1
# The system's administrator has no limit of processes: where that is who grades, the program runs
# as somebody else, and bubblewrap needs no namespace of users.
_NOBODY = "65534"
_UNSHARED = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts")
# Places of others' files and of the machine's, which are empty in the sandbox.
_EMPTY = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/mnt", "/media", "/srv")
_PASSED_ON = ("LANG", "LC_ALL", "TVM_NUM_THREADS", "COLUMNS")


class NoSandbox(PlainError):
    """Nothing can be run in a sandbox here; the message says why, and what helps."""


@dataclass(frozen=True)
class Limits:
    """What all the processes in a sandbox may use.

    Attributes:
        seconds: by the clock.
        memory: bytes.
        processes: threads are not counted.
        file_bytes: of a file, and of all files.
    """

    seconds: float
    memory: int = 6 * 2**30
    processes: int = 64
    file_bytes: int = 2**28


def run(
    module: str,
    job: Mapping[str, Any],
    folder: Path,
    limits: Limits,
    heard: Callable[[dict[str, Any]], None],
    *,
    stopped: threading.Event,
    hidden: Sequence[Path] = (),
    isolated: bool = True,
) -> str:
    """Run a Python module in a sandbox; the reason why it was ended, "" where it ended itself.

    Args:
        module: `python -m` of it reads a line of JSON, and prints lines of JSON.
        job: what it reads, with a token, the limits, and `isolated` added.
        folder: the learner's files in it.
        limits: time, memory and processes.
        heard: takes each line that it prints and that has the token.
        stopped: when it is set, the sandbox is ended.
        hidden: folders that are empty in it.
        isolated: False: without walls, with the limits alone.
    """
    token = os.urandom(16).hex()
    walls = _walls(folder, hidden, limits) if isolated else []
    with (
        tempfile.TemporaryFile("w+b") as complaints,
        subprocess.Popen(
            [*walls, sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=_environment(_WORK if isolated else str(folder), isolated=isolated),
            start_new_session=True,
        ) as child,
    ):
        listener = threading.Thread(target=_listen, args=(child.stdout, token, heard))
        listener.start()
        try:
            _send(child, {**job, "token": token, "isolated": isolated, "limits": asdict(limits)})
            reason = _watch(child, limits, stopped)
        finally:
            _end(child)
            listener.join()
        if reason or not child.returncode:
            return reason
        complaints.seek(0)
        lines = complaints.read().decode(errors="replace").strip().splitlines()
        return f"exit code {child.returncode}" + (f": {lines[-1][:300]}" if lines else "")


@functools.cache
def check_walls() -> None:
    """Raise NoSandbox where a sandbox cannot be made, or the course is not found in it."""
    way_out = "--no-sandbox grades without one"
    if not sys.platform.startswith("linux"):
        raise NoSandbox(f"a sandbox needs Linux, the course's container say; {way_out}")
    if shutil.which("bwrap") is None:
        raise NoSandbox(f"no sandbox without bwrap: apt-get install bubblewrap; {way_out}")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        done = subprocess.run(
            [*_walls(Path(folder), (), Limits(60)), sys.executable, "-c", "import tvm_practice"],
            env=_environment(_WORK, isolated=True),
            capture_output=True,
            text=True,
        )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NoSandbox(f"no sandbox can be made: {lines[-1]}; {way_out}")


def _walls(folder: Path, hidden: Sequence[Path], limits: Limits) -> list[str]:
    """bubblewrap's command, up to the program."""
    empty = ["--size", str(limits.file_bytes), "--tmpfs"]
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    change_owner: list[str] = []
    if os.geteuid() == 0:
        command = ["bwrap", *_UNSHARED, "--die-with-parent", "--cap-drop", "ALL"]
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        change_owner = ["setpriv", "--reuid", _NOBODY, "--regid", _NOBODY, "--clear-groups"]
    command += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for place in filter(os.path.isdir, _EMPTY):
        command += ["--perms", "1777" if place.endswith("tmp") else "0755", *empty, place]
    for path in _needed():
        for above in reversed(path.parents):
            if any(above.is_relative_to(place) and str(above) != place for place in _EMPTY):
                command += ["--perms", "0755", "--dir", str(above)]
        command += ["--ro-bind", str(path), str(path)]
    for each in hidden:
        command += [*empty, str(each.resolve())]
    command += [
        "--perms",
        "0777",
        "--dir",
        _HOME,
        "--ro-bind",
        str(folder.resolve()),
        _WORK,
        "--chdir",
        _HOME,
    ]
    return [*command, "--", *change_owner]


def _needed() -> list[Path]:
    """The folders that Python, the course and both engines are read from."""
    course = Path(__file__).resolve().parents[3]
    found = [Path(sys.prefix), Path(sys.base_prefix), course]
    found += [Path(each) for each in sys.path if each and Path(each).is_dir()]
    return sorted({each.resolve() for each in found})


def _environment(work: str, *, isolated: bool) -> dict[str, str]:
    """Nothing of the teacher's but what says how the course is run."""
    passed = {name: value for name, value in os.environ.items() if name in _PASSED_ON}
    return {
        **passed,
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": _HOME if isolated else work,
        "TVM_PRACTICE_FILES": work,
    }


def _send(child: "subprocess.Popen[bytes]", job: Mapping[str, Any]) -> None:
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(job).encode() + b"\n")
        child.stdin.close()
    except BrokenPipeError:  # it ended at once; its exit code says so
        pass


def _listen(lines: IO[bytes], token: str, heard: Callable[[dict[str, Any]], None]) -> None:
    for line in lines:
        try:
            said = json.loads(line)
        except ValueError:
            continue
        # Not what the student's code prints.
        if isinstance(said, dict) and said.pop("token", None) == token:
            heard(said)


def _watch(child: "subprocess.Popen[bytes]", limits: Limits, stopped: threading.Event) -> str:
    """Wait until it ends or passes a limit; which one, "" for none."""
    ends = time.monotonic() + limits.seconds
    while child.poll() is None:
        if time.monotonic() > ends:
            return f"more than {limits.seconds:.0f} seconds"
        below = _below(child.pid)
        if len(below) > limits.processes:
            return f"more than {limits.processes} processes"
        if _memory(below, limits.memory) > limits.memory:
            return f"more than {limits.memory / 2**30:.3g} GiB of memory"
        if stopped.wait(_LOOK_SECONDS):
            return "stopped"
    return ""


def _below(pid: int) -> list[psutil.Process]:
    """The processes that a process has started, and those that they have."""
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []


def _memory(processes: Sequence[psutil.Process], most: int) -> int:
    """The bytes that processes hold together.

    What they share is counted for each, unless that is above `most`: then once, which takes longer.
    """
    held = 0
    for counted in ("rss", "pss"):
        held = 0
        for each in processes:
            with contextlib.suppress(psutil.Error):
                info = each.memory_info() if counted == "rss" else each.memory_full_info()
                held += getattr(info, counted)
        if held <= most:
            break
    return held


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End it with all that it started: the first process of a sandbox takes the others along."""
    below = _below(child.pid)
    if child.poll() is None:
        child.kill()
    for each in below:
        with contextlib.suppress(psutil.Error):
            each.kill()
    child.wait()
