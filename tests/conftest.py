"""Shared by all tests."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tvm_practice import engines
from tvm_practice.course.grading import Grader
from tvm_practice.tvm_export.rules.first_match import STRICT

# A mistake in a default rule is an error of the test, here and in the processes that it starts.
os.environ[STRICT] = "1"

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
        "--refresh-golden",
        action="store_true",
        help="write the loop nests of tests/tvm_export/rules/golden as the rules make them now",
    )


@pytest.fixture(scope="session")
def grader() -> Iterator[Grader]:
    """Grades exercises; keeps one process an engine for the whole run."""
    with Grader() as open_grader:
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
