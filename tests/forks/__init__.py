"""Python processes that start with their packages imported: forks of servers that live for a run.

Most of a test used to be a Python that starts and imports PyTorch and a TVM: three to five seconds
of a processor, a few hundred times. `use()` replaces `subprocess.Popen` in this process, so that a
`python -m module` or `python -c code` that is started here, in a test or in what it tests, is
forked by a server that has imported those packages (tests/forks/server.py). The fork's arguments,
folder, environment, files, exit status and end are a started process's, and so are its
`sys.modules`: what is imported beforehand shows there only once it is imported.

A test marked `real_processes` starts its processes for real: those about signals, about what a
process leaves behind, and one at least for each command. `pytest --real-processes` does so for all.
"""

import contextlib
import inspect
import json
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

# On PYTHONPATH, has a process that is started for real fork what it starts.
SITE = Path(__file__).with_name("site")
# On PATH, has a shell fork its `python`, which is the one that PYTHON names.
BIN = Path(__file__).with_name("bin")
PYTHON = "TVM_PRACTICE_TEST_PYTHON"
# Where the servers listen; the processes that a run starts find it here.
ADDRESS = "TVM_PRACTICE_TEST_FORKS"
PLAIN = "plain"

# A process that was started with SITE on its path has another copy of this module's class by now.
if TYPE_CHECKING:
    _STARTED = subprocess.Popen[Any]
else:
    _STARTED = getattr(subprocess.Popen, "started", subprocess.Popen)
_SHIM = "classic_shim"
_NUMBER = struct.Struct("<q")
# What Python or a package reads as it starts or is imported: with another value than the server's,
# a fork would not be the process that is asked for.
_READ_AT_START = ("OMP_", "MKL_", "KMP_", "LD_", "MALLOC_", "TORCH_", "HF_", "MPL", "CC", "CXX")
# As many threads as OpenMP has where it is not told: what says so needs no server of its own.
_UNTOLD = (
    "OMP_NUM_THREADS",
    str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
)


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a process must share with a server to be forked by it."""
    return {
        name: value
        for name, value in environment.items()
        if (name.startswith(_READ_AT_START) and (name, value) != _UNTOLD)
        or (name.startswith("PYTHON") and name != "PYTHONPATH")
    }


def server_for(command: Any, environment: dict[str, str]) -> str | None:
    """The server that has imported what `command` will need; None if the command is no Python's."""
    if not isinstance(command, list) or len(command) < 3 or command[0] != sys.executable:
        return None
    if command[1] == "-m" and command[2] == "tvm_practice.engines.child":
        return str(command[3])
    if command[1] == "-m" and command[2] == "tvm.exec.popen_worker":
        return "classic" if _SHIM in environment.get("PYTHONPATH", "") else "current"
    return PLAIN if command[1] in ("-m", "-c") else None


def ask(
    command: Any,
    environment: dict[str, str],
    files: dict[int, int],
    *,
    folder: str | os.PathLike[str] | None = None,
    session: bool = False,
) -> tuple[int, socket.socket] | None:
    """Have a server fork a process; None if none can.

    Args:
        command: its program and arguments.
        environment: its variables.
        files: by its descriptors, those of this process that they are.
        folder: its working directory; None: this process's.
        session: whether it leads a session of its own.

    Returns:
        The process's number, and the connection that tells `status_of` how it ended. The process is
        ended when that is closed.
    """
    server, address = server_for(command, environment), os.environ.get(ADDRESS)
    if server is None or address is None:
        return None
    request = {
        "command": [os.fspath(each) for each in command[1:]],
        "folder": os.fspath(folder or Path.cwd()),
        "environment": environment | {ADDRESS: address},
        "files": list(files),
        "session": session,
        "parent": os.getpid(),
    }
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(f"{address}/{server}")
    message = json.dumps(request).encode()
    socket.send_fds(connection, [_NUMBER.pack(len(message))], list(files.values()))
    connection.sendall(message)
    answer = connection.recv(_NUMBER.size, socket.MSG_WAITALL)
    if not answer:  # the server cannot give it this environment
        connection.close()
        return None
    (pid,) = _NUMBER.unpack(answer)
    return pid, connection


def status_of(connection: socket.socket) -> int:
    """How the process that `ask` had forked ended, as `os.waitpid` says it; waits for that."""
    answer = connection.recv(_NUMBER.size, socket.MSG_WAITALL)
    return int(_NUMBER.unpack(answer)[0]) if len(answer) == _NUMBER.size else 9


class Forked(_STARTED):
    """A `subprocess.Popen` whose process is forked by a server where that makes no difference."""

    started = _STARTED
    _connection: socket.socket | None = None

    def _execute_child(self, *positional: Any) -> None:
        method = super()._execute_child  # type: ignore[misc]
        given = inspect.signature(method).bind(*positional).arguments
        environment = dict(os.environ if given["env"] is None else given["env"])
        pipes = {0: given["p2cread"], 1: given["c2pwrite"], 2: given["errwrite"]}
        files = {number: number if file == -1 else file for number, file in pipes.items()}
        files |= {number: number for number in given["pass_fds"]}
        unusual = any(given[each] for each in ("executable", "preexec_fn", "shell"))
        session = bool(given["start_new_session"])
        asked = (
            None
            if unusual
            else ask(given["args"], environment, files, folder=given["cwd"], session=session)
        )
        if asked is None:
            method(*positional)
            return
        self.pid, self._connection = asked
        # Closed with this process alone: a server ends what has nobody to wait for it.
        _connections.append(self._connection)
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]
            *(given[f"{name}{end}"] for name in ("p2c", "c2p", "err") for end in ("read", "write"))
        )

    def _status(self, *, wait: bool) -> int | None:
        """How the process ended, as `os.waitpid` says it; None if it has not."""
        assert self._connection is not None
        if not wait and not select.select([self._connection], [], [], 0)[0]:
            return None
        status = status_of(self._connection)
        if self._connection in _connections:
            _connections.remove(self._connection)
        self._connection.close()
        return status

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._connection is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc,no-any-return]
        status = self._status(wait=not wait_flags & os.WNOHANG)
        return (0, 0) if status is None else (self.pid, status)

    def _internal_poll(self, *arguments: Any, **options: Any) -> int | None:
        if self._connection is None:
            return super()._internal_poll(*arguments, **options)  # type: ignore[misc,no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                if self.returncode is None and (status := self._status(wait=False)) is not None:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


_connections: list[socket.socket] = []


def use() -> None:
    """Have this process's `subprocess` fork where it can."""
    subprocess.Popen = Forked  # type: ignore[misc]


@contextlib.contextmanager
def real() -> Iterator[None]:
    """In the block, every process is started, and so is what those start."""
    folder = os.environ.pop(ADDRESS, None)
    try:
        yield
    finally:
        if folder is not None:
            os.environ[ADDRESS] = folder


@contextlib.contextmanager
def skipped() -> Iterator[None]:
    """In the block, a test that would start a Python process is skipped."""
    import pytest  # here: what the pages' commands start has no use for it

    class Skipped(subprocess.Popen[Any]):
        def __init__(self, command: Any, *arguments: Any, **options: Any):
            if server_for(command, {}) is not None:
                self._child_created = False  # what is not begun has no end to wait for
                pytest.skip("starts a process")
            super().__init__(command, *arguments, **options)

    before, subprocess.Popen = subprocess.Popen, Skipped  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        subprocess.Popen = before  # type: ignore[misc]


@contextlib.contextmanager
def servers() -> Iterator[None]:
    """Servers for this process and those that it starts; each imports when it is first asked."""
    with tempfile.TemporaryDirectory(prefix="tvm-practice-forks-") as folder:
        ours, theirs = os.pipe()
        process = _STARTED(
            [sys.executable, "-m", "tests.forks.server", folder, str(ours)],
            pass_fds=[ours],
            start_new_session=True,
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(ours)
        while not (Path(folder) / PLAIN).exists():
            if process.poll() is not None:
                raise ChildProcessError("the servers of the tests' processes did not start")
            select.select([], [], [], 0.01)
        os.environ[ADDRESS] = folder
        try:
            yield
        finally:
            del os.environ[ADDRESS]
            os.close(theirs)  # at the pipe's end they end
            process.wait()
