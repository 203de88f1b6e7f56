"""A CUDA schedule's memory requests, counted from its IR, without a GPU or a simulated one.

    counts = count_accesses(schedule.mod["main"])
    counts.of("A", write=False).transactions

The 32 threads of a warp run in step: an instruction that reads or writes is one *request* for all
of them. What it costs depends on where the 32 addresses are (NVIDIA's words, as in Nsight Compute):

- global memory moves in *sectors* of 32 bytes. A request costs as many as it touches: 4 if 32
  threads read 32 floats in a row, 32 if each float is in another row of a matrix.
- shared memory has 32 *banks*; the 4-byte word w is in bank w % 32. A bank serves one word at a
  time, to all threads that want it. So a request takes as many *wavefronts* as the busiest bank
  has different words to serve. Threads that request 8 or 16 bytes are served in halves or
  quarters of a warp. More wavefronts than that are *bank conflicts*.

The count follows one thread block, instruction by instruction, all its threads at once. It counts
the IR's accesses: a value that the compiler keeps in a register between two uses counts twice, and
the model has no cache. See CUDA C++ Programming Guide, "Device Memory Accesses".
"""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm_practice.viz.access import CannotFollow, ProgramWriter, classic_loops, plain_loops

if TYPE_CHECKING:
    import numpy as np

WARP = 32
SECTOR_BYTES = 32
BANKS = 32
_WORD = 4  # bytes of a bank's word
_WIDEST = 16  # bytes that one thread can ask for in one instruction
_VECTORIZED = 2  # ForKind
_BATCH = 1 << 21  # addresses that are kept before they are counted: 16 MiB
_DIMENSIONS = ("x", "y", "z")


def sectors(addresses: "np.ndarray", width: int, active: "np.ndarray") -> "np.ndarray":
    """Sectors of global memory that each request touches.

    Args:
        addresses: (requests, 32) bytes: where each thread's part begins.
        width: bytes that each thread asks for.
        active: (requests, 32): which threads take part.

    Returns:
        (requests,) counts.
    """
    import numpy as np

    first, last = addresses // SECTOR_BYTES, (addresses + width - 1) // SECTOR_BYTES
    return _distinct(np.concatenate([first, last], axis=1), np.concatenate([active] * 2, axis=1))


def wavefronts(addresses: "np.ndarray", width: int, active: "np.ndarray") -> "np.ndarray":
    """Wavefronts of shared memory that each request takes; arguments as those of `sectors`."""
    import numpy as np

    words = addresses // _WORD
    if width > _WORD:
        words = words[:, :, None] + np.arange(width // _WORD)
        active = np.broadcast_to(active[:, :, None], words.shape)
    parts = _parts(width)
    requests = len(addresses)
    words = words.reshape(requests * parts, -1)
    active = active.reshape(requests * parts, -1)
    words = np.where(active, words, -1)
    words.sort(axis=1)
    new = np.ones(words.shape, bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    new &= words >= 0
    of_bank = np.arange(len(words))[:, None] * BANKS + words % BANKS
    wanted = np.bincount(of_bank[new], minlength=len(words) * BANKS)
    most: np.ndarray = wanted.reshape(requests, parts, BANKS).max(axis=2).sum(axis=1)
    return most


def _parts(width: int) -> int:
    """In how many parts a warp's request of so many bytes per thread is served."""
    return max(1, width // _WORD)


def _distinct(values: "np.ndarray", active: "np.ndarray") -> "np.ndarray":
    """Different non-negative values in each row, of those that are active."""
    import numpy as np

    ordered = np.sort(np.where(active, values, -1), axis=1)
    new = ordered[:, :1] >= 0
    found: np.ndarray = new.sum(axis=1) + (
        (ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    ).sum(axis=1)
    return found


@dataclass(frozen=True)
class AccessCount:
    """The reads, or the writes, of one buffer by one thread block.

    Attributes:
        scope: "global" or "shared".
        requests: instructions of a warp.
        transactions: sectors of global memory, wavefronts of shared memory.
        fewest: what the same requests would cost at best: sectors that are full, no conflicts.
        misaligned: requests with an address that is no multiple of the bytes asked for. A
            GPU stops with an error there.
    """

    buffer: str
    scope: str
    write: bool
    requests: int
    transactions: int
    fewest: int
    misaligned: int

    @property
    def excess(self) -> float:
        """Transactions over the fewest; 1 is best."""
        return self.transactions / self.fewest if self.fewest else 1.0


@dataclass(frozen=True)
class KernelCounts:
    """A kernel's shape, and what one thread block of it requests from memory.

    Attributes:
        grid: thread blocks in x, y and z.
        block: threads in x, y and z.
        shared_bytes: size of the buffers of scope "shared" as the schedule declares them; a
            software pipeline, which TVM makes later, doubles them.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    accesses: tuple[AccessCount, ...]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads per thread block."""
        return self.block[0] * self.block[1] * self.block[2]

    def of(self, buffer: str, *, write: bool) -> AccessCount:
        """Raises KeyError if that buffer is not read, or not written."""
        for each in self.accesses:
            if (each.buffer, each.write) == (buffer, write):
                return each
        raise KeyError(f"{buffer} is not {'written' if write else 'read'}")

    def total(self, scope: str) -> AccessCount:
        """Reads and writes of all buffers of a scope, by one thread block."""
        found = [each for each in self.accesses if each.scope == scope]
        return AccessCount(
            "all", scope, False,
            sum(each.requests for each in found),
            sum(each.transactions for each in found),
            sum(each.fewest for each in found),
            sum(each.misaligned for each in found),
        )  # fmt: skip

    @property
    def global_bytes(self) -> int:
        """Moved by all thread blocks together, before any cache."""
        return self.total("global").transactions * SECTOR_BYTES * self.blocks


def count_accesses(
    function: Any,
    tensors: Sequence[Any] | None = None,
    *,
    block: tuple[int, int, int] = (0, 0, 0),
) -> KernelCounts:
    """Count the requests of one thread block of a scheduled function to memory.

    wmma fragments are counted as the loads of tensor cores: loads as `ldmatrix`, eight rows of
    16 bytes at a time, stores as pairs of floats in the layout of `mma`; CUDA leaves both open.

    Args:
        function: a PrimFunc, or an IRModule with a `main`, of one kernel with bound loops. In
            classic TVM, a tvm.te.Schedule; its `storage_align` and fragments are not counted.
        tensors: the inputs and outputs of a classic schedule.
        block: the thread block's index in x, y and z.

    Raises:
        CannotFollow: no loop is bound to threads, or an index depends on data.
    """
    writer = _WarpWriter()
    lowered = plain_loops(function) if tensors is None else classic_loops(function, tensors)
    program = writer.program(lowered, "kernel")
    launch = writer.launch
    if not any(tag.startswith("threadIdx") for tag in launch):
        raise CannotFollow("no loop is bound to threadIdx.x")
    counter = _Counter(program.buffers, launch, block)
    counter.run(program.source)
    grid, threads = (
        tuple(launch.get(f"{kind}.{each}", 1) for each in _DIMENSIONS)
        for kind in ("blockIdx", "threadIdx")
    )
    return KernelCounts(grid, threads, writer.shared_bytes(), counter.counts())  # type: ignore[arg-type]


class _WarpWriter(ProgramWriter):
    """Writes a program in which thread axes are arrays, and guards are masks over them."""

    def __init__(self) -> None:
        super().__init__({})
        self.launch: dict[str, int] = {}  # extents by thread axis
        self._strides: dict[int, tuple[int, ...]] = {}
        self._mask = "everyone"
        self._masks = 0

    def shared_bytes(self) -> int:
        return sum(
            buffer.shape[0] * self._strides[number][0] * buffer.item_bytes
            for number, buffer in enumerate(self._buffers)
            if buffer.scope.startswith("shared")
        )

    def _number(self, buffer: Any, shape: Sequence[Any] | None = None) -> int:
        number = super()._number(buffer, shape)
        if number not in self._strides:
            self._strides[number] = tuple(int(each) for each in buffer.strides) or _row_major(
                self._buffers[number].shape
            )
        return number

    def _statement(self, node: Any, depth: int) -> None:
        kind = type(node).__name__
        axis = _thread_axis(node)
        if axis is not None:
            tag, variable, extent = axis
            known = self.launch.setdefault(tag, extent)
            if known != extent:
                raise CannotFollow(f"{tag} is bound to loops of {known} and of {extent}")
            self._write(depth, f"{self._variable(variable)} = axis({tag!r})")
            self._statement(node.body, depth)
        elif kind == "For" and int(node.kind) == _VECTORIZED:
            name = self._variable(node.loop_var)
            self._write(depth, f"{name} = lanes({self._expression(node.extent)})")
            self._statement(node.body, depth)
        elif kind == "IfThenElse":
            self._loads(node.condition, depth)
            condition = self._expression(node.condition)
            self._where(condition, depth, lambda inner: self._statement(node.then_case, inner))
            if node.else_case is not None:
                otherwise = f"logical_not({condition})"
                self._where(otherwise, depth, lambda inner: self._statement(node.else_case, inner))
        elif kind == "Evaluate" and (call := _called(node.value)) in _FRAGMENTS:
            self._fragment(call, node.value.args, depth)
        else:
            super()._statement(node, depth)

    def _where(self, condition: str, depth: int, write: Callable[[int], None]) -> None:
        """What `write` writes, for the threads where a condition holds."""
        outer, before = self._mask, len(self._lines)
        self._masks += 1
        self._mask = f"where_{self._masks}"
        self._write(depth, f"{self._mask} = logical_and({outer}, {condition})")
        self._write(depth, f"if {self._mask}.any():")
        write(depth + 1)
        if len(self._lines) == before + 2:
            del self._lines[before:]
        self._mask = outer

    def _loads(self, node: Any, depth: int) -> None:
        if type(node).__name__ == "Call" and _called(node) == "if_then_else":
            condition, then, otherwise = node.args
            self._loads(condition, depth)
            text = self._expression(condition, data="1")
            self._where(text, depth, lambda inner: self._loads(then, inner))
            self._where(f"logical_not({text})", depth, lambda inner: self._loads(otherwise, inner))
        else:
            super()._loads(node, depth)

    def _touch(self, buffer: Any, indices: Sequence[Any], depth: int, *, write: bool) -> None:
        number = self._number(buffer)
        if not _counted(self._buffers[number].scope):
            return  # registers
        flat = " + ".join(
            f"({position}) * {stride}"
            for position, stride in zip(
                self._positions(number, indices), self._strides[number], strict=True
            )
        )
        self._write(depth, f"touch({number}, {flat or 0}, {int(write)}, {self._mask})")

    def _fragment(self, call: str, arguments: Sequence[Any], depth: int) -> None:
        pointer, stride = arguments[5], arguments[6]
        _, data, offset, *_ = pointer.args
        [buffer] = data.args  # the pointer is that of a buffer
        number = self._number(buffer)
        rows = self._expression(stride)
        at = self._expression(offset)
        for part in _FRAGMENTS[call]:
            places = f"{at} + {part.format(stride=rows)}"
            write = int(call == "tvm_store_matrix_sync")
            self._write(depth, f"touch({number}, {places}, {write}, {self._mask})")

    def _expression(self, node: Any, *, data: str | None = None) -> str:
        kind = type(node).__name__
        if kind in _ARRAYS:
            a, b = (self._expression(each, data=data) for each in (node.a, node.b))
            return f"{_ARRAYS[kind]}({a}, {b})"
        if kind == "Not":
            return f"logical_not({self._expression(node.a, data=data)})"
        if kind == "Select":
            parts = (node.condition, node.true_value, node.false_value)
            return f"where({', '.join(self._expression(each, data=data) for each in parts)})"
        return super()._expression(node, data=data)


# Of numpy, for arrays where Python's own words are for single values.
_ARRAYS = {"And": "logical_and", "Or": "logical_or", "Min": "minimum", "Max": "maximum"}
# Which elements the lanes of a warp touch for a fragment of 16 x 16, request by request.
_FRAGMENTS = {
    "tvm_load_matrix_sync": ("(lane % 16) * {stride} + lane // 16 * 8 + lanes(8)",),
    "tvm_store_matrix_sync": tuple(
        f"(lane // 4 + {row}) * {{stride}} + lane % 4 * 2 + {column} + lanes(2)"
        for row in (0, 8)
        for column in (0, 8)
    ),
}


def _counted(scope: str) -> bool:
    return scope == "global" or scope.startswith("shared")


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides)


def _called(node: Any) -> str:
    return str(getattr(getattr(node, "op", None), "name", "")).rpartition(".")[2]


def _thread_axis(node: Any) -> tuple[str, Any, int] | None:
    """Tag, variable and extent if a statement is a loop over threads or thread blocks."""
    if type(node).__name__ == "AttrStmt" and str(node.attr_key) == "thread_extent":
        return str(node.node.thread_tag), node.node.var, int(node.value)
    binding = getattr(node, "thread_binding", None)
    if binding is not None:
        return str(binding.thread_tag), node.loop_var, int(node.extent)
    return None


class _Counter:
    """Runs a program of `_WarpWriter` for one thread block and counts its requests."""

    def __init__(self, buffers: Sequence[Any], launch: dict[str, int], block: tuple[int, int, int]):
        import numpy as np

        self._buffers = buffers
        extents = [launch.get(f"threadIdx.{each}", 1) for each in _DIMENSIONS]
        self._threads = extents[0] * extents[1] * extents[2]
        thread = np.arange(self._threads)[:, None]
        self._axes: dict[str, Any] = {
            f"blockIdx.{each}": at for each, at in zip(_DIMENSIONS, block, strict=True)
        }
        for each, extent in zip(_DIMENSIONS, extents, strict=True):
            self._axes[f"threadIdx.{each}"] = thread % extent
            thread = thread // extent
        self._kept: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
        self._addresses = 0
        self._counts: dict[tuple[int, int], list[int]] = {}

    def run(self, source: str) -> None:
        import numpy as np

        thread = np.arange(self._threads)[:, None]
        names: dict[str, Any] = {
            **{each: getattr(np, each) for each in (*_ARRAYS.values(), "logical_not", "where")},
            "axis": self._axes.__getitem__,
            "lanes": lambda count: np.arange(count)[None, :],
            "everyone": np.ones((self._threads, 1), bool),
            "lane": thread % WARP,
            "touch": self._touch,
        }
        # As in viz.access.follow: the text was written above, from IR.
        code = f"def run():\n{textwrap.indent(source.strip() or 'pass', '    ')}"
        exec(compile(code, "<requests>", "exec"), names)
        names["run"]()
        self._count()

    def _touch(self, number: int, elements: Any, write: int, mask: "np.ndarray") -> None:
        import numpy as np

        elements = np.asarray(elements)
        shape = np.broadcast_shapes(elements.shape, (self._threads, 1))
        if mask.shape[1] > 1:
            shape = np.broadcast_shapes(shape, mask.shape)
        at = np.broadcast_to(elements, shape)
        self._kept.setdefault((number, write), []).append((at, np.broadcast_to(mask, shape)))
        self._addresses += at.size
        if self._addresses > _BATCH:
            self._count()

    def _count(self) -> None:
        """Count what is kept, the touches of one shape at once."""
        import numpy as np

        for key, kept in self._kept.items():
            for lanes in {at.shape[1] for at, _ in kept}:
                same = [(at, mask) for at, mask in kept if at.shape[1] == lanes]
                at, mask = (np.stack(each) for each in zip(*same, strict=True))
                self._add(key, at, mask)
        self._kept.clear()
        self._addresses = 0

    def _add(self, key: tuple[int, int], at: "np.ndarray", mask: "np.ndarray") -> None:
        """Add touches (times, threads, lanes) of a buffer, as requests of warps."""
        import numpy as np

        buffer = self._buffers[key[0]]
        spare = -self._threads % WARP
        at = np.pad(at, ((0, 0), (0, spare), (0, 0)))
        mask = np.pad(mask, ((0, 0), (0, spare), (0, 0)))
        lanes = at.shape[2]
        at, mask = at.reshape(-1, WARP, lanes), mask.reshape(-1, WARP, lanes)
        addresses = buffer.address + at * buffer.item_bytes
        together = 1
        if lanes > 1 and (np.diff(at, axis=2) == 1).all() and (mask == mask[:, :, :1]).all():
            together = min(lanes, _WIDEST // buffer.item_bytes)
        width = together * buffer.item_bytes
        counts = self._counts.setdefault(key, [0, 0, 0, 0])
        for lane in range(0, lanes, together):
            where, active = addresses[:, :, lane], mask[:, :, lane]
            asked = active.any(axis=1)
            where, active = where[asked], active[asked]
            if not len(where):
                continue
            if buffer.scope == "global":
                needed = sectors(where, width, active).sum()
                best = -(-_distinct(where, active) * width // SECTOR_BYTES)
            else:
                needed = wavefronts(where, width, active).sum()
                best = np.full(len(where), _parts(width))
            misaligned = ((where % width != 0) & active).any(axis=1).sum()
            for place, more in enumerate((len(where), needed, best.sum(), misaligned)):
                counts[place] += int(more)

    def counts(self) -> tuple[AccessCount, ...]:
        found = []
        for (number, write), counts in self._counts.items():
            buffer = self._buffers[number]
            scope = buffer.scope.partition(".")[0]
            found.append(AccessCount(buffer.name, scope, bool(write), *counts))
        return tuple(found)
