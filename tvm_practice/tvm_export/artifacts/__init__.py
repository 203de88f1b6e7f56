"""Artifacts on disk: what is written and read, what its schema is, and what it was made from."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_practice.tvm_export.artifacts.files import (
        GRAPH,
        LIBRARY,
        METADATA,
        PARAMETERS,
        SUMMARY,
        export_artifacts,
        load_artifacts,
        read_metadata,
        require_free,
        require_whole,
        require_writable,
    )

__all__ = [
    "GRAPH",
    "LIBRARY",
    "METADATA",
    "PARAMETERS",
    "SUMMARY",
    "export_artifacts",
    "load_artifacts",
    "read_metadata",
    "require_free",
    "require_whole",
    "require_writable",
]


# Imported when first asked for: the schema is needed by command lines, whose --help must not wait
# for numpy.
def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.files"), name)
