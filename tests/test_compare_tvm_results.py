"""The comparison of a run with artifacts: its figures, its interval, its files, its refusals."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tvm_practice.compare_tvm_results import main
from tvm_practice.measure import Latency
from tvm_practice.measure.comparison import ratio_interval
from tvm_practice.tvm_export.run_comparison import Row, compare, interleaved_speedup

MACHINE = {"processor": "Z80", "threads": "2"}


def latency(mean: float, std: float = 0.1, count: int = 100) -> dict[str, Any]:
    """As measure.Latency writes it, of samples with that mean and deviation."""
    draws = np.random.default_rng(1).normal(size=count)
    draws = (draws - draws.mean()) / draws.std(ddof=1)
    return Latency(tuple(mean + std * draws), 5).to_dict()


def run_metrics(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "environment": MACHINE,
        "device": "cpu",
        "threads": 2,
        "model": {"loader": "models:mlp"},
        "pipeline": {"mode": "eager"},
        "latency": latency(2.0),
        **changes,
    }


def artifact(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "engine": "classic",
        "engine_facts": {"threads": 2},
        "target": "llvm -mcpu=haswell",
        "tuner": "ansor",
        "tuning": {"trials": 300},
        "environment": MACHINE,
        "model": "models:mlp",
        "verification": {"verified": True, "max_error": 1e-6, "atol": 1e-3, "rtol": 1e-3},
        "latency": latency(3.0),
        **changes,
    }


def write(file: Path, content: Any) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))
    return file


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    return write(tmp_path / "run" / "metrics.json", run_metrics())


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    return write(tmp_path / "tvm_ansor" / "metadata.json", artifact())


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_icd_is_faster_by_a_positive_delta(metrics: Path, metadata: Path) -> None:
    row = compare(metrics, metadata)
    assert row.icd_latency_ms == pytest.approx(2.0) and row.tvm_latency_ms == pytest.approx(3.0)
    assert row.speedup_vs_tvm == pytest.approx(1.5) and row.delta_ms == pytest.approx(1.0)
    assert row.speedup_ci95 is not None
    assert row.speedup_ci95[0] < 1.5 < row.speedup_ci95[1]
    assert row.significant and row.faster == "ICD"
    assert row.tvm_verification == artifact()["verification"] and row.notes == []
    assert row.tvm_config == {
        "engine": "classic",
        "target": "llvm -mcpu=haswell",
        "tuner": "ansor",
        "tuning": {"trials": 300},
    }


def test_tvm_is_faster_by_a_negative_delta(metrics: Path, tmp_path: Path) -> None:
    row = compare(metrics, write(tmp_path / "t" / "m.json", artifact(latency=latency(1.0))))
    assert row.speedup_vs_tvm == pytest.approx(0.5) and row.delta_ms == pytest.approx(-1.0)
    assert row.significant and row.faster == "TVM"


def test_a_difference_within_the_noise_is_not_significant(metrics: Path, tmp_path: Path) -> None:
    noisy = latency(2.05, std=1.0, count=20)
    row = compare(metrics, write(tmp_path / "t" / "m.json", artifact(latency=noisy)))
    assert row.significant is False and row.faster == "neither"


def test_the_interleaved_ratio_of_an_artifact_counts(metrics: Path, tmp_path: Path) -> None:
    """Means that differ by a half are no proof when A B A B showed nothing."""
    ratio = {"value": 1.1, "ci95": [0.9, 1.3], "verdict": "no significant difference"}
    row = compare(metrics, write(tmp_path / "m.json", artifact(ratio_to_pytorch=ratio)))
    assert row.speedup_ci95 is not None and row.speedup_ci95[0] > 1
    assert row.speedup_interleaved == 1.1  # the run is the eager model
    assert row.speedup_interleaved_ci95 == pytest.approx((0.9, 1.3))
    assert row.significant is False and row.faster == "neither"
    ratio = {"value": 1.5, "ci95": [1.2, 1.7], "verdict": "slower"}
    row = compare(metrics, write(tmp_path / "m.json", artifact(ratio_to_pytorch=ratio)))
    assert row.significant and row.faster == "ICD"
    opposite = {"value": 0.5, "ci95": [0.4, 0.6], "verdict": "faster"}
    row = compare(metrics, write(tmp_path / "m.json", artifact(ratio_to_pytorch=opposite)))
    assert row.significant is False


def test_the_interleaved_ratios_of_both_are_divided(tmp_path: Path) -> None:
    ours = {"value": 0.5, "ci95": [0.4, 0.6], "verdict": "faster"}
    pipeline = {"mode": "compiled", "choices": ["compile"], "ratio_to_eager": ours}
    metrics = write(tmp_path / "metrics.json", run_metrics(pipeline=pipeline))
    theirs = {"value": 0.8, "ci95": [0.8, 0.8], "verdict": "faster"}
    row = compare(metrics, write(tmp_path / "m.json", artifact(ratio_to_pytorch=theirs)))
    assert row.speedup_interleaved == pytest.approx(1.6)
    assert row.speedup_interleaved_ci95 == pytest.approx((0.8 / 0.6, 0.8 / 0.4))
    without = run_metrics(pipeline={**pipeline, "ratio_to_eager": None})
    metrics = write(tmp_path / "metrics.json", without)
    row = compare(metrics, write(tmp_path / "m.json", artifact(ratio_to_pytorch=theirs)))
    assert row.speedup_interleaved is None and row.significant


@pytest.mark.parametrize(
    "ratio", [3, {}, {"value": 1}, {"value": 1, "ci95": [1]}, {"value": 0, "ci95": [0, 1]}, None]
)
def test_a_ratio_that_is_none_is_passed_over(ratio: Any, metrics: Path, tmp_path: Path) -> None:
    row = compare(metrics, write(tmp_path / "m.json", artifact(ratio_to_pytorch=ratio)))
    assert row.speedup_interleaved is None and row.significant


def test_a_tuners_own_result_is_compared_too(metrics: Path, tmp_path: Path) -> None:
    ratio = {"value": 1.5, "ci95": [1.4, 1.6], "verdict": "slower"}
    own = {"latency": latency(4.0), "ratio_to_pytorch": ratio}
    file = write(tmp_path / "x" / "metadata.json", artifact(tuners_own=own))
    row = compare(metrics, file)
    assert row.tvm_latency_ms == pytest.approx(3) and row.own_latency_ms == pytest.approx(4)
    assert row.own_speedup_vs_tvm == pytest.approx(2) and row.own_speedup_ci95 is not None
    assert row.own_speedup_interleaved == pytest.approx(1.5)
    shown = command(metrics, file).stdout
    assert "alone" in shown and "4.000" in shown and "3.000" in shown
    whole = write(tmp_path / "y" / "metadata.json", artifact(tuners_own=None))
    assert compare(metrics, whole).own_latency_ms is None
    assert "alone" not in command(metrics, whole).stdout


def test_arms_of_independent_ratios_add_as_squares() -> None:
    """By simulation: the interval covers the true ratio 95 times in 100."""
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        found = []
        for true, spread in ((0.8, 0.1), (0.5, 0.05)):
            value = true * np.exp(generator.normal(0, spread))
            reach = np.exp(1.96 * spread)
            found.append({"value": value, "ci95": [value / reach, value * reach]})
        run = {"pipeline": {"choices": ["compile"], "ratio_to_eager": found[1]}}
        speedup = interleaved_speedup(run, {"ratio_to_pytorch": found[0]})
        assert speedup is not None
        covered += speedup[1][0] <= 0.8 / 0.5 <= speedup[1][1]
    assert 930 < covered < 970


def test_a_configuration_in_the_metadata_is_copied(metrics: Path, tmp_path: Path) -> None:
    configuration = {"tuning_trials": 3000, "use_ansor": True}
    row = compare(metrics, write(tmp_path / "m.json", artifact(configuration=configuration)))
    assert row.tvm_config == configuration


def test_a_summary_is_enough(metrics: Path, tmp_path: Path) -> None:
    keys = ("schema_version", "engine", "target", "tuner", "verification", "latency")
    summary = {key: artifact()[key] for key in keys}
    row = compare(metrics, write(tmp_path / "summary.json", summary))
    assert row.speedup_vs_tvm == pytest.approx(1.5) and row.significant
    assert row.tvm_config == {key: summary[key] for key in ("engine", "target", "tuner")}


def test_the_interval_covers_the_true_ratio_95_times_in_100() -> None:
    generator = np.random.default_rng(0)
    true, covered, rounds = 3.0 / 2.0, 0, 1000
    for _ in range(rounds):
        above = Latency(tuple(generator.normal(3.0, 0.6, 12))).to_dict()
        below = Latency(tuple(generator.normal(2.0, 0.2, 30))).to_dict()
        interval = ratio_interval(above, below)
        assert interval is not None
        covered += interval[0] <= true <= interval[1]
    assert 0.93 < covered / rounds < 0.97


@pytest.mark.parametrize(
    "lacking", [{"std": None}, {"count": None}, {"count": 1}, {"std": float("nan")}, {"std": -1}]
)
def test_without_a_spread_there_is_no_interval(
    lacking: dict[str, Any], metrics: Path, tmp_path: Path
) -> None:
    given = artifact(latency={**latency(3.0), **lacking})
    row = compare(metrics, write(tmp_path / "m.json", given))
    assert row.speedup_ci95 is None and row.significant is None and row.faster == "unknown"
    assert row.speedup_vs_tvm == pytest.approx(1.5)


def test_samples_that_are_all_equal_have_an_interval_of_a_point() -> None:
    same = Latency((2.0, 2.0, 2.0)).to_dict()
    assert ratio_interval(same, same) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verification": None}, "the artifact was not verified against PyTorch"),
        ({"verification": {"verified": False}}, "the artifact's outputs are NOT PyTorch's"),
        ({"environment": {"processor": "6502"}}, "different processors: Z80 (ICD) and 6502 (TVM)"),
        ({"model": "models:cnn"}, "different models: models:mlp (ICD) and models:cnn (TVM)"),
        ({"engine_facts": {"threads": 8}}, "different thread counts: 2 (ICD) and 8 (TVM)"),
        ({"target": "cuda -arch=sm_80"}, "different devices: cpu (ICD) and cuda (TVM)"),
        ({"target": '{"kind": "cuda"}'}, "different devices: cpu (ICD) and cuda (TVM)"),
        ({"latency": {**latency(3.0), "stable": False}}, "TVM's latency is unstable"),
    ],
)
def test_what_stands_in_the_way_of_comparing_is_noted(
    changes: dict[str, Any], said: str, metrics: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "m.json", artifact(**changes))
    assert said in compare(metrics, file).notes
    assert said in " ".join(command(metrics, file).stdout.split())


def test_what_is_not_finite_in_the_metadata_becomes_null(metrics: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "m.json", artifact(configuration={"best": float("nan")}))
    output = tmp_path / "x.json"
    assert command(metrics, file, "--output", output).exit_code == 0
    assert json.loads(output.read_text())["tvm_config"] == {"best": None}


def test_a_json_target_of_this_machine_is_the_cpu(metrics: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "m.json", artifact(target='{"kind": "llvm", "mcpu": "znver5"}'))
    assert compare(metrics, file).notes == []


def test_one_comparison_is_an_object(metrics: Path, metadata: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "x.json"
    done = command(metrics, metadata, "--output", output)
    assert done.exit_code == 0 and f"written: {output}" in done.stdout
    found = json.loads(output.read_text())
    assert Row.model_validate_json(output.read_text()) == compare(metrics, metadata)
    assert set(found) >= {
        "icd_latency_ms", "tvm_latency_ms", "speedup_vs_tvm", "delta_ms", "tvm_config",
        "tvm_verification", "speedup_ci95", "significant",
    }  # fmt: skip
    printed = command(metrics, metadata, "--json")
    assert json.loads(printed.stdout) == found


def test_several_are_a_list_and_a_table(metrics: Path, metadata: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "tvm_untuned" / "metadata.json", artifact(latency=latency(1.0)))
    output = tmp_path / "x.json"
    done = command(metrics, metadata, other, "--output", output)
    assert [each["speedup_vs_tvm"] for each in json.loads(output.read_text())] == pytest.approx(
        [1.5, 0.5]
    )
    lines = {name: line for line in done.stdout.splitlines() for name in ("ansor", "untuned")
             if f"tvm_{name}" in line}  # fmt: skip
    assert "│ ICD " in lines["ansor"] and "+1.000" in lines["ansor"]
    assert "│ TVM " in lines["untuned"] and "-1.000" in lines["untuned"]
    assert len(json.loads(command(metrics, metadata, other, "--json").stdout)) == 2


def test_a_note_on_all_artifacts_is_printed_once(metadata: Path, tmp_path: Path) -> None:
    unstable = run_metrics(latency={**latency(2.0), "stable": False})
    metrics = write(tmp_path / "m.json", unstable)
    other = write(tmp_path / "other" / "metadata.json", artifact(model="models:cnn"))
    lines = command(metrics, metadata, other).stdout.splitlines()
    notes = [line for line in lines if line.startswith("note: ")]
    assert notes == [
        "note: ICD's latency is unstable",
        "note: other: different models: models:mlp (ICD) and models:cnn (TVM)",
    ]


def test_csv(metrics: Path, metadata: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "m.json", artifact(latency={"mean": 1.0}))
    output = tmp_path / "x.csv"
    assert command(metrics, metadata, other, "--output", output).exit_code == 0
    first, second = csv.DictReader(output.read_text().splitlines())
    assert float(first["icd_latency_ms"]) == pytest.approx(2.0)
    assert float(first["speedup_vs_tvm"]) == pytest.approx(1.5)
    assert float(first["speedup_low"]) < 1.5 < float(first["speedup_high"])
    assert first["significant"] == "True" and second["significant"] == ""
    assert second["speedup_low"] == ""
    assert json.loads(first["tvm_config"])["tuner"] == "ansor"
    assert json.loads(first["tvm_verification"])["verified"] is True


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_plot(ending: str, metrics: Path, metadata: Path, tmp_path: Path) -> None:
    picture = tmp_path / "new" / f"x.{ending}"
    assert command(metrics, metadata, "--plot", picture).exit_code == 0
    begin = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert picture.read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read"),
        ("{", "is not JSON: Expecting property name enclosed in double quotes, line 1, column 2"),
        ("", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "does not hold an object"),
        ("{}", "has no latency"),
        ('{"latency": 3}', "has no latency"),
        ('{"latency": null}', "has no latency"),
        ('{"latency": {}}', "has no number latency.mean"),
        ('{"latency": {"mean": "fast"}}', "has no number latency.mean"),
        ('{"latency": {"mean": true}}', "has no number latency.mean"),
        ('{"latency": {"mean": 0}}', "latency.mean=0 is not a time"),
        ('{"latency": {"mean": NaN}}', "latency.mean=nan is not a time"),
        ('{"latency": {"mean": 1, "unit": "s"}}', "latency.unit='s'; only ms is read"),
    ],
)
@pytest.mark.parametrize("which", ["metrics", "metadata"])
def test_a_bad_file_is_one_line_and_exit_code_2(
    which: str, text: str | bytes | None, said: str, metrics: Path, metadata: Path, tmp_path: Path
) -> None:
    bad = {"metrics": metrics, "metadata": metadata}[which]
    if text is None:
        bad.unlink()
    elif which == "metrics" and isinstance(text, str) and text.startswith('{"'):
        bad.write_text(text.replace("{", '{"pipeline": {}, ', 1))
    elif which == "metrics" and text == "{}":
        bad.write_text('{"pipeline": {}}')
    else:
        bad.write_bytes(text if isinstance(text, bytes) else text.encode())
    output = tmp_path / "x.json"
    output.write_text("old")
    done = command(metrics, metadata, "--output", output)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert said in done.stderr and str(bad) in done.stderr
    assert output.read_text() == "old"


def test_files_in_the_wrong_places_are_told(metrics: Path, metadata: Path) -> None:
    swapped = command(metadata, metrics)
    assert swapped.exit_code == 2 and "is an artifact's record, not the metrics" in swapped.stderr
    twice = command(metrics, metrics)
    assert twice.exit_code == 2 and "is a run's metrics.json, not an artifact's" in twice.stderr
    folder = command(metrics, metadata.parent)
    assert folder.exit_code == 2 and "is a folder; name its" in folder.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "x.txt"], "--output x.txt ends neither in .json nor in .csv"),
        (["--plot", "x.bmp"], "--plot x.bmp ends in none of .png, .svg, .pdf"),
        (["--output", "/proc/nowhere/x.json"], "cannot write /proc/nowhere"),
        (["--plot", "/proc/nowhere/x.png"], "cannot write /proc/nowhere"),
    ],
)
def test_a_bad_output_is_one_line(
    arguments: list[str], said: str, metrics: Path, metadata: Path
) -> None:
    done = command(metrics, metadata, *arguments)
    assert done.exit_code == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_no_metadata_is_a_usage_error(metrics: Path) -> None:
    done = command(metrics)
    assert done.exit_code == 2 and "METADATA" in done.stderr


def test_it_runs_as_a_module(metrics: Path, metadata: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tvm_practice.compare_tvm_results", metrics, metadata],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "│ ICD " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
