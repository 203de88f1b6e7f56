"""Trackers and servers kept running, by stand-ins for the engines' processes."""

import socket
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tvm_practice import engines
from tvm_practice.engines import RemoteError
from tvm_practice.farm import keeping
from tvm_practice.farm.keeping import FarmError, keep_servers, keep_trackers
from tvm_practice.farm.servers import TRACKER_PORTS

LOST = RemoteError("builtins.ConnectionResetError", "the tracker went away", "")
OPENING = {"key": "cpu", "host": "127.0.0.1", "first": 1, "last": 2}


class Session:
    """Opens a port where a tracker would."""

    def __init__(self, engine: str):
        self.engine = engine

    def call(self, _: str, where: Mapping[str, Any]) -> None:
        self.listening = socket.create_server((where["host"], where["port"]))

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.listening.close()


def test_a_tracker_on_a_named_address_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "127.0.0.2"
    try:
        with socket.create_server((address, 0)) as probe:
            port = probe.getsockname()[1]
    except OSError:
        pytest.skip("this system's loopback has one address")
    naps = iter(range(3))

    def sleep(_: float) -> None:
        if next(naps, None) is None:
            raise TimeoutError

    monkeypatch.setattr(engines, "Session", Session)
    monkeypatch.setitem(TRACKER_PORTS, "current", port)
    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(TimeoutError):
        keep_trackers(["current"], address)


@pytest.mark.parametrize(
    ("tracker", "host", "message"),
    [
        ("nohost:1", "127.0.0.1", "tracker nohost:1, server 127.0.0.1: .*, without a port$"),
        ("192.0.2.1", "127.0.0.1", "cannot reach a server on 127.0.0.1: give --host"),
        ("127.0.0.1", "256.0.0.1", "server 256.0.0.1: "),
    ],
)
def test_servers_that_nobody_could_reach_are_refused(tracker: str, host: str, message: str) -> None:
    with pytest.raises(FarmError, match=message):
        keep_servers(["current"], tracker, "cpu", host)


def test_a_tracker_that_goes_away_in_a_call_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: list[Any] = [LOST, "here:1", LOST, {"servers": {}}, {"servers": {}}, LOST, "here:2"]

    def call(_: str, given: object) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(keeping, "reachable", lambda *_: True)
    keeper = keeping._keep_server("current", call, "tracker", OPENING)
    for _ in range(6):
        next(keeper)
    assert not answers
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in said] == [
        "current server on here:1",
        "current server on here:2",
    ]


def test_a_server_that_never_starts_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(_: str, given: object) -> Any:
        raise RemoteError("builtins.OSError", "no free port", "")

    monkeypatch.setattr(keeping, "reachable", lambda *_: True)
    keeper = keeping._keep_server("current", call, "tracker", OPENING)
    with pytest.raises(FarmError, match=r"^no current server: OSError: no free port$"):
        for _ in range(10):
            next(keeper)
