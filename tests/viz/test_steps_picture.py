"""The picture of a matmul's steps: saved figures, and the memory that each step touches."""

import json
from pathlib import Path

import pytest

from tests.test_command_lines import run
from tvm_practice import engines
from tvm_practice.viz.steps_picture import label

GFLOPS = {
    "naive": 1.25, "tile": 2.5, "vectorize": 31.4, "parallelize": 58.9, "register_block": 140.0,
    "packed_matmul": 201.7,
}  # fmt: skip


def test_a_rate_has_two_digits_or_more() -> None:
    assert [label(rate) for rate in (0.94, 9.96, 31.4, 201.7)] == [
        "0.9 GFLOP/s", "10.0 GFLOP/s", "31 GFLOP/s", "202 GFLOP/s",
    ]  # fmt: skip


def test_each_step_touches_less_of_its_operands() -> None:
    touched = engines.call(engines.CURRENT, "tests.viz.viz_functions:step_lines", {})
    assert list(touched) == list(GFLOPS)
    assert touched["naive"]["B"] == 64 and touched["tile"]["B"] == 32
    assert touched["tile"] == touched["vectorize"] == touched["parallelize"]
    assert set(touched["register_block"]) == {"A", "B"}  # C stays in registers
    assert touched["packed_matmul"]["B_packed"] < touched["register_block"]["B"]


@pytest.mark.pages
def test_saved_figures_are_drawn(tmp_path: Path) -> None:
    saved, out = tmp_path / "steps.json", tmp_path / "steps.svg"
    saved.write_text(json.dumps({"size": 512, "threads": 2, "gflops": GFLOPS}))
    done = run("viz", "steps", "--figures", saved.name, "--out", out.name, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    svg = out.read_text()
    for name, rate in GFLOPS.items():
        assert f">{name}<" in svg and f">{label(rate)}<" in svg
        assert f"{name}: {label(rate)}" in done.stdout


@pytest.mark.parametrize("name", ["steps.png", "steps"])
def test_the_picture_is_an_svg(name: str, tmp_path: Path) -> None:
    done = run("viz", "steps", "--out", name, folder=tmp_path)
    assert done.returncode == 2 and "give a file that ends in .svg" in done.stderr
