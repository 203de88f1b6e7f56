"""The space of register tiles: what is measured next, and a search of it for real."""

import math
from pathlib import Path

import pytest

from tvm_practice import engines
from tvm_practice.tvm_export.rules.cpu.contraction import TileChoice
from tvm_practice.tvm_export.tuners.tile_space import next_choices

FUNCTIONS = "tests.tvm_export.tuners.search_functions"
RANKED = [TileChoice(rows, vectors) for rows in (6, 8, 4) for vectors in (2, 1, 4)]


def test_the_first_are_those_ranked_first() -> None:
    assert next_choices(RANKED, {}, 3) == RANKED[:3]


def test_later_ones_are_by_turns_beside_the_fastest_and_the_next_by_rank() -> None:
    times = {RANKED[0]: 2.0, RANKED[1]: 1.0, RANKED[2]: math.inf}
    following = next_choices(RANKED, times, 4)
    assert following[0] == TileChoice(6, 1, unroll=2)  # beside the fastest
    assert following[1::2] == RANKED[3:5]
    assert not set(following) & set(times)


def test_what_is_foreseen_has_its_turn() -> None:
    foreseen = [TileChoice(3, 3), RANKED[0], TileChoice(5, 3)]
    assert next_choices(RANKED, {}, 4, foreseen=foreseen) == [
        *(foreseen[0], RANKED[0]),  # nothing is beside the fastest yet
        *(foreseen[2], RANKED[1]),
    ]
    times = {foreseen[0]: 2.0, RANKED[0]: 1.0}
    following = next_choices(RANKED, times, 3, foreseen=foreseen)
    assert following == [foreseen[2], TileChoice(6, 2, unroll=2), RANKED[1]]


def test_a_neighbour_that_does_not_fit_is_none() -> None:
    narrow = [TileChoice(2, 8)]
    following = next_choices(narrow, {narrow[0]: 1.0}, 100)
    assert {(each.rows, each.vectors) for each in following} == {(2, 8)}
    assert TileChoice(2, 8, rows_first=True) in following


def test_a_space_ends() -> None:
    times: dict[TileChoice, float] = {}
    while choices := next_choices(RANKED, times, 7):
        times |= dict.fromkeys(choices, math.inf)
    assert set(RANKED) <= set(times)


@pytest.mark.pages
def test_a_search_goes_on_from_its_records(tmp_path: Path) -> None:
    """Nothing is measured twice, and what is found is right, edges included."""
    arguments = {"tuner": "metaschedule", "log": str(tmp_path / "log")}
    arguments["search"] = {"space": "register-tiles"}  # type: ignore[assignment]
    with engines.Session(engines.CURRENT) as session:
        for trials in (3, 6):
            found = session.call(f"{FUNCTIONS}:export", arguments | {"trials": trials})
            assert found["tuning"]["trials"] == trials and found["tuning"]["errors"] == 0
            assert found["error"] < 1e-5
    decisions = [str(trace[1]) for trace in found["traces"]]
    assert len(set(decisions)) == 6
