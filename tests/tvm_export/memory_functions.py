"""Functions that the tests of `tvm_export.memory` call in a process of the current engine."""

from typing import Any

import numpy as np

from tvm_practice.tvm_export.memory import pool_bytes, read_memory
from tvm_practice.tvm_export.running import RelaxRunner


def _fused() -> Any:
    """relu(x @ a) @ b, with a reshape between that only changes the view; n rows, fused."""
    from tvm import relax, tirx

    from solutions.relay_import import optimize_relax

    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 16), "float32"))
    a, b = (relax.const(np.ones(shape, "float32")) for shape in ((16, 32), (16, 8)))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            wide = builder.emit(relax.op.nn.relu(builder.emit(relax.op.matmul(x, a))))
            tall = builder.emit(relax.op.reshape(wide, (n * 2, 16)))
            y = builder.emit_output(relax.op.matmul(tall, b))
        builder.emit_func_output(y)
    return optimize_relax(builder.get())


def read(n: int) -> dict[str, Any]:
    """What is read of the plan for n rows, and what the virtual machine allocates in a call."""
    import tvm

    from solutions.labs.dynamic_shapes import plan_memory

    fused = _fused()
    plan = read_memory(plan_memory(fused), n=n)
    allocated: list[int] = []

    def watch(_function: Any, name: str, before: bool, _result: Any, *arguments: Any) -> int:
        if before and name == "vm.builtin.alloc_storage":
            allocated.append(int(arguments[1][0]))
        return 0

    runner = RelaxRunner(tvm.compile(fused, tvm.target.Target({"kind": "llvm"})))
    runner.set_inputs([np.ones((n, 16), "float32")])
    with runner.instrumented(watch):
        runner.run()
    return {
        "storages": list(plan.storages.values()),
        "formulas": list(plan.formulas.values()),
        "allocated": allocated,
        "held": plan.held(),
        "frees": sum(each.kind == "free" for each in plan.events),
        "pool": pool_bytes([plan]),
    }


def without_a_value() -> str:
    from solutions.labs.dynamic_shapes import plan_memory

    try:
        read_memory(plan_memory(_fused()))
    except ValueError as error:
        return str(error)
    return ""
