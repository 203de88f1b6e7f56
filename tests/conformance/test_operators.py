"""`python -m conformance operators`: a verdict of each kind that an operator's case can have."""

import pytest
import torch

from conformance import operators
from conformance.cases import Case, counts, drawn, try_all

# An operator that TVM has, one that it lacks, and one that takes no tensor.
_KNOWN = {"exp": "right", "linalg.ldl_factor_ex": "refused", "ones": "left out"}


@pytest.mark.slow
def test_each_verdict() -> None:
    cases = [
        Case(name, name, {"name": name, "index": 0, "dtype": "float32"}) for name in _KNOWN
    ]  # fmt: skip
    outcomes = try_all(operators.JUDGE, cases, jobs=1)
    assert {each.name: each.verdict for each in outcomes} == _KNOWN
    assert {name: bool(each.reason) for name, each in zip(_KNOWN, outcomes, strict=True)} == {
        "exp": False, "linalg.ldl_factor_ex": True, "ones": True
    }  # fmt: skip


def test_a_crash_costs_its_own_case_only() -> None:
    cases = [Case("one", f"{number}", {"number": number}) for number in range(3)]
    outcomes = try_all(f"{__name__}:crash_on_one", cases, jobs=1)
    assert [each.verdict for each in outcomes] == ["right", "raw", "right"]
    assert "ended" in outcomes[1].reason and counts(outcomes)["right"] == 2


def crash_on_one(number: int) -> dict[str, str]:
    """A judge that ends its process on case 1."""
    import os

    if number == 1:
        os._exit(3)
    return {"verdict": "right"}


def test_cases_are_drawn_again_by_their_seed() -> None:
    cases = [Case("g", str(number), {}) for number in range(100)]
    assert drawn(cases, 5, 3) == drawn(cases, 5, 3) != drawn(cases, 5, 4)
    assert len(drawn(cases, None, None)) == 100


def test_an_output_nearer_to_the_exact_one_than_pytorchs_is_right() -> None:
    exact = torch.tensor([1000.0, 3.0], dtype=torch.float64)
    theirs, near, far = (
        torch.tensor([each, 3.0], dtype=torch.float16) for each in (1016.0, 1001.0, 984.5 - 4)
    )
    assert operators.compared([near.numpy()], [theirs])[0] == "wrong"
    assert operators.as_near([near.numpy()], [theirs], lambda: [exact])
    assert not operators.as_near([far.numpy()], [theirs], lambda: [exact])
    assert not operators.as_near([near.float().numpy()], [theirs.float()], lambda: [exact])
    unknown = torch.tensor([float("nan"), 3.0], dtype=torch.float16).numpy()
    assert not operators.as_near([unknown], [theirs], lambda: [exact])


def test_nan_of_pytorch_in_16_bits_is_no_reference() -> None:
    exact = torch.tensor([3.0, 1e6], dtype=torch.float64)
    unknown = torch.full((2,), float("nan"), dtype=torch.float16)
    ours = torch.tensor([3.0, float("inf")], dtype=torch.float16)
    assert operators.no_reference([ours.numpy()], [unknown], lambda: [exact])
    assert not operators.no_reference([unknown.numpy()], [unknown], lambda: [exact])
    assert not operators.no_reference([-ours.numpy()], [unknown], lambda: [exact])
    assert not operators.no_reference([ours.numpy()], [ours], lambda: [exact])
    assert not operators.no_reference([ours.numpy()], [unknown], lambda: [unknown.double()])


def test_of_equal_values_any_may_be_named() -> None:
    x = torch.tensor([[1, 1, 2], [4, 3, 3]])
    place = {"first": torch.tensor([[0], [1]]), "second": torch.tensor([[1], [2]])}
    for dim, given in ((1, x), (0, x.T)):
        made = [
            operators._with_what_is_at(
                lambda x, k, dim, keepdim, at=each if dim == 1 else each.T: (x.gather(dim, at), at),
                place=1,
            )(given, 1, dim, True)
            for each in (*place.values(), torch.tensor([[2], [0]]))
        ]
        first, second, wrong = ([one.tolist() for one in each] for each in made)
        assert first == second != wrong


def test_an_order_of_equal_values_names_each_once() -> None:
    x = torch.tensor([[2, 1, 1], [1, 2, 2]])
    orders = [[[1, 2, 0], [0, 1, 2]], [[2, 1, 0], [0, 2, 1]], [[1, 1, 0], [0, 2, 2]]]

    def at(order: list[list[int]]) -> list[object]:
        named = operators._with_what_is_at(lambda x, dim: torch.tensor(order), place=0)
        return [each.tolist() for each in named(x, dim=1)]

    first, second, one_twice = map(at, orders)
    assert first == second
    assert first[:-1] == one_twice[:-1]
    assert first != one_twice
