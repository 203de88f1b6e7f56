"""The time of a call from C++ beside that from Python: two processes, one library."""

import os
import subprocess
import time
from pathlib import Path

from tvm_practice.measure import Comparison, Latency, Meter, paired_ratio, quiesce
from tvm_practice.wording import number_of

# A call's worker threads spin for a while in case another call comes; the other process waits.
_IDLE_SECONDS = 0.3


def compare_calls(
    program: Path, folder: Path, *, rounds: int = 30, calls: int = 10, warmup: int = 3
) -> Comparison:
    """Time the same library called from Python and from C++, in turns, round after round.

    One sample is the last of `calls` calls in a row: the ones before it wake the threads and fill
    the caches. Inputs are ones, given without a copy. Both processes have as many threads; with
    TVM_BIND_THREADS=0 in this one's environment, set before TVM's first call, neither binds them
    to cores, which would be the same ones.

    Args:
        program: the project's `main`.
        folder: with model.so and model.json.
        rounds: samples of each.
        calls: in a row.
        warmup: rounds that are not kept.

    Returns:
        The comparison of "Python", the baseline, with "C++".

    Raises:
        RuntimeError: the program ended.
    """
    import json

    import numpy as np

    from tvm_practice import engines
    from tvm_practice.tvm_export.running import RelaxRunner

    described = json.loads((folder / "model.json").read_text())["inputs"]
    runner = RelaxRunner.from_file(str(folder / "model.so"))
    runner.set_inputs([np.ones(each["shape"], each["dtype"]) for each in described])
    command = [str(program), str(folder), "--calls", str(calls)]
    times: dict[str, list[float]] = {"Python": [], "C++": []}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TVM_NUM_THREADS": str(engines.thread_count())},
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        meter = Meter()
        for _ in range(warmup + rounds):
            quiesce()
            for _ in range(calls - 1):
                runner.run()
            before = time.perf_counter()
            runner.run()
            times["Python"].append((time.perf_counter() - before) * 1e3)
            quiesce()
            try:
                child.stdin.write("\n")
                child.stdin.flush()
                line = child.stdout.readline()
            except BrokenPipeError:
                line = ""
            if not line:
                raise RuntimeError(child.stderr.read().strip() or f"{program} ended")
            times["C++"].append(float(line))
            time.sleep(_IDLE_SECONDS)
        child.stdin.close()
    disturbance = meter.disturbance()
    kept = {name: each[warmup:] for name, each in times.items()}
    sample = f"the last of {number_of(calls, 'call')} in a row"
    return Comparison(
        "Python",
        {name: Latency(tuple(each), warmup, sample, disturbance) for name, each in kept.items()},
        {
            name: paired_ratio(np.array(each), np.array(kept["Python"]))
            for name, each in kept.items()
        },
        disturbance,
    ).published()
