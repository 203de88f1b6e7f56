"""What searches of other functions tell of the tiles of one that none has searched.

`rules.cpu.contraction` ranks tiles by the cycles of a formula: multiply-adds, loads and the sizes
of caches. What the formula leaves out is much alike in functions that are alike, so a model learns
it from recorded searches: by how much a tile took longer than the formula says, beside the other
tiles of its function. A new function's tiles are ranked by the formula times that.

    searches/znver5.json       searches on one processor, made by `benchmarks/transfer.py --collect`
    Transfer.of(cpu)           the model trained on the searches of such processors; takes a second
    Transfer.ranked(…)         a function's tiles, those first that should be fastest

The searches are kept and not the trained model: they are smaller, and the model follows them. Those
of Zen 5 are without tiles whose sums fill 1024 bytes and more: they are of before
`lowering.tiles_on_stack`, when these took longer.
"""

import functools
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import (
    UNKNOWN,
    Contraction,
    TileChoice,
    bytes_of,
    find_contraction,
    predicted_cycles,
    ranked_tiles,
    row_tile,
)
from tvm_practice.tvm_export.rules.cpu.flat import tiled_function
from tvm_practice.tvm_export.rules.cpu.loops import Cpu, constant, cpu_of

SEARCHES = Path(__file__).parent / "searches"
_UNROLLS = (1, 2, 4, 8)
# Tiles that the formula takes for so many times slower than its best are not considered.
_CONSIDERED = 2.5
# Of a function that was searched already, so many of its fastest tiles come first.
_KNOWN = 3
# Tiles that took so many times as long as their function's fastest are left out: they may have been
# disturbed, and no search wants them.
_SLOWEST = 3.0
_ROUNDS = 150
_TREES = {
    "max_depth": 5,
    "learning_rate": 0.08,
    "subsample": 0.8,
    "colsample_bytree": 0.6,
    "min_child_weight": 0.0,
    "reg_lambda": 0.02,
    "nthread": 1,
    "seed": 0,
}


@dataclass(frozen=True)
class Shape:
    """A contraction, as far as it decides which tiles suit it.

    Attributes:
        rows: extents of the row iterators, the innermost last.
        columns: of the axis that is made vectors.
        sums: extents of the summed axes, the innermost last.
        outer: how many of these contractions there are, as in a batch.
        matrix: whether no window slides over the operand that is not packed.
        prepacked: whether the packed operand is a constant of the model.
        transposed: whether columns are not the output's innermost axis.
        grouped: whether the columns are those of a group.
        lanes: elements of the output in a vector register.
        packed_bytes, other_bytes: of the operands; 0 if open.
    """

    rows: tuple[int, ...]
    columns: int
    sums: tuple[int, ...]
    outer: int
    matrix: bool
    prepacked: bool
    transposed: bool
    grouped: bool
    lanes: int
    packed_bytes: int
    other_bytes: int

    @classmethod
    def of(cls, found: Contraction, cpu: Cpu) -> "Shape":
        def extents(iterators: Iterable[Any]) -> tuple[int, ...]:
            return tuple(constant(found.extents[each]) or UNKNOWN for each in iterators)

        return cls(
            rows=extents(found.rows),
            columns=extents([found.column])[0],
            sums=extents(found.reduced),
            outer=math.prod(extents(found.outer)),
            matrix=found.is_matrix,
            prepacked=found.prepack,
            transposed=found.transposed,
            grouped=found.of_group,
            lanes=cpu.lanes(found.block.body.buffer.dtype),
            packed_bytes=bytes_of(found.packed.source) or 0,
            other_bytes=bytes_of(found.other.source) or 0,
        )

    @classmethod
    def of_function(cls, function: Any, target: Any) -> "Shape | None":
        """That of a PrimFunc's contraction; None if it is none that has register tiles."""
        cpu = cpu_of(target)
        try:
            return cls.of(find_contraction(tiled_function(function, cpu), cpu), cpu)
        except NotApplicable:
            return None


@dataclass(frozen=True)
class MeasuredTile:
    """One trial: the tile, the formula's cycles, and seconds."""

    choice: TileChoice
    cycles: float
    seconds: float


@dataclass(frozen=True)
class Searched:
    """A function's search."""

    name: str
    shape: Shape
    tiles: tuple[MeasuredTile, ...]

    @property
    def fastest(self) -> list[MeasuredTile]:
        return sorted(self.tiles, key=lambda each: each.seconds)


def searched(name: str, function: Any, target: Any, times: Mapping[TileChoice, float]) -> Searched:
    """The search of a function as it is recorded.

    Args:
        name: of the function.
        function: a PrimFunc that is a contraction.
        target: what it was searched for.
        times: seconds of each choice measured, infinite if it failed.
    """
    cpu = cpu_of(target)
    found = find_contraction(tiled_function(function, cpu), cpu)
    tiles = [
        MeasuredTile(choice, predicted_cycles(found, cpu, choice)[0], seconds)
        for choice, seconds in times.items()
        if seconds < math.inf
    ]
    return Searched(name, Shape.of(found, cpu), tuple(tiles))


def write_records(path: Path, cpu: Cpu, searches: Sequence[Searched], **about: Any) -> None:
    """Write a processor's searches, a line per function.

    Args:
        path: the file.
        cpu: the processor.
        searches: of its functions.
        about: what else the file says of where it comes from.
    """
    head = {**about, "vector_bits": cpu.vector_bits, "registers": cpu.registers}
    head |= {"threads": cpu.threads, "cache_bytes": cpu.cache_bytes}
    lines = [
        json.dumps(
            {
                "name": each.name,
                "shape": [*astuple(each.shape)],
                "tiles": [
                    [*map(int, astuple(tile.choice)), round(tile.cycles), _micro(tile.seconds)]
                    for tile in each.tiles
                ],
            },
            separators=(",", ":"),
        )
        for each in searches
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([json.dumps(head), *lines]) + "\n")


def _micro(seconds: float) -> float:
    return float(f"{seconds * 1e6:.4g}")


def read_records(path: Path) -> tuple[dict[str, Any], list[Searched]]:
    """What `write_records` wrote: the first line, and the searches."""
    first, *lines = path.read_text().splitlines()
    return json.loads(first), [_read(json.loads(each)) for each in lines]


def _read(entry: Mapping[str, Any]) -> Searched:
    rows, columns, sums, *others = entry["shape"]
    tiles = []
    for rows_of, vectors, unroll, rows_first, chunks, both, cycles, micro in entry["tiles"]:
        choice = TileChoice(rows_of, vectors, unroll, bool(rows_first), chunks, bool(both))
        tiles.append(MeasuredTile(choice, cycles, micro / 1e6))
    shape = Shape(tuple(rows), columns, tuple(sums), *others)
    return Searched(entry["name"], shape, tuple(tiles))


class Transfer:
    """A model of the formula's errors, trained on searches.

    It is gradient-boosted trees over the logarithm of seconds over cycles, each function's about
    its own mean, in the way of Chen et al., "Learning to Optimize Tensor Programs"
    (arXiv:1805.08166), whose features are of loops; these are of tiles.

    Attributes:
        searches: it was trained on.
    """

    def __init__(self, searches: Sequence[Searched], cpu: Cpu):
        import numpy as np
        import xgboost

        self.searches, self._cpu = list(searches), cpu
        inputs: list[list[float]] = []
        targets: list[float] = []
        weights: list[float] = []
        for each in searches:
            best = each.fastest[0].seconds
            near = [tile for tile in each.tiles if tile.seconds <= _SLOWEST * best]
            least = min(tile.cycles for tile in near)
            left = np.array([math.log(tile.seconds / tile.cycles) for tile in near])
            own = np.array([best / tile.seconds for tile in near])  # the fast ones matter
            targets += list(left - np.average(left, weights=own))
            weights += list(own / own.sum())
            inputs += [
                _describe(each.shape, tile.choice, tile.cycles / least, cpu) for tile in near
            ]
        data = xgboost.DMatrix(np.array(inputs), np.array(targets), weight=np.array(weights))
        self._model = xgboost.train(_TREES, data, num_boost_round=_ROUNDS)

    @classmethod
    def of(cls, cpu: Cpu) -> "Transfer | None":
        """The model for such a processor; None where no search was recorded on one."""
        return _trained(cpu)

    def slowness(self, shape: Shape, tiles: Sequence[tuple[TileChoice, float]]) -> list[float]:
        """The logarithm of each tile's seconds, but for a constant of the function.

        Args:
            shape: of the function.
            tiles: choices, and their cycles by the formula.
        """
        import numpy as np
        import xgboost

        least = min(cycles for _, cycles in tiles)
        inputs = [_describe(shape, choice, cycles / least, self._cpu) for choice, cycles in tiles]
        left = self._model.predict(xgboost.DMatrix(np.array(inputs)))
        return [
            math.log(cycles) + float(each) for (_, cycles), each in zip(tiles, left, strict=True)
        ]

    def ranked(self, function: Any, target: Any) -> list[TileChoice]:
        """A function's tiles, those first that should be fastest; none if it is no contraction."""
        cpu = cpu_of(target)
        try:
            found = find_contraction(tiled_function(function, cpu), cpu)
            tiles = list(considered(found, cpu))
        except NotApplicable:
            return []
        shape = Shape.of(found, cpu)
        known = [
            each for search in self.searches if search.shape == shape for each in search.fastest
        ]
        slowness = self.slowness(shape, tiles)
        order = sorted(range(len(tiles)), key=slowness.__getitem__)
        first = [each.choice for each in sorted(known, key=lambda it: it.seconds)[:_KNOWN]]
        return list(dict.fromkeys([*first, *(tiles[each][0] for each in order)]))


@functools.cache
def _trained(cpu: Cpu) -> Transfer | None:
    searches: list[Searched] = []
    for path in sorted(SEARCHES.glob("*.json")):
        head, found = read_records(path)
        if (head["vector_bits"], head["registers"]) == (cpu.vector_bits, cpu.registers):
            searches += found
    return Transfer(searches, cpu) if searches else None


def considered(found: Contraction, cpu: Cpu) -> Iterator[tuple[TileChoice, float]]:
    """The tiles that a search may measure, each with its cycles by the formula.

    Of tiles that the formula ranks, those with other steps unrolled and in the other order too.
    """
    ranked = [choice for choice, _ in ranked_tiles(found, cpu)]
    least, _ = predicted_cycles(found, cpu, ranked[0])
    innermost = constant(found.extents[found.reduced[-1]]) or 1
    for tile in ranked:
        cycles, _ = predicted_cycles(found, cpu, tile)
        if cycles > _CONSIDERED * least:
            continue
        steps = innermost // tile.chunks if len(found.reduced) == 1 else innermost
        unrolls = dict.fromkeys((tile.unroll, *(each for each in _UNROLLS if steps % each == 0)))
        for unroll, rows_first in itertools.product(unrolls, (False, True)):
            choice = replace(tile, unroll=unroll, rows_first=rows_first)
            cycles, _ = predicted_cycles(found, cpu, choice)  # blocks of rows are of one order
            yield choice, cycles


def _describe(shape: Shape, choice: TileChoice, slower: float, cpu: Cpu) -> list[float]:
    """A tile as the model sees it; sizes as logarithms.

    Args:
        shape: of the function.
        choice: the tile.
        slower: its cycles over the least of the function's tiles.
        cpu: the processor.
    """
    sizes, row_tiles, exact_rows = row_tile(shape.rows, choice.rows)
    rows, width = math.prod(sizes), choice.vectors * shape.lanes
    sums_held = rows * choice.vectors
    panels, steps = math.ceil(shape.columns / width), math.prod(shape.sums)
    panel_bytes = choice.vectors * cpu.vector_bits // 8 * steps
    tasks = shape.outer * (panels if choice.chunks > 1 else panels * row_tiles)
    log = math.log2
    found: dict[str, float] = {
        "slower by the formula": log(slower),
        # The function.
        "rows": log(math.prod(shape.rows)),
        "innermost rows": log(shape.rows[-1] if shape.rows else 1),
        "row iterators": len(shape.rows),
        "columns": log(shape.columns),
        "steps": log(steps),
        "innermost steps": log(shape.sums[-1]),
        "sums": len(shape.sums),
        "outer": log(shape.outer),
        "is a matrix product": shape.matrix,
        "packed beforehand": shape.prepacked,
        "transposed": shape.transposed,
        "in groups": shape.grouped,
        "lanes": log(shape.lanes),
        "packed operand in caches": log(1 + shape.packed_bytes / cpu.cache_bytes),
        "other operand in caches": log(1 + shape.other_bytes / cpu.cache_bytes),
        # The tile in registers.
        "rows of a tile": rows,
        "innermost rows of a tile": sizes[-1] if sizes else 1,
        "most rows": choice.rows,
        "vectors of a tile": choice.vectors,
        "sums held": sums_held,
        "registers held": ((rows + 1) * choice.vectors + 2) / cpu.registers,
        "loads per product": (rows + choice.vectors) / sums_held,
        "unrolled": choice.unroll,
        "products unrolled": choice.unroll * sums_held,
        "packed in every call": choice.both,
        # The tiles beside each other.
        "chunks": choice.chunks,
        "rows first": choice.rows_first,
        "rows divide": exact_rows,
        "columns divide": shape.columns % width == 0,
        "columns computed": panels * width / shape.columns,
        "row tiles": log(row_tiles),
        "panels": log(panels),
        "idle threads": -(-tasks // cpu.threads) * cpu.threads / tasks,
        "panel": log(panel_bytes),
        "panel of a chunk": log(panel_bytes / choice.chunks),
        "elements of a row tile": log(rows * steps),
    }
    return list(found.values())
