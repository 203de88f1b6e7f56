"""Functions that the tests of searches and records call in a child process."""

import json
from pathlib import Path
from typing import Any

import numpy as np


def _tuned(
    tuner: str, trials: int, log: str, *, layers: bool = True, **settings: Any
) -> tuple[Any, Any, Any]:
    """A linear layer, or without `layers` a ReLU, tuned; its input; PyTorch's output."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    model = torch.nn.Linear(24, 40).eval() if layers else torch.nn.ReLU()
    x = torch.randn(16, 24)
    asked = {"tuner": tuner, "tuning_trials": trials, "tuning_log": log, **settings}
    config = ExportConfig.model_validate({"example_input": x, **asked})
    return compile_pytorch_module(model, config), x.numpy(), model(x).detach().numpy()


def export(
    tuner: str, trials: int, log: str, search: dict[str, Any], target: str = "llvm"
) -> dict[str, Any]:
    """Tune a linear layer: what was done, the error, and MetaSchedule's traces in their order."""
    graph_module, x, expected = _tuned(tuner, trials, log, search=search, target=target)
    error = float(np.abs(graph_module(x)[0] - expected).max())
    traces = []
    if tuner == "metaschedule":
        text = (Path(log) / "database_tuning_record.json").read_text()
        traces = [json.loads(line)[1][0] for line in text.splitlines()]
    return {"tuning": graph_module.tuning, "error": error, "traces": traces}


def export_without_tasks(tuner: str, log: str, search: dict[str, Any]) -> dict[str, Any]:
    """Tune a model that has nothing to tune: the tuner that is said, what was done, the error."""
    built, x, expected = _tuned(tuner, 4, log, layers=False, search=search)
    error = float(np.abs(built(x)[0] - expected).max())
    return {"tuner": built.tuner, "tuning": built.tuning, "error": error}


def refusals(cases: list[list[str]]) -> list[str]:
    """What each (tuner, log) is refused with."""
    from tvm_practice.tvm_export.errors import BadInput

    said = []
    for tuner, log in cases:
        try:
            _tuned(tuner, 2, log)
            said.append("")
        except BadInput as error:
            said.append(str(error))
    return said


def strategy(search: dict[str, Any]) -> dict[str, int]:
    """The sizes that MetaSchedule's search of a dense layer has."""
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners.metaschedule.tasks import _space_and_strategy
    from tvm_practice.tvm_export.tuners.search import Search, searching

    with searching(Search.model_validate(search)):
        _, found = _space_and_strategy("post-order-apply", host_target())
    names = ("population_size", "genetic_num_iters", "init_min_unmeasured")
    return {name: int(getattr(found, name)) for name in names}


def transferred() -> dict[str, Any]:
    """What a model of one search foretells of a product, and what a search of it measures first."""
    from collections.abc import Sequence
    from unittest.mock import patch

    import tvm
    from tvm import te

    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.rules.cpu.contraction import TileChoice
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
    from tvm_practice.tvm_export.rules.cpu.register_tiles import advice_of
    from tvm_practice.tvm_export.tuners import tile_space, tile_transfer
    from tvm_practice.tvm_export.tuners.search import Search, searching

    function = te.create_prim_func(matmul(64, 96, 128)).with_attr("global_symbol", "main")
    target = host_target()
    cpu = cpu_of(target)
    times = {
        choice: 1e-5 * (2 + choice.rows % 5)
        for choice in tile_space.ranked_choices(function, target)[::3]
    }
    known = tile_transfer.searched("a product", function, target, times)
    transfer = tile_transfer.Transfer([known], cpu)

    def listed(choices: Sequence[TileChoice]) -> list[str]:
        return [str(each) for each in choices]

    def measured(**settings: Any) -> list[str]:
        with (
            searching(Search(**settings)),
            patch.object(tile_transfer.Transfer, "of", lambda cpu: transfer),
        ):
            space = tile_space.tile_search(target)
            from tvm.s_tir.meta_schedule import TuneContext

            TuneContext(
                tvm.IRModule({"main": function}),
                target=target,
                search_strategy=space,
                num_threads=1,
            )
            space.pre_tuning(6, 6, [])
            found = space.generate_measure_candidates()
        choices = [advice_of(each.sch.mod["main"]) for each in found]
        return listed([each for each in choices if each])

    ranked = transfer.ranked(function, target)
    own = measured()
    return {
        "ranked": len(ranked),
        "first": listed(ranked[:3]),
        "known": listed([each.choice for each in known.fastest[:3]]),
        "foreseen": listed(ranked),
        "measured": own,
        "without": measured(transfer=False),
        "tried": 6,
        "built": len(own),
    }
