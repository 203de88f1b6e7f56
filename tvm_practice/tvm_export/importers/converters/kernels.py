"""Kernels given as TVMScript, on current TVM: loops that run as they are, on processors."""

from collections.abc import Sequence
from typing import Any

HOST_ONLY = "tvm_practice.host_only"
"""Attribute of a function that no schedule puts on a device of its own."""


def called(importer: Any, *kernel: Any, **settings: Any) -> tuple[Any, ...]:
    """`call_kernel` in the module that an importer of the frontend builds."""
    return call_kernel(importer.block_builder, *kernel, **settings)


def call_kernel(
    builder: Any,
    text: str,
    name: str,
    inputs: Sequence[Any],
    shapes: Sequence[Any],
    dtype: str | Sequence[str],
    **settings: Any,
) -> tuple[Any, ...]:
    """Add a kernel to the module and call it; its outputs.

    Args:
        builder: a relax.BlockBuilder, of the module.
        text: TVMScript of a PrimFunc with {placeholders} for its attributes, `dtype` and settings.
        name: of the function.
        inputs: Relax variables.
        shapes: of the outputs.
        dtype: of the outputs; one for each where they differ, the first the text's.
        settings: by placeholder.
    """
    import tvm
    from tvm import relax

    attributes = (
        f'{{"tirx.noalias": True, "tirx.is_scheduled": True, "op_pattern": 8, "{HOST_ONLY}": True}}'
    )
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype
    filled = text.format(attributes=attributes, dtype=dtypes[0], **settings)
    kernel = builder.add_func(tvm.script.from_source(filled), name)
    kinds = [relax.TensorType(*each) for each in zip(shapes, dtypes, strict=True)]
    if len(kinds) == 1:
        return (builder.emit(relax.call_tir(kernel, list(inputs), out_ty=kinds[0])),)
    found = builder.emit(relax.call_tir(kernel, list(inputs), out_ty=kinds))
    return tuple(builder.emit(relax.TupleGetItem(found, i)) for i in range(len(kinds)))


def float_type(importer: Any, x: Any) -> str:
    """The type of a node's value. Raises NotImplementedError unless it is float32 or float64."""
    dtype = str(importer.env[x].ty.dtype)
    if dtype not in ("float32", "float64"):
        raise NotImplementedError(f"for {dtype}")
    return dtype
