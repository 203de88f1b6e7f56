"""Builds on disk: a folder for each, named by the digest of everything that it follows from."""

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx

from tvm_practice import engines
from tvm_practice.engines.temporary import TemporaryFolder
from tvm_practice.tvm_export.calling import Call
from tvm_practice.tvm_export.quiet import native_stderr_to
from tvm_practice.tvm_export.torch_compile.options import Options
from tvm_practice.tvm_export.writing import write_json

# The builds used longest ago go where all of them together take more, in bytes.
_MOST = 16 * 2**30
_LIBRARY = "library.so"
_ENTRY = "entry.json"


@dataclass
class Entry:
    """What is on disk of a part.

    Attributes:
        compiled: the compiled part; None where the exporter does not take it as a whole.
        refused: then, the names of the nodes that it does not take.
        reason: why.
    """

    compiled: Path | None = None
    refused: tuple[str, ...] = ()
    reason: str = ""


def key(graph: fx.GraphModule, call: Call, options: Options) -> str:
    """The digest of everything that a part's build follows from."""
    from tvm_practice.tvm_export.artifacts import origin

    digest = hashlib.sha256()
    facts = [
        origin.software(engines.CURRENT, steps=None),
        graph.code,
        [[str(each.dtype), list(each.shape)] for each in call.tensors],
        [sorted(each.items()) for each in call.dynamic],
        options.model_dump(mode="json", include={"trials", "records", "target", "verify"}),
        call.module.facts,
    ]
    digest.update(json.dumps(facts).encode())
    weights: dict[str, torch.Tensor] = call.module.state_dict()
    for name, each in weights.items():
        digest.update(f"{name} {each.dtype} {tuple(each.shape)};".encode())
        digest.update(each.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


class Cache:
    """A folder of builds.

    Args:
        options: of the backend; `cache` says where it is, and whether.
    """

    def __init__(self, options: Options):
        self._folder: Path | None = None
        if isinstance(options.cache, Path):
            self._folder = options.cache
        elif options.cache:
            home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            self._folder = home / "tvm-practice" / "torch_compile"

    def find(self, name: str) -> Entry | None:
        """The build kept under a digest; None where there is none, or it cannot be read."""
        if self._folder is None:
            return None
        folder = self._folder / name
        try:
            entry: dict[str, Any] = json.loads((folder / _ENTRY).read_text())
            os.utime(folder)
            compiled = folder / _LIBRARY if entry.pop("compiled") else None
            return Entry(compiled, tuple(entry["refused"]), entry["reason"])
        except (OSError, ValueError, KeyError):
            return None

    def keep(self, name: str, entry: Entry | None = None, *, executable: Any = None) -> None:
        """Keep a build, or a refusal, under a digest; nothing where the disk or linker fails."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            making = TemporaryFolder(self._folder)
        except OSError:
            return
        made = making.path / "entry"
        try:
            made.mkdir()
            if executable is not None:
                with native_stderr_to(os.devnull):  # it tells of every file that it writes
                    executable.export_library(str(made / _LIBRARY))
            told = asdict(entry or Entry()) | {"compiled": executable is not None}
            write_json(made / _ENTRY, told)
            made.replace(self._folder / name)
            self._trim()
        except (OSError, RuntimeError):  # full, no linker, or another process was first
            pass
        finally:
            making.cleanup()

    def _trim(self) -> None:
        assert self._folder is not None
        found = sorted(
            (each for each in self._folder.iterdir() if not each.name.startswith(".")),
            key=lambda each: each.stat().st_mtime,
            reverse=True,
        )
        total = 0
        for folder in found:
            total += sum(file.stat().st_size for file in folder.iterdir())
            if total > _MOST:
                shutil.rmtree(folder, ignore_errors=True)
