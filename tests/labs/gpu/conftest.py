"""Shared by the tests of tvm_practice.labs.gpu."""

from collections.abc import Iterator

import pytest

from tvm_practice import engines


@pytest.fixture(scope="package")
def current() -> Iterator[engines.Session]:
    """A child process with the current engine, one for all of them."""
    with engines.Session(engines.CURRENT) as opened:
        yield opened
