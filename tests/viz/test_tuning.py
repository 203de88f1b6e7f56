"""The picture of tuning curves: it is drawn, failed trials and logs without times included."""

from pathlib import Path

import pytest

from tvm_practice.tvm_export.tuners import Trial
from tvm_practice.viz.tuning import plot_tuning

TIMED = [
    Trial(1, None, "it does not compile", 1.0),
    Trial(2, 0.02, None, 2.0),
    Trial(3, 0.03, None, 2.5),
    Trial(4, 0.01, None, 3.0),
]
UNTIMED = [Trial(1, 0.015), Trial(2, 0.012)]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_it_is_drawn(tmp_path: Path, suffix: str) -> None:
    path = plot_tuning(
        tmp_path / f"curves.{suffix}",
        {"Ansor": TIMED, "MetaSchedule": UNTIMED},
        flop=2e9,
        title="a matmul",
        levels={"by hand": 150.0},
    )
    assert path.stat().st_size > 5000


def test_legend_names_tuners_and_levels(tmp_path: Path) -> None:
    path = plot_tuning(
        tmp_path / "curves.svg",
        {"Ansor": TIMED},
        flop=2e9,
        title="a matmul",
        levels={"by hand": 150.0},
    )
    text = path.read_text()
    for shown in ("Ansor", "by hand", "a matmul", "best GFLOP/s so far"):
        assert f"<!-- {shown} -->" in text


def test_a_tuner_without_a_valid_trial_is_drawn_as_crosses(tmp_path: Path) -> None:
    failed = [Trial(1, None, "it crashes", 1.0), Trial(2, None, "it crashes", 2.0)]
    path = plot_tuning(tmp_path / "curves.png", {"Ansor": failed}, flop=2e9, title="a matmul")
    assert path.exists()
