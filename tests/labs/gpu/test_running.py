"""What a GPU's part does apart from the GPU: verify, time in turns, leave out what is wrong."""

import pytest
import torch

from tvm_practice.labs.gpu.running import compare


def test_a_wrong_kernel_is_said_and_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = torch.randn(2, 64, 64)
    waited = []
    figures = compare(
        {"right": lambda: a @ b, "wrong": lambda: a @ b + 1, "nan": lambda: a @ b * torch.nan},
        lambda: torch.mm(a, b),
        a,
        b,
        lambda: waited.append(1),
        seconds=0.2,
    )
    assert set(figures["gflops"]) == {"right", "cuBLAS"} and set(figures["wrong"]) == {
        "wrong",
        "nan",
    }
    assert figures["ratio"]["right"]["value"] > 0 and waited
    said = capsys.readouterr().out
    assert "wrong is wrong" in said and "of cuBLAS" in said
