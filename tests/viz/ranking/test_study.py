"""Schedules drawn, and the two rankings of them."""

import json
from pathlib import Path

import pytest

from tests.test_command_lines import run
from tvm_practice.viz.ranking.space import draw
from tvm_practice.viz.ranking.study import tau


def test_a_seed_draws_the_same_schedules() -> None:
    first, again, other = draw(20, 3), draw(20, 3), draw(20, 4)
    assert first == again != other
    assert len({str(each) for each in first}) == 20
    assert all(each.inner.endswith("j") for each in first if each.vectorized)


def test_tau_of_known_orders() -> None:
    ten = list(range(10))
    assert tau(ten, ten).value == pytest.approx(1) and tau(ten, ten).low == pytest.approx(1)
    assert tau(ten, ten[::-1]).value == pytest.approx(-1)
    swapped = tau(ten, [1, 0, *ten[2:]])
    assert swapped.value == pytest.approx(1 - 2 / 45)
    assert swapped.low < swapped.value <= swapped.high


@pytest.mark.pages
def test_the_command_ranks_and_draws(tmp_path: Path) -> None:
    done = run(
        "viz", "rank", "--schedules", "12", "--size", "128", "--seconds", "2",
        "--save", "rank.json", "--out", "rank.svg", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "estimate and time" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    study = json.loads((tmp_path / "rank.json").read_text())
    assert len(study["schedules"]) == 12 and study["rounds"] >= 4
    # The order is not chance; how good it is depends on the machine, and the page says.
    assert study["tau"]["value"] > 0.3
    assert "<svg" in (tmp_path / "rank.svg").read_text()
