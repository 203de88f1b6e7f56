"""Guard pages find what reads or writes out of bounds; drawn operators: test_sample.py."""

from typing import Any

import numpy as np

from conformance.cases import Case, try_all

# What each function does, by name, and what is found.
_EXPECTED = {
    "copies": "right",
    "reads one too many": "raw",
    "reads one too few": "raw",
    "writes one too many": "raw",
    "writes into the gap": "wrong",
    "leaves one out": "wrong",
}


def test_guards_find_accesses_out_of_bounds() -> None:
    cases = [Case(name, name, {"name": name}) for name in _EXPECTED]
    outcomes = try_all(f"{__name__}:judge_function", cases, jobs=1)
    assert {each.name: each.verdict for each in outcomes} == _EXPECTED
    reasons = {each.name: each.reason for each in outcomes}
    assert "SIGSEGV" in reasons["reads one too many"]
    assert "writes beside operand 1" in reasons["writes into the gap"]
    assert "operand 1 is not what it is in the model" in reasons["leaves one out"]


def judge_function(name: str) -> dict[str, Any]:
    """A judge of a model that is one of the functions above."""
    import tvm
    from tvm import relax
    from tvm.script import ir_builder
    from tvm.script.ir_builder import tirx as T

    from conformance.guarded import outside
    from tvm_practice.tvm_export.running import RelaxRunner

    # Of 16 floats, 64 bytes, the last is at the end of a page; of 15 there is a gap behind it.
    count = 15 if name == "writes into the gap" else 16
    read = {"reads one too many": 1, "reads one too few": -1}.get(name, 0)
    written = {"writes one too many": 1, "writes into the gap": 1}.get(name, 0)
    loops = count - (name == "leaves one out")
    with ir_builder.IRBuilder() as built, T.prim_func(private=True, s_tir=True):
        T.func_attr({"tirx.noalias": True})
        given = T.arg("given", T.buffer([count], "float32", layout=None))
        made = T.arg("made", T.buffer([count], "float32", layout=None))
        with T.sblock("copy"), T.serial(0, loops) as i:
            T.buffer_store(made, given[i + read], [i + written])
    builder = relax.BlockBuilder()
    parameter = relax.Var("given", relax.TensorType([count], "float32"))
    with builder.function("main", [parameter]):
        function = builder.add_func(built.get(), "copy")
        result = builder.emit(relax.call_tir(function, [parameter], out_ty=parameter.ty))
        builder.emit_func_output(result)
    runner = RelaxRunner(tvm.compile(builder.get(), tvm.target.Target({"kind": "llvm"})))
    runner.set_inputs([np.arange(count, dtype="float32")])
    found = outside(runner)
    return {"verdict": "wrong" if found else "right", "reason": "; ".join(found)}
