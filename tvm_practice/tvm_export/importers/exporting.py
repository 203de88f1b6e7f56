"""What torch.export may need to be given a model."""

from collections.abc import Callable
from typing import TypeVar

from tvm_practice.tvm_export.importers.constants import constants_known
from tvm_practice.tvm_export.importers.converters.relax import as_if_run
from tvm_practice.tvm_export.importers.refusals import DependsOnValues

Made = TypeVar("Made")


def by_whatever_helps(export: Callable[[], Made], model: object) -> Made:
    """What a function that exports a model returns, called once more if another way may help.

    Args:
        export: calls torch.export on the model.
        model: a torch.nn.Module.
    """
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        return export()
    except (AttributeError, TypeError):  # perhaps of what a model does when it is compiled alone
        with as_if_run():
            return export()
    except (GuardOnDataDependentSymNode, DataDependentOutputException, DependsOnValues):
        # Perhaps of a tensor that the model makes itself, or keeps.
        with constants_known(model):
            return export()
    except RuntimeError as error:  # perhaps of a tensor that the model kept from an earlier call
        if "Inference tensors" not in str(error):
            raise
        with torch.no_grad():
            return export()
