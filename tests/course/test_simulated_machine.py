"""The simulated machine: whichever way an answer's module keeps the clock, it is the machine's."""

import pytest

from tvm_practice.course.simulated_machine import Machine

KEPT = {
    "module": ("import time", "time.perf_counter()"),
    "name": ("from time import perf_counter", "perf_counter()"),
    "dictionary": ("import time\nCLOCKS = {'fine': time.perf_counter}", "CLOCKS['fine']()"),
    "default": (
        "import time\ndef now(clock=time.perf_counter):\n    return clock()",
        "now()",
    ),
    "keyword": (
        "import time\ndef now(*, clock=time.perf_counter):\n    return clock()",
        "now()",
    ),
    "class": ("import time\nclass Watch:\n    now = time.perf_counter", "Watch().now()"),
}


@pytest.mark.parametrize("how", KEPT)
def test_the_clock_is_the_machines(how: str) -> None:
    above, read = KEPT[how]
    names: dict[str, object] = {"__name__": "answer"}
    exec(f"{above}\ndef taken(run):\n    t = {read}\n    run()\n    return {read} - t", names)
    taken = names["taken"]
    assert callable(taken)
    machine = Machine()

    def run() -> None:
        machine.call("run", 5000.0)

    for _ in range(2):
        with machine.in_charge_of_time(taken):
            assert taken(run) == pytest.approx(5.0, abs=0.01)
    assert taken(lambda: None) < 1.0
