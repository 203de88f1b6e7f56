"""What a model's outputs are held to."""

import torch

from conformance.judging import same


def test_equal_outputs_may_hold_nan() -> None:
    values = torch.tensor([1.0, float("nan"), float("inf")])
    assert same(values, values.clone())
    assert not same(values, torch.tensor([1.0, 2.0, float("inf")]))
    assert not same(values, torch.tensor([2.0, float("nan"), float("inf")]))
    assert same(torch.tensor([True, False]), torch.tensor([True, False]))
