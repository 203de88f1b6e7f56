"""The part of grading a capstone that runs in a sandbox; `inside` is that of exercises.

Reads a job as a line of JSON: the tracks, a seed, the machine's limits, seconds, rounds, and a
token that is said with every line that it prints: that a track begins, and its result.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tvm_practice.course.classroom.inside import limit


def main() -> None:
    job = json.loads(sys.stdin.readline())
    limit(**job["limits"])
    from tvm_practice.course.capstone.running import run_track

    def tell(**what: Any) -> None:
        print(json.dumps({**what, "token": job["token"]}), flush=True)

    file = Path(os.environ["TVM_PRACTICE_FILES"]) / "capstone.py"
    with tempfile.TemporaryFile("w+b") as output:
        for track in job["tracks"]:
            tell(begins=track)
            result = run_track(
                track,
                file,
                seed=job["seed"],
                roofs=job["roofs"],
                sizes=job["sizes"],
                rounds=job["rounds"],
                timeout=job["seconds"],
                output=output,
            )
            tell(result=result.to_dict())


if __name__ == "__main__":
    main()
