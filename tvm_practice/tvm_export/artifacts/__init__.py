"""Artifacts on disk: what is written and read, what its schema is, and what it was made from."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_practice.tvm_export.artifacts.files import (
        export_artifacts,
        load_artifacts,
        require_free,
        require_writable,
    )
    from tvm_practice.tvm_export.artifacts.packing import SINGLE, linker, opened, pack
    from tvm_practice.tvm_export.artifacts.whole import (
        GRAPH,
        LIBRARY,
        METADATA,
        PARAMETERS,
        SUMMARY,
        read_metadata,
        require_whole,
    )

_MODULES = {
    "files": ("export_artifacts", "load_artifacts", "require_free", "require_writable"),
    "packing": ("SINGLE", "linker", "opened", "pack"),
    "whole": (
        *("GRAPH", "LIBRARY", "METADATA", "PARAMETERS", "SUMMARY"),
        *("read_metadata", "require_whole"),
    ),
}

__all__ = [
    "GRAPH",
    "LIBRARY",
    "METADATA",
    "PARAMETERS",
    "SINGLE",
    "SUMMARY",
    "export_artifacts",
    "linker",
    "load_artifacts",
    "opened",
    "pack",
    "read_metadata",
    "require_free",
    "require_whole",
    "require_writable",
]


# Imported when first asked for: the schema is needed by command lines, whose --help must not wait
# for numpy.
def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
