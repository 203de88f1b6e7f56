"""Artifacts on disk: written whole or not at all, loadable without PyTorch."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tvm_practice import engines
from tvm_practice.measure import environment
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.quiet import native_stderr_to

LIBRARY = "deploy_lib.tar"
GRAPH = "deploy_graph.json"
PARAMETERS = "deploy_params.bin"
METADATA = "metadata.json"
SUMMARY = "summary.json"
SCHEMA_VERSION = 1


def export_artifacts(
    graph_module: GraphModule, folder: Path | str, *, report: dict[str, Any] | None = None
) -> Path:
    """Write a compiled model and its records to `folder`.

    The five files are made in a folder beside it and moved in one by one, metadata last, so that
    an interrupted export leaves no file half-written.

    Args:
        graph_module: what to write; its engine must be this process's.
        report: what else belongs in metadata.json: configuration, verification, latency.

    Returns:
        The folder.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as made:
        making = Path(made)
        if graph_module.engine == engines.CLASSIC:
            _write_classic(graph_module, making)
        else:
            _write_current(graph_module, making)
        metadata = {
            "schema_version": SCHEMA_VERSION,
            "engine": graph_module.engine,
            "engine_facts": engines.describe(),
            "target": graph_module.target,
            "inputs": graph_module.input_names,
            "tuner": graph_module.tuner,
            "tuning": graph_module.tuning,
            "seconds": graph_module.seconds,
            "environment": environment(),
            **(report or {}),
        }
        summary = {
            key: metadata.get(key)
            for key in ("schema_version", "engine", "target", "tuner", "verification", "latency")
        }
        (making / SUMMARY).write_text(json.dumps(summary, indent=2))
        (making / METADATA).write_text(json.dumps(metadata, indent=2))
        for name in (LIBRARY, GRAPH, PARAMETERS, SUMMARY, METADATA):
            shutil.move(making / name, folder / name)
    return folder


def _write_classic(graph_module: GraphModule, folder: Path) -> None:
    from tvm import relay

    graph_module.compiled.get_lib().export_library(str(folder / LIBRARY))
    (folder / GRAPH).write_text(graph_module.graph_json)
    parameters = graph_module.compiled.get_params()
    (folder / PARAMETERS).write_bytes(relay.save_param_dict(parameters))


def _write_current(graph_module: GraphModule, folder: Path) -> None:
    import tvm

    with native_stderr_to(os.devnull):  # it says "Scope Saving" for each constant
        graph_module.compiled.export_library(str(folder / LIBRARY))
    (folder / GRAPH).write_text(graph_module.graph_json)
    # The weights are constants of the library, which is faster than passing them at each call.
    tvm.runtime.save_param_dict_to_file({}, str(folder / PARAMETERS))


def load_artifacts(folder: Path | str) -> GraphModule:
    """Load what `export_artifacts` wrote; needs numpy and the engine, not PyTorch.

    Activates the artifact's engine in this process. Raises FileNotFoundError if a file is
    missing, ValueError if the metadata is of another schema.
    """
    folder = Path(folder)
    metadata = json.loads((folder / METADATA).read_text())
    if metadata.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(
            f"{folder / METADATA} has schema_version {metadata.get('schema_version')}, "
            f"this version of the project reads {SCHEMA_VERSION}"
        )
    engines.activate(metadata["engine"])
    from tvm_practice.tvm_export import running

    graph_json = (folder / GRAPH).read_text()
    runner: Any
    if metadata["engine"] == engines.CLASSIC:
        runner = running.RelayRunner.from_files(
            str(folder / LIBRARY), graph_json, (folder / PARAMETERS).read_bytes()
        )
    else:
        runner = running.RelaxRunner.from_file(str(folder / LIBRARY))
    return GraphModule(
        engine=metadata["engine"],
        tuner=metadata["tuner"],
        runner=runner,
        compiled=None,
        graph_json=graph_json,
        target=metadata["target"],
        input_names=metadata["inputs"],
        seconds=metadata["seconds"],
        tuning=metadata["tuning"],
    )
