"""Shared by all tests."""

import contextlib
import os
import random
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias

import pytest

from tests import forks, leaks
from tvm_practice import engines
from tvm_practice.course.grading import Grader
from tvm_practice.measure import ACCEPT_LOAD
from tvm_practice.tvm_export.rules.first_match import STRICT

# A mistake in a default rule is an error of the test, here and in the processes that it starts.
os.environ[STRICT] = "1"

# After a call a thread of TVM, OpenMP or numpy would wait for the next one busily, and take a
# core's time from other tests. numpy's OpenBLAS waits 2**n clock ticks; 4 is the least n it takes.
os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "0")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# Two test processes are a busy machine; what they measure is not published.
os.environ[ACCEPT_LOAD] = "1"

# A run in the background of a script ignores Ctrl-C, and so would every process that it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_NO_CLASSIC = engines.unavailable_reason(engines.CLASSIC)
needs_classic = pytest.mark.skipif(_NO_CLASSIC is not None, reason=str(_NO_CLASSIC))

# Fewer tests are over before the servers have imported all that they might need.
_WORTH_SERVERS = 20
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
        "--real-processes",
        action="store_true",
        help="start each process, where else it is forked from one that has imported its packages",
    )
    parser.addoption(
        "--without-processes", action="store_true", help="skip tests that start a Python process"
    )
    parser.addoption(
        "--seed",
        type=int,
        help="draw the checks' inputs as the grading did whose failure named this seed",
    )
    parser.addoption(
        "--draw",
        metavar="TEXT",
        help="of each test that is marked `drawn`, a fifth of its cases: TEXT decides which",
    )
    parser.addoption(
        "--refresh-golden",
        action="store_true",
        help="write the loop nests of tests/tvm_export/rules/golden as the rules make them now",
    )


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):
        _fork_processes(config)
    if forks.ADDRESS in os.environ:  # a worker of pytest-xdist
        forks.use()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.draw is not None:
        drawn_from = [each for each in items if each.get_closest_marker("drawn")]
        left = set(not_drawn(drawn_from, config.option.draw))
        items[:] = [each for each in items if each not in left]
        config.hook.pytest_deselected(items=list(left))


def not_drawn(items: list[pytest.Item], text: str) -> list[pytest.Item]:
    """All but a fifth of the cases of each test; `text` decides which."""
    cases: dict[str, list[pytest.Item]] = {}
    for each in items:
        cases.setdefault(each.nodeid.partition("[")[0], []).append(each)
    return [
        each
        for test, some in cases.items()
        for each in random.Random(f"{text} {test}").sample(some, 4 * len(some) // 5)
    ]


def pytest_collection_finish(session: pytest.Session) -> None:
    if len(session.items) >= _WORTH_SERVERS:
        _fork_processes(session.config)


def _fork_processes(config: pytest.Config) -> None:
    """Have the processes of this run forked (tests/forks), unless that is done or not wanted."""
    options = config.option
    wanted = not (options.real_processes or options.without_processes)
    if wanted and sys.platform.startswith("linux") and forks.ADDRESS not in os.environ:
        opened = contextlib.ExitStack()
        opened.enter_context(forks.servers())
        config.add_cleanup(opened.close)
        forks.use()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    how: contextlib.AbstractContextManager[None]
    if item.config.option.without_processes:
        how = forks.skipped()
    elif item.get_closest_marker("real_processes"):
        how = forks.real()
    else:
        how = contextlib.nullcontext()
    with how:
        return (yield)


@pytest.fixture(autouse=True, scope="module")
def module_leaves_no_variables() -> Iterator[None]:
    """Also what a module's own fixtures set is gone when its tests are over."""
    with leaks.forbidden():
        yield


@pytest.fixture(autouse=True)
def no_variables_left() -> Iterator[None]:
    """A variable left behind reaches all later tests; some have these start their processes."""
    with leaks.forbidden():
        yield


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


@pytest.fixture(scope="module", params=engines.ENGINES)
def session(request: pytest.FixtureRequest, process_of: Processes) -> engines.Session:
    """The process that `process_of` gives, of each engine in turn."""
    if reason := engines.unavailable_reason(request.param):
        pytest.skip(reason)
    return process_of(request.param)
