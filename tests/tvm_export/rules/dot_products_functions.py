"""Functions that the tests of products of 8-bit numbers call in a process of the current engine."""

from typing import Any

import numpy as np

_BOUNDS = {"uint8": (0, 256), "int8": (-128, 128)}


def _drawn(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(7).integers(*_BOUNDS[dtype], shape).astype(dtype)


def _target(mcpu: str | None) -> Any:
    import tvm

    from tvm_practice import engines

    if mcpu is None:
        return engines.host_target()
    return tvm.target.Target({"kind": "llvm", "mcpu": mcpu, "num-cores": 2})


def _scheduled(build: Any, shapes: list[tuple[Any, str]], target: Any) -> Any:
    """The default schedule of an operator of relax variables with these shapes and types."""
    from tvm import relax

    from tvm_practice.tvm_export.rules.cpu import schedule_defaults
    from tvm_practice.tvm_export.steps.relax import optimize_relax

    builder = relax.BlockBuilder()
    inputs = [
        relax.Var(f"x{number}", relax.TensorType(shape, dtype))
        for number, (shape, dtype) in enumerate(shapes)
    ]
    with builder.function("main", inputs):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(build(*inputs)))
        builder.emit_func_output(result)
    return schedule_defaults(optimize_relax(builder.get()), target)


def _calls(module: Any) -> list[str]:
    """Names of the instructions that scheduled functions call."""
    import tvm
    import tvm_ffi

    found: set[str] = set()

    def look(call: Any) -> None:
        name = str(getattr(call.op, "name", ""))
        if name.startswith("tvm_practice."):
            found.add(name.removeprefix("tvm_practice."))

    for _, func in module.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc):
            tvm_ffi.structural_walk(func.body, (tvm.ir.Call, look))
    return sorted(found)


def product(
    left: str, right: str, sizes: tuple[int, int, int], constant: bool, mcpu: str | None = None
) -> dict[str, Any]:
    """A matrix product's largest error where it can run, and the instructions that it calls.

    Args:
        left, right: the operands' types.
        sizes: m, n, k.
        constant: whether the right operand is a constant.
        mcpu: LLVM's name of a processor that it is built for and not run on; None: this one.
    """
    import tvm
    from tvm import relax

    m, n, k = sizes
    a, b = _drawn(left, (m, k)), _drawn(right, (k, n))

    def build(x: Any, y: Any = None) -> Any:
        y = relax.const(b) if y is None else y
        return relax.op.matmul(x, y, out_dtype="int32")

    shapes: list[tuple[Any, str]] = [(a.shape, left), (b.shape, right)]
    target = _target(mcpu)
    module = _scheduled(build, shapes[:1] if constant else shapes, target)
    made = tvm.compile(module, target)
    if mcpu is not None:
        return {"calls": _calls(module)}
    machine = relax.VirtualMachine(made, tvm.cpu())
    given = [tvm.runtime.tensor(each) for each in ([a] if constant else [a, b])]
    out = machine["main"](*given).numpy()
    exact = a.astype("int64") @ b.astype("int64")
    return {"error": int(np.abs(out - exact).max()), "calls": _calls(module)}


def convolution(channels: int, padding: int) -> dict[str, Any]:
    """The same of a convolution of bytes whose result is scaled, against PyTorch in int32."""
    import torch
    import tvm
    from tvm import relax

    x, w = _drawn("uint8", (2, channels, 9, 11)), _drawn("int8", (24, channels, 3, 3))

    def build(data: Any) -> Any:
        out = relax.op.nn.conv2d(data, relax.const(w), padding=padding, out_dtype="int32")
        return relax.op.maximum(out, relax.const(0, "int32"))

    target = _target(None)
    module = _scheduled(build, [(x.shape, "uint8")], target)
    machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    out = machine["main"](tvm.runtime.tensor(x)).numpy()
    data, weight = (torch.from_numpy(each.astype("float64")) for each in (x, w))
    exact = torch.nn.functional.conv2d(data, weight, padding=padding).clamp(min=0).numpy()
    return {"error": float(np.abs(out - exact).max()), "calls": _calls(module)}


def host_with(flags: list[str], mcpu: str) -> list[str]:
    """What `host_target` adds for a processor of that LLVM name that has these Linux flags."""
    import importlib
    from unittest import mock

    host: Any = importlib.import_module("tvm_practice.engines.host")  # a function has its name too
    with mock.patch.object(host, "flags", lambda: frozenset(flags)):
        return list(host._otherwise_than(mcpu))
