"""What `watch` shows of an answer's accesses, in the terminal and on its page."""

import urllib.error
import urllib.request

import pytest

from tests.browser import is_blank, opened
from tests.course.conftest import Tree
from tvm_practice.course.catalog import find
from tvm_practice.course.grading import Grader, Verdict
from tvm_practice.course.sketch import UNTOUCHED, Sketch, described
from tvm_practice.course.telling import reference
from tvm_practice.course.watch_page import WatchPage


def _by_column(grader: Grader, tree: Tree, *, drawn: bool = False) -> Sketch:
    """Of a tile whose inner loops go down the columns, which grader and learner would look at."""
    right = reference(find("tile"))
    order = "schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)"
    assert order in right
    tree.write("tile", right.replace("k, i_inner, j_inner)", "k, j_inner, i_inner)"))
    return grader.sketch(find("tile"), drawn=drawn)


def test_an_answer_and_a_correct_one_are_followed(grader: Grader, tree: Tree) -> None:
    sketch = _by_column(grader, tree)
    yours, correct = (sketch["answers"][name] for name in ("yours", "correct"))
    assert [each["name"] for each in yours["maps"]] == ["A", "B", "C"]
    assert yours["maps"] != correct["maps"]
    # Tiles of 8 x 16 in rows: the first quarter of the products is of the upper quarter of C.
    upper = correct["maps"][2]["cells"]
    assert UNTOUCHED not in "".join(upper[:2]) and set("".join(upper[2:])) == {UNTOUCHED}
    # Every element of C is there once at least: 64 x 48 floats are 192 lines.
    assert all(each["misses"]["8 KiB"]["C"] >= 192 for each in (yours, correct))
    lines = described(sketch, plain=False)
    assert max(map(len, lines)) < 80
    assert [line for line in lines if line.split()[:3] == ["2", "KiB,", "yours"]]
    assert described(sketch, plain=True)[0].endswith("simulated misses in a cache of 2 KiB")


@pytest.mark.parametrize(
    "body",
    ["    undefined", "    raise NotImplementedError", "    while True: pass"],
)
def test_what_cannot_be_followed_has_no_sketch(
    grader: Grader, tree: Tree, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tvm_practice.course.grading._DEMONSTRATION_SECONDS", 5)
    tree.write("tile", f"def tile(schedule, block, rows, columns):\n{body}\n")
    assert grader.sketch(find("tile")) == {}
    assert described({}, plain=False) == []


def test_an_exercise_without_loops_has_no_sketch(grader: Grader, tree: Tree) -> None:
    tree.solve("gflop_per_second")
    assert grader.sketch(find("gflop_per_second")) == {}


def test_the_page_escapes_and_knows_one_address() -> None:
    with WatchPage() as page:
        assert "first check" in _read(page.address)
        message = "expected: x\nseen:     <script>alert(1)</script>"
        page.show(Verdict(find("tile"), "failed", message, gives="- a < b\n+ b\n  c"))
        text = _read(page.address)
        assert "<script>alert" not in text and "&lt;script&gt;" in text
        assert '<span class="gone">- a &lt; b</span>' in text
        assert _read(f"{page.address}version") == "1"
        with pytest.raises(urllib.error.HTTPError):
            _read(f"{page.address}elsewhere")
    with pytest.raises(urllib.error.URLError):
        _read(page.address)


def _read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=20) as answer:
        return str(answer.read().decode())


@pytest.mark.pages
def test_the_page_reloads_itself(grader: Grader, tree: Tree) -> None:
    """In Chromium: no error, another verdict and its pictures appear without a click."""
    tile = find("tile")
    with WatchPage() as page, opened(page.address) as (shown, errors):
        assert shown.title() == "tvm-practice watch"
        page.show(Verdict(tile, "failed", "expected: x", gives="- mine\n+ right"))
        shown.wait_for_function("document.title === 'manual_schedule.tile'")
        assert shown.locator(".gone").inner_text() == "- mine"
        page.show(Verdict(tile, "passed"), _by_column(grader, tree, drawn=True))
        shown.wait_for_selector("figure svg")
        figures = shown.locator("figure > svg").all()
        assert len(figures) == 2
        assert not any(is_blank(each.screenshot()) for each in figures)
        assert "i_0" in shown.locator("#loops").inner_text()
        assert not errors, errors
