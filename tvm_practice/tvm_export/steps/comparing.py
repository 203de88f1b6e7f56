"""Outputs compared with PyTorch's."""

from typing import Any


def verify(outputs: list[Any], reference: list[Any], *, atol: float, rtol: float) -> float:
    """Compare a compiled model's outputs with PyTorch's, element by element.

    An element is right if |output - reference| <= atol + rtol * |reference|, computed in float64.
    NaN is never right. An infinity is right only where the reference has the same one, and where
    the reference is infinite, nothing else is right.

    Args:
        outputs: numpy arrays.
        reference: numpy arrays, as many (at least one) and of the same shapes.
        atol: absolute tolerance, in the outputs' unit.
        rtol: relative tolerance.

    Returns:
        The largest absolute error of all outputs.

    Raises:
        ValueError: the number of outputs differs (or is zero), a shape differs, or an element is
            wrong. The message names the output's index, its largest absolute and largest relative
            error (infinite for NaN; a relative one also where only the reference is 0) and the
            position of the worst of its wrong elements, which is furthest above its tolerance.
    """
    import numpy as np

    if len(outputs) != len(reference) or not reference:
        raise ValueError(f"{len(outputs)} outputs to compare with {len(reference)} of reference")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, the reference {want.shape}")
        if not want.size:
            continue
        exact, wanted = got.astype("float64"), want.astype("float64")
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.where(exact == wanted, 0.0, np.abs(exact - wanted))
            relative = np.where(error == 0, 0.0, error / np.abs(wanted))
            allowed = atol + rtol * np.abs(wanted)
        error, relative = (
            np.nan_to_num(each, nan=np.inf, posinf=np.inf) for each in (error, relative)
        )
        allowed = np.nan_to_num(allowed, nan=0.0, posinf=0.0)  # an infinity must be met exactly
        wrong = error > allowed
        if wrong.any():
            worst = np.unravel_index(int((error - allowed).argmax()), want.shape)
            raise ValueError(
                f"output {index}: {int(wrong.sum())} of {want.size} elements are wrong; largest "
                f"absolute error {error.max():.3g}, largest relative error {relative.max():.3g}; "
                f"the worst, at {[int(i) for i in worst]}, is {got[worst]:.6g}, the reference "
                f"has {want[worst]:.6g}"
            )
        largest = max(largest, float(error.max()))
    return largest
