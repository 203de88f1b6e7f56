"""Functions that the tests of the explorer call in a child process with current TVM."""

import re
from typing import Any


def _instructions(assembly: str) -> list[str]:
    kept = []
    for line in assembly.splitlines():
        if line.startswith("\t") and not line.strip().startswith((".", "#")):
            kept.append(" ".join(line.partition("#")[0].split()))
    return kept


def looked_at(name: str, size: int) -> dict[str, Any]:
    """A schedule of the course's matmul as the page takes it, beside TVM's own assembly.

    Returns:
        {"explored", "same": whether the located function has the instructions of `tvm.compile`,
        "shown": whether all shown instructions are among those, in order}.
    """
    import tvm

    from tvm_practice import engines
    from tvm_practice.course.tours.matmuls import matmul_makers
    from tvm_practice.viz.explorer.explored import explored
    from tvm_practice.viz.explorer.native import compiled
    from tvm_practice.viz.explorer.tir_lines import located

    make = matmul_makers(size, tile=(8, 16))[name]
    module, target = make().mod, engines.host_target()
    plain = _instructions(tvm.compile(module, target=target).mod.inspect_source("asm"))
    _, function = located(module["main"])
    own = _instructions(compiled(function, target).inspect_source("asm"))
    found = explored(name, make)
    rest = iter(plain)
    shown = _instructions("\n".join(re.sub(r"^ +", "\t", text) for text, _ in found["asm"]))
    return {"explored": found, "same": plain == own, "shown": all(each in rest for each in shown)}
