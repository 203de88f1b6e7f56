"""Does the compiled model compute what PyTorch computes?

Of every output the number of elements, their type, and each of their values are compared, on the
example inputs and on others; see `draws`.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_practice.tvm_export.accuracy import accuracy, same, together
from tvm_practice.tvm_export.config import ATOL, MIN_COSINE, RTOL
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.run_time_checks.extents import OpenExtents
from tvm_practice.tvm_export.steps import Steps

if TYPE_CHECKING:
    import torch

    from tvm_practice.tvm_export.calling import Call
    from tvm_practice.tvm_export.draws import Trial

# A result is as good as PyTorch's own if it is at most this many times as far from float64's.
# Sums in another order differ by chance: two right results can be 3 times apart.
_TIMES_PYTORCHS_ERROR = 4.0
# PyTorch's error is the largest among so many elements of similar size to either side: one alone
# may be right by luck. Those more than this factor larger or smaller say nothing of an element.
_NEIGHBOURS, _SIMILAR = 32, 16.0
_EXACT = "pytorch in float64"

Verify = Callable[..., float]


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


def verify_model(
    built: GraphModule,
    call: "Call",
    verify: Verify,
    *,
    atol: float = ATOL,
    rtol: float = RTOL,
    bounds: Mapping[str, int] | None = None,
    extents: OpenExtents | None = None,
    data: Path | None = None,
    held_out: Sequence["Trial"] = (),
    min_cosine: float | None = None,
) -> dict[str, Any]:
    """Hold a compiled model against PyTorch's, on its example and on other inputs.

    The others are two that are drawn, of two other extents each if the model has open ones, or all
    of a person's own. Drawn inputs that PyTorch refuses, or gives no finite numbers for, are left
    out. Afterwards the example is what the model was last run on.

    Args:
        built: the compiled model, which runs here.
        call: the model.
        verify: phase 4's step; returns the largest error or raises ValueError.
        atol, rtol: tolerances; see `verify_against_pytorch`.
        bounds: what each value of an input must be below, as far as it indexes something.
        extents: that the compiled model takes, of axes of which it does not take all.
        data: a file with the person's own inputs, see `draws.read_data`.
        held_out: further inputs, those of the calibration's that were not used there.
        min_cosine: the least cosine between an output and the float64 output, both taken as
            vectors; it replaces the tolerances. None: the tolerances decide.

    Returns:
        The result of `verify_against_pytorch` for the trial with the largest error; where a model
        that came quantized is not within the tolerances, that of `MIN_COSINE`; with
        `min_cosine`, that of `accuracy.together` for all trials. And "trials": the name of each.

    Raises:
        BadInput: the file of inputs.
        ValueError: an output is not PyTorch's; it says on which inputs.
    """
    from tvm_practice.tvm_export.draws import DRAWN, Trial, trials

    def judge(trial: Trial, reference: list[np.ndarray]) -> dict[str, Any]:
        if min_cosine is not None:
            return _near_enough(built, call, trial, reference, min_cosine=min_cosine)
        try:
            return _judge(built, call, trial, reference, verify, atol=atol, rtol=rtol)
        except ValueError:
            if not _is_quantized(call):
                raise
            found = _near_enough(built, call, trial, reference, min_cosine=MIN_COSINE)
            told = {"verified": True, "reason": None, "pytorch_error": None}
            limits = {"atol": atol, "rtol": rtol, "min_cosine": MIN_COSINE}
            return told | limits | {"reference": found["reference"], **together([found])}

    judged = []
    tried: list[str] = []
    for trial in held_out:
        reference = _reference(call, trial.tensors, only_finite=False)
        assert reference is not None
        judged.append(judge(trial, reference))
        tried.append(f"{trial.name}, held out of the calibration")
    own = len(judged)
    for trial in trials(call, bounds=bounds or {}, extents=extents, data=data):
        reference = _reference(call, trial.tensors, only_finite=data is None)
        if reference is not None:
            judged.append(judge(trial, reference))
            tried.append(trial.name)
        if data is None and len(judged) == own + DRAWN:
            break
    example = Trial("the example", call.tensors)
    reference = _reference(call, call.tensors, only_finite=False)
    assert reference is not None
    judged.append(judge(example, reference))
    worst = max(judged, key=lambda each: float(each["max_error"]))
    if min_cosine is not None:
        limits = {"atol": atol, "rtol": rtol, "min_cosine": min_cosine}
        worst = {"verified": True, "reason": None, "pytorch_error": None, **limits}
        references = {each["reference"] for each in judged}
        worst |= {"reference": ", ".join(sorted(references)), **together(judged)}
    return worst | {"trials": ["the example", *tried]}


def _is_quantized(call: "Call") -> bool:
    """Whether a model is a program with quantized tensors.

    A value between two steps becomes one or the other by the last digit of a float32 sum, so that
    a right output can be a step of some layer away from PyTorch's.
    """
    import torch

    return any(
        "quantized_decomposed" in str(node.target)
        for each in call.module.modules()
        if isinstance(each, torch.fx.GraphModule)
        for node in each.graph.nodes
    )


def _reference(
    call: "Call", tensors: Sequence["torch.Tensor"], *, only_finite: bool
) -> list[np.ndarray] | None:
    """PyTorch's outputs; None where it refuses the inputs, or where they are not to be used."""
    import torch

    from tvm_practice.tvm_export.calling import as_array

    with torch.no_grad(), as_reference():
        try:
            # Copies, because a model may write into its inputs.
            outputs = call.module(*(each.clone() for each in tensors))
        except Exception:
            if only_finite:
                return None
            raise
    if only_finite and not all(bool(torch.isfinite(each).all()) for each in outputs):
        return None
    return [as_array(each) for each in outputs]


@contextmanager
def as_reference() -> Iterator[None]:
    """In the block, PyTorch computes what a compiled model is held against.

    Equal elements are ordered by their places, and attention layers take no fast path.
    """
    from tvm_practice.tvm_export.calling import without_fast_path
    from tvm_practice.tvm_export.ties import FirstOfEqual

    with without_fast_path(), FirstOfEqual():
        yield


def _judge(
    built: GraphModule,
    call: "Call",
    trial: "Trial",
    reference: list[np.ndarray],
    verify: Verify,
    *,
    atol: float,
    rtol: float,
) -> dict[str, Any]:
    """`verify_against_pytorch` on one trial's inputs, which a refusal names."""
    outputs = built(*trial.tensors)
    this = replace(call, tensors=trial.tensors)
    try:
        return verify_against_pytorch(outputs, reference, this, verify, atol=atol, rtol=rtol)
    except ValueError as wrong:
        raise ValueError(f"{wrong}; on {trial.name}") from wrong


def _near_enough(
    built: GraphModule,
    call: "Call",
    trial: "Trial",
    reference: list[np.ndarray],
    *,
    min_cosine: float,
) -> dict[str, Any]:
    """Compares a trial's outputs with float64's, or with PyTorch's if float64 does not run.

    Returns:
        The result of `accuracy.accuracy`, and "reference": which of the two it was.

    Raises:
        ValueError: a cosine below `min_cosine`, or another number, type or shape of outputs.
    """
    outputs = built(*trial.tensors)
    this = replace(call, tensors=trial.tensors)
    exact = in_float64(outputs, this)
    name = "pytorch" if exact is None else _EXACT
    try:
        _require_types(outputs, reference)
        found = accuracy(outputs, reference if exact is None else exact)
        if not found["cosine"] >= min_cosine:
            raise ValueError(
                f"the cosine to {name} is {found['cosine']:.6f}, less than --min-cosine "
                f"{min_cosine}; largest absolute error {found['max_error']:.3g}"
            )
    except ValueError as wrong:
        raise ValueError(f"{wrong}; on {trial.name}") from wrong
    return found | {"reference": name}


def verify_against_pytorch(
    outputs: Sequence[np.ndarray],
    reference: Sequence[np.ndarray],
    call: "Call",
    verify: Verify,
    *,
    atol: float,
    rtol: float,
) -> dict[str, Any]:
    """Judge outputs by PyTorch's, and where the type's own rounding is at stake, by float64's.

    A deep recurrence or 16-bit numbers lose digits in PyTorch too. What `verify` refuses is
    therefore compared with the same model in float64. An element is right if it is as near as the
    tolerances ask for, or no further than four times PyTorch's error in elements of similar size.

    Args:
        outputs: the compiled model's.
        reference: PyTorch's, on the same inputs.
        call: the model and the inputs.
        verify: phase 4's step; returns the largest error or raises ValueError.

    Returns:
        {"verified": True, "max_error", "reference": "pytorch" or "pytorch in float64",
        "pytorch_error": PyTorch's own distance from float64, or None, "atol", "rtol"}.

    Raises:
        ValueError: outputs of another number or type, or what `verify` raises.
    """
    judged = {"verified": True, "reason": None, "atol": atol, "rtol": rtol}
    _require_types(outputs, reference)
    try:
        error = verify(list(outputs), list(reference), atol=atol, rtol=rtol)
        return judged | {"max_error": error, "reference": "pytorch", "pytorch_error": None}
    except ValueError as wrong:
        if not _repeats_itself(call, reference):
            raise ValueError("PyTorch gives other outputs each time; nothing verifies") from wrong
        exact = in_float64(outputs, call)
        if exact is None:
            raise
        errors = []
        for got, want, true in zip(outputs, reference, exact, strict=True):
            if want.size and np.isnan(want).all():  # which says nothing of a computation
                raise
            # Where PyTorch's own type overflows, the same infinity is right; so is NaN where it is.
            own = np.where(same(got, want), 0.0, _distance(got, true))
            theirs = np.where(same(want, true), 0.0, _distance(want, true))
            allowed = atol + (rtol + _rounding(got)) * np.abs(true) + _rounding_of_terms(got, true)
            if not _as_near_as_pytorch(own, theirs, np.abs(true), allowed, atol).all():
                raise
            errors.append((own, np.where(np.isfinite(theirs), theirs, 0.0)))
    return judged | {
        "max_error": max(float(own.max(initial=0)) for own, _ in errors),
        "reference": _EXACT,
        "pytorch_error": max(float(theirs.max(initial=0)) for _, theirs in errors),
    }


def _require_types(outputs: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> None:
    for index, (got, want) in enumerate(zip(outputs, reference, strict=False)):
        if got.dtype != want.dtype:
            raise ValueError(f"output {index} is of type {got.dtype}, PyTorch's of {want.dtype}")


def _repeats_itself(call: "Call", reference: Sequence[np.ndarray]) -> bool:
    """Whether PyTorch's outputs are the reference once more: not of a model that draws numbers."""
    again = _reference(call, call.tensors, only_finite=False)
    assert again is not None
    return all(
        np.allclose(one.astype("float64"), other.astype("float64"), rtol=1e-2, equal_nan=True)
        for one, other in zip(again, reference, strict=True)
    )


def in_float64(outputs: Sequence[np.ndarray], call: "Call") -> list[np.ndarray] | None:
    """The model's outputs in float64; None if it has no such twin, or outputs of other shapes."""
    import torch

    try:
        twin = copy.deepcopy(call.module).double()
        inputs = [
            each.double() if each.is_floating_point() else each.clone() for each in call.tensors
        ]
        with torch.no_grad(), as_reference():
            exact = [each.detach().double().numpy() for each in twin(*inputs)]
    except Exception:  # whatever a person's model has against it
        return None
    same = [each.shape for each in outputs] == [each.shape for each in exact]
    return exact if same else None


def _distance(given: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How far each element is from the exact one: infinitely, if only one of them is finite."""
    values = given.astype("float64")
    with np.errstate(invalid="ignore"):
        error = np.where(values == exact, 0.0, np.abs(values - exact))
    return np.asarray(np.nan_to_num(error, nan=np.inf, posinf=np.inf))


def _rounding(given: np.ndarray) -> float:
    """The relative error of a few roundings to an output's own type; 0 of integers."""
    import ml_dtypes

    try:
        return _TIMES_PYTORCHS_ERROR * float(ml_dtypes.finfo(given.dtype).eps)  # type: ignore[no-untyped-call]
    except ValueError:
        return 0.0


def _rounding_of_terms(given: np.ndarray, exact: np.ndarray) -> float:
    """What a 16-bit result may be off because its terms were rounded; 0 of wider types.

    A sum that nearly cancels is small, and its terms, with their errors, are as large as the other
    elements.
    """
    if given.dtype.itemsize != 2:
        return 0.0
    finite = exact[np.isfinite(exact)]
    size = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
    return _rounding(given) / 2 * size


def _as_near_as_pytorch(
    own: np.ndarray, theirs: np.ndarray, size: np.ndarray, allowed: np.ndarray, atol: float
) -> np.ndarray:
    """Of each element, whether its error is allowed, or PyTorch's own in similar elements.

    Args:
        own, theirs: distances from the exact values, ours and PyTorch's.
        size: the exact values' magnitudes.
        allowed: the error that each element may have in any case.
        atol: elements smaller than this are of one size.
    """
    right = np.asarray(own <= np.nan_to_num(allowed, nan=0.0, posinf=0.0)).ravel()
    doubtful = np.flatnonzero(~right)
    if not doubtful.size:
        return right
    sizes = np.maximum(np.nan_to_num(size.ravel()), atol)
    order = np.argsort(sizes, kind="stable")
    ranked = sizes[order]
    errors = np.where(np.isfinite(theirs), theirs, 0.0).ravel()[order]
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    at = place[doubtful]
    smallest, largest = sizes[doubtful] / _SIMILAR, sizes[doubtful] * _SIMILAR
    most = np.zeros(at.size)
    for step in range(-_NEIGHBOURS, _NEIGHBOURS + 1):
        near = np.clip(at + step, 0, order.size - 1)
        similar = (ranked[near] >= smallest) & (ranked[near] <= largest)
        most = np.where(similar, np.maximum(most, errors[near]), most)
    right[doubtful] = own.ravel()[doubtful] <= _TIMES_PYTORCHS_ERROR * most
    return right
