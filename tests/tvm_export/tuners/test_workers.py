import psutil
import pytest

from tvm_practice import engines
from tvm_practice.tvm_export.tuners.workers import patient


@pytest.mark.parametrize(("load", "seconds"), [(0.0, 30), (3.9, 30), (8.0, 60), (300.0, 60)])
def test_a_limit_grows_with_the_load(
    monkeypatch: pytest.MonkeyPatch, load: float, seconds: float
) -> None:
    monkeypatch.setattr(psutil, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(psutil, "cpu_count", lambda: 4)
    assert patient(30) == seconds


def test_a_pool_may_end_while_its_processes_start() -> None:
    functions = "tests.tvm_export.tuners.tuner_functions"
    assert engines.call("current", f"{functions}:children_left_at_once", {"count": 2}) == 0
