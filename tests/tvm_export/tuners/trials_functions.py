"""What test_trials.py runs in the current engine's process."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

_N = 64


class _Clock:
    """A clock that only the calls of candidates move."""

    def __init__(self) -> None:
        self.now = 0.0

    def candidate(self, function: Any, seconds: float) -> Any:
        """The function; each call is over after so many seconds."""

        def run(*arguments: Any) -> None:
            function(*arguments)
            self.now += seconds

        return run


def recorded(trials: Sequence[tuple[int, Sequence[float] | float]]) -> list[float]:
    """Returns the seconds that `time_candidate` gives for trials one after the other.

    Args:
        trials: the task of each trial, and either the time of every sample, the candidate's and
            its reference's in turns, or the time of a call on a clock that nothing else moves.
    """
    import tvm
    from tvm import te
    from tvm.s_tir.meta_schedule.arg_info import ArgInfo

    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import trials as timing

    function = te.create_prim_func(matmul(_N, _N, _N)).with_attr("global_symbol", "main")
    infos = [each.as_json() for each in ArgInfo.from_prim_func(function)]
    compiled = tvm.compile(function, target=host_target())
    found = []
    clock, load, really = _Clock(), tvm.runtime.load_module, timing._Candidate.sample
    with tempfile.TemporaryDirectory() as folder, patch.dict(timing._references, clear=True):
        for number, (task, seconds) in enumerate(trials):
            artifact = Path(folder) / f"{number}.so"
            compiled.export_library(str(artifact))
            samples = [] if isinstance(seconds, float) else seconds
            call = seconds if isinstance(seconds, float) else 0.0
            left = iter(samples)
            sample = (lambda *_, left=left: next(left)) if samples else really

            def loaded(path: str, call: float = call) -> dict[str, Any]:
                return {"main": clock.candidate(load(path)["main"], call)}

            with (
                patch.object(timing._Candidate, "sample", sample),
                patch.object(timing, "time", SimpleNamespace(perf_counter=lambda: clock.now)),
                patch.object(tvm.runtime, "load_module", loaded),
            ):
                found += timing.time_candidate(task, str(artifact), "cpu", infos)
            artifact.unlink()  # as MetaSchedule does; a reference is called again all the same
            assert not list(left), "a sample was not taken"
    return found
