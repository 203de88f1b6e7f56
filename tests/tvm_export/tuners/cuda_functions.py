"""What test_cuda.py runs in a process of the current engine: tuning for a GPU that is not here."""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.tuners.search import Search

MODEL = "tests.tvm_export.tuners.remote_functions:layer"
TARGET = "cuda -arch=sm_80"
TRIALS = 4


def made_up_seconds(
    task: int, artifact: str, device_type: str, infos: Sequence[Any]
) -> list[float]:
    """In place of a trial's time, one that the candidate's code decides."""
    digest = hashlib.sha256(Path(artifact).read_bytes()).digest()
    return [1e-5 * (1 + digest[0] / 256)]


def _imported(folder: str, opened: ExitStack) -> Export:
    """A model for a GPU, with a tuner; what would run on the GPU is replaced while `opened` is."""
    from tvm_practice.measure import Ratio
    from tvm_practice.tvm_export import beside_untuned, pipeline, relax, targets
    from tvm_practice.tvm_export.request import ExportRequest
    from tvm_practice.tvm_export.tuners import finals

    def shares(built: Any, _: Any) -> dict[str, float]:
        return dict.fromkeys(built.rules, 1 / len(built.rules))

    def times(modules: list[Any], *_: Any) -> list[float]:  # the default schedule is the last
        return [1.0 + number for number in range(len(modules))]

    for module, name, replaced in (
        (targets, "_require_runnable", lambda *_: None),
        (relax, "_profile", shares),
        (beside_untuned, "_compared", lambda *_: (True, Ratio(0.5, 0.5, 0.5, 6))),
        (finals, "times_in_turns", times),
    ):
        opened.enter_context(mock.patch.object(module, name, replaced))
    request = ExportRequest(
        model=MODEL,
        artifacts=Path(folder),
        target=TARGET,
        tuner="metaschedule",
        tuning_trials=TRIALS,
        search=Search(seed=0),
    )
    return pipeline.import_model(pipeline.load(request))


def without_a_device(folder: str) -> dict[str, Any]:
    """What a search says, and what its log holds, where no candidate can be measured."""
    from tvm_practice.tvm_export import pipeline
    from tvm_practice.tvm_export.tuners.metaschedule import history

    with ExitStack() as opened:
        export = _imported(folder, opened)
        said = ""
        try:
            pipeline.tune(export)
        except NothingMeasured as error:
            said = str(error)
    assert export.log is not None
    return {"said": said, "errors": [each.error for each in history(export.log)]}


def tuned(folder: str) -> dict[str, Any]:
    """A whole export with made-up times, and the error of the tuned functions' values.

    Returns:
        {"records": how many functions a record made, "bound": how many have threads, "kernels":
        whether the library has CUDA text, "error" and "spread": of the values, threads one by one
        on the CPU}.
    """
    from tests.tvm_export.rules.cpu_functions import _run, unoptimized
    from tests.tvm_export.rules.gpu_functions import _kernel_source
    from tvm_practice import engines
    from tvm_practice.labs.gpu.on_cpu import with_plain_loops
    from tvm_practice.tvm_export import pipeline
    from tvm_practice.tvm_export.calling import as_array
    from tvm_practice.tvm_export.tuners.metaschedule import running

    with ExitStack() as opened:
        opened.enter_context(mock.patch.object(running, "time_candidate", made_up_seconds))
        export = pipeline.build(pipeline.schedule(pipeline.tune(_imported(folder, opened))))
    import tvm

    scheduled = export.stages["scheduled"]
    plain = scheduled.clone()
    bound = 0
    for name, function in scheduled.functions_items():
        if isinstance(function, tvm.tirx.PrimFunc):
            alone = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
            bound += "threadIdx.x" in alone.script()
            plain[name] = with_plain_loops(alone)["main"].with_attr(
                "global_symbol", str(name.name_hint)
            )
    inputs = [as_array(each) for each in export.call.tensors]
    got = _run(plain, unoptimized(engines.host_target()), inputs)
    expected = export.call.module(*export.call.tensors)[0].detach().numpy()
    return {
        "records": list(export.result.made_by.values()).count("record"),
        "bound": bound,
        "error": float(np.abs(got - expected).max()),
        "spread": float(np.ptp(got)),
        "kernels": "__global__" in _kernel_source(export.result.compiled.mod),
    }
