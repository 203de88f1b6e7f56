"""A part of a graph through the exporter's pipeline, or from disk."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from tvm_practice import engines
from tvm_practice.engines.temporary import TemporaryFolder
from tvm_practice.tvm_export import pipeline
from tvm_practice.tvm_export.calling import Call, as_array
from tvm_practice.tvm_export.config import ATOL, RTOL, ExportSettings
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.run_time_checks.extents import open_extents
from tvm_practice.tvm_export.ties import FirstOfEqual
from tvm_practice.tvm_export.torch_compile.options import Options
from tvm_practice.tvm_export.torch_compile.running import TensorRunner


def require_own_target(target: str) -> None:
    """Raise BadInput, one line, unless `target` is a processor whose code this machine can run."""
    from tvm_practice.tvm_export.targets import resolve_target, why_not_runnable

    resolved = resolve_target(target)
    if str(resolved.kind.name) != "llvm":
        raise BadInput(f"target {target!r}: torch.compile's tensors are on the CPU; use llvm")
    if reason := why_not_runnable(resolved):
        raise BadInput(f"target {target!r}: {reason}")


def compiled(call: Call, options: Options, *, name: str) -> Any:
    """The executable of a call, from the stages of `pipeline`.

    Args:
        call: the model and its inputs.
        options: of the backend.
        name: the folder within `options.records` that this part's records go to.

    Raises BadInput where the importer refuses, or open extents would be those of a range; and
    whatever TVM raises after it.
    """
    settings = ExportSettings(
        target=options.target,
        tuning_trials=options.trials,
        tuner="metaschedule" if options.trials else None,
        engine=engines.CURRENT,
    )
    export = pipeline.import_model(Export.of(call, settings))
    allowed = open_extents(export.stages["imported"], call.names)
    for condition in allowed.conditions:
        raise BadInput(f"open extents are only those where {condition.text}")
    for axes in allowed.ranges.values():
        for least, most in axes.values():
            if least > 2 or most is not None:  # torch.compile leaves none below 2 open
                raise BadInput(f"an open extent is from {least} to {most or 'any'}")
    with TemporaryFolder() as folder:
        log = (options.records or folder) / name
        export = pipeline.tune(replace(export, log=log))
        return pipeline.build(pipeline.schedule(export)).result.compiled


def require_equal(run: TensorRunner, call: Call) -> None:
    """Raise ValueError unless a build gives what PyTorch gives, in values, shapes and types.

    The inputs are the call's own. Where both give NaN or the same infinity, they agree; where
    the type's own rounding is at stake float64 is the judge, see `verification`.
    """
    from tvm_practice.tvm_export.steps import Steps
    from tvm_practice.tvm_export.verification import verify_against_pytorch

    with torch.no_grad(), FirstOfEqual():
        reference = call.module(*call.tensors)
    made = run(call.tensors)
    outputs = [made] if isinstance(made, torch.Tensor) else list(made)
    types = [[(each.dtype, each.shape) for each in some] for some in (outputs, reference)]
    if types[0] != types[1]:
        raise ValueError(f"outputs are {types[0]}, PyTorch's {types[1]}")
    close = all(
        torch.allclose(got, want, rtol=RTOL, atol=ATOL, equal_nan=True)
        if want.is_floating_point()
        else torch.equal(got, want)
        for got, want in zip(outputs, reference, strict=True)
    )
    if not close:
        verify_against_pytorch(
            [as_array(each) for each in outputs],
            [as_array(each) for each in reference],
            call,
            Steps().verify,
            atol=ATOL,
            rtol=RTOL,
        )


def runner(executable: Any, call: Call, orders: Sequence[Sequence[int] | None]) -> TensorRunner:
    """An executable ready to be called with tensors as those of `call`."""
    run = TensorRunner(executable, single=len(orders) == 1, orders=orders)
    run.find_constants(call.tensors)
    return run


class Operator(torch.nn.Module):
    """One call of an ATen operator, as a model."""

    def __init__(self, target: Any):
        super().__init__()
        self._target = target

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._target(*args, **kwargs)


def refusal(
    node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
) -> str | None:
    """Why the exporter does not take one operator with these arguments; None if it does."""
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.loading import describe

    try:
        call = as_call(Operator(node.target), args, kwargs)
        with torch.no_grad():
            made = call.module(*call.tensors)
        executable = compiled(call, options, name=node.name)
        require_equal(runner(executable, call, [None] * len(made)), call)
    except Exception as error:  # of the importer, of TVM or a wrong value: PyTorch runs it
        return describe(error)
    return None
