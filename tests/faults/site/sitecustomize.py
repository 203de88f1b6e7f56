"""Put first on PYTHONPATH, this has strace follow one process of a run; see tests/faults.

FAULTS_TRACED: a word of the command line of the process to follow.
FAULTS_TAKEN: a file that the first such process makes; it is the one that is followed.
FAULTS_STRACE: strace's options, as JSON.
FAULTS_NAMES: decides the names of temporary files, which faults are told by.
FAULTS_CLOCK: seconds by which the clock steps, after how many readings, and a file to make then.
"""

import ctypes
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Lets a process that is no ancestor follow this one (prctl, Yama).
_PR_SET_PTRACER = 0x59616D61
_ANYBODY = ctypes.c_ulong(-1)
_LIMIT_SECONDS = 20


class _Names:
    """Names of temporary files, the same in each run of the same command line."""

    def __init__(self, seed: str):
        self._random = random.Random(seed)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return "".join(self._random.choices("abcdefghijklmnopqrstuvwxyz0123456789_", k=8))


def _is_followed() -> bool:
    status = Path("/proc/self/status").read_text()
    return "TracerPid:\t0\n" not in status


def _follow() -> None:
    """Return when strace follows this process; it ends with it."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY)
    options = json.loads(os.environ["FAULTS_STRACE"])
    # A shell that ends at once: strace is nobody's child, so no child of this process's.
    command = ["sh", "-c", 'setsid strace "$@" > /dev/null 2>&1 < /dev/null &', "sh"]
    subprocess.run([*command, *options, "-p", str(os.getpid())], check=True)
    until = time.monotonic() + _LIMIT_SECONDS
    while not _is_followed():
        if time.monotonic() > until:
            raise TimeoutError("strace does not follow this process")
        time.sleep(0.002)


def _take() -> bool:
    """Whether this is the process to follow."""
    if os.environ["FAULTS_TRACED"] not in sys.orig_argv:
        return False
    try:
        os.close(os.open(os.environ["FAULTS_TAKEN"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class _SteppedClock:
    """In place of time.time: another time from one reading on."""

    def __init__(self, seconds: float, readings: int, stepped: Path):
        self._read, self._seconds, self._left, self._stepped = time.time, seconds, readings, stepped

    def __call__(self) -> float:
        if self._left > 0:
            self._left -= 1
            return self._read()
        self._stepped.touch()
        return self._read() + self._seconds


if step := os.environ.get("FAULTS_CLOCK"):
    by, after, told = step.split(maxsplit=2)
    time.time = _SteppedClock(float(by), int(after), Path(told))
if seed := os.environ.get("FAULTS_NAMES"):
    tempfile._name_sequence = _Names(f"{seed}: {sys.orig_argv}")  # type: ignore[assignment]
if "FAULTS_TRACED" in os.environ and _take():
    _follow()
