"""A tracker, a server, and what a tracker knows: what runs in an engine's process."""

import atexit
import socket
from typing import Any

TRACKER_PORTS = {"classic": 9191, "current": 9190}
SERVER_PORTS = {"classic": range(9300, 9400), "current": range(9200, 9300)}
CONNECT_SECONDS = 3.0
EVERY_ADDRESS = ("0.0.0.0", "::")

_held: dict[str, Any] = {}  # what a child process keeps alive for its parent


def open_tracker(host: str, port: int) -> None:
    """Start a tracker on `port` in a process of its own."""
    from tvm.rpc.tracker import Tracker

    _held["tracker"] = Tracker(host, port=port, port_end=port + 1, silent=True)
    atexit.register(_held["tracker"].terminate)


def open_server(tracker: str, port: int, key: str, host: str, first: int, last: int) -> str:
    """Start a server on the first free port, known to the tracker as `key`; returns its address.

    A server opened before ends.

    Args:
        tracker: host of the tracker.
        port: of the tracker.
        key: that the server is known by.
        host: address to listen on; 0.0.0.0: every one.
        first: port to try first.
        last: the port after the last one to try.
    """
    from tvm import rpc

    if "server" in _held:
        _held.pop("server").terminate()
    with socket.create_connection((tracker, port), timeout=CONNECT_SECONDS) as probe:
        own = probe.getsockname()[0]  # the address of this machine that the tracker can reach
    address = own if host in EVERY_ADDRESS else host
    server = rpc.Server(
        host,
        first,
        last,
        key=key,
        tracker_addr=(tracker, port),
        custom_addr=address,
        silent=True,
    )
    _held["server"] = server
    return f"{address}:{server.port}"


def summary(tracker: str, port: int) -> dict[str, Any]:
    """What the tracker knows: {"servers": {key: [address, ...]}, "waiting": {key: count}}."""
    from tvm import rpc

    session = rpc.connect_tracker(tracker, port)
    known = session.summary()
    session.close()
    servers: dict[str, list[str]] = {}
    for info in known["server_info"]:
        address, its_port = info["addr"]
        servers.setdefault(info["key"].removeprefix("server:"), []).append(f"{address}:{its_port}")
    waiting = {key: queue["pending"] for key, queue in known["queue_info"].items()}
    return {"servers": servers, "waiting": waiting}
