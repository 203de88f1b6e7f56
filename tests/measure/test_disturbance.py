"""What disturbs a measurement is seen, and then no ratio is published."""

import itertools
import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.measure.clock import Clock
from tvm_practice.measure import ACCEPT_LOAD, Meter, compare_interleaved, disturbance
from tvm_practice.measure.disturbance import _Counters, wait_for_quiet


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ACCEPT_LOAD)


def counters(**changed: float) -> _Counters:
    values = {"clock": 0.0, "busy": 0.0, "stolen": 0.0, "own": 0.0, "throttled": 0}
    return _Counters(**(values | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("processors", "threads", "after", "said"),
    [
        (2, "2", {"busy": 2.0, "own": 2.0}, None),
        (2, "2", {"busy": 2.08, "own": 2.0}, None),  # 4%, of which a clock's ticks may be 1.5%
        (2, "2", {"busy": 2.0, "own": 1.5}, "other programs took 25% of the processors"),
        (64, "2", {"busy": 40.0, "own": 2.0}, None),  # others have processors of their own
        (64, "2", {"busy": 64.0, "own": 1.0}, "other programs took 98% of the processors"),
        (2, "", {"busy": 2.0, "own": 1.5}, "other programs took 25% of the processors"),
        (2, "2", {"busy": 1.0, "own": 1.0, "stolen": 0.2}, "the hypervisor took 10%"),
        (2, "2", {"throttled": 1}, "the control group's quota stopped this process"),
    ],
)
def test_what_the_counters_say(
    processors: int,
    threads: str,
    after: dict[str, float],
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = iter([counters(), counters(clock=1.0, **after)])
    monkeypatch.setattr(disturbance, "_read", lambda: next(read))
    monkeypatch.setattr(disturbance, "_allowed", lambda: set(range(processors)))
    monkeypatch.setenv("TVM_NUM_THREADS", threads)
    found = Meter().disturbance()
    assert found == said if said is None else str(found).startswith(said)


@pytest.mark.real_processes
def test_another_program_is_seen_and_an_own_one_is_not() -> None:
    """By the counters of this machine: busy ones that this process did and did not start."""
    busy = "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass"
    before = disturbance._read()
    own = subprocess.Popen([sys.executable, "-c", busy])
    own.wait()
    between = disturbance._read()
    # Its parent ends at once, so that it is nobody's child.
    orphan = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"
    subprocess.run([sys.executable, "-c", orphan], check=True)
    time.sleep(1.7)
    after = disturbance._read()

    def of_others(first: _Counters, second: _Counters) -> float:
        return (second.busy - first.busy) - (second.own - first.own)

    assert between.own - before.own > 0.3
    assert of_others(between, after) > 0.3


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(disturbance, "_control_groups", lambda: [tmp_path / "none", tmp_path])
    return tmp_path / "cpu.stat"


def test_throttling_is_read(group: Path) -> None:
    assert disturbance._throttled() == 0
    group.write_text("nr_periods 70\nnr_throttled 12\nthrottled_time 5\n")
    assert disturbance._throttled() == 12


def test_waiting_ends_with_quiet_or_with_the_limit(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: Iterator[str | None] = iter(["busy", "busy", None])
    monkeypatch.setattr(Meter, "disturbance", lambda meter, *_: next(states))
    started = clock.now
    wait_for_quiet(60)
    assert clock.now - started == pytest.approx(1.5, rel=1e-3)
    states = itertools.repeat("busy")
    wait_for_quiet(5)
    assert clock.now - started == pytest.approx(6.5, rel=1e-3)


def test_a_busy_machine_gives_no_ratio_and_says_why(
    clock: Clock, strict: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Meter, "disturbance", lambda meter, *_: "other programs took 40%")
    runs = {"a": clock.callable([6], "a"), "b": clock.callable([2], "b")}
    compared = compare_interleaved(runs, baseline="b", rounds=6)
    ratio = compared.ratio["a"]
    assert math.isnan(ratio.value) and not ratio.measured
    assert (
        compared.verdict == f"not measured: other programs took 40%; {ACCEPT_LOAD}=1 shows "
        "ratios anyway"
    )
    assert ratio.verdict == compared.verdict
    said = json.loads(json.dumps(compared.to_dict(), allow_nan=False))
    assert said["ratio"]["a"]["value"] is None and said["verdict"] == compared.verdict
    assert "40%" in said["latency"]["a"]["verdict"]


def test_load_can_be_accepted(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meter, "disturbance", lambda meter, *_: "other programs took 40%")
    runs = {"a": clock.callable([6], "a"), "b": clock.callable([2], "b")}
    compared = compare_interleaved(runs, baseline="b", rounds=6)
    assert compared.ratio["a"].value == pytest.approx(3, rel=1e-3)
    assert compared.ratio["a"].disturbance == "other programs took 40%"
    assert compared.verdict == "unstable"


def test_a_disturbed_comparison_is_made_again(
    clock: Clock, strict: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt and one look are disturbed; the second attempt's samples are kept."""
    said = iter(["other programs took 40%", "other programs took 40%", None, None, None])
    monkeypatch.setattr(Meter, "disturbance", lambda meter, *_: next(said))
    runs = {"a": clock.callable([6], "a"), "b": clock.callable([2], "b")}
    compared = compare_interleaved(runs, baseline="b", rounds=6)
    assert compared.verdict == "measured"
    assert compared.ratio["a"].value == pytest.approx(3, rel=1e-3)


def test_a_little_load_is_too_much_where_samples_are_far_apart(
    clock: Clock, strict: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def little(meter: Meter, share: float = 1.0) -> str | None:
        return "other programs took 1%" if share < 1 else None

    monkeypatch.setattr(Meter, "disturbance", little)
    runs = {"close": clock.callable([6, 6.1], "close"), "b": clock.callable([2], "b")}
    assert compare_interleaved(runs, baseline="b", rounds=6).verdict == "measured"
    apart = random.Random(0).choices(range(2, 13), k=400)
    runs = {"apart": clock.callable(apart, "apart"), "b": clock.callable([2], "b")}
    compared = compare_interleaved(runs, baseline="b", rounds=6)
    assert compared.verdict.startswith("not measured: other programs took 1%")


def test_samples_too_far_apart_are_no_finding(clock: Clock, strict: None) -> None:
    apart = random.Random(0).choices([1, 1, 1, 9, 9], k=400)
    runs = {"apart": clock.callable(apart, "apart"), "b": clock.callable([2], "b")}
    compared = compare_interleaved(runs, baseline="b", rounds=6)
    assert compared.verdict.startswith("not measured: the samples lie too far apart")
    assert compare_interleaved(runs, baseline="b", rounds=3).verdict != compared.verdict


def test_a_side_that_the_other_slows_gives_no_ratio(clock: Clock, strict: None) -> None:
    """What one side leaves running takes processors from the other, in turns only."""
    last = [""]

    def one(name: str, alone: float, in_turns: float) -> None:
        other_was_here = last[0] not in ("", name)
        recent[name] = clock.now if other_was_here else recent.get(name, -1.0)
        slowed = clock.now - recent[name] < 0.05
        last[0] = name
        clock.go_on((in_turns if slowed else alone) / 1e3)

    recent: dict[str, float] = {}
    runs = {"a": lambda: one("a", 5.0, 5.0), "b": lambda: one("b", 5.0, 9.0)}
    compared = compare_interleaved(runs, baseline="b", rounds=6)
    assert compared.verdict.startswith("not measured: b took 1.8")


def test_few_rounds_give_no_verdict(clock: Clock) -> None:
    runs = {"a": clock.callable([6, 6.1, 6.2], "a"), "b": clock.callable([2], "b")}
    assert compare_interleaved(runs, baseline="b", rounds=5).ratio["a"].verdict == "too few rounds"
    assert compare_interleaved(runs, baseline="b", rounds=6).ratio["a"].verdict == "slower"
