"""Converters for the parts of a mixture of experts, on current TVM: a product per expert."""

from typing import Any

from tvm_practice.tvm_export.importers.converters import Converters


def mixture_converters() -> Converters:
    """By the operator's name."""
    return {"grouped_mm_fallback.default": grouped_product, "histc.default": histogram}


def grouped_product(node: Any, importer: Any) -> Any:
    """Rows (S, K), grouped by expert, times each one's matrix of (E, K, N): (S, N).

    The third argument is the row after each group's last. How many rows a group has is known at run
    time only, and TVM's extents are fixed: every row is multiplied with every matrix, and the
    expert's own product is kept. Rows after the last group are zero.
    """
    from tvm import relax

    op, emit = relax.op, importer.block_builder.emit
    rows, matrices, ends = (importer.env[each] for each in node.args)
    count, experts = rows.ty.shape[0], matrices.ty.shape[0]
    numbers = emit(op.expand_dims(op.arange(0, count, 1, dtype=str(ends.ty.dtype)), 1))
    before = emit(op.less_equal(op.expand_dims(ends, 0), numbers))
    group = emit(op.sum(op.astype(before, "int32"), 1))
    wanted = emit(op.expand_dims(op.arange(0, experts, 1, dtype="int32"), 1))
    own = emit(op.expand_dims(op.equal(op.expand_dims(group, 0), wanted), 2))
    every = emit(op.matmul(op.expand_dims(rows, 0), matrices))
    kept = emit(op.where(own, every, relax.const(0, str(every.ty.dtype))))
    return emit(op.sum(kept, 0))


def histogram(node: Any, importer: Any) -> Any:
    """How many elements lie in each of `bins` equal parts of [min, max].

    Raises NotImplementedError where the range is the elements' own.
    """
    from tvm import relax

    op, emit = relax.op, importer.block_builder.emit
    x = importer.env[node.args[0]]
    settings = dict(zip(("bins", "min", "max"), node.args[1:], strict=False)) | node.kwargs
    bins, low, high = (settings.get(each, 0) for each in ("bins", "min", "max"))
    bins = bins or 100
    if low == high:
        raise NotImplementedError("histc without a range: it is known at run time only")
    dtype = str(x.ty.dtype)
    flat = emit(op.reshape(x, (-1, 1)))
    at = op.multiply(op.subtract(flat, relax.const(low, dtype)), relax.const(bins, dtype))
    part = emit(op.floor(op.divide(at, relax.const(high - low, dtype))))
    last = op.equal(flat, relax.const(high, dtype))  # the range's end is the last part's
    part = emit(op.where(last, relax.const(bins - 1, dtype), part))
    same = emit(op.equal(part, op.expand_dims(op.arange(0, bins, 1, dtype=dtype), 0)))
    return emit(op.sum(op.astype(same, dtype), 0))
