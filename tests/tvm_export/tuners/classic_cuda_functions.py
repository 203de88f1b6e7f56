"""What test_cuda.py runs in a process of the classic engine: tuning for a GPU that is not here."""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from tvm_practice.tvm_export.config import Tuner
from tvm_practice.tvm_export.errors import NothingMeasured

TARGET = "cuda -arch=sm_80"


def layers() -> Any:
    """A model with a convolution and a dense layer, and its input."""
    import torch

    model = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(512, 16),
    )
    return model.eval(), (torch.randn(1, 4, 8, 8),)


def tuned_without_a_device(folder: str, tuner: Tuner) -> dict[str, Any]:
    """A search that cannot measure.

    Returns:
        {"said": by the error, "shown": on standard output, "errors": of each record, "functions":
        the first words of the tasks, "targets": of the records}.
    """
    from tvm_practice.tvm_export import pipeline, targets
    from tvm_practice.tvm_export.tuners import ansor, autotvm

    said = ""
    with mock.patch.object(targets, "_require_runnable", lambda *_: None):
        export = pipeline.import_model(pipeline.load(_request(folder, tuner=tuner)))
    with redirect_stdout(io.StringIO()) as shown:
        try:
            pipeline.tune(export)
        except NothingMeasured as error:
            said = str(error)
    assert export.log is not None
    history = (ansor if tuner == "ansor" else autotvm).history(export.log)
    return {
        "said": said,
        "shown": shown.getvalue(),
        "errors": [each.error for each in history],
        "functions": sorted({str(each.task).split("(")[0] for each in history}),
        "targets": export.log.read_text().count(f"{TARGET.split()[0]} -keys=cuda,gpu -arch=sm_80"),
    }


def exported(folder: str) -> dict[str, Any]:
    """An untuned export.

    Returns:
        {"status", "not_run", "engine", "kernels": whether the library has machine code of a GPU,
        "rules": what made each function}.
    """
    from tvm_practice.tvm_export import pipeline

    built = pipeline.build(pipeline.import_model(pipeline.load(_request(folder))))
    told = pipeline.export_model(_request(folder))
    [kernels] = [
        each for each in built.result.compiled.get_lib().imported_modules if each.type_key == "cuda"
    ]
    made = Path(folder) / "kernels.cubin"
    kernels.save(str(made))
    return {
        "status": told["status"],
        "not_run": told["not_run"],
        "engine": told["engine"],
        "kernels": made.read_bytes()[:4] == b"\x7fELF",
        "rules": sorted(set(built.result.made_by.values())),
    }


def _request(folder: str, *, tuner: Tuner | None = None) -> Any:
    from tvm_practice.tvm_export.request import ExportRequest
    from tvm_practice.tvm_export.tuners.search import Search

    return ExportRequest(
        model=f"{__name__}:layers",
        artifacts=Path(folder),
        target=TARGET,
        engine="classic",
        tuner=tuner,
        tuning_trials=4 if tuner else 0,
        search=Search(seed=0),
        replace=True,
    )
