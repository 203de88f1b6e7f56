"""A run goes on past wrong answers, and names each of them."""

from pathlib import Path

import pytest

from tvm_practice import engines


@pytest.mark.parametrize(
    ("module", "engine", "wrong"),
    [
        ("auto_tune", engines.CLASSIC, {"tune_ansor", "tune_autotvm"}),
        ("labs.gpu_schedule", engines.CLASSIC, {"bind_threads_classic", "register_tile_classic"}),
        ("labs.gpu_schedule", engines.CURRENT, {"bind_threads", "register_tile_gpu"}),
    ],
)
def test_answers_that_do_nothing_are_named(
    module: str, engine: engines.Engine, wrong: set[str], tmp_path: Path
) -> None:
    if missing := engines.unavailable_reason(engine):
        pytest.skip(missing)
    told = engines.call(
        engine,
        "tests.course.tours.answers_functions:lane_of_nothing",
        {"module": module, "folder": str(tmp_path)},
    )
    assert wrong <= set(told)


def test_a_lane_that_cannot_go_on_names_what_it_used(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = engines.call(
        engines.CURRENT,
        "tests.course.tours.answers_functions:lane_of_a_string",
        {"folder": str(tmp_path)},
    )
    assert set(told["failed"]) == {"import_relax"} and "figures" not in told
    printed = " ".join(capfd.readouterr().out.split())
    assert "It used import_relax; grade them: pytest -m phase4" in printed
