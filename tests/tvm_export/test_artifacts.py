"""Artifacts: what is written, that it is whole, that nothing else is lost, and how it loads."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from tvm_practice import engines
from tvm_practice.engines.host import flags
from tvm_practice.tvm_export.artifacts import require_free, require_writable
from tvm_practice.tvm_export.artifacts.schema import Metadata, Summary
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.pipeline import export_model

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "artifacts.md"
FUNCTIONS = "tests.tvm_export.artifacts_functions"
FILES = {
    "deploy_lib.tar",
    "deploy_graph.json",
    "deploy_params.bin",
    "metadata.json",
    "summary.json",
}
MOVES = 2 * len(FILES)  # of an export over an export: out of the way, and in its place


@pytest.fixture(scope="module")
def made(session: engines.Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export, by each engine in turn, of the model "tests:one"; not to be changed."""
    folder = tmp_path_factory.mktemp(session.engine) / "artifacts"
    session.call(f"{FUNCTIONS}:export", {"folder": str(folder)})
    return folder


@pytest.fixture
def artifacts(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "artifacts"))


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


def metadata(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "metadata.json").read_text())
    return content


def change_metadata(folder: Path, **values: Any) -> None:
    (folder / "metadata.json").write_text(json.dumps(metadata(folder) | values))


def test_the_files_are_as_their_schemas_say(session: engines.Session, made: Path) -> None:
    assert names(made) == FILES
    found = Metadata.model_validate_json((made / "metadata.json").read_text(), strict=True)
    summary = Summary.model_validate_json((made / "summary.json").read_text(), strict=True)
    assert found.model == summary.model == "tests:one" and found.engine == session.engine
    [image] = found.inputs
    assert (image.name, image.shape, image.dtype) == ("input_0", [2, 5], "float32")
    assert set(found.files) == {each for each in FILES if each.startswith("deploy_")}
    assert found.engine_facts.version and found.environment["processor"]


@pytest.mark.slow
def test_an_export_from_the_command_line(session: engines.Session, tmp_path: Path) -> None:
    """With all that it measures; of each engine untuned, and tuned by each tuner."""
    tuners = {"classic": ["autotvm", "ansor"], "current": ["metaschedule"]}[session.engine]
    for tuner in [None, *tuners]:
        folder = tmp_path / str(tuner)
        trials = 4 if tuner else 0
        given = {"folder": str(folder), "tuner": tuner, "trials": trials}
        session.call(f"{FUNCTIONS}:export_job", given)
        text = (folder / "metadata.json").read_text()
        found = Metadata.model_validate_json(text, strict=True)
        assert found.tuner == tuner and found.configuration and found.ratio_to_pytorch
        assert found.verification and found.verification.verified
        assert found.latency and found.latency.count == 3 and found.latency.warmup == 1
        assert (found.tuning.trials or 0) >= trials
        summary = json.loads((folder / "summary.json").read_text())
        whole = json.loads(text)
        assert summary == {name: whole[name] for name in Summary.model_fields}
        assert not (folder / "model.tvmp").exists()
        asked = {**given, "reuse": True, "single_file": True}
        again = session.call(f"{FUNCTIONS}:export_job", asked)
        assert again["single_file"] == str(folder / "model.tvmp")
        assert (folder / "model.tvmp").stat().st_size > 0
        assert again["unchanged_since"] == whole["environment"]["date"]
        assert again["tuning"] == whole["tuning"] and (folder / "metadata.json").read_text() == text


def test_a_report_with_an_unknown_field_is_refused(
    session: engines.Session, tmp_path: Path
) -> None:
    for report, named in (
        ({"latencies": 3}, "latencies"),
        ({"latency": {"mean": 3}}, "latency.unit"),
        ({"configuration": {"target": "llvm", "tunning_trials": 1}}, "tunning_trials"),
    ):
        given = {"folder": str(tmp_path / "artifacts"), "report": report}
        with pytest.raises(engines.RemoteError, match=named) as caught:
            session.call(f"{FUNCTIONS}:export", given)
        assert caught.value.kind == "builtins.ValueError" and "\n" not in caught.value.message
        assert names(tmp_path) == set()


def test_new_weights_replace_old_ones_and_other_files_stay(
    session: engines.Session, artifacts: Path
) -> None:
    (artifacts / "records").mkdir()
    (artifacts / "records" / "log").write_text("kept")
    before = session.call(f"{FUNCTIONS}:loaded", {"folder": str(artifacts)})
    new = session.call(f"{FUNCTIONS}:export", {"folder": str(artifacts), "seed": 1})
    after = session.call(f"{FUNCTIONS}:loaded", {"folder": str(artifacts)})
    np.testing.assert_allclose(after, new, rtol=1e-5, atol=1e-6)
    assert np.abs(np.subtract(after, before)).max() > 1e-3
    assert names(artifacts) == FILES | {"records"}
    assert (artifacts / "records" / "log").read_text() == "kept"


def test_another_models_artifacts_are_not_overwritten(
    session: engines.Session, artifacts: Path
) -> None:
    before = contents(artifacts)
    given = {"folder": str(artifacts), "model": "tests:two", "seed": 1}
    with pytest.raises(BadInput, match=r"holds the artifacts of tests:one.*--force"):
        session.call(f"{FUNCTIONS}:export", given)
    assert contents(artifacts) == before
    session.call(f"{FUNCTIONS}:export", given | {"force": True})
    assert metadata(artifacts)["model"] == "tests:two" and names(artifacts) == FILES


def test_without_a_name_the_inputs_tell_the_model(session: engines.Session, tmp_path: Path) -> None:
    given = {"folder": str(tmp_path / "artifacts"), "model": None}
    session.call(f"{FUNCTIONS}:export", given)
    session.call(f"{FUNCTIONS}:export", given | {"seed": 1})
    with pytest.raises(BadInput, match="other inputs"):
        session.call(f"{FUNCTIONS}:export", given | {"rows": 3})
    with pytest.raises(BadInput, match="without a name"):
        session.call(f"{FUNCTIONS}:export", given | {"model": "tests:one"})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"deploy_lib.tar": "mine"}, "holds deploy_lib.tar without metadata.json"),
        ({"summary.json": "mine"}, "holds summary.json without metadata.json"),
        ({"metadata.json": '{"schema'}, "metadata.json is not JSON"),
        ({"metadata.json": '{"name": "mine"}'}, "metadata.json is not an export's"),
        ({"metadata.json": "[]"}, "metadata.json is not an export's"),
    ],
)
def test_a_folder_with_files_of_another_origin_is_refused(
    files: dict[str, str], message: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(BadInput) as caught:
        require_free(tmp_path, "tests:one")
    assert message in str(caught.value) and "--force" in str(caught.value)
    require_free(tmp_path, "tests:one", force=True)


UNTUNED = {"engine": "current", "tuner": None, "target": "a", "configuration": {"target": "llvm"}}


@pytest.mark.parametrize(
    ("there", "new", "message"),
    [
        ({"tuner": "ansor"}, {}, "holds artifacts tuned by ansor, and this export is untuned"),
        ({"tuner": "ansor"}, {"tuner": "metaschedule"}, None),
        ({}, {"tuner": "ansor"}, None),
        (
            {},
            {"configuration": {"target": "cuda"}},
            "for the target llvm, and this export is for c",
        ),
        ({"configuration": None}, {"target": "b"}, "for the target a, and this export is for b"),
        ({"configuration": None}, {"target": "b", "engine": "classic"}, None),
    ],
)
def test_a_tuned_export_or_one_for_another_target_is_not_replaced_without_a_word(
    there: dict[str, Any], new: dict[str, Any], message: str | None, tmp_path: Path
) -> None:
    content = {"schema_version": 1, "model": "tests:one", **UNTUNED, **there}
    (tmp_path / "metadata.json").write_text(json.dumps(content))
    made = {**UNTUNED, **new}
    require_free(tmp_path, "tests:one")
    require_free(tmp_path, "tests:one", made=made, force=True)
    if message is None:
        require_free(tmp_path, "tests:one", made=made)
        return
    with pytest.raises(BadInput, match=f"{message}.*--force"):
        require_free(tmp_path, "tests:one", made=made)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("file", "Not a directory"),
        ("file/below", "Not a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("loop/below", "Too many levels of symbolic links"),
        ("nowhere", "No such file or directory"),
        ("/proc/below", "No such file or directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_found_before_the_work(
    place: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    request = {"model": "no.such.module:factory", "artifacts": tmp_path / place}
    with pytest.raises(BadInput) as caught:
        export_model(request)
    assert str(caught.value) == f"cannot write artifacts to {tmp_path / place}: {reason}"


def test_asking_whether_a_place_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    require_writable(tmp_path)
    require_writable(tmp_path / "new" / "folder")
    assert not list(tmp_path.iterdir())


def test_a_folder_without_any_is_free(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    require_free(tmp_path, "tests:one")
    require_free(tmp_path / "new", "tests:one")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("read_only", "OSError: cannot write artifacts to {}: Permission denied; the former ones"),
        ("full_disk", "OSError: cannot write artifacts to {}: No space left on device; the former"),
        ("no_room", "MB may be needed; the former ones are as they were"),
        ("broken_engine", "RuntimeError: no such export"),
    ],
)
def test_a_failed_export_leaves_the_former(
    how: str, message: str, session: engines.Session, artifacts: Path
) -> None:
    before = contents(artifacts)
    said = session.call(f"{FUNCTIONS}:failing", {"folder": str(artifacts), "how": how})
    assert message.format(artifacts) in said and "\n" not in said
    assert contents(artifacts) == before and names(artifacts) == FILES
    session.call(f"{FUNCTIONS}:loaded", {"folder": str(artifacts)})
    new = artifacts.with_name("new")
    said = session.call(f"{FUNCTIONS}:failing", {"folder": str(new), "how": how})
    assert "Error: " in said and "former" not in said and not new.exists()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_really_read_only(session: engines.Session, artifacts: Path) -> None:
    before = contents(artifacts)
    artifacts.chmod(0o500)
    try:
        with pytest.raises(engines.RemoteError, match="Permission denied"):
            session.call(f"{FUNCTIONS}:export", {"folder": str(artifacts), "seed": 1})
    finally:
        artifacts.chmod(0o700)
    assert contents(artifacts) == before


@pytest.mark.parametrize("how", ["failing_move", "interrupted_move"])
def test_an_export_stopped_among_its_moves_leaves_the_former(
    how: str, session: engines.Session, artifacts: Path
) -> None:
    before = contents(artifacts)
    for step in range(1, MOVES + 1):
        given = {"folder": str(artifacts), "how": how, "step": step}
        said = session.call(f"{FUNCTIONS}:failing", given)
        assert said.startswith("OSError: " if how == "failing_move" else "KeyboardInterrupt"), step
        assert contents(artifacts) == before and names(artifacts) == FILES, step
    given = {"folder": str(artifacts), "how": how, "step": MOVES + 1}
    assert session.call(f"{FUNCTIONS}:failing", given) == "no error"


def test_a_first_export_stopped_among_its_moves_leaves_nothing(
    session: engines.Session, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for step in range(1, len(FILES) + 1):
        given = {"folder": str(tmp_path), "how": "failing_move", "step": step}
        assert session.call(f"{FUNCTIONS}:failing", given).startswith("OSError"), step
        assert names(tmp_path) == {"notes.txt"}, step


def test_a_killed_export_leaves_no_metadata_beside_other_files(
    session: engines.Session, tmp_path: Path
) -> None:
    given = {"folder": str(tmp_path / "artifacts")}
    seen = session.call(f"{FUNCTIONS}:states_between_moves", given)
    assert seen == {"without metadata": MOVES - 1, "whole": 1}


ORDER = ["deploy_lib.tar", "deploy_graph.json", "deploy_params.bin", "summary.json"]
ORDER.append("metadata.json")


def _killed(folder: Path, moved: int, *, over: bool) -> None:
    """Make `folder` what an export leaves that is killed after `moved` of its moves.

    Its process may have had this one's number: in a container that was started again.
    """
    left = folder / f".export-{os.getpid()}-x"
    former, new = (left / name for name in ("former", "new"))
    former.mkdir(parents=True)
    new.mkdir()
    (left / "lock").touch()
    for name in ORDER:
        (new / name).write_text("of the killed export")
    moves = [(folder / name, former / name) for name in ORDER[::-1]] if over else []
    moves += [(new / name, folder / name) for name in ORDER]
    for source, target in moves[:moved]:
        source.replace(target)


@pytest.mark.parametrize("moved", range(MOVES))
def test_a_killed_exports_former_is_found_again(moved: int, tmp_path: Path) -> None:
    metadata = {"schema_version": 1, "engine": "current", "model": "tests:one"}
    for name in ORDER:
        (tmp_path / name).write_text(json.dumps(metadata))
    before = contents(tmp_path)
    _killed(tmp_path, moved, over=True)
    require_free(tmp_path, "tests:one")
    assert contents(tmp_path) == before and names(tmp_path) == FILES


def test_an_export_that_is_going_on_is_left_alone(tmp_path: Path) -> None:
    """By another process, of another container say, whose number may be nobody's here."""
    _killed(tmp_path, 2, over=False)
    [left] = tmp_path.glob(".export-*")
    with FileLock(left / "lock"):
        require_free(tmp_path, "tests:one", force=True)
        assert left.exists()
    require_free(tmp_path, "tests:one", force=True)
    assert not left.exists()


def test_one_of_before_there_were_locks_is_undone_when_it_is_old(tmp_path: Path) -> None:
    _killed(tmp_path, 2, over=False)
    [left] = tmp_path.glob(".export-*")
    (left / "lock").unlink()
    require_free(tmp_path, "tests:one", force=True)
    assert left.exists()
    os.utime(left, (0, 0))
    require_free(tmp_path, "tests:one", force=True)
    assert not left.exists()


@pytest.mark.parametrize("moved", range(len(FILES)))
def test_nothing_is_left_of_a_first_export_that_was_killed(moved: int, tmp_path: Path) -> None:
    _killed(tmp_path, moved, over=False)
    require_free(tmp_path, "tests:one")
    assert names(tmp_path) == set()


def load_error(session: engines.Session, folder: Path) -> str:
    said: str = session.call(f"{FUNCTIONS}:load_error", {"folder": str(folder)})
    assert "\n" not in said
    return said


@pytest.mark.parametrize("name", sorted(FILES - {"summary.json"}))
def test_a_missing_file_is_named(name: str, session: engines.Session, artifacts: Path) -> None:
    (artifacts / name).unlink()
    said = load_error(session, artifacts)
    assert said.startswith("FileNotFoundError") and name in said


@pytest.mark.parametrize("name", sorted(each for each in FILES if each.startswith("deploy_")))
def test_a_damaged_file_is_named(name: str, session: engines.Session, artifacts: Path) -> None:
    file = artifacts / name
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    said = load_error(session, artifacts)
    assert said.startswith(f"ValueError: {file} is damaged: it has {len(content) // 2} bytes, not")
    middle = len(content) // 2
    file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    assert load_error(session, artifacts).startswith(f"ValueError: {file} is damaged")


def test_an_artifact_with_another_digest_than_the_persons_is_not_loaded(
    session: engines.Session, artifacts: Path
) -> None:
    digest = hashlib.sha256((artifacts / "metadata.json").read_bytes()).hexdigest()
    given = {"folder": str(artifacts)}
    assert session.call(f"{FUNCTIONS}:loaded", given | {"sha256": digest.upper()})
    with pytest.raises(BadInput, match=f"metadata.json has the SHA-256 {digest}, not 123:"):
        session.call(f"{FUNCTIONS}:loaded", given | {"sha256": "123"})


def test_a_library_that_the_engine_cannot_load(session: engines.Session, artifacts: Path) -> None:
    """As one of another operating system would be: whole, and of no use here."""
    library = artifacts / "deploy_lib.tar"
    library.write_bytes(b"of another system")
    files = metadata(artifacts)["files"]
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    files["deploy_lib.tar"] = {"bytes": library.stat().st_size, "sha256": digest}
    change_metadata(artifacts, files=files)
    said = load_error(session, artifacts)
    assert said.startswith(f"ValueError: {library} does not load on this machine: ")


def test_a_processor_without_a_feature_of_the_code(
    session: engines.Session, artifacts: Path
) -> None:
    listed = metadata(artifacts)["features"]
    assert "avx512f" not in flags() or "avx512f" in listed
    change_metadata(artifacts, features=[*listed, "amx-of-tomorrow"])
    said = load_error(session, artifacts)
    library = artifacts / "deploy_lib.tar"
    told = f"{library} does not load on this machine: this processor has no amx-of-tomorrow"
    assert said == f"ValueError: {told}"


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.real_processes
@pytest.mark.skipif("avx512f" not in flags(), reason="code for this machine runs on older ones")
@pytest.mark.skipif(not shutil.which("qemu-x86_64-static"), reason="no qemu-user-static")
def test_an_emulated_older_processor_refuses_in_a_line(
    session: engines.Session, artifacts: Path
) -> None:
    code = f"""
import sys
sys.modules["torch"] = None
from tvm_practice.tvm_export.artifacts import load_artifacts
try:
    load_artifacts({str(artifacts)!r})
except ValueError as error:
    print(error)
"""
    command = ["qemu-x86_64-static", "-cpu", "Haswell", sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(
        r"\S+ does not load on this machine: this processor has no .*\n", ended.stdout
    )


def test_metadata_that_cannot_be_read(session: engines.Session, artifacts: Path) -> None:
    file = artifacts / "metadata.json"
    whole = file.read_text()
    for text, message in (
        (whole[:100], "is not JSON"),
        ("[1]", "has schema_version None"),
        (whole.replace('"schema_version": 1', '"schema_version": 2'), "has schema_version 2"),
        (whole.replace('"seconds"', '"minutes"'), "is not as its schema says; export again"),
        (whole.replace('"engine": "c', '"engine": "x'), "export again: engine: "),
        (whole.replace('"deploy_lib.tar"', '"lib.tar"'), "does not say what deploy_lib.tar"),
    ):
        file.write_text(text)
        said = load_error(session, artifacts)
        assert said.startswith("ValueError: ") and message in said and "metadata.json" in said
    file.write_text(whole)
    change_metadata(artifacts, added_by_a_later_version=1)
    assert load_error(session, artifacts) == "no error"


# A None in sys.modules would do for TVM, but scipy takes whatever is there for PyTorch.
WITHOUT_TORCH = """
import sys
class WithoutTorch:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, WithoutTorch)
"""


def run_without_torch(code: str, folder: Path) -> str:
    """What a program prints in a process where PyTorch cannot be imported."""
    ended = "\nassert 'torch' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_TORCH + code + ended],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_loading_needs_no_pytorch(session: engines.Session, made: Path) -> None:
    code = (
        "import json, numpy\n"
        "from tvm_practice.tvm_export.artifacts import load_artifacts\n"
        f"graph_module = load_artifacts({str(made)!r})\n"
        "outputs = graph_module(numpy.ones((2, 5), 'float32'))\n"
        "print(json.dumps(outputs[0].tolist()))"
    )
    found = json.loads(run_without_torch(code, made))
    np.testing.assert_allclose(found, session.call(f"{FUNCTIONS}:expected"), rtol=1e-5, atol=1e-6)


def test_the_guides_programs_load_artifacts(
    session: engines.Session, made: Path, tmp_path: Path
) -> None:
    """Numpy and the engine only, as the page says."""
    shutil.copytree(made, tmp_path / "runs" / "mlp")
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    [program] = [each for each in programs if ("relax" in each) == (session.engine == "current")]
    assert "tvm_export" not in program
    printed = run_without_torch(program + "\nprint(outputs[0].tolist())", tmp_path)
    found = json.loads(printed.splitlines()[-1])
    np.testing.assert_allclose(found, session.call(f"{FUNCTIONS}:expected"), rtol=1e-5, atol=1e-6)


def test_the_guide_names_every_field() -> None:
    page = PAGE.read_text()
    missing = [name for name in Metadata.model_fields if f"`{name}`" not in page]
    assert not missing


def test_the_graph_has_the_weights_by_name_and_digest_only(
    session: engines.Session, made: Path
) -> None:
    """The classic engine's has none; they are in deploy_params.bin."""
    if session.engine == engines.CLASSIC:
        assert metadata(made)["files"]["deploy_params.bin"]["bytes"] > 4 * 18
        return
    found = session.call(f"{FUNCTIONS}:graph", {"folder": str(made)})
    weight, turned, bias = found["expected"]
    assert set(found["constants"].values()) in ({weight, bias}, {turned, bias})
    assert found["parameters"].keys() - found["constants"].keys() == {found["input"]}
    assert sorted(found["parameters"].values())[-1] in ([3, 5], [5, 3])
    assert found["inputs"] == 1 and found["weight_bytes"] == 4 * 18


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are Linux's")
@pytest.mark.parametrize("engine", engines.ENGINES)
def test_writing_takes_few_copies_of_the_weights(engine: engines.Engine, tmp_path: Path) -> None:
    """Current TVM serializes them twice, classic TVM three times."""
    if reason := engines.unavailable_reason(engine):
        pytest.skip(reason)
    found = engines.call(engine, f"{FUNCTIONS}:peak_of_writing", {"folder": str(tmp_path / "new")})
    assert found["weights"] >= 200e6 and found["graph"] < 1e6
    most = 3.1 if engine == engines.CLASSIC else 2.1
    assert found["peak"] <= most * found["weights"], f"{found['peak'] / found['weights']:.2f}"
