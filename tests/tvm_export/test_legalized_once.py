"""Operators legalized once for all calls that become the same loops."""

from tvm_practice import engines


def test_like_calls_become_one_function_and_unlike_ones_their_own() -> None:
    with engines.Session(engines.CURRENT) as process:
        found = process.call("tests.tvm_export.legalized_once_functions:compared", {})
    assert found["same"] and found["names"] == [True, True], found
    assert found["made"] < found["calls"] / 2, found
