"""What other material on TVM has people type, in its order, each in this project's terms.

`material/*.md` hold an entry for each of its commands and snippets: what to run and what to expect
of it, or which test has it.
"""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import pages
from tests.pages import ROOT
from tvm_practice import engines
from tvm_practice.tvm_export.cuda import NO_COMPILER, compiler

MATERIAL = sorted(Path(__file__).with_name("material").glob("*.md"))
_ENTRY = re.compile(
    r"^## (?P<number>\d+) (?P<title>[^\n]+)\n"
    r"(?:elsewhere: (?P<elsewhere>\S+)\n"
    r"|(?:needs: (?P<needs>\w+)\n)?expect: (?P<code>\d+), (?P<pattern>[^\n]+)\n"
    r"```(?P<language>bash|python)\n(?P<text>.*?)^```\n)",
    flags=re.DOTALL | re.MULTILINE,
)
_PROGRAMS = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}


@dataclass(frozen=True)
class Entry:
    """A command or snippet.

    Attributes:
        number: in the order of the material.
        title: what it shows.
        elsewhere: the test that has it, from the root; None if it is run here.
        needs: classic, nvrtc or onnx, without which it cannot run, or nogpu, which a GPU would make
            another program of; None for none of these.
        code: the exit code to expect.
        pattern: what the output must match.
        language: bash or python.
        text: the program.
    """

    number: int
    title: str
    elsewhere: str | None
    needs: str | None
    code: int
    pattern: str
    language: str
    text: str


def entries(file: Path) -> Iterator[Entry]:
    """The entries of a file of `material`."""
    for found in _ENTRY.finditer(file.read_text()):
        yield Entry(
            int(found["number"]),
            found["title"],
            found["elsewhere"],
            found["needs"],
            int(found["code"] or 0),
            found["pattern"] or "",
            found["language"] or "",
            found["text"] or "",
        )


def _missing(needs: str | None) -> str | None:
    """Why an entry cannot run here, in a line; None if it can."""
    if needs in ("classic", "nvrtc") and (reason := engines.unavailable_reason("classic")):
        return reason
    if needs == "nvrtc" and compiler() is None:
        return NO_COMPILER
    if needs == "onnx" and importlib.util.find_spec("onnxruntime") is None:
        return "no onnxruntime"
    if needs == "nogpu" and Path("/dev/nvidiactl").exists():
        return "there is a GPU"
    return None


def _run(entry: Entry, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {
        **pages.environment(),
        "WITHOUT_CLASSIC": str(ROOT / "tests" / "without_classic"),
        "COLUMNS": "80",
    }
    return subprocess.run(
        [*_PROGRAMS[entry.language], entry.text],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,  # on a busy machine
    )


@pytest.mark.parametrize("file", MATERIAL, ids=lambda file: file.stem)
def test_every_entry_is_read_and_what_is_elsewhere_exists(file: Path) -> None:
    found = list(entries(file))
    headings = re.findall(r"^## ", file.read_text(), flags=re.MULTILINE)
    assert [each.number for each in found] == list(range(1, len(headings) + 1))
    for each in found:
        assert each.elsewhere is None or (ROOT / each.elsewhere).exists(), each.elsewhere


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.timeout(1800)  # twenty programs in turn, each with a limit of its own
@pytest.mark.parametrize("file", MATERIAL, ids=lambda file: file.stem)
def test_the_material_in_order(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every entry in one folder, since later ones use what earlier ones wrote."""
    lines, problems = [], []
    for entry in entries(file):
        if entry.elsewhere:
            lines.append(f"{entry.number:3} {entry.title}: by {entry.elsewhere}")
            continue
        if reason := _missing(entry.needs):
            lines.append(f"{entry.number:3} {entry.title}: not run here, {reason}")
            continue
        done = _run(entry, tmp_path)
        lines.append(f"{entry.number:3} {entry.title}: run")
        if done.returncode != entry.code or not re.search(entry.pattern, done.stdout):
            said = f"exit code {done.returncode}\n{done.stdout[-2000:]}"
            problems.append(f"{entry.number} {entry.title}: {said}")
    total = len(re.findall(r"^## ", file.read_text(), flags=re.MULTILINE))
    with capsys.disabled():
        print(f"\n{file.stem}: {len(lines)} of {total}, {len(lines) / total:.0%}", *lines, sep="\n")
    assert len(lines) == total
    assert not problems, "\n\n".join(problems)
