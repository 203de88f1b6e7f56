"""Following a function's accesses: what is touched, in which order, on both engines."""

import numpy as np
import pytest

from tests.conftest import Processes, needs_classic
from tvm_practice import engines
from tvm_practice.viz.access import AccessedBuffer, AccessProgram, follow
from tvm_practice.viz.access_picture import animation, as_rows, first_touches, window

FUNCTIONS = "tests.viz.viz_functions"


@pytest.fixture(scope="module")
def current(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


def test_the_naive_matmul_in_order(current: engines.Session) -> None:
    """i, j, k: C is set to zero at k = 0, then C, A and B are read and C is written."""
    wanted = []
    for i in range(2):
        for j in range(2):
            for k in range(2):
                c = 2 * i + j
                wanted += [[2, c, 1]] if k == 0 else []
                wanted += [[2, c, 0], [0, 2 * i + k, 0], [1, 2 * k + j, 0], [2, c, 1]]
    assert current.call(f"{FUNCTIONS}:naive_order") == wanted


@pytest.mark.parametrize(("size", "rows", "columns"), [(16, 4, 8), (13, 4, 8)])
def test_a_schedule_changes_the_order_alone(
    size: int, rows: int, columns: int, current: engines.Session
) -> None:
    """Whatever the tiles, each element of A and B is read once for each row or column of C."""
    found = current.call(
        f"{FUNCTIONS}:matmul_touches", {"size": size, "rows": rows, "columns": columns}
    )
    for name in ("naive", "tiled", "tiled+parallel"):
        for buffer in "AB":
            assert found[name][buffer]["reads"] == [size]
            assert found[name][buffer]["read"] == size * size
            assert not found[name][buffer]["writes"]
        assert found[name]["C"]["reads"] == [size] and found[name]["C"]["writes"] == [size + 1]
    packed = found["packed"]
    assert packed["A"]["reads"] == packed["B"]["reads"] == [1]  # only to be copied
    assert packed["C"]["writes"] == [1] and packed["C"]["written"] == size * size
    assert not packed["C"]["reads"]
    assert packed["T_local"]["in_registers"] and packed["T_local"]["shape"] == [1, 1, rows, columns]
    assert packed["B_packed"]["shape"][0] == 1  # cut to the column block that is in use
    assert all(buffer["inside"] for each in found.values() for buffer in each.values())


@pytest.mark.pages
@needs_classic
def test_classic_schedules_are_followed_too() -> None:
    found = engines.call(
        "classic", f"{FUNCTIONS}:matmul_touches", {"size": 13, "rows": 4, "columns": 8}
    )["tiled"]
    for buffer in "AB":
        assert found[buffer]["reads"] == [13] and found[buffer]["read"] == 169
    assert found["C"]["writes"] == [14]


def test_what_depends_on_data_or_on_an_unknown_size_is_said(current: engines.Session) -> None:
    gather, unknown, touches = current.call(f"{FUNCTIONS}:what_cannot_be_followed")
    assert "depends on data" in gather and "\n" not in gather
    assert unknown == "the size n is not a number; give it in `sizes`"
    assert touches == "24"


def _program(source: str, *shapes: tuple[int, ...], scope: str = "global") -> AccessProgram:
    buffers = []
    address = 4096
    for number, shape in enumerate(shapes):
        buffers.append(AccessedBuffer(f"b{number}", shape, "float32", 4, scope, address))
        address += 4096 + 4 * int(np.prod(shape))
    return AccessProgram("test", tuple(buffers), source)


COLUMNS = "for j in range(4):\n    for i in range(4):\n        touch(0, i * 4 + j, 0)\n"


def test_strides_are_counted() -> None:
    down = follow(_program(COLUMNS, (4, 4))).of("b0").strides()
    assert down == [(4, 12 / 15), (-11, 3 / 15)]
    assert follow(_program("touch(0, 3, 0)\ntouch(0, 3, 1)\n", (4,))).of("b0").strides() == []


def test_reuse_distance_is_the_number_of_other_lines() -> None:
    # Lines of 16 floats: elements 0, 16, 32, then the first two again.
    source = "".join(f"touch(0, {element}, 0)\n" for element in (0, 16, 32, 0, 1, 16))
    distances = follow(_program(source, (64,))).reuse_distances()["b0"]
    assert distances.tolist() == [-1, -1, -1, 2, 0, 2]


def test_a_limit_counts_memory_and_not_registers() -> None:
    program = _program("for i in range(8):\n    touch(0, i, 0)\n", (8,))
    assert follow(program, limit=3).numbers.size == 3
    assert not follow(program, limit=3).complete and follow(program).complete
    registers = _program("for i in range(8):\n    touch(0, i, 0)\n", (8,), scope="local")
    assert follow(registers, limit=3).complete


def test_an_empty_function_and_an_unknown_buffer() -> None:
    trace = follow(_program("", (4,)))
    assert trace.complete and not trace.numbers.size
    with pytest.raises(KeyError, match="no buffer C"):
        trace.of("C")


def test_programs_travel_as_json() -> None:
    program = _program(COLUMNS, (4, 4))
    assert AccessProgram.from_dict(program.to_dict()) == program


def test_a_window_begins_where_a_buffer_is_first_read() -> None:
    source = "for i in range(6):\n    touch(0, i, 1)\nfor i in range(6):\n    touch(0, i, 0)\n"
    part = window(_program(source, (6,)), 4, since="b0")
    assert part.trace.elements.tolist() == [0, 1, 2, 3] and not part.trace.writes.any()


def test_the_map_says_when_and_what_never() -> None:
    trace = follow(_program(COLUMNS, (4, 4)), limit=8).of("b0")
    when = first_touches(trace, width=32)
    assert when.shape == (4, 4)
    assert np.isnan(when[:, 2:]).all()
    assert when[0, 0] == 0 and when[3, 1] == 1 and when[1, 0] < when[0, 1]
    assert as_rows(AccessedBuffer("p", (2, 4, 8), "float32", 4, "global", 0), 32) == (2, 32)


def test_the_player_is_given_every_touch() -> None:
    part = window(_program(COLUMNS, (4, 4)), 16)
    data = animation(part)
    assert data["buffers"] == [{"name": "b0", "rows": 4, "columns": 4}]
    assert data["touches"][:3] == [[0, 0, 0], [0, 4, 0], [0, 8, 0]] and len(data["touches"]) == 16
