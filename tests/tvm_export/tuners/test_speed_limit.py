"""A trial that is faster than the machine is refused, and the peak is asked for only then."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.engines.host import Host
from tvm_practice.tvm_export.tuners.speed_limit import SpeedLimit


@pytest.fixture(autouse=True)
def two_threads_of_16_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "2")
    monkeypatch.setattr(engines, "host", lambda: Host("x86-64-v4", 16, 32, 2))


def test_a_speed_that_any_processor_reaches_is_not_questioned() -> None:
    limit = SpeedLimit(lambda: pytest.fail("measured"))
    assert limit.why_not(2 * 16 * 2 * 2) is None


def test_more_than_the_peak_is_refused() -> None:
    said = SpeedLimit(lambda: 300.0).why_not(289554.9)
    assert said == (
        "289555 GFLOP/s is more than this processor's 300: the measurement was disturbed"
    )


def test_a_peak_that_was_measured_at_a_busy_moment_is_measured_again() -> None:
    peaks = iter([150.0, 300.0])
    limit = SpeedLimit(lambda: next(peaks))
    assert limit.why_not(160) is None  # within 10%
    assert limit.why_not(290) is None
    assert next(peaks, None) is None


def test_a_peak_is_measured_some_times_before_a_trial_is_refused() -> None:
    """Beside other programs each measurement may be too low."""
    peaks = iter([110.0, 120.0, 200.0])
    assert SpeedLimit(lambda: next(peaks)).why_not(190) is None


@pytest.mark.pages
def test_a_search_refuses_what_cannot_be(process_of: Processes) -> None:
    """By way of a tuner: its trials are a million times as fast as they were."""
    said = process_of(engines.CURRENT).call(
        "tests.tvm_export.tuners.speed_limit_functions:error_without_a_peak", {}
    )
    assert "is more than this processor's" in said
