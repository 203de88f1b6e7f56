"""Nothing of TVM is asked for that the course has not shown."""

import pytest

from tests.course.conftest import ROOT, Tree
from tvm_practice.course.catalog import Exercise, exercises, find
from tvm_practice.course.pieces import (
    Piece,
    first_place,
    new_pieces,
    pieces_of,
    places_before,
    to_markdown,
)


@pytest.mark.parametrize("exercise", exercises(), ids=lambda each: each.id)
def test_what_an_answer_needs_is_shown_before(exercise: Exercise) -> None:
    unshown = [str(each) for each in pieces_of(exercise) if first_place(each, exercise) is None]
    assert not unshown


def test_the_pieces_of_an_answer() -> None:
    assert [str(each) for each in pieces_of(find("te_basics.matmul"))] == [
        "te.placeholder", "dtype=", "name=", "te.reduce_axis", "te.compute", "te.sum", "axis=",
    ]  # fmt: skip
    tile = find("manual_schedule.tile")
    assert [str(each) for each in pieces_of(tile)] == [".get_loops", ".split", ".reorder"]
    # numpy's and Python's own are none, and a piece is new once.
    assert pieces_of(find("schedule_analysis.sample_latency")) == ()
    assert new_pieces(find("te_basics.dense_bias_relu")) == [Piece("name", "tvm.te.max")]


def test_a_word_is_shown_as_code_only() -> None:
    for text in ("splits the rows", "split the rows", "to split, then"):
        assert not Piece("method", "split").is_shown(text)
    for text in ("schedule.split", "`split` the rows", "split(loop, [None, 8])"):
        assert Piece("method", "split").is_shown(text)
    assert Piece("method", "reduce_axis").is_shown("(k,) = C.op.reduce_axis")
    assert not Piece("method", "reduce_axis").is_shown('te.reduce_axis((0, k), name="k")')
    assert Piece("method", "run").is_shown("runner.run(inputs)", is_code=True)
    assert not Piece("method", "run").is_shown("run()", is_code=True)
    assert not Piece("name", "tvm.te.max").is_shown("max(a, b) of Python")
    assert Piece("name", "tvm.te.max").is_shown("te.max(a, b)")
    assert Piece("name", "tvm.IRModule").is_shown("an IRModule")
    assert not Piece("option", "max").is_shown("Python's `max`, and te.max(a, b)")
    assert not Piece("option", "s_tir").is_shown("tvm.s_tir.Schedule")
    for text in ("Dim(name, max=64)", "Dim(name, min, max)"):
        assert Piece("option", "max").is_shown(text)
    assert Piece("option", "max_workers").is_shown("max_workers limits the trials")


def test_a_later_chapter_or_exercise_shows_nothing_to_an_earlier_one() -> None:
    sampling = Piece("method", "sample_perfect_tile")
    assert first_place(sampling, find("manual_schedule.tile")) is None
    assert first_place(sampling, find("auto_tune.metaschedule_space")) is not None
    labels = [each.label for each in places_before(find("manual_schedule.vectorize"))]
    assert "docstring of `tile`" in labels and "docstring of `parallelize`" not in labels
    assert not any("lab" in each for each in labels)
    # A lab stands on the phases, and not on another lab.
    heads = {each.label for each in places_before(find("labs.cross_compile.target_for"))}
    assert "phase 5, head of the file" in heads and "lab 1, head of the file" not in heads


def test_the_same_word_for_something_else_shows_nothing() -> None:
    multiply = Piece("name", "tvm.relax.op.multiply")  # a line of a printed graph on phase 4's page
    assert (
        first_place(multiply, find("labs.deploy_cpp.image_to_label")) == "lab 2, head of the file"
    )
    target = Piece("method", "target")  # of a torch.fx.Node in phase 4
    assert first_place(target, find("auto_tune.apply_autotvm")) == "phase 5, head of the file"
    calls = Piece("name", "tvm.relax.call_tir")  # phase 4 says only that a pass makes them
    assert first_place(calls, find("labs.custom_operator.convert_relax")) == (
        "lab 7, head of the file"
    )
    cpu = Piece("method", "cpu")  # of a session; phase 3 has tvm.cpu()
    assert not cpu.is_shown("evaluator(tvm.cpu())") and cpu.is_shown("session.cpu()")
    assert first_place(cpu, find("labs.tuning_farm.measure_remotely")) == (
        "lab 5, head of the file"
    )


def test_the_command_lists_what_an_exercise_needs(cheap: Tree) -> None:
    shown = cheap.run("pieces", "tile").output
    assert "manual_schedule.tile" in shown and ".reorder" in shown


def test_the_page_is_what_the_command_prints() -> None:
    written = (ROOT / "docs" / "pieces.md").read_text()
    assert written == to_markdown(), "write it anew: tvm-practice pieces --page > docs/pieces.md"
