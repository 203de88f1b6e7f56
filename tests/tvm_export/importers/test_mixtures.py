"""Mixtures of experts on the current engine: rows counted and multiplied by expert."""

from tvm_practice import engines


def test_experts_and_their_counts() -> None:
    found = engines.call(
        engines.CURRENT, "tests.tvm_export.importers.mixtures_functions:errors", {}
    )
    counted, spread, product, selected = found
    assert counted == spread == selected == 0
    assert product < 1e-5
