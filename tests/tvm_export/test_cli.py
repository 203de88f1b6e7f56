"""The common part of the command lines."""

import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner, Result

from tvm_practice import engines
from tvm_practice.tvm_export.cli import ShapesAsWords, example_of, one_line
from tvm_practice.tvm_export.errors import BadInput, CannotImport


def ended_by(error: BaseException, *, verbose: bool = True) -> Result:
    @click.command()
    def command() -> None:
        with one_line("export", stopped="what is there stays", verbose=verbose):
            raise error

    return CliRunner().invoke(command)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BadInput("two\n  lines"), 2, "export: two lines\n"),
        (CannotImport("operator Det"), 1, "export: operator Det\n"),
        (engines.EngineDied("it ended"), 1, "export: it ended\n"),
        (engines.RemoteError("a.Kind", "why\nmore", "trace"), 1, "export: Kind: why\n"),
        (FileNotFoundError(2, "No such file", "x"), 1, "export: [Errno 2] No such file: 'x'\n"),
        (KeyboardInterrupt(), 130, "what is there stays\n"),
    ],
)
def test_an_error_for_the_person_is_one_line(error: BaseException, code: int, said: str) -> None:
    ended = ended_by(error)
    assert ended.exit_code == code and ended.stderr == said


def test_a_defect_has_a_traceback_unless_it_is_not_wanted() -> None:
    told = ended_by(ZeroDivisionError("unforeseen"))
    assert told.exit_code == 1 and "Traceback" in told.stderr
    quiet = ended_by(ZeroDivisionError("unforeseen"), verbose=False)
    assert quiet.exit_code == 1 and quiet.stderr == "export: ZeroDivisionError: unforeseen\n"


def test_extents_may_be_words_of_their_own() -> None:
    @click.command(cls=ShapesAsWords)
    @click.argument("model")
    @click.option("--example-shape", "shapes", multiple=True)
    def command(model: str, shapes: tuple[str, ...]) -> None:
        click.echo(json.dumps([model, example_of(shapes, ())]))

    words = ["--example-shape", "1", "3", "--example-shape", "4x5", "m:f"]
    drawn = CliRunner().invoke(command, words)
    assert json.loads(drawn.stdout) == [
        "m:f",
        [{"shape": [1, 3], "dtype": None}, {"shape": [4, 5], "dtype": None}],
    ]


def test_types_are_one_for_all_or_one_each() -> None:
    assert example_of((), ()) is None
    both = example_of(("2", "3"), ("int64",))
    assert both is not None and [each["dtype"] for each in both] == ["int64", "int64"]
    with pytest.raises(BadInput, match="2 types for 3 inputs"):
        example_of(("1", "2", "3"), ("int64", "bool"))
    with pytest.raises(BadInput, match="positive whole numbers"):
        example_of(("1 0",), ())
    with pytest.raises(BadInput, match="--example-dtype"):
        example_of(("1",), ("int3",))


def test_importing_it_is_quick() -> None:
    code = (
        "import sys, tvm_practice.tvm_export.cli\n"
        "slow = {'tvm', 'torch', 'numpy', 'pydantic', 'rich'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
