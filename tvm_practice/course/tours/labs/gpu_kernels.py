"""The kernels of lab 1's tour: one matmul, from a thread for each element to tensor cores.

A kernel is a function of (calls, m, n, k) that returns the tvm.s_tir.Schedule of C = A · B for A
(m, k) and B (k, n). It raises `ToDo` while the function that it is about is to do.
"""

from collections.abc import Callable
from typing import Any

from tvm_practice.course.steps import Steps
from tvm_practice.labs.gpu.matmul import declare
from tvm_practice.labs.gpu.worked import double_buffer

THREADS = (8, 32)  # of a thread block, in y and x; a warp is one row of threads
_TILE = (16, 4)  # elements of C that a thread adds up
_STEP = 8  # of k, in shared memory at once


class ToDo(Exception):
    """A kernel needs a function that is not written, or that failed."""


class Calls:
    """The functions that a kernel is made of.

    The one that a kernel is about is the learner's. Those that it builds on are too, where they
    are written and right, and else the reference ones.

    Attributes:
        steps: the learner's functions.
        about: the last function that a kernel was about.
    """

    def __init__(self, steps: Steps):
        self.steps = steps
        self.about = ""

    def subject(self, name: str, *arguments: Any) -> Any:
        """Call the function that the kernel is about; raises ToDo if it cannot be used."""
        self.about = name
        found = self.steps.attempt(name, *arguments)
        if not self.steps.ran(name):
            raise ToDo
        return found

    def needed(self, name: str, *arguments: Any) -> Any:
        """Call a function that the kernel builds on."""
        from solutions.labs import gpu_schedule as reference

        if not self.steps.ran(name):
            return getattr(reference, name)(*arguments)
        return self.steps.attempt(name, *arguments)


def bound(calls: Calls, m: int, n: int, k: int) -> Any:
    schedule, block = declare(m, n, k)
    calls.subject("bind_threads", schedule, block, *THREADS)
    _sum_in_a_register(schedule, block)
    return schedule


def rows_on_x(calls: Calls, m: int, n: int, k: int) -> Any:
    """`bound` with rows and columns exchanged: as many threads, as much work."""
    schedule, block = declare(m, n, k)
    i, j, k_loop = schedule.get_loops(block)
    block_i, thread_i = schedule.split(i, [None, 32])
    block_j, thread_j = schedule.split(j, [None, 8])
    schedule.reorder(block_i, block_j, thread_j, thread_i, k_loop)
    schedule.bind(block_i, "blockIdx.x")
    schedule.bind(block_j, "blockIdx.y")
    schedule.bind(thread_i, "threadIdx.x")
    schedule.bind(thread_j, "threadIdx.y")
    _sum_in_a_register(schedule, block)
    return schedule


def _sum_in_a_register(schedule: Any, block: Any) -> None:
    """Have a thread add up its element in a register, and write it to C once."""
    write_back = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(write_back, schedule.get_loops(block)[3])


def staged(calls: Calls, m: int, n: int, k: int) -> Any:
    schedule, block = declare(m, n, k)
    calls.needed("bind_threads", schedule, block, *THREADS)
    _sum_in_a_register(schedule, block)
    k_outer, _ = schedule.split(schedule.get_loops(block)[-1], [None, 32])
    for index, lanes in ((0, 1), (1, 4)):
        calls.subject("stage_shared", schedule, block, index, k_outer, *THREADS, lanes)
    return schedule


def in_registers(calls: Calls, m: int, n: int, k: int) -> Any:
    return _register_tiles(calls, m, n, k)[0]


def pipelined(calls: Calls, m: int, n: int, k: int) -> Any:
    schedule, copies, k_outer = _register_tiles(calls, m, n, k)
    double_buffer(schedule, copies, k_outer)
    return schedule


def _register_tiles(calls: Calls, m: int, n: int, k: int) -> tuple[Any, list[Any], Any]:
    """The schedule, the copies to shared memory, and the loop that they are in."""
    schedule, block = declare(m, n, k)
    k_outer, *readers = calls.subject("register_tile_gpu", schedule, block, *THREADS, *_TILE, _STEP)
    copies = [
        calls.needed("stage_shared", schedule, reader, 0, k_outer, *THREADS, 4)
        for reader in readers
    ]
    schedule.decompose_reduction(block, k_outer)
    return schedule, copies, k_outer


def on_tensor_cores(calls: Calls, m: int, n: int, k: int) -> Any:
    return _tensorized(calls, m, n, k, pad=False)[0]


def padded(calls: Calls, m: int, n: int, k: int) -> Any:
    return _tensorized(calls, m, n, k, pad=True)[0]


def tensor_pipelined(calls: Calls, m: int, n: int, k: int) -> Any:
    schedule, copies, k_outer = _tensorized(calls, m, n, k, pad=True)
    double_buffer(schedule, copies, k_outer)
    return schedule


def _tensorized(calls: Calls, m: int, n: int, k: int, *, pad: bool) -> tuple[Any, list[Any], Any]:
    """The schedule, the copies to shared memory, and the loop that they are in."""
    from tvm_practice.labs.gpu.wmma import warp_tiles, wmma_intrinsics

    schedule, block = declare(m, n, k, "float16")
    tiles = warp_tiles(schedule, block)
    copies = [
        calls.needed("stage_shared", schedule, reader, 0, tiles.k_outer, tiles.warps, 32, 8)
        for reader in (tiles.load_a, tiles.load_b)
    ]
    for copy in copies if pad else ():
        calls.needed("pad_shared", schedule, copy, 8)
    calls.subject("tensor_cores", schedule, *tiles[:5], wmma_intrinsics())
    return schedule, copies, tiles.k_outer


Make = Callable[[Calls, int, int, int], Any]
# In the order in which they are shown: name, what is new in it, how it is made.
KERNELS: tuple[tuple[str, str, Make], ...] = (
    ("bind", "one thread for each element of C.", bound),
    ("x on rows", "what `bind` avoids: adjacent threads in x take different rows.", rows_on_x),
    ("shared", "the same threads; tiles of A and B through shared memory.", staged),
    ("registers", "a thread adds up 16 x 4 elements of C.", in_registers),
    ("pipeline", "the same, while the next tiles are fetched.", pipelined),
    ("tensor", "float16 in, on tensor cores, one warp 32 x 64.", on_tensor_cores),
    ("tensor+pad", "the same, rows of the staged tiles padded.", padded),
    ("tensor+pipe", "the same, while the next tiles are fetched.", tensor_pipelined),
)
