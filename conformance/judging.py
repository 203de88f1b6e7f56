"""A model tried on the exporter: compiled, run, and held against PyTorch's outputs."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.cases import Verdict

_RTOL, _ATOL = 1e-3, 1e-4


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


def judge_model(model: Any, inputs: Mapping[str, Any] | tuple[Any, ...]) -> Judged:
    """Compile a model on its inputs as a person would, and compare its outputs.

    Args:
        model: in eval mode.
        inputs: tensors, by name or by position.
    """
    import torch

    from tvm_practice.engines import PlainError, active
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.calling import as_array
    from tvm_practice.tvm_export.nested import flattened

    args = () if isinstance(inputs, Mapping) else inputs
    kwargs = dict(inputs) if isinstance(inputs, Mapping) else {}
    try:
        with torch.inference_mode():
            expected = [each.clone() for each in flattened(model(*args, **kwargs))]
            again = [each.clone() for each in flattened(model(*args, **kwargs))]
    except Exception as error:
        return Judged("left out", f"PyTorch refuses it: {last_line(error)}")
    if not expected or any(each.is_complex() for each in expected):
        return Judged("left out", "no output, or complex ones")
    if not all(map(same, expected, again)):
        return Judged("left out", "it draws random numbers")
    tensors = flattened((args, kwargs))
    try:
        config = ExportConfig(example_input=kwargs or args, engine=active())
        compiled = compile_pytorch_module(model, config, verify=False)  # it is judged here
        got = compiled(*map(as_array, tensors))
    except PlainError as refused:
        return Judged("refused", str(refused))
    except Exception as error:
        return Judged("raw", f"{type(error).__name__}: {last_line(error)}")
    return Judged(*compared(got, expected), compiled)


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
