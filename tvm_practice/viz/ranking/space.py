"""Schedules of one product, drawn at random: tiles, orders, packing, vectors; on one thread."""

import random
from dataclasses import dataclass
from typing import Any

_TILES = (4, 8, 16, 32, 64)
_INNER = ("jk", "kj", "ij", "ji", "ik", "ki")


@dataclass(frozen=True)
class Choice:
    """How a product is scheduled.

    Attributes:
        tile: rows, columns and depth of a tile; 0 leaves a loop whole.
        outer: the order of the loops over tiles.
        inner: the order of the loops in a tile.
        vectorized: whether the innermost loop is, which is over columns then.
        unrolled: whether the loop around it is.
        packed: whether B is copied to panels of a tile's columns first.
        local: whether the tile of C is summed up in a buffer of its own.
    """

    tile: tuple[int, int, int]
    outer: str
    inner: str
    vectorized: bool
    unrolled: bool
    packed: bool
    local: bool

    def __str__(self) -> str:
        tile = "x".join(str(each or "-") for each in self.tile)
        names = ("vectorized", "unrolled", "packed", "local")
        return " ".join(
            [tile, f"{self.outer}/{self.inner}", *(n for n in names if getattr(self, n))]
        )


def draw(count: int, seed: int) -> list[Choice]:
    """So many different choices. `seed` draws the same ones again."""
    source = random.Random(seed)
    found: dict[str, Choice] = {}
    while len(found) < count:
        choice = _one(source)
        found.setdefault(str(choice), choice)
    return list(found.values())


def _one(source: random.Random) -> Choice:
    rows, columns, depth = (source.choice((0, *_TILES)) for _ in range(3))
    order = ["i", "j", "k"]
    source.shuffle(order)
    outer = "".join(order)
    source.shuffle(order)
    vectorized = columns in (8, 16, 32, 64) and source.random() < 0.6
    if vectorized:
        order.remove("j")
        order.append("j")
    # Unrolled bodies stay short: a loop of at most 16 around the innermost.
    sizes = dict(zip("ijk", (rows, columns, depth), strict=True))
    unrolled = 0 < sizes[order[1]] <= 16 and source.random() < 0.5
    packed = columns > 0 and source.random() < 0.4
    # The tile of C is whole once the loops over k are inside of those over its tiles.
    local = 0 < rows <= 16 and 0 < columns <= 32 and outer.endswith("k") and source.random() < 0.7
    return Choice(
        (rows, columns, depth), outer, "".join(order), vectorized, unrolled, packed, local
    )


def scheduled(choice: Choice, size: int) -> Any:
    """The tvm.s_tir.Schedule of a product of `size`, a multiple of 64."""
    import tvm
    from tvm import te

    A, B = (te.placeholder((size, size), name=name) for name in "AB")
    k = te.reduce_axis((0, size), name="k")
    C = te.compute((size, size), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block = schedule.get_sblock("C")
    outer, inner = {}, {}
    for name, loop, tile in zip("ijk", schedule.get_loops(block), choice.tile, strict=True):
        if tile:
            outer[name], inner[name] = schedule.split(loop, [None, tile])
        else:
            outer[name] = loop
    order = [outer[name] for name in choice.outer]
    order += [inner[name] for name in choice.inner if name in inner]
    schedule.reorder(*order)
    if choice.packed:
        copy, width = schedule.cache_read(block, 1, "global"), choice.tile[1]
        schedule.transform_layout(
            block,
            ("read", 1),
            lambda r, c: (c // width, r, c % width),
            assume_injective_transform=True,
        )
        del copy
    if choice.local:
        written = schedule.cache_write(block, 0, "local")
        at = [each for each in choice.outer if each != "k"][-1]
        schedule.reverse_compute_at(written, outer[at])
        schedule.vectorize(schedule.get_loops(written)[-1])
    left = [inner[name] for name in choice.inner if name in inner]
    if choice.vectorized:
        schedule.vectorize(left[-1])
    if choice.unrolled and len(left) > 1:
        schedule.unroll(left[-2])
    first = order.index(outer["k"])
    schedule.decompose_reduction(block, order[first])
    return schedule
