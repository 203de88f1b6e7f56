"""Truth values in bytes: compared, added, and kept between the stages of a function.

LLVM's code generator takes a vector of bool for one of floats: `a == b` ends in "Invalid operand
types for FCmp instruction", `a + b` in a failed check. And TVM stores bytes where a function keeps
a vector of bool for itself, in memory that it still takes for bool. Nor can it analyze the value
of a name (Let) in which a vector of bool is cast.
"""

from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import has_stages, stages, with_stages


def truth_in_bytes(module: Any) -> Any:
    """A module whose functions compare and add bool as 8-bit integers; the results stay bool."""
    import tvm_ffi
    from tvm import tirx

    def replace(operation: Any) -> Any:
        if not all(str(each.ty) == "bool" for each in (operation.a, operation.b)):
            return operation
        of_bytes = type(operation)(operation.a.astype("int8"), operation.b.astype("int8"))
        return of_bytes.astype("bool")

    kinds = (
        *(tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE),
        *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Min, tirx.Max),
    )
    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            body = tvm_ffi.structural_map(func.body, (kinds, replace), order="post")
            if not body.same_as(func.body):
                changed[name] = func.with_body(body)
    return changed


def kept_in_bytes(module: Any) -> Any:
    """A module whose functions keep 8-bit integers between their stages in place of bool.

    Args:
        module: an IRModule of scheduled functions: most such values are in none of these any more.
    """
    from tvm import tirx

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc) and has_stages(func):
            own = [each for each in func.body.block.alloc_buffers if str(each.dtype) == "bool"]
            if own:
                changed[name] = _in_bytes(func, own)
    return changed


def _in_bytes(func: Any, own: list[Any]) -> Any:
    """A function with buffers of bytes for its own ones of bool."""
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad, TensorRegion

    bytes_of = {
        each: tirx.decl_buffer(each.shape, "int8", each.name, scope=each.scope()) for each in own
    }

    def load(each: Any) -> Any:
        if each.source not in bytes_of:
            return each
        return tirx.BufferLoad(bytes_of[each.source], each.indices).astype("bool")

    def store(each: Any) -> Any:
        if each.buffer not in bytes_of:
            return each
        return tirx.BufferStore(bytes_of[each.buffer], each.value.astype("int8"), each.indices)

    def region(each: Any) -> Any:
        known = each.source in bytes_of
        return tirx.BufferRegion(bytes_of[each.source], each.region) if known else each

    for change in ((TensorLoad, load), (tirx.BufferStore, store), (TensorRegion, region)):
        func = func.with_body(tvm_ffi.structural_map(func.body, change, order="post"))
    buffers = [bytes_of.get(each, each) for each in func.body.block.alloc_buffers]
    return with_stages(func, stages(func), buffers)


def chosen_in_names(module: Any) -> Any:
    """A module in which the value of a name chooses between 1 and 0 instead of casting a bool.

    Args:
        module: an IRModule of scheduled functions.
    """
    import tvm_ffi
    from tvm import tirx

    def choose(cast: Any) -> Any:
        dtype = str(cast.ty)
        if str(cast.value.ty) != "bool" or dtype == "bool":
            return cast
        return tirx.Select(cast.value, tirx.const(1, dtype), tirx.const(0, dtype))

    def named(let: Any) -> Any:
        value = tvm_ffi.structural_map(let.value, (tirx.Cast, choose), order="post")
        return let if value.same_as(let.value) else tirx.Let(let.var, value, let.body)

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            body = tvm_ffi.structural_map(func.body, (tirx.Let, named), order="post")
            if not body.same_as(func.body):
                changed[name] = func.with_body(body)
    return changed
