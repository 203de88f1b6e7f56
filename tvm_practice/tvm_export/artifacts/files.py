"""Artifacts on disk: written whole or not at all, loadable without PyTorch.

docs/artifacts.md says what each file is; `schema`, what metadata.json holds.
"""

import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tvm_practice import engines
from tvm_practice.measure import environment
from tvm_practice.tvm_export.artifacts.embedding import pack_imports
from tvm_practice.tvm_export.artifacts.packing import SINGLE, bundle, opened, pack
from tvm_practice.tvm_export.artifacts.schema import SCHEMA_VERSION, Summary
from tvm_practice.tvm_export.artifacts.whole import (
    DEPLOYED,
    GRAPH,
    LIBRARY,
    METADATA,
    PARAMETERS,
    SUMMARY,
    as_json,
    fingerprint,
    library_of,
    problems_of,
    read_metadata,
    require_whole,
    said,
)
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.inputs import Input
from tvm_practice.tvm_export.quiet import native_stderr_to

_FILES = (*DEPLOYED, SINGLE, SUMMARY, METADATA)  # of these SINGLE need not be there
_PREFIX = ".export-"  # of the folder within the artifacts' in which an export is made
_LOCK = "lock"  # in that folder; held while the export is made
_WITHOUT_LOCK_SECONDS = 60
_ROOM_FOR_CODE = 2**24  # bytes
_COPIES = 3  # of the weights, on the way to the library


def export_artifacts(
    graph_module: GraphModule,
    folder: Path | str,
    *,
    report: dict[str, Any] | None = None,
    replace: bool = False,
    force: bool = False,
    single_file: bool = False,
) -> Path:
    """Write a compiled model and its records to `folder`.

    The files are made within the folder, under a name of their own, and then put in place
    of a former export's, all of them or none. A process that is killed in that moment leaves a
    folder without metadata.json, never one beside another export's files. Whatever else is in
    the folder stays.

    Args:
        graph_module: what to write; its engine must be this process's.
        report: what else belongs in metadata.json: model, configuration, verification, latency,
            ratio_to_pytorch, tuners_own, not_run, notes, origin.
        replace: replace any export of the same model, an untuned one a tuned one, say.
        force: replace what `require_free` refuses to.
        single_file: write model.tvmp too, see `packing.pack`; without, a former one is removed.

    Returns:
        The folder.

    Raises:
        BadInput: the folder holds something else, see `require_free`.
        ValueError: the report does not fit the schema; nothing was written.
        OSError: the folder cannot be written or the disk is full; a former export is as it was.
        Missing, DoesNotCompile: model.tvmp cannot be linked; a former export is as it was.
    """
    folder = Path(folder)
    metadata = _metadata(graph_module) | (report or {})
    require_free(
        folder,
        metadata["model"],
        inputs=metadata["inputs"],
        made=None if replace else metadata,
        force=force,
    )
    if problems := problems_of(metadata):
        raise ValueError(f"{METADATA} would not be as its schema says: {said(problems[0])}")
    summary = {name: metadata[name] for name in Summary.model_fields}
    with _writing(folder) as (making, former):
        _require_room(graph_module, making)
        if graph_module.engine == engines.CLASSIC:
            _write_classic(graph_module, making)
        else:
            _write_current(graph_module, making)
        metadata["files"] = {name: fingerprint(making / name) for name in DEPLOYED}
        (making / SUMMARY).write_text(as_json(summary), encoding="utf-8")
        (making / METADATA).write_text(as_json(metadata), encoding="utf-8")
        if single_file:
            pack(making, making / SINGLE)
        _replace(folder, making, former)
    return folder


def _metadata(graph_module: GraphModule) -> dict[str, Any]:
    """What a compiled model tells of itself; the rest is None, or empty."""
    from tvm_practice.tvm_export.rules.cpu.tile_registers import features_in
    from tvm_practice.tvm_export.targets import features_of, resolve_target

    scheduled = graph_module.scheduled
    tiles = [] if scheduled is None else features_in(scheduled)
    return {
        "schema_version": SCHEMA_VERSION,
        "engine": graph_module.engine,
        "model": None,
        "target": graph_module.target,
        "features": [*features_of(resolve_target(graph_module.target)), *tiles],
        "tuner": graph_module.tuner,
        "verification": None,
        "latency": None,
        "ratio_to_pytorch": None,
        "configuration": None,
        "engine_facts": engines.describe(),
        "environment": environment(),
        "inputs": [
            {
                "name": each.name,
                "shape": None if each.shape is None else list(each.shape),
                "dtype": each.dtype,
            }
            for each in graph_module.inputs
        ],
        "tuning": graph_module.tuning,
        "seconds": graph_module.seconds,
        "rules": graph_module.rules,
        "declined": graph_module.declined,
        "functions": graph_module.made_by,
        "tuners_own": None,
        "files": {},
        "not_run": None,
        "notes": [],
        "origin": None,
    }


def require_free(
    folder: Path | str,
    model: str | None,
    *,
    inputs: list[dict[str, Any]] | None = None,
    made: Mapping[str, Any] | None = None,
    force: bool = False,
    way_out: str = "give another folder, or --force to replace it",
) -> None:
    """Raise BadInput if an export of `model` to `folder` would overwrite something else.

    Another export of the same model is replaced, whatever its weights. Where neither has a name,
    its inputs tell which model it is. Cheap: to be called before the work.

    Args:
        folder: of the artifacts; it need not exist.
        model: its name.
        inputs: as metadata.json has them.
        made: "tuner", "target", "engine" and "configuration" of the export; a tuned one is then not
            replaced by an untuned one, nor by one for another target. None: either may be.
        force: raise nothing.
        way_out: what the message tells the person to do.
    """
    folder = Path(folder)
    _undo_killed(folder)
    present = [name for name in _FILES if (folder / name).exists()]
    if force or not present:
        return
    try:
        content = json.loads((folder / METADATA).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(
            f"{folder} holds {present[0]} without {METADATA}, which is no whole export; {way_out}"
        ) from None
    except (ValueError, RecursionError):
        raise BadInput(f"{folder / METADATA} is not JSON; {way_out}") from None
    if not isinstance(content, dict) or not {"schema_version", "engine"} <= content.keys():
        raise BadInput(f"{folder / METADATA} is not an export's; {way_out}")
    if (version := content["schema_version"]) != SCHEMA_VERSION:
        raise BadInput(f"{folder} holds an export of schema_version {version}; {way_out}")
    there = content.get("model")
    if there != model or (model is None and content.get("inputs") != inputs):
        name = there or "a model without a name and with other inputs"
        raise BadInput(f"{folder} holds the artifacts of {name}; {way_out}")
    if made is not None and (loss := _loss(content, made)):
        raise BadInput(f"{folder} holds {loss}; {way_out}")


def _loss(there: Mapping[str, Any], made: Mapping[str, Any]) -> str | None:
    """What would be lost if an export was replaced by another of the same model; None: nothing."""
    if there.get("tuner") and not made.get("tuner"):
        return f"artifacts tuned by {there['tuner']}, and this export is untuned"
    asked = [(each.get("configuration") or {}).get("target") for each in (there, made)]
    if None in asked and there.get("engine") == made.get("engine"):
        asked = [there.get("target"), made.get("target")]
    if None not in asked and asked[0] != asked[1]:
        return f"artifacts for the target {asked[0]}, and this export is for {asked[1]}"
    return None


def require_writable(folder: Path | str, what: str = "artifacts ") -> None:
    """Raise BadInput if `what`, in words, cannot be written to `folder`, which need not exist.

    Nothing is left behind. Cheap: to be called before the work.
    """
    folder = Path(folder)
    try:
        there = folder
        while not os.path.lexists(there):
            there = there.parent
        with tempfile.TemporaryFile(dir=there):
            pass
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise BadInput(f"cannot write {what}to {folder}: {error.strerror or error}") from None


def _undo_killed(folder: Path) -> None:
    """Remove what exports whose process was killed have left; a former export is whole again."""
    for left in folder.glob(f"{_PREFIX}*"):
        if _is_in_use(left):
            continue
        made, former = left / "new", left / "former"
        if (made / METADATA).exists() and not (folder / METADATA).exists():  # among its moves
            for name in _FILES:
                if (former / name).exists():
                    (former / name).replace(folder / name)
                elif not (made / name).exists() and not (former / METADATA).exists():
                    (folder / name).unlink(missing_ok=True)
        shutil.rmtree(left, ignore_errors=True)


def _is_in_use(left: Path) -> bool:
    """Whether the process that makes an export in `left` lives, on this machine or in a container.

    It holds a lock, which the kernel lets go of when the process ends. Its number would say
    nothing: a container that starts again gives the same numbers, and another container's process
    has a number of its own.
    """
    from filelock import FileLock, Timeout

    if not (left / _LOCK).exists():  # of a version without locks, or not made yet
        return time.time() - left.stat().st_mtime < _WITHOUT_LOCK_SECONDS
    try:
        with FileLock(left / _LOCK, timeout=0):
            return False
    except Timeout:
        return True


@contextmanager
def _writing(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Two empty folders within `folder`, which is made if need be. Raises OSError in one line.

    They are within it, not beside it, because a folder may be a file system of its own.
    """
    from filelock import FileLock

    was_there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=folder, prefix=_PREFIX) as made,
            FileLock(Path(made) / _LOCK),
        ):
            making, former = Path(made) / "new", Path(made) / "former"
            making.mkdir()
            former.mkdir()
            yield making, former
    except BaseException as error:
        if not was_there:
            try:
                folder.rmdir()
            except OSError:
                pass
        if isinstance(error, OSError):
            after = "; the former ones are as they were" if was_there else ""
            reason = error.strerror or error
            raise OSError(f"cannot write artifacts to {folder}: {reason}{after}") from error
        raise


def _require_room(graph_module: GraphModule, folder: Path) -> None:
    """Raises OSError where the disk is nearly full: LLVM would end the process.

    The current engine's library holds the weights; its parts are made in the folder for temporary
    files.
    """
    needed = _COPIES * graph_module.weight_bytes + _ROOM_FOR_CODE
    for place in (folder, Path(tempfile.gettempdir())):
        free = shutil.disk_usage(place).free
        if free < needed:
            raise OSError(
                errno.ENOSPC,
                f"{place} has {free / 1e6:.0f} MB left, {needed / 1e6:.0f} MB may be needed",
            )


def _replace(folder: Path, making: Path, former: Path) -> None:
    """Put the files of `making` into `folder` and those there into `former`; all or none."""
    present = [name for name in _FILES if (folder / name).exists()]
    try:
        for name in reversed(present):  # metadata.json first: without it, nothing is loaded
            (folder / name).replace(former / name)
        for name in _FILES:
            if name != SINGLE or (making / SINGLE).exists():
                (making / name).replace(folder / name)
    except BaseException:
        for name in _FILES:
            if (former / name).exists():
                (former / name).replace(folder / name)
            elif name not in present:
                (folder / name).unlink(missing_ok=True)
        raise


def _write_classic(graph_module: GraphModule, folder: Path) -> None:
    from tvm import relay

    graph_module.compiled.get_lib().export_library(str(folder / LIBRARY))
    (folder / GRAPH).write_text(graph_module.graph_json, encoding="utf-8")
    parameters = graph_module.compiled.get_params()
    (folder / PARAMETERS).write_bytes(relay.save_param_dict(parameters))


def _write_current(graph_module: GraphModule, folder: Path) -> None:
    import tvm
    from tvm.support.utils import TempDirectory

    # Read by its __del__, which otherwise prints a traceback where the folder could not be made.
    TempDirectory.temp_dir = None
    with native_stderr_to(os.devnull):  # it says "Scope Saving" for each constant
        graph_module.compiled.export_library(
            str(folder / LIBRARY), fcompile=bundle, fpack_imports=pack_imports
        )
    (folder / GRAPH).write_text(graph_module.graph_json, encoding="utf-8")
    # The weights are constants of the library, which is faster than passing them at each call.
    tvm.runtime.save_param_dict_to_file({}, str(folder / PARAMETERS))


def load_artifacts(artifact: Path | str, *, sha256: str | None = None) -> GraphModule:
    """Load what `export_artifacts` wrote; needs numpy and the engine, not PyTorch.

    Loading runs the library's native code, with this process's rights: load what you trust.
    Activates the artifact's engine in this process. To load a folder's library, TVM links it with
    the machine's C compiler; a single file has it linked. Nothing is written to `artifact`.

    Args:
        artifact: the folder, or a single file, see `packing.pack`.
        sha256: digest of the folder's metadata.json or of the single file, in hexadecimal digits,
            as its maker told you. As metadata.json holds the digests of the other files, it
            vouches for them too.

    Raises:
        BadInput: another digest, or a single file that is damaged; nothing was loaded.
        FileNotFoundError: a file is missing; the error names it.
        ValueError: a file is damaged, the metadata is of another schema, or the engine cannot
            load the library on this machine; one line that names the file.
        engines.EngineUnavailable: the engine is not installed, or the process holds the other.
    """
    with opened(artifact, sha256=sha256) as folder:
        metadata = read_metadata(folder)
        require_whole(folder, metadata)
        engines.activate(metadata["engine"])
        return _loaded(folder, metadata)


def _loaded(folder: Path, metadata: dict[str, Any]) -> GraphModule:
    """What a folder whose files are whole holds. Raises ValueError, as `load_artifacts`."""
    import tvm

    from tvm_practice.tvm_export import running
    from tvm_practice.tvm_export.rules.gpu import compiling_kernels
    from tvm_practice.tvm_export.targets import (
        device_of,
        resolve_target,
        to_dictionary,
        why_lacking,
    )

    graph_json = (folder / GRAPH).read_text(encoding="utf-8")
    file = folder / library_of(metadata)
    runner: Any
    if reason := why_lacking(metadata.get("features", ())):
        raise ValueError(f"{file} does not load on this machine: {reason}")
    try:
        # It says "Scope Loaded" for each constant.
        with _linked_elsewhere(file) as library, native_stderr_to(os.devnull):
            if metadata["engine"] == engines.CLASSIC:
                parameters = (folder / PARAMETERS).read_bytes()
                device = device_of(resolve_target(metadata["target"]))
                runner = running.RelayRunner.from_files(
                    library, graph_json, parameters, device=device
                )
            else:
                target = tvm.target.Target(to_dictionary(metadata["target"]))
                with compiling_kernels(target):
                    runner = running.RelaxRunner.from_file(library, device=device_of(target))
    except (RuntimeError, ValueError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        raise ValueError(f"{file} does not load on this machine: {reason}") from error
    return GraphModule(
        engine=metadata["engine"],
        tuner=metadata["tuner"],
        runner=runner,
        compiled=None,
        graph_json=graph_json,
        target=metadata["target"],
        inputs=tuple(Input.of(each) for each in metadata["inputs"]),
        seconds=metadata["seconds"],
        tuning=metadata["tuning"],
        rules=metadata["rules"],
        declined=metadata.get("declined", {}),
        made_by=metadata.get("functions", {}),
    )


@contextmanager
def _linked_elsewhere(library: Path) -> Iterator[str]:
    """Another path of the library, in a folder that is removed after the block.

    TVM links X.tar to X.tar.so beside it. That folder may be read-only or in use by another
    process, and a process that has loaded X.tar.so before gets that one again, whatever it is now.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        elsewhere = Path(made) / library.name
        try:
            elsewhere.hardlink_to(library)  # TVM would follow a symbolic one
        except OSError:  # on another file system, mostly
            shutil.copyfile(library, elsewhere)
        yield str(elsewhere)
