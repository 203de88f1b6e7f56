"""Shared by the tests of tvm_practice.labs.gpu."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines


@pytest.fixture(scope="package")
def current(process_of: Processes) -> engines.Session:
    """A child process with the current engine."""
    return process_of(engines.CURRENT)
