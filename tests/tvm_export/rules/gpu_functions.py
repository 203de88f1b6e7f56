"""What the tests of the default schedules for CUDA call, in a process of the current engine."""

import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.tvm_export.rules.cpu_functions import FAMILIES, _module, _normal, _run, unoptimized
from tvm_practice.tvm_export import cuda as source
from tvm_practice.tvm_export.rules.first_match import Decision

TARGET = "cuda -arch=sm_80"


def compare(family: str, seed: int) -> dict[str, Any]:
    """The error of a family's drawn operators as scheduled for a GPU, their threads run in turn.

    The error is in units of the largest value; the unscheduled functions are TVM's own loops.
    """
    import tvm

    from tvm_practice import engines
    from tvm_practice.labs.gpu.on_cpu import with_plain_loops
    from tvm_practice.tvm_export.rules.gpu import schedule_defaults
    from tvm_practice.tvm_export.targets import resolve_target

    random = np.random.default_rng(seed)
    draw = FAMILIES[family](random)
    module, here = _module(draw), engines.host_target()
    inputs = [_normal(random, shape) for shape in draw[1]]
    report: list[Decision] = []
    scheduled = schedule_defaults(module, resolve_target(TARGET), report=report)
    plain = scheduled.clone()
    threads = 0
    for name, func in scheduled.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc):
            alone = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
            threads += "threadIdx.x" in alone.script()
            plain[name] = with_plain_loops(alone)["main"].with_attr(
                "global_symbol", str(name.name_hint)
            )
    got, reference = (_run(each, unoptimized(here), inputs) for each in (plain, module))
    error = np.abs(got - reference).max() / max(np.abs(reference).max(), 1e-3)
    return {
        "error": float(error),
        "finite": bool(np.isfinite(got).all()),
        "rules": [each.rule for each in report],
        "bound": threads,
    }


def _kernel_source(module: Any) -> str:
    """The CUDA text of all kernels in a module and what it imports."""
    own = str(module.inspect_source("cuda")) if str(module.kind) == "cuda" else ""
    return "\n".join([own, *map(_kernel_source, module.imports)])


def exported(out: str, *, with_compiler: bool) -> dict[str, Any]:
    """A transformer layer as artifacts for a GPU: its rules, kernels, and what a compiler says.

    Args:
        out: a folder.
        with_compiler: False: as where there is none.
    """
    from tvm_practice import models
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module, export_artifacts

    model, example = models.load_encoder(width=96, heads=4, length=20)
    with mock.patch.object(source, "compiler", source.compiler if with_compiler else lambda: None):
        built = compile_pytorch_module(model, ExportConfig(example_input=example, target=TARGET))
    export_artifacts(built, Path(out))
    text = _kernel_source(built.compiled.mod)
    return {
        "rules": built.rules,
        "kernels": text.count("__global__ void __launch_bounds__"),
        "library": (Path(out) / "deploy_lib.tar").stat().st_size,
        "compiled": len(source.compiled(text, "sm_80")) if source.compiler() else None,
        "target": built.target,
    }


def kernels(groups: int) -> dict[str, Any]:
    """A 3x3 convolution of 32 channels on 28x28, its text, and what a compiler makes of it.

    Args:
        groups: of its channels.
    """
    import tvm
    from tvm import te, topi

    from tvm_practice.tvm_export.rules.gpu import schedule_defaults
    from tvm_practice.tvm_export.targets import resolve_target

    image = te.placeholder((1, 32, 28, 28), name="image")
    weight = te.placeholder((32, 32 // groups, 3, 3), name="weight")
    sums = topi.nn.group_conv2d_nchw(image, weight, 1, 1, 1, groups, "float32")
    if groups == 1:
        sums = topi.nn.conv2d_nchw(image, weight, 1, 1, 1)
    function = te.create_prim_func([image, weight, topi.nn.relu(sums)])
    report: list[Decision] = []
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    module = schedule_defaults(module, resolve_target(TARGET), report=report)
    text = source.cuda_source(module, "sm_80")
    return {
        "rule": report[0].rule,
        "declined": report[0].declined,
        "shared": text.count("__shared__"),
        "threads": max(map(int, re.findall(r"__launch_bounds__\((\d+)\)", text))),
        "barriers": text.count("__syncthreads()"),
        "compiled": len(source.compiled(text, "sm_80")) if source.compiler() else None,
    }
