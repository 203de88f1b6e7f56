"""The page of scores: sorted, without those that were tampered with, sound in a browser."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.browser import opened
from tvm_practice.course.__main__ import main
from tvm_practice.course.capstone.running import Result
from tvm_practice.course.capstone.submission import make_submission

MACHINE = {"processor": "Some processor with a long name @ 2.80GHz", "cores_physical": 2}


def hand_in(folder: Path, name: str, **scores: float) -> Path:
    results = [Result(track, "scored", score=score) for track, score in scores.items()]
    content = make_submission("code", 1, results, MACHINE, {}).model_dump()
    file = folder / f"{name}.json"
    file.write_text(json.dumps(content))
    return file


@pytest.fixture
def page(tmp_path: Path) -> Path:
    folder = tmp_path / "class"
    folder.mkdir()
    hand_in(folder, "ada", product=55.0, depthwise=40.0, attention=30.5)
    hand_in(folder, "<b>bob</b>".replace("/", ""), product=61.25)
    hand_in(folder, "cy", attention=99.0)
    eve = hand_in(folder, "eve", product=10.0)
    eve.write_text(eve.read_text().replace("10.0", "90.0"))
    (folder / "fay.json").write_text("{")
    out = tmp_path / "page.html"
    result = CliRunner().invoke(main, ["leaderboard", str(folder), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "3 placed, 2 left out" in result.output
    return out


def test_the_best_is_first_and_the_tampered_has_no_place(page: Path) -> None:
    text = page.read_text()
    assert text.index(">ada<") < text.index(">cy<") < text.index("&lt;b&gt;bob&lt;b&gt;")
    without = text.partition("Without a place")[2]
    assert "eve: its digest does not match" in without and "fay: fay.json is no sub" in without
    assert "125.5" in text and "Some processor" in text
    assert "http" not in text  # nothing is fetched


def test_a_folder_without_submissions_is_a_mistake(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = CliRunner().invoke(main, ["leaderboard", str(tmp_path), "--out", str(out)])
    assert result.exit_code == 2 and "no .json file" in result.output and not out.exists()


@pytest.mark.pages
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_errors(page: Path, width: int) -> None:
    with opened(page, width=width) as (found, errors):
        assert not errors, errors
        assert found.evaluate("document.documentElement.scrollWidth") <= width
        assert found.locator("tbody tr").count() == 3
