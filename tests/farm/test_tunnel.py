"""A farm of two machines that reach each other by SSH alone: the commands of docs/container.md.

Each machine is a network namespace with a loopback of its own; a cable joins the two.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tvm_practice.engines import ENGINES, Engine, unavailable_reason
from tvm_practice.farm.servers import SERVER_PORTS, TRACKER_PORTS

PAGE = Path(__file__).parent.parent.parent / "docs/container.md"
FARM = [sys.executable, "-m", "tvm_practice.farm"]
SSH_PORT = "2222"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "TVM_PRACTICE_TRACKER"}


class Machine:
    """A network namespace of its own, and the processes started in it.

    Args:
        name: of the namespace.
        address: of its end of the cable.
        folder: that its commands run in.
    """

    def __init__(self, name: str, address: str, folder: Path) -> None:
        self.name, self.address, self.folder = name, address, folder

    def command(self, words: Sequence[str]) -> list[str]:
        """The command, run on this machine."""
        return ["ip", "netns", "exec", self.name, *words]

    @contextmanager
    def running(self, words: Sequence[str]) -> Iterator[Path]:
        """A command that runs until the block ends; yields the file of what it prints."""
        log = self.folder / f"{self.name}-{Path(words[0]).name}-{time.monotonic_ns()}.log"
        with log.open("w") as out:
            child = subprocess.Popen(
                self.command(words), cwd=self.folder, env=ENVIRONMENT, stdout=out, stderr=out
            )
        try:
            yield log
        finally:
            child.terminate()
            child.wait(timeout=60)

    def run(self, words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """A command that ends by itself, with what it printed."""
        return subprocess.run(
            self.command(words), cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip

    def answers(self, host: str, port: int) -> bool:
        """Whether this machine reaches that port."""
        connect = f"import socket; socket.create_connection(({host!r}, {port}), 2)"
        return self.run([sys.executable, "-c", connect]).returncode == 0


def _ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True, capture_output=True)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    """The tracker's machine, which lets SSH in, and one that measures."""
    if missing := [each for each in ("ip", "ssh", "sshd", "ssh-keygen") if not shutil.which(each)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    number, folder = os.getpid(), tmp_path_factory.mktemp("tunnel")
    tracker = Machine(f"tracker-{number}", "192.0.2.1", folder)
    measuring = Machine(f"measuring-{number}", "192.0.2.2", folder)
    with ExitStack() as stack:
        for each in (tracker, measuring):
            made = subprocess.run(["ip", "netns", "add", each.name], capture_output=True, text=True)
            if made.returncode:
                pytest.skip(f"no network namespace: {made.stderr.strip()}")
            stack.callback(_ip, f"netns delete {each.name}")
        ends = {tracker: f"vt{number}", measuring: f"vm{number}"}
        _ip(f"link add {ends[tracker]} type veth peer name {ends[measuring]}")
        for each, end in ends.items():
            _ip(f"link set {end} netns {each.name}")
            _ip(f"-n {each.name} address add {each.address}/24 dev {end}")
            for device in (end, "lo"):
                _ip(f"-n {each.name} link set {device} up")
        yield tracker, measuring


@pytest.fixture(scope="module")
def ssh(machines: tuple[Machine, Machine]) -> Iterator[list[str]]:
    """Options with which `ssh` gets from the measuring machine to the tracker's."""
    tracker, measuring = machines
    folder = tracker.folder
    for key in ("host_key", "user_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True
        )
    configuration = folder / "sshd_config"
    configuration.write_text(
        f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/user_key.pub\n"
        f"Port {SSH_PORT}\nListenAddress {tracker.address}\nStrictModes no\nUsePAM no\n"
        "PidFile none\nPermitRootLogin prohibit-password\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd")
    assert program is not None
    with tracker.running([program, "-D", "-e", "-f", str(configuration)]):
        end = time.monotonic() + 60
        while not measuring.answers(tracker.address, int(SSH_PORT)) and time.monotonic() < end:
            time.sleep(0.1)
        known = ["-o", f"UserKnownHostsFile={folder}/known", "-o", "StrictHostKeyChecking=no"]
        login = ["-p", SSH_PORT, "-i", str(folder / "user_key")]
        yield [*known, *login, "-o", "ExitOnForwardFailure=yes"]


def _page_commands(engine: Engine) -> tuple[list[str], list[str]]:
    """What the page has the measuring machine run: the tunnel's words and the server's."""
    found = re.search(r"^(ssh -N .*) &\npython (-m tvm_practice.farm .*)$", PAGE.read_text(), re.M)
    assert found is not None
    written = [TRACKER_PORTS["current"], SERVER_PORTS["current"].start]
    wanted = [TRACKER_PORTS[engine], SERVER_PORTS[engine].start]
    tunnel, server = found.groups()
    for old, new in zip(written, wanted, strict=True):
        tunnel, server = (text.replace(str(old), str(new)) for text in (tunnel, server))
    server = server.replace("--engine current", f"--engine {engine}")
    return shlex.split(tunnel), [sys.executable, *shlex.split(server)]


@pytest.mark.real_processes
@pytest.mark.slow
@pytest.mark.pages
@pytest.mark.parametrize("engine", ENGINES)
def test_a_machine_measures_through_a_tunnel(
    machines: tuple[Machine, Machine], ssh: list[str], engine: Engine
) -> None:
    """Nothing listens outside the loopbacks, and trials are measured on the other machine."""
    if reason := unavailable_reason(engine):
        pytest.skip(reason)
    tracker, measuring = machines
    tunnel, server = _page_commands(engine)
    port = SERVER_PORTS[engine].start
    reached = [word.replace("user@tracker-machine", f"root@{tracker.address}") for word in tunnel]
    tune = ["tune", "--engine", engine, "--trials", "4", "--size", "32", "--wait", "120"]
    with ExitStack() as stack:
        stack.enter_context(tracker.running([*FARM, "tracker", "--engine", engine]))
        stack.enter_context(measuring.running([reached[0], *ssh, *reached[1:]]))
        log = stack.enter_context(measuring.running(server))
        done = tracker.run([*FARM, *tune, "--out", "records"])
        assert done.returncode == 0, done.stdout + done.stderr + log.read_text()
        assert f"{engine}: 4 trials measured, 0 failed" in done.stdout
        assert tracker.answers("127.0.0.1", port)
        assert not tracker.answers(measuring.address, port)
        assert not measuring.answers(tracker.address, TRACKER_PORTS[engine])
