"""Constants without elements, which TVM cannot load."""

from typing import Any

from tvm_practice.tvm_export.rewriting import rewritten


def without_empty_constants(module: Any) -> Any:
    """A Relax module that makes its constants without elements anew."""
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    found = False

    @mutator
    class Making(PyExprMutator):  # type: ignore[misc]
        def visit_generic_const_(self, constant: Any) -> Any:
            nonlocal found
            kind = getattr(constant, "ty", None)
            if not isinstance(kind, relax.TensorType) or 0 not in constant.value.shape:
                return constant
            found = True
            made = relax.op.builtin.alloc_tensor(kind.shape, str(kind.dtype), 0)
            return self.builder_.emit(made)

    made = rewritten(module, Making(module))
    return made if found else module
