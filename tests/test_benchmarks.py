"""The command lines of the hand-written schedules' benchmarks; never their figures."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest
from click.testing import CliRunner

from tests.test_command_lines import quick_help
from tvm_practice.tvm_export.speed_passes import SpeedPass

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
NAMES = (
    *("matmul", "conv2d", "winograd", "startup", "tuning", "deploy_cpp"),
    *("torch_compile", "low_precision", "low_precision_models"),
    *("trials", "busy_machine", "goals", "rivals", "compilers", "runtime_checks", "c_source"),
    *("runtimes", "passes"),
)


@pytest.mark.parametrize("name", NAMES)
def test_help_has_examples_and_needs_no_tvm(name: str) -> None:
    quick_help(name, folder=BENCHMARKS)


@pytest.mark.parametrize("name", NAMES[:9])
def test_no_page_without_measurements(name: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), "--table"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ended.returncode == 2 and not ended.stdout
    assert ended.stderr.strip().splitlines()[-1].startswith("Error: ")


def test_no_aims_without_measurements(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "goals.py")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 2 and "runs has none of matmul.json" in ended.stderr


@pytest.mark.real_processes
def test_load_comes_and_goes() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n"
        "import os, psutil, busy_machine\n"
        "with busy_machine.load_of((0.01, 0.01)) as pids:\n"
        "    loads = [psutil.Process(each) for each in pids]\n"
        "    assert len(loads) == 2 and os.getpid() not in [each.ppid() for each in loads]\n"
        "    loads[0].kill()  # a load that ends early is no failure\n"
        "assert not psutil.wait_procs(loads, timeout=10)[1]\n"
    )
    # Captured: the load must not keep its starter's output open.
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)


@pytest.mark.real_processes
def test_load_ends_with_its_owner() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n"
        "import busy_machine, time\n"
        "with busy_machine.load_of((0.01, 0.01)) as pids:\n"
        "    print(*pids, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout
        loads = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
        assert len(loads) == 2
        owner.kill()
    _, left = psutil.wait_procs(loads, timeout=30)
    for each in left:
        each.kill()
    assert not left


def _trials() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import trials
    finally:
        sys.path.remove(str(BENCHMARKS))
    return trials


def test_trials_of_several_seeds_are_averaged_with_their_interval() -> None:
    trials = _trials()

    def point(number: int, seed: int, ratio: float) -> Any:
        over = (ratio / 2, (0.4, 0.6)) if number else None
        return trials.Point("mlp", "ansor", number, seed, number, 1.0, ratio, (0.9, 1.1), over)

    points = [point(0, 0, 2.0), point(0, 1, 2.0), point(8, 0, 1.0), point(8, 1, 0.5)]
    value, (low, high) = trials.mean_with_interval([(each.ratio, each.ci95) for each in points[2:]])
    assert value == pytest.approx(0.5**0.5)
    half = 12.71 * 0.5**0.5 * 0.6931471805599453 / 2**0.5  # t times the deviation over sqrt(2)
    assert [low, high] == pytest.approx([value * 2.718281828**-half, value * 2.718281828**half])
    assert trials.mean_with_interval([(2.0, (0.9, 1.1))]) == (2.0, (0.9, 1.1))
    lines = trials.table(points)
    assert "| tuner | untuned | 8 trials |" in lines
    assert "| *share* | 35% | 100% |" in lines  # sqrt(1/2 * 1/4)
    assert any(each.startswith("| *over untuned* | — | 0.35 (") for each in lines)
    assert "| *over untuned* | — | 0.50 (0.40–0.60) |" in trials.table(points[::2])


def test_trials_are_measured_seed_by_seed() -> None:
    places = list(_trials().wanted(("mlp",), ("ansor", "autotvm"), (8, 4), 2))
    assert places[:3] == [("mlp", "ansor", number, 0) for number in (0, 4, 8)]
    assert len(places) == 12 and places[6] == ("mlp", "ansor", 0, 1)


def test_a_search_waits_whose_point_was_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = _trials()
    asked = []

    def measure(model: str, tuner: str, number: int, seed: int, folder: Path) -> Any:
        asked.append((number, seed))
        if (number, seed) == (4, 0):
            return "not measured"
        return trials.Point(model, tuner, number, seed, number, 1.0, 0.5, (0.4, 0.6))

    monkeypatch.setattr(trials, "measure", measure)
    command = ["--model", "mlp", "--tuner", "ansor", "--trials", "4,8", "--seeds", "2"]
    run = CliRunner().invoke(trials.main, [*command, "--out", str(tmp_path / "trials.json")])
    assert run.exit_code == 1 and "2 points are missing" in run.output
    assert asked == [(0, 0), (4, 0), (0, 1), (4, 1), (8, 1)]


def test_trials_are_drawn_with_a_panel_per_model() -> None:
    trials = _trials()
    points = [
        trials.Point(model, "ansor", number, 0, number, 1.0, 1.5 - number / 16, (0.4, 1.6))
        for model in ("mlp", "gpt2")
        for number in (0, 8)
    ]
    drawn = trials.picture(points)
    assert all(f">{each}<" in drawn for each in ("mlp", "gpt2", "untuned", "8", "ansor"))


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.real_processes
def test_trials_go_on_where_a_run_ended(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "trials.py"), "--model", "mlp", "--seeds", "1"]
    command += ["--tuner", "metaschedule", "--trials"]
    environment = {**os.environ, "TVM_PRACTICE_ACCEPT_LOAD": "1"}

    def run(trials: str) -> list[dict[str, Any]]:
        subprocess.run([*command, trials], cwd=tmp_path, env=environment, check=True, timeout=300)
        points: list[dict[str, Any]] = json.loads((tmp_path / "runs/trials.json").read_text())[
            "points"
        ]
        return points

    first, second = run("2"), run("2,4")
    assert [each["trials"] for each in second] == [0, 2, 4] and second[:2] == first
    assert second[2]["measured"] >= 4 and all(each["ratio"] > 0 for each in second)


def test_a_row_that_misses_an_aim_has_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    models = importlib.import_module("low_precision_models")

    def row(model: str, slower: float) -> dict[str, object]:
        ratio = {"value": slower, "ci95": [slower, slower], "disturbance": None}
        operator = {"name": f"conv_of_{model}_prepacked", "calls": 2, "milliseconds": 1.0}
        return {
            "model": model,
            "precision": "int8",
            "comparison": {"ratio": {"float32": ratio}, "latency": {"int8": {"p50": 2.0}}},
            "cosine": {"int8": 0.999, "float32": 1.0},
            "missing": {"OpenVINO": "not installed"},
            "profile": [{**operator, "share": 0.05}] * 20,
        }

    packages = ("apache-tvm", "torch", "onnxruntime", "openvino", "nncf", "torchao")
    lines = models.part(
        {
            "environment": {"processor": "one", "date": "2026-01-01"},
            "threads": 2,
            "packages": dict.fromkeys(packages),
            "rows": [row("resnet18", 4.0), row("mobilenet_v2", 2.0)],
        }
    )
    text = "\n".join(lines)
    assert "0.50 of float32's time, the aim is 0.45." in text
    assert "`conv_of_mobilenet_v2` | 2 | 1.00 | 5%" in text and "| 8 others | 16 |" in text
    assert "conv_of_resnet18" not in text and "int8, OpenVINO: not installed" in text


def test_a_page_keeps_the_parts_of_other_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    machines = importlib.import_module("machines")
    monkeypatch.setattr(machines, "DOCS", tmp_path)
    monkeypatch.setattr(machines, "KEPT", tmp_path / "measured")
    for kind, figure in (("one (znver5)", "1"), ("other (znver3)", "2"), ("one (znver5)", "3")):
        machines.write_part("page", "# Page\n", kind, [figure])
    assert (
        tmp_path / "page.md"
    ).read_text() == "# Page\n\n## one (znver5)\n\n3\n\n## other (znver3)\n\n2\n"


def test_passes_are_told_by_what_they_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    passes = importlib.import_module("passes")
    gained = {"value": 1.5, "ci95": [1.25, 1.75], "verdict": "slower"}
    rows = {
        "lstm": {
            "ms": 2.0,
            "ratios": {"recurrence": gained},
            "beside_load": gained,
            "failed": {"padding": "lost"},
        },
        "mlp": {"ms": None, "ratios": {}, "beside_load": None, "failed": {}},
    }
    assert passes.table_lines(rows) == [
        "| model | ms | recurrence | claimed-loops beside load |",
        "|---|---|---|---|",
        "| LSTM, 2×650, 1×35 tokens | 2.00 | 1.50 (1.25–1.75) | 1.50 (1.25–1.75) |",
        "| MLP 784-512-256-10, batch 32 | – | – | – |",
        "",
        "- LSTM, 2×650, 1×35 tokens without padding: lost",
    ]


def test_every_pass_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    passes = importlib.import_module("passes")
    assert set(passes._TOLD) == set(get_args(SpeedPass))


def test_runtimes_are_told_by_machine_and_by_who_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    runtimes = importlib.import_module("runtimes")

    def row(**times: float) -> dict[str, object]:
        ratios = {
            each: {"value": time, "ci95": [time, time], "verdict": "slower"}
            for each, time in times.items()
        }
        operator = {"name": "fused_conv2d_prepacked", "calls": 3, "milliseconds": 1.5, "share": 0.5}
        return {
            "ms": 3.0,
            "export_seconds": 12.34,
            "export_stages": {"import": 3.0, "optimize": 2.5, "build": 4.0},
            "ratios": ratios,
            "missing": {"openvino": "not installed"},
            "operators": [operator],
            "onnx_operators": {"Conv": 1.25, "Add": 0.5},
            "date": "2026-01-01",
        }

    one = {"processor": "one (znver5)", "threads": 2}
    packages = {"torch": "2.13", "openvino": ""}
    tuned = {**row(onnx=1.6), "trials": 200, "over_untuned": {"value": 0.75, "ci95": [0.7, 0.8]}}
    curve = {"100": {"value": 0.81, "ci95": [0.8, 0.82]}, "25": {"value": 1.0, "ci95": [1.0, 1.0]}}
    models = {"lstm": row(onnx=1.25), "vit": {**row(onnx=0.8), "tuned": tuned, "curve": curve}}
    text = runtimes.page([{**one, "packages": packages, "models": models}])
    assert "## one (znver5), 2 threads" in text and "\ntorch 2.13.\n" in text
    assert "1.25 (1.25–1.25) | TVM, 0.80 | 12.3 | 2026-01-01 |" in text
    assert "0.80 (0.80–0.80) | ONNX Runtime, 0.80 | 12.3 | 2026-01-01 |" in text
    assert "TVM's time: 1.00 over the fastest, 1.00 over ONNX Runtime." in text
    assert "| export of more than 10 s | import | optimize | build | the rest |" in text
    assert "| LSTM, 2×650, 1×35 tokens | 3.0 | 2.5 | 4.0 | 2.8 |" in text
    assert "| 200 | 3.00 | 0.75 (0.70–0.80) | 1.60 (1.60–1.60) | TVM, 0.62 |" in text
    assert "TVM's time: 0.62 over the fastest, 0.62 over ONNX Runtime." in text
    assert "| time / untuned after | 25 trials | 100 trials |" in text
    assert "| ViT-B/16, 1×3×224×224 | 1.00 (1.00–1.00) | 0.81 (0.80–0.82) |" in text
    assert "OpenVINO: not installed" in text
    assert "### ViT-B/16" in text and "### LSTM" not in text
    # A rival that was asked for alone, in one row, and in no tuned one.
    models["lstm"]["ratios"] |= row(**{"compile-max": 2.0})["ratios"]  # type: ignore[operator]
    more = runtimes.page([{**one, "packages": packages, "models": models}])
    name = runtimes.RIVALS["compile-max"]
    assert f"1.00 over ONNX Runtime, 0.50 over {name} in 1 of the 2." in more
    assert "TVM's time: 0.62 over the fastest, 0.62 over ONNX Runtime." in more
    assert "`fused_conv2d` | 3 | 1.50 | 50% |" in text and "Conv 1.25, Add 0.50" in text
