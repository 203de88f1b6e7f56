"""What TVM's importers refuse, told in a line."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.loading import describe


class Refused(Exception):
    """A model cannot be imported; the message names the operator and the model's line."""


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
        if isinstance(error, NotImplementedError) and "tvm" not in raised.parts:
            raise
        # PyTorch adds lines about the node to what a decomposition raises.
        refused = isinstance(error, Refused)
        said = str(error).partition("\n")[0] if refused else describe(error)
        raise BadInput(f"{frontend} cannot import the model: {said}; {way_out}") from error


def place_of(node: Any) -> str:
    """The model's line that a node comes from, in brackets; nothing where it is not known."""
    place = ""
    for line in (node.meta.get("stack_trace") or "").splitlines():
        if line.strip().startswith("File ") and f"{Path('torch') / 'nn'}" not in line:
            file, number, *_ = line.strip().removeprefix("File ").split(", ")
            place = f" ({Path(file.strip(chr(34))).name}, {number})"
    return place
