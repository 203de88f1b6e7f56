"""A call of a model as a function of tensors."""

import torch

from tvm_practice.tvm_export.calling import as_call


def test_a_tensor_that_is_given_twice_is_two_inputs() -> None:
    query = torch.randn(2, 5, 8)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    call = as_call(attention, (query, query, query))
    assert len({id(each) for each in call.tensors}) == 3
    assert all(torch.equal(each, query) for each in call.tensors)
