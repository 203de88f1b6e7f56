"""Schedules drawn, and the two rankings of them."""

import json
from pathlib import Path

import pytest

from tests.test_command_lines import run
from tvm_practice.viz.cache import CacheLevel
from tvm_practice.viz.ranking.limits import Costs
from tvm_practice.viz.ranking.space import draw
from tvm_practice.viz.ranking.study import tau
from tvm_practice.viz.ranking.times import Timed, Times


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


def test_times_are_kept_as_json() -> None:
    costs = Costs(1e-9, 1e-9, 4e-9, 1e-9, 1e-9, 2e-9, 16, (1e-9, 2e-9), (1e-9, 9e-9))
    timed = Timed("4x4x4 ijk/ijk", "f:", 1e-3, (1e-3, 2e-3))
    times = Times(64, 1, 4, "x86_64", (CacheLevel("L1", 64, 8),), costs, (timed,))
    assert Times.from_dict(json.loads(json.dumps(times.to_dict()))) == times


@pytest.mark.pages
def test_the_command_ranks_and_draws(tmp_path: Path) -> None:
    done = run(
        "viz", "rank", "--schedules", "12", "--size", "128", "--seconds", "2",
        "--save", "rank.json", "--out", "rank.svg", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "loops, misses and time" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    study = json.loads((tmp_path / "rank.json").read_text())
    assert len(study["schedules"]) == 12 and study["times"]["rounds"] >= 4
    # The order is not chance; how good it is depends on the machine, and the page says.
    assert study["tau"]["value"] > 0.3
    assert "<svg" in (tmp_path / "rank.svg").read_text()
    again = run("viz", "rank", "--times", "rank.json", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    # The times are kept, the estimates are the same: nothing was measured.
    assert again.stdout.splitlines()[-6:] == done.stdout.splitlines()[-8:-2]


@pytest.mark.pages
def test_a_file_that_holds_no_times_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    done = run("viz", "rank", "--times", "other.json", folder=tmp_path)
    assert done.returncode == 2 and "not written by rank --save" in done.stderr
