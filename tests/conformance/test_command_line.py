"""`python -m conformance`: kinds, files of outcomes, and failures tried again."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.__main__ import main
from conformance.cases import Case, Verdict
from conformance.kinds import KINDS
from conformance.results import Results, reasons


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A kind "files" of three cases that files of a folder judge; returns the folder."""

    def cases(dtype: str, samples: int | None) -> Iterator[Case]:
        for name in ("one", "two", "three"):
            yield Case(name, name, {"file": str(tmp_path / name)})

    files = SimpleNamespace(
        TITLE="Files",
        JUDGE=f"{__name__}:read_verdict",
        DTYPES=("float32", "bool"),
        ENGINES=("current",),
        cases=cases,
    )
    monkeypatch.setitem(KINDS, "files", files)
    monkeypatch.chdir(tmp_path)
    for name, verdict in {"one": "right", "two": "refused", "three": "raw"}.items():
        say(tmp_path / name, verdict)
    return tmp_path


def read_verdict(file: str) -> dict[str, str]:
    """A judge that says what its file says."""
    found: dict[str, str] = json.loads(Path(file).read_text())
    return found


def say(file: Path, verdict: str) -> None:
    file.write_text(json.dumps({"verdict": verdict, "reason": f"{verdict} for once"}))


def invoke(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The command's exit code and what it printed; its judges write to the real stderr."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--jobs", "1"])
    assert isinstance(ended.value.code, int)
    return ended.value.code, "".join(capfd.readouterr())


def verdicts(file: Path) -> dict[str, Verdict]:
    return {each.name: each.verdict for each in Results.read(file).outcomes}


@pytest.mark.pages
def test_outcomes_are_kept_and_failures_tried_again(
    kind: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, output = invoke(capfd, "files")
    assert code == 1 and "1 right, 0 wrong, 1 refused, 1 raw" in output
    assert "raw      three: raw for once" in output and "33.3% of 3 right" in output
    file = kind / "runs/conformance/files-float32.json"
    assert verdicts(file) == {"one": "right", "two": "refused", "three": "raw"}
    assert reasons(Results.read(file).outcomes, "refused") == {"refused for once": 1}

    say(kind / "one", "wrong")  # is not tried again
    say(kind / "three", "right")
    code, _ = invoke(capfd, "--again", str(file), "--verdict", "raw")
    assert code == 0
    assert verdicts(file) == {"one": "right", "two": "refused", "three": "right"}


def test_a_part_of_the_cases_is_kept_only_where_told(
    kind: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _ = invoke(capfd, "files", "--only", "t", "--dtype", "bool", "--json", "found.json")
    assert code == 1 and verdicts(kind / "found.json") == {"two": "refused", "three": "raw"}
    kept = Results.read(kind / "found.json")
    assert kept.untried == 1 and kept.part == "--only t"
    invoke(capfd, "files", "--only", "*w", "--json", "found.json")
    assert verdicts(kind / "found.json") == {"two": "refused"}
    assert not (kind / "runs").exists()


def test_cases_are_drawn_from_those_that_are_named(
    kind: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for seed in ("0", "1", "2"):
        drawn = ("files", "--only", "one", "--draw", "1", "--seed", seed)
        assert "1 right, 0 wrong" in invoke(capfd, *drawn)[1]
    code, said = invoke(capfd, "files", "--only", "four", "--draw", "1")
    assert code == 2 and "no case's name starts so" in said


def test_what_there_is_not_is_told(kind: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "there are operators" in invoke(capfd, "nothing")[1]
    assert "name a kind" in invoke(capfd)[1]
    assert "it has float32, bool" in invoke(capfd, "files", "--dtype", "int8")[1]
