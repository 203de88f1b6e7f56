"""What searches of other functions foretell of a new one's tiles."""

import itertools
import json
import math
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Processes
from tvm_practice.tvm_export.rules.cpu.contraction import TileChoice
from tvm_practice.tvm_export.rules.cpu.loops import Cpu
from tvm_practice.tvm_export.tuners.tile_transfer import (
    SEARCHES,
    MeasuredTile,
    Searched,
    Shape,
    Transfer,
    read_records,
    write_records,
)

FUNCTIONS = "tests.tvm_export.tuners.search_functions"
CPU = Cpu(vector_bits=512, registers=32, threads=2, cache_bytes=1 << 20)
TILES = [
    TileChoice(rows, vectors, unroll, rows_first)
    for rows, vectors, unroll, rows_first in itertools.product(
        (2, 4, 6, 8, 12), (1, 2, 4), (1, 4, 8), (False, True)
    )
    if rows * vectors < 30
]


def shape(rows: int, columns: int, steps: int) -> Shape:
    weights, data = 4 * columns * steps, 4 * rows * steps
    return Shape((rows,), columns, (steps,), 1, True, True, False, False, 16, weights, data)


def cycles(tile: TileChoice, of: Shape) -> float:
    """A formula that knows the registers alone."""
    work = of.rows[0] * of.columns * of.sums[0] / 16
    return work * (1 + 2 / (tile.rows * tile.vectors))


def seconds(tile: TileChoice, of: Shape) -> float:
    """What it took: unrolling costs where the sum is short, and the order where rows are many."""
    slower = 1 + 0.05 * (tile.unroll - 1) * (of.sums[0] < 256)
    slower *= 1 + 0.4 * tile.rows_first * (of.rows[0] > 100)
    return cycles(tile, of) * slower / 3e9


def search_of(of: Shape, tiles: list[TileChoice]) -> Searched:
    return Searched(
        str(of),
        of,
        tuple(MeasuredTile(each, cycles(each, of), seconds(each, of)) for each in tiles),
    )


def error(transfer: Transfer | None, of: Shape) -> float:
    """By how much the formula, alone or with a model, errs between the tiles of a shape."""
    given = [(each, cycles(each, of)) for each in TILES]
    foretold = (
        [math.log(each) for _, each in given] if transfer is None else transfer.slowness(of, given)
    )
    return statistics.stdev(
        slowness - math.log(seconds(tile, of))
        for slowness, tile in zip(foretold, TILES, strict=True)
    )


def test_a_shape_that_no_search_had_is_ordered_by_what_others_had_in_common() -> None:
    known = [
        shape(*each) for each in itertools.product((32, 196, 784), (64, 256, 1024), (64, 512, 2048))
    ]
    searches = [search_of(each, TILES[at % 3 :: 3]) for at, each in enumerate(known)]
    transfer = Transfer(searches, CPU)
    for new in (shape(250, 768, 128), shape(300, 512, 1024), shape(600, 96, 192)):
        assert error(transfer, new) < 0.5 * error(None, new)


def test_the_same_searches_make_the_same_order() -> None:
    searches = [search_of(shape(32, 64, each), TILES) for each in (64, 512)]
    new = shape(48, 96, 200)
    given = [(each, cycles(each, new)) for each in TILES]
    assert Transfer(searches, CPU).slowness(new, given) == Transfer(searches, CPU).slowness(
        new, given
    )


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    searches = [search_of(shape(32, 64, 128), TILES[:9])]
    file = tmp_path / "some" / "processor.json"
    write_records(file, CPU, searches, processor="a processor")
    head, found = read_records(file)
    assert head["processor"] == "a processor" and head["vector_bits"] == CPU.vector_bits
    [search] = found
    assert replace(search, tiles=()) == replace(searches[0], tiles=())
    for read, written in zip(search.tiles, searches[0].tiles, strict=True):
        assert read.choice == written.choice
        assert read.seconds == pytest.approx(written.seconds, rel=1e-3)


@pytest.mark.parametrize("file", sorted(SEARCHES.glob("*.json")), ids=lambda each: each.stem)
def test_the_shipped_searches_are_whole(file: Path) -> None:
    head, searches = read_records(file)
    assert {"processor", "date", "vector_bits", "registers"} <= set(head)
    assert len({each.shape for each in searches}) == len(searches) >= 40
    for each in searches:
        assert len(each.tiles) >= 8, each.name
        assert all(tile.seconds > 0 and tile.cycles > 0 for tile in each.tiles)
    assert str(file.resolve().parent.parent.parent) not in json.dumps(head)


def test_a_processor_without_searches_has_no_model() -> None:
    assert Transfer.of(Cpu(vector_bits=96, registers=7, threads=2, cache_bytes=1 << 20)) is None


def test_a_functions_own_tiles_come_first_and_all_can_be_built(process_of: Processes) -> None:
    found = process_of("current").call(f"{FUNCTIONS}:transferred", {})
    assert found["ranked"] > 20 and found["built"] == found["tried"] == 6
    assert found["first"] == found["known"]
    assert found["measured"][0] == found["foreseen"][0]
    assert found["without"] != found["measured"]
