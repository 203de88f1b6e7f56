"""The grader itself: what it makes of functions that crash, hang, or are not there."""

import os
import pickle
import random
import re
import sys
import textwrap
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
import torch

from tvm_practice.course.catalog import MINE, SOLUTIONS, Exercise, find
from tvm_practice.course.editing import function_source
from tvm_practice.course.expect import draw_from, fresh_rng, seed_torch
from tvm_practice.course.grading import (
    Grader,
    GradingCancelled,
    Verdict,
    grade_unrun,
    load_source,
    source_file,
)


@pytest.fixture
def matmul() -> Exercise:
    return find("te_basics.matmul")


def _file(folder: Path, body: str) -> str:
    path = folder / "mine.py"
    path.write_text(body)
    return str(path)


def test_a_function_that_raises_is_told_where(
    grader: Grader, matmul: Exercise, tmp_path: Path
) -> None:
    path = _file(tmp_path, "def matmul(m, n, k):\n    return undefined_name\n")
    verdict = grader.grade(matmul, path)
    assert verdict.status == "failed"
    assert "NameError" in verdict.message and "line 2: return undefined_name" in verdict.message


def test_what_an_answer_says_of_a_shape_is_shown(
    grader: Grader, matmul: Exercise, tmp_path: Path
) -> None:
    said = "at (1, 1) the largest error is 2"
    verdict = grader.grade(
        matmul, _file(tmp_path, f"def matmul(m, n, k):\n    raise ValueError({said!r})\n")
    )
    assert f"ValueError: {said}" in verdict.message


def test_a_file_that_does_not_parse_is_told_where(
    grader: Grader, matmul: Exercise, tmp_path: Path
) -> None:
    verdict = grader.grade(matmul, _file(tmp_path, "def matmul(m, n, k:\n    pass\n"))
    assert verdict.status == "failed" and "SyntaxError" in verdict.message


def test_a_missing_function_is_named(grader: Grader, matmul: Exercise, tmp_path: Path) -> None:
    verdict = grader.grade(matmul, _file(tmp_path, "x = 1\n"))
    assert verdict.status == "failed" and "no function matmul" in verdict.message


def test_a_decorated_function_is_graded(grader: Grader, tmp_path: Path) -> None:
    body = "import functools\n\n\n@functools.cache\ndef gflop_per_second(m, n, k, milliseconds):\n"
    path = _file(tmp_path, body + "    return 2 * m * n * k / (milliseconds * 1e6)\n")
    verdict = grader.grade(find("schedule_analysis.gflop_per_second"), path)
    assert (verdict.status, verdict.message) == ("passed", "")


def test_an_endless_loop_is_stopped_and_grading_goes_on(matmul: Exercise, tmp_path: Path) -> None:
    path = _file(tmp_path, "def matmul(m, n, k):\n    while True:\n        pass\n")
    with Grader() as grader:
        verdict = grader.grade(matmul, path, timeout=8)
        assert verdict.status == "failed" and "endless loop" in verdict.message
        assert grader.grade(matmul, MINE).status in ("todo", "passed", "failed")


def test_a_check_has_more_time_on_an_overloaded_machine(
    matmul: Exercise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processors = os.cpu_count() or 1
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0 * processors, 0.0, 0.0))
    waits = "import time\n\n\ndef matmul(m, n, k):\n    time.sleep(60)\n"
    with Grader() as grader:
        started = time.monotonic()
        verdict = grader.grade(matmul, _file(tmp_path, waits), timeout=3)
        assert "in 9 s" in verdict.message
        assert time.monotonic() - started < 50


def test_a_crash_is_reported_and_grading_goes_on(matmul: Exercise, tmp_path: Path) -> None:
    path = _file(tmp_path, "def matmul(m, n, k):\n    import ctypes\n    ctypes.string_at(0)\n")
    with Grader() as grader:
        verdict = grader.grade(matmul, path)
        assert verdict.status == "failed" and "SIGSEGV" in verdict.message


def test_a_check_is_cancelled_from_another_thread(matmul: Exercise, tmp_path: Path) -> None:
    running = tmp_path / "running"
    path = _file(
        tmp_path,
        f"def matmul(m, n, k):\n    open({str(running)!r}, 'w').close()\n"
        "    while True:\n        pass\n",
    )

    def cancel_while_it_runs() -> None:
        until = time.monotonic() + 120
        while not running.exists() and time.monotonic() < until:
            time.sleep(0.01)
        grader.cancel()

    with Grader() as grader:
        grader.make_ready(matmul)
        thread = threading.Thread(target=cancel_while_it_runs)
        thread.start()
        with pytest.raises(GradingCancelled):
            grader.grade(matmul, path)
        thread.join()


def test_a_file_saved_twice_within_a_second_is_read_anew(tmp_path: Path) -> None:
    """Python's cached bytecode is told from new text by whole seconds and the length."""
    path = _file(tmp_path, "X = 1\n")
    times = (1_700_000_000, 1_700_000_000)
    os.utime(path, times)
    assert load_source("mine", path).X == 1
    _file(tmp_path, "X = 2\n")
    os.utime(path, times)
    assert load_source("mine", path).X == 2


def test_a_class_of_an_answer_finds_its_module(tmp_path: Path) -> None:
    """`dataclass` looks at it where annotations are texts; a worker's process cannot import it."""
    text = """
        from __future__ import annotations

        from dataclasses import dataclass

        @dataclass
        class Tile:
            rows: int

        def rows(tile: Tile) -> int:
            return tile.rows
        """
    module = load_source("tiles", _file(tmp_path, textwrap.dedent(text)))
    pickled = cloudpickle.dumps((module.rows, module.Tile(3)))
    del sys.modules[module.__name__]
    rows, tile = pickle.loads(pickled)
    assert rows(tile) == 3


def test_a_stub_or_a_broken_file_starts_no_engine(
    matmul: Exercise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tvm_practice.engines.Session", None)
    stub = 'def matmul(m, n, k):\n    """Do."""\n    raise NotImplementedError("later")\n'
    with Grader() as grader:
        assert grader.grade(matmul, _file(tmp_path, stub)).message == "later"
        for broken in ("def matmul(\0", "def matmul(:", "return 1\n"):
            verdict = grader.grade(matmul, _file(tmp_path, broken))
            assert verdict.status == "failed" and len(verdict.message.splitlines()) == 1
        assert "cannot be read" in grader.grade(matmul, str(tmp_path / "absent.py")).message
        assert grade_unrun(matmul, _file(tmp_path, "matmul = print\n")) is None


def test_without_its_engine_an_exercise_is_not_to_do(
    matmul: Exercise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tvm_practice.engines.unavailable_reason", lambda _: "no engine")
    verdict = grade_unrun(matmul, _file(tmp_path, "def matmul():\n    raise NotImplementedError\n"))
    assert verdict is not None and verdict.status == "unavailable"


def test_a_failure_is_replayed_by_its_seed(
    grader: Grader, matmul: Exercise, tmp_path: Path
) -> None:
    """A function that is wrong for some numbers of rows alone."""
    right = function_source(source_file("te_basics", SOLUTIONS).read_text(), "matmul")
    wrong = right.replace("    from tvm", "    m += m % 29 == 0\n    from tvm", 1)
    path = _file(tmp_path, f"from typing import Any\n\n\n{wrong}\n")
    verdicts: dict[str, Verdict] = {}
    for _ in range(40):
        verdict = grader.grade(matmul, path)
        verdicts[verdict.status] = verdict
        if len(verdicts) == 2:
            break
    failed = verdicts["failed"]
    assert "passed" in verdicts
    said = re.search(r"\nagain with: tvm-practice check matmul --seed (\d+)$", failed.message)
    assert said is not None
    with Grader(int(said[1])) as replaying:
        again = [replaying.grade(matmul, path).message for _ in range(2)]
    assert again == [failed.message] * 2


def test_one_seed_decides_all_that_a_check_draws() -> None:
    def drawn(seed: int) -> list[float]:
        draw_from(seed)
        first, second = fresh_rng().random(), fresh_rng().random()
        seed_torch()
        return [first, second, random.random(), np.random.random(), float(torch.rand(()))]

    assert drawn(7) == drawn(7)
    assert len({*drawn(7), *drawn(8)}) == 10


def test_what_a_function_prints_is_kept(grader: Grader, matmul: Exercise, tmp_path: Path) -> None:
    path = _file(tmp_path, "def matmul(m, n, k):\n    print('seen')\n    return None\n")
    assert "seen" in grader.grade(matmul, path).output


def test_the_learners_file_is_found_without_importing_it() -> None:
    assert source_file("te_basics", MINE).name == "te_basics.py"


def test_an_unknown_exercise_is_suggested() -> None:
    with pytest.raises(KeyError, match="did you mean matmul"):
        find("matmull")
