"""A schedule's steps: every primitive, and the loops after it."""

import xml.etree.ElementTree as ET

import pytest

from tests.conftest import Processes, needs_classic
from tvm_practice import engines
from tvm_practice.viz.history import REWRITTEN
from tvm_practice.viz.loop_nest import Loop, Statement
from tvm_practice.viz.nest_picture import changed_lines, nest_svg

FUNCTIONS = "tests.viz.viz_functions"


@pytest.fixture(scope="module")
def current(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


def test_steps_of_a_tile(current: engines.Session) -> None:
    found = current.call(f"{FUNCTIONS}:steps_of", {"name": "tiled+parallel"})
    assert found["primitives"] == [
        "",
        "split(i, factors=[None, 8])",
        "split(j, factors=[None, 16])",
        "reorder(i_0, j_0, k, i_1, j_1)",
        "vectorize(j_1)",
        "fuse(i_0, j_0)",
        "parallel(i_0_j_0_fused)",
    ]
    assert found["nests"][-1] == found["last"]
    assert all(a != b for a, b in zip(found["nests"], found["nests"][1:], strict=False))


@pytest.mark.parametrize("name", ["packed", "sampled"])
def test_replaying_ends_where_the_schedule_is(name: str, current: engines.Session) -> None:
    found = current.call(f"{FUNCTIONS}:steps_of", {"name": name})
    assert found["nests"][-1] == found["last"]
    assert len(found["primitives"]) > 5
    # Loops, blocks and sampled numbers by name and value, not by the trace's variables.
    assert not [each for each in found["primitives"] if "l1," in each or "v1" in each]


def test_what_is_made_of_a_schedule_has_its_steps_and_one_more(current: engines.Session) -> None:
    found = current.call(f"{FUNCTIONS}:steps_of", {"name": "rewritten"})
    assert found["primitives"][1] == "split(i, factors=[None, 8])"
    assert found["primitives"][-1] == REWRITTEN and found["nests"][-1] == found["last"]


@needs_classic
def test_classic_schedules_have_steps_too() -> None:
    found = engines.call("classic", f"{FUNCTIONS}:steps_of", {"name": ""})
    assert found["primitives"] == [
        "", "split", "split", "reorder", "fuse", "parallel", "vectorize"
    ]  # fmt: skip
    assert found["nests"][-1] == found["last"]


NEST: list[Loop | Statement] = [
    Loop("i", 4, "parallel", children=[
        Loop("j", 8, "vectorized", children=[Statement("C", "C", ("A", "B"))]),
        Statement("D", "D", ()),
    ])
]  # fmt: skip


def test_boxes_are_nested_and_say_how_often() -> None:
    svg = nest_svg(NEST, title='a "nest" & more', changed=frozenset(["for j in vectorized(8):"]))
    root = ET.fromstring(svg)
    names = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(name and "its body runs 32 times" in name for name in names)
    assert "D: runs 4 times" in names
    changed = [each for each in root if "changed" in (each.get("class") or "")]
    assert len(changed) == 1
    outer, inner = (
        next(each.iter("{http://www.w3.org/2000/svg}rect"))
        for each in root
        if "loop" in (each.get("class") or "")
    )
    for low, size in (("x", "width"), ("y", "height")):
        assert float(outer.get(low) or 0) < float(inner.get(low) or 0)
        assert float(inner.get(low) or 0) + float(inner.get(size) or 0) < float(
            outer.get(low) or 0
        ) + float(outer.get(size) or 0)


def test_only_what_a_step_changed_is_marked() -> None:
    before = "for i in serial(8):\n    C: C <- A"
    after = "for i_0 in serial(2):\n    for i_1 in serial(4):\n        C: C <- A"
    assert changed_lines(before, after) == {"for i_0 in serial(2):", "for i_1 in serial(4):"}
    assert changed_lines(after, after) == frozenset()
