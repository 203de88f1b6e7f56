"""The runners: values, several outputs, reuse, files, and refusal of wrong inputs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.measure.clock import Clock
from tvm_practice import engines
from tvm_practice.tvm_export.profiling import profile_operators, time_alone

FUNCTIONS = "tests.tvm_export.running_functions"


def _assert_close(outputs: list[object], expected: list[object]) -> None:
    assert len(outputs) == len(expected)
    for got, want in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(np.array(got), np.array(want), atol=1e-5, rtol=1e-5)


def test_outputs_are_pytorchs_each_time(session: engines.Session) -> None:
    pairs = session.call(f"{FUNCTIONS}:runs")
    assert len(pairs) == 3
    for outputs, expected in pairs:
        _assert_close(outputs, expected)


def test_outputs_are_copies(session: engines.Session) -> None:
    before, after = session.call(f"{FUNCTIONS}:kept_outputs")
    assert before == after


def test_a_runner_of_saved_files(session: engines.Session, tmp_path: Path) -> None:
    _assert_close(*session.call(f"{FUNCTIONS}:saved_and_loaded", {"folder": str(tmp_path)}))


def test_wrong_inputs_are_refused(session: engines.Session) -> None:
    refused = session.call(f"{FUNCTIONS}:refusals")
    assert all(refused.values()), refused
    assert "1 input given" in refused["too few"]
    assert "float64" in refused["type"]


def test_an_input_that_nothing_reads(session: engines.Session) -> None:
    _assert_close(*session.call(f"{FUNCTIONS}:unused_input"))


def test_a_profile_says_where_the_time_goes() -> None:
    """Which functions, called how often; what is made of their times is seen below."""
    with engines.Session(engines.CURRENT) as session:
        found = session.call(f"{FUNCTIONS}:profile")
    operators, alone = found["operators"], found["alone"]
    assert sorted(each["calls"] for each in operators) == [1, 2]
    assert len({each["name"] for each in operators}) == 2
    assert all(each["milliseconds"] > 0 for each in operators)
    assert sum(each["share"] for each in operators) == pytest.approx(1)
    assert all(found["known"]) and found["same"]
    assert alone.keys() == {each["name"] for each in operators}
    assert all(milliseconds > 0 for milliseconds in alone.values())


class _Machine:
    """Stands in for a `RelaxRunner` whose model calls these functions, one after the other."""

    def __init__(self, *calls: tuple[str, Callable[[], None]]):
        self._calls = calls
        self._watch: Callable[..., int] = lambda *_: 0

    @contextmanager
    def instrumented(self, watch: Callable[..., int]) -> Iterator[None]:
        self._watch = watch
        yield
        self._watch = lambda *_: 0

    def sync(self) -> None:
        pass

    def run(self) -> None:
        for name, function in self._calls:
            self._watch(function, name, True, None)
            function()
            self._watch(function, name, False, None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    clock.patch(monkeypatch)
    return clock


def test_a_profile_is_of_the_median_run_and_largest_first(clock: Clock) -> None:
    small = clock.callable([500, 3, 1, 2, 9, 2])
    # Two calls a run: 8, 6, 7, 100 and 5 ms after the run that is not counted.
    large = clock.callable([700, 700, 4, 4, 5, 1, 3, 4, 99, 1, 2, 3])
    builtin = clock.callable([50])
    machine = _Machine(
        ("small", small), ("large", large), ("vm.builtin.copy", builtin), ("large", large)
    )
    first, second = profile_operators(machine, runs=5)
    assert (first.name, first.calls) == ("large", 2)
    assert (second.name, second.calls) == ("small", 1)
    assert [first.milliseconds, second.milliseconds] == pytest.approx([7, 2], rel=1e-3)
    assert [first.share, second.share] == pytest.approx([7 / 9, 2 / 9], rel=1e-3)


def test_alone_is_the_median_of_the_later_calls(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many come before that do not count; the machine's own functions are left out."""
    monkeypatch.setitem(sys.modules, "tvm", SimpleNamespace())  # it would copy operands
    runs = [50] * 2
    small = clock.callable([*runs, 9, 9, 9, 8, 1, 2])
    large = clock.callable([*runs, *runs, 9, 9, 9, 20, 4, 5, 9, 9, 9, 3, 30, 6])
    builtin = clock.callable([50], "builtin")
    machine = _Machine(
        ("small", small), ("large", large), ("vm.builtin.copy", builtin), ("large", large)
    )
    alone = time_alone(machine, repeats=3)
    assert alone == pytest.approx({"small": 2, "large": 5 + 6}, rel=1e-3)
    assert clock.order.count("builtin") == len(runs)
