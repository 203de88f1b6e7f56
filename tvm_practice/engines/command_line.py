"""click's commands, but what keeps a program from printing or starting is one line."""

import os
import sys
from pathlib import Path
from typing import Any

import click


class _Plain(click.Command):
    """A command of this project."""

    def main(self, *args: Any, **options: Any) -> Any:
        """As click's: 2 where the working directory is gone, 1 where output cannot be written."""
        try:
            Path.cwd()
        except FileNotFoundError:
            print("error: the working directory was deleted", file=sys.stderr)
            sys.exit(2)
        try:
            try:
                return super().main(*args, **options)
            finally:
                sys.stdout.flush()
        except OSError as error:
            # Python flushes once more at its end, and would say the same in five lines.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                print(f"error: {error.strerror or error}", file=sys.stderr)
            sys.exit(1)


class Command(_Plain):
    """For `click.command(cls=Command)`."""


class Group(_Plain, click.Group):
    """For `click.group(cls=Group)`."""
