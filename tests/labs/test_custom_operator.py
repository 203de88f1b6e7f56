"""What lab 7 is built on: numpy on TVM's memory, a backend whose work can be saved."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tvm_practice import engines

FUNCTIONS = "tests.labs.custom_operator_functions"


@pytest.fixture(scope="module")
def session() -> Iterator[engines.Session]:
    with engines.Session(engines.CURRENT) as opened:
        yield opened


def test_a_view_is_no_copy(session: engines.Session) -> None:
    seen = session.call(f"{FUNCTIONS}:views", {})
    assert seen["shared"] == [True, True] and "strides" in seen["refused"]


@pytest.mark.slow
def test_the_operator_is_one_node_of_both_records(session: engines.Session) -> None:
    records = session.call(f"{FUNCTIONS}:records", {})
    assert records == {"traced": 2, "exported": 2}


@pytest.mark.pages
@pytest.mark.slow
def test_an_offloaded_model_is_saved_and_loaded(session: engines.Session, tmp_path: Path) -> None:
    """In another process: without the library's function registered, and with it."""
    library = str(tmp_path / "model.so")
    saved = session.call(f"{FUNCTIONS}:save", {"library": library})
    assert saved["calls"] == 2
    arguments = {"library": library, "x": saved["x"]}
    loaded = engines.call(engines.CURRENT, f"{FUNCTIONS}:load", arguments)
    assert "tvm_practice.linear" in loaded["without"]
    assert loaded["y"] == pytest.approx(saved["y"], rel=1e-4, abs=1e-5)
