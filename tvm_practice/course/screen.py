"""What the command line shows: wrapped and coloured on a terminal, plain text elsewhere."""

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console, RenderableType
from rich.text import Text

# "expected: ", "seen:     " and "look at:  " of a check's message; what follows is in line.
_LABEL_WIDTH = 10
_LABELS = ("expected: ", "seen: ", "look at: ")


class Screen:
    """Standard output.

    Attributes:
        plain: no boxes, bars and colours, and one fact a line, for a screen reader.
        console: rich's, for tables and bars.
    """

    def __init__(self, *, plain: bool = False):
        self.plain = plain
        self.console = Console(no_color=plain or None, highlight=False)

    @property
    def rich(self) -> bool:
        """Whether to draw: on a terminal that is not to be plain."""
        return self.console.is_terminal and not self.plain

    def say(self, text: str = "", style: str = "") -> None:
        """Print lines, wrapped between words on a terminal, whole elsewhere."""
        if self.plain or not self.console.is_terminal:
            click.echo(text)
            return
        for line in text.split("\n"):
            indent = _LABEL_WIDTH if line.startswith(_LABELS) else _indent(line)
            wrapped = textwrap.wrap(
                line,
                self.console.width,
                subsequent_indent=" " * indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            self.console.print(Text("\n".join(wrapped) or "", style), soft_wrap=True)

    def note(self, text: str) -> None:
        """A line about the command itself, on standard error."""
        click.echo(text, err=True)

    def draw(self, drawing: RenderableType) -> None:
        self.console.print(drawing)

    def code(self, text: str, language: str) -> None:
        """Print source text, highlighted on a terminal."""
        if not self.rich:
            click.echo(text)
            return
        from rich.syntax import Syntax

        self.draw(
            Syntax(text, language, theme="ansi_dark", background_color="default", word_wrap=True)
        )

    def draw_difference(self, lines: str) -> None:
        """Print lines that begin with "- ", "+ " or two spaces, indented."""
        styles = {"-": "red", "+": "green"}
        for line in lines.split("\n"):
            self.say(f"  {line}", styles.get(line[:1], ""))

    def page(self, markdown: str) -> None:
        """Print a piece of a documentation page, set on a terminal."""
        if not self.rich:
            click.echo(markdown)
            return
        from rich.markdown import Markdown

        self.draw(Markdown(markdown, code_theme="ansi_dark"))

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Say on a terminal what is going on, as long as it is."""
        if not self.rich:
            yield
            return
        with self.console.status(what):
            yield

    @contextmanager
    def counting(self, total: int) -> Iterator[Callable[[str], None]]:
        """A bar that disappears when it is done; takes the name of the next piece of work."""
        if not self.rich or not total:
            yield lambda _: None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("grading"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=self.console, transient=True) as progress:
            bar = progress.add_task("", total=total, completed=-1)

            def advance(name: str) -> None:
                progress.update(bar, advance=1, description=name)

            yield advance


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def near(file: Path) -> str:
    """The path as it is typed from here: relative where it is below the working folder."""
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)
