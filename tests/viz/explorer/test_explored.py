"""The explorer's links: of the course's matmul, line by line."""

import functools
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.viz.explorer.steps import followed

FUNCTIONS = "tests.viz.explorer.functions"


@pytest.fixture(scope="module")
def look(process_of: Processes) -> Any:
    return functools.partial(process_of(engines.CURRENT).call, f"{FUNCTIONS}:looked_at")


def _line(found: dict[str, Any], text: str) -> int:
    """The first line of the last TIR with that text, from 1."""
    lines = found["steps"][-1]["text"]
    return next(at for at, line in enumerate(lines, start=1) if text in line)


def _llvm(found: dict[str, Any], origin: int) -> str:
    return "\n".join(text for text, line in found["llvm"] if line == origin)


def _asm(found: dict[str, Any], origin: int) -> str:
    llvm = [at for at, (_, line) in enumerate(found["llvm"], start=1) if line == origin]
    return "\n".join(text for text, line in found["asm"] if line in llvm)


def test_locations_change_no_instruction(look: Any) -> None:
    for name in ("tiled", "packed"):
        looked = look({"name": name, "size": 32})
        assert looked["same"] and looked["shown"], name
        assert looked["explored"]["asm"]


def test_a_statement_is_linked_with_its_own_code(look: Any) -> None:
    found = look({"name": "naive", "size": 32})["explored"]
    product = _line(found, "C[v_i, v_j] + A")
    assert "fmuladd" in _llvm(found, product)
    assert "fma" in _asm(found, product) or "mul" in _asm(found, product)
    loop = _line(found, "for i in")
    counted = _llvm(found, loop)
    assert "fmuladd" not in counted and "br i1" in counted and "= add" in counted
    assert "__tvm_ffi_main" in found["left_out"]


def test_a_loop_without_code_stands_for_what_it_repeats(look: Any) -> None:
    found = look({"name": "packed", "size": 32})["explored"]
    vectorized = _line(found, "for j in T.vectorized")
    product = _line(found, "T_local[v_bi, v_bj, v_i, v_j] + A_packed")
    assert product in found["own"][vectorized - 1]
    assert "<16 x float>" in _llvm(found, product)
    loop = _line(found, "for k_0 in")
    assert found["own"][loop - 1] == [loop] and product in found["inside"][loop - 1]
    assert loop in found["around"][product - 1]


def test_a_line_knows_its_primitives() -> None:
    first = ("for i in range(8):", "    v_i = T.axis.spatial(8, i)", "    C[v_i] = 0")
    split = (
        "for i_0 in range(2):", "    for i_1 in range(4):",
        "        v_i = T.axis.spatial(8, i_0 * 4 + i_1)", "        C[v_i] = 0",
    )  # fmt: skip
    vectorized = (split[0], "    for i_1 in T.vectorized(4):", *split[2:])
    steps = followed(["", "split", "vectorize"], [first, split, vectorized])
    assert [each.makers for each in steps] == [
        ((), (), ()), ((1,), (1,), (1,), ()), ((1,), (1, 2), (1,), ())
    ]  # fmt: skip
    assert steps[0].finals == ((1, 2), (3,), (4,))


def test_a_moved_line_is_the_same_line() -> None:
    before = ("for i in range(2):", "    for j in range(3):", "        C[i, j] = 0")
    after = ("for j in range(3):", "    for i in range(2):", "        C[i, j] = 0")
    steps = followed(["", "reorder"], [before, after])
    assert steps[0].finals == ((2,), (1,), (3,))
    assert steps[1].makers[2] == () and (1,) in steps[1].makers[:2]


def test_a_record_that_has_a_tile_alone_shows_the_primitives_of_its_rule(
    process_of: Processes, tmp_path: Path
) -> None:
    asked = {"folder": str(tmp_path), "size": 64}
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:advised", asked)
    names = [each["name"] for each in found["steps"]]
    assert any(each.startswith("parallel(") for each in names)
    marked = {step for makers in found["steps"][-1]["makers"] for step in makers}
    assert len(marked) > len(names) / 2
