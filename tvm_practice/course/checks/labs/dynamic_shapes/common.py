"""Lab 4, and what several of its checks need: modules compiled and run, types as text."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import expect
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.rules.cpu.loops import constant
from tvm_practice.tvm_export.running import RelaxRunner

PHASE = Phase(
    number=4,
    module="labs.dynamic_shapes",
    title="dynamic shapes",
    lanes=(CURRENT,),
    builds_on=(
        "te_basics.matmul",
        "relay_import.import_relax",
        "relay_import.optimize_relax",
        "relay_import.build_relax",
    ),
    question=(
        "What does TVM lose when an extent becomes a symbol, and when are static artifacts with "
        "padding better than one dynamic artifact?"
    ),
)

Function = Callable[..., Any]
Arrays = Callable[..., np.ndarray]


def unoptimized_target() -> Any:
    """What is graded is compiled for: no optimization, which takes most of the time."""
    import tvm

    return tvm.target.Target({"kind": "llvm", "opt-level": 0})


def compiled(mod: Any) -> Arrays:
    """A Relax module compiled as it stands: a function from arrays to its one output."""
    import tvm

    return run_by(tvm.compile(mod, unoptimized_target()))


def run_by(executable: Any) -> Arrays:
    runner = RelaxRunner(executable)

    def run(*inputs: np.ndarray) -> np.ndarray:
        runner.set_inputs(inputs)
        runner.run()
        outputs = runner.outputs()
        return outputs[0]

    return run


def expect_module(given: Any, name: str) -> Any:
    """`given` is an IRModule with a Relax function main, which is returned."""
    import tvm
    from tvm import relax

    expect(
        isinstance(given, tvm.IRModule)
        and any(str(each.name_hint) == "main" for each in given.get_global_vars())
        and isinstance(given["main"], relax.Function),
        expected=f"{name} returns an IRModule with a Relax function main",
        seen=f"a {type(given).__module__}.{type(given).__name__}",
        look="the return statement",
    )
    return given["main"]


def extents_of(type_: Any) -> list[Any]:
    """The extents of a tensor's type; none if its shape is not known."""
    shape = getattr(type_, "shape", None)
    return [] if shape is None else list(shape.values)


def as_tuple(extents: Sequence[Any]) -> str:
    """Extents as a tuple; those that are constants as plain numbers."""
    return f"({', '.join(str(constant(each) or each) for each in extents)})"


def prim_funcs(mod: Any) -> list[Any]:
    return [each for each in mod.functions.values() if type(each).__name__ == "PrimFunc"]


def operators_called(main: Any) -> list[str]:
    """The operators that main calls, in order."""
    return [
        str(getattr(binding.value.op, "name", "") or binding.value.op.name_hint)
        for block in main.body.blocks
        for binding in block.bindings
        if hasattr(binding.value, "op")
    ]
