"""PyTorch's operator database once more: what compiled code reads and writes beyond its operands.

Whether the values are right is `operators`' to say; a case that it refuses is left out here.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

from conformance import operators
from conformance.cases import Case
from conformance.judging import last_line
from tvm_practice.engines import CURRENT, Engine

TITLE = "Reads and writes out of bounds, over PyTorch's operator database"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = operators.DTYPES
ENGINES: tuple[Engine, ...] = (CURRENT,)


def cases(dtype: str, samples: int | None) -> Iterator[Case]:
    """Those of `operators`."""
    return operators.cases(dtype, samples)


def judge(name: str, index: int, dtype: str) -> dict[str, Any]:
    """Compile one operator and call its functions on guarded operands; see `guarded`."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, reason = _judged(name, index, dtype)
    return {"verdict": verdict, "reason": reason, "seconds": time.perf_counter() - started}


def _judged(name: str, index: int, dtype: str) -> tuple[str, str]:
    from conformance.guarded import outside
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    sample = operators.samples_of(name, dtype)[index]
    module, tensors = operators.called(operators.database()[name].op, sample)
    try:
        config = ExportConfig(example_input=tuple(tensors))
        built = compile_pytorch_module(module, config, verify=False)
    except Exception as error:
        return "left out", f"it is not compiled: {last_line(error)}"
    found = outside(built.runner)
    return ("wrong", "; ".join(found)) if found else ("right", "")
