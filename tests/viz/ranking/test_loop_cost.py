"""The cycles of innermost loops, counted by hand."""

import pytest

from tvm_practice.viz.ranking.loop_cost import loop_cost

# A dot product in one register: each sum waits for the one before.
DOT = """
.LBB0_1:
\tvmovss\t(%rsi,%rax,4), %xmm1
\tvfmadd231ss\t(%rdi,%rax,4), %xmm1, %xmm0
\tvmovss\t4(%rsi,%rax,4), %xmm1
\tvfmadd231ss\t4(%rdi,%rax,4), %xmm1, %xmm0
\taddq\t$2, %rax
\tcmpq\t%rdx, %rax
\tjne\t.LBB0_1
"""
# The same through two registers by turns: the chain is no shorter.
TURNS = DOT.replace(
    "4(%rdi,%rax,4), %xmm1, %xmm0", "4(%rdi,%rax,4), %xmm0, %xmm1\n\tvmovaps\t%xmm1, %xmm0"
).replace("vfmadd231ss\t4", "vfmadd132ss\t4")
# A row of C is read, added to and written: nothing waits, since the address goes on.
ROW = """
.LBB0_1:
\tvmovups\t(%rdi,%rax,4), %zmm1
\tvfmadd213ps\t(%rsi,%rax,4), %zmm0, %zmm1
\tvmovups\t%zmm1, (%rsi,%rax,4)
\taddq\t$16, %rax
\tjne\t.LBB0_1
"""
# One place of memory is added to again and again.
PLACE = ROW.replace("zmm", "xmm").replace("ps\t", "ss\t").replace(
    "(%rsi,%rax,4)", "(%rsi)"
)  # fmt: skip
GATHER = """
.LBB0_1:
\tvgatherdps\t(%r8,%zmm2,4), %zmm1 {%k1}
\tvfmadd231ps\t%zmm1, %zmm3, %zmm4
\tdecq\t%rax
\tjne\t.LBB0_1
"""
ARM = """
.LBB0_1:
\tldr\tq1, [x1], #16
\tfmla\tv0.4s, v1.4s, v2.4s
\tsubs\tx3, x3, #4
\tb.ne\t.LBB0_1
"""


@pytest.mark.parametrize(
    ("assembly", "multiply_adds", "cycles"),
    [
        (DOT, 2, 8.0),
        (TURNS, 2, 8.0),
        (ROW, 16, 1.25),
        (PLACE, 1, 9.0),
        (GATHER, 16, 32.0),
        (ARM, 4, 4.0),
    ],
    ids=["dot", "turns", "row", "place", "gather", "arm"],
)
def test_a_loop_takes_what_its_busiest_part_takes(
    assembly: str, multiply_adds: int, cycles: float
) -> None:
    found = loop_cost(assembly, vector_cycles=0.5, memory_cycles=9.0, scattered_cycles=2.0)
    assert found.multiply_adds == multiply_adds
    assert found.cycles == pytest.approx(cycles, abs=0.3)
