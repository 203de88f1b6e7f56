"""CUDA texts, what a compiler makes of them, and values on the CPU."""

import shutil

import pytest

from tvm_practice import engines
from tvm_practice.tvm_export.cuda import compiler, compiles_for

FUNCTIONS = "tests.labs.gpu.kernels"
needs_nvcc = pytest.mark.skipif(
    shutil.which("nvcc") is None, reason="needs nvcc, of NVIDIA's CUDA toolkit"
)


def test_the_text_is_the_kernel(current: engines.Session) -> None:
    kernel = current.call(f"{FUNCTIONS}:transposition_text", {"arch": "sm_90"})
    assert kernel.startswith('extern "C" __global__') and kernel.count("__global__") == 1
    assert "X_shared_ptr[1056]" in kernel and "__syncthreads()" in kernel
    assert kernel.endswith("}")


@needs_nvcc
@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_registers_and_shared_memory_are_those_of_ptxas(
    arch: str, current: engines.Session
) -> None:
    took = current.call(f"{FUNCTIONS}:transposition_by_nvcc", {"arch": arch})
    assert took["registers"] == took["registers of ptxas"] > 0
    assert took["shared_bytes"] == 32 * 33 * 4
    assert took["stack_bytes"] == 0


@pytest.mark.skipif(compiler() != "nvrtc", reason="needs the extra `gpu`: NVRTC")
@pytest.mark.pages
@pytest.mark.slow
def test_nvrtc_compiles_tensor_cores_for_a_v100(current: engines.Session) -> None:
    took = current.call(f"{FUNCTIONS}:tensor_core_resources", {"arch": "sm_70"})
    assert took["registers"] >= 64  # of the accumulators alone
    assert took["shared_bytes"] == 2 * (128 * 32 + 32 * 128)


@pytest.mark.skipif(compiler() is None, reason="needs the extra `gpu`, or nvcc")
def test_an_architecture_that_the_compiler_does_not_know_is_a_line(
    current: engines.Session,
) -> None:
    said = current.call(f"{FUNCTIONS}:refused", {"arch": "sm_20"})
    assert "sm_20" in said and "\n" not in said and said != "compiled"


def test_quotients_are_not_made_approximate(current: engines.Session) -> None:
    """TVM asks for fast mathematics, whose quotients are two units in the last place off."""
    text = current.call(f"{FUNCTIONS}:quotient_in_ptx", {"arch": "sm_80"})
    assert text is None or "div.rn.f32" in text, text


@pytest.mark.skipif(compiler() != "nvrtc", reason="needs the extra `gpu`: NVRTC")
def test_old_and_unknown_architectures_are_known_beforehand() -> None:
    assert compiles_for("sm_80") and compiles_for("sm_90a") and not compiles_for("sm_20")


def test_without_a_compiler_it_is_said_how_to_get_one(current: engines.Session) -> None:
    assert "tvm-practice[gpu]" in current.call(f"{FUNCTIONS}:no_compiler")


def test_plain_loops_have_the_schedules_values(current: engines.Session) -> None:
    assert current.call(f"{FUNCTIONS}:values_on_cpu") < 1e-4


def test_what_no_thread_writes_is_seen(current: engines.Session) -> None:
    assert current.call(f"{FUNCTIONS}:unwritten_on_cpu") == [True] * 4 + [False] * 2
