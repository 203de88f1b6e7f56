"""How near outputs are to exact ones where operands are rounded and equality is not expected."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_practice.wording import number_of


def accuracy(outputs: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> dict[str, Any]:
    """Compares all outputs of one run with exact ones.

    Args:
        outputs: the compiled model's, of any type.
        exact: as many arrays, of the same shapes.

    Returns:
        {"cosine": the least over the outputs, each taken as one vector; "max_error": the largest
        absolute error; "top1": (agreeing rows, rows); "kl": the sum over the rows of Kullback and
        Leibler's divergence of their softmax from the exact one's}. A row is the innermost axis of
        an output of real numbers, if it has at least two elements; it agrees if its largest element
        is at the same place.

    Raises:
        ValueError: another number of outputs, or an output of another shape.
    """
    if len(outputs) != len(exact):
        raise ValueError(f"{number_of(len(outputs), 'output')}, the reference has {len(exact)}")
    cosines, errors, agreeing, rows, divergence = [1.0], [0.0], 0, 0, 0.0
    for index, (got, want) in enumerate(zip(outputs, exact, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, the reference {want.shape}")
        own, true = got.astype("float64"), want.astype("float64")
        cosines.append(_cosine(own, true))
        errors.append(_largest(own, true))
        if want.size and want.ndim and want.shape[-1] > 1 and got.dtype.kind not in "biu":
            same = own.argmax(-1) == true.argmax(-1)
            agreeing, rows = agreeing + int(same.sum()), rows + same.size
            divergence += _divergence(own, true)
    top1 = agreeing, rows
    return {
        "cosine": min(cosines), "max_error": max(errors), "top1": top1, "kl": divergence,
    }  # fmt: skip


def together(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The results of `accuracy` on several inputs as one.

    Returns:
        {"cosine": the least, "max_error": the largest, "top1": the share of agreeing rows, "kl":
        the mean over the rows, in nats, None where it is infinite; both None without rows}.
    """
    divergence = sum(each["kl"] for each in found)
    agreeing, rows = (sum(each["top1"][i] for each in found) for i in range(2))
    return {
        "cosine": min(each["cosine"] for each in found),
        "max_error": max(each["max_error"] for each in found),
        "top1": agreeing / rows if rows else None,
        "kl": divergence / rows if rows and math.isfinite(divergence) else None,
    }


def _divergence(own: np.ndarray, true: np.ndarray) -> float:
    """The sum over the rows of KL(softmax(true) | softmax(own)); infinite where one is not."""
    from scipy.special import log_softmax

    with np.errstate(invalid="ignore"):
        p, q = log_softmax(true, -1), log_softmax(own, -1)
        terms = np.where(np.exp(p) > 0, np.exp(p) * (p - q), 0.0)
    total = float(terms.sum())
    return max(total, 0.0) if math.isfinite(total) else math.inf


def _cosine(own: np.ndarray, true: np.ndarray) -> float:
    """Between two arrays as vectors; -1 if an element that differs is not finite in one of them.

    Equal infinities and NaN beside NaN are left out.
    """
    finite = np.isfinite(own) & np.isfinite(true)
    if not np.all(same(own, true) | finite):
        return -1.0
    one, other = own[finite], true[finite]
    sizes = [math.sqrt(float(np.vdot(each, each))) for each in (one, other)]
    if 0.0 in sizes:
        return 1.0 if sizes[0] == sizes[1] else 0.0
    return min(float(np.vdot(one / sizes[0], other / sizes[1])), 1.0)


def _largest(own: np.ndarray, true: np.ndarray) -> float:
    """The largest absolute difference; infinite where only one is finite."""
    with np.errstate(invalid="ignore"):
        error = np.where(same(own, true), 0.0, np.abs(own - true))
    return float(np.nan_to_num(error, nan=np.inf, posinf=np.inf).max(initial=0.0))


def same(own: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Of each element, whether both are equal or both are NaN."""
    return np.asarray((own == true) | (np.isnan(own) & np.isnan(true)))
