"""`tvm-practice review`: which questions come, and what is kept of the answers."""

import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tvm_practice.course.__main__ import main
from tvm_practice.course.catalog import PHASE_MODULES, find
from tvm_practice.course.progress import Progress
from tvm_practice.course.questions import QUESTIONS
from tvm_practice.course.review import chosen


@pytest.fixture
def progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Progress:
    monkeypatch.setenv("TVM_PRACTICE_HOME", str(tmp_path))
    return Progress(print)


def review(*arguments: str, answers: str) -> Result:
    return CliRunner().invoke(main, ["--plain", "review", *arguments], input=answers)


def test_each_phase_has_questions_with_four_different_answers() -> None:
    assert {each.phase for each in QUESTIONS} == set(PHASE_MODULES)
    assert len({each.id for each in QUESTIONS}) == len(QUESTIONS)
    for each in QUESTIONS:
        assert len({each.right, *each.wrong}) == 4, each.id


def test_wrongly_answered_questions_come_first_and_right_ones_last() -> None:
    ids = [each.id for each in QUESTIONS if each.phase == "te_basics"]
    answers = {ids[0]: False, ids[1]: False} | dict.fromkeys(ids[2:4], True)
    for seed in range(5):
        found = [
            each.id for each in chosen(["te_basics"], answers, len(ids) - 2, random.Random(seed))
        ]
        assert set(found) == {*ids[:2], *ids[4:]}
    assert not chosen([], {}, 5, random.Random(0))


def test_answers_are_told_and_kept(progress: Progress) -> None:
    progress.update(find("te_basics.matmul"), passed="now")
    done = review("--seed", "1", "--count", "2", answers="1\n1\n")
    assert done.exit_code == 0 and "of 2 right." in done.output
    assert done.output.count("Phase 1.") == 2 and "Phase 2." not in done.output
    kept = Progress(print).answers
    assert len(kept) == 2
    assert f"{sum(kept.values())} of 2 right." in done.output
    assert done.output.count("  Right.") == sum(kept.values())


def test_a_right_answer_is_one(progress: Progress) -> None:
    """The numbers of the right answers, read from what a run with wrong ones says."""
    numbers = []
    for said in "1234":
        shown = review("--all", "--count", "1", "--seed", "7", answers=f"{said}\n").output
        numbers.append("  Right." in shown)
    assert numbers.count(True) == 1


@pytest.mark.parametrize(
    ("arguments", "answers", "said"),
    [
        ((), "", "nothing to review before an exercise passes"),
        (("--all",), "9\nx\n1\n", "stopped; 4 questions were left"),
    ],
)
def test_it_says_why_it_ends_early(
    arguments: tuple[str, ...], answers: str, said: str, progress: Progress
) -> None:
    done = review(*arguments, answers=answers)
    assert done.exit_code == 1 and said in done.output
