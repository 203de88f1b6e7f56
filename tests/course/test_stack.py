"""Later phases stand on the learner's functions where they pass."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import solutions.manual_schedule
import tvm_practice.te_basics
from tests.course.conftest import Tree
from tvm_practice import engines
from tvm_practice.course.catalog import MODULES, SOLUTIONS, find, phase
from tvm_practice.course.phase import run_phase
from tvm_practice.course.stack import earlier, stand_on, statuses, told


@pytest.fixture
def matmul_passes() -> Iterator[None]:
    stand_on(["te_basics.matmul"])
    yield
    stand_on([])


@pytest.mark.usefixtures("matmul_passes")
def test_a_function_that_passes_is_the_learners() -> None:
    assert earlier("te_basics.matmul") is tvm_practice.te_basics.matmul
    assert earlier("manual_schedule.tile") is solutions.manual_schedule.tile


def test_only_what_is_not_known_is_graded(cheap: Tree) -> None:
    cheap.solve("matmul", "packed_matmul")
    found = statuses(phase("schedule_analysis"), {"manual_schedule.tile_classic": "failed"})
    assert found == {
        "te_basics.matmul": "passed",
        "manual_schedule.tile": "todo",
        "manual_schedule.vectorize": "todo",
        "manual_schedule.parallelize": "todo",
        "manual_schedule.packed_matmul": "passed",
        "manual_schedule.tile_classic": "failed",
    }
    assert told(found) == (
        "your matmul, packed_matmul; the reference tile (to do), vectorize (to do), parallelize "
        "(to do), tile_classic (wrong)"
    )
    assert len(cheap.graded) == 2
    statuses(phase("schedule_analysis"), {"manual_schedule.tile_classic": "failed"})
    assert len(cheap.graded) == 2, "what was graded is remembered"


def test_a_run_names_what_it_stands_on_and_all_that_is_to_do(
    cheap: Tree,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given: list[Any] = []

    def call(engine: str, function: str, arguments: dict[str, Any]) -> dict[str, Any]:
        given.append(arguments["passing"])
        return {"figures": {}, "todo": [], "failed": {}}

    monkeypatch.setattr(engines, "call", call)
    cheap.solve("matmul", "time_function")
    run_phase("schedule_analysis", out=tmp_path)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "From earlier phases: your matmul; the reference tile (to do), vectorize (to do), "
        "parallelize (to do), packed_matmul (to do), tile_classic (to do)." in said
    )
    assert given == [["te_basics.matmul"]] * 2
    left = {each.name for each in phase("schedule_analysis").exercises} - {"time_function"}
    assert f"To do in tvm_practice/schedule_analysis.py: {', '.join(sorted(left))}." in said
    run_phase("schedule_analysis", source=SOLUTIONS, out=tmp_path)
    said = capsys.readouterr().out
    assert "From earlier phases" not in said and "To do" not in said and given[-1] == []


def test_a_phase_stands_on_what_is_before_it() -> None:
    for module in MODULES:
        for each in phase(module).builds_on:
            assert MODULES.index(find(each).phase) < MODULES.index(module)
