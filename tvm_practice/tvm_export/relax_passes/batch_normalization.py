"""Batch normalization carried by the convolution before it."""

from typing import Any

from tvm_practice.tvm_export.constant_folding import folded_constants
from tvm_practice.tvm_export.relax_passes.channels_last import calls


def fold_batch_normalization(module: Any) -> Any:
    """A Relax module whose convolutions carry the batch normalization that follows them.

    Its scale goes into the weights and its shift becomes an addition, so that a subtraction, a
    division and a multiplication of every element are gone. A normalization that follows something
    else stays; and all stay where a convolution's own output is used as well, because TVM would
    then compute it twice, and in a model that normalizes other types than float32: TVM adds a
    float32 epsilon, and a narrower type would round the scaled weights once more.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.
    """
    import tvm
    from tvm import relax

    if not _types_of(module, "relax.nn.batch_norm") <= {"float32"}:
        return module
    passes = tvm.ir.transform.Sequential(
        [
            relax.transform.CanonicalizeBindings(),
            relax.transform.FoldBatchnormToConv2D(),
            relax.transform.CanonicalizeBindings(),
            folded_constants(),
        ]
    )
    folded = passes(module)
    convolution = "relax.nn.conv2d"
    return folded if len(calls(folded, convolution)) == len(calls(module, convolution)) else module


def _types_of(module: Any, operator: str) -> set[str]:
    """The types of the first arguments that main calls an operator with."""
    return {str(each.args[0].ty.dtype) for each in calls(module, operator)}
