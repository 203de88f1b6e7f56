"""One phase's slides, as one HTML file."""

import base64
import re
from pathlib import Path
from typing import Any

from tvm_practice.course.catalog import Phase
from tvm_practice.course.slides.splitting import parser, split
from tvm_practice.course.telling import page_of

_TEMPLATE = Path(__file__).with_name("deck.html.j2")
_KINDS = {".svg": "svg+xml", ".png": "png"}


def to_html(phase: Phase) -> str:
    """The deck made of the phase's page. Raises OSError where the page cannot be read."""
    import jinja2

    page = page_of(phase)
    markdown = parser()
    slides: list[dict[str, Any]] = []
    for slide in split(page.read_text(encoding="utf-8")):
        body = _offline(markdown.render("\n\n".join(slide.parts)), page.parent)
        title = markdown.renderInline(slide.title)
        slides.append({"title": title, "body": body, "opens": slide.level == 1})
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(title=f"{phase.heading}: {phase.title}", slides=slides) + "\n"


def _offline(html: str, folder: Path) -> str:
    """Pictures as part of the file; links to other pages as plain text."""

    def inline(found: "re.Match[str]") -> str:
        file = folder / found[1]
        content = base64.b64encode(file.read_bytes()).decode()
        return f'src="data:image/{_KINDS[file.suffix]};base64,{content}"'

    html = re.sub(r'src="(?!data:|https?:)([^"]+)"', inline, html)
    return re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r"\1", html, flags=re.DOTALL)
