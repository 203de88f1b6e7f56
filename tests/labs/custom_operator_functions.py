"""Functions that the tests of lab 7 call in child processes."""

from typing import Any

import numpy as np


def save(library: str) -> dict[str, Any]:
    """Offload a model's linear layers, export it; its input and PyTorch's output."""
    import torch
    import tvm
    from tvm import relax

    from solutions.labs.custom_operator import offload_linear
    from solutions.relay_import import build_relax, import_relax, optimize_relax
    from tvm_practice.engines import host_target
    from tvm_practice.labs import blas_backend
    from tvm_practice.viz.graph import graph

    layers = torch.nn.Linear(13, 7), torch.nn.ReLU(), torch.nn.Linear(7, 5, bias=False)
    model, x = torch.nn.Sequential(*layers).eval(), torch.randn(3, 13)
    blas_backend.register()
    passes = [relax.transform.CanonicalizeBindings(), relax.transform.FoldConstant()]
    folded = tvm.ir.transform.Sequential(passes)(import_relax(model, (x,)))
    offloaded = offload_linear(folded, blas_backend.BACKEND)
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
    from tvm_practice.labs import blas_backend
    from tvm_practice.tvm_export.running import RelaxRunner

    runner = RelaxRunner.from_file(library)
    runner.set_inputs([np.array(x, "float32")])
    try:
        runner.run()
        without = ""
    except Exception as error:  # whatever TVM calls it
        without = str(error)
    blas_backend.register()
    runner.run()
    return {"without": without, "y": runner.outputs()[0].flatten().tolist()}
