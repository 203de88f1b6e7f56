"""The common part of the command lines: inputs given as options, failures in one line."""

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, get_args

import click

from tvm_practice.engines import EngineUnavailable, PlainError, RemoteError
from tvm_practice.engines.command_line import Command
from tvm_practice.tvm_export.speed_passes import SpeedPass
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from pydantic import ValidationError

    from tvm_practice.tvm_export.request import ExportRequest


class ShapesAsWords(Command):
    """Takes `--example-shape 1 3 224 224`, which click, with a fixed number of values, does not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        joined: list[str] = []
        for word in args:
            if joined[-2:-1] == ["--example-shape"] and word.isdigit():
                joined[-1] += f" {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


def tolerances(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with options for how exact an export is to be, whose names requests have."""
    options = (
        click.option(
            "--atol",
            type=float,
            help="Allowed absolute difference from PyTorch's output [default: 1e-3].",
        ),
        click.option(
            "--rtol",
            type=float,
            help="Allowed difference relative to PyTorch's output [default: 1e-3].",
        ),
        click.option(
            "--verify-data",
            type=click.Path(path_type=Path),
            metavar="X.NPZ",
            help="Your own inputs to verify on, arrays by the inputs' names [default: drawn].",
        ),
        click.option(
            "--precision",
            type=click.Choice(["float32", "bfloat16", "float16"]),
            help="Type of the numbers that matrix products and convolutions multiply; sums stay "
            "float32 (current engine) [default: float32].",
        ),
        click.option(
            "--quantize",
            type=click.Choice(["int8"]),
            help="Compute linear layers in 8-bit integers, with a scale per row of their inputs "
            "and per channel of their weights (current engine).",
        ),
        click.option(
            "--keep-float",
            multiple=True,
            metavar="NAME",
            help="With --quantize: a layer that stays float32, or a module whose layers do; can be "
            "given several times.",
        ),
        click.option(
            "--calibration",
            type=click.Path(path_type=Path),
            metavar="X.NPZ",
            help="With --quantize: convolutions too, their inputs' ranges from the inputs in this "
            "file, arrays by the inputs' names.",
        ),
        click.option(
            "--calibration-method",
            type=click.Choice(["minmax", "percentile", "entropy"]),
            help="With --calibration: ranges of all values, of all but 0.01%, or those that keep "
            "the values' distribution [default: minmax].",
        ),
        click.option(
            "--min-cosine",
            type=float,
            help="With 16-bit or 8-bit products: the least cosine between an output and float64's; "
            "replaces --atol and --rtol [default: 0.999, with --quantize 0.99].",
        ),
        click.option(
            "--without",
            multiple=True,
            type=click.Choice(get_args(SpeedPass)),
            metavar="PASS",
            help="Leave out a pass that is there for speed alone, to see what it gains: "
            f"{', '.join(get_args(SpeedPass))}; can be given several times (current engine).",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def example_of(shapes: Sequence[str], dtypes: Sequence[str]) -> list[dict[str, Any]] | None:
    """The inputs that --example-shape and --example-dtype describe.

    Returns [{"shape", "dtype"}], None for no shape. Raises BadInput.
    """
    from pydantic import ValidationError

    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.example_inputs import ExampleTensor

    if not shapes:
        return None
    if len(dtypes) not in (0, 1, len(shapes)):
        raise BadInput(f"{len(dtypes)} types for {number_of(len(shapes), 'input')}")
    types = dtypes if len(dtypes) == len(shapes) else (*dtypes, None)[:1] * len(shapes)
    example = []
    for text, dtype in zip(shapes, types, strict=True):
        extents = re.split(r"[x,\s]+", text.strip())
        if not all(extent.isdigit() and int(extent) for extent in extents):
            raise BadInput(f"--example-shape {text!r} is not a list of positive whole numbers")
        described = {"shape": [int(extent) for extent in extents], "dtype": dtype}
        try:
            example.append(ExampleTensor.model_validate(described).model_dump())
        except ValidationError as error:
            raise BadInput(first_mistake(error).replace("--", "--example-", 1)) from None
    return example


def request_of(settings: dict[str, Any]) -> "ExportRequest":
    """The request with these settings. Raises BadInput, which names the option."""
    from pydantic import ValidationError

    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.request import ExportRequest

    try:
        return ExportRequest.model_validate(settings)
    except ValidationError as error:
        raise BadInput(first_mistake(error)) from None


def first_mistake(error: "ValidationError") -> str:
    """The first mistake that a validation found, in a line that begins with the option's name."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])).removeprefix("search.")
    where = {"seconds": "tuning_seconds"}.get(where, where)
    text = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "literal_error":
        text = f"{first['input']!r} is none of {first['ctx']['expected']}"
    if not where and (named := re.match(r"(?:search\.)?([a-z_]+): ", text)):
        where, text = named[1], text[named.end() :]
    return f"--{where.replace('_', '-')}: {text}" if where else text


def failure(error: PlainError | OSError) -> tuple[str, int]:
    """What a command that fails says, in one line, and its exit code."""
    if isinstance(error, PlainError):
        return error.line, error.exit_code
    return str(error), 1


def is_missing(error: BaseException) -> bool:
    """Whether an engine, a package or a tool that is not installed caused an error."""
    from tvm_practice.tvm_export.errors import Missing

    if isinstance(error, RemoteError):
        return error.kind in ("builtins.ModuleNotFoundError", "builtins.ImportError")
    return isinstance(error, EngineUnavailable | Missing)


@contextmanager
def one_line(
    name: str = "error", *, stopped: str = "stopped", verbose: bool = True
) -> Iterator[None]:
    """Inside the block, an exception ends the program with one line on standard error.

    The exit code is a `PlainError`'s own (2 for the person's mistake), 130 for Ctrl-C, 1 for
    anything else.

    Args:
        name: the word before the colon of the line, the command's name for example.
        stopped: the line for Ctrl-C.
        verbose: whether a traceback comes before the line of an exception that has no message for
            the person: a defect of this program.
    """
    try:
        yield
    except KeyboardInterrupt:
        click.echo(stopped, err=True)
        sys.exit(130)
    except BrokenPipeError:  # click ends quietly
        raise
    except (PlainError, OSError) as error:
        said, code = failure(error)
        click.echo(f"{name}: {' '.join(said.split())}", err=True)
        sys.exit(code)
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
