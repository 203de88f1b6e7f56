"""Paddings that go with the function which makes what they pad; see also `rules.cpu.padded`."""

from typing import Any

from tvm_practice.tvm_export.rewriting import rewritten

# The attribute of the functions that pad.
_PADS = "tvm_practice.pads"


def padded(data: Any, width: list[int], value: float, builder: Any) -> Any:
    """The call of a function that pads a tensor; see `with_padding_fused`.

    Args:
        data: the tensor, of constant extents.
        width: by axis, how many elements go before and how many behind.
        value: what they are.
        builder: that gets the function.
    """
    from tvm import relax, te, tirx

    shape = [int(each.value) for each in data.ty.shape]
    axes = list(zip(shape, width[::2], width[1::2], strict=True))
    sizes = [size + low + high for size, low, high in axes]
    dtype = str(data.ty.dtype)
    x = te.placeholder([tirx.const(each, "int64") for each in shape], name="x", dtype=dtype)

    def at(*indices: Any) -> Any:
        inside = []
        for index, (size, low, high) in zip(indices, axes, strict=True):
            inside += [index >= low] if low else []
            inside += [index < low + size] if high else []
        moved = [index - low for index, (_, low, _) in zip(indices, axes, strict=True)]
        return tirx.if_then_else(tirx.all(*inside), x(*moved), tirx.const(value, dtype))

    whole = [tirx.const(each, "int64") for each in sizes]
    func = te.create_prim_func([x, te.compute(whole, at, name="pad")])
    func = func.without_attr("global_symbol").with_attr(_PADS, True)
    padding = builder.add_func(func, "pad")
    return relax.call_tir(padding, (data,), relax.TensorType(sizes, dtype))


def with_padding_fused(module: Any) -> Any:
    """A module of fused functions whose paddings go with the functions that make their operands.

    TVM fuses a padding with a convolution only where all of it is after the last element.

    Args:
        module: as `optimize_relax` leaves it; it is left as it was.
    """
    import tvm
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    once: set[Any] = set()
    for _, function in module.functions_items():
        if isinstance(function, relax.Function):
            once |= read_once(function)
    if not any(_PADS in (each.attrs or {}) for _, each in module.functions_items()):
        return module

    @mutator
    class Fusing(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            made = None
            if _pads(module, call) and call.args[1].fields[0] in once:
                made = self.lookup_binding(self.visit_expr(call.args[1].fields[0]))
            call = self.visit_expr_post_order(call)
            name = str(getattr(getattr(made, "op", None), "name", ""))
            return _together(made, call, self.builder_) if name == "relax.call_tir" else call

    passes = [relax.transform.FuseTIR(), relax.transform.DeadCodeElimination()]
    return tvm.ir.transform.Sequential(passes)(rewritten(module, Fusing(module)))


def _pads(module: Any, call: Any) -> bool:
    """Whether a call is of a function that pads, and that is fused with nothing."""
    name = str(getattr(call.op, "name", ""))
    return name == "relax.call_tir" and _PADS in (module[call.args[0]].attrs or {})


def read_once(function: Any) -> set[Any]:
    """The variables of a function that one binding reads, and that are no output."""
    from tvm import relax

    once: set[Any] = set()
    for block in function.body.blocks:
        if isinstance(block, relax.DataflowBlock):
            read = relax.analysis.udchain(block)
            once |= {
                var
                for var, users in read.items()
                if len(users) == 1 and isinstance(var, relax.DataflowVar)
            }
    return once


def _together(made: Any, padding: Any, builder: Any) -> Any:
    """The call of one function that computes the call `made` and pads its result."""
    from tvm import relax

    name = f"{made.args[0].name_hint}_pad"
    given = list(made.args[1].fields)
    own = relax.BlockBuilder()
    params = [relax.Var(f"x{number}", each.ty) for number, each in enumerate(given)]
    with own.function(name, params, attrs={"Primitive": True}):
        with own.dataflow():
            inner = own.emit(relax.call_tir(made.args[0], params, made.ty_args[0]))
            outer = own.emit_output(relax.call_tir(padding.args[0], [inner], padding.ty_args[0]))
        own.emit_func_output(outer)
    [function] = [
        each for _, each in own.get().functions_items() if isinstance(each, relax.Function)
    ]
    function = function.without_attr("global_symbol")
    return relax.Call(builder.add_func(function, name), given)
