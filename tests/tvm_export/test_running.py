"""The runners: values, several outputs, reuse, files, and refusal of wrong inputs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.running_functions"


@pytest.fixture(scope="module", params=engines.ENGINES)
def session(request: pytest.FixtureRequest) -> Iterator[engines.Session]:
    """A process of each engine in turn."""
    if reason := engines.unavailable_reason(request.param):
        pytest.skip(reason)
    with engines.Session(request.param) as opened:
        yield opened


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
    assert "1 inputs given" in refused["too few"]
    assert "float64" in refused["type"]


def test_an_input_that_nothing_reads(session: engines.Session) -> None:
    _assert_close(*session.call(f"{FUNCTIONS}:unused_input"))


def test_a_profile_says_where_the_time_goes() -> None:
    with engines.Session(engines.CURRENT) as session:
        found = session.call(f"{FUNCTIONS}:profile")
    large, small = found["operators"]
    assert (large["calls"], small["calls"]) == (2, 1)
    assert large["milliseconds"] > small["milliseconds"] > 0
    assert large["share"] + small["share"] == pytest.approx(1)
    assert all(found["known"]) and found["same"]
    assert found["alone"].keys() == {each["name"] for each in found["operators"]}
    assert found["alone"][large["name"]] > found["alone"][small["name"]] > 0
