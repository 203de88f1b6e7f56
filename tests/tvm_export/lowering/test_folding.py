"""What TVM's algebra of real numbers makes of rounded ones, of infinities and of NaN."""

import pytest

from tests.conftest import Processes

_OTHERS = [
    pytest.param(each, marks=pytest.mark.pages) for each in ("float64", "float16", "bfloat16")
]


@pytest.mark.parametrize("dtype", ["float32", *_OTHERS])
def test_differences_and_comparisons_are_those_written(process_of: Processes, dtype: str) -> None:
    function = "tests.tvm_export.lowering.folding_functions:differing"
    assert process_of("current").call(function, {"dtype": dtype}) == []
