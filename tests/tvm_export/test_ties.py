"""Which of equal elements a reference means."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.conftest import Processes
from tvm_practice.tvm_export.ties import FirstOfEqual

# Most elements are equal; sizes at which PyTorch's own order is another one.
_X = torch.randint(0, 4, (64, 64), generator=torch.Generator().manual_seed(0)).float()


@pytest.mark.parametrize(
    "chosen",
    [
        lambda x: torch.sort(x),
        lambda x: torch.sort(x, dim=0, descending=True),
        lambda x: torch.topk(x, 5),
        lambda x: torch.topk(x, 5, dim=0, largest=False, sorted=False),
        lambda x: torch.kthvalue(x, 9),
        lambda x: torch.kthvalue(x, 9, dim=0, keepdim=True),
        lambda x: torch.mode(x),
        lambda x: torch.mode(x, 0, keepdim=True),
        lambda x: torch.mode(torch.full_like(x, torch.nan)),
    ],
)
def test_the_values_are_pytorchs(chosen: Callable[[Any], Any]) -> None:
    with torch.inference_mode(), FirstOfEqual():
        values, places = chosen(_X)
    torch.testing.assert_close(values, chosen(_X).values, rtol=0, atol=0, equal_nan=True)
    assert places.shape == chosen(_X).indices.shape and places.dtype == torch.int64


def test_the_first_of_equal_elements_and_the_last_of_a_mode() -> None:
    x = torch.ones(3, 100)
    with torch.inference_mode(), FirstOfEqual():
        for descending in (False, True):
            assert torch.equal(torch.argsort(x, descending=descending)[1], torch.arange(100))
        assert torch.topk(x, 2).indices.tolist() == [[0, 1]] * 3
        assert torch.kthvalue(x, 3).indices.tolist() == [2] * 3
        assert torch.mode(x).indices.tolist() == [99] * 3
        assert [int(each) for each in torch.topk(torch.tensor(5.0), 1)] == [5, 0]


def test_an_export_of_indices_among_ties_verifies(process_of: Processes) -> None:
    refusals = process_of("current").call("tests.tvm_export.ties_functions:refused", {})
    assert refusals == {}
