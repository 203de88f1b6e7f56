"""`scan` and `map` on the current engine, beside PyTorch's."""

from tests.conftest import Processes


def test_steps_are_written_out(process_of: Processes) -> None:
    found = process_of("current").call("tests.tvm_export.importers.loop_functions:errors")
    assert len(found) == 4
    assert all(each < 1e-5 for each in found.values()), found


def test_too_many_steps_or_an_open_number_are_refused(process_of: Processes) -> None:
    said = process_of("current").call("tests.tvm_export.importers.loop_functions:refusals")
    assert "scan takes 300 steps, at least 1 and at most 256 are written out" in said[0]
    assert "scan takes an open number of steps" in said[1]
