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


def _in_turn(scheduled: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a Relax module scheduled for a GPU, its threads run in turn on this machine.

    Every kernel is compiled too, where a compiler is here.
    """
    import tvm
    from tvm import relax

    from tvm_practice import engines
    from tvm_practice.labs.gpu.on_cpu import with_plain_loops

    plain = scheduled.clone()
    for name, func in scheduled.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc):
            alone = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
            here = with_plain_loops(alone)["main"]
            plain[name] = here.with_attr("global_symbol", str(name.name_hint))
            if source.compiler() is not None:
                source.compiled(source.cuda_source(alone, "sm_80"), "sm_80")
    machine = relax.VirtualMachine(tvm.compile(plain, engines.host_target()), tvm.cpu())
    outputs = machine["main"](*map(tvm.runtime.tensor, inputs))
    is_one = isinstance(outputs, tvm.runtime.Tensor)
    return [each.numpy() for each in ([outputs] if is_one else outputs)]


def not_a_number(dtype: str) -> list[bool]:
    """By output of a model of maxima and minima, whether it is NaN where PyTorch's is."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Extremes(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            pooled = torch.nn.functional.max_pool2d(torch.relu(x * 2), 2)
            clipped = torch.clamp(torch.exp(x), 0.5, 6)
            return pooled, clipped, torch.minimum(x, x.flip(-1)), torch.amax(x, 1)

    torch.manual_seed(0)
    x = torch.randn(2, 3, 16, 16)
    x[0, 0, 3, 4], x[0, 1, 2, 2], x[1, 2] = torch.nan, torch.inf, -torch.inf
    x = x.to(getattr(torch, dtype))
    config = ExportConfig(example_input=(x,), target=TARGET)
    built = compile_pytorch_module(Extremes(), config, verify=False)
    found = _in_turn(built.scheduled, [x.numpy()])
    return [
        bool(np.allclose(got, want.numpy(), rtol=1e-2, equal_nan=True))
        for got, want in zip(found, Extremes()(x), strict=True)
    ]


def padded_convolutions() -> dict[str, Any]:
    """Convolutions of images that the model pads: the rules, and the error on a CPU."""
    import torch
    from torch.nn import functional

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Padded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Conv2d(3, 16, 3, stride=2)
            self.second = torch.nn.Conv2d(16, 32, 1)
            self.third = torch.nn.Conv2d(32, 32, 3, padding=1, groups=32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = functional.relu6(self.first(functional.pad(x, (0, 1, 0, 1))))
            y = functional.relu6(self.second(functional.pad(y, (0, 0, 0, 0))))
            out: torch.Tensor = self.third(functional.pad(y, (1, 2, 0, 1)))
            out += self.third(functional.pad(y, (1, 2, 0, 1), value=1.0))
            return out

    torch.manual_seed(0)
    model, x = Padded().eval(), torch.randn(1, 3, 32, 32)
    config = ExportConfig(example_input=(x,), target=TARGET)
    built = compile_pytorch_module(model, config, verify=False)
    with torch.no_grad():
        want = model(x).numpy()
    [got] = _in_turn(built.scheduled, [x.numpy()])
    return {"rules": built.rules, "error": float(np.abs(got - want).max())}


def written_out() -> dict[str, Any]:
    """Models whose operators TVM has as loops, beside PyTorch: the rules, and the largest error."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Scattered(torch.nn.Module):
        def forward(self, x: Any, at: Any, values: Any) -> tuple[Any, ...]:
            return x.scatter_add(0, at, values), torch.bucketize(values, x[:, 0].sort()[0])

    torch.manual_seed(0)
    # More than a thread block has threads, and not a multiple of them.
    given = (torch.randn(300, 3), torch.randint(300, (41, 3)), torch.randn(41, 3))
    config = ExportConfig(example_input=given, target=TARGET)
    built = compile_pytorch_module(Scattered(), config, verify=False)
    found = _in_turn(built.scheduled, [each.numpy() for each in given])
    expected = [each.numpy() for each in Scattered()(*given)]
    bound = [
        "thread_binding" in function.script()
        for name, function in built.scheduled.functions_items()
        if str(name.name_hint) in built.rules
    ]
    return {
        "rules": sorted(set(built.rules.values())),
        "bound": all(bound),
        "error": max(
            float(np.abs(got - want).max()) for got, want in zip(found, expected, strict=True)
        ),
    }


def single_terms() -> float:
    """The error of a convolution whose sums have one term each, with a bias."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    model, x = torch.nn.Conv3d(1, 2, 1), torch.randn(1, 1, 4, 4, 4)
    config = ExportConfig(example_input=(x,), target=TARGET)
    built = compile_pytorch_module(model, config, verify=False)
    [got] = _in_turn(built.scheduled, [x.numpy()])
    return float(np.abs(got - model(x).detach().numpy()).max())


def thread_blocks(rows: int, columns: int, terms: int) -> int:
    """How many thread blocks the default schedule of a product has."""
    from tvm import te, topi

    from tvm_practice.tvm_export.rules.gpu import schedule_default
    from tvm_practice.tvm_export.targets import resolve_target

    a, b = te.placeholder((rows, terms), name="A"), te.placeholder((terms, columns), name="B")
    function = te.create_prim_func([a, b, topi.matmul(a, b)])
    text = schedule_default(function, resolve_target(TARGET)).script()
    found = re.findall(r'thread_binding\((?:T\.int64\()?(\d+)\)?, thread="blockIdx', text)
    return int(np.prod([int(each) for each in found]))


def refused_of_values() -> str:
    """What is said of an operator that TVM's runtime computes, on a GPU."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import BadInput

    class Pairs(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.combinations(x, r=2)

    x = torch.randn(4)
    try:
        compile_pytorch_module(Pairs(), ExportConfig(example_input=(x,), target=TARGET))
    except BadInput as error:
        return str(error)
    return "exported"


def without_a_rule() -> str:
    """What is said of a function that no rule takes."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import DoesNotCompile, NotApplicable
    from tvm_practice.tvm_export.rules import gpu

    def declines(_: Any) -> None:
        raise NotApplicable("it is not to be had")

    given = (torch.randn(8), torch.tensor([1, 2]), torch.randn(2))
    config = ExportConfig(example_input=given, target=TARGET)

    class Put(torch.nn.Module):
        def forward(self, x: Any, at: Any, values: Any) -> Any:
            return x.index_add(0, at, values)

    with mock.patch.object(gpu, "_parallel_loops", declines):
        try:
            compile_pytorch_module(Put(), config, verify=False)
        except DoesNotCompile as error:
            return str(error)
    return "compiled"


def recurrence() -> dict[str, Any]:
    """A series whose every term reads the two before it, for a GPU: its rules, and the error."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Series(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            last, before = x, torch.ones_like(x)
            for _ in range(22):
                last, before = x * last - before, last
            return torch.where(last > before, last * y, before)

    torch.manual_seed(0)
    given = torch.rand(3, 200), torch.randn(200)
    config = ExportConfig(example_input=given, target=TARGET)
    built = compile_pytorch_module(Series(), config, verify=False)
    [found] = _in_turn(built.scheduled, [each.numpy() for each in given])
    return {
        "rules": sorted(set(built.rules.values())),
        "error": float(np.abs(found - Series()(*given).numpy()).max()),
    }
