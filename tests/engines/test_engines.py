"""Both engines in child processes: which TVM they hold, what they carry back, how they end."""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tvm_practice import engines
from tvm_practice.engines import selection

FUNCTIONS = "tests.engines.functions"

both = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            each,
            marks=pytest.mark.skipif(
                engines.unavailable_reason(each) is not None,
                reason=str(engines.unavailable_reason(each)),
            ),
        )
        for each in engines.ENGINES
    ],
)


@both
def test_each_engine_is_its_own_tvm(engine: engines.Engine) -> None:
    expected = {"classic": "0.17", "current": "0.27"}[engine]
    with engines.Session(engine) as session:
        assert session.call(f"{FUNCTIONS}:version").startswith(expected)
        assert session.call(f"{FUNCTIONS}:worker_version").startswith(expected)
        assert session.call(f"{FUNCTIONS}:small_sum") == 27
        assert "llvm" in session.call(f"{FUNCTIONS}:target")
        assert "already holds" in session.call(f"{FUNCTIONS}:activate_other")


@pytest.mark.real_processes
def test_pytorch_comes_when_it_is_asked_for() -> None:
    seen = engines.call(engines.CURRENT, f"{FUNCTIONS}:torch_beside_tvm")
    values = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert seen == {"brought": False, "to TVM": values, "and back": values}


def test_a_package_left_for_later_is_not_taken_for_loaded() -> None:
    """SciPy looks for PyTorch in sys.modules, and takes a None there for it."""
    name = "a_package_left_for_later"
    with selection.left_for_later(name):
        assert name not in sys.modules
        with pytest.raises(ModuleNotFoundError, match="left for later"):
            importlib.import_module(name)
    assert name not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module(name)


@both
def test_threads_are_set_for_the_pool(
    engine: engines.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TVM_NUM_THREADS", raising=False)
    assert engines.call(engine, f"{FUNCTIONS}:threads_in_pool") == engines.thread_count()
    monkeypatch.setenv("TVM_NUM_THREADS", "1")
    assert engines.call(engine, f"{FUNCTIONS}:threads_in_pool") == 1


@both
def test_describe(engine: engines.Engine) -> None:
    facts = engines.call(engine, "tvm_practice.engines:describe")
    assert facts["engine"] == engine and facts["cuda_in_build"] is True
    assert facts["threads"] == engines.thread_count()
    assert ("Ansor" in facts["tuners"]) == (engine == "classic")


@pytest.fixture(scope="module")
def session() -> Iterator[engines.Session]:
    with engines.Session(engines.CURRENT) as open_session:
        yield open_session


def test_json_goes_in_and_out(session: engines.Session) -> None:
    value = {"text": "ü", "list": [1, 2.5, None, True], "nested": {"a": []}}
    assert session.call(f"{FUNCTIONS}:echo", value) == value


def test_an_exception_comes_back_whole(session: engines.Session) -> None:
    with pytest.raises(engines.RemoteError, match="ValueError: the effect") as caught:
        session.call(f"{FUNCTIONS}:fail_with_cause")
    assert caught.value.kind == "builtins.ValueError"
    assert "KeyError: 'the cause'" in caught.value.remote_traceback
    assert "fail_with_cause" in caught.value.remote_traceback


def test_a_result_that_is_not_json_is_an_error(session: engines.Session) -> None:
    with pytest.raises(engines.RemoteError, match="not JSON serializable"):
        session.call(f"{FUNCTIONS}:not_json")


def test_an_unknown_function_is_an_error(session: engines.Session) -> None:
    with pytest.raises(engines.RemoteError, match="no_such"):
        session.call(f"{FUNCTIONS}:no_such")


def test_output_is_streamed(capfd: pytest.CaptureFixture[str]) -> None:
    engines.call(engines.CURRENT, f"{FUNCTIONS}:say", {"text": "said in the child"})
    assert "said in the child" in capfd.readouterr().out


@pytest.mark.real_processes
def test_a_child_that_dies_is_reported() -> None:
    with pytest.raises(engines.EngineDied, match="exit status 7"):
        engines.call(engines.CURRENT, f"{FUNCTIONS}:die", {"status": 7})


def test_a_call_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    arguments = {"started": str(tmp_path / "started"), "interrupted": str(tmp_path / "no")}
    started = time.monotonic()
    with pytest.raises(engines.EngineTimeout):
        engines.call(engines.CURRENT, f"{FUNCTIONS}:sleep_until_interrupted", arguments, timeout=3)
    assert time.monotonic() - started < 30


def test_what_a_child_left_in_temporary_files_goes_with_it() -> None:
    with engines.Session(engines.CURRENT) as session:
        left = Path(session.call("tempfile:mkdtemp", activate=False))
        (left / "candidate.so").touch()
    assert not left.exists()


def _caller(tmp_path: Path) -> "subprocess.Popen[bytes]":
    arguments = {"started": str(tmp_path / "started"), "interrupted": str(tmp_path / "interrupted")}
    code = (
        "from tvm_practice import engines\n"
        f"engines.call('current', '{FUNCTIONS}:sleep_until_interrupted', {arguments!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    return process


@pytest.mark.real_processes
def test_ctrl_c_is_passed_on(tmp_path: Path) -> None:
    process = _caller(tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    assert (tmp_path / "interrupted").exists()


@pytest.mark.real_processes
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's help is Linux's")
def test_the_child_ends_with_a_killed_parent(tmp_path: Path) -> None:
    process = _caller(tmp_path)
    (child,) = (each.pid for each in psutil.Process(process.pid).children())
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize("asked", ["many", "0", "-2", "1000000"])
def test_a_bad_thread_count_is_named(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", asked)
    with pytest.raises(engines.EngineError, match=f"TVM_NUM_THREADS='?{asked}"):
        engines.thread_count()


def test_a_missing_wheel_is_one_line_that_says_how_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import importlib.util

    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "bitblas" else find_spec(name, *rest),
    )
    reason = engines.unavailable_reason(engines.CLASSIC)
    assert reason is not None and "\n" not in reason
    if sys.platform.startswith("linux") and os.uname().machine == "x86_64":
        assert "bitblas" in reason and "requirements-classic.txt" in reason
    with pytest.raises(engines.EngineUnavailable, match="classic TVM is not available"):
        engines.call(engines.CLASSIC, f"{FUNCTIONS}:version")


@pytest.mark.real_processes
def test_the_table_and_the_json() -> None:
    table = subprocess.run(
        [sys.executable, "-m", "tvm_practice.engines"], capture_output=True, text=True, check=True
    ).stdout
    assert "0.27" in table and max(map(len, table.splitlines())) <= 80
