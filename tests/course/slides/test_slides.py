"""`tvm-practice slides`: nothing of a page is lost, and each slide fits."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.browser import opened
from tvm_practice.course.__main__ import main
from tvm_practice.course.catalog import PHASE_MODULES, phase
from tvm_practice.course.slides.making import to_html
from tvm_practice.course.slides.splitting import split

_FITS = """() => [...document.querySelectorAll("section")].filter(slide =>
    slide.scrollHeight > slide.clientHeight || slide.scrollWidth > slide.clientWidth ||
    [...slide.querySelectorAll("pre, table")].some(each => each.scrollWidth > each.clientWidth + 1)
).map(slide => slide.id)"""


def test_a_heading_is_a_slide_and_a_folded_answer_another() -> None:
    page = (
        "# Phase\n\nWords.\n\n## Question\n\nWhy?\n\n"
        '<details markdown="1">\n<summary>Answer</summary>\n\nBecause.\n\n</details>\n'
    )
    shown = [(each.title, each.parts) for each in split(page)]
    assert shown == [
        ("Phase", ["Words."]),
        ("Question", ["Why?"]),
        ("Question: answer", ["Because."]),
    ]


def test_long_text_tables_and_code_go_on_on_the_next_slide() -> None:
    rows = [f"| row {n} | {n} |" for n in range(40)]
    code = [f"for i in serial({n}):\n    C" for n in range(30)]
    words = [f"Paragraph {n}. " + "word " * 60 for n in range(12)]
    page = "\n".join(
        ["# Long", "", *"\n\n".join(words).split("\n"), "", "| a | b |", "|---|---|", *rows]
        + ["", "```text", *code, "```"]
    )
    slides = split(page)
    assert len(slides) > 6 and {each.title for each in slides} == {"Long"}
    text = "\n".join(part for each in slides for part in each.parts)
    for line in (*rows, *"\n".join(code).split("\n")):
        assert line in text
    assert text.count("| a | b |") > 1 and text.count("```text") > 1
    assert all(f"Paragraph {n}." in text for n in range(12))


@pytest.mark.parametrize("module", PHASE_MODULES)
def test_no_word_of_a_page_is_lost(module: str) -> None:
    page = Path(__file__).parents[3] / phase(module).page
    slides = split(page.read_text(encoding="utf-8"))
    text = " ".join(f"{each.title} {' '.join(each.parts)}" for each in slides)
    words = re.sub(r"</?details[^>]*>|<summary>.*</summary>", " ", page.read_text(encoding="utf-8"))
    words = re.sub(r"^#+ ", "", words, flags=re.MULTILINE)
    assert sorted({*words.split()} - {*text.split()}) == []


def test_the_command_names_the_file_or_the_page_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(main, ["slides", "1"])
    assert re.fullmatch(r"slides/1-te_basics\.html: \d+ slides\n", made.output)
    monkeypatch.setenv("TVM_PRACTICE_FILES", str(tmp_path / "nowhere"))
    failed = CliRunner().invoke(main, ["slides", "2"])
    assert failed.exit_code == 1 and "2-manual_schedule.md" in failed.output
    assert len(list((tmp_path / "slides").iterdir())) == 1


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize("module", [*PHASE_MODULES, "bug_hunts", "labs.compilers_compared"])
def test_every_slide_fits_is_reached_by_keys_and_is_a_printed_page(
    module: str, tmp_path: Path
) -> None:
    file = tmp_path / "deck.html"
    file.write_text(to_html(phase(module)), encoding="utf-8")
    with opened(file, width=1280, height=720) as (page, errors):
        count = page.locator("section").count()
        assert count > 5 and page.evaluate(_FITS) == []
        for key, top in (("ArrowRight", 720), ("ArrowDown", 1440), ("ArrowLeft", 720)):
            page.keyboard.press(key)
            page.wait_for_function(f"Math.abs(scrollY - {top}) < 2")
        page.keyboard.press("End")
        page.wait_for_function(f"Math.abs(scrollY - {720 * (count - 1)}) < 2")
        printed = page.pdf(prefer_css_page_size=True)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == count
        assert not errors, errors
    with opened(file, width=390) as (page, errors):
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('p')).fontSize)")
        assert size >= 16 and not errors, errors
