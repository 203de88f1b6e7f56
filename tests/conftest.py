"""Shared by all tests."""

import signal
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tvm_practice import engines
from tvm_practice.course.grading import Grader

# A run in the background of a script ignores Ctrl-C, and so would every process that it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What the fixture `process_of` gives.
Processes: TypeAlias = Callable[[engines.Engine], engines.Session]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kills",
        type=int,
        default=1,
        help="how often test_kill.py kills each export, which tunes for six trials a kill",
    )
    parser.addoption(
        "--seed",
        type=int,
        help="draw the checks' inputs as the grading did whose failure named this seed",
    )


@pytest.fixture(scope="session")
def grader(request: pytest.FixtureRequest) -> Iterator[Grader]:
    """Grades exercises; keeps one process an engine for the whole run."""
    with Grader(request.config.getoption("--seed")) as open_grader:
        yield open_grader


@pytest.fixture(scope="session")
def process_of() -> Iterator[Processes]:
    """The process of an engine for all tests that need none of their own: each costs seconds."""
    opened: dict[engines.Engine, engines.Session] = {}

    def session(engine: engines.Engine) -> engines.Session:
        if engine not in opened:
            opened[engine] = engines.Session(engine)
        return opened[engine]

    yield session
    for each in opened.values():
        each.close()
