"""Pictures of speed by size: every series, tick and mark that they should have."""

import re
from pathlib import Path

from tvm_practice.viz.scaling import plot_break_even, plot_rates

ROWS = [
    {"size": 32, "ratio": (2.0, 1.8, 2.2)},
    {"size": 96, "ratio": (0.7, 0.6, 0.8)},
]


def texts(picture: Path) -> set[str]:
    """The texts of an SVG file: matplotlib writes each as a comment before its glyphs."""
    return {each.strip() for each in re.findall(r"<!--(.*?)-->", picture.read_text(), re.DOTALL)}


def test_rates_have_a_line_for_each_product_and_engine(tmp_path: Path) -> None:
    rates = {
        "current": {128: {"naive": 4.0, "torch": 150.0}, 256: {"naive": 3.0, "torch": 200.0}},
        "classic": {256: {"naive": 2.5, "torch": 210.0}},
    }
    shown = texts(plot_rates(tmp_path / "rates.svg", rates))
    assert {"naive, current TVM", "naive, classic TVM", "torch", "128", "256"} <= shown
    assert not any("torch," in text for text in shown)  # measured twice, drawn once


def test_rates_of_an_engine_that_is_missing(tmp_path: Path) -> None:
    rates = {"current": {128: {"naive": 4.0}}, "classic": {}}
    assert "naive, current TVM" in texts(plot_rates(tmp_path / "rates.svg", rates))


def test_break_even_is_marked(tmp_path: Path) -> None:
    shown = texts(plot_break_even(tmp_path / "even.svg", ROWS, pays_from=96))
    assert {"pays from 96 on", "as fast as serial", "32", "96"} <= shown


def test_no_break_even_no_mark(tmp_path: Path) -> None:
    shown = texts(plot_break_even(tmp_path / "even.svg", ROWS, pays_from=None))
    assert not any("pays" in text for text in shown)


def test_pictures_are_png_where_the_name_says_so(tmp_path: Path) -> None:
    picture = plot_break_even(tmp_path / "even.png", ROWS, pays_from=96)
    assert picture.read_bytes().startswith(b"\x89PNG")
