"""Comparisons and arithmetic of truth values, in bytes.

LLVM's code generator takes a vector of bool for one of floats: `a == b` ends in "Invalid operand
types for FCmp instruction", `a + b` in a failed check.
"""

from typing import Any


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
