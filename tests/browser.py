"""Pages opened in headless Chromium, as a person would see them."""

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Nothing is looked up on the network. Chromium refuses a sandbox to root.
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
# Pixels: four lines or so; a column squeezed to a letter makes more.
_MOST_OF_A_ROW = 130


def chromium() -> str:
    """The browser's path; skips the test where there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("Chromium is not installed (CHROMIUM names another place)")
    pytest.importorskip("playwright", reason="pip install playwright")
    return found


@contextmanager
def opened(
    file: Path | str, *, width: int = 1280, height: int = 900, scheme: Any = "light"
) -> Iterator[tuple["Page", list[str]]]:
    """A page and the errors that it has made so far.

    It is a file from the disk, without network, or an address on localhost.
    """
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        try:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                offline=isinstance(file, Path),
            )
            page = context.new_page()
            errors: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))

            def hear(said: "ConsoleMessage") -> None:
                if said.type in ("error", "warning"):
                    errors.append(said.text)

            page.on("console", hear)
            address = file.resolve().as_uri() if isinstance(file, Path) else file
            page.on("request", lambda asked: _local(asked.url, address, errors))
            page.goto(address)
            yield page, errors
        finally:
            browser.close()


def _local(url: str, address: str, errors: list[str]) -> None:
    if not url.startswith(("file:", "data:", "blob:", address)):
        errors.append(f"it asked for {url}")


def is_blank(picture: bytes, *, fewest: int = 8) -> bool:
    """Whether a screenshot has fewer colours than a drawing: text alone has dozens."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    colours = image.getcolors(maxcolors=1 << 24)
    return colours is None or len(colours) < fewest


def require_sound(file: Path) -> None:
    """Assert that a report has no errors, and no picture that is missing, blank or too wide."""
    for width, scheme in ((1280, "light"), (390, "dark")):
        with opened(file, width=width, scheme=scheme) as (page, errors):
            assert not errors, errors
            pictures = page.locator("figure.picture svg, .step:visible svg").all()
            assert pictures
            for each in pictures:
                assert not is_blank(each.screenshot()), each.get_attribute("aria-label")
            for each in page.locator("canvas:visible").all():
                # Its border, what is untouched, what was touched.
                assert not is_blank(each.screenshot(), fewest=3)
            scrolled = page.evaluate("document.documentElement.scrollWidth")
            assert scrolled <= width, f"{scrolled} pixels wide in a window of {width}"
            boxes = [row.bounding_box() for row in page.locator("tr:visible").all()]
            tallest = max((box["height"] for box in boxes if box), default=0)
            assert tallest < _MOST_OF_A_ROW, f"a table's row is {tallest} pixels high"
            page.emulate_media(media="print")
            for tab in page.locator(".steps .tab, .fusion .tab").all():
                assert tab.is_visible()
            assert not errors, errors
