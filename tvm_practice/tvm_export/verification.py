"""Does the compiled model compute what PyTorch computes?"""

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_practice.tvm_export.config import ATOL, RTOL
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.steps import Steps

if TYPE_CHECKING:
    from tvm_practice.tvm_export.calling import Call

# A result is as good as PyTorch's own if it is at most this many times as far from float64's.
# Sums in another order differ by chance: two right results can be 3 times apart.
_TIMES_PYTORCHS_ERROR = 4.0


def verify_runtime(
    graph_module: GraphModule,
    inputs: Sequence[tuple[str, np.ndarray]],
    reference: Sequence[np.ndarray],
    *,
    atol: float = ATOL,
    rtol: float = RTOL,
    steps: str | None = None,
) -> list[np.ndarray]:
    """Run on named `inputs`, compare with `reference`, return the outputs.

    Raises ValueError with the output's index, the largest absolute and relative error and where
    it is, when |output - reference| > atol + rtol * |reference| anywhere, or when a shape, the
    number of outputs or a NaN differs.
    """
    for name, value in inputs:
        graph_module.set_input(name, value)
    graph_module.run()
    outputs = graph_module.outputs()
    Steps(steps).verify(outputs, list(reference), atol=atol, rtol=rtol)
    return outputs


def verify_against_pytorch(
    outputs: Sequence[np.ndarray],
    reference: Sequence[np.ndarray],
    call: "Call",
    verify: Callable[..., float],
    *,
    atol: float,
    rtol: float,
) -> dict[str, Any]:
    """Judge outputs by PyTorch's, and where the type's own rounding is at stake, by float64's.

    A deep recurrence or 16-bit numbers lose digits in PyTorch too. What `verify` refuses is
    therefore compared with the same model in float64, and is right if it is no further from that
    than PyTorch is, within a factor of four.

    Args:
        outputs: the compiled model's.
        reference: PyTorch's, on the same inputs.
        call: the model and the inputs.
        verify: phase 4's step; returns the largest error or raises ValueError.

    Returns:
        {"verified": True, "max_error", "reference": "pytorch" or "pytorch in float64",
        "pytorch_error": PyTorch's own distance from float64, or None, "atol", "rtol"}.

    Raises:
        What `verify` raises, if the outputs are wrong.
    """
    judged = {"verified": True, "reason": None, "atol": atol, "rtol": rtol}
    try:
        error = verify(list(outputs), list(reference), atol=atol, rtol=rtol)
        return judged | {"max_error": error, "reference": "pytorch", "pytorch_error": None}
    except ValueError as wrong:
        if not _repeats_itself(call, reference):
            raise ValueError("PyTorch gives other outputs each time; nothing verifies") from wrong
        ours, pytorchs = _errors_from_float64(outputs, reference, call)
        if not ours or any(
            not own <= _TIMES_PYTORCHS_ERROR * theirs
            for own, theirs in zip(ours, pytorchs, strict=True)
        ):
            raise
    return judged | {
        "max_error": max(ours),
        "reference": "pytorch in float64",
        "pytorch_error": max(pytorchs),
    }


def _repeats_itself(call: "Call", reference: Sequence[np.ndarray]) -> bool:
    """Whether PyTorch's outputs are the reference once more: not of a model that draws numbers."""
    import torch

    from tvm_practice.tvm_export.calling import as_array

    with torch.inference_mode():
        again = [as_array(each) for each in call.module(*call.tensors)]
    return all(
        np.allclose(one.astype("float64"), other.astype("float64"), rtol=1e-2, equal_nan=True)
        for one, other in zip(again, reference, strict=True)
    )


def _errors_from_float64(
    outputs: Sequence[np.ndarray], reference: Sequence[np.ndarray], call: "Call"
) -> tuple[list[float], list[float]]:
    """Of each output, the largest distance from float64's: ours and PyTorch's.

    Empty where float64 can be no judge: shapes differ, or the model has no float64 twin.
    """
    import torch

    if [each.shape for each in outputs] != [each.shape for each in reference]:
        return [], []
    try:
        twin = copy.deepcopy(call.module).double()
        inputs = [each.double() if each.is_floating_point() else each for each in call.tensors]
        with torch.inference_mode():
            exact = [each.double().numpy() for each in twin(*inputs)]
    except Exception:  # whatever a person's model has against it
        return [], []
    distances = [
        [
            float(np.abs(one.astype("float64") - true).max())
            for one, true in zip(given, exact, strict=True)
        ]
        for given in (outputs, reference)
    ]
    return distances[0], distances[1]
