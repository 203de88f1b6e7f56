"""Converters for the parts of a mixture of experts, on current TVM: a product per expert."""

from typing import Any

from tvm_practice.tvm_export.importers.converters import Converters


def mixture_converters() -> Converters:
    """By the operator's name."""
    return {"grouped_mm_fallback.default": grouped_product}


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
