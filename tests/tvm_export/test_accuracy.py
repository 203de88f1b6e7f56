"""How near outputs are to exact ones: cosine, largest error, agreement of the largest elements."""

import math

import numpy as np
import pytest

from tvm_practice.tvm_export.accuracy import accuracy, together

NAN, INF = np.nan, np.inf


def found(got: list[float], want: list[float]) -> tuple[float, float]:
    made = accuracy([np.array(got, "float32")], [np.array(want, "float64")])
    return round(made["cosine"], 6), made["max_error"]


@pytest.mark.parametrize(
    ("got", "want", "expected"),
    [
        ([3, 4], [3, 4], (1, 0)),
        ([6, 8], [3, 4], (1, 4)),  # a cosine says nothing of size
        ([4, 3], [3, 4], (0.96, 1)),
        ([-3, -4], [3, 4], (-1, 8)),
        ([0, 0], [0, 0], (1, 0)),
        ([0, 0], [3, 4], (0, 4)),
        ([], [], (1, 0)),
        ([NAN, 4], [NAN, 4], (1, 0)),
        ([INF, 4], [INF, 4], (1, 0)),
        ([NAN, 4], [3, 4], (-1, INF)),
        ([INF, 4], [3, 4], (-1, INF)),
        ([INF, 4], [-INF, 4], (-1, INF)),
        ([3, 4], [NAN, 4], (-1, INF)),
    ],
)
def test_cosine_and_error(
    got: list[float], want: list[float], expected: tuple[float, float]
) -> None:
    assert found(got, want) == expected


def test_the_worst_of_several_outputs_and_inputs() -> None:
    right, wrong = np.array([[1.0, 2.0], [4.0, 3.0]]), np.array([[2.0, 1.0], [4.0, 3.0]])
    first = accuracy([right, wrong], [right, right])
    assert first["top1"] == (3, 4) and first["max_error"] == 1 and 0.9 < first["cosine"] < 1
    # A row of logits 2, 1 for 1, 2: the softmax is (0.269, 0.731), their logarithms differ by 1.
    assert first["kl"] == pytest.approx(math.tanh(0.5))
    second = accuracy([right], [right])
    assert second["kl"] == 0
    assert together([first, second]) == first | {"top1": 5 / 6, "kl": first["kl"] / 6}


def test_a_divergence_that_is_infinite_is_not_told() -> None:
    one = accuracy([np.array([-INF, 1.0])], [np.array([0.0, 1.0])])
    assert one["kl"] == INF and together([one])["kl"] is None


def test_no_rows_in_counts_and_single_elements() -> None:
    counts, single = np.array([[1, 2]]), np.array([[1.0]])
    assert together([accuracy([counts, single], [counts, single])])["top1"] is None


def test_other_outputs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"1 output, the reference has 2"):
        accuracy([np.zeros(2)], [np.zeros(2)] * 2)
    with pytest.raises(ValueError, match=r"output 0 has shape \(2,\), the reference \(3,\)"):
        accuracy([np.zeros(2)], [np.zeros(3)])
