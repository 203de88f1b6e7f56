import numpy as np

from tvm_practice.wording import number_of


def test_one_has_no_plural() -> None:
    assert number_of(1, "task") == "1 task"
    assert number_of(0, "task") == "0 tasks"
    assert number_of(12000, "trial") == "12,000 trials"


def test_numpys_counts_are_counts() -> None:
    assert number_of(np.array([1, 3]).max(), "line") == "3 lines"
    assert number_of(np.array([1]).max(), "line") == "1 line"
