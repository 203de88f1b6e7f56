"""What TVM's importers refuse, told in a line."""

import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.errors import OTHER_TVM, BadInput
from tvm_practice.tvm_export.loading import describe

_BY_PYTORCH = 'torch.compile(model, backend="tvm_practice") leaves that to PyTorch'


class Refused(Exception):
    """A model cannot be imported; the message names the operator and the model's line."""


class DependsOnValues(Refused):
    """A shape, or the way through the model, depends on the values of its tensors."""


@contextmanager
def told_in_a_line(frontend: str, way_out: str) -> Iterator[None]:
    """Raise a frontend's error as BadInput, with a hint at another way.

    A step that is still to do is not a mistake of the model and passes through.
    """
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        raised = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        if isinstance(error, NotImplementedError) and not {"tvm", "torch"} & set(raised.parts):
            raise
        if told := _told_of_values(error) or _told_of_nested(error):
            said, way_out = told, f"{_BY_PYTORCH}; {OTHER_TVM}"
        elif isinstance(error, Refused):
            # PyTorch adds lines about the node to what a decomposition raises.
            said = str(error).partition("\n")[0]
            way_out = _BY_PYTORCH if isinstance(error, DependsOnValues) else way_out
        else:
            said = describe(error)
        raise BadInput(f"{frontend} cannot import the model: {said}; {way_out}") from error


def _told_of_values(error: BaseException) -> str:
    """What PyTorch's refusal to trace past a tensor's values means; empty for other errors."""
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
    )
    from torch.fx.experimental import symbolic_shapes

    while error.__cause__ is not None:
        error = error.__cause__
    place = _place_in("".join(traceback.format_tb(error.__traceback__)) + str(error))
    if isinstance(error, DynamicOutputShapeException):
        return f"the shape of {error.func.__name__}'s output depends on values{place}"
    if isinstance(error, DataDependentOutputException):
        return f"{error.func.__name__} is asked for a tensor's value{place}"
    unknown = (
        symbolic_shapes.GuardOnDataDependentSymNode,
        symbolic_shapes.PendingUnbackedSymbolNotFound,
    )
    if isinstance(error, RuntimeError) and str(error).startswith(".numpy() is not supported"):
        return f"a tensor's values are read as a numpy array{place}"
    is_hashed = isinstance(error, TypeError) and "unhashable type: non-nested Sym" in str(error)
    if isinstance(error, unknown) or is_hashed:
        return f"a shape or a decision depends on a tensor's values{place}"
    return ""


def _told_of_nested(error: BaseException) -> str:
    """That a model makes nested tensors; empty for other errors."""
    met: BaseException | None = error
    trace = ""
    while met is not None:
        trace += "".join(traceback.format_tb(met.__traceback__)) + str(met)
        met = met.__cause__
    if "/torch/nested/" not in trace.replace("\\", "/") and "_nested_tensor" not in trace:
        return ""
    return f"the model makes nested tensors, which TVM does not have{_place_in(trace)}"


def place_of(node: Any) -> str:
    """The model's line that a node comes from, in brackets; nothing where it is not known."""
    return _place_in(node.meta.get("stack_trace") or "")


def place_now() -> str:
    """The model's line that is running, in brackets; nothing outside a model."""
    return _place_in("".join(traceback.format_stack()))


def _place_in(trace: str) -> str:
    """The last line of a model in a stack trace, in brackets; nothing where there is none."""
    place = ""
    for line in trace.splitlines():
        if line.strip().startswith("File "):
            file, number, *_ = line.strip().removeprefix("File ").split(", ")
            if _is_of_a_model(Path(file.strip(chr(34)))):
                place = f" ({Path(file.strip(chr(34))).name}, {number})"
    return place


def _is_of_a_model(file: Path) -> bool:
    """Whether a file is not of PyTorch, of TVM, of the exporter or of Python's library."""
    known = (sys.modules[name].__file__ for name in ("torch", "tvm") if name in sys.modules)
    folders = [Path(__file__).parents[1], *(Path(each).parent for each in known if each)]
    library = Path(sysconfig.get_path("stdlib"))
    of_python = file.is_relative_to(library) and "site-packages" not in file.parts
    own = of_python or any(map(file.is_relative_to, folders))
    return not own and not file.name.startswith("<")


def depends_on_values(node: Any) -> bool:
    """Whether an extent of a node's result is known only when it runs."""
    import torch
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
    from torch.utils import _pytree as pytree

    return any(
        free_unbacked_symbols(each)
        for each in pytree.tree_leaves(node.meta.get("val"))
        if isinstance(each, torch.Tensor)
    )
