"""A farm on this machine's loopback, to see what one does; `farm.keeping` runs real ones.

    with LocalFarm(2) as farm:
        session = rpc.connect_tracker(farm.host, farm.port).request(farm.key)

Each server computes on one thread, so that as many as there are cores take little time from each
other. Everything that is started here ends with the block, or with this process however it ends.
Ports are any that are free.
"""

import os
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from tvm_practice.engines.orphans import end_with_parent
from tvm_practice.farm.servers import summary
from tvm_practice.tvm_export.tuners.workers import unbound_threads, variable, without_torch

_HOST = "127.0.0.1"
_PORTS_TRIED = 100
_WAIT_SECONDS = 60.0
_TRIAL_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.005


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _ask(worker: Any, function: Callable[[], Any]) -> Any:
    """Call a function in a process that TVM started (a PopenWorker)."""
    worker.send(function)
    return worker.recv()


def _in_a_trial(server: psutil.Process) -> bool:
    """Whether a server's session has loaded what was sent to it.

    A session's process is there before the client knows of it, and a client whose server is lost
    by then asks for another by itself.
    """
    try:
        sessions = server.children(recursive=True)
        if not hasattr(server, "memory_maps"):  # macOS does not tell what is loaded
            return bool(sessions)
        folder = Path(server.cwd())  # a session's files are there, and it ends with the session
        return any(
            Path(loaded.path).parent == folder
            for session in sessions
            for loaded in session.memory_maps()
        )
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


class LocalFarm:
    """A tracker and servers on loopback, of the active engine.

    Attributes:
        host: of the tracker and of the servers.
        port: of the tracker.
        key: that the servers are known by.
        tracker_pid: the tracker's process.
    """

    def __init__(self, servers: int, *, key: str = "cpu"):
        self.host = _HOST
        self.key = key
        self._wanted = servers
        self._servers: list[Any] = []

    def __enter__(self) -> "LocalFarm":
        from tvm.rpc.tracker import Tracker

        first = free_port()
        with without_torch():
            self._tracker = Tracker(
                self.host, port=first, port_end=first + _PORTS_TRIED, silent=True
            )
        try:
            _ask(self._tracker.proc, end_with_parent)
            self.port = int(self._tracker.port)
            self.tracker_pid = int(_ask(self._tracker.proc, os.getpid))
            self.add(self._wanted)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """Servers that were added and not lost."""
        return len(self._servers)

    @property
    def servers(self) -> list[str]:
        """The addresses that the tracker knows, "host:port"."""
        return list(summary(self.host, self.port)["servers"].get(self.key, []))

    @property
    def pids(self) -> list[int]:
        """The servers' processes, in the order they were added."""
        return [int(_ask(each.proc, os.getpid)) for each in self._servers]

    def add(self, count: int = 1) -> None:
        """Start servers, and wait until the tracker knows them."""
        at_a_time = ThreadPoolExecutor(max(1, min(count, os.cpu_count() or 1)))
        one_thread = variable("TVM_NUM_THREADS", "1")
        with unbound_threads(), without_torch(), one_thread, at_a_time:
            started = list(at_a_time.map(lambda _: self._start(), range(count)))
        self._servers += started
        addresses = {f"{self.host}:{each.port}" for each in started}
        self._wait(lambda: addresses <= set(self.servers), f"{count} servers to be known")

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + _WAIT_SECONDS
        while not done():
            if time.monotonic() > until:
                raise TimeoutError(f"waited {_WAIT_SECONDS:.0f} s for {what}")
            time.sleep(_POLL_SECONDS)

    def _start(self) -> Any:
        from tvm import rpc

        first = free_port()
        server = rpc.Server(
            self.host,
            first,
            first + _PORTS_TRIED,
            key=self.key,
            tracker_addr=(self.host, self.port),
            custom_addr=self.host,
            silent=True,
        )
        _ask(server.proc, end_with_parent)
        return server

    def lose(self, index: int = 0, *, serving: bool = False) -> None:
        """End a server at once, and the session it is in, as a power cut would.

        When this returns the tracker knows it no more.

        Args:
            index: among those that are left.
            serving: wait until it is in the middle of a trial, if that comes soon.
        """
        process = psutil.Process(self.pids[index])
        until = time.monotonic() + _TRIAL_WAIT_SECONDS
        while serving and not _in_a_trial(process) and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        lost = self._servers.pop(index)
        lost.terminate()
        address = f"{self.host}:{lost.port}"
        self._wait(lambda: address not in self.servers, f"the tracker to forget {address}")

    def close(self) -> None:
        """End the servers and the tracker."""
        for each in self._servers:
            each.terminate()
        self._servers.clear()
        self._tracker.terminate()


class SilentServer:
    """A server that the tracker hands out and that never answers: a machine without its network.

    It is in this process, on a port of its own, which refuses connections if it is `gone`: the
    machine is there, and no server on it.

    with SilentServer(farm.host, farm.port, farm.key):
        ...
    """

    def __init__(self, host: str, port: int, key: str, *, gone: bool = False):
        from tvm.rpc import base

        self._base = base
        self._key = key
        self._listener = socket.create_server((host, 0)) if not gone else socket.socket()
        if gone:
            self._listener.bind((host, 0))  # nobody else gets the port, and nobody listens
        self._tracker = base.connect_with_retry((host, port))
        self._tracker.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
        base.recvall(self._tracker, 4)
        address = list(self._listener.getsockname())
        self._tell(base.TrackerCode.UPDATE_INFO, {"key": f"server:{key}", "addr": address})

    def _tell(self, *message: Any) -> None:
        self._base.sendjson(self._tracker, message)
        assert self._base.recvjson(self._tracker) == self._base.TrackerCode.SUCCESS

    def offer(self) -> None:
        """Be handed out once more."""
        host, port = self._listener.getsockname()
        ticket = (port, self._base.random_key(self._key))
        self._tell(self._base.TrackerCode.PUT, self._key, ticket, host)

    def __enter__(self) -> "SilentServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._tracker.close()
        self._listener.close()
