"""Waiting for idle threads, and standing clear of those that are bound to a core."""

import hashlib
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.measure.clock import Clock
from tvm_practice.measure import quiesce, threads

on_two_linux_cores = pytest.mark.skipif(
    not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two cores",
)


def test_quiesce_waits_for_a_spinning_thread(clock: Clock) -> None:
    clock.spinning_until = clock.now + 0.1
    started = clock.now
    quiesce()
    assert 0.1 <= clock.now - started < 0.13


def test_quiesce_gives_up(clock: Clock) -> None:
    clock.spinning_until = clock.now + 1000
    started = clock.now
    quiesce(limit=0.3)
    assert clock.now - started == pytest.approx(0.3)


def test_quiesce_returns_at_once_when_nothing_works(clock: Clock) -> None:
    started = clock.now
    quiesce()
    assert clock.now - started < 0.02


def test_quiesce_sees_real_threads() -> None:
    """On the machine's own clocks: it ends only after the threads have."""
    deadline = time.perf_counter() + 0.3

    def work() -> None:
        while time.perf_counter() < deadline:
            hashlib.sha256(bytes(500_000))  # without the interpreter's lock

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    quiesce(limit=30)
    assert time.perf_counter() >= deadline
    for worker in workers:
        worker.join()


class BoundThread:
    """A sleeping thread that is bound to a core."""

    def __init__(self, core: int):
        self._end = threading.Event()
        bound = threading.Event()

        def sleep() -> None:
            os.sched_setaffinity(0, {core})
            bound.set()
            self._end.wait()

        self._thread = threading.Thread(target=sleep)
        self._thread.start()
        bound.wait()

    def end(self) -> None:
        self._end.set()
        self._thread.join()


def core_of_this_thread() -> int:
    stat = Path(f"/proc/self/task/{threading.get_native_id()}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[36])  # "processor" of proc(5)


@on_two_linux_cores
def test_the_caller_leaves_a_core_that_a_worker_is_bound_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed = os.sched_getaffinity(0)
    taken = min(allowed)
    worker = BoundThread(taken)
    set_affinity = os.sched_setaffinity
    moved_to = []

    def note_where(thread: int, cores: set[int]) -> None:
        set_affinity(thread, cores)
        if cores != allowed:  # else any core is right: another program may need this one
            moved_to.append(core_of_this_thread())

    monkeypatch.setattr(os, "sched_setaffinity", note_where)
    try:
        assert taken in threads.bound_cores()
        set_affinity(0, {taken})  # it is on the worker's core now
        set_affinity(0, allowed)
        threads._stand_clear()
        assert os.sched_getaffinity(0) == allowed
    finally:
        set_affinity(0, allowed)
        worker.end()
    assert moved_to
    assert taken not in moved_to


@on_two_linux_cores
def test_the_caller_may_go_anywhere_again() -> None:
    """A pool that starts during the next call inherits the caller's cores."""
    allowed = os.sched_getaffinity(0)
    worker = BoundThread(max(allowed))
    try:
        quiesce()
        assert os.sched_getaffinity(0) == allowed
    finally:
        worker.end()


@on_two_linux_cores
def test_workers_on_every_core_are_no_error() -> None:
    allowed = os.sched_getaffinity(0)
    workers = [BoundThread(core) for core in allowed]
    try:
        quiesce()
        assert os.sched_getaffinity(0) == allowed
    finally:
        for worker in workers:
            worker.end()


def test_a_system_without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(threads, "_TASKS", tmp_path / "missing")
    quiesce()
