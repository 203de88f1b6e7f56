"""What an export was made from, as digests: the artifacts are their own cache.

metadata.json keeps them. Where an export of the same configuration has the same again and its files
are whole, there is nothing to make anew. None of it needs TVM, and all but the model's digest
needs no PyTorch either.
"""

import functools
import hashlib
import importlib.util
import json
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from tvm_practice import engines
from tvm_practice.engines.host import flags
from tvm_practice.measure import environment
from tvm_practice.tvm_export.artifacts.schema import Summary
from tvm_practice.tvm_export.artifacts.whole import SUMMARY, read_metadata, require_whole

if TYPE_CHECKING:
    import torch

    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.loading import Loaded
    from tvm_practice.tvm_export.request import ExportRequest

_PROJECT = Path(__file__).resolve().parents[2]
_PACKAGES = {
    engines.CURRENT: ("apache-tvm", "apache-tvm-ffi", "torch", "numpy"),
    engines.CLASSIC: ("bitblas", "torch", "numpy"),
}
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def of(export: "Export") -> dict[str, str | None]:
    """Digests of the sources of an export to be made, its configuration apart.

    Args:
        export: its model loaded and not imported: importers may change it.
    """
    settings, loaded = export.settings, export.loaded
    assert loaded is not None
    converters = settings.converters if isinstance(settings.converters, str) else None
    own = (settings.search.space, converters)
    return {
        "software": software(export.engine, steps=settings.steps, own=own),
        "records": records(export.log) if export.tuner and export.log else None,
        "model": model(loaded, steps=settings.steps),
    }


def after(export: "Export", before: Mapping[str, str | None]) -> dict[str, str | None] | None:
    """The digests to keep of an export that was built; None of one that must not be reused.

    The tuner has added its records. A search that ran out of time is gone on with by the same
    command.
    """
    complete = not export.settings.search.seconds or export.tuning.get("trials", 0) >= export.trials
    if not (before["model"] and complete):
        return None
    if export.tuner and export.log:
        return {**before, "records": records(export.log)}
    return dict(before)


def unchanged_since(
    folder: Path, request: "ExportRequest", made_from: Mapping[str, str | None]
) -> str | None:
    """The date of the export in `folder` if the same would be made again; else None, and why.

    Args:
        folder: of the artifacts.
        request: what is asked for.
        made_from: see `of`.
    """
    there = former(folder)
    if there is None:
        return None
    why = difference(there, request.configuration, made_from)
    if why := why or damage(folder, there, dump_ir=request.dump_ir):
        print(f"exporting anew: {why}", flush=True)
        return None
    return str(there["environment"]["date"])


def former(folder: Path) -> dict[str, Any] | None:
    """The metadata of the export in `folder`, if there is one that says its origin."""
    try:
        metadata = read_metadata(folder)
    except (OSError, ValueError):
        return None
    return metadata if metadata.get("origin") else None


def difference(
    former: Mapping[str, Any], configuration: Mapping[str, Any], origin: Mapping[str, str | None]
) -> str | None:
    """How a requested export differs from the one that is there; None if it does not.

    Args:
        former: its metadata.
        configuration: what is asked for; the IR of each stage may be there unasked.
        origin: digests of `software`, `records` and `model`.
    """
    asked = json.loads(json.dumps(configuration))  # as JSON has it: no tuples
    there = dict(former["configuration"] or {})
    if not asked["dump_ir"]:
        there["dump_ir"] = False
    differing = {name for name in origin if origin[name] != former["origin"][name]}
    if "software" in differing:
        return "the software, the processor or its threads are others"
    if there != asked:
        return "something else was asked for"
    if "records" in differing:
        return "the tuning records are others"
    return "the model or its inputs are others" if differing else None


def damage(folder: Path, metadata: dict[str, Any], *, dump_ir: bool) -> str | None:
    """How the files in `folder` differ from its metadata's; None if they do not.

    Args:
        folder: of the export.
        metadata: its own.
        dump_ir: whether the IR of each stage must be there.
    """
    try:
        require_whole(folder, metadata)
    except FileNotFoundError as missing:
        return f"{missing.filename} is missing"
    except (OSError, ValueError) as error:
        return str(error)
    if dump_ir and not (folder / "ir").exists():
        return f"{folder / 'ir'} is missing"
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"{folder / SUMMARY} is missing"
    except (OSError, ValueError, RecursionError):
        return f"{folder / SUMMARY} is damaged"
    whole = {name: metadata[name] for name in Summary.model_fields}
    return None if summary == whole else f"{folder / SUMMARY} is damaged"


def software(engine: engines.Engine, *, steps: str | None, own: Iterable[str | None] = ()) -> str:
    """Digest of all that decides how a model is compiled, but for the request.

    These are the versions, the processor and its threads, and the code of the exporter and the
    steps: an upgrade of the course counts, and so does an edit of a learner's function.

    Args:
        engine: whose TVM it is.
        steps: package of the import, tuning and build functions.
        own: "module:function" of the person's, whose module's code counts; others are passed over.
    """
    here = environment()
    code = [_PROJECT / part for part in ("engines", "measure", "tvm_export")]
    files = [file for folder in code for file in sorted(folder.rglob("*.py"))]
    for package in (steps or "", *((each or "").rpartition(":")[0] for each in own)):
        files += _files_of(package)
    return _digest(
        {
            "packages": {name: here["packages"][name] for name in _PACKAGES[engine]},
            "python": here["python"],
            "processor": [here["machine"], here["processor"], sorted(flags())],
            "threads": engines.thread_count(),
            "code": [[file.name, _content(file)] for file in files],
        }
    )


def records(log: Path) -> str | None:
    """Digest of tuning records: a file, or the JSON files of MetaSchedule's folder; None of none.

    Its other files tell of times of day and errors, and do not decide what is built.
    """
    files = sorted(log.glob("*.json")) if log.is_dir() else [log] if log.exists() else []
    return _digest([[file.name, _content(file)] for file in files]) if files else None


def model(loaded: "Loaded", *, steps: str | None) -> str | None:
    """Digest of a model and its inputs; None of one that cannot be told.

    Of the model: every attribute of its modules (weights among them), the code of their classes,
    the person's own modules loaded so far, and the outputs on the example inputs, which tell what
    is none of these, a file that a constant was read from, say.

    Args:
        loaded: as it was loaded; importers may change it.
        steps: package of the steps, which `software` has.
    """
    digest = hashlib.sha256()
    try:
        seen: dict[int, tuple[int, Any]] = {}
        tensors = [list(loaded.module.named_parameters()), list(loaded.module.named_buffers())]
        for part in (tensors, loaded.module, loaded.args, loaded.kwargs, loaded.outputs):
            _absorb(digest, part, seen)
    except Exception:  # whatever a person's object has against being looked at
        return None
    return _digest([digest.hexdigest(), _code_of(loaded.module, steps)])


def _absorb(digest: Any, value: Any, seen: dict[int, tuple[int, Any]]) -> None:
    """Feed `digest` with a value, the same for an equal value in another process.

    Args:
        digest: of hashlib.
        value: whatever an attribute may hold.
        seen: the objects met so far and their numbers, by identity: a model may hold itself, and
            a shared weight is read once.
    """
    import numpy as np
    import torch

    def say(*words: Any) -> None:
        digest.update(f"{type(value).__qualname__} {' '.join(map(str, words))};".encode())

    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        say(repr(value))
        return
    if id(value) in seen:
        say("number", seen[id(value)][0])
        return
    if not isinstance(value, tuple):  # whether equal ones are one object is up to the compiler
        seen[id(value)] = (len(seen), value)
    parts: Iterable[Any] = ()
    if isinstance(value, torch.Tensor):
        say(value.dtype, tuple(value.shape), value.requires_grad)
        digest.update(_bytes_of(value))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        say(value.dtype, value.shape)
        digest.update(np.ascontiguousarray(value).view(np.uint8))
    elif isinstance(value, Mapping):
        say(len(value))
        parts = (part for item in value.items() for part in item)
    elif isinstance(value, tuple | list):
        say(len(value))
        parts = value
    elif isinstance(value, set | frozenset):
        say(*sorted(_digest_of_one(each) for each in value))
    elif isinstance(value, type | ModuleType | BuiltinFunctionType):
        say(getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__))
    elif isinstance(value, FunctionType):
        say(value.__module__, value.__qualname__)
        parts = [value.__defaults__, [each.cell_contents for each in value.__closure__ or ()]]
    elif isinstance(value, MethodType):
        parts = [value.__func__, value.__self__]
    elif isinstance(value, functools.partial):
        parts = [value.func, value.args, value.keywords]
    elif isinstance(value, torch.nn.Module):
        say()
        parts = [vars(value)]
    elif hasattr(value, "__dict__"):
        say()
        # Private are caches too, and hashes, which differ from process to process.
        parts = [{name: each for name, each in vars(value).items() if not name.startswith("_")}]
    else:
        say(_ADDRESS.sub("", repr(value)))
    for part in parts:
        _absorb(digest, part, seen)


def _digest_of_one(value: Any) -> str:
    digest = hashlib.sha256()
    _absorb(digest, value, {})
    return digest.hexdigest()


def _bytes_of(tensor: "torch.Tensor") -> Any:
    """A tensor's elements, whatever their type, as a buffer."""
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _code_of(module: "torch.nn.Module", steps: str | None) -> list[Any]:
    """Name and content of the files that a model's code is in, and the versions of its packages."""
    classes = {base for each in module.modules() for base in type(each).__mro__}
    names = {each.__module__ for each in classes}
    packages = {name.partition(".")[0] for name in names}
    versions = {
        name: str(getattr(sys.modules[name], "__version__", None))
        for name in packages
        if name in sys.modules
    }
    names |= {
        name
        for name, each in list(sys.modules.items())
        if name.partition(".")[0] != steps and _is_own(each)
    }
    files = {name: _file_of(sys.modules.get(name)) for name in sorted(names)}
    content = [[name, _content(file)] for name, file in files.items() if file is not None]
    return [sorted(versions.items()), content]


def _is_own(module: Any) -> bool:
    """Whether a loaded module is the person's: not installed, and not of this project."""
    name = getattr(module, "__file__", None)
    if not isinstance(name, str) or name.startswith(_installed_in()):
        return False
    file = _file_of(module)
    return file is not None and not str(file).startswith((*_installed_in(), f"{_PROJECT}{os.sep}"))


@functools.cache
def _installed_in() -> tuple[str, ...]:
    """The folders of Python's own modules and of installed packages."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(name) for name in names}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    folders |= {str(Path(each).resolve()) for each in folders}
    return tuple(f"{each}{os.sep}" for each in folders)


def _file_of(module: Any) -> Path | None:
    name = getattr(module, "__file__", None)
    if not isinstance(name, str) or not name.endswith(".py"):
        return None
    file = Path(name).resolve()
    return file if file.exists() else None


def _files_of(name: str) -> list[Path]:
    """The file of a module, or those of a package, its subpackages left out; none if unknown."""
    try:
        spec = importlib.util.find_spec(name) if name else None
    except (ImportError, ValueError):  # whoever imports it will say so
        spec = None
    if spec is None:
        return []
    if spec.submodule_search_locations:
        folders = map(Path, spec.submodule_search_locations)
        return [file for folder in folders for file in sorted(folder.glob("*.py"))]
    return [Path(spec.origin)] if spec.origin else []


def _content(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _digest(facts: Any) -> str:
    """Of JSON values, whatever the order of a dictionary's keys."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
