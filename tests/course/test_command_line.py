"""`tvm-practice`, run in a tree of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from tests.course.conftest import ROOT, Tree
from tests.pages import run_blocks
from tvm_practice.course import board
from tvm_practice.course.__main__ import main
from tvm_practice.course.catalog import exercises, find, modules
from tvm_practice.course.editing import is_stub, line_of, signature
from tvm_practice.course.explaining import key_question
from tvm_practice.course.resetting import stub
from tvm_practice.course.telling import reference

ALL = len(exercises())


def test_a_newcomer_is_told_what_is_next(cheap: Tree) -> None:
    shown = cheap.run().stdout
    line = line_of(cheap.file("te_basics").read_text(), "matmul")
    assert f"0 of {ALL} exercises are done" in shown
    assert "Next: te_basics.matmul" in shown and f"te_basics.py, line {line}" in shown
    assert "tvm-practice watch" in shown and "1-te_basics.md" in shown


@pytest.mark.slow
def test_upgrading_keeps_what_was_solved(tree: Tree) -> None:
    """Before there was a progress file there were only the phases' files."""
    tree.solve("te_basics.matmul", "te_basics.softmax", "manual_schedule.vectorize")
    first = json.loads(tree.run("list", "--json").stdout)
    assert first["done"] == 3 and first["next"] == "te_basics.dense_bias_relu"
    assert sum(each["graded_now"] for each in first["exercises"]) == 3
    second = json.loads(tree.run("list", "--json").stdout)
    assert second["done"] == 3 and not any(each["graded_now"] for each in second["exercises"])


def test_list_grades_only_what_changed(cheap: Tree) -> None:
    cheap.solve("matmul", "tile")
    cheap.botch("softmax")
    shown = cheap.run("list").stdout
    assert f"2 done, 1 wrong, {ALL - 3} to do" in shown and f"2/{ALL}" in shown
    assert cheap.graded == ["te_basics.matmul", "te_basics.softmax", "manual_schedule.tile"]
    cheap.graded.clear()
    cheap.solve("softmax")
    assert f"3 done, {ALL - 3} to do" in cheap.run("list").stdout
    assert cheap.graded == ["te_basics.softmax"]
    cheap.run("list", "--all")
    assert len(cheap.graded) == 4


def test_the_board_fits_a_small_terminal(cheap: Tree) -> None:
    lines = cheap.run("list").stdout.splitlines()
    assert len(lines) <= 23 and max(map(len, lines)) <= 80


def test_the_board_names_adjacent_labs_at_once() -> None:
    keys = ("puzzles", "lab1", "lab2", "lab3", "lab5")
    assert board._keys([each for each in modules() if each.key in keys]) == "puzzles lab1-3 lab5"


def test_list_says_once_what_keeps_a_file_from_being_read(cheap: Tree) -> None:
    cheap.file("te_basics").write_text("def matmul(:\n")
    shown = cheap.run("list").stdout
    assert shown.count("te_basics.py, line 1: SyntaxError") == 1 and "3 wrong" in shown


def test_check_takes_the_next_and_says_what_follows(cheap: Tree) -> None:
    assert "te_basics.matmul is to do" in cheap.run("check", code=1).stdout
    assert cheap.graded == [], "a stub needs no engine"
    cheap.botch("matmul")
    wrong = cheap.run("check", code=1).stdout
    assert "te_basics.matmul is wrong" in wrong and "look at:  z" in wrong and "told" in wrong
    assert "tvm-practice hint matmul" in wrong
    cheap.solve("matmul")
    right = cheap.run("check").stdout
    assert "te_basics.matmul passes" in right and "Next: te_basics.dense_bias_relu" in right
    cheap.solve("dense_bias_relu", "softmax")
    done = cheap.run("check", "dense_bias_relu", "softmax").stdout
    assert "Phase 1, tensor expressions, is done" in done and "practice/puzzles.md" in done
    assert "puzzles.split_loop" in cheap.run("check", code=1).stdout


def test_check_repeats_a_failure(tree: Tree) -> None:
    tree.write("matmul", reference(find("matmul")).replace("B[r, j]", "2 * B[r, j]"))
    wrong = tree.run("check", "matmul", code=1).stdout
    command = re.search(r"again with: tvm-practice (check matmul --seed \d+)\n", wrong)
    assert command is not None and tree.run(*command[1].split(), code=1).stdout == wrong


def test_check_of_the_solutions_is_not_progress(cheap: Tree) -> None:
    assert "matmul passes" in cheap.run("check", "matmul", "--solutions").stdout
    assert not cheap.progress.exists()


def test_each_hint_says_more(cheap: Tree) -> None:
    levels = [cheap.run("hint", "matmul").stdout for _ in range(4)]
    for shown, level in zip(levels, (1, 2, 3, 3), strict=True):
        assert f"Hint {level} of 3: {find('te_basics.matmul').hints[level - 1]}" in shown
    assert "A correct answer gives" in levels[2] and "for k in serial(8)" in levels[2]
    cheap.run("hint", "softmax", "--level", "3")
    assert "Hint 1 of 3" in cheap.run("hint", "softmax").stdout


def test_a_hint_without_a_name_is_for_what_does_not_pass(cheap: Tree) -> None:
    cheap.solve("matmul")
    assert "te_basics.dense_bias_relu" in cheap.run("hint").stdout


def test_reset_puts_the_stub_back_and_keeps_the_text(cheap: Tree) -> None:
    before = cheap.file("te_basics").read_text()
    cheap.solve("matmul", "softmax")
    cheap.run("hint", "matmul")
    shown = cheap.run("reset", "matmul").stdout
    (backup,) = (cheap.progress.parent / "backups").glob("te_basics.matmul.*.py")
    assert backup.name in shown and "te.reduce_axis" in backup.read_text()
    assert is_stub(cheap.file("te_basics").read_text(), "matmul")
    assert "row_max" in cheap.source("softmax")
    cheap.run("reset", "softmax")
    assert cheap.file("te_basics").read_text() == before
    assert "nothing to reset" in cheap.run("reset", "softmax").stdout
    assert "Hint 1 of 3" in cheap.run("hint", "matmul").stdout
    cheap.file("te_basics").write_text("def matmul(:\n")
    assert "SyntaxError" in cheap.run("reset", "matmul", code=2).stderr


@pytest.mark.parametrize("exercise", exercises(), ids=lambda each: each.id)
def test_a_fresh_stub_is_the_shipped_one_but_for_its_message(exercise: Any) -> None:
    shipped = (ROOT / "tvm_practice" / f"{exercise.phase.replace('.', '/')}.py").read_text()
    fresh = stub(exercise)
    assert signature(fresh, exercise.name) == signature(shipped, exercise.name)
    assert is_stub(fresh, exercise.name) and max(map(len, fresh.split("\n"))) <= 100


def test_a_solution_is_shown_after_a_pass(cheap: Tree) -> None:
    for command in ("solution", "diff"):
        refused = cheap.run(command, "matmul", code=1)
        assert len(refused.stderr.splitlines()) == 1 and refused.stdout == ""
        assert "te.reduce_axis" in cheap.run(command, "matmul", "--spoil").stdout
    cheap.solve("matmul")
    assert "te.reduce_axis" in cheap.run("solution", "matmul").stdout
    assert "word for word" in cheap.run("diff").stdout, "without a name: what passed last"
    cheap.write("matmul", cheap.source("matmul").replace("[A, B, C]", "[A, B, C][:]"))
    changed = cheap.run("diff", "matmul").stdout
    assert "-    return [A, B, C][:]" in changed and "+    return [A, B, C]" in changed
    assert changed.index("  + right") < changed.index("-    return"), "what it gives comes first"


def test_a_wrong_answers_loops_are_shown_beside_the_right_ones(tree: Tree) -> None:
    tree.write("tile", reference(find("tile")).replace("[None, tile_m]", "[None, tile_n]"))
    shown = tree.run("check", "tile", code=1).stdout
    assert "Your answer's result (-) and a correct answer's (+):" in shown
    gives = [line.strip() for line in shown.splitlines() if re.match(r"  [-+ ] ", line)]
    assert "- for i_0 in serial(4):" in gives and "+ for i_0 in serial(8):" in gives
    tree.write("tile", "def tile(schedule, block, tile_m, tile_n):\n    return schedule.nothing()")
    assert "Your answer's result" not in tree.run("check", "tile", code=1).stdout


@pytest.mark.pages
def test_verify_is_the_whole_course_or_nothing(cheap: Tree) -> None:
    cheap.solve("matmul")
    assert (
        f"1 of {ALL} exercises pass (1 done, {ALL - 1} to do)" in cheap.run("verify", code=1).stdout
    )
    cheap.solve(*(each.id for each in exercises()))
    assert f"{ALL} of {ALL} exercises pass ({ALL} done)" in cheap.run("verify").stdout
    cheap.botch("tile")
    wrong = cheap.run("verify", code=1).stdout
    assert "manual_schedule.tile is wrong" in wrong and f"{ALL - 1} of {ALL}" in wrong
    cheap.solve("tile")
    cheap.run("list")
    assert "nothing left to do" in cheap.run("check").stdout
    assert "nothing left to do" in cheap.run().stdout


def test_the_key_question_is_answered_after_the_phase(cheap: Tree) -> None:
    refused = cheap.run("explain", "1", code=1).stderr
    assert "matmul, dense_bias_relu, softmax" in refused and len(refused.splitlines()) == 1
    cheap.run("explain", code=1)
    assert "**Answer.**" in cheap.run("explain", "tile", "--spoil").stdout
    cheap.solve("matmul", "dense_bias_relu", "softmax")
    cheap.run("list")
    answer = cheap.run("explain").stdout
    assert "eager mode runs each operator" in answer and "## Exercises" not in answer
    assert answer == cheap.run("explain", "te_basics").stdout


def test_each_page_has_an_answer(cheap: Tree) -> None:
    for phase in modules():
        text = key_question(phase)
        asked = " ".join(text.split()).index(phase.question)
        assert len(text) > asked + len(phase.question) + 400
        assert text.count("\n## ") == 0


def test_run_hands_the_options_on(cheap: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    def run_phase(module: str, **options: Any) -> dict[str, Any]:
        seen.append((module, options))
        return {}

    monkeypatch.setattr("tvm_practice.course.phase.run_phase", run_phase)
    cheap.run("run", "1", "--quick", "--engine", "current")
    cheap.run("run", "auto_tune", "--solutions")
    assert [module for module, _ in seen] == ["te_basics", "auto_tune"]
    assert seen[0][1]["quick"] and seen[0][1]["engine"] == "current"
    assert seen[1][1]["source"] == "solutions" and not seen[1][1]["quick"]
    assert "did you mean te_basics" in cheap.run("run", "te_basic", code=2).stderr
    cheap.file("te_basics").write_text("def matmul(:\n")
    assert "line 1: SyntaxError" in cheap.run("run", "1", code=2).stderr


@pytest.mark.parametrize("command", ["check", "hint", "watch", "reset", "solution", "diff"])
def test_an_unknown_exercise_is_a_mistake(cheap: Tree, command: str) -> None:
    assert "did you mean matmul?" in cheap.run(command, "matmull", code=2).stderr


@pytest.mark.parametrize("command", ["hint", "solution", "diff"])
def test_a_phase_or_lab_is_not_an_exercise(cheap: Tree, command: str) -> None:
    said = cheap.run(command, "lab4", code=2).stderr
    assert "name one exercise of lab4 " in said and "schedule_dynamic" in said


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ([], 0),
        (["list"], 0),
        (["check"], 1),
        (["hint"], 0),
        (["solution", "matmul"], 0),
        (["diff", "matmul"], 0),
        (["explain", "3", "--spoil"], 0),
        (["verify"], 1),
    ],
)
def test_plain_draws_nothing(
    cheap: Tree, monkeypatch: pytest.MonkeyPatch, command: list[str], code: int
) -> None:
    cheap.solve("matmul")
    cheap.run("check")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any output for a terminal
    shown = cheap.run("--plain", *command, code=code).output
    assert shown and not set("\x1b█░━╭┃") & set(shown)


def test_plain_is_one_fact_a_line(cheap: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    cheap.solve("matmul")
    shown = cheap.run("list", "--plain").stdout
    lines = shown.splitlines()
    assert "te_basics.matmul: done" in lines and "te_basics.softmax: to do" in lines
    monkeypatch.setenv("TVM_PRACTICE_PLAIN", "1")
    assert cheap.run("list").stdout == shown


def test_no_colour_is_respected(cheap: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    cheap.solve("matmul")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[32m" in cheap.run("list").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in cheap.run("list").stdout


@pytest.mark.parametrize("name", sorted(main.commands))
def test_each_command_has_examples_and_plain(name: str, cheap: Tree) -> None:
    shown = cheap.run(name, "--help").stdout
    assert f"Examples:\n    tvm-practice {name}" in shown and "--plain" in shown
    assert isinstance(main, click.Group) and len(main.commands) > 10
    assert cheap.graded == []


def test_the_script_is_installed(cheap: Tree) -> None:
    script = Path(sys.executable).parent / "tvm-practice"
    done = subprocess.run([script, "--plain"], capture_output=True, text=True, check=True)
    assert "Next: te_basics.matmul" in done.stdout and done.stderr == ""


@pytest.mark.pages
@pytest.mark.slow
def test_the_page(tree: Tree) -> None:
    printed = run_blocks("course.md", tree.folder, smaller=lambda block: block)
    assert any("Next: te_basics.matmul" in each for each in printed)


def test_check_takes_a_phase_or_a_lab(cheap: Tree) -> None:
    cheap.solve("matmul")
    shown = cheap.run("check", "1", code=1).stdout
    assert "te_basics.matmul passes" in shown and "te_basics.softmax is to do" in shown
    for name in ("lab4", "dynamic_shapes", "labs.dynamic_shapes"):
        assert "labs.dynamic_shapes.bucketed is to do" in cheap.run("check", name, code=1).stdout


def test_a_part_of_a_name_gets_a_suggestion(cheap: Tree) -> None:
    assert "did you mean dense_bias_relu?" in cheap.run("check", "dense", code=2).stderr
    assert "did you mean softmax?" in cheap.run("check", "sofmax", code=2).stderr
    assert "did you mean" not in cheap.run("check", "qq", code=2).stderr
