"""Corrections of current TVM's PyTorch frontend."""

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

_CONVOLUTIONS = (
    "conv1d",
    "conv2d",
    "conv3d",
    "conv1d_transpose",
    "conv2d_transpose",
    "conv3d_transpose",
)


@contextmanager
def corrections() -> Iterator[None]:
    """All of this module's, inside the block."""
    with keeping_types(), attention_as_products():
        yield


def attention_as_products() -> AbstractContextManager[None]:
    """Inside the block, let PyTorch take attention apart as it is defined.

    torch.export writes down the strides of the kernel that this machine would run, and the parts
    must have them too: permutations that do nothing come of it, and for GPT-2 with eight examples
    a view that cannot be taken.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    context: AbstractContextManager[None] = sdpa_kernel(SDPBackend.MATH)
    return context


@contextmanager
def keeping_types() -> Iterator[None]:
    """Inside the block, let products and convolutions have their operands' type.

    The PyTorch frontend asks for float32 whatever they are given, so that a model in float16,
    bfloat16 or float64 does not type-check. It has no setting for that; the operators that it
    calls are replaced while it runs.
    """
    from tvm import relax

    places: list[tuple[Any, str]] = [(relax.op, "linear"), (relax.op.linear_algebra, "matmul")]
    places += [(relax.op.nn, name) for name in _CONVOLUTIONS]
    originals = [getattr(module, name) for module, name in places]
    for (module, name), original in zip(places, originals, strict=True):
        setattr(module, name, _of_its_operands(original))
    try:
        yield
    finally:
        for (module, name), original in zip(places, originals, strict=True):
            setattr(module, name, original)


def _of_its_operands(operator: Any) -> Any:
    """`operator` without its out_dtype, which is then the operands'."""

    @functools.wraps(operator)
    def called(*operands: Any, **settings: Any) -> Any:
        settings.pop("out_dtype", None)
        if operands and operands[-1] == "float32":  # linear is given it by position
            operands = operands[:-1]
        return operator(*operands, **settings)

    return called
