"""`module:factory` to a model that is ready to be measured, and its example inputs.

loaded = load("tvm_practice.models:load_mlp", example=None, seed=0)
loaded.module(*loaded.args, **loaded.kwargs)

The project's own models come with their inputs; a person's factory may return the module alone
and have its inputs described.
"""

import difflib
import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tvm_practice.engines import PlainError
from tvm_practice.tvm_export.errors import BadInput, ExportError
from tvm_practice.tvm_export.example_inputs import ExampleTensor, completed, drawn, resized
from tvm_practice.tvm_export.program_files import is_program_file, program_factory

if TYPE_CHECKING:
    import torch


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """`; did you mean …?` with the nearest of `known`, or nothing where none is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


# Of an exception in words, so that a line with its cause and a way out has at most 300 letters.
_LONGEST = 200

# What PyTorch says in inference mode of a model that computes gradients of its own.
_OF_GRADIENTS = ("inference tensor", "Inference tensors", "require grad")


@dataclass(frozen=True)
class Loaded:
    """A model in eval mode on the CPU, and what it is called with.

    Attributes:
        module: the model.
        args: positional example inputs.
        kwargs: example inputs by argument name.
        outputs: the model's outputs on them, flattened.
        notes: what the person should know of the model, a line each.
        changes_inputs: whether the model writes into its inputs.
        takes_gradients: whether the model computes gradients of its own.
    """

    module: "torch.nn.Module"
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple["torch.Tensor", ...]
    notes: tuple[str, ...] = ()
    changes_inputs: bool = False
    takes_gradients: bool = False

    @property
    def inputs(self) -> dict[str, Any]:
        """All inputs by name; positional ones are `input_0`, `input_1`, …"""
        return {f"input_{position}": each for position, each in enumerate(self.args)} | self.kwargs

    def call(self, module: Callable[..., Any] | None = None) -> Any:
        """The outputs of the model, or of `module`, on the inputs, without gradients.

        What changes its inputs is called with copies. The compiled model makes such copies too; and
        values that are changed again with every call end as denormals, which are slow.
        """
        import torch

        from tvm_practice.tvm_export.nested import copied

        args, kwargs = self.args, self.kwargs
        if self.changes_inputs:
            args, kwargs = copied(args), copied(kwargs)
        called = self.module if module is None else module
        with torch.no_grad() if self.takes_gradients else torch.inference_mode():
            return called(*args, **kwargs)


def load(
    loader: str,
    *,
    example: Sequence[ExampleTensor] | None,
    seed: int,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> Loaded:
    """Call a factory, make or take the example inputs, and run the model once on them.

    Args:
        loader: "module:factory"; modules of the working directory are found. Or a file of
            torch.export.save (.pt2), or of torch.jit.save (.pt, .pth, .ts, .torchscript).
        example: the shapes of the inputs; the factory's own are brought to them, and drawn where
            it returns none.
        seed: PyTorch's seed while the factory runs and inputs are drawn.
        shapes: names and shapes of the inputs; what has a name here and no tensor is made, see
            `example_inputs.completed`.

    Raises BadInput with one line for whatever the person can put right: no such module or
    factory, a factory that raises or returns something else, a model that refuses its inputs.
    """
    with _staying_here():
        module, given = _made(loader, example, seed)
        return _ready(loader, module, given, shapes)


@contextmanager
def _staying_here() -> Iterator[None]:
    """Go back to the working directory after the block: the paths of a request are relative to it.

    A person's module, factory or model may change it.
    """
    here = Path.cwd()
    try:
        yield
    finally:
        os.chdir(here)


def hand_over(loaded: Loaded, file: Path) -> bool:
    """Write a model and its inputs for `take_over` in another process.

    Returns whether that was possible: a class within a function cannot be pickled, for example.
    """
    import torch

    try:
        torch.save((loaded.module, loaded.args, loaded.kwargs), file)
    except Exception:  # whatever a person's classes raise when they are pickled, or a full disk
        return False
    return True


def take_over(
    loader: str, file: Path, *, shapes: Mapping[str, Sequence[int | str]] | None = None
) -> Loaded | None:
    """The model and inputs that `hand_over` wrote, as `load` gives them; None if unreadable here.

    Args:
        loader: "module:factory" that made the model; its module has the model's classes.
        file: written by this program: reading it runs what it holds.
        shapes: as for `load`.
    """
    import torch

    with _staying_here():
        find_factory(loader)
        try:
            module, args, kwargs = torch.load(file, weights_only=False)
        except Exception:  # whatever a person's classes raise when they are unpickled
            return None
        return _ready(loader, module, kwargs or args, shapes)


def _made(
    loader: str, example: Sequence[ExampleTensor] | None, seed: int
) -> "tuple[torch.nn.Module, Any]":
    """The model of a factory, and its inputs."""
    import torch

    factory = find_factory(loader)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        try:
            with kept_alive(loader):
                made = factory()
        except BadInput:
            raise
        except (Exception, SystemExit) as error:
            raise BadInput(f"{loader} raised {describe(error)}") from error
        module, given = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        if not isinstance(module, torch.nn.Module):
            raise BadInput(
                f"{loader} returned {_kind(made)}, not a torch module or (module, example inputs)"
            )
        if example is not None:
            given = drawn(example) if given is None else resized(given, example)
        if given is None:
            told = f"{loader} returned no example inputs; have it return (module, inputs), or give"
            if is_program_file(loader):
                told = f"{loader} has no example inputs; give"
            raise BadInput(f"{told} --example-shape 1 3 224 224 (icd: model.example)")
    return module, given


def _ready(
    loader: str, module: Any, given: Any, shapes: Mapping[str, Sequence[int | str]] | None
) -> Loaded:
    import torch

    from tvm_practice.tvm_export.calling import evaluate
    from tvm_practice.tvm_export.nested import copied, flattened, mapped, require_dense

    tensors = [*module.parameters(), *module.buffers()]
    if any(each.is_meta for each in tensors):
        raise BadInput(
            f"the model of {loader} is on the meta device: it has no weights to run with"
        )
    notes = []
    elsewhere = sorted({str(each.device) for each in tensors} - {"cpu"})
    if elsewhere:
        notes.append(f"the model was moved from {', '.join(elsewhere)} to the CPU")
    module = evaluate(module.to("cpu"))
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    given = mapped(torch.Tensor.cpu, given)
    require_dense(f"{loader} gives", given)
    if isinstance(given, Mapping):
        kwargs = {str(name): value for name, value in given.items()}
    elif isinstance(given, tuple | list):
        args = tuple(given)
    else:
        args = (given,)
    kwargs = completed(module, args, kwargs, shapes)

    tried_args, tried_kwargs = copied(args), copied(kwargs)
    # Lazy modules make their parameters in their first call, in inference mode unusable ones.
    lazy = any(map(torch.nn.parameter.is_lazy, tensors))
    takes_gradients = False
    try:
        try:
            with torch.no_grad() if lazy else torch.inference_mode():
                result = module(*tried_args, **tried_kwargs)
        except RuntimeError as error:
            if not any(each in str(error) for each in _OF_GRADIENTS):
                raise
            takes_gradients = True
            with torch.no_grad():
                result = module(*tried_args, **tried_kwargs)
    except Exception as error:  # whatever a person's model raises
        raise BadInput(f"the model of {loader} refuses its inputs: {describe(error)}") from error
    outputs = tuple(flattened(result))
    if not outputs:
        raise BadInput(f"the model of {loader} returns {_kind(result)}, no tensor to verify")
    if any(not bool(torch.isfinite(each).all()) for each in outputs):
        notes.append("the model's outputs on its inputs are not all finite; nothing verifies")
    changed = not all(map(_same, flattened([args, kwargs]), flattened([tried_args, tried_kwargs])))
    if changed:
        notes.append(
            "the model changes its inputs in place; each call is given a copy, and that is in "
            "the latency"
        )
    return Loaded(module, args, kwargs, outputs, tuple(notes), changed, takes_gradients)


@contextmanager
def kept_alive(what: str) -> Iterator[None]:
    """In the block, a person's code that would end this process without a word raises BadInput.

    What ends a process that the code forks still does.
    """
    ours, ends = os.getpid(), {name: getattr(os, name) for name in ("_exit", "abort")}

    def instead(name: str) -> Callable[..., None]:
        def end(*status: int) -> None:
            if os.getpid() != ours:
                ends[name](*status)
            raise BadInput(f"{what} ended the process: os.{name}({', '.join(map(str, status))})")

        return end

    try:
        for name in ends:
            setattr(os, name, instead(name))
        yield
    finally:
        for name, end in ends.items():
            setattr(os, name, end)


def find_factory(loader: str) -> Any:
    """The function that "module:factory" names, or one that reads a file. Raises BadInput."""
    if is_program_file(loader):
        return program_factory(Path(loader))
    name, _, attribute = loader.partition(":")
    if not name or not attribute:
        raise BadInput(f"{loader!r} does not name a factory: MODULE:FACTORY")
    if "/" in name or name.endswith(".py"):
        folder, stem = Path(name).parent, Path(name).stem
        where = "" if folder == Path() else f", started in {folder}"
        raise BadInput(f"{name} is a path; name the module{where}: {stem}:{attribute}")
    here = str(Path.cwd())
    if here not in sys.path:  # `python -m` puts it there, a console script does not
        sys.path.insert(0, here)
    try:
        with kept_alive(f"importing {name}"):
            module = importlib.import_module(name)
    except BadInput:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise BadInput(f"no module {missing}{_nearest_module(missing)}") from None
        raise BadInput(f"{name} needs {missing}, which is not installed") from None
    except (Exception, SystemExit) as error:
        raise BadInput(f"importing {name} raised {describe(error)}") from error
    found = getattr(module, attribute, None)
    if not callable(found):
        if found is not None:
            raise BadInput(f"{loader} is of type {_kind(found)}, not a function")
        raise BadInput(f"{name} has no {attribute}{did_you_mean(attribute, _public(module))}")
    return found


def _public(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if callable(value) and name[0] != "_"]


def _nearest_module(name: str) -> str:
    parent, _, last = name.rpartition(".")
    folders: Sequence[str] = [str(Path.cwd())]
    if parent:
        spec = importlib.util.find_spec(parent)
        folders = list((spec and spec.submodule_search_locations) or ())
    near = did_you_mean(last, [each.name for each in pkgutil.iter_modules(folders)])
    return near.replace("mean ", f"mean {parent}.", 1) if parent else near


def _same(first: "torch.Tensor", second: "torch.Tensor") -> bool:
    if first.shape != second.shape:
        return False
    both_nan = (first != first) & (second != second)
    return bool(((first == second) | both_nan).all())


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_kind, value))})"
    return "None" if value is None else type(value).__name__


def describe(error: BaseException) -> str:
    """An exception as one line: of a chain, the one that began it.

    Control characters, with which a model's text could write on the terminal, become spaces.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith("Traceback (most recent call last)"):  # classic TVM's, in C++
        lines = [lines[-1].removeprefix(f"{type(error).__name__}: ")]
    said = " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
    said = "".join(letter if letter.isprintable() else " " for letter in said).strip()
    said = said.partition(" (unhinted: ")[0]  # PyTorch's note to itself
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


@contextmanager
def in_a_line(problem: str, kind: type[ExportError], way_out: str = "") -> Iterator[None]:
    """Raise whatever a stage of TVM's meets in the model as `kind`, in one line.

    What is told in a line already passes through, and so does a step that is still to do.
    """
    try:
        yield
    except PlainError:
        raise
    except Exception as error:
        raised = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        if isinstance(error, NotImplementedError) and "tvm" not in raised.parts:
            raise
        raise kind("; ".join(filter(None, (f"{problem}: {describe(error)}", way_out)))) from error
