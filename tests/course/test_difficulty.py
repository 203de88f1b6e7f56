"""The stars of an exercise, and that its page shows them."""

import re
from collections import Counter

import pytest

from tests.course.conftest import ROOT
from tvm_practice.course.catalog import Phase, exercises, find, labs, phases
from tvm_practice.course.difficulty import stars, weight


def test_a_weight_is_lines_and_unnamed_lines_and_names() -> None:
    # get_loops, two splits, reorder and return, all of them in hints; three methods.
    assert weight(find("manual_schedule.tile")) == 5 + 0 + 3
    assert stars(find("manual_schedule.tile")) == "★"
    assert stars(find("te_basics.softmax")) == "★★"
    assert stars(find("auto_tune.matmul_template")) == "★★★"


def test_stars_tell_exercises_apart() -> None:
    counts = Counter(stars(each) for each in exercises())
    assert set(counts) == {"★", "★★", "★★★"}
    assert min(counts.values()) >= len(exercises()) // 8


@pytest.mark.parametrize("chapter", [*phases(), *labs()], ids=lambda each: each.module)
def test_a_page_shows_the_stars_of_its_exercises(chapter: Phase) -> None:
    page = (ROOT / chapter.page).read_text()
    shown = dict(re.findall(r"^ *- `(\w+)` (★+)", page, re.MULTILINE))
    assert shown == {each.name: stars(each) for each in chapter.exercises}
