"""Products of 16-bit and 8-bit numbers: values, and instructions of the target alone."""

import platform

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.engines.host import flags

FUNCTIONS = "tests.tvm_export.rules.dot_products_functions"
pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="not an x86-64 machine"
)
HERE = "avx512_vnni" in flags() or "avx_vnni" in flags()
BFLOAT16_HERE = "avx512_bf16" in flags()
BFLOAT16 = ("bfloat16", "bfloat16")


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("left", "right", "sizes"),
    [
        ("uint8", "int8", (13, 70, 64)),
        ("uint8", "int8", (5, 33, 27)),  # no tile divides, and no group
        ("int8", "uint8", (8, 48, 20)),
        ("int8", "int8", (9, 40, 33)),
        ("uint8", "int8", (1, 64, 128)),
    ],
)
def test_products_are_exact(
    session: engines.Session, left: str, right: str, sizes: tuple[int, int, int], constant: bool
) -> None:
    arguments = {"left": left, "right": right, "sizes": sizes, "constant": constant}
    made = session.call(f"{FUNCTIONS}:product", arguments)
    assert made["error"] == 0
    expected = "dot_int16" if left == right and not constant else "dot_uint8_int8"
    assert made["calls"] == ([expected] if HERE else [])


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("sizes", [(13, 70, 64), (5, 33, 27), (1, 64, 128), (4, 16, 1)])
def test_products_of_bfloat16_add_in_float32(
    session: engines.Session, sizes: tuple[int, int, int], constant: bool
) -> None:
    arguments = {"left": "bfloat16", "right": "bfloat16", "sizes": sizes, "constant": constant}
    made = session.call(f"{FUNCTIONS}:product", arguments)
    assert made["error"] < 1e-6
    grouped = BFLOAT16_HERE and sizes[2] > 1
    assert made["calls"] == (["dot_bfloat16"] if grouped else [])


def test_products_in_a_row_round_what_they_read(session: engines.Session) -> None:
    made = session.call(f"{FUNCTIONS}:perceptron", {"sizes": [33, 64, 48, 20]})
    assert made["error"] <= 2**-7  # a value beside a boundary of rounding
    assert made["calls"] == (["dot_bfloat16"] if BFLOAT16_HERE else [])


@pytest.mark.parametrize(("channels", "padding"), [(16, 1), (6, 0)])
@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "int8"), BFLOAT16])
def test_convolutions(
    session: engines.Session, types: tuple[str, str], channels: int, padding: int
) -> None:
    given = {"types": types, "channels": channels, "padding": padding}
    made = session.call(f"{FUNCTIONS}:convolution", given)
    if types == BFLOAT16:
        assert made["error"] < 1e-6
        assert made["calls"] == (["dot_bfloat16"] if BFLOAT16_HERE else [])
    else:
        assert made["error"] == 0 and made["calls"] == (["dot_uint8_int8"] if HERE else [])


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [("uint8", "int8", "int32"), ("int8", "int8", "int32"), (*BFLOAT16, "float32")],
)
def test_sums_stay_in_registers(
    session: engines.Session, left: str, right: str, total: str
) -> None:
    """LLVM leaves them in memory where a loop accesses it too often."""
    given = {"left": left, "right": right, "total": total, "mcpu": "znver4"}
    assert session.call(f"{FUNCTIONS}:stored_in_loops", given) == 0


def test_instructions_are_the_targets_and_not_the_hosts(session: engines.Session) -> None:
    given = {"left": "uint8", "right": "int8", "sizes": (8, 64, 64), "constant": True}
    for mcpu, calls in (
        ("skylake-avx512", []),
        ("haswell", []),
        ("cascadelake", ["dot_uint8_int8"]),
        ("alderlake", ["dot_uint8_int8"]),  # vectors of 256 bits
    ):
        made = session.call(f"{FUNCTIONS}:product", {**given, "mcpu": mcpu})
        assert made["calls"] == calls, mcpu
    given |= {"left": "bfloat16", "right": "bfloat16"}
    for mcpu, calls in (
        ("cascadelake", []),
        ("cooperlake", ["dot_bfloat16"]),
        ("znver4", ["dot_bfloat16"]),
    ):
        made = session.call(f"{FUNCTIONS}:product", {**given, "mcpu": mcpu})
        assert made["calls"] == calls, mcpu


def test_what_the_processor_has_beside_its_name(session: engines.Session) -> None:
    def added(flags: list[str], mcpu: str, tiles: bool = True) -> list[str]:
        given = {"flags": flags, "mcpu": mcpu, "tiles": tiles}
        return list(session.call(f"{FUNCTIONS}:host_with", given))

    shown = ["avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"]
    amx = ["+amx-tile", "+amx-int8", "+amx-bf16"]
    assert added(shown, "rocketlake") == ["+avx512bf16", *amx]
    assert added(shown, "rocketlake", tiles=False) == ["+avx512bf16"]
    denied = added([*shown, "avx_vnni"], "sapphirerapids", tiles=False)
    assert denied == ["-amx-tile", "-amx-int8", "-amx-bf16"]
    assert added(["avx512_vnni"], "znver4") == ["-avx512bf16"]
    assert added(["avx512_vnni", "avx512_bf16"], "znver4") == []
    assert added([], "znver4") == []
