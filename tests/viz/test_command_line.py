"""`python -m tvm_practice.viz` on schedules of one's own, and on what is none."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import needs_classic
from tests.test_command_lines import run

MODULE = """
def conv():
    import tvm
    from tvm import te, topi
    image = te.placeholder((1, 4, 10, 10), name="image")
    weight = te.placeholder((8, 4, 3, 3), name="weight")
    schedule = tvm.s_tir.Schedule(te.create_prim_func(
        [image, weight, topi.nn.conv2d(image, weight, 1, 1, 1)]))
    schedule.split(schedule.get_loops(schedule.get_sblock("conv2d_nchw"))[1], [None, 4])
    return schedule

def classic():
    from solutions.manual_schedule import tile_classic
    from solutions.te_basics import matmul
    tensors = matmul(32, 32, 32)
    return tile_classic(tensors, 8, 8), tensors

def three():
    return 3

def to_do():
    raise NotImplementedError("write it")

def broken():
    raise ValueError("a reason")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODULE)
    return tmp_path


def viz(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return run("viz", *arguments, folder=folder)


def test_loops_primitive_by_primitive(folder: Path) -> None:
    done = viz("nest", "mine:conv", "--history", "--out", "boxes.svg", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "# conv: the loops as they were" in done.stdout
    assert "# conv: split(ff, factors=[None, 4])" in done.stdout
    assert "for ff_0 in 2" in (folder / "boxes.svg").read_text()


@pytest.mark.pages
def test_without_a_function_it_is_the_courses_matmul(folder: Path) -> None:
    """Found by name: the pictures do not import the course."""
    done = viz("nest", "--size", "16", folder=folder)
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if line.startswith("# ")]
    names = [title.removeprefix("# ").partition(":")[0] for title in titles]
    assert names == ["naive", "tiled", "tiled+parallel", "packed"]
    mine = viz("nest", "--size", "16", "--mine", folder=folder)
    assert mine.returncode == 0 and "# naive" in mine.stdout
    for name in names[1:]:
        assert f"# {name}" in mine.stdout or f"{name}: to do" in mine.stderr


@pytest.mark.pages
@pytest.mark.slow
def test_memory_access_has_a_still_and_a_moving_picture(folder: Path) -> None:
    for file in ("a.png", "a.gif"):
        done = viz("access", "mine:conv", "--touches", "100", "--out", file, folder=folder)
        assert done.returncode == 0, done.stderr
        assert "100 touches" in done.stdout and "image" in done.stdout
        assert (folder / file).stat().st_size > 3000
        assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.pages
@needs_classic
@pytest.mark.slow
def test_misses_of_a_classic_schedule(folder: Path) -> None:
    done = viz("cache", "mine:classic", "--engine", "classic", "--usual", folder=folder)
    assert done.returncode == 0, done.stderr
    # 3 matrices of 64 lines fit: each is missed once.
    assert "192" in done.stdout and "usual sizes" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["access", "mine:three"], 2, "three returned int: it has to be a tvm.s_tir.Schedule"),
        (["nest", "mine:broken"], 2, "broken raised ValueError: a reason"),
        (["access", "mine:to_do"], 1, "nothing to show: the functions are still to do"),
        (["nest", "mine:con"], 2, "mine has no con; did you mean conv?"),
        (["nest", "nowhere:f"], 2, "no module nowhere"),
        (["access", "--out", "a.jpg"], 2, "give a file that ends in .svg, .png or .gif"),
        (["nest", "--engine", "classic"], 2, "--engine classic needs MODULE:FUNCTION"),
        (["cache", "--size", "4"], 2, "--size"),
        (["rank", "--size", "100"], 2, "--size 100: give a multiple of 64"),
        (["explore", "--records", "."], 2, "there are no records of MetaSchedule's"),
        (["nest", "mine:conv", "--out", "none/x.svg"], 1, "none/x.svg: No such file"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_mistake_is_one_line(arguments: list[str], code: int, line: str, folder: Path) -> None:
    done = viz(*arguments, folder=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert line in done.stderr and "Traceback" not in done.stderr


def test_help_of_every_command_has_examples() -> None:
    for command in ("nest", "access", "cache", "explore", "rank", "roofline", "report"):
        shown = subprocess.run(
            [sys.executable, "-m", "tvm_practice.viz", command, "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "Examples:" in shown.stdout
