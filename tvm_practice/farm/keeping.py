"""Trackers and servers kept running, and waited for, by a process that has no TVM."""

import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tvm_practice import engines
from tvm_practice.farm.servers import CONNECT_SECONDS, SERVER_PORTS, TRACKER_PORTS

_SERVERS = "tvm_practice.farm.servers"
_POLL_SECONDS = 5.0


class FarmError(engines.PlainError):
    """A tracker or a server is not there, or ended; the message says which."""


def keep_trackers(chosen: Sequence[engines.Engine], host: str) -> None:
    """Run a tracker for each engine until a signal comes.

    Args:
        chosen: the engines.
        host: address to listen on.

    Raises:
        FarmError: a tracker cannot start, or ended.
    """
    with ExitStack() as stack:
        stack.enter_context(_ended_by_signals())
        for each in chosen:
            port = TRACKER_PORTS[each]
            try:
                socket.create_server((host, port)).close()
            except OSError as error:  # TVM says it by a stack
                raise FarmError(f"no {each} tracker on {host}:{port}: {error.strerror}") from error
            session = stack.enter_context(engines.Session(each))
            try:
                session.call(f"{_SERVERS}:open_tracker", {"host": host, "port": port})
            except engines.EngineError as error:
                raise FarmError(f"no {each} tracker on {host}:{port}: {error}") from error
            print(f"{each} tracker on {host}:{port}", flush=True)
        while True:
            time.sleep(_POLL_SECONDS)
            for each in chosen:
                if not reachable("127.0.0.1", TRACKER_PORTS[each]):
                    raise FarmError(f"the {each} tracker ended")


def keep_servers(chosen: Sequence[engines.Engine], tracker: str, key: str) -> None:
    """Run a server for each engine until a signal comes.

    Args:
        chosen: the engines.
        tracker: host of the trackers; the servers wait for it, and come back if it is lost.
        key: that the servers are known by.
    """
    with ExitStack() as stack:
        stack.enter_context(_ended_by_signals())
        keepers = [
            _keep_server(each, stack.enter_context(engines.Session(each)).call, tracker, key)
            for each in chosen
        ]
        while True:
            for keeper in keepers:
                next(keeper)
            time.sleep(_POLL_SECONDS)


def _keep_server(engine: str, call: Callable[..., Any], tracker: str, key: str) -> Iterator[None]:
    """Each step sees to it that the engine's server is known to the tracker.

    A server leaves the tracker's list when the tracker is restarted and, in current TVM, when a
    trial crashes it.
    """
    port = TRACKER_PORTS[engine]
    where = {"tracker": tracker, "port": port}
    ports = SERVER_PORTS[engine]
    opening = {**where, "key": key, "first": ports.start, "last": ports.stop}
    address, missed, waiting = None, 0, False
    while True:
        if not reachable(tracker, port):
            if not waiting:
                print(f"{engine} server waits for the tracker at {tracker}:{port}", flush=True)
            waiting = True
        else:
            waiting = False
            if address is not None:
                known = call(f"{_SERVERS}:summary", where)["servers"].get(key, [])
                missed = 0 if address in known else missed + 1
            if address is None or missed > 1:
                address, missed = call(f"{_SERVERS}:open_server", opening), 0
                print(
                    f"{engine} server on {address}, known to {tracker}:{port} as {key}", flush=True
                )
        yield


def wait_for_servers(session: engines.Session, tracker: str, key: str, seconds: float) -> list[str]:
    """The addresses of a key's servers, once a farm that is starting has one.

    Args:
        session: of the engine whose servers are meant.
        tracker: host of its tracker.
        key: of the servers.
        seconds: to wait at most.

    Raises:
        FarmError: there is no tracker, or it knows no such server.
    """
    where = {"tracker": tracker, "port": TRACKER_PORTS[session.engine]}
    place = f"{where['tracker']}:{where['port']}"
    until = time.monotonic() + seconds
    while True:
        answers = reachable(tracker, TRACKER_PORTS[session.engine])
        if answers:
            known = session.call(f"{_SERVERS}:summary", where)["servers"]
            if servers := known.get(key):
                return list(servers)
        if time.monotonic() > until:
            break
        time.sleep(1)
    if answers:
        raise FarmError(f"the {session.engine} tracker at {place} knows no server of key {key!r}")
    raise FarmError(
        f"no {session.engine} tracker at {place}. To start one: python -m tvm_practice.farm tracker"
    )


def reachable(host: str, port: int) -> bool:
    """Whether anybody listens on that port."""
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have a stop of the container (SIGTERM) or Ctrl-C leave through the `with` blocks."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = {each: signal.signal(each, leave) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
