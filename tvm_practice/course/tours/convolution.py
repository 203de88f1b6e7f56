"""A convolution with phase 2's packed matmul: a schedule carries over to another workload.

A schedule is data. TVM keeps the primitives that made it as a trace, and a trace can be applied to
any function that has the blocks and loops it names; a tuner's records are nothing else. So a
convolution that is declared as a matmul needs no schedule of its own: it replays that of
`packed_matmul`.
"""

import functools
from typing import TYPE_CHECKING, Any

from tvm_practice.engines.blocking import register_tile

if TYPE_CHECKING:
    from tvm_practice.measure import Comparison


def packed_conv2d(
    batch: int,
    channels: int,
    height: int,
    width: int,
    filters: int,
    *,
    kernel: int = 3,
    stride: int = 1,
    padding: int = 1,
    rows: int,
    columns: int,
) -> Any:  # a tvm.s_tir.Schedule
    """A 2-D convolution blocked as `packed_matmul` is, an implicit matrix product.

    Declare and schedule a PrimFunc main(A, B, C) of float32 buffers (batch, channels, height,
    width), (filters, channels, kernel, kernel) and (batch, filters, output height, output width).
    As a product, its rows are the output's pixels, its columns the filters, and its steps the
    channels x kernel x kernel products of one output value:

    - B_packed [filters/columns][steps][columns]: the weights as `packed_matmul` packs its B.
    - A_packed [batch][channels][height][width]: the image with its padding. A row panel is `rows`
      neighbouring pixels of one row of the output; it packs the window that it reads and no
      more. The matrix that has a row for each pixel would repeat it kernel x kernel times, and is
      read from here instead.
    - Everything else is replayed from the trace of `packed_matmul`.

    Args:
        batch: images.
        channels: of an image.
        height: of an image, in pixels.
        width: of an image, in pixels.
        filters: channels of the output.
        kernel: height and width of a filter.
        stride: pixels from one window to the next, both ways.
        padding: zeros around the image, on each side.
        rows: pixels of a tile.
        columns: filters of a tile, a multiple of the vector's lanes for speed.

    Returns:
        The tvm.s_tir.Schedule.

    Raises:
        ValueError: the columns are fewer than two, which `packed_matmul` is not made for.
    """
    if columns < 2:
        raise ValueError(f"columns={columns}, but a tile has at least two")
    import tvm
    from tvm import te

    from solutions.manual_schedule import packed_matmul

    high, wide = (output_size(each, kernel, stride, padding) for each in (height, width))
    taps = kernel * kernel
    steps = channels * taps
    row_blocks, column_blocks = -(-wide // rows), -(-filters // columns)
    A = te.placeholder((batch, channels, height, width), name="A")
    B = te.placeholder((filters, channels, kernel, kernel), name="B")
    A_packed = _padded(
        A, padding, (high - 1) * stride + kernel, (row_blocks * rows - 1) * stride + kernel
    )
    B_packed = _packed_filters(B, columns)
    r = te.reduce_axis((0, steps), name="k")
    T = te.compute(  # the tiles of C
        (batch, high, row_blocks, column_blocks, rows, columns),
        lambda n, y, bi, bj, i, j: te.sum(
            A_packed[
                n, r // taps, y * stride + r % taps // kernel, (bi * rows + i) * stride + r % kernel
            ]
            * B_packed[bj, r, j],
            axis=r,
        ),
        name="T",
    )
    C = te.compute(
        (batch, filters, high, wide),
        lambda n, f, y, x: T[n, y, x // rows, f // columns, x % rows, f % columns],
        name="C",
    )

    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    schedule.fuse(*schedule.get_loops(schedule.get_sblock("T"))[:3])  # the row panels, as one loop
    # Unrolled by the kernel's width: which pixel a step reads is then known at compile time.
    # Row panels first: a layer has many more pixels than filters.
    matmul = packed_matmul(
        wide, filters, steps, rows=rows, columns=columns, unroll_k=kernel, rows_first=True
    )
    matmul.trace.apply_to_schedule(schedule, remove_postproc=False)
    return schedule


def _padded(image: Any, padding: int, height: int, width: int) -> Any:
    """The te.Tensor A_packed [batch][channels][height][width]: zeros around an image."""
    from tvm import te

    batch, channels, high, wide = image.shape
    return te.compute(
        (batch, channels, height, width),
        lambda n, c, y, x: te.if_then_else(
            te.all(y >= padding, y < high + padding, x >= padding, x < wide + padding),
            image[n, c, y - padding, x - padding],
            0.0,
        ),
        name="A_packed",
    )


def _packed_filters(weights: Any, columns: int) -> Any:
    """The te.Tensor B_packed [filters/columns][steps][columns], with zeros beyond the filters."""
    from tvm import te

    filters, channels, kernel, _ = (int(each) for each in weights.shape)
    taps = kernel * kernel
    return te.compute(
        (-(-filters // columns), channels * taps, columns),
        lambda b, r, j: te.if_then_else(
            b * columns + j < filters,
            weights[b * columns + j, r // taps, r % taps // kernel, r % kernel],
            0.0,
        ),
        name="B_packed",
    )


def output_size(size: int, kernel: int, stride: int, padding: int) -> int:
    """Pixels of the output along an axis of `size` pixels."""
    return (size + 2 * padding - kernel) // stride + 1


def pixel_tile(width: int) -> tuple[int, int]:
    """Rows and columns of a tile for an output that is `width` pixels wide.

    Tiles end where a row of the output ends, so `register_tile`'s rows can leave the last tile
    of each nearly empty. A step of a tile costs one unit a row and about one to load the weights.
    """
    most, columns = register_tile()
    rows = min(range(most, 0, -1), key=lambda rows: -(-width // rows) * (rows + 1))
    return rows, columns


def beside_torch(
    channels: int, height: int, width: int, filters: int, stride: int, *, seconds: float
) -> tuple["Comparison", float]:
    """Time `packed_conv2d` with 3x3 filters and torch's in turns, on one image of random values.

    Torch has the threads that the process gave it.

    Args:
        seconds: for measuring.

    Returns:
        The comparison of "packed" with "torch", and the largest difference of their values.
    """
    import torch
    import tvm

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    random = torch.Generator().manual_seed(0)
    image = torch.randn((1, channels, height, width), generator=random)
    weights = torch.randn((filters, channels, 3, 3), generator=random)
    rows, columns = pixel_tile(output_size(width, 3, stride, 1))
    schedule = packed_conv2d(
        1, channels, height, width, filters, stride=stride, rows=rows, columns=columns
    )
    packed = tvm.compile(schedule.mod, target=engines.host_target())["main"]
    convolve = functools.partial(
        torch.nn.functional.conv2d, image, weights, stride=stride, padding=1
    )
    expected = convolve()
    out = tvm.runtime.tensor(torch.zeros_like(expected).numpy())
    inputs = [tvm.runtime.tensor(each.numpy()) for each in (image, weights)]
    comparison = compare_interleaved(
        {"torch": convolve, "packed": functools.partial(packed, *inputs, out)},
        baseline="torch",
        rounds=1000,
        warmup=5,
        time_limit=seconds,
    )
    return comparison, float((torch.from_numpy(out.numpy()) - expected).abs().max())
