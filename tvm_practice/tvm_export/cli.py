"""What the command lines share: example inputs as options, one line for an error."""

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click


class ShapesAsWords(click.Command):
    """Takes `--example-shape 1 3 224 224`, which click, with a fixed number of values, does not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        joined: list[str] = []
        for word in args:
            if joined[-2:-1] == ["--example-shape"] and word.isdigit():
                joined[-1] += f" {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


def example_of(shapes: tuple[str, ...], dtypes: tuple[str, ...]) -> list[dict[str, Any]] | None:
    """The example inputs that --example-shape and --example-dtype describe.

    Args:
        shapes: of each input, "1 3 224 224" or "1x3x224x224".
        dtypes: one for all inputs, or one for each; none: float32.

    Returns:
        [{"shape", "dtype"}], as `loading.ExampleTensor` reads it; None where no shape was given.

    Raises:
        BadInput: the numbers of shapes and types differ, or one of them is wrong; one line.
    """
    from pydantic import ValidationError

    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import ExampleTensor

    if not shapes:
        return None
    if len(dtypes) not in (0, 1, len(shapes)):
        raise BadInput(f"{len(dtypes)} types for {len(shapes)} inputs")
    types = dtypes if len(dtypes) == len(shapes) else (dtypes or ("float32",)) * len(shapes)
    example = []
    for text, each in zip(shapes, types, strict=True):
        extents = re.split(r"[x,\s]+", text.strip())
        if not all(extent.isdigit() and int(extent) for extent in extents):
            raise BadInput(f"--example-shape {text!r} is not a list of positive whole numbers")
        described = {"shape": [int(extent) for extent in extents], "dtype": each}
        try:
            example.append(ExampleTensor.model_validate(described).model_dump())
        except ValidationError as error:
            raise BadInput(first_mistake(error).replace("--", "--example-", 1)) from None
    return example


def first_mistake(error: Any) -> str:
    """The first mistake of a pydantic.ValidationError, with the option's name."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])).removeprefix("search.")
    where = {"seconds": "tuning_seconds"}.get(where, where)
    text = str(first["msg"]).removeprefix("Value error, ")
    return f"--{where.replace('_', '-')}: {text}" if where else text


@contextmanager
def one_line(
    name: str = "error", *, stopped: str = "stopped", verbose: bool = True
) -> Iterator[None]:
    """Inside the block, an exception ends the program with one line on standard error.

    The exit code is a `PlainError`'s own (2 for the person's mistake), 130 for Ctrl-C, 1 for
    anything else.

    Args:
        name: what stands before the colon of the line: the command's name, say.
        stopped: the line for Ctrl-C.
        verbose: whether a traceback comes before the line of an exception that has no message for
            the person: a defect of this program, or of what a child process ran.
    """
    from tvm_practice.engines import PlainError, RemoteError

    try:
        yield
    except KeyboardInterrupt:
        click.echo(stopped, err=True)
        sys.exit(130)
    except BrokenPipeError:  # click ends quietly
        raise
    except RemoteError as error:
        click.echo(f"{name}: {error.line}", err=True)
        sys.exit(error.exit_code)
    except (PlainError, OSError) as error:
        click.echo(f"{name}: {' '.join(str(error).split())}", err=True)
        sys.exit(error.exit_code if isinstance(error, PlainError) else 1)
    except Exception as error:
        if verbose:
            traceback.print_exc()
        text = " ".join(str(error).split())
        kind = type(error).__name__
        click.echo(f"{name}: {kind}: {text}" if text else f"{name}: {kind}", err=True)
        sys.exit(1)


@contextmanager
def child_output(*, as_json: bool, quiet: bool = False) -> Iterator[IO[Any] | None]:
    """Where a child process prints, for `engines.Session`.

    Args:
        as_json: whether standard output is for JSON only; the child then prints to standard error.
        quiet: whether the child prints nothing.
    """
    if quiet:
        with Path(os.devnull).open("w") as nowhere:
            yield nowhere
    elif as_json:
        with os.fdopen(os.dup(2), "w") as errors:
            yield errors
    else:
        yield None
