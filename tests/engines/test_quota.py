"""No more threads than the control group's quota grants."""

import os
from pathlib import Path

import psutil
import pytest

from tvm_practice import engines
from tvm_practice.engines import selection


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where control groups are mounted; this process is in /a/b of version 2 and of version 1."""
    read = Path.read_text
    lines = "0::/a/b\n4:cpu,cpuacct:/a/b\n3:memory:/elsewhere\n"

    def reading(file: Path, *args: str, **options: str) -> str:
        return lines if str(file) == "/proc/self/cgroup" else read(file, *args, **options)

    monkeypatch.setattr(Path, "read_text", reading)
    monkeypatch.setattr(selection, "_CGROUPS", tmp_path)
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_no_quota(groups: Path) -> None:
    assert selection.quota() is None
    write(groups / "a" / "b" / "cpu.max", "max 100000\n")
    write(groups / "cpu,cpuacct" / "cpu.cfs_quota_us", "-1\n")
    write(groups / "cpu,cpuacct" / "cpu.cfs_period_us", "100000\n")
    assert selection.quota() is None


@pytest.mark.parametrize(
    ("quota", "threads"), [("200000 100000", 2), ("250000 100000", 2), ("50000 100000", 1)]
)
def test_the_quota_of_version_2(groups: Path, quota: str, threads: int) -> None:
    write(groups / "a" / "b" / "cpu.max", quota)
    assert selection.quota() == threads


def test_the_smallest_quota_of_all_groups_counts(groups: Path) -> None:
    write(groups / "a" / "b" / "cpu.max", "400000 100000")
    write(groups / "a" / "cpu.max", "300000 100000")
    assert selection.quota() == 3
    write(groups / "cpu.max", "200000 100000")  # as a container sees its own
    assert selection.quota() == 2


def test_the_quota_of_version_1(groups: Path) -> None:
    write(groups / "cpu,cpuacct" / "cpu.cfs_quota_us", "150000\n")
    write(groups / "cpu,cpuacct" / "cpu.cfs_period_us", "50000\n")
    assert selection.quota() == 3


def test_threads_are_no_more_than_the_quota(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TVM_NUM_THREADS", raising=False)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    assert engines.thread_count() == 64
    write(groups / "a" / "b" / "cpu.max", "400000 100000")
    assert engines.thread_count() == 4
