"""The engine that a tuner belongs to."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.conftest import Processes
from tvm_practice import engines

ENGINE_OF: dict[str, engines.Engine] = {
    "autotvm": "classic",
    "ansor": "classic",
    "metaschedule": "current",
}
# What the fixture `process_for` gives.
TunersProcesses: TypeAlias = Callable[[str], engines.Session]


def engine_of(tuner: str) -> engines.Engine:
    """The engine of a tuner; skips the test where it is not installed."""
    engine = ENGINE_OF[tuner]
    if reason := engines.unavailable_reason(engine):
        pytest.skip(reason)
    return engine


@pytest.fixture
def process_for(process_of: Processes) -> TunersProcesses:
    """The process of a tuner's engine that all tests share."""
    return lambda tuner: process_of(engine_of(tuner))
