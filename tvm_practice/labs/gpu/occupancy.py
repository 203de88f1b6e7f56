"""How many thread blocks of a kernel fit on a multiprocessor at once, and which limit stops more.

A multiprocessor hides the latency of one warp behind the work of others: the more warps it holds,
the more it can hide. It has room for a number of thread blocks, threads, registers and bytes of
shared memory; the first to run out is the limit.

The limits are those of NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities", table
"Technical Specifications per Compute Capability". The allocation units of registers and shared
memory are in the CUDA toolkit's `cuda_occupancy.h`; a test compares this file with it.
"""

from dataclasses import dataclass

_WARP = 32
_REGISTER_UNIT = 256  # registers are handed out to a warp in multiples of this
_PARTITIONS = 4  # of a multiprocessor: each has a quarter of the registers


@dataclass(frozen=True)
class Gpu:
    """What a multiprocessor of a GPU has room for.

    Attributes:
        arch: as compilers call it.
        multiprocessors: on the SXM board.
        shared_per_sm: bytes.
        shared_per_block: bytes, once a program has asked for more than the default 48 KiB.
        shared_reserved: bytes of each thread block's share that the driver keeps.
        shared_unit: shared memory is allocated in multiples of this many bytes.
    """

    name: str
    arch: str
    multiprocessors: int
    shared_per_sm: int
    shared_per_block: int
    shared_reserved: int
    shared_unit: int
    threads_per_sm: int = 2048
    threads_per_block: int = 1024
    blocks_per_sm: int = 32
    registers_per_sm: int = 65536
    registers_per_thread: int = 255


_KIB = 1024
V100 = Gpu("V100", "sm_70", 80, 96 * _KIB, 96 * _KIB, 0, 256)
A100 = Gpu("A100", "sm_80", 108, 164 * _KIB, 163 * _KIB, _KIB, 128)
H100 = Gpu("H100", "sm_90", 132, 228 * _KIB, 227 * _KIB, _KIB, 128)
GPUS = (V100, A100, H100)


@dataclass(frozen=True)
class Occupancy:
    """How much of a kernel a multiprocessor holds at once.

    Attributes:
        blocks: thread blocks; 0 if not even one fits.
        warps: the warps of those thread blocks.
        share: `warps` over the most that a multiprocessor can hold, 0 to 1.
        limit: the resource that admits no further thread block: "blocks", "threads", "registers" or
            "shared memory".
    """

    blocks: int
    warps: int
    share: float
    limit: str


def occupancy(gpu: Gpu, *, threads: int, registers: int = 0, shared_bytes: int = 0) -> Occupancy:
    """How many thread blocks fit on a multiprocessor.

    Args:
        threads: threads per thread block.
        registers: registers per thread, as the compiler reports; 0, unknown, sets no limit.
        shared_bytes: shared memory per thread block.

    Raises:
        ValueError: the thread block has no thread, or more than 1024.
    """
    if not 1 <= threads <= gpu.threads_per_block:
        raise ValueError(f"threads={threads} is not between 1 and {gpu.threads_per_block}")
    warps = -(-threads // _WARP)
    fitting = {  # of equal limits the first is named
        "blocks": gpu.blocks_per_sm,
        "threads": gpu.threads_per_sm // _WARP // warps,
        "registers": _by_registers(gpu, warps, registers),
        "shared memory": _by_shared_memory(gpu, shared_bytes),
    }
    limit = min(fitting, key=lambda name: fitting[name])
    blocks = fitting[limit]
    return Occupancy(blocks, blocks * warps, blocks * warps * _WARP / gpu.threads_per_sm, limit)


def _by_registers(gpu: Gpu, warps: int, registers: int) -> int:
    if registers == 0:
        return gpu.blocks_per_sm
    of_a_warp = _rounded_up(registers * _WARP, _REGISTER_UNIT)
    whole_block = of_a_warp * _rounded_up(warps, _PARTITIONS)
    if registers > gpu.registers_per_thread or whole_block > gpu.registers_per_sm:
        return 0
    return gpu.registers_per_sm // _PARTITIONS // of_a_warp * _PARTITIONS // warps


def _by_shared_memory(gpu: Gpu, shared_bytes: int) -> int:
    taken = _rounded_up(shared_bytes + gpu.shared_reserved, gpu.shared_unit)
    if shared_bytes > gpu.shared_per_block:
        return 0
    return gpu.shared_per_sm // taken if taken else gpu.blocks_per_sm


def _rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
