"""Reading graphs of both IRs: operators, kernels, constants, text; and the figure."""

from pathlib import Path

import pytest

from tvm_practice import engines
from tvm_practice.viz.graph import plot_imports

FUNCTIONS = "tests.viz.graph_functions"


@pytest.mark.pages
def test_a_residual_network_before_and_after(session: engines.Session) -> None:
    read = session.call(f"{FUNCTIONS}:small_resnet")
    prefix = "nn." if session.engine == engines.CLASSIC else ""
    imported, optimized, fused = read["imported"], read["optimized"], read["fused"]
    for stage in (imported, optimized, fused):
        assert stage["operators"][f"{prefix}conv2d"] == 6
        assert stage["operators"][f"{prefix}relu"] == 5
    assert imported["operators"][f"{prefix}batch_norm"] == 6
    assert f"{prefix}batch_norm" not in optimized["operators"]
    assert optimized["operators"] == fused["operators"]
    assert len(optimized["inputs"]) == len(fused["inputs"]) == 1
    if session.engine == engines.CLASSIC:
        assert len(imported["inputs"]) == 1 + 32 and imported["constants"] == 0
        assert "multiply" not in optimized["operators"]
        assert fused["kernels"]["nn.conv2d + add + add + nn.relu"] == 2
    else:
        assert len(imported["inputs"]) == 1 and imported["constants"] == 32
        assert imported["constant_calls"] == 1  # the transpose of the last weight
    assert optimized["constant_calls"] == 0
    assert sum(fused["kernels"].values()) == 10
    assert fused["result"] == "%9"
    # A shortcut is read by the kernel two further on; long lines are wrapped.
    assert "%1)" in read["text"] and max(map(len, read["text"].splitlines())) <= 76


@pytest.mark.parametrize("session", ["current"], indirect=True)
def test_operators_of_a_kernel_are_read_from_its_name(session: engines.Session) -> None:
    names = {
        "fused_matmul1_add12_relu1": ["matmul", "add", "relu"],
        "fused_conv2d10_subtract4": ["conv2d", "subtract"],
        "max_pool2d": ["max_pool2d"],
        "max_pool2d3": ["max_pool2d"],
        "fused_adaptive_avg_pool2d_reshape2": ["adaptive_avg_pool2d", "reshape"],
        "fused_log2_add": ["log2", "add"],
        "fused_something_unknown": ["something", "unknown"],
    }
    read = session.call(f"{FUNCTIONS}:kernel_names", {"names": list(names)})
    assert dict(zip(names, read, strict=True)) == names


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    latency = {"PyTorch": {"p50": 1.0}, "Relax": {"p50": 12.5}}
    study = {
        "imported": 11,
        "optimized": 8,
        "kernels": 3,
        "comparison": {"latency": latency},
    }
    file = tmp_path / "import.png"
    plot_imports({"MLP\nRelax": study, "MLP\nRelay": study}, file)
    assert file.read_bytes().startswith(b"\x89PNG") and file.stat().st_size > 5000
