"""`farm.stages`, under the name by which lab files begun in an earlier edition import it."""

from tvm_practice.farm.stages import (
    Stages,
    build_seconds,
    run_parts,
    search_seconds,
    upload_seconds,
)

__all__ = ["Stages", "build_seconds", "run_parts", "search_seconds", "upload_seconds"]
