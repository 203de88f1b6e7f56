"""CUDA texts, what a compiler makes of them, and values on the CPU."""

import shutil
from collections.abc import Iterator

import pytest

from tvm_practice import engines

FUNCTIONS = "tests.gpu.kernels"
needs_compiler = pytest.mark.skipif(
    shutil.which("nvcc") is None, reason="needs nvcc, of NVIDIA's CUDA toolkit"
)


@pytest.fixture(scope="module")
def current() -> Iterator[engines.Session]:
    with engines.Session(engines.CURRENT) as opened:
        yield opened


def test_the_text_is_the_kernel(current: engines.Session) -> None:
    kernel = current.call(f"{FUNCTIONS}:transposition_text", {"arch": "sm_90"})
    assert kernel.startswith('extern "C" __global__') and kernel.count("__global__") == 1
    assert "X_shared_ptr[1056]" in kernel and "__syncthreads()" in kernel
    assert kernel.endswith("}")


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_registers_and_shared_memory_of_a_kernel(arch: str, current: engines.Session) -> None:
    took = current.call(f"{FUNCTIONS}:transposition_resources", {"arch": arch})
    assert took["registers"] == took["registers of ptxas"] > 0
    assert took["shared_bytes"] == 32 * 33 * 4
    assert took["stack_bytes"] == 0


@needs_compiler
def test_an_architecture_that_the_compiler_does_not_know_is_a_line(
    current: engines.Session,
) -> None:
    said = current.call(f"{FUNCTIONS}:refused", {"arch": "sm_20"})
    assert "sm_20" in said and "\n" not in said


def test_without_a_compiler_it_is_said_how_to_get_one(current: engines.Session) -> None:
    assert "tvm-practice[gpu]" in current.call(f"{FUNCTIONS}:no_compiler")


def test_plain_loops_have_the_schedules_values(current: engines.Session) -> None:
    assert current.call(f"{FUNCTIONS}:values_on_cpu") < 1e-4


def test_what_no_thread_writes_is_seen(current: engines.Session) -> None:
    assert current.call(f"{FUNCTIONS}:unwritten_on_cpu") == [True] * 4 + [False] * 2
