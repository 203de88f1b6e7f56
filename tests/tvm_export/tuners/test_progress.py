"""Progress: lines where there is no terminal, failures counted, Ctrl-C turned into a clean end."""

import os
import signal

import pytest

from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.tuners import Progress
from tvm_practice.tvm_export.tuners.progress import Outcome, Stopped


def test_a_line_a_quarter(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("Ansor", trials=8) as progress:
        for _ in range(8):
            progress.add([Outcome(seconds=1e-3, flop=2e6)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("Ansor: 2 of 8 trials, best 2.0 GFLOP/s")


def test_one_line_for_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("Ansor", trials=8) as progress:
        progress.add(
            [Outcome(1e-3, 2e6), Outcome(None, 2e6, "Traceback\n  boom"), *[Outcome(1, 1)] * 6]
        )
    (line,) = capsys.readouterr().out.splitlines()
    assert "8 of 8 trials, 1 failed" in line
    assert progress.errors == {"boom": 1}


def test_a_line_fits_a_terminal_also_where_trials_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Progress("MetaSchedule", trials=3000) as progress:
        monkeypatch.setattr(progress, "_started", progress._started - 999)
        progress.add([*[Outcome(1e-3, 1131.1e6)] * 1000, *[Outcome(None, 1.0, "boom")] * 113])
    (line,) = capsys.readouterr().out.splitlines()
    assert "113 failed, best 1131.1 GFLOP/s" in line and len(line) <= 80, line


def test_more_trials_than_planned(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("Ansor", trials=2) as progress:
        progress.add([Outcome(1.0, 1.0)] * 3)
    assert "3 of 2 trials" in capsys.readouterr().out
    assert progress.done == 3


def test_all_failed() -> None:
    with (
        pytest.raises(NothingMeasured, match=r"all of its 2 trials failed .2 times: no linker"),
        Progress("AutoTVM", trials=4) as progress,
    ):
        progress.add([Outcome(None, 1.0, "no linker")] * 2)


def test_other_errors_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), Progress("AutoTVM", trials=4) as progress:
        progress.add([Outcome(None, 1.0)])
        raise ZeroDivisionError


def test_interrupt_ends_after_the_trials_in_flight() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Progress("Ansor", trials=4) as progress:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Stopped):
            progress.add([Outcome(1.0, 1.0)])
        assert progress.done == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_is_immediate() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), Progress("Ansor", trials=4):
        os.kill(os.getpid(), signal.SIGINT)
        reached.append(1)
        os.kill(os.getpid(), signal.SIGINT)
        reached.append(2)
    assert reached == [1]
