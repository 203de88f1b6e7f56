"""PyTorch's operator database: each operator on the inputs that PyTorch tests it with."""

import copy
import functools
import operator
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from conformance.cases import Case, Verdict, of_samples
from conformance.judging import as_module, last_line
from tvm_practice.engines import CLASSIC, CURRENT, Engine

TITLE = "PyTorch's operator database"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = ("float32", "float16", "bfloat16", "int64", "bool")
ENGINES: tuple[Engine, ...] = (CURRENT, CLASSIC)
_RTOL, _ATOL = 1e-3, 1e-4
# Whose vectors are unique up to their signs: PyTorch's samples say how to compare them.
_UP_TO_SIGNS = ("linalg.eigh", "linalg.svd", "svd")
# Whose indices PyTorch chooses among equal values by its way of searching, and the place of `dim`
# among their arguments after the tensor.
_AMONG_EQUALS = {"argsort": 0, "kthvalue": 1, "mode": 0, "sort": 0, "topk": 1}
# Of the types that keep 8 and 11 bits: two to four units in the last place.
_NARROW = {"torch.bfloat16": (1.6e-2, 1e-2), "torch.float16": (2e-3, 1e-3)}


@functools.cache
def database() -> dict[str, Any]:
    """PyTorch's OpInfos by name, variants as `name.variant`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {".".join(filter(None, (each.name, each.variant_test_name))): each for each in op_db}


def cases(dtype: str, samples: int | None) -> Iterator[Case]:
    """The first samples of each operator that has the type (None: all)."""
    import torch

    names = [name for name, each in database().items() if getattr(torch, dtype) in each.dtypes]
    return of_samples(names, samples_of, dtype, samples)


@functools.lru_cache(maxsize=4)
def samples_of(name: str, dtype: str) -> list[Any]:
    import torch

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = database()[name].sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)
        return list(found)


@functools.cache
def is_static(name: str, dtype: str) -> bool:
    """Whether PyTorch's core decompositions make operators of core ATen of an operator.

    It is its first sample that is taken apart, and all shapes must be known then.
    """
    import torch
    from torch.utils import _pytree as pytree

    module, tensors = called(database()[name].op, samples_of(name, dtype)[0])
    try:
        graph = torch.export.export(module, tuple(tensors)).run_decompositions().graph
    except Exception:  # whatever PyTorch has against it
        return False
    nodes = [each for each in graph.nodes if each.op == "call_function"]
    return all(
        torch.Tag.core in getattr(each.target, "tags", ())
        or each.target is operator.getitem  # of an operator's outputs
        for each in nodes
    ) and all(
        isinstance(extent, int)
        for each in nodes
        for value in pytree.tree_leaves(each.meta.get("val"))
        if isinstance(value, torch.Tensor)
        for extent in value.shape
    )


def judge(
    name: str,
    index: int,
    dtype: str,
    samples: Callable[[str, str], list[Any]] = samples_of,
    target: str = "llvm",
) -> dict[str, Any]:
    """Compile one operator on one of its samples and compare its outputs with PyTorch's.

    PyTorch computes them on the processor, whatever the target is.
    """
    import torch

    started = time.perf_counter()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, reason = _judged(name, samples(name, dtype)[index], target)
        seconds = time.perf_counter() - started
        static = is_static(name, dtype)
    return {"verdict": verdict, "reason": reason, "seconds": seconds, "is_static": static}


def _judged(name: str, sample: Any, target: str) -> tuple[Verdict, str]:
    function = database()[name].op
    if name in _UP_TO_SIGNS:
        function = _then(function, sample.output_process_fn_grad)
    verdict, reason = judged(*called(function, sample), target)
    if verdict == "wrong" and name in _AMONG_EQUALS and not sample.kwargs.get("stable"):
        function = _with_what_is_at(function, _AMONG_EQUALS[name])
        verdict, reason = judged(*called(function, sample), target)
    return verdict, reason


def judged(module: Any, tensors: list[Any], target: str = "llvm") -> tuple[Verdict, str]:
    """The verdict on a module compiled on its inputs, and the reason.

    Its outputs are held against PyTorch's; those of 16-bit numbers, against float64's as well.
    """
    import torch

    from tvm_practice.engines import PlainError, active
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    if not tensors:
        return "left out", "it takes no tensor"
    if any(each.is_complex() or each.layout != torch.strided for each in tensors):
        return "left out", "complex or sparse inputs"
    try:
        with torch.inference_mode():
            torch.manual_seed(0)
            expected = module(*(each.clone() for each in tensors))
            torch.manual_seed(1)
            again = module(*(each.clone() for each in tensors))
    except Exception as error:
        return "left out", f"PyTorch refuses it: {last_line(error)}"
    if not expected:
        return "left out", "it returns no tensor"
    if any(each.is_complex() or each.layout != torch.strided for each in expected):
        return "left out", "complex or sparse outputs"
    if any(not torch.equal(*pair) for pair in _without_nan(expected, again)):
        return "left out", "it draws random numbers"
    try:
        config = ExportConfig(example_input=tuple(tensors), engine=active(), target=target)
        compiled = compile_pytorch_module(module, config, verify=False)  # it is judged here
        got = compiled(*tensors)
    except PlainError as refused:
        if "draws random numbers" in str(refused):  # from a seed that its wrapper sets
            return "left out", "it draws random numbers"
        return "refused", str(refused)
    except Exception as error:
        return "raw", f"{type(error).__name__}: {last_line(error)}"
    verdict, reason = compared(got, expected)
    if verdict == "wrong" and as_near(got, expected, lambda: _exactly(module, tensors)):
        return "right", ""
    if verdict == "wrong" and no_reference(got, expected, lambda: _exactly(module, tensors)):
        return "left out", "PyTorch's 16-bit output is NaN where float64's is a number, as ours is"
    return verdict, reason


def _exactly(module: Any, tensors: list[Any]) -> Any:
    """What a module of real numbers is in float64."""
    import torch

    exact = copy.deepcopy(module).double()
    with torch.inference_mode():
        return exact(*(each.double() if each.is_floating_point() else each for each in tensors))


def as_near(got: list[Any], expected: Any, exactly: Callable[[], Any]) -> bool:
    """Whether 16-bit outputs are as near to the exact ones as PyTorch's, which rounds at each step.

    False for other types, and where a type, a shape or an unknown value differs.
    """
    import torch

    own = [_as_tensor(each) for each in got]
    if len(own) != len(expected) or any(
        (one.dtype, one.shape) != (other.dtype, other.shape) or str(one.dtype) not in _NARROW
        for one, other in zip(own, expected, strict=True)
    ):
        return False
    try:
        exact = exactly()
    except Exception:  # PyTorch has it for 16 bits alone
        return False

    def apart(one: Any, other: Any) -> float:
        difference = one.double() - other
        return float(difference.abs().max()) if difference.numel() else 0.0

    return all(
        bool(torch.isfinite(truth).all()) and apart(ours, truth) <= apart(theirs, truth)
        for ours, theirs, truth in zip(own, expected, exact, strict=True)
    )


def no_reference(got: list[Any], expected: Any, exactly: Callable[[], Any]) -> bool:
    """Whether PyTorch's 16-bit outputs hold NaN, and the others are float64's, rounded.

    False for other types, and where an output is not float64's within the type's tolerance.
    """
    import torch

    if not any(str(each.dtype) in _NARROW and bool(each.isnan().any()) for each in expected):
        return False
    try:
        exact = exactly()
    except Exception:  # PyTorch has it for 16 bits alone
        return False
    rounded = [one.to(other.dtype) for one, other in zip(exact, expected, strict=True)]
    known = all(bool(torch.isfinite(each).all()) for each in exact)
    return known and compared(got, rounded)[0] == "right"


def _with_what_is_at(function: Any, place: int) -> Any:
    """An operator of indices with what is at them, in place of the indices.

    Beside that, their type, and whether they are distinct. `dim` is at `place` among the arguments
    after the tensor.
    """
    import torch

    def called(x: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        found = function(x, *args, **kwargs)
        *values, indices = (found,) if isinstance(found, torch.Tensor) else found
        if x.ndim == 0:
            return (*values, indices)
        dim = kwargs.get("dim", args[place] if len(args) > place else -1)
        places = indices if indices.ndim == x.ndim else indices.unsqueeze(dim)
        distinct = (places.sort(dim).values.diff(dim=dim) != 0).all()
        return (*values, x.gather(dim, places), torch.zeros_like(indices), distinct)

    return called


def called(function: Any, sample: Any) -> tuple[Any, list[Any]]:
    """A module that calls an operator on a sample's tensors, and those tensors."""
    return as_module(function, (sample.input, *sample.args), sample.kwargs)


def _then(function: Any, process: Any) -> Any:
    return lambda *args, **kwargs: process(function(*args, **kwargs))


def _without_nan(first: Any, second: Any) -> list[tuple[Any, Any]]:
    return [
        (one.nan_to_num(), other.nan_to_num()) if one.is_floating_point() else (one, other)
        for one, other in zip(first, second, strict=True)
    ]


def compared(got: list[Any], expected: Any) -> tuple[Verdict, str]:
    """The verdict on arrays beside PyTorch's tensors: number, type, shape, values."""
    import torch

    if len(got) != len(expected):
        return "wrong", f"{len(got)} outputs, PyTorch has {len(expected)}"
    for position, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        own = _as_tensor(ours)
        if own.dtype != theirs.dtype:
            return "wrong", f"output {position} is {own.dtype}, PyTorch's {theirs.dtype}"
        try:
            rtol, atol = _NARROW.get(str(theirs.dtype), (_RTOL, _ATOL))
            torch.testing.assert_close(own, theirs, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return "wrong", f"output {position}: {' '.join(str(error).split())[:200]}"
    return "right", ""


def _as_tensor(array: Any) -> Any:
    """An array as a tensor; torch takes none of ml_dtypes' bfloat16."""
    import torch

    if str(array.dtype) == "bfloat16":
        return torch.as_tensor(array.astype("float32")).bfloat16()
    return torch.as_tensor(array)
