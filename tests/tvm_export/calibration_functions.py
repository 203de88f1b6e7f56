"""Ranges of convolutions' inputs, in a process that has PyTorch."""

from pathlib import Path
from typing import Any

import numpy as np
import torch


def ranges(folder: str, method: str) -> list[list[float]]:
    """Of a convolution, whose inputs are normal numbers and a few of 1000, and of one behind ReLU.

    The last of four inputs, which is held out, has numbers that no other has.
    """
    from tvm_practice.tvm_export.calibration import calibrated
    from tvm_practice.tvm_export.calling import as_call

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(4, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 1)
    ).eval()
    seen = torch.randn(4, 1, 4, 64, 64)
    seen[0, 0, 0, 0, :2] = 1000
    seen[3] *= 1e6
    data = Path(folder) / "data.npz"
    np.savez(data, input_0=seen.numpy())
    given: Any = method
    found = calibrated(as_call(model, (seen[0],)), data, given)
    return [[each.smallest, each.largest] for each in found]


def held_out(count: int) -> list[list[str]]:
    """The names of the inputs to calibrate on and of those held out, of so many."""
    from tvm_practice.tvm_export.calibration import split
    from tvm_practice.tvm_export.draws import Trial

    parts = split([Trial(str(index), ()) for index in range(count)])
    return [[each.name for each in part] for part in parts]
