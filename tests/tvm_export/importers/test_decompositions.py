"""Operators that TVM's frontend lacks, or converts to something else, beside PyTorch's."""

import re
import sys

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.importers.decompositions_functions"


# Families with so many shapes and types that they take a compiler many seconds: in `make follow`.
_LARGE = (
    *("special", "windows", "indexing", "systems", "spectra", "complex", "seldom"),
    *("rare", "float16", "bfloat16", "reductions", "large systems"),
    *("bits of float32", "bits of float16", "bits of bfloat16"),
)
_FAMILIES = (
    *(
        "numbers",
        "bytes",
        "powers",
        "median of a window",
        "norms",
        "recurrences",
        "items",
        "assertions",
        "parts",
        "repetitions",
        "extremes",
        "no terms",
        "no elements",
        "no stride",
        "quantized",
        "steps",
        "bytes in products",
        "gammas",
        "losses",
    ),
    *(pytest.param(each, marks=pytest.mark.pages) for each in _LARGE),
)


@pytest.mark.parametrize("family", _FAMILIES)
def test_values_types_and_shapes_are_pytorchs(process_of: Processes, family: str) -> None:
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:differences", {"family": family})
    assert found == []


def test_no_digits_are_lost_near_zero_and_nothing_overflows(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:digits", {})
    assert max(found.values()) < 2e-6, found


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_round_once(process_of: Processes, dtype: str) -> None:
    """As in PyTorch: TVM's own functions of float16 round each step."""
    given = {"dtype": dtype}
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:rounded_errors", given)
    assert max(found.values()) < 1.3, found


def test_numbers_made_of_open_extents(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{FUNCTIONS}:of_extents") == []


def test_places_of_the_largest_in_open_images(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{FUNCTIONS}:places_of_the_largest") == []


def test_norms_of_open_channels(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{FUNCTIONS}:norms_of_open_channels") == []


def test_scatters_of_open_sources(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{FUNCTIONS}:scatters_of_open_sources") == []


def test_bits_of_numbers(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:bits_of_numbers")
    assert all(found.values()) and len(found) == 4, found


def test_an_instance_norm_of_open_images_copies_nothing(process_of: Processes) -> None:
    """PyTorch's rule reshapes twice, which divides by open extents for each element."""
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:instance_norm_of_open_images")
    assert found["rules"] == ["reduction"] and found["error"] < 1e-4, found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("printing", r"_print.default does more than compute a result \(decompositions_functions"),
        ("nested", r"the model makes nested tensors, which TVM does not have \(decompositions_f"),
        ("jagged", r"the model makes nested tensors, which TVM does not have \(decompositions_f"),
        (
            "numpy",
            r"a tensor's values are read as a numpy array \(decompositions_functions.py, line",
        ),
        ("random", r"draws random numbers \(decompositions_functions.py, line \d+\)"),
        ("random row", r"draws random numbers \(decompositions_functions.py, line \d+\)"),
        (
            "missing",
            r"no converter for linalg_ldl_factor_ex.default \(decompositions_functions.py, line \d",
        ),
        (
            "decision",
            r"a shape or a decision depends on a tensor's values \(decompositions_functions",
        ),
        (
            "lengths",
            r"a shape or a decision depends on a tensor's values \(decompositions_functions",
        ),
        (
            "asked",
            r"equal.default is asked for a tensor's value \(decompositions_functions",
        ),
        (
            "rank",
            r"the shape of linalg_lstsq.default's output depends on values \(decompositions_f",
        ),
        ("caught", r"a shape or a decision depends on a tensor's values"),
        ("suppressed", r"a shape or a decision depends on a tensor's values"),
        ("ended", r"a shape or a decision depends on a tensor's values"),
        ("spectrum", r"an output of the model is complex"),
        ("gaps", r"as_strided of a tensor whose elements share memory or have gaps"),
        ("overlaps", r"as_strided of a tensor whose elements share memory or have gaps"),
        ("beside", r"as_strided of memory beside a tensor's elements"),
    ],
)
def test_what_is_left_is_refused(process_of: Processes, name: str, said: str) -> None:
    line = process_of(engines.CURRENT).call(f"{FUNCTIONS}:refusal", {"name": name})
    by_pytorch = name in (
        "decision",
        "lengths",
        "asked",
        "rank",
        "nested",
        "jagged",
        "numpy",
        "caught",
        "suppressed",
        "ended",
    )
    way_out = 'torch.compile(model, backend="tvm_practice")' if by_pytorch else "--converters"
    assert "\n" not in line and way_out in line
    assert re.search(said, line), line


@pytest.mark.pages
def test_complex_numbers_inside_one_operator(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{FUNCTIONS}:spectrum_difference", {}) < 1e-5


def test_a_complex_buffer_becomes_pairs(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{FUNCTIONS}:rotation_difference", {}) < 1e-5


def test_a_tensor_kept_from_a_call_in_inference_mode(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{FUNCTIONS}:kept_difference", {}) < 1e-5


def test_an_older_pytorch_has_fewer_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch 2.12 and older have no `linear_cross_entropy`; every export asks for the rules."""
    from tvm_practice.tvm_export.importers.decompositions import losses

    assert len(losses.rules()) == 3
    monkeypatch.setitem(sys.modules, "torch.nn.modules.linear_cross_entropy", None)
    [operator] = losses.rules()
    assert "multilabel_margin_loss" in str(operator)
