"""What tours print below a table of times and ratios."""

import math

import pytest
from rich.table import Table

from tvm_practice.course.tours.printing import show_comparison
from tvm_practice.measure import Comparison, Latency, Ratio


@pytest.mark.parametrize(("value", "is_said"), [(0.55, True), (0.83, False), (math.nan, False)])
def test_a_ratio_is_explained_where_the_times_beside_it_give_another(
    value: float, is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """9.92 ms beside 11.9 ms is a ratio of 0.83."""
    latency = {"JAX": Latency((9.92,) * 6), "PyTorch": Latency((11.9,) * 6)}
    ratio = {"JAX": Ratio(value, value, value), "PyTorch": Ratio(1, 1, 1)}
    show_comparison(Table("", "ms"), Comparison("PyTorch", latency, ratio))
    said = " ".join(capsys.readouterr().out.split())
    assert ("not the quotient of two medians" in said) == is_said
