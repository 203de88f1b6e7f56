"""The explorer's page in a browser."""

import json
import re
from pathlib import Path

import pytest

from tests.browser import opened
from tests.conftest import Processes
from tests.pages import run_blocks
from tests.test_command_lines import run
from tvm_practice import engines

pytestmark = pytest.mark.pages
_MOST_BYTES = 2_000_000


@pytest.fixture(scope="module")
def tuned_file(tmp_path_factory: pytest.TempPathFactory, process_of: Processes) -> Path:
    """The page of a tuned schedule, whose last TIR is the one that was recorded."""
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "out" / "records").mkdir(parents=True)
    text = process_of(engines.CURRENT).call(
        "tests.viz.explorer.functions:record",
        {"folder": str(folder / "out" / "records"), "size": 64},
    )
    done = run("viz", "explore", "--records", "out", "--out", "page.html", folder=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert all(json.dumps(line)[1:-1].replace("<", "\\u003c") in page for line in text[3:])
    refused = run("viz", "explore", "--records", "out", "--task", "other", folder=folder)
    assert refused.returncode == 2 and "no task other" in refused.stderr
    return folder / "page.html"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explorer")
    done = run("viz", "explore", "--size", "64", "--out", "page.html", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "written to page.html" in done.stdout
    return folder / "page.html"


def test_it_is_one_small_file(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert len(text.encode()) <= _MOST_BYTES
    assert "src=" not in text and "@import" not in text and "<link" not in text


def _marked(page: object, pane: str) -> int:
    return page.locator(f"[data-pane={pane}] .hit, [data-pane={pane}] .near").count()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("name", ["naive", "tiled", "packed", "tuned"])
def test_pointing_marks_the_other_panes(page_file: Path, tuned_file: Path, name: str) -> None:
    with opened(tuned_file if name == "tuned" else page_file) as (page, errors):
        if name != "tuned":
            page.get_by_role("tab", name=name, exact=True).click()
        steps = page.locator("[data-pane=step] .line").count()
        for step in range(2, steps + 1):  # the first is the function as declared
            page.locator(f"#step-{step}").hover()
            assert all(_marked(page, pane) for pane in ("tir", "llvm", "asm")), step
        statement = page.locator("[data-pane=tir] .line", has_text=re.compile(r"\+ A")).last
        statement.hover()
        assert _marked(page, "llvm") and _marked(page, "asm")
        page.locator("[data-pane=asm] .hit").last.hover()
        assert "hit" in (statement.get_attribute("class") or "").split()
        assert steps == 1 or _marked(page, "step")
        assert not errors, errors


def test_a_click_shows_the_step_and_keys_do_what_pointing_does(page_file: Path) -> None:
    with opened(page_file) as (page, errors):
        page.get_by_role("tab", name="tiled", exact=True).click()
        assert "for i_1 in" in page.locator("[data-pane=tir]").inner_text()
        page.locator("#step-1").click()
        assert "for i_1 in" not in page.locator("[data-pane=tir]").inner_text()
        page.keyboard.press("Escape")
        page.locator("[data-pane=asm] .lines").focus()
        for _ in range(30):
            page.keyboard.press("ArrowDown")
        assert page.locator("#asm-30.from").count() == 1
        assert _marked(page, "llvm")
        assert not errors, errors


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_fits_its_window(page_file: Path, width: int, scheme: str) -> None:
    with opened(page_file, width=width, scheme=scheme) as (page, errors):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("tab", name="packed", exact=True).click()
        page.locator("#step-2").click()  # a tap
        assert all(_marked(page, pane) for pane in ("tir", "llvm", "asm"))
        for pane in ("step", "tir", "llvm", "asm"):
            box = page.locator(f"[data-pane={pane}] .lines").bounding_box()
            assert box and box["height"] > 100 and box["width"] > 180
        assert not errors, errors


def test_the_commands_of_its_page(tmp_path: Path) -> None:
    printed = run_blocks(
        "explorer.md",
        tmp_path,
        smaller=lambda text: text.replace("--size 128", "--size 64").replace(
            "viz rank", "viz rank --schedules 8 --size 64 --seconds 1"
        ),
    )
    assert "packed: " in printed[0] and "loops, misses and time" in printed[1]
    assert {each.name for each in tmp_path.iterdir()} == {"matmul.html", "rank.json", "rank.svg"}
