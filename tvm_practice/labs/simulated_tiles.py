"""Tile registers (AMX) in Python: kernels that use them run on any processor.

`run_simulated` replaces a kernel's calls of LLVM's tile intrinsics by calls of `Tiles`, compiles
the rest for this machine and runs it. `Tiles` refuses what the processor would: a tile that is not
configured, shapes that do not fit. It also refuses memory outside the arrays.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

_PREFIX = "llvm.x86."
NAME = "tvm_practice.tiles"


class TileFault(ValueError):
    """A use of tiles that a processor would refuse or get wrong."""


class Tiles:
    """Eight tile registers, each of at most 16 rows of 64 bytes.

    Attributes:
        calls: the names of the instructions that ran, in order.
        products: the tile numbers of products, each combination once.
        fault: the first refusal; TVM passes on its text alone.
    """

    def __init__(self, arrays: Sequence[np.ndarray]):
        self._spans = [(each.ctypes.data, each.nbytes) for each in arrays]
        self._tiles: dict[int, np.ndarray] = {}
        self.calls: list[str] = []
        self.products: set[tuple[int, ...]] = set()
        self.fault: TileFault | None = None

    def __call__(self, name: str, *arguments: Any) -> int:
        """Run an instruction, given by its LLVM name without `llvm.x86.`."""
        self.calls.append(name)
        try:
            method = getattr(self, f"_{name}", None)
            if method is None:
                raise TileFault(f"{name} is not simulated")
            method(*arguments)
        except TileFault as fault:
            self.fault = fault
            raise
        return 0

    def _memory(self, pointer: Any, size: int) -> np.ndarray:
        address = _address(pointer)
        if not any(start <= address <= start + length - size for start, length in self._spans):
            raise TileFault(f"{size} bytes that are not inside one of the arrays")
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def _rows(self, tile: int, pointer: Any, stride: int) -> list[np.ndarray]:
        base = _address(pointer)
        rows, row_bytes = self._tile(tile).shape
        return [self._memory(base + row * stride, row_bytes) for row in range(rows)]

    def _tile(self, number: int) -> np.ndarray:
        if number not in self._tiles:
            raise TileFault(f"tile {number} is not configured")
        return self._tiles[number]

    def _ldtilecfg(self, pointer: Any) -> None:
        given = self._memory(pointer, 64)
        row_bytes, rows = given[16:32].view("<u2"), given[48:56]
        rest = np.delete(given, [0, *range(16, 32), *range(48, 56)])
        if given[0] != 1 or rest.any() or rows.max() > 16 or row_bytes.max() > 64:
            raise TileFault("a configuration that is not of palette 1")
        self._tiles = {
            tile: np.zeros((int(rows[tile]), int(row_bytes[tile])), "uint8")
            for tile in range(8)
            if rows[tile] and row_bytes[tile]
        }

    def _tilerelease(self) -> None:
        self._tiles = {}

    def _tilezero(self, tile: int) -> None:
        self._tile(tile)[:] = 0

    def _tileloadd64(self, tile: int, pointer: Any, stride: int) -> None:
        self._tile(tile)[:] = self._rows(tile, pointer, stride)

    def _tilestored64(self, tile: int, pointer: Any, stride: int) -> None:
        for row, memory in zip(self._tile(tile), self._rows(tile, pointer, stride), strict=True):
            memory[:] = row

    def _tdpbf16ps(self, total: int, left: int, right: int) -> None:
        c, a, b = self._multiplied(total, left, right)
        pairs = [_widened(each).reshape(len(each), -1, 2) for each in (a, b)]
        c.view("float32")[:] += np.einsum("ipe,pje->ij", *pairs)

    def _tdpbusd(self, total: int, left: int, right: int) -> None:
        c, a, b = self._multiplied(total, left, right)
        fours = [
            each.view(kind).astype("int32").reshape(len(each), -1, 4)
            for each, kind in ((a, "uint8"), (b, "int8"))
        ]
        c.view("int32")[:] += np.einsum("ipe,pje->ij", *fours)

    def _multiplied(self, total: int, left: int, right: int) -> list[np.ndarray]:
        """The tiles of a product, whose shapes fit."""
        self.products.add((total, left, right))
        c, a, b = (self._tile(each) for each in (total, left, right))
        if len({total, left, right}) < 3 or (len(a), b.shape[1], a.shape[1]) != (
            *c.shape,
            4 * len(b),
        ):
            raise TileFault(f"a product of tiles of {a.shape} and {b.shape} bytes into {c.shape}")
        return [c, a, b]


def _address(pointer: Any) -> int:
    """The address in a ctypes.c_void_p, or a number as it is."""
    return int(getattr(pointer, "value", pointer) or 0)


def _widened(tile: np.ndarray) -> np.ndarray:
    """The bfloat16 elements of a tile as float32."""
    return (tile.view("uint16").astype("uint32") << 16).view("float32")


def run_simulated(func: Any, arrays: Sequence[np.ndarray]) -> Tiles:
    """Run a PrimFunc that uses tiles on arrays, in place.

    Args:
        func: the PrimFunc. Its buffers have the shapes and types of the arrays.
        arrays: contiguous; bfloat16 is uint16 in them.

    Returns:
        The tiles, as the PrimFunc left them.

    Raises:
        TileFault: the processor would have refused an instruction.
    """
    import tvm
    import tvm_ffi

    shared = [tvm.runtime.tensor(each) for each in arrays]
    tiles = Tiles([np.from_dlpack(each) for each in shared])
    tvm_ffi.register_global_func(NAME, tiles, override=True)
    kernel = _compiled(with_calls(func), {"kind": "llvm", "opt-level": 0})
    try:
        _call(kernel, shared, arrays, func)
    except Exception as error:
        raise (tiles.fault or error) from None
    return tiles


def run_on_tiles(func: Any, arrays: Sequence[np.ndarray]) -> None:
    """Run a PrimFunc on the tile registers of this processor; `allowed` must have returned True."""
    import tvm

    kernel = _compiled(func, {"kind": "llvm", "mcpu": "sapphirerapids"})
    _call(kernel, [tvm.runtime.tensor(each) for each in arrays], arrays, func)


def allowed() -> bool:
    """Whether this processor has tiles of bfloat16, and the kernel lets this process use them."""
    from tvm_practice.engines.host import flags, tiles_allowed

    return "amx_bf16" in flags() and tiles_allowed()


def instructions_of(func: Any) -> list[str]:
    """LLVM's intrinsics that a PrimFunc calls, in the order of its text."""
    import tvm
    import tvm_ffi

    found: list[str] = []

    def look(call: Any) -> None:
        if _is_intrinsic(call):
            found.append(_name(call))

    tvm_ffi.structural_walk(func.body, (tvm.ir.Call, look))
    return found


def assembly(func: Any, *, mcpu: str = "sapphirerapids") -> str:
    """The assembly of a PrimFunc for the processor `mcpu`, which this machine need not have."""
    target = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": mcpu}
    text: str = _compiled(func, target).mod.inspect_source("asm")
    return text


def _call(kernel: Any, shared: Sequence[Any], arrays: Sequence[np.ndarray], func: Any) -> None:
    """Call the kernel with tensors of the buffers' types, and copy what it wrote to the arrays."""
    kernel["main"](
        *(
            each._create_view(tuple(each.shape), str(param.dtype))
            for each, param in zip(shared, func.params, strict=True)
        )
    )
    for array, each in zip(arrays, shared, strict=True):
        array[...] = each.numpy()


def _compiled(func: Any, target: dict[str, Any]) -> Any:
    import tvm

    named = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    return tvm.compile(named, target=tvm.target.Target(target))


def _is_intrinsic(call: Any) -> bool:
    return "call_llvm" in str(getattr(call.op, "name", ""))


def _name(call: Any) -> str:
    import tvm_ffi

    lookup = tvm_ffi.get_global_func("target.llvm_get_intrinsic_name")
    return str(lookup(call.args[0].value))


def with_calls(func: Any, name: str = NAME) -> Any:
    """The PrimFunc with calls of a global function in place of LLVM's intrinsics for x86."""
    import tvm
    import tvm_ffi
    from tvm import tirx

    def replace(call: Any) -> Any:
        if not _is_intrinsic(call) or not _name(call).startswith(_PREFIX):
            return call
        # A packed function takes its numbers as int64.
        given = [
            tirx.const(each.value, "int64") if isinstance(each, tirx.IntImm) else each
            for each in call.args[1:]
        ]
        return tirx.call_packed(name, _name(call).removeprefix(_PREFIX), *given)

    return func.with_body(tvm_ffi.structural_map(func.body, (tvm.ir.Call, replace)))
