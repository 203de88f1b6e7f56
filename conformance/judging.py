"""A model tried on the exporter: compiled, run, and held against PyTorch's outputs."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.cases import Verdict

_RTOL, _ATOL = 1e-3, 1e-4
_PYTORCH_REFUSES = "PyTorch refuses it"
# How an artifact begins to refuse extents that it was not made for.
_REFUSES_EXTENTS = ("the model takes", "the model is only for")


@dataclass(frozen=True)
class Judged:
    """The verdict on a model, and the compiled model where there is one."""

    verdict: Verdict
    reason: str = ""
    compiled: Any = None


def timed(judged: Any) -> dict[str, Any]:
    """What a judge returns: the verdict that `judged()` gives, and the seconds that it took."""
    import torch

    started = time.perf_counter()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = judged()
    return {
        "verdict": found.verdict,
        "reason": found.reason,
        "seconds": time.perf_counter() - started,
    }


def as_module(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, list[Any]]:
    """A module of the tensors among the arguments that calls `function`, and those tensors.

    Args:
        function: an operator, or a module, whose weights are then the result's.
        args, kwargs: tensors, collections of them, and other values, which stay as they are.
    """
    import torch
    from torch.utils import _pytree as pytree

    leaves, shape = pytree.tree_flatten((tuple(args), dict(kwargs)))
    places = [i for i, each in enumerate(leaves) if isinstance(each, torch.Tensor)]

    class Calling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.function = function

        def forward(self, *tensors: Any) -> tuple[Any, ...]:
            given = list(leaves)
            for place, tensor in zip(places, tensors, strict=True):
                given[place] = tensor
            args, kwargs = pytree.tree_unflatten(given, shape)
            result = pytree.tree_leaves(self.function(*args, **kwargs))
            return tuple(each for each in result if isinstance(each, torch.Tensor))

    return Calling().eval(), [leaves[place] for place in places]


def judge_model(
    model: Any,
    inputs: Mapping[str, Any] | tuple[Any, ...],
    *,
    input_shapes: Mapping[str, tuple[int | str, ...]] | None = None,
    further: Iterable[tuple[Any, ...]] = (),
) -> Judged:
    """Compile a model on its inputs as a person would, and compare its outputs.

    Args:
        model: in eval mode.
        inputs: tensors, by name or by position.
        input_shapes: by input, where extents are open: names in place of their numbers.
        further: tensors of other extents that the artifact is called with as well, but those that
            PyTorch refuses. The artifact may refuse extents in a line.
    """
    from tvm_practice.engines import PlainError, active
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.calling import as_array
    from tvm_practice.tvm_export.nested import flattened

    args = () if isinstance(inputs, Mapping) else inputs
    kwargs = dict(inputs) if isinstance(inputs, Mapping) else {}
    expected = _expected(model, args, kwargs)
    if isinstance(expected, Judged):
        return expected
    calls = [(flattened((args, kwargs)), expected)]
    for other in further:
        known = _expected(model, other, {})
        if not isinstance(known, Judged):
            calls.append((list(other), known))
        elif not known.reason.startswith(_PYTORCH_REFUSES):
            return known
    shown = ""
    try:
        shapes = dict(input_shapes) if input_shapes else None
        config = ExportConfig(example_input=kwargs or args, engine=active(), input_shapes=shapes)
        compiled = compile_pytorch_module(model, config, verify=False)  # it is judged here
        for tensors, known in calls:
            if input_shapes:
                shown = f"at {', '.join(str(tuple(each.shape)) for each in tensors)}: "
            verdict, reason = compared(compiled(*map(as_array, tensors)), known)
            if verdict != "right":
                return Judged(verdict, f"{shown}{reason}", compiled)
    except PlainError as refused:
        return Judged("refused", str(refused))
    except Exception as error:
        if isinstance(error, ValueError) and any(each in str(error) for each in _REFUSES_EXTENTS):
            return Judged("refused", f"{shown}{last_line(error)}")
        return Judged("raw", f"{type(error).__name__}: {last_line(error)}")
    return Judged("right", "", compiled)


def _expected(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tensors that PyTorch returns; a verdict where there is nothing to compare with."""
    import torch

    from tvm_practice.tvm_export.nested import copied, flattened

    def outputs() -> list[Any]:
        with torch.inference_mode():
            return [each.clone() for each in flattened(model(*copied(args), **copied(kwargs)))]

    try:
        expected, again = outputs(), outputs()
    except Exception as error:
        return Judged("left out", f"{_PYTORCH_REFUSES}: {last_line(error)}")
    if not expected or any(each.is_complex() for each in expected):
        return Judged("left out", "no output, or complex ones")
    if not all(map(same, expected, again)):
        return Judged("left out", "it draws random numbers")
    return expected


def same(first: Any, second: Any) -> bool:
    """Whether two outputs of PyTorch are equal, NaN to NaN too."""
    unknown = (first != first) & (second != second)
    return bool(((first == second) | unknown).all())


def compared(got: Any, expected: Any) -> tuple[Verdict, str]:
    """Arrays beside PyTorch's tensors: number, type, shape, and each value.

    The absolute tolerance grows with the largest of an output's values: a full-size model with
    random weights adds thousands of numbers that it leaves small differences of.
    """
    import torch

    if len(got) != len(expected):
        return "wrong", f"{len(got)} outputs, PyTorch has {len(expected)}"
    for position, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        own = as_tensor(ours)
        if own.dtype != theirs.dtype:
            return "wrong", f"output {position} is {own.dtype}, PyTorch's {theirs.dtype}"
        finite = theirs[torch.isfinite(theirs)].double().abs()
        atol = _ATOL * max(1.0, float(finite.max()) if finite.numel() else 0.0)
        try:
            torch.testing.assert_close(own, theirs, rtol=_RTOL, atol=atol, equal_nan=True)
        except AssertionError as error:
            return "wrong", f"output {position}: {' '.join(str(error).split())[:200]}"
    return "right", ""


def as_tensor(array: Any) -> Any:
    """An array as a tensor; torch takes none of ml_dtypes' bfloat16."""
    import torch

    if str(array.dtype) == "bfloat16":
        return torch.as_tensor(array.astype("float32")).bfloat16()
    return torch.as_tensor(array)


def last_line(error: BaseException) -> str:
    """The last line of what an error says, where TVM's says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else "no message")[:200]
