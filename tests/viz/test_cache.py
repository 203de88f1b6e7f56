"""The cache model: against a plain one in Python, and on the course's matmul."""

import stat
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.viz.access import AccessProgram, follow
from tvm_practice.viz.cache import (
    USUAL,
    CacheLevel,
    hardware_misses,
    last_cache,
    machine_caches,
    read_perf,
)

FUNCTIONS = "tests.viz.viz_functions"


@pytest.fixture(scope="module")
def current(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.fixture(scope="module")
def programs(current: engines.Session) -> dict[str, Any]:
    """The course's schedules of a product of 26, a size that no tile divides."""
    drawn = {"size": 26, "rows": 4, "columns": 8}
    made: dict[str, Any] = current.call(f"{FUNCTIONS}:matmul_programs", drawn)
    return made


def _plain(program: AccessProgram, levels: list[CacheLevel]) -> dict[str, dict[str, int]]:
    """The same model, written for clarity: ordered dictionaries as LRU sets."""
    sets = [[OrderedDict[int, None]() for _ in range(level.sets)] for level in levels]
    misses = {level.name: Counter[str]() for level in levels}
    trace = follow(program)
    for number, element in zip(trace.numbers.tolist(), trace.elements.tolist(), strict=True):
        buffer = program.buffers[number]
        if buffer.in_registers:
            continue
        address = buffer.address + element * buffer.item_bytes
        for level, lines in zip(levels, sets, strict=True):
            line = address // level.line_bytes
            held = lines[line % level.sets]
            if line in held:
                held.move_to_end(line)
                break
            misses[level.name][buffer.name] += 1
            held[line] = None
            if len(held) > level.ways:
                held.popitem(last=False)
    return {name: dict(counted) for name, counted in misses.items()}


@pytest.mark.parametrize(
    "levels",
    [
        [CacheLevel("L1", sets=4, ways=2), CacheLevel("L2", sets=16, ways=4)],
        [CacheLevel("L1", sets=1, ways=8, line_bytes=32)],
        [CacheLevel("L1", sets=8, ways=1), CacheLevel("L2", sets=8, ways=3)],
    ],
    ids=["two levels", "fully associative", "direct mapped"],
)
def test_it_counts_what_a_plain_model_counts(
    levels: list[CacheLevel], current: engines.Session, programs: dict[str, Any]
) -> None:
    counted = current.call(
        f"{FUNCTIONS}:cache_counts",
        {
            "programs": programs,
            "levels": [[each.name, each.sets, each.ways, each.line_bytes] for each in levels],
        },
    )
    for name, program in programs.items():
        wanted = _plain(AccessProgram.from_dict(program), levels)
        for level, misses in counted[name]["misses"].items():
            assert {buffer: n for buffer, n in misses.items() if n} == wanted[level], (name, level)


def test_an_index_may_be_the_least_of_two(current: engines.Session) -> None:
    found = current.call(f"{FUNCTIONS}:clamped_misses")
    assert found["accesses"] == {"X": 16, "Y": 16} and found["misses"]["L1"] == {"X": 8, "Y": 16}


@pytest.mark.pages
def test_tiling_saves_most_misses_at_the_courses_size(current: engines.Session) -> None:
    """Five times at least, in usual caches and in this machine's."""
    programs = current.call(f"{FUNCTIONS}:matmul_programs", {"size": 256, "rows": 8, "columns": 32})
    del programs["tiled+parallel"]
    for levels in (USUAL, machine_caches()[0]):
        counted = current.call(
            f"{FUNCTIONS}:cache_counts",
            {
                "programs": programs,
                "levels": [[each.name, each.sets, each.ways, each.line_bytes] for each in levels],
            },
        )
        misses = {name: sum(each["misses"]["L1"].values()) for name, each in counted.items()}
        assert misses["naive"] >= 5 * misses["tiled"]
        accesses = {name: sum(each["accesses"].values()) for name, each in counted.items()}
        assert accesses["packed"] < 0.6 * accesses["tiled"]  # C is in registers


def _describe(folder: Path, index: int, **facts: str) -> None:
    (folder / f"index{index}").mkdir()
    for name, value in facts.items():
        (folder / f"index{index}" / name).write_text(f"{value}\n")


def test_the_systems_description_is_read(tmp_path: Path) -> None:
    common = {"coherency_line_size": "64"}
    _describe(tmp_path, 0, level="1", type="Data", ways_of_associativity="12",
              number_of_sets="64", **common)  # fmt: skip
    _describe(tmp_path, 1, level="1", type="Instruction", ways_of_associativity="8",
              number_of_sets="64", **common)  # fmt: skip
    _describe(tmp_path, 2, level="2", type="Unified", ways_of_associativity="16",
              number_of_sets="2048", **common)  # fmt: skip
    levels, known = machine_caches(tmp_path)
    assert known
    assert levels == (CacheLevel("L1", 64, 12), CacheLevel("L2", 2048, 16))
    assert str(levels[1]) == "L2: 2048 KiB, 16 ways"
    assert last_cache(tmp_path) is None
    _describe(tmp_path, 3, level="3", type="Unified", ways_of_associativity="16",
              number_of_sets="32768", **common)  # fmt: skip
    assert last_cache(tmp_path) == CacheLevel("L3", 32768, 16)
    assert machine_caches(tmp_path) == (levels, True)


def test_a_system_that_tells_nothing_has_usual_caches(tmp_path: Path) -> None:
    assert machine_caches(tmp_path) == (USUAL, False)
    _describe(tmp_path, 0, level="1", type="Data", ways_of_associativity="0",
              number_of_sets="64", coherency_line_size="64")  # fmt: skip
    assert machine_caches(tmp_path) == (USUAL, False)


def test_perfs_output_is_read() -> None:
    lines = "1000,,L1-dcache-loads:u,5,100.00,,\n12,,L1-dcache-load-misses:u,5,100.00,,\n"
    assert read_perf(lines) == {"loads": 1000, "misses": 12}
    missing = "<not supported>,,L1-dcache-loads,0,100.00,,\n"
    assert read_perf(missing) == "no hardware counters: L1-dcache-loads is not supported here"
    assert read_perf("") == "no hardware counters: perf printed none"


def test_perf_is_run_on_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    perf = tmp_path / "perf"
    perf.write_text(
        '#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done; shift\n"$@" >&2\n'
        "echo '7,,L1-dcache-loads,5,100.00,,' >&2\necho '3,,L1-dcache-load-misses,5,100,,' >&2\n"
    )
    perf.chmod(perf.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert hardware_misses(["echo", "hello"]) == {"loads": 7, "misses": 3}
    assert hardware_misses(["false"]) == {"loads": 7, "misses": 3}
    perf.write_text("#!/bin/sh\nexit 3\n")
    assert hardware_misses(["true"]) == "no hardware counters: perf ended with 3"
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert hardware_misses(["true"]) == "no hardware counters: `perf` is not installed"
