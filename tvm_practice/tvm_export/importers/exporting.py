"""What torch.export may need to be given a model."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tvm_practice.tvm_export.importers.constants import constants_known
from tvm_practice.tvm_export.importers.converters.relax import as_if_run
from tvm_practice.tvm_export.importers.gradients import (
    TakesGradients,
    gradients_noticed,
    gradients_written_out,
)
from tvm_practice.tvm_export.importers.refusals import DependsOnValues

Made = TypeVar("Made")


def by_whatever_helps(export: Callable[[Any], Made], model: Any, example: Sequence[Any]) -> Made:
    """What a function that exports a model returns, called once more if another way may help.

    Args:
        export: calls torch.export on the model that it is given.
        model: a torch.nn.Module.
        example: the tensors that it is called with.
    """
    noticed: list[str] = []
    try:
        with gradients_noticed() as noticed:
            return _by_what_helps(export, model)
    except TakesGradients:
        return _by_what_helps(export, gradients_written_out(model, example))
    except Exception:
        if not noticed:
            raise
    return _by_what_helps(export, model)  # PyTorch took it within an operator, flex_attention


def _by_what_helps(export: Callable[[Any], Made], model: Any) -> Made:
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        return export(model)
    except (AttributeError, TypeError):  # perhaps of what a model does when it is compiled alone
        with as_if_run():
            return export(model)
    except (GuardOnDataDependentSymNode, DataDependentOutputException, DependsOnValues):
        # Perhaps of a tensor that the model makes itself, or keeps.
        with constants_known(model):
            return export(model)
    except RuntimeError as error:
        if "Couldn't swap" in str(error):  # of a module that the model moves to its input's device
            with _moves_of_nothing():
                return export(model)
        if "Inference tensors" not in str(error):
            raise
        with torch.no_grad():  # perhaps of a tensor that the model kept from an earlier call
            return export(model)


@contextmanager
def _moves_of_nothing() -> Iterator[None]:
    """Inside the block, a module's `to`, `cpu` and `float` do nothing if they change no tensor.

    PyTorch replaces the parameters even then, and fails to while torch.export traces the model.
    """
    import torch

    apply: Callable[..., Any] = torch.nn.Module._apply

    def applied(module: Any, function: Callable[[Any], Any], recurse: bool = True) -> Any:
        tensors = [*module.parameters(recurse), *module.buffers(recurse)]
        if all(_of_one_kind(function(each), each) for each in tensors):
            return module
        return apply(module, function, recurse)

    torch.nn.Module._apply = applied  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.nn.Module._apply = apply  # type: ignore[method-assign]


def _of_one_kind(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype and one.device == other.device)
