"""The front door: a PyTorch module and a configuration in, a compiled model out."""

import tempfile
from dataclasses import replace
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
    from tvm_practice.tvm_export.calling import as_call, in_eval_mode
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule, tune

    call = as_call(model, config.args, config.kwargs, shapes=config.input_shapes)
    if not call.tensors:
        raise BadInput("example_input holds no tensor")
    with in_eval_mode(model):
        imported = import_model(Export.of(call, config))
    with tempfile.TemporaryDirectory(prefix="tvm-practice-") as folder:
        log = config.tuning_log or Path(folder) / "records"
        return build(schedule(tune(replace(imported, log=log)))).result
