"""Trackers and servers kept running, and waited for, by a process that has no TVM."""

import ipaddress
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tvm_practice import engines
from tvm_practice.farm.servers import (
    CONNECT_SECONDS,
    SERVER_PORTS,
    TRACKER_PORTS,
)

_SERVERS = "tvm_practice.farm.servers"
_POLL_SECONDS = 5.0
_TRIES = 3


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
            except (OSError, UnicodeError) as error:  # TVM says it by a stack
                reason = getattr(error, "strerror", None) or error
                raise FarmError(f"no {each} tracker on {host}:{port}: {reason}") from error
            session = stack.enter_context(engines.Session(each))
            try:
                session.call(f"{_SERVERS}:open_tracker", {"host": host, "port": port})
            except engines.EngineError as error:
                raise FarmError(f"no {each} tracker on {host}:{port}: {error}") from error
            print(f"{each} tracker on {host}:{port}", flush=True)
        while True:
            time.sleep(_POLL_SECONDS)
            for each in chosen:
                if not reachable(_reached_at(host), TRACKER_PORTS[each]):
                    raise FarmError(f"the {each} tracker ended")


def _reached_at(host: str) -> str:
    """An address at which what listens on `host` is reached from this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def keep_servers(
    chosen: Sequence[engines.Engine],
    tracker: str,
    key: str,
    host: str,
    port: int | None = None,
) -> None:
    """Run a server for each engine until a signal comes.

    Args:
        chosen: the engines.
        tracker: host of the trackers; the servers wait for it, and come back if it is lost.
        key: that the servers are known by.
        host: address to listen on.
        port: to listen on, for one engine; None: the first free one of the engine's.

    Raises:
        FarmError: there is no such host, nobody could reach the servers, or one does not start.
    """
    _require_reachable_for(tracker, host)
    with ExitStack() as stack:
        stack.enter_context(_ended_by_signals())
        keepers = []
        for each in chosen:
            ports = SERVER_PORTS[each] if port is None else range(port, port + 1)
            call = stack.enter_context(engines.Session(each)).call
            opening = {"key": key, "host": host, "first": ports.start, "last": ports.stop}
            keepers.append(_keep_server(each, call, tracker, opening))
        while True:
            for keeper in keepers:
                next(keeper)
            time.sleep(_POLL_SECONDS)


def _require_reachable_for(tracker: str, host: str) -> None:
    """Raise FarmError unless the clients of a tracker could reach a server that listens on `host`.

    The tracker itself need not run yet.
    """
    try:
        found = {str(address[0]) for *_, address in socket.getaddrinfo(tracker, None)}
        own = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FarmError(
            f"tracker {tracker}, server {host}: {reason}; give a name or an address, without a port"
        ) from error
    if not any(map(_is_loopback, found)) and all(map(_is_loopback, own)):
        raise FarmError(
            f"clients of the tracker at {tracker} cannot reach a server on {host}: give --host, an "
            "address of this machine on a network that you trust, or go through an SSH tunnel"
        )


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _keep_server(
    engine: str, call: Callable[..., Any], tracker: str, opening: Mapping[str, Any]
) -> Iterator[None]:
    """Each step sees to it that the engine's server is known to the tracker.

    A server leaves the tracker's list when the tracker is restarted and, in current TVM, when a
    trial crashes it. The tracker may go away at any moment: what fails then is tried again.

    Args:
        engine: whose server it is.
        call: calls a function in the engine's process.
        tracker: its host.
        opening: "key", "host", "first" and "last" of `servers.open_server`.
    """
    port, key = TRACKER_PORTS[engine], opening["key"]
    where = {"tracker": tracker, "port": port}
    address, missed, failed, waiting = None, 0, 0, False
    while True:
        if not reachable(tracker, port):
            if not waiting:
                print(f"{engine} server waits for the tracker at {tracker}:{port}", flush=True)
            waiting = True
            yield
            continue
        waiting = False
        try:
            if address is not None:
                known = call(f"{_SERVERS}:summary", where)["servers"].get(key, [])
                missed = 0 if address in known else missed + 1
            if address is None or missed > 1:
                address = None
                address, missed = call(f"{_SERVERS}:open_server", {**where, **opening}), 0
                print(
                    f"{engine} server on {address}, known to {tracker}:{port} as {key}", flush=True
                )
            failed = 0
        except engines.RemoteError as error:
            failed += 1
            if failed == _TRIES:
                raise FarmError(f"no {engine} server: {error.line}") from error
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
    except (OSError, UnicodeError):  # no address, or nobody there
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
