"""Kernels whose assembly is followed: how often their loops run, and how long they take."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.viz.ranking.followed import followed
from tvm_practice.viz.ranking.integers import CannotRun
from tvm_practice.viz.ranking.pipeline import Cycles

CYCLES = Cycles(vector=0.5, memory=9.0, scattered=2.0, read=0.5, written=1.0, lanes=16)

# 64 rows of 8 sums, the rows' number on the stack, a row's end an address.
NESTED = """
f:
\tpushq\t%rbx
\tmovq\t$0, -16(%rsp)
\tmovq\t%rsi, %rax
.LBB0_1:
\tleaq\t32(%rax), %rcx
\tvxorps\t%xmm0, %xmm0, %xmm0
.LBB0_2:
\tvmovss\t(%rax), %xmm1
\tvfmadd231ss\t%xmm1, %xmm2, %xmm0
\taddq\t$4, %rax
\tcmpq\t%rcx, %rax
\tjne\t.LBB0_2
\tvmovss\t%xmm0, (%rdx)
\taddq\t$4, %rdx
\tincq\t-16(%rsp)
\tmovq\t-16(%rsp), %rbx
\tcmpl\t$64, %ebx
\tjb\t.LBB0_1
\tpopq\t%rbx
\tretq
"""
LOOP = """
f:
\tmovq\t$-4000, %rax
.LBB0_1:
{body}
\taddq\t$4, %rax
\tjne\t.LBB0_1
\tretq
"""


def cycles_of(*body: str) -> float:
    """Of one of the 1000 iterations of a loop."""
    text = LOOP.format(body="\n".join(f"\t{each}" for each in body))
    return followed(text, CYCLES).cycles / 1000


def test_all_loops_are_counted() -> None:
    found = followed(NESTED, CYCLES)
    assert found.multiply_adds == 64 * 8
    # Before the loops 3 run and after them 2; a row has 5 for each sum and 8 around them.
    assert found.instructions == 5 - 1 + 64 * (8 * 5 + 8)
    # The rows' sums do not wait for each other: the front end delivers 4 a cycle.
    assert found.cycles == pytest.approx(64 * (8 * 5 + 8) / 4, rel=0.1)


@pytest.mark.parametrize(
    ("body", "cycles"),
    [
        (["vfmadd231ss (%rsi,%rax), %xmm1, %xmm0"], 4.0),
        (["vxorps %xmm0, %xmm0, %xmm0", "vfmadd213ss (%rsi), %xmm1, %xmm0",
          "vmovss %xmm0, (%rsi)"], 9.0),
        (["vmovss (%rsi), %xmm0", "vfmadd213ss %xmm1, %xmm2, %xmm0", "vmovss %xmm0, (%rsi)"], 9.0),
        (["vmovss (%rsi,%rax), %xmm0", "vfmadd213ss %xmm1, %xmm2, %xmm0",
          "vmovss %xmm0, (%rsi,%rax)"], 1.25),
        (["vgatherdps (%r8,%zmm2,4), %zmm1 {%k1}"], 32.0),
        (["vmovups 64(%rsi), %zmm0", "vmovups 128(%rsi), %zmm1", "vmovups (%rsi), %zmm2",
          "vmovups 192(%rsi), %zmm3"], 2.0),
        (["vmovups 68(%rsi), %zmm0", "vmovups 132(%rsi), %zmm1", "vmovups 4(%rsi), %zmm2",
          "vmovups 196(%rsi), %zmm3"], 4.0),
        (["vfmadd231ps 4(%rsi){1to16}, %zmm4, %zmm0", "vmovups 68(%rsi), %zmm1"], 4.0),
        (["vpermps %zmm0, %zmm1, %zmm2", "vpermps %zmm0, %zmm1, %zmm3"], 2.0),
    ],
    ids=[
        "chain", "from memory", "through memory", "other places", "gather", "within lines",
        "across lines", "broadcast", "shuffles",
    ],
)  # fmt: skip
def test_a_loop_takes_what_its_busiest_part_takes(body: list[str], cycles: float) -> None:
    assert cycles_of(*body) == pytest.approx(cycles, rel=0.12)


@pytest.mark.parametrize(
    ("assembly", "message"),
    [
        (
            LOOP.format(body="\tvmulss\t%xmm0, %xmm1, %xmm2\n\tmovq\t(%rsi), %rax"),
            "depends on data",
        ),
        (
            LOOP.format(body="\tvmulss\t%xmm0, %xmm1, %xmm2").replace("$4, %rax", "$0, %rax"),
            "without an end",
        ),
        ("f:\n\tfmla\tv0.4s, v1.4s, v2.4s\n\tret\n", "only assembly of x86"),
    ],
    ids=["data", "endless", "arm"],
)
def test_what_cannot_be_followed_is_said(assembly: str, message: str) -> None:
    with pytest.raises(CannotRun, match=message):
        followed(assembly, CYCLES)


@pytest.mark.pages
def test_every_multiply_add_of_real_kernels_is_counted(process_of: Processes) -> None:
    current = process_of(engines.CURRENT)
    counted = current.call("tests.viz.ranking.functions:multiply_adds", {"count": 2, "seed": 5})
    assert counted == [64**3] * 2
