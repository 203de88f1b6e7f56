"""docs/guides/names.md, from the names in names.txt.

python -m tests.docs.names      write the page anew
"""

from pathlib import Path

from tests.pages import ROOT

DATA = Path(__file__).with_name("names.txt")
PAGE = ROOT / "docs" / "guides" / "names.md"
HEAD = """# Names in other material

Other material on TVM uses other names, from an older TVM or other scripts. The tables give their
equivalents here. `python -m tests.docs.names` makes this page from `tests/docs/names.txt`; a test
looks up every name on the right.
"""


def sections() -> dict[str, list[tuple[str, str]]]:
    """The rows of each table: the name there and the name here, as Markdown."""
    found: dict[str, list[tuple[str, str]]] = {}
    rows: list[tuple[str, str]] = []
    for line in DATA.read_text().splitlines():
        if line.startswith("## "):
            rows = found[line[3:]] = []
        elif line and not line.startswith("#"):
            there, _, here = line.partition(" | ")
            rows.append((there, here))
    return found


def page() -> str:
    """The whole page."""
    tables = [
        "\n".join([f"## {title}", "", "| there | here |", "|---|---|", *map(_row, rows), ""])
        for title, rows in sections().items()
    ]
    return "\n".join([HEAD, *tables])


def _row(row: tuple[str, str]) -> str:
    return f"| {row[0]} | {row[1]} |".replace("`icd:", "`")


if __name__ == "__main__":
    PAGE.write_text(page())
