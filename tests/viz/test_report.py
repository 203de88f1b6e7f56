"""The report: one page without network, its pictures there, its controls at work."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser import is_blank, opened, require_sound
from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.measure import Ratio
from tvm_practice.tvm_export.artifacts.schema import RatioRecord
from tvm_practice.viz.drawing import new_figure, standalone, style, to_svg
from tvm_practice.viz.report import Block, Page, Section, latency_block, render, write

FUNCTIONS = "tests.viz.viz_functions"


pytestmark = pytest.mark.pages  # the report takes a study to make


@pytest.fixture(scope="module")
def current(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.fixture(scope="module")
def made(
    current: engines.Session, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("report")
    return folder / "report.html", current.call(f"{FUNCTIONS}:study", {"folder": str(folder)})


def test_the_roofline_is_above_what_it_limits(made: tuple[Path, dict[str, Any]]) -> None:
    limits, kernels = made[1]["roofline"]["limits"], made[1]["roofline"]["kernels"]
    assert set(kernels) == {"naive", "tiled", "tiled+parallel", "packed"}
    # Two kernels of the same machine: the peak is well above a scalar loop's rate.
    assert limits["peak_gflops"] > 4 * kernels["naive"]["gflops"]
    assert limits["ridge"] == pytest.approx(limits["peak_gflops"] / limits["memory_gbps"])
    assert limits["one_threads_gbps"] > 0
    for name, kernel in kernels.items():
        assert kernel["gflops"] < 1.5 * kernel["limit"], name  # loosely: the machine is busy
        # Six matrices of 96 x 96 take less than any second cache.
        assert kernel["stays_in"] == "second cache" and kernel["limit"] == limits["peak_gflops"]
        if kernel["cache_intensity"] is not None:  # what misses the last cache missed the second
            assert kernel["cache_intensity"] <= kernel["intensity"], name
    assert kernels["naive"]["intensity"] <= kernels["tiled"]["intensity"]


def test_it_is_one_file_without_network(made: tuple[Path, dict[str, Any]]) -> None:
    text = made[0].read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!#)(?!data:)[^"]+"', text)
    assert "@import" not in text and "url(http" not in text
    assert "A &lt;test&gt; page" in text and "-m &lt;none&gt; &amp; more" in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert made[1]["schedules"] == ["tiled", "tiled+parallel", "packed"]  # naive has no steps


@pytest.mark.slow
def test_it_opens_in_a_browser_on_a_desk_and_on_a_phone(made: tuple[Path, dict[str, Any]]) -> None:
    require_sound(made[0])


@pytest.mark.slow
def test_its_controls_work(made: tuple[Path, dict[str, Any]]) -> None:
    with opened(made[0]) as (page, errors):
        page.get_by_role("tab", name="packed").first.click()
        box = page.locator(".steps .tab:visible")
        assert "decompose_reduction" in box.locator("output").inner_text()
        box.get_by_label("step before").click()
        assert "unroll(k_1)" in box.locator("output").inner_text()
        assert box.locator(".step:visible").count() == 1
        assert "its body runs" in (box.locator(".step:visible title").first.text_content() or "")

        player = page.locator(".player:visible")
        slider = player.get_by_role("slider")
        slider.fill("3")
        assert player.locator("output").inner_text() == "3 of 8256: reads A[0, 0]"
        few = player.locator("canvas").nth(1).screenshot()
        slider.fill("8256")
        many = player.locator("canvas").nth(1).screenshot()
        assert few != many and not is_blank(many)
        slider.fill("0")
        player.get_by_role("button", name="play").click()
        page.wait_for_function("document.querySelector('.player input').value > 60")
        player.get_by_role("button", name="pause").click()

        page.locator(".players [role=tab]").nth(0).press("ArrowRight")
        assert page.locator(".player:visible").get_attribute("data-name") == "tiled"
        assert not errors, errors


def test_what_is_to_do_or_broken_is_left_out_and_said(current: engines.Session) -> None:
    assert current.call(f"{FUNCTIONS}:left_out") == {
        "stub": "to do",
        "broken": "ValueError: the last line",
    }


def test_bars_say_each_ratio() -> None:
    ratios = {
        "Relax, untuned": RatioRecord.of(Ratio(0.5, 0.4, 0.6)),
        "ONNX <x>": RatioRecord.of(Ratio(2.0, 1.5, 2.5)),
    }
    svg = latency_block(ratios, baseline="PyTorch").svg
    assert ">0.50<" in svg and ">2.00<" in svg and "ONNX &lt;x&gt;" in svg


def test_a_picture_takes_the_colour_of_its_page() -> None:
    with style():
        figure = new_figure(2, 2)
        figure.subplots().set_title("a title")
        first, second = to_svg(figure, title="One"), to_svg(figure, title='Two & "more"')
    assert "currentColor" in first and 'aria-label="Two &amp; &quot;more&quot;"' in second
    own = set(re.findall(r'\bid="([^"]+)"', first))
    assert own and not own & set(re.findall(r'\bid="([^"]+)"', second))
    assert set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', first)) <= own
    assert standalone(first).startswith("<?xml")


def test_it_is_written_whole(tmp_path: Path) -> None:
    page = Page("t", [], [Section("s", "S", [Block("code", text="x < y")])])
    file = write(page, tmp_path / "report.html")
    assert file.read_text(encoding="utf-8") == render(page)
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
