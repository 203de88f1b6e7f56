"""Tests of the container: asked for by name, on a real engine, as the person would use it."""

import os
import pty
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "tvm-practice-test"
# Whose files the working tree is, where the tests run as root: nobody that exists.
_PERSON = 4321


def _command_works(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    done = subprocess.run(command, capture_output=True, check=False)
    return done.returncode == 0


def _compose() -> list[str]:
    """Compose v2 if the client has it, else v1."""
    if _command_works("docker", "compose", "version"):
        return ["docker", "compose"]
    return ["docker-compose"]


def _why_not() -> str | None:
    if not _command_works("docker", "info"):
        return "no Docker engine answers `docker info`"
    if not _command_works(*_compose(), "version"):
        return "neither `docker compose` nor `docker-compose` is installed"
    return None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "container: builds the image and runs it on a Docker engine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("container")]
    if not marked:
        return
    asked = os.environ.get("TVM_PRACTICE_CONTAINER") == "1" or "container" in str(
        config.getoption("-m")
    )
    reason = _why_not() if asked else "it builds an image; ask for it: pytest -m container"
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


@dataclass(frozen=True)
class Person:
    """Somebody with a fresh clone: `folder`, whose files belong to `uid` and `gid`."""

    folder: Path
    uid: int
    gid: int
    environment: dict[str, str]

    def compose(
        self, *arguments: str, status: int | None = 0, settings: dict[str, str] | None = None
    ) -> str:
        """Run Compose in the clone; returns what it wrote on both streams.

        Args:
            arguments: after `docker compose`.
            status: the exit code that is expected; None takes any.
            settings: environment variables for this call.
        """
        done = subprocess.run(
            [*_compose(), *arguments],
            cwd=self.folder,
            env={**self.environment, **(settings or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=1800,
            text=True,
            check=False,
        )
        if status is not None:
            assert done.returncode == status, f"{arguments}\n{done.stdout[-6000:]}"
        return done.stdout

    def run(self, *command: str, **settings: str) -> str:
        """What `docker compose run --rm tvm COMMAND` prints; it must succeed."""
        return self.compose("run", "--rm", "-T", "tvm", *command, settings=settings)

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """`docker compose run --rm tvm COMMAND`, going on; standard output is a pipe."""
        return subprocess.Popen(
            [*_compose(), "run", "--rm", "-T", "tvm", *command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def on_terminal(self, *command: str, typed: str, until: str, timeout: float = 180) -> str:
        """What the terminal shows while `docker compose run --rm tvm COMMAND` gets `typed`.

        `typed` is sent when `until` is on the screen.
        """
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            [*_compose(), "run", "--rm", "tvm", *command],
            cwd=self.folder,
            env={**self.environment, "TERM": "dumb"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        screen, sent, deadline = "", False, time.monotonic() + timeout
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    screen += os.read(ours, 4096).decode(errors="replace")
                except OSError:  # the other side is closed
                    break
            if until in screen and not sent:
                os.write(ours, typed.encode())
                sent = True
            if child.poll() is not None and sent:
                break
        else:
            child.kill()
        child.wait()
        os.close(ours)
        return screen

    def docker(self, *arguments: str) -> str:
        return subprocess.run(
            ["docker", *arguments], stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    def left_overs(self) -> dict[str, list[str]]:
        """What the engine still holds of this clone's project."""
        mine = f"label=com.docker.compose.project={self.environment['COMPOSE_PROJECT_NAME']}"
        return {
            "containers": self.docker("ps", "-aq", "--filter", mine).split(),
            "volumes": self.docker("volume", "ls", "-q", "--filter", mine).split(),
            "networks": self.docker("network", "ls", "-q", "--filter", mine).split(),
        }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _copy_tree(folder: Path) -> None:
    """What a clone of the working tree would have."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)


@pytest.fixture(scope="session")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """A fresh clone with an image, volumes and networks of its own, removed at the end."""
    folder = tmp_path_factory.mktemp("clone")
    _copy_tree(folder)
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        uid = gid = _PERSON
        subprocess.run(["chown", "-R", f"{uid}:{gid}", str(folder)], check=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TVM_")},
        "UID": str(uid),
        "GID": str(gid),
        "COMPOSE_PROJECT_NAME": f"tvm-practice-test-{os.getpid()}",
        "TVM_PRACTICE_IMAGE": IMAGE,
        "LAB_PORT": str(free_port()),
        # Otherwise Compose v1's `run` and `build` share no layers, and each installs everything.
        "COMPOSE_DOCKER_CLI_BUILD": "1",
        "TVM_PRACTICE_ACCEPT_LOAD": "1",
    }
    someone = Person(folder, uid, gid, environment)
    yield someone
    someone.compose("down", "-v", "--remove-orphans", status=None)
    subprocess.run(["docker", "rmi", "-f", f"{IMAGE}:cpu"], capture_output=True, check=False)
