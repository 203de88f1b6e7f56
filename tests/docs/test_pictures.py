"""Each phase's and lab's page has a picture, and it is what the code draws."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs" / "phases").glob("*.md"), *(ROOT / "docs" / "labs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_its_idea(page: Path) -> None:
    pictures = re.findall(r"!\[[^]]+\]\((.+?)\)", page.read_text())
    assert pictures and all((page.parent / each).is_file() for each in pictures)


@pytest.mark.pages
def test_the_pictures_are_those_of_the_code() -> None:
    draw = [sys.executable, str(ROOT / "scripts" / "draw-pictures"), "--check"]
    drawn = subprocess.run(draw, capture_output=True, text=True, cwd=ROOT)
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr
