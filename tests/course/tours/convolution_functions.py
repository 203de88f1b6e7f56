"""Functions that the convolution's tests call in a child process."""


def largest_error(shape: list[int]) -> float:
    """Run `packed_conv2d` on random values; the largest difference from torch's.

    Args:
        shape: batch, channels, height, width, filters, kernel, stride, padding, rows, columns.
    """
    import numpy as np
    import torch
    import tvm

    from tvm_practice import engines
    from tvm_practice.course.tours.convolution import packed_conv2d

    *sizes, kernel, stride, padding, rows, columns = shape
    batch, channels, height, width, filters = sizes
    schedule = packed_conv2d(
        *sizes, kernel=kernel, stride=stride, padding=padding, rows=rows, columns=columns
    )
    random = torch.Generator().manual_seed(0)
    image = torch.randn((batch, channels, height, width), generator=random)
    weights = torch.randn((filters, channels, kernel, kernel), generator=random)
    expected = torch.nn.functional.conv2d(image, weights, stride=stride, padding=padding)
    out = tvm.runtime.tensor(np.full(expected.shape, np.nan, "float32"))
    run = tvm.compile(schedule.mod, target=engines.host_target())["main"]
    run(tvm.runtime.tensor(image.numpy()), tvm.runtime.tensor(weights.numpy()), out)
    return float(np.abs(out.numpy() - expected.numpy()).max())
