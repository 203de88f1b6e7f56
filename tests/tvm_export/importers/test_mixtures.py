"""Mixtures of experts on the current engine: rows counted and multiplied by expert."""

from tests.conftest import Processes

FUNCTIONS = "tests.tvm_export.importers.mixtures_functions"


def test_experts_and_their_counts(process_of: Processes) -> None:
    counted, spread, product, selected = process_of("current").call(f"{FUNCTIONS}:errors")
    assert counted == spread == selected == 0
    assert product < 1e-5


def test_rows_split_by_sizes_known_at_run_time(process_of: Processes) -> None:
    assert process_of("current").call(f"{FUNCTIONS}:split_error") < 1e-5
