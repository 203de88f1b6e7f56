"""Contractions on tile registers: values on simulated ones, what a library asks for and says."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.engines.host import ASK_FOR_TILES, flags, tiles_allowed

FUNCTIONS = "tests.tvm_export.rules.tile_registers_functions"
pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="not an x86-64 machine"
)
BFLOAT16, BYTES = ("bfloat16", "bfloat16"), ("uint8", "int8")
PRODUCTS = {BFLOAT16: "tdpbf16ps", BYTES: "tdpbusd"}
WITHOUT_TILES = "this library needs tile registers"


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    "sizes",
    [
        (64, 96, 128),
        (197, 48, 64),  # the last tile has five rows, one register of it one
        (33, 70, 40),  # and columns beyond the last
        (5, 16, 31),  # a tile of few rows; the sum has no whole groups
        (263, 32, 32),  # a prime that is no byte
        (1031, 64, 1024),  # blocks of rows, of which the last reaches beyond the last row
    ],
)
@pytest.mark.parametrize("types", [BFLOAT16, BYTES])
def test_products(
    session: engines.Session, types: tuple[str, str], sizes: tuple[int, int, int], constant: bool
) -> None:
    """They are exact, and no element beside the input is loaded."""
    given = {"types": types, "sizes": sizes, "constant": constant}
    made = session.call(f"{FUNCTIONS}:product", given)
    assert made["error"] < 1e-6 if types == BFLOAT16 else made["error"] == 0
    assert PRODUCTS[types] in made["calls"]
    assert made["calls"].count("ldtilecfg") and made["calls"].count("tilerelease")


@pytest.mark.skipif(not tiles_allowed(), reason="this processor has no tile registers")
@pytest.mark.parametrize("sizes", [(64, 96, 128), (197, 48, 64)])
@pytest.mark.parametrize("types", [BFLOAT16, BYTES])
def test_products_on_this_processor(
    session: engines.Session, types: tuple[str, str], sizes: tuple[int, int, int]
) -> None:
    given = {"types": types, "sizes": sizes, "constant": True, "target": "llvm"}
    made = session.call(f"{FUNCTIONS}:product", {**given, "simulate": False})
    assert made["error"] < 1e-6 if types == BFLOAT16 else made["error"] == 0
    assert "amx-tile" in made["features"]


@pytest.mark.parametrize(
    ("image", "stride", "kernel"),
    [
        ((14, 14, 64), 1, 3),
        ((57, 57, 32), 2, 3),
        ((14, 15, 36), 1, 1),  # groups that are no power of two
        ((7, 7, 64), 1, 1),  # rows of a line
    ],
)
@pytest.mark.parametrize("types", [BFLOAT16, BYTES])
def test_convolutions(
    session: engines.Session,
    types: tuple[str, str],
    image: tuple[int, int, int],
    stride: int,
    kernel: int,
) -> None:
    given = {"types": types, "image": image, "stride": stride, "kernel": kernel}
    made = session.call(f"{FUNCTIONS}:convolution", given)
    assert made["error"] < 1e-6 if types == BFLOAT16 else made["error"] == 0
    assert PRODUCTS[types] in made["calls"]


@pytest.mark.parametrize("types", [BFLOAT16, BYTES])
def test_rows_go_on_in_the_next_line(session: engines.Session, types: tuple[str, str]) -> None:
    """Of two images of 7 x 7, 98 pixels fill eight registers, where 14 lines would fill 14."""
    given = {"types": types, "image": (7, 7, 64), "stride": 1, "kernel": 1}
    calls = session.call(f"{FUNCTIONS}:convolution", given)["calls"]
    of_columns, steps = 3, 2 if types == BFLOAT16 else 1
    assert calls.count(PRODUCTS[types]) == 8 * of_columns * steps


@pytest.mark.parametrize("types", [BFLOAT16, BYTES])
def test_weights_are_asked_for_ahead(session: engines.Session, types: tuple[str, str]) -> None:
    lines = 256 * 768 * (2 if types == BFLOAT16 else 1) // 64
    for rows, least, most in ((128, lines, 1.3 * lines), (1024, lines, 8 * lines), (32, 0, 0)):
        given = {"types": types, "sizes": (rows, 768, 256), "constant": True, "run": False}
        assert least <= session.call(f"{FUNCTIONS}:product", given)["asked for"] <= most, rows


@pytest.mark.parametrize(("rows", "inputs"), [(2, 64), (64, 8)])
def test_what_is_small_stays_with_vectors(session: engines.Session, rows: int, inputs: int) -> None:
    given = {"types": BYTES, "sizes": (rows, 32, inputs), "constant": True, "run": False}
    assert session.call(f"{FUNCTIONS}:product", given)["features"] == []


@pytest.mark.parametrize(
    ("mcpu", "features"),
    [
        ("sapphirerapids", ["amx-bf16", "amx-tile"]),
        ("cooperlake", []),
        ("sapphirerapids -mattr=-amx-bf16", []),
        ("sapphirerapids -mtriple=x86_64-apple-darwin", []),  # another system asks otherwise
    ],
)
def test_tile_registers_are_the_targets(
    session: engines.Session, mcpu: str, features: list[str]
) -> None:
    given = {"types": BFLOAT16, "sizes": (64, 64, 64), "constant": True, "run": False}
    made = session.call(f"{FUNCTIONS}:product", {**given, "target": f"llvm -mcpu={mcpu}"})
    assert made["features"] == features


@pytest.mark.skipif(
    not {"avx512_bf16", "avx512_vnni"} <= flags(), reason="vectors take what tiles do not"
)
@pytest.mark.parametrize("options", [{"precision": "bfloat16"}, {"quantize": "int8"}])
def test_a_model_is_the_same_on_tiles_and_vectors(
    session: engines.Session, options: dict[str, str]
) -> None:
    made = session.call(f"{FUNCTIONS}:encoder", {"options": options})
    assert made["calls"] > 1000
    assert made["error"] < 1e-3


# For a process that must not ask: a seccomp filter answers EPERM to ARCH_REQ_XCOMP_PERM.
# https://docs.kernel.org/userspace-api/seccomp_filter.html
DENY = """
import ctypes, struct
call, request, _ = {ask}
steps = [(0x20, 0, 0, 0), (0x15, 0, 3, call), (0x20, 0, 0, 16), (0x15, 0, 1, request),
         (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
"""


def test_a_library_without_its_registers_ends_in_a_line(
    session: engines.Session, tmp_path: Path
) -> None:
    made = session.call(f"{FUNCTIONS}:artifact", {"out": str(tmp_path / "artifact")})
    assert {"amx-bf16", "amx-tile"} <= set(made["features"])
    load = f"import tvm_ffi; tvm_ffi.load_module({made['library']!r}); print('loaded')"
    if "amx_tile" in flags():
        load = DENY.format(ask=ASK_FOR_TILES) + load
    else:
        assert "this processor has no amx-bf16, amx-tile" in made["refused"]
    ended = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True)
    assert ended.returncode == 1 and not ended.stdout
    assert ended.stderr.startswith(WITHOUT_TILES) and ended.stderr.count("\n") == 1


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.real_processes
@pytest.mark.skipif(not shutil.which("qemu-x86_64-static"), reason="no qemu-user-static")
def test_an_emulated_older_processor_ends_in_a_line(
    session: engines.Session, tmp_path: Path
) -> None:
    folder = tmp_path / "artifact"
    made = session.call(f"{FUNCTIONS}:artifact", {"out": str(folder)})

    def said(code: str) -> str:
        emulated = ["qemu-x86_64-static", "-cpu", "Haswell", sys.executable, "-c", code]
        ended = subprocess.run(emulated, capture_output=True, text=True, timeout=500)
        assert ended.returncode == 1 and not ended.stdout
        return ended.stderr.splitlines()[-1]

    library = f"import tvm_ffi; tvm_ffi.load_module({made['library']!r}); print('loaded')"
    assert said(library).startswith(WITHOUT_TILES)
    artifact = f"""
import sys
sys.modules["torch"] = None
from tvm_practice.tvm_export.artifacts import load_artifacts
load_artifacts({str(folder)!r})
"""
    assert "does not load on this machine: this processor has no amx-bf16" in said(artifact)
