"""Latencies and ratios in words."""

import io
import math

import pytest
from rich.console import Console

from tvm_practice.measure import Latency, Ratio
from tvm_practice.tvm_export.artifacts.schema import LatencyRecord, RatioRecord, TuningRecord
from tvm_practice.tvm_export.variants import BuildRecord
from tvm_practice.viz.report import table_block
from tvm_practice.viz.tables import (
    about_ratios,
    above_interval,
    explanation,
    in_one_line,
    largest_error,
    median,
    results_table,
    three_digits,
    with_interval,
)


def latency(*samples: float) -> LatencyRecord:
    return LatencyRecord.model_validate(Latency(samples).to_dict())


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0123, "0.012"), (0.9994, "0.999"), (1.0, "1.00"), (99.99, "99.99"), (123.4, "123")],
)
def test_three_digits(value: float, text: str) -> None:
    assert three_digits(value) == text


def test_what_is_unstable_has_a_mark() -> None:
    assert median(latency(2.0, 2.0, 2.0)) == "2.00"
    assert median(latency(2.0, 2.0, 2.0, 4.0, 4.0)) == "2.00 ~"


def test_a_ratio_in_two_lines_or_in_one() -> None:
    cell = above_interval(RatioRecord.of(Ratio(0.5, 0.25, 123.4)))
    assert cell == "0.500\n0.250–123"
    assert in_one_line(cell) == "0.500 (0.250–123)" and in_one_line("ok") == "ok"


def test_a_value_with_what_is_known_of_it() -> None:
    assert with_interval(0.5, (0.25, 1.0)) == "0.50 (0.25–1.00)"
    assert with_interval(0.5, None) == "0.50" and with_interval(None, None) == "-"


def test_errors() -> None:
    assert [largest_error(each) for each in (None, 0.0, 1.26e-7)] == ["-", "0", "1e-07"]


def test_why_comes_before_how_it_was_tuned() -> None:
    tuning = TuningRecord(note="no trial was faster")
    assert explanation(BuildRecord(status="ok", tuning=tuning)) == "no trial was faster"
    assert explanation(BuildRecord(status="failed", reason="why", tuning=tuning)) == "why"
    assert explanation(BuildRecord(status="ok", tuning=TuningRecord())) is None


def test_the_mark_is_explained_where_it_is() -> None:
    def drawn(cell: str) -> str:
        screen = io.StringIO()
        rows = [[["PyTorch", "1.00"]], [["TVM", cell, "and more"]]]
        Console(file=screen, width=80).print(results_table("t", ["", "ms", "note"], rows))
        return " ".join(screen.getvalue().split())

    assert "unstable: the middle half of the samples spans over 15% of" in drawn("2.00 ~")
    assert "unstable" not in drawn("2.00") and "and more" in drawn("2.00")


def test_names_are_cut_off_and_not_figures() -> None:
    screen = io.StringIO()
    rows = [[["fused_" + "multiply_" * 20, "1", "18.005", "13%", "rule, contraction"]]]
    table = results_table("t", ["function", "calls", "ms", "share", "schedule"], rows)
    Console(file=screen, width=80).print(table)
    row = screen.getvalue().splitlines()[-2]
    assert row.split()[-5:] == ["1", "18.005", "13%", "rule,", "contraction"]
    assert row.split()[0].startswith("fused_multiply_") and len(row) <= 80


def test_a_table_of_a_page_is_filled_up() -> None:
    block = table_block(["a", "b", "c"], [["x"], ["y", "1\n0–2", "z"]], title="t")
    assert block.rows == [["x", "", ""], ["y", "1 (0–2)", "z"]] and block.title == "t"


def test_ratios_that_are_no_quotients_of_the_times_are_explained() -> None:
    def said(ratio: Ratio) -> list[str]:
        return about_ratios([(latency(1.0, 1.0), latency(2.0, 2.0), RatioRecord.of(ratio))])

    assert said(Ratio(0.51, 0.5, 0.52)) == [] and len(said(Ratio(0.55, 0.5, 0.6))) == 1
    assert said(Ratio(math.nan, math.nan, math.nan, disturbance="load")) == []
