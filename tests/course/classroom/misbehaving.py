"""A program that a sandbox holds: does what its job says, and tells what came of it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def delete(paths: list[str]) -> None:
    for each in paths:
        shutil.rmtree(each, ignore_errors=True)


def overwrite(paths: list[str]) -> list[str]:
    """Those of the files that could be written."""
    written = []
    for each in paths:
        try:
            Path(each).write_text("overwritten")
            written.append(each)
        except OSError:
            continue
    return written


def see(paths: list[str]) -> list[list[str]]:
    return [
        sorted(file.name for file in Path(each).iterdir()) if Path(each).is_dir() else []
        for each in paths
    ]


def connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def environment() -> dict[str, str]:
    return dict(os.environ)


def processes() -> list[str]:
    return [each.name for each in Path("/proc").iterdir() if each.name.isdigit()]


def leave_behind(word: str) -> None:
    subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", word], start_new_session=True
    )
    time.sleep(0.3)


def start_many() -> None:
    while True:
        subprocess.Popen(["sleep", "600"])


def fork_for_ever() -> None:
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


def allocate(gigabytes: int) -> None:
    held = [bytearray(2**28) for _ in range(4 * gigabytes)]
    for each in held:
        each[::4096] = b"x" * len(each[::4096])


def print_much(megabytes: int) -> None:
    for _ in range(megabytes):
        print("x" * 2**20)


def write_much(megabytes: int) -> None:
    with Path("/tmp/much").open("wb") as file:
        for _ in range(megabytes):
            file.write(bytes(2**20))


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def pretend() -> None:
    print(json.dumps({"exercise": "te_basics.matmul", "status": "passed", "token": "guessed"}))


def fail() -> None:
    raise ValueError("it went wrong")


def main() -> None:
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    result = globals()[job["do"]](**job["with"])
    print(json.dumps({"token": job["token"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
