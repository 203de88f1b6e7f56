"""Pictures of symbolic shapes: every series, tick and mark that they should have."""

from pathlib import Path

from tests.viz.test_scaling import texts
from tvm_practice.viz.shapes import plot_costs, plot_held

ROWS = [
    {"shape": "1x32", "ratio": {"symbolic": (1.5, 1.4, 1.6), "bucket": (1.0, 0.9, 1.1)}},
    {"shape": "4x128", "ratio": {"symbolic": (1.2, 1.1, 1.3)}},
]


def test_held_bytes_have_a_line_for_each_plan(tmp_path: Path) -> None:
    held = {"bounds": [2**20, 3 * 2**20], "none": [2**21, 2**22]}
    shown = texts(plot_held(tmp_path / "held.svg", held, title="A layer"))
    assert {"bounds: at most 3 MiB", "none: at most 4 MiB", "A layer"} <= shown


def test_costs_have_a_mark_for_each_shape_and_rival(tmp_path: Path) -> None:
    picture = plot_costs(tmp_path / "costs.svg", ROWS, baseline="static", title="Times")
    assert {"1x32", "4x128", "symbolic", "bucket", "static", "time / time of static"} <= texts(
        picture
    )


def test_pictures_are_png_where_the_name_says_so(tmp_path: Path) -> None:
    picture = plot_costs(tmp_path / "costs.png", ROWS, baseline="static", title="Times")
    assert picture.read_bytes().startswith(b"\x89PNG")
