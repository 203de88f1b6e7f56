"""The default schedules for CUDA without a GPU: threads one by one on the CPU, kernels compiled."""

from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.tvm_export.rules.cpu_functions import FAMILIES
from tvm_practice import engines
from tvm_practice.tvm_export.cuda import NO_COMPILER, compiler

FUNCTIONS = "tests.tvm_export.rules.gpu_functions"


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.parametrize("family", FAMILIES)
def test_values_at_odd_sizes(session: engines.Session, family: str) -> None:
    drawn = session.call(f"{FUNCTIONS}:compare", {"family": family, "seed": 3})
    assert drawn["finite"] and drawn["error"] < 1e-5, drawn
    assert "unscheduled" not in drawn["rules"] and drawn["bound"] == len(drawn["rules"]), drawn


def test_a_convolution_has_tiles_in_shared_memory(session: engines.Session) -> None:
    made = session.call(f"{FUNCTIONS}:kernels", {"groups": 1})
    assert made["rule"] == "matmul" and made["shared"] == 2 and made["barriers"] >= 1
    assert made["threads"] >= 64 and (made["compiled"] is None or made["compiled"] > 1000)


@pytest.mark.parametrize("groups", [8, 32])
def test_many_short_sums_have_a_thread_each(session: engines.Session, groups: int) -> None:
    """TVM's rules for reductions gave each of them a block, most of whose threads had no term."""
    made = session.call(f"{FUNCTIONS}:kernels", {"groups": groups})
    assert made["rule"] == "fallback" and made["shared"] == made["barriers"] == 0
    reason = f"25088 sums of {9 * 32 // groups} terms each: a thread for each is enough"
    assert reason in made["declined"].values()
    assert made["compiled"] is None or made["compiled"] > 1000


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_maxima_and_minima_keep_nan(session: engines.Session, dtype: str) -> None:
    assert session.call(f"{FUNCTIONS}:not_a_number", {"dtype": dtype}) == [True] * 4


def test_loops_that_are_written_out_run_on_threads(session: engines.Session) -> None:
    """Left on the processor they read a GPU's addresses, and the process died."""
    made = session.call(f"{FUNCTIONS}:written_out")
    assert "parallel_loops" in made["rules"] and made["bound"], made
    assert made["error"] < 1e-5, made


def test_a_recurrence_computes_each_term_once(session: engines.Session) -> None:
    """TVM's rules inline: each of the terms twice, and so 2^22 times the first."""
    made = session.call(f"{FUNCTIONS}:recurrence")
    assert "stages" in made["rules"] and made["error"] < 1e-4, made


def test_what_no_rule_takes_is_not_left_to_the_processor(session: engines.Session) -> None:
    said = session.call(f"{FUNCTIONS}:without_a_rule")
    assert "no rule binds the loops of scatter" in said and "\n" not in said, said


def test_a_sum_of_one_term_gets_its_bias_once(session: engines.Session) -> None:
    assert session.call(f"{FUNCTIONS}:single_terms") < 1e-5


def test_small_products_have_small_tiles(session: engines.Session) -> None:
    """An H100 has 132 multiprocessors; TVM's one tile made 48 thread blocks of the first."""
    blocks = [
        session.call(f"{FUNCTIONS}:thread_blocks", {"rows": m, "columns": n, "terms": k})
        for m, n, k in ((128, 768, 768), (128, 3072, 768), (2048, 2048, 2048))
    ]
    assert blocks[0] == 384 and blocks[1] >= 256 and blocks[2] == 1024, blocks


def test_what_the_runtime_computes_is_refused(session: engines.Session) -> None:
    said = session.call(f"{FUNCTIONS}:refused_of_values")
    assert "alone, not cuda" in said or "depends on" in said, said


def test_convolutions_pad_what_the_model_pads_for_them(session: engines.Session) -> None:
    made = session.call(f"{FUNCTIONS}:padded_convolutions")
    assert made["error"] < 1e-4
    assert sum("pad" in name for name in made["rules"]) == 1, made["rules"]  # that of ones


@pytest.mark.pages
@pytest.mark.parametrize("with_compiler", [True, False])
def test_a_model_is_exported_for_a_gpu_that_is_not_here(
    session: engines.Session, tmp_path: Path, with_compiler: bool
) -> None:
    if with_compiler and compiler() is None:
        pytest.skip(NO_COMPILER)
    given = {"out": str(tmp_path / "out"), "with_compiler": with_compiler}
    made = session.call(f"{FUNCTIONS}:exported", given)
    assert "matmul" in made["rules"].values() and "unscheduled" not in made["rules"].values()
    assert made["kernels"] >= len(made["rules"])
    assert made["library"] > 100_000 and "sm_80" in made["target"]
    if with_compiler:
        assert made["compiled"] > 1000
