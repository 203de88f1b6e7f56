"""docs/conformance.md, made from outcomes."""

import json
from dataclasses import asdict, replace
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


def test_the_engines_have_rows_and_reasons_of_their_own() -> None:
    current = Results.of("operators", "float32", None, _OUTCOMES)
    classic = Results.of("operators", "float32", None, _OUTCOMES[:3], engine="classic")
    text = page.text([current, classic])
    assert "| PyTorch's operator database | float32, classic engine | 3 | 2 (66.7%) |" in text
    assert "`python -m conformance operators --dtype float32 --engine classic`, 2" in text
    [own] = text.split("### Refused on the classic engine, by reason\n")[1:]
    assert "| 1 | `no x for shape (n, …)` |" in own and "Wrong" not in own
    assert page.text([], text) == text


def test_the_share_of_static_operators_is_of_the_outcomes_that_know() -> None:
    known = [replace(each, is_static=each.group == "a") for each in _OUTCOMES[:5]]
    text = page.text([Results.of("operators", "float32", 2, known)])
    assert "of 1 of these operators (float32). Of their 3 cases, 2 (66.7%) are right.\n" in text
    text = page.text([Results.of("operators", "float32", 2, [*known[:4], _OUTCOMES[4]])])
    assert "2 (66.7%) are right. It is not known of 1 more cases.\n" in text


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


def test_what_was_not_run_here_stays_as_it_was() -> None:
    both = [Results.of(kind, "float32", None, _OUTCOMES) for kind in ("operators", "timm")]
    narrow = Results.of("operators", "bool", None, _OUTCOMES[:2])
    before = page.text([*both, narrow])
    assert page.text([], before) == page.text([*both, narrow], "other") == before

    newer = Results.of("operators", "float32", None, _OUTCOMES[1:])
    after = page.text([newer], before)
    [head] = after.split("## PyTorch's operator database")[:-1]
    for line in (
        "| PyTorch's operator database | float32 | 4 | 1 (25.0%) | 2 | 1 | 0 | 1 | 0 | 2",
        "| PyTorch's operator database | bool | 2 | 2 (100.0%) | 0 | 0 | 0 | 0 | 0 | 2",
        "| timm's families | float32 | 5 | 2 (40.0%) | 2 | 1 | 0 | 1 | 0 | 2",
    ):
        assert line in head
    assert after.partition("## timm")[2] == before.partition("## timm")[2]


def test_cases_that_were_chosen_have_rows_of_their_own() -> None:
    whole = Results.of("operators", "float32", None, _OUTCOMES[:2])
    drawn = Results.of("operators", "float32", None, _OUTCOMES, part="--draw 6 --seed 3")
    before = page.text([whole, drawn])
    row = "| `python -m conformance operators --dtype float32 --draw 6 --seed 3` | 5 | 2 (40.0%) |"
    assert f"{row} 2 | 1 | 0 | 1 | 2" in before
    assert "| PyTorch's operator database | float32 | 2 | 2 (100.0%) |" in before
    assert "| 2 | `no x for shape (n, …)` |" in before
    assert page.text([], before) == before

    masks = Results.of("transformers", "float32", None, _OUTCOMES[:1], part="--only '* mask'")
    after = page.text([masks], before)
    assert row in after and "--only '* mask'` | 1 | 1 (100.0%) | 0 | 0 | 0 | 0 | 2" in after


def test_reasons_of_earlier_draws_stay_beside_those_of_new_ones() -> None:
    def drawn(seed: int, outcomes: tuple[Outcome, ...]) -> Results:
        return Results.of("operators", "float32", None, outcomes, part=f"--draw 6 --seed {seed}")

    before = page.text([drawn(3, _OUTCOMES)])
    other = Outcome("c", "c 0", "refused", "no y")
    after = page.text([drawn(4, (other,))], before)
    command = "`python -m conformance operators --dtype float32 --draw 6 --seed"
    assert f"### Refused by {command} 3`\n\n| cases | reason |\n| --- | --- |\n| 2 | `no x" in after
    assert f"### Wrong and raw by {command} 3`" in after
    assert (
        f"### Refused by {command} 4`\n\n| cases | reason |\n| --- | --- |\n| 1 | `no y`" in after
    )
    assert page.text([], after) == after
    # The same command again: only its own row and reasons are new.
    again = page.text([drawn(3, (*_OUTCOMES[:2], *_OUTCOMES[3:], other))], after)
    assert again.count(f"Refused by {command} 3`") == 1
    assert again.count("`no y`") == 2 and again.count("`no x for shape (n, …)`") == 1


def test_a_row_is_not_written_from_fewer_outcomes_than_it_counts() -> None:
    whole = Results.of("operators", "float32", None, _OUTCOMES, untried=7)
    drawn = Results.of("operators", "float32", None, _OUTCOMES, part="--draw 6 --seed 3")
    before = page.text([whole, drawn])
    fewer = Results.of("operators", "float32", 1, _OUTCOMES[:2], untried=11)
    cut = replace(drawn, outcomes=_OUTCOMES[:3])
    assert page.text([fewer, cut], before) == before
    # All cases there are, though they are fewer: PyTorch has dropped some.
    assert page.text([replace(fewer, untried=0)], before) != before
    more = replace(whole, outcomes=(*_OUTCOMES, Outcome("c", "c 0", "right")), untried=6)
    assert "| 6 | 3 (50.0%) | 2 | 1 | 0 | 1 | 6 |" in page.text([more, drawn], before)
