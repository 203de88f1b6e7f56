"""Occupancy: known cases, and NVIDIA's own calculator where its header is installed."""

import importlib.util
import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from tvm_practice.labs.gpu.occupancy import A100, GPUS, H100, V100, Gpu, occupancy


def test_threads_are_the_limit_of_a_small_kernel() -> None:
    held = occupancy(A100, threads=256, registers=32)
    assert (held.blocks, held.warps, held.share, held.limit) == (8, 64, 1.0, "threads")


def test_registers() -> None:
    """128 registers x 32 threads = 4096 a warp, 16384 a quarter of the multiprocessor: 16 warps."""
    held = occupancy(H100, threads=256, registers=128)
    assert (held.blocks, held.share, held.limit) == (2, 0.25, "registers")


def test_shared_memory_and_what_the_driver_takes() -> None:
    """48 KiB: A100 has 164, 49 with the driver's share, so 3 blocks; V100 has 96, so 2."""
    assert occupancy(A100, threads=128, shared_bytes=48 * 1024).blocks == 3
    held = occupancy(V100, threads=128, shared_bytes=48 * 1024)
    assert (held.blocks, held.share, held.limit) == (2, 0.125, "shared memory")


def test_tiny_blocks_are_limited_by_their_number() -> None:
    held = occupancy(V100, threads=32)
    assert (held.blocks, held.share, held.limit) == (32, 0.5, "blocks")


@pytest.mark.parametrize(
    ("registers", "shared_bytes"), [(256, 0), (255, 0), (32, 164 * 1024), (65, 0)]
)
def test_what_does_not_fit(registers: int, shared_bytes: int) -> None:
    held = occupancy(A100, threads=1024, registers=registers, shared_bytes=shared_bytes)
    assert (held.blocks, held.share) == (0, 0.0)


@pytest.mark.parametrize("threads", [0, 1025])
def test_a_block_that_cannot_be_is_refused(threads: int) -> None:
    with pytest.raises(ValueError, match=f"threads={threads}"):
        occupancy(A100, threads=threads)


_CALCULATOR = """
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
  int major, shared_per_sm, shared_per_block, reserved, threads, registers, shared_bytes;
  while (scanf("%d %d %d %d %d %d %d", &major, &shared_per_sm, &shared_per_block, &reserved,
               &threads, &registers, &shared_bytes) == 7) {
    cudaOccDeviceProp device;
    device.computeMajor = major; device.computeMinor = 0;
    device.maxThreadsPerBlock = 1024; device.maxThreadsPerMultiprocessor = 2048;
    device.regsPerBlock = 65536; device.regsPerMultiprocessor = 65536; device.warpSize = 32;
    device.sharedMemPerBlock = 49152; device.sharedMemPerMultiprocessor = shared_per_sm;
    device.numSms = 80; device.sharedMemPerBlockOptin = shared_per_block;
    device.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers;
    kernel.sharedSizeBytes = 0; kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared_per_block;
    cudaOccDeviceState state;
    state.carveoutConfig = 100;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads,
                                                shared_bytes)) return 1;
    printf("%d\\n", result.activeBlocksPerMultiprocessor);
  }
}
"""


def _headers() -> Path | None:
    try:
        found = importlib.util.find_spec("nvidia.cuda_runtime")
    except ModuleNotFoundError:
        return None
    folders = [Path(each) for each in (found.submodule_search_locations or ())] if found else []
    return next((each / "include" for each in folders if (each / "include").is_dir()), None)


@pytest.mark.skipif(
    _headers() is None or shutil.which("g++") is None,
    reason="needs nvidia-cuda-runtime-cu12 (requirements-classic.txt) and g++",
)
def test_it_agrees_with_nvidias_calculator(tmp_path: Path) -> None:
    (tmp_path / "occupancy.cpp").write_text(_CALCULATOR)
    subprocess.run(
        ["g++", "-I", str(_headers()), "occupancy.cpp", "-o", "occupancy"], cwd=tmp_path, check=True
    )
    cases: list[tuple[Gpu, int, int, int]] = [
        (gpu, threads, registers, shared_bytes)
        for gpu, threads, registers, shared_bytes in itertools.product(
            GPUS, (32, 96, 128, 256, 544, 1024), (16, 40, 64, 65, 128, 255),
            (0, 100, 8192, 18944, 49152, 90000, 120000),
        )
    ]  # fmt: skip
    lines = [
        f"{gpu.arch[3]} {gpu.shared_per_sm} {gpu.shared_per_block} {gpu.shared_reserved} "
        f"{threads} {registers} {shared_bytes}"
        for gpu, threads, registers, shared_bytes in cases
    ]
    answered = subprocess.run(
        [tmp_path / "occupancy"], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    theirs = [int(line) for line in answered.stdout.split()]
    ours = [
        occupancy(gpu, threads=threads, registers=registers, shared_bytes=shared_bytes).blocks
        for gpu, threads, registers, shared_bytes in cases
    ]
    assert ours == theirs
