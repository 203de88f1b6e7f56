"""The order of a contraction's tiles: over panels outside, or over blocks of rows.

All row tiles take one panel of packed columns before any takes the next: a panel stays in the cache
and the other operand is read once per panel. Where that operand is several times the second cache,
it comes from far every time, and of a row of the output a panel writes only a piece. Blocks of rows
are then the outer loop: a block stays in the cache while all panels pass by. Sums that are taken in
parts have blocks too, where those of all rows are too many to wait in the cache.
"""

import math

from tvm_practice.tvm_export.rules.cpu.loops import Cpu

# Bytes of sums that may wait in memory while other tiles take the same part of a sum.
WAITING = 1 << 16
# In second caches: what the other operand may be without blocks, as a third cache behind them is
# quick enough for some more, and how much of one a block may fill.
_WHOLE, _PART = 3.0, 0.5
# Tile registers multiply faster than a third cache delivers.
_WHOLE_OF_REGISTERS = 0.5
# Row tiles of a block: fewer take a panel from the second cache too often.
_FEWEST, _MOST = 4, 64
# Blocks have to save this part of what is read.
_SAVED = 0.6


def tiles_of_block(
    counts: list[int],
    panels: int,
    tile_bytes: int,
    other: int,
    packed: int,
    parts: int,
    cpu: Cpu,
    *,
    in_registers: bool = False,
) -> int:
    """Row tiles of a block; 0 where panels are better outside.

    Args:
        counts: row tiles along each row iterator.
        panels: of the packed operand.
        tile_bytes: of a tile's sums.
        other, packed: bytes of the operands.
        parts: that the sum is taken in.
        cpu: the processor.
        in_registers: whether tile registers sum a tile.

    Returns:
        A number that the innermost row iterators' tiles make up.
    """
    tiles = math.prod(counts)
    room = int(cpu.cache_bytes * _PART)
    if panels == 1:
        return 0
    most = min(room * tiles // other, _MOST, tiles // (2 * cpu.threads))
    if parts > 1:
        most = 0 if tile_bytes * tiles <= WAITING else min(most, WAITING // tile_bytes)
    elif other <= (_WHOLE_OF_REGISTERS if in_registers else _WHOLE) * cpu.cache_bytes:
        return 0
    if most < _FEWEST:
        return 0
    block = _divisor(counts, most)
    if parts > 1:
        return block if block >= _FEWEST else 0
    # What a thread reads from beyond its second cache.
    by_panels = other * max(panels / cpu.threads, 1) + packed / cpu.threads
    times = 1 if packed <= room else tiles / block / cpu.threads
    by_rows = other / cpu.threads + packed * times
    return block if block >= _FEWEST and by_rows < _SAVED * by_panels else 0


def _divisor(counts: list[int], most: int) -> int:
    """Up to so many tiles: all of the innermost iterators, and a part of the next that divides.

    Of a single iterator any number, that which leaves least of the last block.
    """
    if len(counts) == 1:
        sizes = range(max(most // 2, 1), most + 1)
        return min(sizes, key=lambda size: (math.ceil(counts[0] / size) * size, -size))
    block = 1
    for count in reversed(counts):
        if block * count > most:
            return block * max(each for each in range(1, most // block + 1) if count % each == 0)
        block *= count
    return block
