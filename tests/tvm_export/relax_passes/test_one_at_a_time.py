"""Batches computed one example after the other."""

from tvm_practice import engines

_FUNCTIONS = "tests.tvm_export.relax_passes.one_at_a_time_functions"


def test_examples_are_computed_alone_and_weights_kept_once() -> None:
    found = engines.call(engines.CURRENT, f"{_FUNCTIONS}:apart", {})
    assert found["error"] < 1e-5 and found["examples"]
    assert found["weights"] < 8000


def test_what_mixes_examples_is_computed_together() -> None:
    found = engines.call(engines.CURRENT, f"{_FUNCTIONS}:together", {})
    assert found.pop("nothing") == 3
    assert len(found) > 5 and set(found.values()) == {1}, found
