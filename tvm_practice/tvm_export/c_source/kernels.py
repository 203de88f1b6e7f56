"""The functions of a model compiled to take plain pointers.

kernels = compile_kernels({"softmax": function}, target, prefix="net_")
kernels.write_to_file("net_kernels.o", "o")

TVM compiles a function to take tagged values and to check each: of a small one that is most of the
code. Here each tensor is a pointer, int net_softmax(float*, float*), and the result is 0, or -1
after an error was told.
"""

from collections.abc import Mapping
from typing import Any
from unittest import mock

_CPU = 1  # DLDeviceType kDLCPU
_KEPT = 1  # a calling convention: TVM renames no function that has one, and drops none


def compile_kernels(functions: Mapping[str, Any], target: Any, *, prefix: str) -> Any:
    """The runtime module of PrimFuncs whose parameters are pointers, in their tensors' order.

    Args:
        functions: scheduled PrimFuncs by name.
        target: a tvm.target.Target of the kind llvm; with the host c, C source is generated.
        prefix: of the symbols.
    """
    import tvm
    from tvm import tirx

    from tvm_practice.tvm_export.lowering.tiles_on_stack import keeping_tiles

    module = tvm.IRModule(
        {
            name: each.with_attr("global_symbol", f"{prefix}{name}")
            for name, each in functions.items()
        }
    )
    # TVM's pipeline has no other seam between lowering and its own calling convention.
    seam = mock.patch.object(tirx.transform, "MakePackedAPI", _taking_pointers)
    with target, seam, keeping_tiles(target):
        return tvm.tirx.build(module, target=target)


def _taking_pointers() -> Any:
    """A pass in place of MakePackedAPI."""
    import tvm

    def take_pointers(module: Any, _: Any) -> Any:
        return tvm.IRModule({name: _bare(each) for name, each in module.functions_items()})

    return tvm.transform.module_pass(take_pointers, opt_level=0, name="TakePointers")


def _bare(function: Any) -> Any:
    """A lowered PrimFunc of buffers as one of pointers."""
    import tvm
    from tvm import tirx

    pointers, declared = [], []
    for buffer in function.params:
        pointer = tirx.Var(str(buffer.name), tvm.ir.PointerType(buffer.ty.dtype))
        pointers.append(pointer)
        declared.append(tirx.DeclBuffer(buffer, data=pointer))
    number = tirx.IntImm("int32", 0)
    body = tirx.SeqStmt([*declared, function.body, tirx.Return(number)])
    for key, value in (("device_id", 0), ("device_type", _CPU)):  # of what it allocates
        node = tvm.ir.StringImm("default")
        body = tirx.AttrStmt(node, key, tirx.IntImm("int32", value), body)
    bare = tirx.PrimFunc(pointers, body, tvm.ir.PrimType("int32"), function.attrs)
    return bare.with_attr("calling_conv", _KEPT)
