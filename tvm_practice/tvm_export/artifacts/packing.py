"""An artifact in one file, NAME.tvmp, which loads without a C compiler.

It is a zip archive of the folder's files, with a shared library in place of the object files, and
of SHA256SUMS, the digests of the other members. Nothing is compressed: weights can be mapped.

pack("runs/mlp", "mlp.tvmp")
with opened("mlp.tvmp") as folder: …
"""

import errno
import hashlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tvm_practice.engines.host import own_architecture
from tvm_practice.tvm_export.artifacts.whole import (
    GRAPH,
    LIBRARY,
    LINKED,
    METADATA,
    PARAMETERS,
    SUMMARY,
    as_json,
    fingerprint,
    read_metadata,
    require_digest,
    require_whole,
)
from tvm_practice.tvm_export.errors import BadInput, DoesNotCompile

SUFFIX = ".tvmp"
SINGLE = f"model{SUFFIX}"  # beside the files that it was made of
SUMS = "SHA256SUMS"
_SUMMED = (METADATA, SUMMARY, GRAPH, PARAMETERS, LINKED)
_DATE = (1980, 1, 1, 0, 0, 0)  # the same in every archive: equal artifacts are equal files
_MOST_SUMS = 4096  # bytes


def pack(folder: Path | str, file: Path | str) -> Path:
    """Write an artifact to one file, whole or not at all; what else is in the folder stays out.

    Args:
        folder: of the artifact.
        file: to write; its name ends in .tvmp.

    Returns:
        The file.

    Raises:
        BadInput: another name.
        Missing: no compiler here links for the artifact's target.
        DoesNotCompile: the compiler refuses; its first error.
        FileNotFoundError, ValueError: the artifact is not whole.
        OSError: the file cannot be written.
    """
    folder, file = Path(folder), Path(file)
    if file.suffix != SUFFIX:
        raise BadInput(f"{file} does not end in {SUFFIX}")
    metadata = read_metadata(folder)
    require_whole(folder, metadata)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".pack-") as made:
        here = Path(made)
        link(folder / LIBRARY, metadata["target"], here / LINKED)
        paths = {name: folder / name for name in (SUMMARY, GRAPH, PARAMETERS)}
        paths |= {name: here / name for name in (LINKED, METADATA)}
        files = {name: fingerprint(paths[name]) for name in (LINKED, GRAPH, PARAMETERS)}
        paths[METADATA].write_text(as_json(metadata | {"files": files}), encoding="utf-8")
        sums = [f"{fingerprint(paths[name])['sha256']}  {name}\n" for name in _SUMMED]
        paths[SUMS] = here / SUMS
        paths[SUMS].write_text("".join(sums), encoding="ascii")
        with zipfile.ZipFile(here / SINGLE, "w") as archive:
            for name in (SUMS, *_SUMMED):
                _add(archive, name, paths[name])
        (here / SINGLE).replace(file)
    return file


def _add(archive: zipfile.ZipFile, name: str, file: Path) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.file_size = file.stat().st_size  # by which its header is chosen
    entry.external_attr = 0o644 << 16
    with file.open("rb") as source, archive.open(entry, "w") as target:
        shutil.copyfileobj(source, target, 2**20)


def linker(target: str) -> list[str]:
    """The command, without its files, that links a shared library for an artifact's target.

    Raises Missing: no compiler here does.
    """
    from tvm_practice.tvm_export.linking import compiler
    from tvm_practice.tvm_export.targets import to_dictionary

    described = to_dictionary(target)
    host = described.get("host", described)
    host = to_dictionary(host) if isinstance(host, str) else host
    triple = str(host.get("mtriple") or f"{own_architecture()}-{sys.platform}")
    macos = ["-undefined", "dynamic_lookup"] if "darwin" in triple or "macos" in triple else []
    return [*compiler(triple, shared=True), "-shared", "-fPIC", *macos]


def link(library: Path, target: str, output: Path) -> None:
    """Link the object files of deploy_lib.tar to a shared library.

    Raises Missing and DoesNotCompile, as `pack`.
    """
    command = linker(target)
    with tempfile.TemporaryDirectory(dir=output.parent) as made:
        objects = [str(each) for each in extracted(library, Path(made))]
        done = subprocess.run(
            [*command, "-o", str(output), *objects], capture_output=True, text=True
        )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        reason = next((each for each in lines if "error" in each), lines[-1])
        raise DoesNotCompile(f"{library.name} cannot be linked to {output.name}: {reason}")


def bundle(library: str, files: list[str]) -> None:
    """Write deploy_lib.tar from its object files, as `export_library` wants of an fcompile.

    TVM's own compresses, which takes long and makes float32 weights hardly smaller.

    Args:
        library: to write.
        files: object files with different names.
    """
    with tarfile.TarFile(library, "w", copybufsize=2**22) as archive:
        for each in files:
            archive.add(each, Path(each).name)


def extracted(library: Path, folder: Path) -> list[Path]:
    """The files of deploy_lib.tar, written to `folder`."""
    with tarfile.open(library) as archive:
        for member in archive:  # extractall's filter is not in every Python 3.10 and 3.11
            if content := archive.extractfile(member):
                with (folder / Path(member.name).name).open("wb") as target:
                    shutil.copyfileobj(content, target, 2**20)
    return sorted(folder.iterdir())


@contextmanager
def opened(artifact: Path | str, *, sha256: str | None = None) -> Iterator[Path]:
    """The folder of an artifact: itself, or for a single file one that is removed after the block.

    Args:
        artifact: a folder, or a file that `pack` wrote.
        sha256: what the digest of the folder's metadata.json, or of the file, must be.

    Raises:
        BadInput: another digest, or a file that is not a whole artifact; nothing was loaded.
    """
    artifact = Path(artifact)
    if not artifact.is_file():
        if sha256 is not None:
            with (artifact / METADATA).open("rb") as stream:
                require_digest(artifact / METADATA, stream, sha256)
        yield artifact
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        try:
            _unpack(artifact, Path(made), sha256)
        except BadInput:
            raise
        except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError, struct.error) as error:
            raise BadInput(f"{artifact} is not a whole {SUFFIX} file: {error}") from None
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # zipfile seeks to where a damaged list says that a member is.
            raise BadInput(
                f"{artifact} is not a whole {SUFFIX} file: its list is damaged"
            ) from None
        try:
            yield Path(made)
        except (ValueError, BadInput) as error:
            if type(error) not in (ValueError, BadInput) or made not in str(error):
                raise
            raise type(error)(str(error).replace(made, str(artifact))) from error


def _unpack(file: Path, folder: Path, sha256: str | None) -> None:
    """Write the members of an archive to `folder`. Raises as zipfile does, and BadInput."""
    with file.open("rb") as stream:
        if sha256 is not None:
            require_digest(file, stream, sha256)
            stream.seek(0)
        with zipfile.ZipFile(stream) as archive:
            if problem := _foreign(archive):
                raise BadInput(f"{file} is not a whole {SUFFIX} file: {problem}")
            sums = _sums(archive)
            for name in _SUMMED:
                if _copied(archive, name, folder / name) != sums.get(name):
                    raise BadInput(f"{file} is damaged: {name} is not what {SUMS} says")


def _foreign(archive: zipfile.ZipFile) -> str | None:
    """In what an archive is not one that `pack` wrote; None if in nothing that its list shows."""
    names = archive.namelist()
    for name in (SUMS, *_SUMMED):
        if names.count(name) != 1:
            return f"it holds {'two' if name in names else 'no'} {name}"
    for each in archive.infolist():
        if each.filename not in (SUMS, *_SUMMED):
            return f"it holds {each.filename!r}, which is no part of an artifact"
        if each.compress_type != zipfile.ZIP_STORED:
            return f"{each.filename} is compressed"
    if archive.getinfo(SUMS).file_size > _MOST_SUMS:
        return f"{SUMS} is too long"
    return None


def _sums(archive: zipfile.ZipFile) -> Mapping[str, str]:
    """The digest of each member."""
    lines = archive.read(SUMS).decode("ascii").splitlines()
    pairs = [line.partition("  ") for line in lines]
    return {name: digest for digest, _, name in pairs}


def _copied(archive: zipfile.ZipFile, name: str, file: Path) -> str:
    """The SHA-256 of a member, which is written to `file`."""
    digest = hashlib.sha256()
    with archive.open(name) as source, file.open("wb") as target:
        while block := source.read(2**20):
            digest.update(block)
            target.write(block)
    return digest.hexdigest()
