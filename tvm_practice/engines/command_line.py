"""click's commands, but what keeps a program from printing or starting is one line."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tvm_practice.engines.stopping import ended_by_signals, raise_at_ctrl_c


class Folder(click.Path):
    """For a folder to write to, which need not exist: a mistake if it cannot be made."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        folder = Path(os.fsdecode(super().convert(value, param, ctx)))
        for above in folder.parents:
            if os.path.lexists(above):
                if not above.is_dir():
                    self.fail(f"{above} is a file, so {folder} cannot be made", param, ctx)
                break
        return folder


class _Plain(click.Command):
    """A command of this project."""

    def main(self, *args: Any, **options: Any) -> Any:
        """As click's, with these exit codes.

        2 where the working directory is gone, 1 where output cannot be written, 130 for Ctrl-C,
        143 for SIGTERM, 129 for SIGHUP.
        """
        raise_at_ctrl_c()
        try:
            Path.cwd()
        except FileNotFoundError:
            print("error: the working directory was deleted", file=sys.stderr)
            sys.exit(2)
        try:
            try:
                with ended_by_signals():
                    return super().main(*args, **options)
            finally:
                sys.stdout.flush()
        except OSError as error:
            # Python flushes once more at its end, and would say the same in five lines.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                which = f"{error.filename}: " if error.filename else ""
                print(f"error: {which}{error.strerror or error}", file=sys.stderr)
            sys.exit(1)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _stopped_by_ctrl_c():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _stopped_by_ctrl_c():
            return super().invoke(ctx)


@contextmanager
def _stopped_by_ctrl_c() -> Iterator[None]:
    """End the program with 130 at Ctrl-C that the command did not catch; click's own is 1."""
    try:
        yield
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


class Command(_Plain):
    """For `click.command(cls=Command)`."""


class Group(_Plain, click.Group):
    """For `click.group(cls=Group)`."""
