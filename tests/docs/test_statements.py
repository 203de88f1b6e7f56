"""Statements of the course's pages that no run prints and no exercise checks."""

from typing import Any

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.docs.statements_functions"
AVX512 = {"kind": "llvm", "mcpu": "skylake-avx512"}
AVX2 = {"kind": "llvm", "mcpu": "haswell"}
NEON = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


def _arithmetic(session: engines.Session, target: dict[str, Any], columns: int) -> dict[str, int]:
    arguments = {"target": target, "columns": columns}
    found: dict[str, int] = session.call(f"{FUNCTIONS}:arithmetic", arguments)
    return found


def test_avx512_masks_guarded_lanes(session: engines.Session) -> None:
    """docs/phases/2-manual_schedule.md: "Vectors need equal work"."""
    found = _arithmetic(session, AVX512, 101)
    assert found["masked"] > 0 == found["single"] < found["vectors"]
    assert _arithmetic(session, AVX512, 96)["masked"] == 0


@pytest.mark.parametrize("target", [AVX2, NEON], ids=["AVX2", "NEON"])
def test_others_do_without_masks(session: engines.Session, target: dict[str, Any]) -> None:
    """docs/phases/2-manual_schedule.md: "Vectors need equal work"."""
    odd, even = (_arithmetic(session, target, columns) for columns in (101, 100))
    assert odd["single"] > odd["vectors"] and even["vectors"] > even["single"] == 0
    assert odd["masked"] == even["masked"] == 0


def test_a_sum_is_bound_to_threads_and_nothing_else(session: engines.Session) -> None:
    """docs/practice/puzzles.md: the answer to the key question."""
    assert session.call(f"{FUNCTIONS}:accepted_on_a_sum", {}) == ["bind threadIdx.x"]


def test_a_sum_in_another_order_rounds_differently(session: engines.Session) -> None:
    """docs/phases/1-te_basics.md and docs/practice/puzzles.md."""
    differences = session.call(f"{FUNCTIONS}:differences_of_a_reordered_sum", {})
    assert 0 < max(differences) < 1e-4
