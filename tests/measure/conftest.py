"""Shared by the tests of tvm_practice.measure."""

import pytest

from tests.measure.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock in place of the machine's."""
    clock = Clock()
    clock.patch(monkeypatch)
    return clock
