"""The prose linter: the pages, and the docstrings of what is public.

    python -m tests.docs.prose                  # what `make lint` runs
    python -m tests.docs.prose docs/viz.md      # some files

Prints a line per finding; exit code 1 if there is one. proselint knows common faults; the rules
below it are the project's own.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click

ROOT = Path(__file__).parent.parent.parent

_LONGEST = 40  # words without a period, colon, semicolon or parenthesis
# Typography is Markdown's business. Code is left out of the text, so words meet that are not
# neighbours; a rule below finds those that are. A multiply-add is no adverb, a todo no annotation.
_UNUSED = (
    "restricted",
    "typography",
    "lexical_illusions",
    "annotations",
    "misc.phrasal_adjectives",
)
_PRAISE = (
    r"simply|blazing(?:ly)?|lightning[- ]fast|powerful|seamless(?:ly)?|effortless(?:ly)?|"
    r"cutting[- ]edge|world[- ]class|next[- ]generation|revolutionary|game[- ]chang\w+|obviously|"
    r"of course|basically|magical(?:ly)?|elegant(?:ly)?|delve\w*|unleash\w*|leverag\w+|utili[sz]\w+"
)
_PREPOSITION = "about|among|as|at|beside|between|by|for|from|in|into|of|on|than|to|with"


class Finding(NamedTuple):
    """What is wrong in a line of a file."""

    file: str
    line: int
    message: str


@dataclass(frozen=True)
class Rule:
    """A pattern in a sentence, and what to do instead of `{}`, which is the text it finds."""

    pattern: "re.Pattern[str]"
    message: str


_RULES = (
    Rule(re.compile(rf"\b(?:{_PRAISE})\b", re.IGNORECASE), "{!r} praises: say what it does"),
    Rule(
        re.compile(rf"\b(?:{_PREPOSITION}) what\b(?!.*\?)", re.IGNORECASE | re.DOTALL),
        "{!r}: a noun in place of the clause",
    ),
    Rule(re.compile(r"\bthe \w+,? of which\b"), "{!r}: two sentences, or `whose`"),
    Rule(re.compile(r"\b(?!had|that)([a-z]+)\s+\1\b"), "{!r} is repeated"),
)


_IN_PAGES = (
    # A docstring's first line may name its subject so.
    Rule(
        re.compile(r"\AWhat\b(?=[^?|]*[.!]\Z)", re.DOTALL),
        "{!r} begins a statement: begin with a noun",
    ),
    Rule(
        re.compile(
            r"\b(?:anew|for want of|of one's own|as (?:it comes|they come)|(?:where|if) need be)\b",
            re.IGNORECASE,
        ),
        "{!r} is stilted: again, without, your own, by default, if necessary",
    ),
    Rule(re.compile(r", say(?=[,;.)])"), "{!r}: such as, before the example"),
)


def blank(found: "re.Match[str]") -> str:
    """Nothing, on as many lines."""
    return "\n" * found[0].count("\n")


def plain(text: str) -> str:
    """Markdown without links' addresses, emphasis and code, which is the word `Code`."""
    text = re.sub(
        r"(`+)(?!`).+?(?<!`)\1(?!`)", lambda found: "Code" + blank(found), text, flags=re.S
    )
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r"<[^<>\n]+>|\{[^{}\n]*\}", "", text)
    return re.sub(r"\*+|(?<!\w)_+|_+(?!\w)", "", text)


# Begins a paragraph of its own: a heading, a list's item, a row, a quotation, a directive.
_BEGINS = re.compile(r"\s*(?:#+ |[-*+] |\d+\. |>|\||!!!|\?\?\?|:::|</?\w)")


class Paragraph(NamedTuple):
    """A paragraph, and the line on which it begins."""

    line: int
    text: str


def paragraphs(lines: Sequence[str], begins: "re.Pattern[str]" = _BEGINS) -> Iterator[Paragraph]:
    """What stands between empty lines, or begins with what `begins` matches, without that."""
    start, gathered = 1, list[str]()
    for number, line in enumerate([*lines, ""], 1):
        found = begins.match(line)
        if gathered and (found or not line.strip()):
            yield Paragraph(start, "\n".join(gathered))
            gathered = []
        if line.strip():
            if not gathered:
                start = number
            gathered.append(line[found.end() :] if found else line)


def of_page(text: str) -> Iterator[Paragraph]:
    """The paragraphs of a Markdown page; each row of a table and each heading is one."""
    text = text.partition("\n## Further reading\n")[0]  # titles of others
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.S)
    text = re.sub(r"^ *(```+|~~~+).*?^ *\1 *$", blank, text, flags=re.S | re.M)
    text = re.sub(r"^\s*\|[-:| ]+\|\s*$", "", text, flags=re.M)
    yield from paragraphs(plain(text).split("\n"))


# An entry of a section: "name: text".
_ENTRY = re.compile(
    r"(?:Args|Attributes|Raises|Returns|Yields):$|    (?:\*{0,2}\w+(?:, )?)+: |\s*(?:[-*] |\|)"
)


def of_module(text: str) -> Iterator[Paragraph]:
    """The paragraphs of a module's public docstrings; examples of code are left out."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if not docstring or getattr(node, "name", "").startswith("_"):
            continue
        first = node.body[0].lineno
        lines, in_section = [], False
        for line in docstring.split("\n"):
            in_section = line.endswith(":") if re.match(r"[A-Z]\w+:$", line) else (
                in_section and (not line or line.startswith(" ")))  # fmt: skip
            code = (line.startswith(" " * 4) and not in_section) or line.startswith(" " * 12)
            lines.append("" if code else line)
        for each in paragraphs(plain("\n".join(lines)).split("\n"), _ENTRY):
            yield Paragraph(first + each.line - 1, each.text)


def sentences(paragraph: Paragraph) -> Iterator[Paragraph]:
    """Its sentences, each with its line."""
    start = 0
    for end in re.finditer(r"[.!?…]['\")”]*(?=\s+[^a-z\s]|\s*\Z)|\Z", paragraph.text):
        text = paragraph.text[start : end.end()]
        if text.strip():
            skipped = len(text) - len(text.lstrip())
            line = paragraph.line + paragraph.text[: start + skipped].count("\n")
            yield Paragraph(line, text.strip())
        start = end.end()


def style(paragraph: Paragraph, rules: Sequence[Rule]) -> Iterator[tuple[int, str]]:
    """What the project's own rules find: a line, and a message."""
    for line, text in sentences(paragraph):
        for rule in rules:
            for found in rule.pattern.finditer(text):
                at = line + text[: found.start()].count("\n")
                yield at, rule.message.format(" ".join(found[0].split()))
        parts = [re.findall(r"[^\W\d_][\w'’-]*", part) for part in re.split("[:;()]", text)]
        words = max(map(len, parts))
        if words > _LONGEST and "|" not in text:
            yield line, f"{words} words without a stop, more than {_LONGEST}: make two sentences"


@cache
def _proselint() -> tuple[Callable[[str, str], Any], dict[str, Any]]:
    from proselint.checks import __register__
    from proselint.config import DEFAULT
    from proselint.registry import CheckRegistry
    from proselint.tools import LintFile

    CheckRegistry().register_many(__register__)
    checks = dict.fromkeys(_UNUSED, False) | DEFAULT["checks"] | dict.fromkeys(_UNUSED, False)
    return LintFile, {"max_errors": 10**6, "checks": checks}


def check(file: Path) -> list[Finding]:
    """What is found in a page or a Python file, line by line."""
    text = file.read_text(encoding="utf-8")
    page = file.suffix == ".md"
    found = list(of_page(text) if page else of_module(text))
    rules = [*_RULES, *_IN_PAGES] if page else _RULES
    name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else str(file)
    findings = [Finding(name, *each) for paragraph in found for each in style(paragraph, rules)]
    lint, config = _proselint()
    # As many lines as the file, so that the linter's lines are the file's.
    lines = [""] * (text.count("\n") + 2)
    for line, words in found:
        for number, each in enumerate(words.split("\n"), line - 1):
            lines[number] = each
    for result in lint(name, "\n".join(lines)).lint(config):
        findings.append(Finding(name, result.pos[0], result.check_result.message))
    return sorted(findings, key=lambda each: each.line)


def files() -> list[Path]:
    """The pages and the modules of the package."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return sorted([*pages, *(ROOT / "tvm_practice").rglob("*.py")])


@click.command()
@click.argument("chosen", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(chosen: tuple[Path, ...]) -> None:
    """Check the prose of these files, or of all pages and public docstrings."""
    findings = [each for file in chosen or files() for each in check(file.resolve())]
    for file, line, message in findings:
        click.echo(f"{file}:{line}: {message}")
    raise SystemExit(1 if findings else 0)


if __name__ == "__main__":
    main()
