"""docs/guides/names.md is made from its table, and every name of this project in it exists."""

import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import click
import pytest

from tests.docs.names import PAGE, page, sections
from tvm_practice.icd.config import keys

COMMANDS = (
    "run_autotvm", "compare_tvm_results", "compile_onnx", "bench", "artifact", "icd", "auto_tune",
    "engines",
)  # fmt: skip
NAMES = sorted(
    {
        name
        for rows in sections().values()
        for _, here in rows
        for name in re.findall(r"`([^`]+)`", here)
    }
)


def test_the_page_is_as_the_table_says() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.docs.names"


def _command(words: list[str]) -> click.Command:
    """The command that `run_autotvm` or `icd run` names."""
    name, *rest = words
    package = Path(importlib.import_module(f"tvm_practice.{name}").__file__ or "")
    module = f"tvm_practice.{name}" + (".__main__" if package.name == "__init__.py" else "")
    found: Any = importlib.import_module(module).main
    for each in rest:
        found = found.commands[each]
    assert isinstance(found, click.Command)
    return found


@pytest.mark.parametrize("name", [each for each in NAMES if each.split()[0] in COMMANDS])
def test_options_exist(name: str) -> None:
    *command, option = [each for each in name.split() if each != "python"]
    if not option.startswith("-"):
        _command([*command, option])
        return
    options = [opt for param in _command(command).params for opt in param.opts]
    assert option in options


@pytest.mark.parametrize("name", [each for each in NAMES if each.startswith("python -m ")])
def test_commands_exist(name: str) -> None:
    _command(name.removeprefix("python -m tvm_practice.").split())


@pytest.mark.parametrize("name", [each for each in NAMES if each.startswith("tvm_practice.")])
def test_modules_and_their_names_exist(name: str) -> None:
    module, _, attribute = name.partition(":")
    assert not attribute or hasattr(importlib.import_module(module), attribute)
    assert importlib.util.find_spec(module)


@pytest.mark.parametrize("name", [each for each in NAMES if each.startswith("icd:")])
def test_keys_exist(name: str) -> None:
    assert name.removeprefix("icd:") in keys()


def test_files_have_their_names() -> None:
    from tvm_practice.tvm_export.artifacts import GRAPH, LIBRARY, METADATA, PARAMETERS, SUMMARY

    rows = [row for row, here in sections()["Files"] if "same;" in here]
    there = [part for row in rows for part in row.split(", ")]
    assert there == [LIBRARY, GRAPH, PARAMETERS, METADATA, SUMMARY]


def test_every_kind_of_name_is_looked_up() -> None:
    """So that a name of a misspelt kind is not passed over."""
    kinds = ("python -m ", "tvm_practice.", "icd:")
    plain = {
        "make install", "TVMModel", "API_Reference.md", "tvm_model.h", "tvm::ffi::Tensor",
        "tvm_output/cpp/main.cpp", "tvm.transform.PassContext(opt_level=3)",
        'ExportConfig(search={"policy": …, "population": …})',
    }  # fmt: skip
    known = [each for each in NAMES if each.startswith(kinds) or each.split()[0] in COMMANDS]
    rest = set(NAMES) - set(known)
    assert rest == plain
