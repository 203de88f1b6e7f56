"""Functions that the tests of lab 7 call in a child process."""

from typing import Any

import numpy as np


def views() -> dict[str, Any]:
    """Whether a view of a TVM tensor is its memory, as the caller and as a callee gets it."""
    import tvm
    import tvm_ffi
    from tvm import te

    from tvm_practice.labs.library import view

    shared = []
    tensor = tvm.runtime.tensor(np.zeros((3, 5), "float32"))
    view(tensor)[1, 2] = 7
    shared.append(bool(tensor.numpy()[1, 2] == 7))

    def fill(a: Any, b: Any) -> None:
        view(b)[...] = view(a) + 1

    tvm_ffi.register_global_func("tests.fill", fill)
    A = te.placeholder((3, 5), name="A")
    B = te.extern(
        (3, 5), [A], lambda ins, outs: tvm.tirx.call_packed("tests.fill", *ins, *outs), name="B"
    )
    func = te.create_prim_func([A, B]).with_attr("global_symbol", "main")
    output = tvm.runtime.tensor(np.zeros((3, 5), "float32"))
    tvm.compile(func, tvm.target.Target({"kind": "llvm"}))["main"](tensor, output)
    shared.append(bool((output.numpy() == tensor.numpy() + 1).all()))
    try:
        view(tvm_ffi.from_dlpack(np.zeros((4, 6), "float32")[:, ::2]))
    except ValueError as error:
        return {"shared": shared, "refused": str(error)}
    return {"shared": shared, "refused": ""}


def save(library: str) -> dict[str, Any]:
    """Offload a model's linear layers, export it; its input and PyTorch's output."""
    import torch
    import tvm
    from tvm import relax

    from solutions.labs.custom_operator import offload_linear
    from solutions.relay_import import build_relax, import_relax, optimize_relax
    from tvm_practice.engines import host_target
    from tvm_practice.labs import library as blas
    from tvm_practice.viz.graph import graph

    layers = torch.nn.Linear(13, 7), torch.nn.ReLU(), torch.nn.Linear(7, 5, bias=False)
    model, x = torch.nn.Sequential(*layers).eval(), torch.randn(3, 13)
    blas.register()
    passes = [relax.transform.CanonicalizeBindings(), relax.transform.FoldConstant()]
    folded = tvm.ir.transform.Sequential(passes)(import_relax(model, (x,)))
    offloaded = offload_linear(folded, blas.BACKEND)
    build_relax(optimize_relax(offloaded), host_target()).export_library(library)
    with torch.inference_mode():
        y = model(x)
    return {
        "calls": graph(offloaded).operators["call_dps_packed"],
        "x": x.tolist(),
        "y": y.flatten().tolist(),
    }


def load(library: str, x: list[list[float]]) -> dict[str, Any]:
    """Run an exported model: the error without the library's function, the result with it."""
    from tvm_practice.labs import library as blas
    from tvm_practice.tvm_export.running import RelaxRunner

    runner = RelaxRunner.from_file(library)
    runner.set_inputs([np.array(x, "float32")])
    try:
        runner.run()
        without = ""
    except Exception as error:  # whatever TVM calls it
        without = str(error)
    blas.register()
    runner.run()
    return {"without": without, "y": runner.outputs()[0].flatten().tolist()}


def records() -> dict[str, int]:
    """How often a trace and an exported program of two layers name the operator."""
    import torch

    from tvm_practice.labs.gated_layer import EXPORTED_NAME, TRACED_NAME, load_gated
    from tvm_practice.tvm_export.quiet import quiet_frontends

    model, example = load_gated(layers=2, width=8, inner=16, tokens=3)
    with quiet_frontends():
        traced = torch.jit.trace(model, example, check_trace=False)  # type: ignore[no-untyped-call]
        exported = torch.export.export(model, example)
    kinds = [node.kind() for node in traced.inlined_graph.nodes()]
    names = [str(node.target) for node in exported.graph.nodes]
    return {
        "traced": kinds.count(TRACED_NAME),
        "exported": sum(name.endswith(EXPORTED_NAME) for name in names),
    }
