import psutil
import pytest

from tvm_practice.tvm_export.tuners.workers import patient


@pytest.mark.parametrize(("load", "seconds"), [(0.0, 30), (3.9, 30), (8.0, 60), (300.0, 60)])
def test_a_limit_grows_with_the_load(
    monkeypatch: pytest.MonkeyPatch, load: float, seconds: float
) -> None:
    monkeypatch.setattr(psutil, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(psutil, "cpu_count", lambda: 4)
    assert patient(30) == seconds
