"""The container, built and used as the documentation says.

    pytest -m container tests/container

The tests are in the order in which a person would come to them; the last one leaves nothing.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.container.conftest import IMAGE, ROOT, Person
from tvm_practice.course.catalog import phases

pytestmark = [pytest.mark.container, pytest.mark.timeout(3600)]

_MOST_BYTES = 3.5e9
_SERVER = "farm-server"
# Minutes each, unless --quick is asked for.
_LONG = ("manual_schedule", "schedule_analysis", "relay_import", "auto_tune")
_RECORDS = {"classic": "ansor.json", "current": "database_tuning_record.json"}


def _readme_commands() -> list[str]:
    """What the tables of the README's container section say to type."""
    section = (ROOT / "README.md").read_text().partition("\n## With Docker\n")[2]
    section = section.partition("\n## ")[0]
    return re.findall(r"^\| `docker compose ([^`]+)` \|", section, re.MULTILINE)


def _settings(person: Person) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(person.docker("image", "inspect", f"{IMAGE}:cpu"))[0]
    return found


def test_builds_by_itself(person: Person) -> None:
    """The first `run` in a fresh clone builds the image."""
    said = person.run("python", "-c", "import tvm; print(tvm.__version__)")
    assert "0.27.0.post1" in said.splitlines()


def test_cpu_flavour_is_small(person: Person) -> None:
    torch = person.run("python", "-c", "import torch; print('CUDA', torch.version.cuda)")
    assert "CUDA None" in torch, "no CPU build of PyTorch was found, so the CUDA build is in"
    assert _settings(person)["Size"] < _MOST_BYTES


def test_no_root(person: Person) -> None:
    user = _settings(person)["Config"]["User"]
    assert user == f"{person.uid}:{person.gid}"
    assert f"uid={person.uid}(learner) gid={person.gid}(learner)" in person.run("id")
    person.run("sh", "-c", "! touch /etc/written 2>/dev/null")


def test_uid_0_is_refused(person: Person) -> None:
    root = {"UID": "0", "TVM_PRACTICE_IMAGE": f"{IMAGE}-root"}
    said = person.compose("build", "--force-rm", "tvm", status=None, settings=root)
    assert "the container's user cannot be root" in said


def test_both_engines_and_their_health(person: Person) -> None:
    found = json.loads(_json_part(person.run("python", "-m", "tvm_practice.engines", "--json")))
    for facts in found.values():
        assert facts["cuda_in_build"] and not facts["cuda_device"] and facts["llvm"]
    probe = _settings(person)["Config"]["Healthcheck"]["Test"]
    assert probe[0] == "CMD"
    person.run(*probe[1:])
    broken = "pip uninstall --quiet --yes bitblas && ! python /opt/tvm-practice/healthcheck.py"
    assert "classic TVM is not available" in person.run("sh", "-c", broken)


def _json_part(said: str) -> str:
    return said[said.index("{") : said.rindex("}") + 1]


@pytest.mark.parametrize("module", ["te_basics", "auto_tune"])
def test_phase(person: Person, module: str) -> None:
    """The simplest, and the one with the tuners' processes and compilers; test_main has all."""
    quick = [] if module == "te_basics" else ["--quick"]
    said = person.run("python", "-m", f"tvm_practice.{module}", "--solutions", *quick)
    assert "engine classic" in said and "engine current" in said
    assert "not available" not in said


def test_an_export(person: Person) -> None:
    """Tuned, built, verified and measured: what needs the compilers and the tuners' processes."""
    tuned = ["--tuner", "metaschedule", "--tuning-trials", "8", "--artifacts", "runs/mlp"]
    said = person.run(
        "python", "-m", "tvm_practice.run_autotvm", "tvm_practice.models:load_mlp", *tuned
    )
    assert "verified" in said
    metadata = json.loads((person.folder / "runs" / "mlp" / "metadata.json").read_text())
    assert metadata["verification"]["verified"] and metadata["tuning"]["trials"] == 8


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [["--solutions", "--quick"], []], ids=["solutions", "readme"])
def test_main(person: Person, chosen: list[str]) -> None:
    said = person.run("python", "-m", "tvm_practice.main", *chosen)
    assert "ResNet-18" in said and "MLP" in said
    report = json.loads((person.folder / "runs" / "report.json").read_text())
    assert report["failures"] == []


@pytest.mark.slow
@pytest.mark.parametrize("module", _LONG)
def test_a_phase_in_full(person: Person, module: str) -> None:
    person.run("python", "-m", f"tvm_practice.{module}")


@pytest.mark.slow
def test_the_integration_guide_from_the_top(person: Person) -> None:
    """Its commands and programs in order; no error that its page does not announce."""
    material = ("tests/docs/test_material.py", "-k", "integration", "-m", "")
    person.run("pytest", "-q", *material)


@pytest.mark.parametrize("command", _readme_commands())
def test_readme(person: Person, command: str) -> None:
    """Each command of the README's tables works; the long ones, here short, are above in full."""
    if command.endswith("tvm bash"):
        screen = person.on_terminal("bash", typed="exit\n", until="Start")
        assert re.search(r"Engines +classic 0\.17\S* .*, current 0\.27\S* ", screen), screen
        assert re.search(r"^Threads +\d+ ", screen, re.MULTILINE), screen
        assert re.search(r"^Start +python -m tvm_practice\.te_basics", screen, re.MULTILINE), screen
        return
    words = command.split()
    if words[0] == "run":  # no terminal here
        words.insert(1, "-T")
    module = words[-1].removeprefix("tvm_practice.")
    if module == "main":
        # Of one trial alone each may fail: candidates are drawn, and some take long to compile.
        words += ["--model", "mlp", "--trials", "4"]
    elif module in _LONG:
        words += ["--quick"]
    person.compose(*words)


def test_readme_has_commands() -> None:
    kinds = {command.split()[0] for command in _readme_commands()}
    assert kinds == {"build", "run", "down"}
    assert len(_readme_commands()) >= 10


def test_ipython_names_both_engines(person: Person) -> None:
    said = person.run("ipython", "--no-banner", "-c", "print(activate, describe)")
    assert 'activate("classic")' in said and 'activate("current")' in said
    assert "<function activate" in said


def test_the_first_line_comes_before_anything_slow(person: Person) -> None:
    """What `main` prints first does not wait for a package that takes seconds to import."""
    main = "python -X importtime -m tvm_practice.main --solutions --quick"
    running = person.start("sh", "-c", f"exec {main} 2>&1")
    assert running.stdout is not None
    imported = line = ""
    for line in running.stdout:
        if not line.startswith("import time:"):
            break
        imported += line
    for each in person.left_overs()["containers"]:
        person.docker("rm", "-f", each)
    running.communicate(timeout=60)
    assert "tvm-practice (the reference solutions)" in line
    assert re.search(r" tvm_practice$", imported, re.MULTILINE)
    assert not re.search(r" (tvm|torch|numpy)$", imported, re.MULTILINE)


@pytest.mark.parametrize(
    "chosen",
    [
        # An engine each, PyTorch and the importers; what else is graded starts what tests above do.
        pytest.param(
            ["tests/test_course.py", "-k", "test_solution", "-m", "phase1 or phase4"],
            id="solutions",
        ),
        pytest.param(["-m", "not slow"], id="all", marks=pytest.mark.slow),
    ],
)
def test_fast_tests(person: Person, chosen: list[str]) -> None:
    said = person.run("pytest", "-q", "-n", "2", *chosen)
    assert " passed" in said


def test_files_belong_to_the_person(person: Person) -> None:
    """All that the tests above wrote beside the sources."""
    assert (person.folder / "runs").is_dir()
    strange = [
        str(path)
        for path in person.folder.rglob("*")
        if (path.lstat().st_uid, path.lstat().st_gid) != (person.uid, person.gid)
    ]
    assert strange == []


def test_tree_of_somebody_else(person: Person) -> None:
    """A tree that cannot be written to is worked on as a copy, and says so."""
    before = {path: path.stat().st_mtime_ns for path in person.folder.iterdir()}
    person.folder.chmod(0o555)
    shutil.chown(person.folder, os.getuid(), os.getgid())
    try:
        said = person.run("sh", "-c", "touch runs/kept && python -m tvm_practice.te_basics --quick")
        again = person.run("ls", "runs")
    finally:
        shutil.chown(person.folder, person.uid, person.gid)
        person.folder.chmod(0o755)
    assert "working on a copy" in said and "Whose files" in said
    assert "kept" in again.split()
    assert {path: path.stat().st_mtime_ns for path in person.folder.iterdir()} == before


def test_editing_a_phase_rebuilds_nothing(person: Person) -> None:
    person.compose("build", "tvm")
    image = _settings(person)["Id"]
    with (person.folder / "tvm_practice" / "te_basics.py").open("a") as file:
        file.write("\nEDITED = True\n")
    person.compose("build", "tvm")
    assert _settings(person)["Id"] == image
    edited = "from tvm_practice import te_basics; print('edited', te_basics.EDITED)"
    assert "edited True" in person.run("python", "-c", edited)


def test_limits(person: Person) -> None:
    threads = "from tvm_practice.engines import thread_count; print('threads', thread_count())"
    assert "threads 1" in person.run("python", "-c", threads, TVM_CPUSET="0")
    assert "threads 3" in person.run("python", "-c", threads, TVM_NUM_THREADS="3")
    limit = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null"
    said = person.run("sh", "-c", f"{limit}; true", TVM_MEMORY="1g")
    assert str(2**30) in said.split()


def test_pip_cache_and_records_are_volumes(person: Person) -> None:
    person.run("sh", "-c", "touch ~/.cache/pip/kept ~/records/kept")
    said = person.run("sh", "-c", "ls ~/.cache/pip ~/records")
    assert said.split().count("kept") == 2


@pytest.fixture
def lab(person: Person) -> Iterator[tuple[str, str]]:
    """The address and the token of a running lab."""
    person.compose("up", "-d", "lab")
    address = f"http://127.0.0.1:{person.environment['LAB_PORT']}"
    for _ in range(120):
        token = re.search(r"token=(\w+)", person.compose("logs", "lab"))
        if token and _answers(f"{address}/api"):
            yield address, token[1]
            break
        time.sleep(1)
    else:
        pytest.fail(person.compose("logs", "lab"))
    person.compose("rm", "-sf", "lab")


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except OSError:
        return False
    return True


def test_lab(person: Person, lab: tuple[str, str]) -> None:
    """It wants its token, listens on loopback only, and its notebooks call the phases."""
    address, token = lab
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{address}/api/contents", timeout=10)
    asking = urllib.request.Request(
        f"{address}/api/contents/notebooks", headers={"Authorization": f"token {token}"}
    )
    with urllib.request.urlopen(asking, timeout=10) as answer:
        names = [each["name"] for each in json.load(answer)["content"]]
    expected = [f"{phase.number}-{phase.module}.ipynb" for phase in phases()]
    assert sorted(names) == expected
    published = person.compose("port", "lab", "8888").strip()
    assert published == f"127.0.0.1:{person.environment['LAB_PORT']}"

    notebook = f"notebooks/{expected[0]}"
    done = json.loads(
        _json_part(
            person.compose(
                *("exec", "-T", "lab", "sh", "-c"),
                f"jupyter nbconvert --to notebook --execute --stdout {notebook} 2>/dev/null",
            )
        )
    )
    outputs = [output for cell in done["cells"] for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    text = "".join(line for output in outputs for line in output.get("text", []))
    assert "Phase 1" in text and "te_basics.matmul is to do" in text


@pytest.mark.parametrize(("engine", "tuner"), [("classic", "Ansor"), ("current", "MetaSchedule")])
def test_farm_survives_a_server(person: Person, engine: str, tuner: str) -> None:
    """A server of two is killed in the middle: tuning goes on, and no trial done is lost."""
    trials = 32
    person.compose("up", "-d", "--scale", f"{_SERVER}=2", _SERVER)
    servers = person.compose("ps", "-q", _SERVER).split()
    assert len(servers) == 2
    status = ["python", "-m", "tvm_practice.farm", "status", "--engine", engine]
    for _ in range(60):
        known = person.compose("run", "--rm", "-T", "tvm", *status, status=None)
        if len(re.findall(r"\d+\.\d+\.\d+\.\d+:\d+", known)) == 2:
            break
        time.sleep(2)
    else:
        pytest.fail(person.compose("logs", "farm-tracker", _SERVER))

    folder = f"runs/farm-{engine}"
    tune = ["python", "-m", "tvm_practice.farm", "tune", "--engine", engine, "--size", "128"]
    tuning = person.start(*tune, "--trials", str(trials), "--out", folder)
    assert tuning.stdout is not None
    said, done = "", 0
    for line in tuning.stdout:
        said += line
        if progress := re.match(rf"{tuner}: (\d+) of {trials} trials", line):
            done = int(progress[1])
            break
    records = person.folder / folder / engine / _RECORDS[engine]
    finished = records.read_text()
    person.docker("kill", servers[1])
    said += tuning.communicate(timeout=1800)[0]
    assert tuning.returncode == 0, said
    assert 0 < done <= len(finished.splitlines()) < trials, said

    assert records.read_text().startswith(finished)
    assert len(records.read_text().splitlines()) == trials
    summary = re.search(rf"^{engine}: (\d+) trials measured, (\d+) failed", said, re.MULTILINE)
    assert summary, said
    measured, failed = int(summary[1]), int(summary[2])
    # Each server measures one trial at a time, so the dead one took no more than that with it.
    assert measured + failed == trials and failed <= 1, said


def test_down_leaves_nothing(person: Person) -> None:
    person.compose("up", "-d", _SERVER, "lab")
    assert all(person.left_overs().values())
    person.compose("down", "-v")
    assert person.left_overs() == {"containers": [], "volumes": [], "networks": []}


def _inputs_digest() -> str:
    """Of what decides which packages an image has, and how it is built."""
    inputs = hashlib.sha256(os.environ.get("PYTHON_VERSION", "").encode())
    for name in (
        ".dockerignore",
        "Dockerfile",
        "constraints.txt",
        "docker/install-packages",
        "docker/requirements-lab.txt",
        "pyproject.toml",
        "requirements-classic.txt",
        "scripts/install-torch",
    ):
        inputs.update((ROOT / name).read_bytes())
    return inputs.hexdigest()[:16]


@pytest.fixture
def once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Skips a test that passed before with the same inputs of the image."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tvm-practice"
    stamp = cache / f"{request.node.name}-{_inputs_digest()}"
    if stamp.exists():
        pytest.skip(f"it passed with these inputs: {stamp}")
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed == failed_before:
        cache.mkdir(parents=True, exist_ok=True)
        stamp.touch()


@pytest.mark.slow
@pytest.mark.usefixtures("once")
def test_cuda_flavour(person: Person) -> None:
    """PyTorch's CUDA build and both TVMs, which without a driver run on the CPU."""
    try:
        person.compose("build", "tvm-gpu")
        command = (
            "python -c 'import torch; print(\"CUDA\", torch.version.cuda)'"
            " && python -m tvm_practice.te_basics --solutions"
        )
        said = person.docker(
            *("run", "--rm", "-v", f"{person.folder}:/workspace", f"{IMAGE}:cuda"),
            *("sh", "-c", command),
        )
        assert re.search(r"CUDA \d+\.", said)
        assert "engine classic" in said and "engine current" in said
    finally:
        subprocess.run(["docker", "rmi", "-f", f"{IMAGE}:cuda"], check=False)


@pytest.mark.slow
@pytest.mark.usefixtures("once")
def test_builds_without_the_client(person: Person) -> None:
    """Compose v1's `run` sends files to the builder itself, by its own reading of .dockerignore."""
    itself = {"COMPOSE_DOCKER_CLI_BUILD": "0"}
    person.compose("build", "tvm", settings=itself)
    found = json.loads(_json_part(person.run("python", "-m", "tvm_practice.engines", "--json")))
    assert all("version" in facts for facts in found.values())


def _buildkit_client() -> str | None:
    """A Docker client that builds with BuildKit; newer ones need the buildx plugin for it."""
    for client in filter(None, (shutil.which("docker"), "/usr/bin/docker")):
        if not Path(client).exists():
            continue
        build = subprocess.run(
            [client, "build", "--quiet", "-"],
            input="FROM scratch\nLABEL tried=buildkit\n",
            env={**os.environ, "DOCKER_BUILDKIT": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if build.returncode == 0:
            return client
    return None


@pytest.mark.slow
@pytest.mark.usefixtures("once")
def test_builds_with_buildkit(person: Person) -> None:
    """The other builder, whose cache mounts Compose v1 does not reach by default."""
    client = _buildkit_client()
    if client is None:
        pytest.skip("no Docker client here builds with BuildKit")
    image = f"{IMAGE}:buildkit"
    arguments = [
        argument
        for name in ("PYTHON_VERSION", "PIP_FIND_LINKS", "TORCH_INDEX_URL", "PIP_INDEX_URL")
        if name in os.environ
        for argument in ("--build-arg", f"{name}={os.environ[name]}")
    ]
    try:
        subprocess.run(
            [client, "build", "--tag", image, *arguments, "."],
            cwd=person.folder,
            env={**os.environ, "DOCKER_BUILDKIT": "1"},
            check=True,
        )
        found = json.loads(
            person.docker("run", "--rm", image, "python", "-m", "tvm_practice.engines", "--json")
        )
        assert all("version" in facts for facts in found.values())
    finally:
        subprocess.run(["docker", "rmi", "-f", image], check=False)
