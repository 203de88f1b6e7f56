"""What test_own_cuda_function.py calls in a process of the current engine."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

TARGET = "cuda -arch=sm_80"


def _built(folder: str) -> tuple[Any, Any]:
    """The page's module, and its model built for CUDA."""
    import importlib

    from tvm_practice.tvm_export import pipeline
    from tvm_practice.tvm_export.request import ExportRequest

    if folder not in sys.path:
        sys.path.insert(0, folder)
    request = ExportRequest(
        model="own_function:load",
        artifacts=Path(folder) / "out",
        target=TARGET,
        converters="own_function:converters",
    )
    export = pipeline.import_model(pipeline.load(request))
    return importlib.import_module("own_function"), pipeline.build(pipeline.schedule(export))


def exported(folder: str) -> dict[str, Any]:
    """Where the kernels' text has the function, and its error with threads one by one on the CPU.

    Returns:
        {"compiled": whether the text becomes machine code; None without a compiler, "defined",
        "called": places in the text, "error", "spread": of
        the values}.
    """
    import tvm

    from tests.tvm_export.rules.cpu_functions import _run, unoptimized
    from tests.tvm_export.rules.gpu_functions import _kernel_source
    from tvm_practice import engines
    from tvm_practice.labs.gpu.on_cpu import with_plain_loops
    from tvm_practice.tvm_export import cuda
    from tvm_practice.tvm_export.calling import as_array

    own, export = _built(folder)
    library = Path(folder) / "own.so"
    text = own.CODE.replace("static __device__", "")
    cc = ["cc", "-x", "c", "-shared", "-fPIC", "-o", str(library), "-", "-lm"]
    subprocess.run(cc, input="#include <math.h>\n" + text, text=True, check=True)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    scheduled = export.stages["scheduled"]
    plain = scheduled.clone()
    for name, function in scheduled.functions_items():
        if isinstance(function, tvm.tirx.PrimFunc):
            alone = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
            plain[name] = with_plain_loops(alone)["main"].with_attr(
                "global_symbol", str(name.name_hint)
            )
    inputs = [as_array(each) for each in export.call.tensors]
    got = _run(plain, unoptimized(engines.host_target()), inputs)
    expected = export.call.module(*export.call.tensors)[0].detach().numpy()
    kernels = _kernel_source(export.result.compiled.mod)
    made = cuda.compiled(kernels, "sm_80") if cuda.compiler() else None
    return {
        "compiled": made and made[:4] == b"\x7fELF",
        "defined": kernels.index("float fast_gelu(float"),
        "called": kernels.index("= fast_gelu("),
        "error": float(np.abs(got - expected).max()),
        "spread": float(np.ptp(got)),
    }
