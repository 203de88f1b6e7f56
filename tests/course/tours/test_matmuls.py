"""The matmul's schedules under the names that a table and a picture share."""

from tests.conftest import Processes
from tvm_practice import engines


def test_the_rooflines_schedules_are_those_of_phase_3(process_of: Processes) -> None:
    functions, call = "tests.course.tours.matmuls_functions", process_of(engines.CURRENT).call
    found = call(f"{functions}:loops", {"size": 64})
    assert list(found) == ["naive", "tiled", "tiled+parallel", "packed"]
    assert "vectorized" not in found["naive"] and "parallel" not in found["tiled"]
    for name in ("tiled", "tiled+parallel"):
        assert "vectorized(32)" in found[name] and "serial(32)" in found[name]
    assert "parallel(4)" in found["tiled+parallel"]
    assert found["packed"] == call(f"{functions}:packed_of_the_tables", {"size": 64})


def test_the_roofline_has_the_learners_schedules_where_they_pass(process_of: Processes) -> None:
    made_by = "tests.course.tours.matmuls_functions:whose_tile"
    call = process_of(engines.CURRENT).call
    assert call(made_by, {"passing": ["manual_schedule.tile"]}) == ["tvm_practice"]
    assert call(made_by, {"passing": []}) == ["solutions"]
