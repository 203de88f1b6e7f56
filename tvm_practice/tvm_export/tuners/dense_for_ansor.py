"""A dense layer that Ansor can tune, in the place of TOPI's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def dense_for_ansor() -> Iterator[None]:
    """Give Relay a dense that Ansor can tune, for as long as the block lasts.

    TOPI's own names its axes i0 and i1 in this build, and Ansor's layout rewriting, which looks
    for j and k, fails on every trial without a message.
    """
    from tvm import topi

    original = topi.nn.dense
    topi.nn.dense = _dense
    try:
        yield
    finally:
        topi.nn.dense = original


def _dense(
    data: Any,
    weight: Any,
    bias: Any = None,
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Any:
    """Y[i, j] = sum over k of data[i, k] * weight[j, k], with the signature of TOPI's dense."""
    from tvm import auto_scheduler, te, topi

    dtype = out_dtype or data.dtype
    batch, inputs = data.shape
    if auto_scheduler_rewritten_layout:
        outputs, _ = auto_scheduler.get_shape_from_rewritten_layout(
            auto_scheduler_rewritten_layout, ["j", "k"]
        )
        auto_scheduler.remove_index_check(weight)
    else:
        outputs, _ = weight.shape
    k = te.reduce_axis((0, inputs), name="k")
    product = te.compute(
        (batch, outputs),
        lambda i, j: te.sum(data[i, k].astype(dtype) * weight[j, k].astype(dtype), axis=k),
        name="dense",
        tag="dense",
        attrs={"layout_free_placeholders": [weight]},
    )
    if bias is not None:
        product = topi.add(product, bias.astype(dtype))
    if auto_scheduler_rewritten_layout:
        product = auto_scheduler.rewrite_compute_body(product, auto_scheduler_rewritten_layout)
    return product
