"""Functions that the tests of searches and records call in a child process."""

import json
from pathlib import Path
from typing import Any

import numpy as np


def _lane(target: str = "llvm", *, layers: bool = True) -> tuple[Any, Any, Any]:
    """A linear layer, or without `layers` a ReLU, to be tuned; its input and its output."""
    import torch

    from tvm_practice import engines
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.lane import open_lane

    torch.manual_seed(0)
    model = torch.nn.Linear(24, 40) if layers else torch.nn.ReLU()
    x = torch.randn(16, 24)
    engine = engines.active()
    assert engine is not None
    lane = open_lane(engine, as_call(model.eval(), (x,)), target=target, steps="solutions")
    return lane, x.numpy(), model(x).detach().numpy()


def export(
    tuner: str, trials: int, log: str, search: dict[str, Any], target: str = "llvm"
) -> dict[str, Any]:
    """Tune a linear layer: what was done, the error, and MetaSchedule's traces in their order."""
    from tvm_practice.tvm_export.tuners.search import Search

    lane, x, expected = _lane(target)
    settings = Search.model_validate(search)
    graph_module = lane.tuned(tuner, trials=trials, log=Path(log), search=settings)
    error = float(np.abs(graph_module(x)[0] - expected).max())
    traces = []
    if tuner == "metaschedule":
        text = (Path(log) / "database_tuning_record.json").read_text()
        traces = [json.loads(line)[1][0] for line in text.splitlines()]
    return {"tuning": graph_module.tuning, "error": error, "traces": traces}


def export_without_tasks(tuner: str, log: str, search: dict[str, Any]) -> dict[str, Any]:
    """Tune a model that has nothing to tune: the tuner that is said, what was done, the error."""
    from tvm_practice.tvm_export.tuners.search import Search

    lane, x, expected = _lane(layers=False)
    settings = Search.model_validate(search)
    built = lane.tuned(tuner, trials=4, log=Path(log), search=settings)
    error = float(np.abs(built(x)[0] - expected).max())
    return {"tuner": built.tuner, "tuning": built.tuning, "error": error}


def refusals(cases: list[list[str]]) -> list[str]:
    """What each (tuner, log) is refused with."""
    from tvm_practice.tvm_export.errors import BadInput

    lane, _, _ = _lane()
    said = []
    for tuner, log in cases:
        try:
            lane.tuned(tuner, trials=2, log=Path(log))
            said.append("")
        except BadInput as error:
            said.append(str(error))
    return said
