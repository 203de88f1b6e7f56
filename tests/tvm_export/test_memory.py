"""Memory plans: what is read from the IR is what a run allocates, and what a pool keeps of it."""

from collections.abc import Iterator

import pytest

from tvm_practice import engines
from tvm_practice.tvm_export.memory import PAGE, Event, MemoryPlan, pool_bytes

FUNCTIONS = "tests.tvm_export.memory_functions"


@pytest.fixture(scope="module")
def session() -> Iterator[engines.Session]:
    with engines.Session(engines.CURRENT) as opened:
        yield opened


@pytest.mark.parametrize("n", [1, 100])
def test_the_plan_is_what_the_virtual_machine_allocates(session: engines.Session, n: int) -> None:
    found = session.call(f"{FUNCTIONS}:read", {"n": n})
    assert found["storages"] == found["allocated"] == [4 * 32 * n, 4 * 16 * n]
    assert all("n" in each for each in found["formulas"])


def test_a_view_keeps_its_storage(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:read", {"n": 100})
    # The second product reads the first's result through the view, so both are held.
    assert [held for _, held in found["held"]] == [12_800, 12_800 + 6_400]
    assert found["frees"] == 1  # the result is not given back
    assert found["pool"] == 4 * PAGE + 2 * PAGE


def test_a_symbol_without_a_value_is_named(session: engines.Session) -> None:
    assert session.call(f"{FUNCTIONS}:without_a_value") == "no value given for n"


def _plan(*sizes: int) -> MemoryPlan:
    """Storages that are allocated one after the other, each given back before the next."""
    events = [
        Event(kind, f"s{index}", size)
        for index, size in enumerate(sizes)
        for kind in ("alloc", "run", "free")
    ]
    return MemoryPlan(tuple(events), {})


def test_the_pool_gives_a_block_again_for_the_same_pages_only() -> None:
    assert pool_bytes([_plan(100, PAGE)]) == PAGE
    assert pool_bytes([_plan(100), _plan(PAGE + 1), _plan(100)]) == 3 * PAGE
    assert pool_bytes(_plan(size) for size in (PAGE, 2 * PAGE, 3 * PAGE)) == 6 * PAGE


def test_the_pool_gets_back_what_a_call_returned() -> None:
    kept = MemoryPlan((Event("alloc", "out", PAGE), Event("run", "kernel")), {})
    assert pool_bytes([kept, kept, kept]) == PAGE
