"""The explorer's page: one HTML file with its schedules, styles and script inside."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.writing import write_whole

_TEMPLATE = "explorer.html.j2"


def render(title: str, facts: Sequence[str], schedules: Sequence[Mapping[str, Any]]) -> str:
    """The page as HTML.

    Args:
        title: its heading.
        facts: said in a line under it.
        schedules: see `explored.explored`, one or more.
    """
    import jinja2
    from markupsafe import Markup

    folder = resources.files("tvm_practice.viz") / "page"

    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    # A script element ends at the first "</"; JSON takes "<" as an escape.
    data = json.dumps(list(schedules), separators=(",", ":")).replace("<", "\\u003c")
    return environment.from_string(text(_TEMPLATE)).render(
        title=title,
        facts=facts,
        schedules=schedules,
        css=Markup(text("report.css") + text("explorer.css")),
        javascript=Markup(text("explorer.js")),
        data=Markup(data),
    )


def write(
    file: Path, title: str, facts: Sequence[str], schedules: Sequence[Mapping[str, Any]]
) -> Path:
    """Write the page; returns its file."""
    write_whole(file, render(title, facts, schedules))
    return file
