"""The front door: a PyTorch module and a configuration in, a compiled model out."""

import tempfile
from pathlib import Path
from typing import Any

from tvm_practice import engines
from tvm_practice.tvm_export.config import ExportConfig
from tvm_practice.tvm_export.graph_module import GraphModule


def compile_pytorch_module(model: Any, config: ExportConfig) -> GraphModule:
    """Import, optimize, tune if asked, and build `model`; the example inputs are set.

    The model is left as it was: modes, weights, hooks. Activates the engine that the
    configuration needs in this process.

    Raises:
        engines.EngineUnavailable: that engine is not installed, or the process holds the other.
        BadInput: the model, its inputs, the target or the log; the message is one line.
    """
    engines.activate(config.chosen_engine)
    from tvm_practice.tvm_export.calling import as_array, as_call, in_eval_mode
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.lane import open_lane
    from tvm_practice.tvm_export.targets import require_buildable

    tuned = config.chosen_tuner is not None and config.tuning_trials > 0
    require_buildable(config.target, config.chosen_engine, tuned=tuned)
    call = as_call(model, config.args, config.kwargs, shapes=config.input_shapes)
    if not call.tensors:
        raise BadInput("example_input holds no tensor")
    with in_eval_mode(model):
        lane = open_lane(
            config.chosen_engine,
            call,
            target=config.target,
            steps=config.steps,
            opt_level=config.opt_level,
            converters=config.converters,
        )
    tuner = config.chosen_tuner
    trials, log, search = config.tuning_trials, config.tuning_log, config.search
    if tuner is None or trials == 0:
        graph_module = lane.untuned()
    elif log is not None:
        graph_module = lane.tuned(tuner, trials=trials, log=log, search=search)
    else:
        with tempfile.TemporaryDirectory(prefix="tvm-practice-") as folder:
            log = Path(folder) / "records"
            graph_module = lane.tuned(tuner, trials=trials, log=log, search=search)
    for position, value in enumerate(call.tensors):
        graph_module.set_input(position, as_array(value))
    return graph_module
