"""CUDA text to PTX, where NVRTC is installed."""

import pytest

from tvm_practice.tvm_export import ptx

SOURCE = """
#include <cuda/std/cstdint>
#include <cuda/std/type_traits>
static_assert(sizeof(cuda::std::int64_t) == 8 && cuda::std::is_same_v<int, int>);
extern "C" __global__ void scale(float* x) { x[threadIdx.x] = x[threadIdx.x] * 2.0f + 1.0f; }
"""


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    if (reason := ptx.why_no_ptx()) is not None:
        pytest.skip(reason)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_ptx_is_of_the_architecture(arch: str) -> None:
    text = ptx.to_ptx(SOURCE, arch)
    assert f".target {arch}" in text and ".entry scale" in text and "fma.rn.f32" in text


def test_the_first_error_is_told() -> None:
    with pytest.raises(ptx.CompileError, match=r"sm_80: .*undeclared"):
        ptx.to_ptx("__global__ void f() { undeclared = 1; }", "sm_80")


def test_an_unknown_architecture_is_told() -> None:
    with pytest.raises(ptx.CompileError, match="sm_1"):
        ptx.to_ptx(SOURCE, "sm_1")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptx, "_library", lambda: None)
    assert "nvidia-cuda-nvrtc" in str(ptx.why_no_ptx())
    with pytest.raises(RuntimeError, match="nvidia-cuda-nvrtc"):
        ptx.to_ptx(SOURCE, "sm_80")
