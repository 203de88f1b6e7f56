"""docs/conformance.md, made from outcomes."""

import json
from dataclasses import asdict
from pathlib import Path

from conformance import page
from conformance.cases import Outcome
from conformance.results import Results

_OUTCOMES = (
    Outcome("a", "a 0", "right"),
    Outcome("a", "a 1", "right"),
    Outcome("a", "a 2", "refused", "no x for shape (2, 3, 5); --converters can give it"),
    Outcome("b", "b 0", "refused", "no x for shape (7, 1); --converters can give it"),
    Outcome("b", "b 1", "wrong", "output 0: 4 | 5"),
    Outcome("b", "b 2", "left out", "it takes no tensor"),
)


def test_outcomes_are_counted_by_verdict_and_by_reason() -> None:
    text = page.text([Results.of("operators", "float32", 2, _OUTCOMES, untried=7)])
    assert "| PyTorch's operator database | float32 | 5 | 2 (40.0%) | 2 | 1 | 0 | 1 |" in text
    assert "| 2 | `no x for shape (n, …)` |" in text
    assert "| wrong | `b 1` | `output 0: 4 \\| 5` |" in text
    assert "| 1 | `it takes no tensor` |" in text
    assert "`python -m conformance operators --dtype float32 --samples 2`, 2" in text
    assert "; 7 more cases were not tried." in text
    assert "timm's" not in text


def test_the_page_is_written_from_the_files_of_a_folder(tmp_path: Path) -> None:
    for dtype in ("float32", "bool"):
        results = Results.of("operators", dtype, None, _OUTCOMES[:1])
        results.write(tmp_path / f"operators-{dtype}.json")
        assert Results.read(tmp_path / f"operators-{dtype}.json") == results
        assert json.loads(json.dumps(asdict(results)))["outcomes"]
    page.write(tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert text.count("| 1 (100.0%) | 0 | 0 | 0 | 0 |") == 2
    assert "## PyTorch's operator database" in text and "### Wrong" not in text
