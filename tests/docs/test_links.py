"""Links of the pages: their form, and that what they name in the repository exists. No network."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.test_fences import PAGES
from tests.pages import ROOT, page_file

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", flags=re.DOTALL | re.MULTILINE)


def _text(page: Path) -> str:
    """A page without its code."""
    return _CODE.sub("", page.read_text())


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site's generator makes them."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(), flags=re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in headings]
    slugs = [re.sub(r"[^\w\s-]", "", each).strip().lower() for each in plain]
    return {re.sub(r"[-\s]+", "-", each) for each in slugs}


def problems(page: Path) -> list[str]:
    """What is wrong with the links of a page."""
    found = []
    for target in _LINK.findall(_text(page)):
        parts = urlsplit(target)
        if parts.scheme:
            host = parts.hostname or ""
            if parts.scheme != "https" or "." not in host or "//" in parts.path:
                found.append(f"{target} is not an https address")
            continue
        file = page if not parts.path else (page.parent / parts.path).resolve()
        if not file.exists():
            found.append(f"{target} does not exist")
        elif parts.fragment and file.suffix == ".md" and parts.fragment not in _anchors(file):
            found.append(f"{target} names no heading")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    assert problems(page_file(page)) == []


def test_a_bad_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "p.md"
    page.write_text(
        "# One two\n[a](http://x.org) [b](https://nowhere) [c](q.md) [d](#one-two) [e](#three)\n"
        "`[f](r.md)`\n"
    )
    assert [each.split()[0] for each in problems(page)] == [
        "http://x.org", "https://nowhere", "q.md", "#three",
    ]  # fmt: skip


def test_the_gpus_table_has_the_figures_that_the_lab_computes_with() -> None:
    from tvm_practice.labs.gpu.occupancy import GPUS

    text = (ROOT / "docs" / "guides" / "concepts.md").read_text()

    def row(title: str) -> list[str]:
        [cells] = re.findall(rf"^\| {re.escape(title)} \| (.+) \|$", text, flags=re.MULTILINE)
        return [each.strip("` ") for each in cells.split("|")]

    def kib(sizes: list[int]) -> list[str]:
        return [f"{each // 1024} KiB" for each in sizes]

    assert row("architecture") == [each.arch for each in GPUS]
    assert row("multiprocessors") == [str(each.multiprocessors) for each in GPUS]
    registers = [4 * each.registers_per_sm for each in GPUS]
    assert row("registers per multiprocessor") == kib(registers)
    assert row("of that, shared memory at most") == kib([each.shared_per_sm for each in GPUS])
    per_block = [each.shared_per_block for each in GPUS]
    assert row("shared memory of one thread block at most") == kib(per_block)
