"""What the tests of tile registers call, in a process of the current engine.

Tile instructions are simulated, so that any processor runs them: see `labs.simulated_tiles`.
"""

import threading
from typing import Any

import ml_dtypes  # noqa: F401  # which gives numpy the name bfloat16
import numpy as np

from tests.tvm_export.rules.cpu_functions import lines_asked_for
from tests.tvm_export.rules.dot_products_functions import _BOUNDS, _drawn, _scheduled
from tvm_practice import engines
from tvm_practice.labs.simulated_tiles import NAME, TileFault, Tiles, with_calls

PROCESSOR = "llvm -mcpu=sapphirerapids"
_GUARD = 1 << 16


class _Anywhere(Tiles):
    """Tiles of a thread, for any memory but what lies around an input.

    Args:
        forbidden: addresses of arrays that must not be touched.
    """

    def __init__(self, forbidden: list[tuple[int, int]]):
        super().__init__([])
        self._forbidden = forbidden

    def _memory(self, pointer: Any, size: int) -> np.ndarray:
        address = int(getattr(pointer, "value", pointer) or 0)
        if any(start < address + size and address < end for start, end in self._forbidden):
            raise TileFault("an element beside the input")
        self._spans = [(address, size)]
        return super()._memory(pointer, size)


class _Threads:
    """Tiles by thread, as a processor has them."""

    def __init__(self, forbidden: list[tuple[int, int]]):
        self._forbidden = forbidden
        self._own: dict[int, Tiles] = {}
        self.calls: list[str] = []

    def __call__(self, name: str, *arguments: Any) -> int:
        # TVM's threads begin anew for Python with each call, so that they have no `local`.
        tiles = self._own.setdefault(threading.get_native_id(), _Anywhere(self._forbidden))
        self.calls.append(name)
        return tiles(name, *arguments)


def simulated(module: Any) -> Any:
    """A scheduled module whose tile instructions are calls of `NAME`."""
    import tvm

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc):
            changed[name] = with_calls(func)
    return changed


def _run(
    module: Any, given: list[np.ndarray], *, simulate: bool = True
) -> tuple[np.ndarray, list[str]]:
    """The output of a scheduled module, and the tile instructions that ran where simulated."""
    import tvm
    import tvm_ffi
    from tvm import relax

    room = []
    forbidden = []
    for each in given:
        around = np.zeros(each.nbytes + 2 * _GUARD, "uint8")
        first = _GUARD - around.ctypes.data % 64  # as TVM's own arrays are aligned
        inside = around[first : first + each.nbytes].view(each.dtype).reshape(each.shape)
        inside[...] = each
        start = inside.ctypes.data
        forbidden += [(start - _GUARD, start), (start + each.nbytes, start + each.nbytes + _GUARD)]
        room.append((around, inside))
    tiles = _Threads(forbidden)
    tvm_ffi.register_global_func(NAME, tiles, override=True)
    target = engines.host_target()
    made = simulated(module) if simulate else module
    machine = relax.VirtualMachine(tvm.compile(made, target), tvm.cpu())
    arguments = [
        tvm.runtime.from_dlpack(inside.view("uint16"))._create_view(inside.shape, "bfloat16")
        if str(inside.dtype) == "bfloat16"
        else tvm.runtime.from_dlpack(inside)
        for _, inside in room
    ]
    return machine["main"](*arguments).numpy(), tiles.calls


def product(
    types: tuple[str, str],
    sizes: tuple[int, int, int],
    constant: bool,
    target: str = PROCESSOR,
    run: bool = True,
    simulate: bool = True,
) -> dict[str, Any]:
    """The error of (m, k) . (k, n) and a ReLU on tile registers, and the instructions that ran.

    The error is of an element over the largest sum of the products' magnitudes.

    Args:
        types: of the operands.
        sizes: m, n, k.
        constant: whether the right operand is a constant.
        target: that it is scheduled for.
        run: False: only the features that it needs, and how many lines it prefetches.
        simulate: False: on this processor's own registers.
    """
    import tvm
    from tvm import relax

    from tvm_practice.tvm_export.rules.cpu.tile_registers import features_in
    from tvm_practice.tvm_export.targets import resolve_target

    m, n, k = sizes
    a, b = _drawn(types[0], (m, k)), _drawn(types[1], (k, n))
    total = "int32" if types[0] in _BOUNDS else "float32"

    def build(x: Any, y: Any = None) -> Any:
        made = relax.op.matmul(x, relax.const(b) if y is None else y, out_dtype=total)
        return relax.op.maximum(made, relax.const(0, total))

    given = [(a.shape, types[0]), (b.shape, types[1])][: 1 if constant else 2]
    module = _scheduled(build, given, resolve_target(target))
    features = features_in(module)
    if not run:
        (function,) = (
            each for _, each in module.functions_items() if isinstance(each, tvm.tirx.PrimFunc)
        )
        return {"features": features, "asked for": lines_asked_for(function)}
    out, calls = _run(module, [a] if constant else [a, b], simulate=simulate)
    one, other = a.astype("float64"), b.astype("float64")
    error = np.abs(out - (one @ other).clip(min=0)).max() / (abs(one) @ abs(other)).max()
    return {"error": float(error), "calls": calls, "features": features}


def convolution(
    types: tuple[str, str], image: tuple[int, int, int], stride: int, kernel: int
) -> dict[str, Any]:
    """The same of a convolution of images with the channels last.

    Args:
        types: of the image and the weights.
        image: two of height, width and channels.
        stride, kernel: of the window.
    """
    import torch
    from tvm import relax

    from tvm_practice.tvm_export.targets import resolve_target

    height, width, channels = image
    x = _drawn(types[0], (2, height, width, channels))
    w = _drawn(types[1], (40, kernel, kernel, channels))
    total = "int32" if types[0] in _BOUNDS else "float32"

    def build(data: Any) -> Any:
        out = relax.op.nn.conv2d(
            data,
            relax.const(w),
            strides=stride,
            data_layout="NHWC",
            kernel_layout="OHWI",
            out_dtype=total,
        )
        return relax.op.maximum(out, relax.const(0, total))

    module = _scheduled(build, [(x.shape, types[0])], resolve_target(PROCESSOR))
    out, calls = _run(module, [x])
    data, weight = (torch.from_numpy(each.astype("float64")).permute(0, 3, 1, 2) for each in (x, w))
    sums = torch.nn.functional.conv2d(data, weight, stride=stride).clamp(min=0)
    exact = sums.permute(0, 2, 3, 1).numpy()
    error = np.abs(out - exact).max() / np.abs(exact).max()
    return {"error": float(error), "calls": calls}


def encoder(options: dict[str, str]) -> dict[str, Any]:
    """A transformer's layer on tile registers and on vectors: the largest difference.

    Args:
        options: of the `ExportConfig`.
    """
    from tvm_practice import models
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model, example = models.load_encoder(width=96, heads=4, length=20)
    config: dict[str, Any] = {"example_input": example, **options}
    here = compile_pytorch_module(model, ExportConfig(**config))
    for name, value in zip(here.input_names, example, strict=True):
        here.set_input(name, value)
    here.run()
    tiles = compile_pytorch_module(model, ExportConfig(**config, target=PROCESSOR))
    out, calls = _run(tiles.scheduled, [each.numpy() for each in example])
    return {"error": float(np.abs(out - here.get_output(0)).max()), "calls": len(calls)}


def artifact(out: str) -> dict[str, Any]:
    """A product for tile registers as an artifact, and what is said where they are missing."""
    import json
    from pathlib import Path

    import torch

    from tvm_practice.tvm_export import (
        ExportConfig,
        compile_pytorch_module,
        export_artifacts,
        load_artifacts,
    )
    from tvm_practice.tvm_export.artifacts import LIBRARY
    from tvm_practice.tvm_export.artifacts.packing import link

    config = ExportConfig(
        example_input=(torch.ones(32, 64),), precision="bfloat16", target=PROCESSOR
    )
    folder = Path(out)
    export_artifacts(compile_pytorch_module(torch.nn.Linear(64, 64), config), folder)
    metadata = json.loads((folder / "metadata.json").read_text())
    refused = ""
    try:
        load_artifacts(folder)
    except ValueError as error:
        refused = str(error)
    library = folder / "linked.so"
    link(folder / LIBRARY, metadata["target"], library)
    return {"features": metadata["features"], "refused": refused, "library": str(library)}
