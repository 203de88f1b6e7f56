"""What test_trials.py runs in the current engine's process."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

_N = 64


def recorded(trials: Sequence[tuple[int, Sequence[float]]]) -> list[float]:
    """The seconds that `time_candidate` gives for trials one after the other.

    Args:
        trials: of each its task, and what every sample is to take, those of the candidate and of
            its reference in turns; no samples: what they really take.
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
    really = timing._Candidate.sample
    with tempfile.TemporaryDirectory() as folder, patch.dict(timing._references, clear=True):
        for number, (task, seconds) in enumerate(trials):
            artifact = Path(folder) / f"{number}.so"
            compiled.export_library(str(artifact))
            left = iter(seconds)
            sample = (lambda *_, left=left: next(left)) if seconds else really
            with patch.object(timing._Candidate, "sample", sample):
                found += timing.time_candidate(task, str(artifact), "cpu", infos)
            artifact.unlink()  # as MetaSchedule does; a reference is called again all the same
            assert not list(left), "a sample was not taken"
    return found
