"""Models that PyTorch wrote to a file: TorchScript, and exported programs."""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.tvm_export.errors import BadInput

if TYPE_CHECKING:
    import torch

_EXPORTED = (".pt2",)
_TORCH_SCRIPT = (".pt", ".pth", ".ts", ".torchscript")


def is_program_file(loader: str) -> bool:
    """Whether a loader is the path of such a file, by its ending."""
    return Path(loader).suffix in (*_EXPORTED, *_TORCH_SCRIPT)


def program_factory(file: Path) -> Callable[[], Any]:
    """A factory of the file's model, with its inputs where they are in the file.

    Raises BadInput if there is no such file; the factory, if it holds no such model.
    """
    if not file.is_file():
        raise BadInput(f"there is no file {file}")
    return lambda: _exported(file) if file.suffix in _EXPORTED else _script(file)


def _exported(file: Path) -> "torch.nn.Module | tuple[torch.nn.Module, Any]":
    """What torch.export.save wrote; its example has positional inputs, or all have names."""
    import torch

    log = logging.getLogger("torch.export")
    level = log.level
    try:
        log.setLevel(logging.CRITICAL)  # it tells each of the formats that it tries
        program = torch.export.load(file)
    except Exception as error:  # of another file: an error of the archive, or of its parts
        raise BadInput(f"{file} holds no program of torch.export.save") from error
    finally:
        log.setLevel(level)
    module = program.module(check_guards=False)
    args, kwargs = program.example_inputs or ((), {})
    if args and kwargs:
        raise BadInput(
            f"the example in {file} has inputs with a name and inputs without; export the model "
            "with inputs of one kind"
        )
    given: Any = kwargs or args
    return (module, given) if given else module


def _script(file: Path) -> "torch.nn.Module":
    """What torch.jit.save wrote."""
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that TorchScript is old
            load: Any = torch.jit.load
            script: torch.nn.Module = load(file, map_location="cpu")
    except Exception as error:  # of another file: most are weights
        raise BadInput(
            f"{file} holds no TorchScript; weights need the factory of their model, MODULE:FACTORY"
        ) from error
    return script
