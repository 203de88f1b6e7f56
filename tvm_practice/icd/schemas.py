"""JSON Schemas of the files read and written here, as docs/schemas publishes them."""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter


def schemas() -> dict[str, dict[str, Any]]:
    """Each schema by the name of its file."""
    from tvm_practice.icd.config import RunConfig
    from tvm_practice.icd.metrics import Metrics
    from tvm_practice.tvm_export.artifacts.schema import Metadata, Summary
    from tvm_practice.tvm_export.compilers import Report
    from tvm_practice.tvm_export.run_comparison import Row

    types: dict[str, Any] = {
        "icd_config.json": RunConfig,
        "icd_metrics.json": Metrics,
        "tvm_comparison.json": Row | list[Row],
        "bench_report.json": Report,
        "artifact_metadata.json": Metadata,
        "artifact_summary.json": Summary,
    }
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: dialect | TypeAdapter(each).json_schema() for name, each in types.items()}


def write_schemas(folder: Path) -> list[Path]:
    """Write each schema to `folder`; returns the files."""
    from tvm_practice.tvm_export.writing import write_json

    folder.mkdir(parents=True, exist_ok=True)
    found = schemas()
    for name, schema in found.items():
        write_json(folder / name, schema)
    return [folder / name for name in found]
