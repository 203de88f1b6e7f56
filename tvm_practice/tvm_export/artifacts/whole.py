"""What makes an artifact whole: the names of its files, what metadata.json says, and digests.

docs/artifacts.md says what each file is; `schema`, what metadata.json holds.
"""

import hashlib
import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic import ValidationError

from tvm_practice.tvm_export.artifacts.schema import SCHEMA_VERSION, Metadata
from tvm_practice.tvm_export.errors import BadInput

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LIBRARY = "deploy_lib.tar"
LINKED = "deploy_lib.so"  # in a single file
GRAPH = "deploy_graph.json"
PARAMETERS = "deploy_params.bin"
METADATA = "metadata.json"
SUMMARY = "summary.json"
DEPLOYED = (LIBRARY, GRAPH, PARAMETERS)


def read_metadata(folder: Path) -> dict[str, Any]:
    """What metadata.json holds; fields that a later version added are let be.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is not of this schema.
    """
    file = folder / METADATA
    try:
        metadata = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{file} is not JSON") from None
    version = metadata.get("schema_version") if isinstance(metadata, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"{file} has schema_version {version}, this version of the project reads "
            f"{SCHEMA_VERSION}"
        )
    problems = [each for each in problems_of(metadata) if each["type"] != "extra_forbidden"]
    if problems:
        raise ValueError(f"{file} is not as its schema says; export again: {said(problems[0])}")
    content: dict[str, Any] = metadata
    return content


def problems_of(metadata: dict[str, Any]) -> "list[ErrorDetails]":
    """How `metadata` breaks its schema."""
    try:
        Metadata.model_validate(metadata)
    except ValidationError as error:
        return error.errors()
    return []


def said(problem: "ErrorDetails") -> str:
    """A problem in a line that begins with the field."""
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


def as_json(content: dict[str, Any]) -> str:
    """The text of metadata.json or summary.json."""
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def library_of(metadata: dict[str, Any]) -> str:
    """The name of an artifact's library: object files, or in a single file a shared library."""
    return LINKED if LINKED in metadata["files"] else LIBRARY


def require_whole(folder: Path, metadata: dict[str, Any]) -> None:
    """Raises FileNotFoundError, or ValueError for a file that is not the one exported."""
    for name in (library_of(metadata), GRAPH, PARAMETERS):
        _require_file(folder / name, metadata["files"].get(name))


def _require_file(file: Path, exported: dict[str, Any] | None) -> None:
    size = file.stat().st_size
    if exported is None:
        raise ValueError(f"{file.with_name(METADATA)} does not say what {file.name} must be")
    if size != exported["bytes"]:
        raise ValueError(f"{file} is damaged: it has {size} bytes, not {exported['bytes']}")
    if fingerprint(file) != exported:
        raise ValueError(f"{file} is damaged: it is not the file that {METADATA} was written for")


def fingerprint(file: Path) -> dict[str, Any]:
    """A file's record in metadata.json."""
    with file.open("rb") as stream:
        return {"bytes": file.stat().st_size, "sha256": digest_of(stream)}


def digest_of(stream: IO[bytes]) -> str:
    """The SHA-256 of the rest of a stream, in hexadecimal digits."""
    digest = hashlib.sha256()
    while block := stream.read(2**20):
        digest.update(block)
    return digest.hexdigest()


def require_digest(file: Path, stream: IO[bytes], sha256: str) -> None:
    """Raise BadInput if a file's content has another SHA-256 than the one that is expected.

    Args:
        file: for the message.
        stream: of its content.
        sha256: in hexadecimal digits.
    """
    found = digest_of(stream)
    if found != sha256.strip().lower():
        raise BadInput(
            f"{file} has the SHA-256 {found}, not {sha256}: it is not the one you expect"
        )
