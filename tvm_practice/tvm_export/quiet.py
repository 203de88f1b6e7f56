"""Silence for the frontends' remarks at every import of a model."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def quiet_frontends() -> Iterator[None]:
    """Inside the block, hide the notices that say nothing of the person's model.

    These are PyTorch's deprecation of `torch.jit.trace` (Relay has no other way in) and of a
    class that its own `torch.export` uses, its complaint of an attribute that its own `nn.LSTM`
    sets, classic TVM's "not been tuned", and of the ONNX exporter that torchvision is missing and
    which constants it could not fold.
    """
    loggers = [logging.getLogger(name) for name in ("autotvm", "torch.onnx", "onnxscript")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for message, category in (
                (r"`torch\.jit\.trace", DeprecationWarning),
                (r"distutils Version classes are deprecated", DeprecationWarning),
                (r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning),
                (r"The tensor attributes self\.(\w+\.)*_flat_weights", UserWarning),
            ):
                warnings.filterwarnings("ignore", message=message, category=category)
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)


@contextmanager
def decisions_fixed() -> Iterator[list[str]]:
    """A list that receives, when the block ends, where a trace took one of two ways for good.

    A trace has no `if`: where a model decides by a tensor's value, the artifact always goes the
    way of the example inputs. PyTorch warns of it, of constants that it makes too.
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    for each in caught:
        text = str(each.message)
        read = "Python boolean" in text or "Python number" in text  # by `if`, by .item()
        read &= "/torch/_export/" not in each.filename  # it checks its inputs
        if type(each.message).__name__ == "TracerWarning" and read:
            line = f"{each.filename}:{each.lineno}"
            note = f"{line} decides by a tensor's value; the trace keeps the example's way"
            if note not in notes:
                notes.append(note)


@contextmanager
def native_stderr_to(path: Path | str) -> Iterator[None]:
    """Inside the block, append what C++ code writes to standard error to a file.

    TVM's own warnings have no other switch, and a search prints the stack of every candidate that
    it cannot lower. Errors are raised all the same, and what Python writes is shown as ever.
    `os.devnull` drops the text.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    shown = sys.stderr
    try:
        os.dup2(file, 2)
        with open(kept, "w", buffering=1, closefd=False) as stream:
            if shown is sys.__stderr__:  # else it is somebody's already
                sys.stderr = stream
            yield
    finally:
        sys.stderr = shown
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)
