"""`python -m conformance compile`: models under torch.compile."""

import pytest

from conformance import timm_models, torch_compile, transformers_models
from conformance.cases import try_all


def test_it_has_the_cases_of_both_libraries() -> None:
    cases = list(torch_compile.cases("float32", None))
    both = [len(list(each.cases("float32", None))) for each in (transformers_models, timm_models)]
    assert len(cases) == sum(both) == len({each.name for each in cases})


@pytest.mark.pages  # torch.compile itself: tests/tvm_export/test_torch_compile.py
@pytest.mark.slow
def test_a_decoder_is_right() -> None:
    [case] = [each for each in torch_compile.cases("float32", 1) if each.group == "gpt2"]
    [outcome] = try_all(torch_compile.JUDGE, [case], jobs=1)
    assert outcome.verdict == "right", outcome.reason
