"""Corrections of current TVM's PyTorch frontend."""

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
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
    numbers = keeping_types(), counting_from_the_end()
    with ExitStack() as opened:
        for each in (*numbers, passing_over_nothing(), attention_as_products()):
            opened.enter_context(each)
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
def as_if_run() -> Iterator[None]:
    """Inside the block, a model that asks whether it is being compiled is told that it is not.

    Some of transformers' leave out what they do about an argument that is missing then.
    """
    import torch

    original = torch.compiler.is_compiling
    torch.compiler.is_compiling = lambda: False
    try:
        yield
    finally:
        torch.compiler.is_compiling = original


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


@contextmanager
def counting_from_the_end() -> Iterator[None]:
    """Inside the block, let x[indices] and torch.take have negative indices.

    The PyTorch frontend hands them to gathers that count from the beginning only. Where the axis
    has an open extent, or one tensor indexes axes of different extents, they stay as they are, and
    a check refuses them at run time.
    """
    from tvm.relax.frontend.torch.base_fx_graph_translator import BaseFXGraphImporter as Importer

    originals = {name: getattr(Importer, name) for name in ("_index_tensor", "_take")}
    for name, original in originals.items():
        setattr(Importer, name, _with_positive_indices(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(Importer, name, original)


def _with_positive_indices(convert: Any) -> Any:
    """A method of TVM's importer that converts a node (data, indices), negative ones allowed."""

    @functools.wraps(convert)
    def converted(importer: Any, node: Any) -> Any:
        data, indices = node.args[:2]
        extents = list(importer.env[data].ty.shape.values)
        if not isinstance(indices, list | tuple):  # torch.take's, into all elements
            extents, indices = [math.prod(extents)], [indices]
        # TVM's converter sees one value of each tensor, so only one extent can be added to it.
        wanted: dict[Any, set[int]] = {}
        for extent, each in zip(extents, indices, strict=False):
            if each is not None:
                wanted.setdefault(each, set()).add(int(getattr(extent, "value", 0)))
        given = {each: importer.env[each] for each in wanted}
        for each, [extent, *others] in wanted.items():
            if extent and not others:
                importer.env[each] = _counted_from_the_beginning(importer, given[each], extent)
        try:
            return convert(importer, node)
        finally:
            importer.env.update(given)

    return converted


def _counted_from_the_beginning(importer: Any, indices: Any, extent: int) -> Any:
    """Indices with the extent added to those below zero, if there can be any."""
    from tvm import ir, relax

    signed = str(indices.ty.dtype).startswith("int")
    if not signed or (isinstance(indices, ir.GenericConst) and (indices.value.numpy() >= 0).all()):
        return indices
    emit, dtype = importer.block_builder.emit, indices.ty.dtype
    zero, added = relax.const(0, str(dtype)), relax.const(extent, str(dtype))
    below = emit(relax.op.less(indices, zero))
    return emit(relax.op.where(below, emit(relax.op.add(indices, added)), indices))


@contextmanager
def passing_over_nothing() -> Iterator[None]:
    """Inside the block, let a concatenation pass over vectors of no element, as PyTorch does.

    A language model's cache begins as one, whatever the rank of a tensor added to it.
    """

    def concat(original: Any, tensors: Any, axis: int | None = 0) -> Any:
        if isinstance(tensors, (list, tuple)):
            tensors = [each for each in tensors if not _is_nothing(each)] or tensors
        return original(tensors, axis=axis)

    with _replaced("concat", concat):
        yield


@contextmanager
def _replaced(name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    """Inside the block, Relax's operator is `replacement`, which is given the original first."""
    from tvm import relax

    original = getattr(relax.op, name)
    setattr(relax.op, name, functools.wraps(original)(functools.partial(replacement, original)))
    try:
        yield
    finally:
        setattr(relax.op, name, original)


def _is_nothing(tensor: Any) -> bool:
    """Whether a Relax expression is a vector of no element."""
    shape = list(tensor.ty.shape or ())
    return len(shape) == 1 and getattr(shape[0], "value", None) == 0


def _of_its_operands(operator: Any) -> Any:
    """`operator` without its out_dtype, which is then the operands'; float16 sums in float32."""

    @functools.wraps(operator)
    def called(*operands: Any, **settings: Any) -> Any:
        from tvm import relax

        settings.pop("out_dtype", None)
        if operands and operands[-1] == "float32":  # linear is given it by position
            operands = operands[:-1]
        takes_two = sum(isinstance(each, relax.Expr) for each in operands) == 2  # and no bias
        adds = takes_two and not operator.__name__.endswith("_transpose")
        if not adds or str(operands[0].ty.dtype) != "float16":
            return operator(*operands, **settings)
        return relax.op.astype(operator(*operands, out_dtype="float32", **settings), "float16")

    return called
