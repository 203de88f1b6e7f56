"""The picture of a farm's throughput: both models, every bound, what was seen."""

from pathlib import Path

from tests.viz.test_scaling import texts
from tvm_practice.viz.throughput import throughput_figure

PREDICTED = [(1, 1.0, 2.0), (10, 1.5, 4.0), (100, 1.6, 4.0)]
ALONE = [2.0, 20.0, 32.0]


def test_bounds_and_points_are_named(tmp_path: Path) -> None:
    bounds = {"2 builders": 4.0, "tracker": 2000.0}
    figure = throughput_figure(PREDICTED, workers_alone=ALONE, bounds=bounds, seen={1: [0.9, 1.1]})
    figure.savefig(tmp_path / "a.svg")
    shown = texts(tmp_path / "a.svg")
    assert {"model, round by round", "model, overlapped", "workers alone", "seen"} <= shown
    assert {"1", "10", "100"} <= shown
    assert {"2 builders: 4 per second", "(tracker: 2e+03 per second)"} <= shown


def test_without_points(tmp_path: Path) -> None:
    figure = throughput_figure(PREDICTED, workers_alone=ALONE, bounds={}, seen={})
    figure.savefig(tmp_path / "a.svg")
    assert "seen" not in texts(tmp_path / "a.svg")
