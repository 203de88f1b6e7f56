"""How a matmul is blocked for this processor: facts that the schedules of phase 2 are given."""

from typing import Any

from tvm_practice.engines.host import host
from tvm_practice.engines.selection import thread_count


def register_tile() -> tuple[int, int]:
    """Rows and columns of the tile of C that this processor's registers can hold.

    At each step of k a tile needs its accumulators (rows x columns), one row of B (columns), and
    one value of A copied to a whole register. Two registers of columns give every value of A
    two uses; rows are then the largest power of two that leaves room for the rest. A tile that
    is too small waits for the multiply-adds to come out of the pipeline and loads more than it
    computes; one that is too large moves accumulators to memory and back.

    Returns:
        (rows, columns): 8 x 32 where 32 registers hold 16 floats each.
    """
    here = host()
    row_of_b = 2
    most_rows = (here.vector_registers - row_of_b - 1) // row_of_b
    return 1 << (most_rows.bit_length() - 1), row_of_b * here.vector_lanes


def packed_blocking(n: int) -> dict[str, Any]:
    """The blocking of `packed_matmul` for n columns on this processor.

    Its tiles need not divide the matrix, since the copies are padded, and can fill the registers.
    An eighth of them holds a row of B, and rows are as many as leave one for the values of A. A
    tile is wider than tall because A passes by once for every column panel.

    Returns:
        rows and columns (6 x 64 where 32 registers hold 16 floats each, 6 x 16 where 16 hold 8),
        and rows_first, which is set where there are not two column panels for every thread.
    """
    here = host()
    row_of_b = here.vector_registers // 8
    columns = row_of_b * here.vector_lanes
    return {
        "rows": (here.vector_registers - row_of_b - 1) // row_of_b,
        "columns": columns,
        "rows_first": -(-n // columns) < 2 * thread_count(),
    }
