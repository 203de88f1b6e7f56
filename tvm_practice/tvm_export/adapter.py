"""The front door: a PyTorch module and a configuration in, a compiled model out."""

import contextlib
import itertools
from dataclasses import replace
from typing import Any

from tvm_practice import engines
from tvm_practice.engines.temporary import TemporaryFolder
from tvm_practice.tvm_export.config import ExportConfig
from tvm_practice.tvm_export.graph_module import GraphModule, Place


def compile_pytorch_module(model: Any, config: ExportConfig, *, verify: bool = True) -> GraphModule:
    """Import, optimize, tune if asked, build, and verify `model`; the example inputs are set.

    The model is left as it was: modes, weights, hooks. Activates the engine that the
    configuration needs in this process.

    Args:
        model: a torch.nn.Module.
        config: the settings, with the example inputs.
        verify: whether to run it, and PyTorch, on the example and on other inputs, see
            `verification.verify_model`. A target that this machine cannot run is not verified.

    Raises:
        engines.EngineUnavailable: that engine is not installed, or the process holds the other.
        BadInput: the model, its inputs, the target or the log; the message is one line.
        NotVerified: the compiled model computes something else than PyTorch.
    """
    engines.activate(config.chosen_engine)
    import torch

    from tvm_practice.tvm_export.calling import as_call, in_eval_mode
    from tvm_practice.tvm_export.errors import BadInput, NotVerified
    from tvm_practice.tvm_export.example_inputs import completed
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.nested import mapped
    from tvm_practice.tvm_export.pipeline import build, import_model, judged, schedule, tune

    if not isinstance(model, torch.nn.Module):
        raise BadInput(f"the model is of type {type(model).__name__}, which is no torch.nn.Module")
    kwargs = completed(model, config.args, config.kwargs, config.input_shapes)
    call = as_call(model, config.args, kwargs, shapes=config.input_shapes)
    if not call.tensors:
        raise BadInput("example_input holds no tensor")
    with in_eval_mode(model):
        imported = import_model(Export.of(call, config))
    with TemporaryFolder() as folder:
        log = config.tuning_log or folder / "records"
        built = build(schedule(tune(replace(imported, log=log))))
    if not kwargs:
        places = itertools.count()
        built.result.arguments = mapped(lambda _: Place(next(places)), config.args)
    if verify and not built.not_run:
        with in_eval_mode(model), contextlib.suppress(NotImplementedError):  # a step to do
            try:
                judged(built)
            except ValueError as error:
                raise NotVerified(str(error)) from error
    return built.result
