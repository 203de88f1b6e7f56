"""A search: faults are found, made small, told once, and written as tests that fail."""

import ast
import os
import subprocess
import sys
from pathlib import Path

from fuzz.graphs import Graph
from fuzz.judging import Mode, Outcome
from fuzz.searching import Fault, poisoned_memory, search
from fuzz.writing import write


def judge_flip(graph: Graph, mode: Mode, seed: int) -> Outcome:
    """Says that every graph with a flip is wrong, and every one that casts is refused."""
    if "flip" in graph.operators:
        return Outcome("wrong", "flipped")
    return Outcome("refused", "no casts, line 3") if "cast" in graph.operators else Outcome("right")


def test_a_fault_is_shrunk_and_told_once(tmp_path: Path) -> None:
    kept: list[Fault] = []
    said: list[str] = []
    found = search(
        judge_flip, seed=0, most=150, modes=("rules",), say=said.append, keep=kept.append
    )
    assert [each.graph.operators for each in found.faults] == [["flip"]] and kept == found.faults
    assert found.verdicts["wrong"] == 1 and found.passed_over > 0
    assert sum(found.verdicts.values()) == 150
    assert found.refusals == {"rules: no casts, line n": found.verdicts["refused"]}
    assert len(found.operators) > 80 and said[0] == "wrong (rules): flipped"

    file = write(kept[0], tmp_path)
    assert file.name == "test_rules_flip.py" and write(kept[0], tmp_path) == file
    names: dict[str, object] = {}
    exec(compile(file.read_text(), file, "exec"), names)
    assert names["GRAPH"] == kept[0].graph
    assert ast.get_docstring(ast.parse(file.read_text())) == "wrong: flipped"


def drawn(seed: int, most: int, skip: int = 0) -> list[tuple[Graph, Mode, int]]:
    """The graphs that a search judges, with their modes and numbers."""
    found: list[tuple[Graph, Mode, int]] = []

    def judge(graph: Graph, mode: Mode, number: int) -> Outcome:
        found.append((graph, mode, number))
        return Outcome("right")

    assert search(judge, seed=seed, most=most, skip=skip).drawn == skip + most
    return found


def test_the_seed_decides_what_is_drawn() -> None:
    assert drawn(3, 5) == drawn(3, 5) != drawn(4, 5)


def test_a_search_goes_on_after_an_earlier_one() -> None:
    assert drawn(3, 2) + drawn(3, 3, skip=2) == drawn(3, 5)


def test_errors_of_the_same_text_are_one_fault() -> None:
    def judge(graph: Graph, mode: Mode, number: int) -> Outcome:
        return Outcome("raw", f"{len(graph.steps)} is odd") if number % 2 else Outcome("right")

    found = search(judge, seed=0, most=60, modes=("tiles",))
    assert len(found.faults) == 1 and len(found.faults[0].graph.steps) == 1
    assert found.verdicts["raw"] > 3


def test_memory_is_poisoned_for_processes_and_left_as_it_was() -> None:
    before = dict(os.environ)
    code = "import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; "
    code += "print(ctypes.string_at(c.malloc(99999), 2).hex())"
    with poisoned_memory():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    if sys.platform.startswith("linux"):
        assert done.stdout.split() == [b"fefe"]
    assert dict(os.environ) == before
