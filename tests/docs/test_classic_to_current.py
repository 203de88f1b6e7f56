"""Both sides of every pair of docs/classic-to-current.md run and leave the same result."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pages import ROOT
from tvm_practice import engines

PAGE = ROOT / "docs" / "classic-to-current.md"
_BLOCK = re.compile(r'^```python(?: title="(\w+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Pair:
    """Two snippets under one heading, each with the page's lines that come before it."""

    heading: str
    classic: str
    current: str


def pairs(text: str) -> list[Pair]:
    """The page's pairs. A block of no engine, and the first pair, come before all that follow."""
    found: list[Pair] = []
    before = {"classic": "", "current": ""}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        here: dict[str, str] = {}
        for engine, source in _BLOCK.findall(section):
            if engine:
                here[engine] = source
            else:
                before = {each: f"{prelude}{source}\n" for each, prelude in before.items()}
        if not here:
            continue
        assert set(here) == {"classic", "current"}, section
        whole = {each: before[each] + here[each] for each in here}
        if not found:
            before = whole
        found.append(Pair(section.splitlines()[0], **whole))
    return found


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[engines.Engine, engines.Session]]:
    if reason := engines.unavailable_reason("classic"):
        pytest.skip(reason)
    with engines.Session("classic") as classic, engines.Session("current") as current:
        yield {"classic": classic, "current": current}


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize("pair", pairs(PAGE.read_text()), ids=lambda pair: pair.heading)
def test_both_sides_leave_the_same_result(
    pair: Pair, sessions: dict[engines.Engine, engines.Session], tmp_path: Path
) -> None:
    results: list[Any] = []
    for engine, source in zip(engines.ENGINES, (pair.classic, pair.current), strict=True):
        arguments = {"source": source, "folder": str(tmp_path)}
        results.append(sessions[engine].call("tests.docs.functions:run_source", arguments))
    assert_same(*results)


def assert_same(classic: Any, current: Any) -> None:
    """Equal, floats to rounding; nested lists element by element."""
    if isinstance(classic, list) and isinstance(current, list):
        assert len(classic) == len(current), f"{classic}\n{current}"
        if classic and isinstance(classic[0], float | list) and _is_array(classic):
            np.testing.assert_allclose(classic, current, rtol=1e-4, atol=1e-5)
            return
        for one, other in zip(classic, current, strict=True):
            assert_same(one, other)
    else:
        assert type(classic) is type(current) and classic == current


def _is_array(value: list[Any]) -> bool:
    try:
        return np.asarray(value).dtype.kind == "f"
    except ValueError:  # ragged
        return False


def test_a_page_is_read_as_pairs() -> None:
    """At least twenty, each with what comes before it."""
    found = pairs(PAGE.read_text())
    assert len(found) >= 20
    assert all("def matmul" in each.classic and "def run(" in each.current for each in found)
    assert "torch.manual_seed" not in found[1].classic and "torch." in found[-1].classic


def test_results_that_differ_are_told() -> None:
    assert_same([[1.0, 2.0], ["serial 4"]], [[1.0, 2.0 + 1e-7], ["serial 4"]])
    for other in ([[1.0, 2.1], ["serial 4"]], [[1.0, 2.0], ["serial 8"]], [[1.0], ["serial 4"]]):
        with pytest.raises(AssertionError):
            assert_same([[1.0, 2.0], ["serial 4"]], other)
