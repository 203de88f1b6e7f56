"""What phase 1 shows of an answer that TVM cannot lower."""

from pathlib import Path

import pytest

from tvm_practice import engines


def test_a_shared_axis_fails_on_classic_tvm_and_the_run_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if missing := engines.unavailable_reason(engines.CLASSIC):
        pytest.skip(missing)
    told = engines.call(
        engines.CLASSIC,
        "tests.course.tours.te_basics_functions:lane_with_one_axis",
        {"folder": str(tmp_path)},
    )
    assert set(told["shown"]) == {"matmul", "dense_bias_relu"}
    assert set(told["failed"]) == {"softmax"}
    printed = capfd.readouterr().out
    assert "because  A reduce axis is a loop of one stage." in printed
    assert "Traceback" not in printed
