"""Arrays that fit the vector registers are on the stack, and others where TVM has them."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines

_COMPILED = "tests.tvm_export.lowering.tiles_on_stack_functions:compiled"


@pytest.mark.parametrize(
    ("floats", "mcpu", "workspace"),
    [
        (255, "x86-64-v4", (False, False)),  # TVM's own stack
        (256, "x86-64-v4", (True, False)),
        (512, "x86-64-v4", (True, False)),  # all 32 registers of 512 bits
        (513, "x86-64-v4", (True, True)),
        (256, "x86-64-v3", (True, True)),  # 16 registers of 256 bits are 512 bytes
    ],
)
def test_arrays_of_the_registers_size(
    floats: int, mcpu: str, workspace: tuple[bool, bool], process_of: Processes
) -> None:
    made = process_of(engines.CURRENT).call(_COMPILED, {"size": floats, "mcpu": mcpu})
    assert made["workspace"] == dict(zip(("plain", "kept"), workspace, strict=True))


@pytest.mark.parametrize("floats", [255, 256, 512, 513])
def test_code_for_this_machine_is_right(floats: int, process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(_COMPILED, {"size": floats, "mcpu": None})["right"]
