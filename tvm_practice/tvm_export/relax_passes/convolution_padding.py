"""Zeros that a model pads an image with before a convolution, as the convolution's own padding.

    module = with_own_padding(module)  # as imported, for a GPU

A GPU's rules read an image's windows where they are needed, zeros around it included. A padding of
its own would be a kernel of its own, or would be fused with the layer before, whose tiles then do
not fit what it writes.
"""

from typing import Any

from tvm_practice.tvm_export.rewriting import rewritten


def with_own_padding(module: Any) -> Any:
    """A Relax module whose 2-D convolutions pad their images themselves, where those get zeros.

    Paddings by nothing go, too.

    Args:
        module: as imported; it is left as it was.
    """
    import tvm
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Padding(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            if _name(call) == "relax.nn.pad" and _around(call) == [0] * len(_around(call)):
                return call.args[0]
            if _name(call) != "relax.nn.conv2d" or str(call.attrs.data_layout) != "NCHW":
                return call
            image = call.args[0]
            made = self.lookup_binding(image) if isinstance(image, relax.Var) else None
            return call if made is None or not _adds_zeros(made) else _padding_itself(call, made)

    passes = [relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination()]
    return tvm.ir.transform.Sequential(passes)(rewritten(module, Padding(module)))


def _name(expression: Any) -> str:
    return str(getattr(getattr(expression, "op", None), "name", ""))


def _around(padding: Any) -> list[int]:
    """By axis, how many elements go before and how many behind."""
    return [int(each) for each in padding.attrs.pad_width]


def _adds_zeros(expression: Any) -> bool:
    """Whether an expression pads the height and width of images with zeros, and crops nothing."""
    if _name(expression) != "relax.nn.pad" or str(expression.attrs.pad_mode) != "constant":
        return False
    around = _around(expression)
    is_image = len(around) == 8 and not any(around[:4])
    return is_image and min(around) >= 0 and float(expression.attrs.pad_value) == 0


def _padding_itself(convolution: Any, padding: Any) -> Any:
    """The convolution of what is padded, with that padding beside its own."""
    from tvm import relax

    attributes = convolution.attrs
    up, down, left, right = _around(padding)[4:]
    more = (up, left, down, right)
    return relax.op.nn.conv2d(
        padding.args[0],
        convolution.args[1],
        strides=[int(each) for each in attributes.strides],
        padding=[int(own) + each for own, each in zip(attributes.padding, more, strict=True)],
        dilation=[int(each) for each in attributes.dilation],
        groups=int(attributes.groups),
        data_layout=str(attributes.data_layout),
        kernel_layout=str(attributes.kernel_layout),
        out_dtype=str(convolution.ty.dtype),
    )
