"""numpy's BLAS as a library that compiled code calls, and as a backend of Relax.

`view` is a numpy array on a passed tensor's memory. `register` makes two things known to
the current TVM of this process:

    tvm_practice.linear        y = x · w + b, a function that compiled code calls by its name
    relax.ext.tvm_practice     the code generator that `relax.transform.RunCodegen` calls for the
                               functions of the backend "tvm_practice"

numpy's BLAS is on every machine that runs the course, and the wheel of current TVM is built without
one (no `tvm.contrib.cblas`).
"""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

BACKEND = "tvm_practice"
LINEAR = "tvm_practice.linear"


def view(tensor: Any) -> np.ndarray:
    """A writable numpy array on a TVM tensor's memory; nothing is copied.

    `numpy.from_dlpack` does the same for a tensor that owns its memory. Compiled code passes a
    bare DLTensor, an address with a shape: it has no owner whose lifetime DLPack could extend,
    and asking for one crashes the process. The array must not outlive the call.

    Args:
        tensor: a contiguous tensor on the CPU, as a registered function is given it.

    Raises:
        ValueError: it is not contiguous.
    """
    if not tensor.is_contiguous():
        raise ValueError(f"a tensor with strides {tensor.strides} has no plain view")
    dtype = np.dtype(str(tensor.dtype))
    memory = (ctypes.c_char * (tensor.numel() * dtype.itemsize)).from_address(tensor.data_ptr())
    return np.frombuffer(memory, dtype).reshape(tensor.shape)


def linear(x: Any, w: Any, *rest: Any) -> None:
    """y = x · w + b: x (…, k), w (k, n), b (n,), y (…, n); called with (x, w, y), without b."""
    *bias, y = map(view, rest)
    np.matmul(view(x), view(w), out=y)
    for b in bias:
        y += b


def register() -> None:
    """Make `linear` and `generate` known to the active, current TVM."""
    import tvm_ffi

    tvm_ffi.register_global_func(LINEAR, linear, override=True)
    tvm_ffi.register_global_func(f"relax.ext.{BACKEND}", generate, override=True)


def generate(
    functions: Sequence[Any], options: Mapping[str, Any], constant_names: Mapping[Any, str]
) -> list[Any]:
    """A runtime module for each of a backend's functions: what RunCodegen calls.

    Each module has one function, named as the given one's "global_symbol", which takes its
    parameters and then the output, and passes them on to `LINEAR` in the order of its arguments.
    TVM itself compiles it, from a PrimFunc: such a module both runs as it is and can be saved
    with the executable. A module of C source can be saved but not run; one that was loaded from
    a shared library can be run but not saved.

    Args:
        functions: relax functions that each wrap one composite function: a relax.matmul, and
            perhaps a relax.add of a bias.
        options: of this backend, from RunCodegen's target_options; there are none.
        constant_names: constants that the functions hold; they hold none.
    """
    return [_call_of_linear(function) for function in functions]


def _call_of_linear(function: Any) -> Any:
    import tvm
    from tvm import te

    from tvm_practice.engines import host_target

    symbol = str(function.attrs["global_symbol"])
    order = _operands(function)
    inputs = [
        te.placeholder(
            [int(extent) for extent in each.ty.shape], str(each.ty.dtype), name=each.name
        )
        for each in function.params
    ]
    result = function.ret_ty
    output = te.extern(
        [int(extent) for extent in result.shape],
        inputs,
        lambda ins, outs: tvm.tirx.call_packed(LINEAR, *(ins[each] for each in order), outs[0]),
        name="y",
        dtype=str(result.dtype),
    )
    primfunc = te.create_prim_func([*inputs, output]).with_attr("global_symbol", symbol)
    return tvm.compile(tvm.IRModule({symbol: primfunc}), target=host_target()).mod


def _operands(function: Any) -> list[int]:
    """Which parameters of the function are x, w and, if there is one, b."""
    from tvm import relax

    (block,) = function.body.blocks
    composite, call = (each.value for each in block.bindings)
    position = {
        inner: next(i for i, each in enumerate(function.params) if each.same_as(given))
        for inner, given in zip(composite.params, call.args, strict=True)
    }
    found: list[Any] = []
    relax.analysis.post_order_visit(
        composite.body,
        lambda node: found.append(node) if isinstance(node, relax.Call) else None,
    )
    (product,) = (each for each in found if each.op.name == "relax.matmul")
    added = [each for each in found if each.op.name == "relax.add"]
    operands = [*product.args, *(arg for each in added for arg in each.args if arg in position)]
    return [position[each] for each in operands]
