"""Statements of the course's pages that no run prints and no exercise checks."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.course.tours.analysis import coverage
from tvm_practice.measure import MIN_ROUNDS

FUNCTIONS = "tests.docs.statements_functions"
AVX512 = {"kind": "llvm", "mcpu": "skylake-avx512"}
AVX2 = {"kind": "llvm", "mcpu": "haswell"}
NEON = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


def _arithmetic(session: engines.Session, target: dict[str, Any], columns: int) -> dict[str, int]:
    arguments = {"target": target, "columns": columns}
    found: dict[str, int] = session.call(f"{FUNCTIONS}:arithmetic", arguments)
    return found


def test_avx512_masks_guarded_lanes(session: engines.Session) -> None:
    """docs/phases/2-manual_schedule.md: "Vectors need equal work"."""
    found = _arithmetic(session, AVX512, 101)
    assert found["masked"] > 0 == found["single"] < found["vectors"]
    assert _arithmetic(session, AVX512, 96)["masked"] == 0


@pytest.mark.parametrize("target", [AVX2, NEON], ids=["AVX2", "NEON"])
def test_others_do_without_masks(session: engines.Session, target: dict[str, Any]) -> None:
    """docs/phases/2-manual_schedule.md: "Vectors need equal work"."""
    odd, even = (_arithmetic(session, target, columns) for columns in (101, 100))
    assert odd["single"] > odd["vectors"] and even["vectors"] > even["single"] == 0
    assert odd["masked"] == even["masked"] == 0


def test_a_sum_is_bound_to_threads_and_nothing_else(session: engines.Session) -> None:
    """docs/practice/puzzles.md: the answer to the key question."""
    assert session.call(f"{FUNCTIONS}:accepted_on_a_sum", {}) == ["bind threadIdx.x"]


def test_a_sum_in_another_order_rounds_differently(session: engines.Session) -> None:
    """docs/phases/1-te_basics.md and docs/practice/puzzles.md."""
    differences = session.call(f"{FUNCTIONS}:differences_of_a_reordered_sum", {})
    assert 0 < max(differences) < 1e-4


def test_exp_of_more_than_88_7_is_infinite(session: engines.Session) -> None:
    """tvm_practice/te_basics.py: the docstring of softmax."""
    below, above = session.call(f"{FUNCTIONS}:exponentials", {"numbers": [88.7, 88.8]})
    assert np.isfinite(below) and np.isinf(above)


@pytest.fixture
def classic(process_of: Processes) -> engines.Session:
    if reason := engines.unavailable_reason(engines.CLASSIC):
        pytest.skip(reason)
    return process_of(engines.CLASSIC)


@pytest.mark.parametrize(("mcpu", "layout"), [("skylake-avx512", "NCHW16c"), ("haswell", "NCHW8c")])
def test_a_convolutions_layout_has_a_vectors_channels(
    classic: engines.Session, mcpu: str, layout: str
) -> None:
    """docs/phases/4-relay_import.md: the answer to the key question."""
    assert classic.call(f"{FUNCTIONS}:altered_layout", {"mcpu": mcpu}) == layout


def test_autotvms_model_sees_the_knobs_and_not_the_loops(classic: engines.Session) -> None:
    """tvm_practice/auto_tune.py and docs/guides/concepts.md."""
    small, large = (classic.call(f"{FUNCTIONS}:autotvm_features", {"size": n}) for n in (64, 256))
    assert small["features"] == large["features"] == small["values"]


def test_six_rounds_are_needed_for_an_interval() -> None:
    """docs/icd.md: `pipeline.rounds` is at least 6; docs/guides/evaluation.md; phase 3's page."""
    assert coverage(3, 500) == pytest.approx(0.75, abs=0.03)
    assert coverage(7, 500) == pytest.approx(0.88, abs=0.03)
    assert 0.9 < coverage(MIN_ROUNDS, 500) < 0.97


INDUCTOR = """
import torch
from torch._inductor import config
from torch._inductor.utils import run_and_get_code

config.freezing = config.max_autotune = config.force_disable_caches = True
config.max_autotune_gemm_backends = "CPP"  # Inductor's templates and no library
layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).eval()
with torch.no_grad():
    _, code = run_and_get_code(torch.compile(layer), torch.randn(32, 64))
print("extern_kernels." in "".join(code), "cpp_fused_addmm_relu" in "".join(code))
"""


@pytest.mark.pages
def test_inductors_templates_fuse_the_epilogue() -> None:
    """docs/labs/6-compilers_compared.md: "Who decides the fusion"."""
    done = subprocess.run([sys.executable, "-c", INDUCTOR], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stderr
