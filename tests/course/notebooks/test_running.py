"""Notebooks run from their first cell to the last, and opened as pages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.browser import is_blank, opened
from tests.pages import ROOT
from tvm_practice import engines
from tvm_practice.course.catalog import PHASE_MODULES, phase
from tvm_practice.course.notebooks import session
from tvm_practice.course.notebooks.examples import EXAMPLES, SHOWS
from tvm_practice.course.notebooks.making import notebook_name, write_notebook

# Jupyter starts the kernels, which start the engines: not from a server that holds a TVM.
pytestmark = [pytest.mark.pages, pytest.mark.slow, pytest.mark.real_processes]
for _module in ("jupytext", "nbconvert", "ipykernel"):
    pytest.importorskip(_module)
# What the worked examples print, and what right answers give.
_SHOWN = {
    "te_basics": r"for i in serial\(1024\)",
    "manual_schedule": r"for i_0 in serial\(32\)",
    "schedule_analysis": r"ms: \d",
    "relay_import": r"3 x aten.linear",
    "auto_tune": r"tiles of .* ms",
}
_GIVEN = {
    "te_basics": r"softmax ran: output \(64, 1000\)",
    "manual_schedule": "",
    "schedule_analysis": r"tiled\+parallel .* GFLOP/s",
    "relay_import": "fused_matmul_add_relu",
    "auto_tune": "sample_perfect_tile",
}
_DRAWN = {"te_basics", "manual_schedule"}
# What a page would load from elsewhere: none of it is in these notebooks.
_OFFLINE = [f"--HTMLExporter.{each}_url=" for each in ("require_js", "mathjax", "jquery")]


def _nbconvert(folder: Path, *arguments: str) -> None:
    """Jupyter's own command, its files in `folder`."""
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        },
        capture_output=True,
        text=True,
        timeout=570,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _run(module: str, folder: Path, *, solutions: bool) -> dict[str, str]:
    """What the checks print, by exercise; a cell that raises fails."""
    file = folder / notebook_name(phase(module))
    write_notebook(phase(module), file, solutions=solutions, requirement="tvm-practice")
    _nbconvert(folder, "--to", "notebook", "--inplace", "--execute", file.name)
    cells: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cells"]
    said = {}
    for cell in cells:
        source = "".join(cell["source"])
        printed = "".join("".join(each.get("text", "")) for each in cell.get("outputs", ()))
        if call := re.match(r'check\("(\w+)"', source):
            said[call[1]] = printed
        if source == EXAMPLES[module].strip():
            assert re.search(_SHOWN[module], printed), printed
        elif source == SHOWS[module].strip():
            assert re.search(_GIVEN[module] if solutions else "to do", printed), printed
    return said


def _expected(module: str, word: str) -> dict[str, str]:
    return {
        each.name: "cannot be graded here" if engines.unavailable_reason(each.engine) else word
        for each in phase(module).exercises
    }


@pytest.mark.drawn
@pytest.mark.parametrize("module", PHASE_MODULES)
def test_the_solutions_pass_and_the_page_has_no_error(module: str, tmp_path: Path) -> None:
    said = _run(module, tmp_path, solutions=True)
    for name, expected in _expected(module, "passes").items():
        assert expected in said[name], said[name]
    file = tmp_path / notebook_name(phase(module))
    _nbconvert(tmp_path, "--to", "html", *_OFFLINE, file.name)
    for width in (1280, 390):
        with opened(file.with_suffix(".html"), width=width) as (page, errors):
            assert not errors, errors
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            pictures = page.locator(".jp-RenderedSVG img").all()
            assert bool(pictures) is (module in _DRAWN)
            for picture in pictures:
                box = picture.bounding_box()
                assert box and box["height"] > 50 and not is_blank(picture.screenshot())


@pytest.mark.parametrize("module", PHASE_MODULES)
def test_the_stubs_are_to_do(module: str, tmp_path: Path) -> None:
    said = _run(module, tmp_path, solutions=False)
    for name, expected in _expected(module, "is to do").items():
        assert expected in said[name] and "Traceback" not in said[name], said[name]


def test_a_wrong_answer_is_told_where_and_how_to_repeat_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.course.notebooks.test_answers import Notebook

    notebook = Notebook()
    calls = session.Session("te_basics", notebook)
    try:
        calls.check("matmull", None)
        assert "did you mean matmul?" in capsys.readouterr().out
        calls.check("matmul", len)
        assert "needs the function itself" in capsys.readouterr().out
        notebook.cell("# mine\ndef matmul(m, n, k):\n    return undefined\n")
        calls.check("matmul", notebook["matmul"])
        assert "look at:  line 3 of its cell: return undefined" in capsys.readouterr().out
        notebook.cell(
            "def matmul(m, n, k):\n    from tvm import te\n"
            "    A = te.placeholder((m, k), name='A')\n    B = te.placeholder((k, n), name='B')\n"
            "    return [A, B, te.compute((m, n), lambda i, j: A[i, 0] * B[0, j], name='C')]\n"
        )
        calls.check("matmul", notebook["matmul"])
        wrong = capsys.readouterr().out
        again = re.search(r'again with: check\("matmul", matmul, seed=(\d+)\)', wrong)
        assert again is not None and 'hint("matmul")' in wrong
        calls.check("matmul", notebook["matmul"], seed=int(again[1]))
        assert capsys.readouterr().out == wrong
        for level in (1, 2, 3):
            calls.hint("matmul")
            assert f"Hint {level} of 3" in capsys.readouterr().out
        calls.hint("matmul", 7)
        assert "levels 1 to 3" in capsys.readouterr().out
    finally:
        calls.close()


def test_without_classic_tvm_a_line_says_which_are_not_graded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "unavailable_reason", lambda engine: f"{engine} is not here")
    said = session._standing_of(engines.CLASSIC, "manual_schedule")
    assert said == "classic is not here. Not graded here: tile_classic"
