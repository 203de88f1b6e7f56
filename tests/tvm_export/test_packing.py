"""A single file: what it holds, that it needs no compiler, and that others are refused."""

import contextlib
import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.conftest import Processes
from tvm_practice import artifact, engines
from tvm_practice.tvm_export.artifacts import LIBRARY, METADATA, pack
from tvm_practice.tvm_export.artifacts.packing import SUMS, opened
from tvm_practice.tvm_export.errors import BadInput, Missing
from tvm_practice.tvm_export.run_comparison import latency_of

FUNCTIONS = "tests.tvm_export.artifacts_functions"
LATENCY = {
    "unit": "ms", "sample": "one call", "count": 1, "warmup": 0, "mean": 2.0, "std": 0.0,
    "p50": 2.0, "p90": 2.0, "p95": 2.0, "p99": 2.0, "ci95": [1.0, 3.0], "stable": True,
}  # fmt: skip


@pytest.fixture(scope="module", params=engines.ENGINES)
def session(request: pytest.FixtureRequest, process_of: Processes) -> engines.Session:
    """The process of each engine in turn."""
    if reason := engines.unavailable_reason(request.param):
        pytest.skip(reason)
    return process_of(request.param)


@pytest.fixture(scope="module")
def made(session: engines.Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export with its single file, by each engine in turn; not to be changed."""
    folder = tmp_path_factory.mktemp(session.engine) / "artifacts"
    given = {"folder": str(folder), "report": {"latency": LATENCY}, "single_file": True}
    session.call(f"{FUNCTIONS}:export", given)
    return folder


@pytest.fixture(scope="module")
def packed(process_of: Processes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A single file of the current engine; not to be changed."""
    folder = tmp_path_factory.mktemp("packed") / "artifacts"
    given = {"folder": str(folder), "single_file": True}
    process_of(engines.CURRENT).call(f"{FUNCTIONS}:export", given)
    return folder / "model.tvmp"


def members(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(file: Path, content: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return file


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(artifact.main, [str(each) for each in arguments])


def test_it_loads_where_there_is_no_compiler(session: engines.Session, made: Path) -> None:
    function = f"{FUNCTIONS}:loaded_without_tools"
    said = session.call(function, {"artifact": str(made)})
    assert "does not load on this machine" in said
    outputs = session.call(function, {"artifact": str(made / "model.tvmp")})
    np.testing.assert_allclose(outputs, session.call(f"{FUNCTIONS}:expected"), rtol=1e-5, atol=1e-6)


def test_every_command_takes_it(
    session: engines.Session, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "Session", lambda *_, **__: contextlib.nullcontext(session))
    file, given, out = made / "model.tvmp", tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, input_0=np.ones((2, 5), "float32"))
    assert invoke("run", file, "--inputs", given, "--outputs", out).exit_code == 0
    with np.load(out) as outputs:
        expected = session.call(f"{FUNCTIONS}:expected")
        np.testing.assert_allclose(outputs["output_0"], expected, rtol=1e-5, atol=1e-6)
    assert invoke("bench", file, "--repeats", 2, "--warmup", 0).exit_code == 0
    assert "100%" in invoke("profile", file, "--runs", 1).output
    shown = invoke("inspect", file)
    assert "deploy_lib.so, whole" in shown.output and "tests:one" in shown.output, shown.output
    assert latency_of(file) == latency_of(made / METADATA)


def test_it_holds_the_same_and_says_the_digest_of_each(made: Path) -> None:
    content = members(made / "model.tvmp")
    sums = dict(line.split()[::-1] for line in content.pop(SUMS).decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    metadata, there = json.loads(content[METADATA]), json.loads((made / METADATA).read_text())
    assert metadata.pop("files").keys() == (content.keys() - {METADATA, "summary.json"})
    assert there.pop("files") and metadata == there
    for name in ("deploy_params.bin", "deploy_graph.json", "summary.json"):
        assert content[name] == (made / name).read_bytes()
    with zipfile.ZipFile(made / "model.tvmp") as archive:
        assert {each.compress_type for each in archive.infolist()} == {zipfile.ZIP_STORED}


def test_packing_a_folder_makes_the_same_file(made: Path, tmp_path: Path) -> None:
    done = invoke("pack", made, tmp_path / "new" / "one.tvmp", "--json")
    assert done.exit_code == 0, done.output
    content = (tmp_path / "new" / "one.tvmp").read_bytes()
    assert content == (made / "model.tvmp").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert json.loads(done.stdout)["sha256"] == digest
    file = tmp_path / "new" / "one.tvmp"
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    assert invoke("inspect", file, "--sha256", digest.upper()).exit_code == 0
    refused = invoke("inspect", file, "--sha256", "0" * 64)
    assert refused.exit_code == 2 and f"{file} has the SHA-256 {digest}" in refused.output


def test_a_new_export_leaves_no_file_of_the_former(
    session: engines.Session, made: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "artifacts"))
    given = {"folder": str(folder), "seed": 1}
    before = (folder / "model.tvmp").read_bytes()
    said = session.call(f"{FUNCTIONS}:failing", given | {"how": "failing_move", "step": 9})
    assert said.startswith("OSError") and (folder / "model.tvmp").read_bytes() == before
    session.call(f"{FUNCTIONS}:export", given | {"single_file": True})
    assert (folder / "model.tvmp").read_bytes() != before
    session.call(f"{FUNCTIONS}:export", given)
    assert not (folder / "model.tvmp").exists()


def _flipped(content: dict[str, bytes]) -> dict[str, bytes]:
    """With another weight, and a CRC-32 that is right."""
    library = bytearray(content["deploy_lib.so"])
    library[len(library) // 2] ^= 1
    return content | {"deploy_lib.so": bytes(library)}


def _without(content: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in content.items() if name != METADATA}


def _escaping(content: dict[str, bytes]) -> dict[str, bytes]:
    return content | {"../escaped": b"x"}


def _of_later(content: dict[str, bytes]) -> dict[str, bytes]:
    metadata = json.dumps({"schema_version": 99}).encode()
    digest = hashlib.sha256(metadata).hexdigest()
    lines = [line for line in content[SUMS].decode().splitlines() if METADATA not in line]
    sums = "\n".join([*lines, f"{digest}  {METADATA}", ""]).encode()
    return content | {METADATA: metadata, SUMS: sums}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_flipped, "deploy_lib.so is not what SHA256SUMS says"),
        (_without, "it holds no metadata.json"),
        (_escaping, "'../escaped', which is no part of an artifact"),
        (lambda content: content | {SUMS: b"\xff"}, "is not a whole .tvmp file"),
        (lambda content: content | {SUMS: b"x" * 5000}, "SHA256SUMS is too long"),
        (lambda content: {"notes.txt": b"of something else"}, "it holds no SHA256SUMS"),
        (_of_later, "one.tvmp/metadata.json has schema_version 99"),
    ],
)
def test_another_archive_is_refused(
    change: Callable[[dict[str, bytes]], dict[str, bytes]], named: str, packed: Path, tmp_path: Path
) -> None:
    file = written(tmp_path / "one.tvmp", change(members(packed)))
    _refused(file, named)
    assert [each.name for each in tmp_path.iterdir()] == ["one.tvmp"]


def _refused(file: Path, named: str) -> None:
    done = invoke("bench", file)
    assert done.exit_code == 2 and named in done.output, done.output
    assert str(file) in done.output and len(done.output.splitlines()) == 1


def test_a_compressed_one_and_one_with_a_member_twice_are_refused(
    packed: Path, tmp_path: Path
) -> None:
    content = members(packed)
    _refused(written(tmp_path / "small.tvmp", content, zipfile.ZIP_DEFLATED), "is compressed")
    written(tmp_path / "twice.tvmp", content)
    warned = pytest.warns(UserWarning, match="Duplicate")
    with zipfile.ZipFile(tmp_path / "twice.tvmp", "a") as archive, warned:
        archive.writestr(METADATA, b"{}")
    _refused(tmp_path / "twice.tvmp", "it holds two metadata.json")


@pytest.mark.parametrize("part", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_one_is_refused(part: float, packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    (tmp_path / "one.tvmp").write_bytes(content[: int(part * len(content))])
    _refused(tmp_path / "one.tvmp", "is not a whole .tvmp file")


def test_no_changed_byte_goes_unseen(packed: Path, tmp_path: Path) -> None:
    """Of the list at the end, where offsets and names are, every one; the rest is all alike."""
    whole = {name: hashlib.sha256(data).hexdigest() for name, data in members(packed).items()}
    content = packed.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        begin = archive.start_dir
    for position in [*range(0, begin, begin // 50), *range(begin, len(content))]:
        changed = bytearray(content)
        changed[position] ^= 0xFF
        (tmp_path / "one.tvmp").write_bytes(changed)
        try:
            with opened(tmp_path / "one.tvmp") as folder:
                found = {each.name: hashlib.sha256(each.read_bytes()) for each in folder.iterdir()}
        except BadInput:
            continue
        # A date, an attribute or the number of a version: nothing that is loaded.
        assert {name: each.hexdigest() for name, each in found.items()}.items() <= whole.items()
        assert found.keys() == whole.keys() - {SUMS}


def test_what_cannot_be_packed_is_said(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(packed.parent, tmp_path / "artifacts"))
    for file in (folder / "model.zip", folder / "model"):
        done = invoke("pack", folder, file)
        assert done.exit_code == 2 and "does not end in .tvmp" in done.output
    before = packed.read_bytes()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Missing, match="cross-compile"):
        pack(folder, folder / "model.tvmp")
    (folder / LIBRARY).write_bytes(b"x")
    done = invoke("pack", folder)
    assert done.exit_code == 2 and f"{folder / LIBRARY} is damaged" in done.output
    done = invoke("pack", tmp_path / "nowhere")
    assert done.exit_code == 2 and "no such folder" in done.output
    assert (folder / "model.tvmp").read_bytes() == before
