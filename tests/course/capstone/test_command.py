"""`tvm-practice capstone` and `submit`, the report, and the page's commands."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.browser import opened
from tests.pages import run_blocks
from tvm_practice.course.__main__ import main
from tvm_practice.course.capstone import command
from tvm_practice.course.capstone.report import write_report
from tvm_practice.course.capstone.running import Result
from tvm_practice.course.capstone.submission import make_submission, read_submission

ROOF = {"peak_gflops": 100.0, "memory_gbps": 10.0, "cache_gbps": 40.0}
CASE = {
    "class": "square", "size": [509, 517, 251], "drawn": False, "threads": 1,
    "milliseconds": 1.5, "torch_milliseconds": 1.2, "gflops": 88.0, "limit_gflops": 100.0,
    "share": 0.88, "speedup": 0.8, "points": 83.9,
}  # fmt: skip


def result(track: str = "product") -> Result:
    cases = [CASE, {**CASE, "drawn": True}, {**CASE, "threads": 2}]
    return Result(track, "scored", score=83.9, tier="gold", cases=cases, disturbance="a game")


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without measuring: what `product` gets, and the others, is told."""

    def run_track(track: str, *_: Any, **__: Any) -> Result:
        return result() if track == "product" else Result(track, "refused", "expected: x")

    monkeypatch.setattr(command, "run_track", run_track)
    monkeypatch.setattr(command, "machine_roofs", lambda: {"1": ROOF})


def test_a_score_is_told_in_80_columns(scored: None) -> None:
    told = CliRunner().invoke(main, ["capstone", "product", "--solutions", "--seed", "7"])
    assert told.exit_code == 0, told.output
    assert "product: 83.9, gold" in told.output and "seed 7" in told.output
    assert "the machine was busy: a game" in told.output
    assert max(map(len, told.output.splitlines())) <= 80


def test_a_refusal_has_exit_code_1(scored: None) -> None:
    told = CliRunner().invoke(main, ["capstone", "attention", "--solutions"])
    assert told.exit_code == 1 and "expected: x" in told.output


def test_a_stub_is_to_do_and_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "machine_roofs", lambda: pytest.fail("measured"))
    told = CliRunner().invoke(main, ["capstone", "product"])
    assert told.exit_code == 1 and "product: to do in" in told.output


def test_an_unknown_track_is_a_mistake() -> None:
    told = CliRunner().invoke(main, ["capstone", "sorting"])
    assert told.exit_code == 2 and "sorting" in told.output


def test_what_is_handed_in_is_what_was_scored(scored: None, tmp_path: Path) -> None:
    out = tmp_path / "ada.json"
    told = CliRunner().invoke(main, ["submit", "--solutions", "--out", str(out)])
    assert told.exit_code == 0, told.output
    found = read_submission(out)
    assert found.is_whole and list(found.results) == ["product"]
    assert found.code == command.answers_file(solutions=True).read_text()
    assert found.machine["packages"]["apache-tvm"]


def test_nothing_is_handed_in_without_a_score(scored: None, tmp_path: Path) -> None:
    out = tmp_path / "ada.json"
    told = CliRunner().invoke(main, ["submit", "attention", "--solutions", "--out", str(out)])
    assert told.exit_code == 1 and not out.exists()


def test_a_report_keeps_the_learners_words(tmp_path: Path) -> None:
    handed_in = make_submission("code", 7, [result()], {"processor": "x"}, {"1": ROOF})
    file = write_report(handed_in, tmp_path)
    text = file.read_text()
    assert "## product: 83.9, gold" in text and "(509, 517, 251), drawn" in text
    file.write_text(text.replace("## What limits it", "## What limits it\n\nThe cache, I think."))
    again = make_submission("code", 8, [result()], {"processor": "y"}, {"1": ROOF})
    assert write_report(again, tmp_path) == file
    text = file.read_text()
    assert "The cache, I think." in text and "seed 8" in text and "seed 7" not in text
    assert text.count("## product") == 1


@pytest.mark.pages
def test_the_plot_opens_without_errors(tmp_path: Path) -> None:
    handed_in = make_submission("code", 7, [result()], {}, {"1": ROOF})
    write_report(handed_in, tmp_path)
    with opened(tmp_path / "score.svg") as (found, errors):
        assert not errors and found.locator("svg").count() == 1


@pytest.mark.pages
@pytest.mark.slow
def test_the_page_from_an_answer_to_the_leaderboard(tmp_path: Path) -> None:
    run_blocks("capstone.md", tmp_path)
    handed_in = json.loads((tmp_path / "class" / "ada.json").read_text())
    assert handed_in["results"]["product"]["status"] == "scored"
    assert ">ada<" in (tmp_path / "leaderboard.html").read_text()
