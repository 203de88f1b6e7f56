"""Samples with rare values, for operators with a rule for them.

They are NaN, infinities and zeros of either sign; of whole numbers, the ends of the type's range.
"""

import functools
import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any

from conformance.cases import Case, of_samples
from conformance.operators import database, judge
from tvm_practice.engines import CLASSIC, CURRENT, Engine

TITLE = "PyTorch's operator database, with rare values"
JUDGE = "conformance.rare:judge_rare"
DTYPES: tuple[str, ...] = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8")
ENGINES: tuple[Engine, ...] = (CURRENT, CLASSIC)

# Operators beside PyTorch's elementwise ones and reductions whose results depend on such values by
# rule, and not by the order in which a library happens to compute.
_OTHERS = (
    *("clamp", "cummax", "cummin", "softmax", "log_softmax", "aminmax", "where", "nan_to_num"),
    *("max.reduction_with_dim", "min.reduction_with_dim", "max.reduction_no_dim"),
    *("min.reduction_no_dim", "logsumexp", "nn.functional.threshold"),
    *(f"nn.functional.max_pool{axes}d" for axes in (1, 2, 3)),
    *(f"nn.functional.adaptive_max_pool{axes}d" for axes in (1, 2, 3)),
)


_VALUES = (math.inf, -math.inf, math.nan, 0.0, -0.0, 1.5, -2.0)


def _values(dtype: Any) -> tuple[float, ...]:
    import torch

    if dtype.is_floating_point:
        return _VALUES
    ends = torch.iinfo(dtype)
    small = (1, 2, 7) if ends.min == 0 else (1, -1, -7)
    return (ends.min, ends.max, 0, *small)


def cases(dtype: str, samples: int | None) -> Iterator[Case]:
    """At most so many samples of each operator that has one."""
    return of_samples(database(), rare_samples_of, dtype, samples, "rare ")


def judge_rare(name: str, index: int, dtype: str) -> dict[str, Any]:
    """As `operators.judge`."""
    return judge(name, index, dtype, samples=rare_samples_of)


@functools.lru_cache(maxsize=4)
def rare_samples_of(name: str, dtype: str) -> list[Any]:
    """An operator's samples of rare values."""
    import torch

    operator, kind = database()[name], getattr(torch, dtype)
    if kind not in operator.dtypes:
        return []
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return samples(operator, kind)


def samples(operator: Any, dtype: Any) -> list[Any]:
    """None for operators that it has no sample for.

    Args:
        operator: a PyTorch OpInfo.
    """
    import torch
    from torch.testing._internal.opinfo import core

    if isinstance(operator, core.UnaryUfuncInfo | core.BinaryUfuncInfo):
        values, is_binary = _values(dtype), isinstance(operator, core.BinaryUfuncInfo)
        pairs = [*itertools.product(values, values)]
        chosen = [pairs]
        if is_binary and not dtype.is_floating_point:
            # PyTorch refuses to divide by 0. Its process may end where the least number is divided
            # by -1, and its common divisors take that number for its own magnitude.
            divided = [(x, y) for x, y in pairs if y and (x, y) != (values[0], -1)]
            if operator.name in ("gcd", "lcm"):
                divided = [pair for pair in divided if values[0] not in pair]
            chosen = [divided, [(x, 0) for x in values]]
        made: Any = core.SampleInput
        found = []
        for each in chosen:
            x, y = (torch.tensor(column, dtype=dtype) for column in zip(*each, strict=True))
            settings = operator.sample_kwargs("cpu", dtype, x)[0]
            found.append(made(x, args=(y,) if is_binary else (), kwargs=settings))
        return found
    name = ".".join(filter(None, (operator.name, operator.variant_test_name)))
    if not isinstance(operator, core.ReductionOpInfo) and name not in _OTHERS:
        return []
    given = operator.sample_inputs("cpu", dtype, requires_grad=False)
    spread = (_spread(each) for each in given)
    return list(itertools.islice(filter(None, spread), 2))


def _spread(sample: Any) -> Any | None:
    """A sample with rare values in its first tensor; None where that is too small for them."""
    import torch

    x = sample.input
    if not isinstance(x, torch.Tensor) or x.numel() < 8 or not x.ndim:
        return None
    x = x.detach().clone().contiguous()
    flat, places = x.view(-1), torch.arange(x.numel())
    run, at = places // 6 % 5, places % 6
    if not x.dtype.is_floating_point:
        if x.dtype == torch.bool:
            return None
        flat[run == 1] = torch.iinfo(x.dtype).min  # whole windows and rows of it
        flat[(run == 2) & (at > 2)] = torch.iinfo(x.dtype).max
        sample.input = x
        return sample
    flat[run == 1] = -torch.inf
    flat[(run == 2) & (at > 2)] = torch.inf
    flat[(run == 3) & (at == 1)] = torch.nan
    flat[(run == 4) & (at % 2 == 0)] = -0.0
    sample.input = x
    return sample
