"""The part of grading that runs in a sandbox: `python -m tvm_practice.course.classroom.inside`.

Reads a job as a line of JSON: exercises, seed, seconds for each, limits, whether there are walls,
and a token that is said with every line that it prints. Those lines are, for each exercise, that it
begins, and its verdict.
"""

import contextlib
import json
import os
import resource
import signal
import sys
from typing import Any

_MOST_OUTPUT = 4000  # characters


def main() -> None:
    job = json.loads(sys.stdin.readline())
    limit(**job["limits"])
    from tvm_practice.course.catalog import find
    from tvm_practice.course.grading import Grader

    def tell(**what: Any) -> None:
        print(json.dumps({**what, "token": job["token"]}), flush=True)

    with Grader(job["seed"]) as grader:
        for name in job["exercises"]:
            tell(begins=name)
            verdict = grader.grade(find(name), timeout=job["seconds"])
            if verdict.status == "failed" and job["isolated"]:
                # What the answer has started and left would be held against the next exercise.
                grader.cancel()
                _end_all()
            tell(
                exercise=name,
                status=verdict.status,
                message=verdict.message,
                seconds=verdict.seconds,
                output=_ends_of(verdict.output),
            )


def _end_all() -> None:
    """End every process in the sandbox but this one, all at once: one by one, others are forked."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def limit(memory: int, processes: int, file_bytes: int, seconds: float) -> None:
    """What the kernel checks by process; what all use together is watched from outside."""
    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CPU, int(seconds) * 64),
        (resource.RLIMIT_CORE, 0),
        # Threads count here, so that the watcher's limit comes first; a fork bomb outruns it.
        (resource.RLIMIT_NPROC, 8 * processes),
    ):
        resource.setrlimit(kind, (most, most))


def _ends_of(text: str) -> str:
    if len(text) <= _MOST_OUTPUT:
        return text
    half = _MOST_OUTPUT // 2
    return f"{text[:half]}\n… {len(text) - _MOST_OUTPUT} characters …\n{text[-half:]}"


if __name__ == "__main__":
    main()
