"""Shared by all tests."""

import signal
from collections.abc import Iterator

import pytest

from tvm_practice.course.grading import Grader

# A run in the background of a script ignores Ctrl-C, and so would every process that it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kills",
        type=int,
        default=1,
        help="how often test_kill.py kills each export, which tunes for six trials a kill",
    )


@pytest.fixture(scope="session")
def grader() -> Iterator[Grader]:
    """Grades exercises; keeps one process an engine for the whole run."""
    with Grader() as open_grader:
        yield open_grader
