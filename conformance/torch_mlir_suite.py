"""torch-mlir's end-to-end tests: small modules, each with the inputs that it is called with.

The suite is not in a package. `TORCH_MLIR` names a checkout of llvm/torch-mlir:

    TORCH_MLIR=../torch-mlir python -m conformance torch-mlir

A case is compiled for the shapes of its inputs. Where the suite declares extents of them unknown,
it has a second case, with these open; that one is called at other extents, too.
"""

import functools
import importlib.util
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.cases import Case
from conformance.judging import Judged, as_module, judge_model, last_line, timed
from conformance.operators import judged
from tvm_practice.engines import CLASSIC, CURRENT, Engine

TITLE = "torch-mlir's end-to-end tests"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = ("stored",)  # each case has its own
ENGINES: tuple[Engine, ...] = (CURRENT, CLASSIC)
_FOLDER = Path("projects/pt1/python")
_SUITE = "torch_mlir_e2e_test"
_MOST_ELEMENTS = 1 << 24  # of a call at other extents; some examples fill a gigabyte
# What the suite imports of torch-mlir itself, and of packages that it runs its tests with.
_NOT_NEEDED = {
    "multiprocess": ("set_start_method",),
    "torch_mlir": (),
    "torch_mlir._version": ("torch_version_for_comparison", "version"),
    "torchvision": ("ops",),
    "torchvision.ops": (),
}


@dataclass(frozen=True)
class _Call:
    """A call of a module, or of a method of it, that a test makes."""

    method: str
    args: tuple[Any, ...]


def cases(dtype: str = "stored", samples: int | None = None) -> Iterator[Case]:
    """The cases of each file of the suite, `samples` of it at most; none without a checkout."""
    seen: dict[str, int] = {}
    for name, test in database().items():
        group = test.program_invoker.__module__.rpartition(".")[2]
        seen[group] = seen.get(group, 0) + 1
        if samples is None or seen[group] <= samples:
            yield Case(group, name, {"name": name, "is_open": False})
            if _open_extents(test):
                yield Case(group, f"{name} open", {"name": name, "is_open": True})


def judge(name: str, is_open: bool) -> dict[str, Any]:
    """Compile one module for its call, and compare its outputs."""
    return timed(lambda: _judged_open(name) if is_open else _judged(name))


@functools.cache
def database() -> dict[str, Any]:
    """The tests by name; empty where TORCH_MLIR names no checkout."""
    folder = Path(os.environ.get("TORCH_MLIR", "")) / _FOLDER
    if not (folder / _SUITE).is_dir():
        return {}
    sys.path.insert(0, str(folder.resolve()))
    missing = []
    for package, attributes in _NOT_NEEDED.items():
        if importlib.util.find_spec(package) is None:
            sys.modules[package] = _stand_in(package, attributes)
            missing.append(package)
    registry = importlib.import_module(f"{_SUITE}.registry")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file in sorted((folder / _SUITE / "test_suite").glob("[a-z]*.py")):
            try:
                importlib.import_module(f"{_SUITE}.test_suite.{file.stem}")
            except ImportError as error:  # torchvision's operators, torch-mlir's own
                print(f"{file.name} is left out: {error}", file=sys.stderr)
    for package in missing:
        if package.startswith("torchvision"):  # transformers, in the same process, would look it up
            del sys.modules[package]
    return {each.unique_name: each for each in registry.GLOBAL_TEST_REGISTRY}


def _stand_in(name: str, attributes: Sequence[str]) -> types.ModuleType:
    """A package of functions that do nothing."""
    module = types.ModuleType(name)
    module.__path__ = []
    for each in attributes:
        setattr(module, each, lambda *args, **kwargs: "")
    return module


def _open_extents(test: Any) -> list[tuple[int, ...]]:
    """Which axes of each input are declared unknown; empty where none is, or one is no tensor."""
    annotated = getattr(test.program_factory().forward, "_torch_mlir_arg_annotations", [None, None])
    if any(each is None for each in annotated[1:]):
        return []
    found = [tuple(i for i, n in enumerate(shape) if n == -1) for shape, _, _ in annotated[1:]]
    return found if any(found) else []


def _made(name: str) -> tuple[Any, list[_Call]]:
    """The module of a test, and the calls that the test makes."""
    import torch

    test = database()[name]
    framework = importlib.import_module(f"{_SUITE}.framework")
    torch.manual_seed(0)
    module = test.program_factory()
    module.eval()
    trace: list[Any] = []
    with torch.no_grad():
        test.program_invoker(framework._Tracer(module, [], trace), framework.TestUtils())
    return module, [_Call(each.symbol, tuple(each.inputs)) for each in trace]


def _judged(name: str) -> Judged:
    try:
        module, calls = _made(name)
    except Exception as error:
        return Judged("left out", f"PyTorch refuses it: {last_line(error)}")
    if not calls:
        return Judged("left out", "it calls nothing")
    for call in calls:
        function = _called(module, call.method)
        found = Judged(*judged(*as_module(function, call.args, {})))
        if found.verdict != "right":
            return found
    return found


def _judged_open(name: str) -> Judged:
    """The module with its unknown extents open, at the example's extents and at others.

    Extents that are equal in the example are one, and those of 0 and 1 stay: PyTorch has them as
    numbers.
    """
    import inspect

    try:
        module, calls = _made(name)
    except Exception as error:
        return Judged("left out", f"PyTorch refuses it: {last_line(error)}")
    args, function = calls[0].args, _called(module, calls[0].method)
    names = list(inspect.signature(function.forward).parameters)
    shapes: dict[str, tuple[int | str, ...]] = {}
    for parameter, tensor, axes in zip(names, args, _open_extents(database()[name]), strict=False):
        shapes[parameter] = tuple(
            f"n{n}" if axis in axes and n > 1 else n for axis, n in enumerate(tensor.shape)
        )
    if not any(isinstance(each, str) for shape in shapes.values() for each in shape):
        return Judged("left out", "its unknown extents are 0 or 1")
    others = _at_other_extents(args, list(shapes.values()))
    return judge_model(function, args, input_shapes=shapes, further=others)


def _called(module: Any, method: str) -> Any:
    """What a test calls: the module, or a method of it as a module."""
    import torch

    if method in ("", "forward"):
        return module

    class Calling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *args: Any) -> Any:
            return getattr(self.module, method)(*args)

    return Calling().eval()


def _at_other_extents(
    args: Sequence[Any], shapes: Sequence[Sequence[int | str]]
) -> Iterator[tuple[Any, ...]]:
    """The inputs with each open extent longer by one, then by five, then twice and half as long.

    Numbers that may be indices are the example's; real ones are drawn from its range.
    """
    import torch

    if sum(each.numel() for each in args) >= _MOST_ELEMENTS:
        return

    generator = torch.Generator().manual_seed(0)
    changes: tuple[Callable[[int], int], ...] = (
        lambda n: n + 1,
        lambda n: n + 5,
        lambda n: 2 * n,
        lambda n: max(2, n // 2),
    )
    for change in changes:
        changed = []
        for tensor, shape in zip(args, shapes, strict=True):
            longer = tensor
            for axis, extent in enumerate(shape):
                if isinstance(extent, str):
                    old = longer.shape[axis]
                    longer = longer.index_select(axis, torch.arange(change(old)) % old)
            if tensor.is_floating_point() and longer is not tensor and tensor.numel():
                low, high = float(tensor.min()), float(tensor.max())
                drawn = torch.rand(longer.shape, generator=generator, dtype=torch.float64)
                longer = (low + (high - low) * drawn).to(tensor.dtype)
            changed.append(longer)
        if sum(each.numel() for each in changed) < _MOST_ELEMENTS:
            yield tuple(changed)
