"""Called in a process of the current engine by test_cross_compile."""

from pathlib import Path
from typing import Any

import numpy as np

from solutions.labs import cross_compile as lab
from tvm_practice.labs.cross_compile import blocked_matmul
from tvm_practice.tvm_export import cross
from tvm_practice.viz.assembly import innermost_loop

SIZE = 32


def run_for(machine: str, folder: str) -> dict[str, Any]:
    """The lab's way for one machine: object, C program, run; {"error", "arithmetic"}."""
    made, target = Path(folder), lab.target_for(machine)
    assembly = lab.compile_object(blocked_matmul(SIZE), target, str(made / "f.o"))
    (made / "f.c").write_text(lab.c_harness("main", [(SIZE, SIZE)] * 3))
    cross.link([made / "f.c", made / "f.o"], target["mtriple"], made / "program")
    a, b = np.random.default_rng().standard_normal((2, SIZE, SIZE), "float32")
    written = cross.run_program(made / "program", target["mtriple"], a.tobytes() + b.tobytes())
    c = np.frombuffer(written, "float32").reshape(SIZE, SIZE)
    return {
        "error": float(np.abs(c - a @ b).max()),
        "arithmetic": lab.vector_arithmetic(innermost_loop(assembly)),
    }


def not_runnable(machine: str) -> str | None:
    """Why this machine cannot run code for an x86-64 level."""
    import tvm

    from tvm_practice.tvm_export.targets import why_not_runnable

    return why_not_runnable(tvm.target.Target(lab.target_for(machine)))
