"""Functions that the tests of 16-bit and 8-bit products call in a process of the current engine."""

import itertools
import re
from typing import Any

import ml_dtypes  # noqa: F401  # which gives numpy the name bfloat16
import numpy as np

_BOUNDS = {"uint8": (0, 256), "int8": (-128, 128)}


def _drawn(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(7)
    if dtype in _BOUNDS:
        return rng.integers(*_BOUNDS[dtype], shape).astype(dtype)
    return rng.standard_normal(shape, "float32").astype(dtype)


def _target(mcpu: str | None) -> Any:
    import tvm

    from tvm_practice import engines

    if mcpu is None:  # without tile registers, which have tests of their own
        here = {key: here for key, here in engines.host_target().attrs.items() if key != "mattr"}
        mattr = [str(each) for each in engines.host_target().attrs.get("mattr", ())]
        without = [f"-amx-{each}" for each in ("tile", "int8", "bf16")]
        return tvm.target.Target({"kind": "llvm", **here, "mattr": [*mattr, *without]})
    return tvm.target.Target({"kind": "llvm", "mcpu": mcpu, "num-cores": 2})


def _scheduled(build: Any, shapes: list[tuple[Any, str]], target: Any) -> Any:
    """The default schedule of an operator of relax variables with these shapes and types."""
    from tvm import relax

    from tvm_practice.tvm_export.relax_passes.unsigned_products import with_unsigned_operands
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
    known = with_unsigned_operands(builder.get(), target)
    return schedule_defaults(optimize_relax(known), target)


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

    The error is of an element over the largest sum of the products' magnitudes.

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
        return relax.op.matmul(x, y, out_dtype="int32" if left in _BOUNDS else "float32")

    shapes: list[tuple[Any, str]] = [(a.shape, left), (b.shape, right)]
    target = _target(mcpu)
    module = _scheduled(build, shapes[:1] if constant else shapes, target)
    made = tvm.compile(module, target)
    if mcpu is not None:
        return {"calls": _calls(module)}
    machine = relax.VirtualMachine(made, tvm.cpu())
    given = [tvm.runtime.tensor(each) for each in ([a] if constant else [a, b])]
    out = machine["main"](*given).numpy()
    one, other = a.astype("float64"), b.astype("float64")
    error = np.abs(out - one @ other).max() / (abs(one) @ abs(other)).max()
    return {"error": float(error), "calls": _calls(module)}


def stored_in_loops(left: str, right: str, total: str, mcpu: str) -> int:
    """Vectors that a product of 96 x 1024 x 256 stores in loops that add products to sums."""
    import tvm
    from tvm import relax

    weight = _drawn(right, (1024, 256))

    def build(x: Any) -> Any:
        return relax.op.matmul(x, relax.const(weight), out_dtype=total)

    target = _target(mcpu)
    made = tvm.compile(_scheduled(build, [((96, 1024), left)], target), target)
    lines = made.mod.imports[0].inspect_source("asm").splitlines()
    starts: dict[str, int] = {}
    found, stores = 0, 0
    for number, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            starts[label[1]] = number
        elif (jump := re.match(r"\s+j\w+\s+(\.L\w+)", line)) and jump[1] in starts:
            loop = lines[starts[jump[1]] + 1 : number]
            products = sum(bool(re.match(r"\s+(vpdp|vdp)", each)) for each in loop)
            if products and not any(each.startswith(".L") for each in loop):  # an innermost one
                found += products
                stores += sum(bool(re.match(r"\s+vmov\w+\s+%zmm\d+, .*\)$", e)) for e in loop)
    assert found > 20
    return stores


def convolution(types: tuple[str, str], channels: int, padding: int) -> dict[str, Any]:
    """The same of a convolution and a ReLU, against PyTorch in float64."""
    import torch
    import tvm
    from tvm import relax

    x, w = _drawn(types[0], (2, channels, 9, 11)), _drawn(types[1], (24, channels, 3, 3))
    total = "int32" if types[0] in _BOUNDS else "float32"

    def build(data: Any) -> Any:
        out = relax.op.nn.conv2d(data, relax.const(w), padding=padding, out_dtype=total)
        return relax.op.maximum(out, relax.const(0, total))

    target = _target(None)
    module = _scheduled(build, [(x.shape, types[0])], target)
    machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    out = machine["main"](tvm.runtime.tensor(x)).numpy()
    data, weight = (torch.from_numpy(each.astype("float64")) for each in (x, w))
    exact = torch.nn.functional.conv2d(data, weight, padding=padding).clamp(min=0).numpy()
    error = np.abs(out - exact).max() / np.abs(exact).max()
    return {"error": float(error), "calls": _calls(module)}


def perceptron(sizes: list[int]) -> dict[str, Any]:
    """The same of products in a row, each of what the one before rounded to bfloat16.

    Args:
        sizes: the features of the input and of each product's result.
    """
    import tvm
    from tvm import relax

    x = _drawn("bfloat16", (6, sizes[0]))
    weights = [_drawn("bfloat16", each) for each in itertools.pairwise(sizes)]

    def build(data: Any) -> Any:
        for weight in weights:
            product = relax.op.matmul(data, relax.const(weight), out_dtype="float32")
            data = relax.op.astype(relax.op.tanh(product), "bfloat16")
        return relax.op.astype(data, "float32")

    module = _scheduled(build, [(x.shape, "bfloat16")], _target(None))
    out = relax.VirtualMachine(tvm.compile(module, _target(None)), tvm.cpu())["main"]
    exact = x
    for weight in weights:
        exact = np.tanh(exact.astype("float32") @ weight.astype("float32")).astype(x.dtype)
    error = np.abs(out(tvm.runtime.tensor(x)).numpy() - exact.astype("float32")).max()
    return {"error": float(error), "calls": _calls(module)}


def host_with(flags: list[str], mcpu: str, tiles: bool = True) -> list[str]:
    """What `host_target` adds for a processor of that LLVM name that has these Linux flags.

    Args:
        flags: that Linux tells.
        mcpu: LLVM's name.
        tiles: whether Linux lets the process use tile registers.
    """
    import importlib
    from unittest import mock

    host: Any = importlib.import_module("tvm_practice.engines.host")  # a function has its name too
    allowed = mock.patch.object(host, "tiles_allowed", lambda: tiles)
    with mock.patch.object(host, "flags", lambda: frozenset(flags)), allowed:
        return list(host._otherwise_than(mcpu))
