"""Attention, a few rows of queries at a time.

The vectors are of rows: a step of a score multiplies the queries of a vector of rows by one element
of a key, which is read as it lies, and the softmax of a row stays within its lane. The sum of the
values has vectors of a value's elements, and one weight of each row at a time. So nothing but the
queries is laid out anew, and a maximum or a sum over the tokens needs no shuffles.
"""

import math
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.extremes import ROW_MAXIMA
from tvm_practice.tvm_export.rules.cpu.loops import Cpu
from tvm_practice.tvm_export.rules.cpu.scheduling import extent_of

ATTENTION = "tvm_practice.attention"
"""The attribute of the functions that `tvm_export.attention` writes."""
# Registers of rows in a block: a step reads so many vectors of queries.
_VECTORS = 2
# Tokens whose scores are summed together, and rows whose values are; with few registers, fewer.
_TOKENS, _TOKENS_OF_FEW, _ROWS = 8, 4, 4
_MOST_VECTORS, _MOST_OF_FEW, _MANY = 4, 2, 32
# Tokens of a part of the sum of values, which stays in the first cache meanwhile.
_PART, _LEAST_OF_PART = 64, 16
# The stages, in order.
_STAGES = ("queries", "scores", ROW_MAXIMA, "exps", "total", "product")


@dataclass(frozen=True)
class Tiling:
    """Rows and tokens rounded up to whole tiles."""

    padded_rows: int
    padded_tokens: int


def tiling(rows: int, tokens: int, cpu: Cpu) -> Tiling:
    """The tiles of an attention of so many rows and tokens."""
    block, together = _block(cpu), _together(cpu)
    return Tiling(math.ceil(rows / block) * block, math.ceil(tokens / together) * together)


def _block(cpu: Cpu) -> int:
    """Rows of a block."""
    return _VECTORS * cpu.lanes("float32")


def _together(cpu: Cpu) -> int:
    """Tokens whose scores are summed together."""
    return _TOKENS if cpu.registers >= _MANY else _TOKENS_OF_FEW


def is_suitable(rows: int, tokens: int, width: int, cpu: Cpu) -> bool:
    """Whether an attention fills the vectors: at least a block of rows, and whole vectors wide."""
    lanes = cpu.lanes("float32")
    return rows >= _block(cpu) and tokens >= lanes and width % lanes == 0


def schedule_attention(func: Any, cpu: Cpu) -> Any:
    """Blocks of rows in parallel; of each block all scores, their softmax, and the values' sum.

    The loop nest of 12 heads of 64, 128 rows and 128 tokens, on 256-bit vectors:

        for i0_i1_0_fused in parallel(96):
            for ax0 in serial(1):
                for ax1 in serial(64):
                    for ax2 in serial(16):
                        queries: queries <- x0
            for ax0 in serial(1):
                for ax1_0 in serial(32):
                    for ax1_1_init in unrolled(4):
                        for ax2_0_init in unrolled(2):
                            for ax2_1_init in vectorized(8):
                                scores_init: scores <- constant
                    for ax3 in serial(64):
                        for ax1_1 in unrolled(4):
                            for ax2_0 in unrolled(2):
                                for ax2_1 in vectorized(8):
                                    scores_update: scores <- queries, scores, x1
            for ax0 in serial(1):
                for ax1_0_init in unrolled(2):
                    for ax1_1_init in vectorized(8):
                        maxelem_init: maxelem <- constant
                for ax2 in serial(128):
                    for ax1_0 in unrolled(2):
                        for ax1_1 in vectorized(8):
                            maxelem_update: maxelem <- maxelem, scores
            for ax0 in serial(1):
                for ax1 in serial(128):
                    for ax2_0 in serial(2):
                        for ax2_1 in vectorized(8):
                            exps: exps <- maxelem, scores
            for ax0 in serial(1):
                for ax1_0_init in serial(4):
                    for ax2_0_init in serial(4):
                        for ax1_1_init in unrolled(4):
                            for ax2_1_init in unrolled(2):
                                for ax2_2_init in vectorized(8):
                                    product_init: product <- constant
                for ax3_0 in serial(2):
                    for ax1_0 in serial(4):
                        for ax2_0 in serial(4):
                            for ax3_1 in serial(64):
                                for ax1_1 in unrolled(4):
                                    for ax2_1 in unrolled(2):
                                        for ax2_2 in vectorized(8):
                                            product_update: product <- exps, product, x2
            for ax0 in serial(1):
                for ax1_0_init in unrolled(2):
                    for ax1_1_init in vectorized(8):
                        total_init: total <- constant
                for ax2 in serial(128):
                    for ax1_0 in unrolled(2):
                        for ax1_1 in vectorized(8):
                            total_update: total <- exps, total
            for ax0 in serial(1):
                for ax1 in serial(16):
                    for ax2_0 in serial(8):
                        for ax2_1 in vectorized(8):
                            attention: attention <- product, total

    Raises:
        NotApplicable: it is not a function of `tvm_export.attention`.
    """
    import tvm

    if ATTENTION not in (func.attrs or {}):
        raise NotApplicable("it is no attention")
    schedule = tvm.s_tir.Schedule(func)
    _inline_others(schedule)
    means, output = (schedule.get_sblock(each) for each in ("means", "attention"))
    *batch, row, _ = schedule.get_loops(means)
    outer, _ = schedule.split(row, [None, _block(cpu)])
    task = schedule.fuse(*batch, outer)
    schedule.parallel(task)
    schedule.reverse_compute_at(output, task, preserve_unit_loops=True)
    schedule.compute_inline(means)
    for name in reversed(_STAGES):
        schedule.compute_at(schedule.get_sblock(name), task, preserve_unit_loops=True)
    _sum_scores(schedule, cpu)
    for name in (ROW_MAXIMA, "total"):
        _over_tokens(schedule, name, cpu)
    *_, row = schedule.get_loops(schedule.get_sblock("exps"))
    schedule.vectorize(schedule.split(row, [None, cpu.lanes("float32")])[1])
    _sum_values(schedule, cpu)
    *_, column = schedule.get_loops(schedule.get_sblock("attention"))
    schedule.vectorize(schedule.split(column, [None, cpu.lanes("float32")])[1])
    return schedule


def _inline_others(schedule: Any) -> None:
    """Inline what moves the operands' elements: the indices say where each is."""
    known = {*_STAGES, "means", "attention"}
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        if str(schedule.get(block).name_hint) not in known:
            schedule.compute_inline(block)


def _sum_scores(schedule: Any, cpu: Cpu) -> None:
    """The scores of some tokens by a block of rows, in registers."""
    scores = schedule.get_sblock("scores")
    *_, token, row, step = schedule.get_loops(scores)
    tokens, token = schedule.split(token, [None, _together(cpu)])
    vector, lane = schedule.split(row, [None, cpu.lanes("float32")])
    schedule.reorder(tokens, step, token, vector, lane)
    _in_registers(schedule, token, vector, lane)
    first = schedule.decompose_reduction(scores, step)
    _in_registers(schedule, *schedule.get_loops(first)[-3:])


def _in_registers(schedule: Any, outer: Any, vector: Any, lane: Any) -> None:
    """A tile of registers: all of its loops unrolled, the lanes a vector."""
    schedule.unroll(outer)
    schedule.unroll(vector)
    schedule.vectorize(lane)


def _over_tokens(schedule: Any, name: str, cpu: Cpu) -> None:
    """A maximum or a sum over the tokens, each row in its lane."""
    block = schedule.get_sblock(name)
    *_, row, token = schedule.get_loops(block)
    vector, lane = schedule.split(row, [None, cpu.lanes("float32")])
    schedule.reorder(token, vector, lane)
    schedule.unroll(vector)
    schedule.vectorize(lane)
    first = schedule.decompose_reduction(block, token)
    schedule.vectorize(schedule.get_loops(first)[-1])


def _sum_values(schedule: Any, cpu: Cpu) -> None:
    """The values weighted and summed for some rows at a time, by parts of the tokens."""
    product = schedule.get_sblock("product")
    lanes = cpu.lanes("float32")
    *_, row, column, token = schedule.get_loops(product)
    rows, row = schedule.split(row, [None, _ROWS])
    most = _MOST_VECTORS if cpu.registers >= _MANY else _MOST_OF_FEW
    vectors = (extent_of(schedule, column) or 0) // lanes
    wide = max(each for each in range(1, most + 1) if vectors % each == 0)
    columns, vector, lane = schedule.split(column, [None, wide, lanes])
    part = _part(extent_of(schedule, token) or 0)
    parts, token = schedule.split(token, [None, part])
    schedule.reorder(parts, rows, columns, token, row, vector, lane)
    _in_registers(schedule, row, vector, lane)
    first = schedule.decompose_reduction(product, parts)
    schedule.vectorize(schedule.get_loops(first)[-1])


def _part(tokens: int) -> int:
    """The most tokens of a part that divide all; all where none do."""
    return max(
        (each for each in range(_LEAST_OF_PART, _PART + 1) if tokens % each == 0), default=tokens
    )
