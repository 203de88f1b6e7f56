"""PyTorch's module database: each nn.Module on what PyTorch tests it with."""

import functools
import warnings
from collections.abc import Iterator
from typing import Any

from conformance.cases import Case, of_samples
from conformance.judging import Judged, as_module, last_line, timed
from conformance.operators import judged
from tvm_practice.engines import CLASSIC, CURRENT, Engine

TITLE = "PyTorch's module database"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = ("float32", "float64", "float16", "bfloat16")
ENGINES: tuple[Engine, ...] = (CURRENT, CLASSIC)


@functools.cache
def database() -> dict[str, Any]:
    """PyTorch's ModuleInfos by name, such as nn.Conv2d."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
    return {each.name: each for each in module_db}


def cases(dtype: str, samples: int | None) -> Iterator[Case]:
    """The first samples of each module (None: all), in types that PyTorch leaves out as well."""
    return of_samples(database(), samples_of, dtype, samples)


@functools.lru_cache(maxsize=4)
def samples_of(name: str, dtype: str) -> list[Any]:
    import torch

    torch.manual_seed(0)
    each = database()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = each.module_inputs_func(
            each,
            device="cpu",
            dtype=getattr(torch, dtype),
            requires_grad=False,
            training=False,
        )
        return list(found)


def judge(name: str, index: int, dtype: str) -> dict[str, Any]:
    """Compile one module, in eval mode, on one of its samples, and compare its outputs."""
    return timed(lambda: _judged(name, index, dtype))


def _judged(name: str, index: int, dtype: str) -> Judged:
    import torch

    sample = samples_of(name, dtype)[index]
    made, given = sample.constructor_input, sample.forward_input
    if given is None:
        return Judged("left out", "it has no inputs")
    torch.manual_seed(0)
    module = database()[name].module_cls(*made.args, **made.kwargs)
    module = module.to(getattr(torch, dtype)).eval()
    try:
        with torch.no_grad():
            module(*given.args, **given.kwargs)  # which gives a lazy module its weights
    except Exception as error:
        return Judged("left out", f"PyTorch refuses it: {last_line(error)}")
    return Judged(*judged(*as_module(module, given.args, given.kwargs)))
