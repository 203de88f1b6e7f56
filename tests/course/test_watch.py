"""`tvm-practice watch`: as a person uses it, on a terminal, and without one."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.browser import is_blank, opened
from tests.course.conftest import Tree
from tvm_practice.course import watch
from tvm_practice.course.catalog import exercises, find
from tvm_practice.course.editing import replace_function
from tvm_practice.course.events import is_silent
from tvm_practice.course.grading import Grader
from tvm_practice.course.progress import Progress, Standing
from tvm_practice.course.screen import Screen
from tvm_practice.course.telling import reference

COMMAND = [sys.executable, "-m", "tvm_practice.course", "watch"]
# On a quiet machine it takes less than half a second; beside other tests, several. What hangs would
# take for ever.
REACTION_SECONDS = 60.0


class Terminal:
    """A terminal with `watch` on it; `text` is what it showed so far."""

    def __init__(self, *arguments: str):
        self._ours, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # makes it the terminal
        )
        self.text = ""
        self._awaited = 0  # where in the text the words end that were waited for last

    def until(self, words: str) -> None:
        """Read until `words` appear behind those that were waited for last."""
        end = time.monotonic() + REACTION_SECONDS
        while (found := self.text.find(words, self._awaited)) < 0:
            left = end - time.monotonic()
            assert left > 0, f"no {words!r} in {REACTION_SECONDS} s after:\n{self.text}"
            if select.select([self._ours], [], [], left)[0]:
                self.text += os.read(self._ours, 65536).decode(errors="replace")
        self._awaited = found + len(words)

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self.theirs)


@contextmanager
def _terminal(*arguments: str) -> Iterator[Terminal]:
    terminal = Terminal(*arguments)
    try:
        yield terminal
    finally:
        terminal.close()


def _rename_into_place(file: Path, text: str) -> None:
    """Save as many editors do: a new file takes the old one's name, whole."""
    new = file.with_name("4913")
    new.write_text(text)
    new.replace(file)


@pytest.mark.slow
def test_a_save_is_checked_at_once(tree: Tree) -> None:
    """Also while a check hangs; keys work, and the terminal is given back as it was."""
    right = reference(find("matmul"))
    with _terminal() as terminal:
        terminal.until("te_basics.matmul is to do")
        tree.write(
            "matmul", right.replace("    return", "    while True:\n        pass\n    return")
        )
        terminal.until("checking te_basics.matmul")
        time.sleep(1)  # it hangs
        file = tree.file("te_basics")
        _rename_into_place(file, replace_function(file.read_text(), "matmul", right))
        terminal.until("checking te_basics.matmul")
        terminal.until("te_basics.matmul passes")
        terminal.until("Next: te_basics.dense_bias_relu")
        terminal.press("h")
        terminal.until("Hint 1 of 3")
        terminal.press("l")
        terminal.until(f"1 done, {len(exercises()) - 1} to do")
        terminal.press("n")
        terminal.until("te_basics.softmax is to do")
        terminal.press("q")
        assert terminal.process.wait(REACTION_SECONDS) == 0
        assert termios.tcgetattr(terminal.theirs) == terminal.before
        assert "Traceback" not in terminal.text


@pytest.mark.pages
def test_the_page_is_redrawn_at_each_save(tree: Tree) -> None:
    """In Chromium, without a reload by hand: to do, wrong, broken, and right with its pictures."""
    tile, file = find("tile"), tree.file("manual_schedule")
    stub, right = file.read_text(), reference(tile)
    wrong = right.replace("[None, tile_n]", "[None, tile_m]")
    assert wrong != right
    with _terminal("tile", "--page") as terminal:
        terminal.until("Page: ")
        terminal.until("checking")
        found = re.search(r"http://127\.0\.0\.1:\d+/", terminal.text)
        assert found
        with opened(found[0]) as (page, errors):
            page.set_default_timeout(REACTION_SECONDS * 1000)

            def until(facts: str) -> None:
                page.wait_for_function(
                    "words => document.querySelector('.facts')?.innerText === words", arg=facts
                )
                assert page.title() == tile.id

            until("is to do")
            _rename_into_place(file, replace_function(stub, "tile", wrong))
            until("is wrong")
            page.wait_for_selector(".gone")
            assert "j_inner serial" in page.locator("#message").inner_text()
            file.write_text(stub.replace("def tile(", "def tile((", 1))
            page.wait_for_selector("#message:has-text('SyntaxError')")
            assert page.locator(".gone").count() == 0
            _rename_into_place(file, replace_function(stub, "tile", right))
            until("passes")
            page.wait_for_selector("figure svg")
            pictures = page.locator("figure > svg").all()
            assert not any(is_blank(each.screenshot()) for each in pictures)
            assert not errors, errors


def test_ctrl_c_gives_the_terminal_back(tree: Tree) -> None:
    with _terminal("--poll") as terminal:
        terminal.until("by looking every 0.3 s")
        terminal.until("is to do")
        terminal.press("\x03")
        terminal.until("stopped")
        assert terminal.process.wait(REACTION_SECONDS) == 130
        assert termios.tcgetattr(terminal.theirs) == terminal.before


def test_without_a_terminal_there_are_no_keys(tree: Tree) -> None:
    running = subprocess.Popen(
        COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert running.stdout is not None
    with running.stdout as shown:
        assert "Ctrl-C ends it" in shown.readline()
        assert shown.readline() == "\n"
        assert "checking te_basics.matmul" in shown.readline()
        running.send_signal(signal.SIGTERM)
        assert running.wait(REACTION_SECONDS) == 128 + signal.SIGTERM


@pytest.mark.parametrize("poll", [False, True])
def test_the_file_is_followed_from_broken_to_passed(
    cheap: Tree, grader: Grader, capsys: pytest.CaptureFixture[str], poll: bool
) -> None:
    """Without engines, in this process: a thread is the person."""
    standing = Standing(Progress(pytest.fail), grader)
    watching = watch.Watch(Screen(), standing, find("matmul"), poll=poll)
    shown = ""

    def until(words: str) -> None:
        nonlocal shown
        end = time.monotonic() + REACTION_SECONDS
        while words not in shown and time.monotonic() < end:
            shown += capsys.readouterr().out
            time.sleep(0.02)

    def person() -> None:
        try:
            until("matmul is to do")
            file = cheap.file("te_basics")
            text = file.read_text()
            _rename_into_place(file, "def matmul(:\n")
            until("te_basics.py, line 1: SyntaxError")
            cheap.file("auto_tune").touch()  # another phase's file
            _rename_into_place(file, text)
            cheap.solve("matmul", "dense_bias_relu", "softmax")
            until("Next: puzzles.split_loop")
            cheap.solve("split_loop", "columns_first")
            until("Next: puzzles.one_loop")
        finally:
            watching._events.put(("key", "q"))

    thread = threading.Thread(target=person)
    thread.start()
    watching.run()
    thread.join()
    shown += capsys.readouterr().out
    for words in (
        "te_basics.py, line 1: SyntaxError",
        "te_basics.matmul passes",
        "te_basics.softmax passes",
        "Phase 1, tensor expressions, is done",
        "puzzles.columns_first passes",
        "Next: puzzles.one_loop",
    ):
        assert words in shown, shown
    assert shown.count("SyntaxError") == 1


@pytest.mark.parametrize(
    ("mounts", "silent"),
    [
        ({"/": "ext4"}, False),
        ({"/": "ext4", "/mnt/c": "9p"}, True),
        ({"/": "overlay", "/mnt": "fuse.grpcfuse"}, True),
        ({"/": "9p", "/mnt/c": "ext4"}, False),
        ({"/": "ext4", "/mnt/cc": "9p"}, False),
    ],
)
def test_a_shared_folder_is_polled(
    monkeypatch: pytest.MonkeyPatch, mounts: dict[str, str], silent: bool
) -> None:
    partitions = [SimpleNamespace(mountpoint=at, fstype=kind) for at, kind in mounts.items()]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: partitions)
    assert is_silent(Path("/mnt/c/course")) is silent
