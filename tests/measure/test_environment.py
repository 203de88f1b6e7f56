"""The record of the machine that goes with every figure."""

import importlib.metadata
import json
import platform
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from tvm_practice.measure import environment
from tvm_practice.measure.environment import cache_bytes


def test_it_is_json_and_says_what_machine() -> None:
    record = json.loads(json.dumps(environment()))
    assert record["machine"] == platform.machine()
    assert record["python"] == platform.python_version()
    assert record["cores_logical"] == psutil.cpu_count()
    assert record["processor"]
    assert record["memory_gib"] == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.1)
    assert datetime.fromisoformat(record["date"]).tzinfo is not None


def test_versions_are_those_installed() -> None:
    packages = environment()["packages"]
    assert packages["numpy"] == importlib.metadata.version("numpy")
    assert packages["apache-tvm"] == importlib.metadata.version("apache-tvm")


def test_a_package_that_is_missing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert set(environment()["packages"].values()) == {None}


def test_threads_are_those_that_tvm_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "3")
    assert environment()["threads"] == "3"
    monkeypatch.delenv("TVM_NUM_THREADS")
    assert environment()["threads"] is None


def test_caches_where_the_system_tells_them() -> None:
    sizes = cache_bytes()
    if not Path("/sys/devices/system/cpu/cpu0/cache/index0/size").exists():
        assert sizes == {}
        return
    assert 2**12 <= sizes["L1"] <= 2**20
    levels = [sizes[level] for level in sorted(sizes)]
    assert levels == sorted(levels)


def test_a_system_without_proc_still_has_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    read_text = Path.read_text

    def unreadable(self: Path, *arguments: Any, **options: Any) -> str:
        if self.parts[1] in ("proc", "sys"):
            raise OSError(self)
        return read_text(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", unreadable)
    record = environment()
    assert record["processor"]
    assert record["cache_bytes"] == {}
