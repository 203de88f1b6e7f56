"""What phase 2's run says of its steps."""

from tvm_practice.course.tours.manual_schedule import explained


def test_a_step_is_praised_only_if_it_is_faster_than_the_one_before() -> None:
    reasons = {"naive": "", "tile": "lines", "register_block": "registers", "packed_matmul": "runs"}
    gflops = {"naive": 2.0, "tile": 5.0, "register_block": 180.0, "packed_matmul": 170.0}
    assert explained(gflops, reasons) == [
        "tile: lines.",
        "register_block: registers.",
        "packed_matmul: no faster than register_block here. Where it is faster: runs.",
    ]
