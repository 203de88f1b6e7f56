"""What is unusual in a model is exported right, or refused in one line that says why."""

import re
from collections.abc import Iterator

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.tvm_export.errors import BadInput

FUNCTIONS = "tests.tvm_export.odd_models"

# Of each model what is said on (the current, the classic) engine.
EXPECTED = {
    "half": ("^ok", "^ok"),
    "bfloat16": ("^ok", "Relay cannot import the model: .*bfloat16"),
    "double": ("^ok", "^ok"),
    "integers": ("^ok$", "^ok$"),
    "booleans": ("^ok$", "^ok$"),
    "scalar_output": ("^ok$", "^ok$"),
    "identity": ("^ok$", "^ok$"),
    "writes_its_input": ("^ok; .*each call is given a copy", "^ok; .*each call is given a copy"),
    "named_inputs_and_a_dictionary": ("^ok$", "^ok$"),
    "nested_inputs": ("^ok$", "^ok$"),
    "dropout_in_training_mode": ("^ok$", "^ok$"),
    "no_inputs": ("^ok$", "^ok$"),
    "decides_by_a_value": (
        "Relax cannot import the model: a shape or a decision depends on .*; --tuner",
        r"^ok; .*odd_models.py:\d+ decides by a tensor's value",
    ),
    "shape_by_a_value": (
        "^ok$",
        "^DoesNotCompile: .*Check failed",
    ),
    "unknown_operator": (
        "BadInput: Relax cannot import the model: .*hermite_polynomial_h.*; --tuner autotvm",
        "BadInput: Relay cannot import the model: .*hermite_polynomial_h.*; --tuner metaschedule",
    ),
    "random_numbers": ("rand_like", "rand_like"),
    "added_to_itself": ("^ok$", "^ok$"),
    "in_two_lists": ("^ok$", "^ok$"),
    "attention_then_a_view": ("^ok$", "^ok$"),
    "asks_whether_it_is_compiled": ("^ok$", "^ok$"),
    "moves_its_layer": ("^ok$", "^ok$"),
    "reads_data": ("^ok$", "^ok$"),
    "masks_its_weights": ("^ok$", "^ok$"),
    # The trace drops the assignment: verification finds it.
    "replaces_data": (
        "Relax cannot .*: a tensor is assigned to the data of another .odd_models.py",
        "ValueError: output 0",
    ),
    "decides_by_its_own_mask": (
        "^ok$",
        r"^ok; .*odd_models.py:\d+ decides by a tensor's value; the trace keeps the example's way$",
    ),
    "decides_by_a_mask_with_a_value": (
        "Relax cannot import the model: a shape or a decision depends on .*; --tuner",
        r"^ok; .*odd_models.py:\d+ decides by a tensor's value",
    ),
    "decides_by_its_buffers": ("^ok$", r"^ok; .*odd_models.py:\d+ decides by a tensor's value"),
    "decides_by_a_buffer_that_it_writes": (
        "Relax cannot import the model: a shape or a decision depends on .*; --tuner",
        r"^ok; .*odd_models.py:\d+ decides by a tensor's value",
    ),
    "a_spectrum_as_a_matrix": ("^ok$", "Relay cannot import the model: .*stft"),
    "its_own_gradient": ("^ok$", "^ok"),
    "gradient_of_a_function": ("^ok$", "^ok$"),
    "rows_of_a_jacobian": ("^ok$", "^ok"),
    "text_output": ("BadInput: .*returns str, no tensor", "BadInput: .*returns str"),
    "on_the_meta_device": ("BadInput: .*meta device", "BadInput: .*meta device"),
    "not_a_number": ("ValueError: output 0", "ValueError: output 0"),
    "raises": ("BadInput: .*the model's own", "BadInput: .*the model's own"),
    "wrong_extent": ("BadInput: .*refuses its inputs", "BadInput: .*refuses its inputs"),
}


@pytest.fixture(scope="module", params=["current", "classic"])
def said(request: pytest.FixtureRequest) -> Iterator[tuple[int, dict[str, str]]]:
    if reason := engines.unavailable_reason(request.param):
        pytest.skip(reason)
    with engines.Session(request.param) as session:
        found = session.call(f"{FUNCTIONS}:export", {"names": list(EXPECTED)})
        yield int(request.param == "classic"), found


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize("name", list(EXPECTED))
def test_each_is_right_or_refused(name: str, said: tuple[int, dict[str, str]]) -> None:
    engine, found = said
    assert re.search(EXPECTED[name][engine], found[name]), found[name]
    if "BadInput" in found[name]:
        assert "\n" not in found[name]


@pytest.mark.parametrize("engine", ["current", "classic"])
def test_a_padded_batch_is_verified_at_padded_places_too(
    process_of: Processes, engine: engines.Engine
) -> None:
    if reason := engines.unavailable_reason(engine):
        pytest.skip(reason)
    assert process_of(engine).call(f"{FUNCTIONS}:encoded_padded_batch") is True


@pytest.mark.parametrize("engine", ["current", "classic"])
def test_a_transformers_mask_may_be_another_one(
    process_of: Processes, engine: engines.Engine
) -> None:
    if reason := engines.unavailable_reason(engine):
        pytest.skip(reason)
    assert max(process_of(engine).call(f"{FUNCTIONS}:encoded_with_masks")) < 1e-5


def test_a_persons_module_is_left_as_it_was(process_of: Processes) -> None:
    kept = process_of("current").call(f"{FUNCTIONS}:left_as_it_was")
    assert all(kept.values()), kept


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 4])
def test_one_artifact_takes_any_batch(batch: int, process_of: Processes) -> None:
    """Whatever the example's: PyTorch takes an extent of 1 for a constant."""
    given = {"shapes": {"image": ["batch", 784]}, "batch": batch}
    errors = process_of("current").call(f"{FUNCTIONS}:open_extent", given)
    assert len(errors) == 4 and max(errors.values()) < 1e-5


@pytest.mark.parametrize(
    "shapes", [{"image": ["batch", 783]}, {"image": ["batch"]}, {"a": [4, 784], "b": [4, 784]}]
)
def test_shapes_that_are_not_the_examples_are_refused(
    shapes: dict[str, list[object]], process_of: Processes
) -> None:
    with pytest.raises(BadInput, match="input_shapes"):
        process_of("current").call(f"{FUNCTIONS}:open_extent", {"shapes": shapes})
