"""`icd` as a person runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.test_command_lines import quick_help
from tvm_practice.icd import runner
from tvm_practice.icd.__main__ import main
from tvm_practice.icd.metrics import Metrics
from tvm_practice.tvm_export.errors import BadInput

ROOT = Path(__file__).parents[2]
QUICK = ["--override", "measure.warmup=1", "--override", "measure.repeats=5"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "small.json"
    written.write_text('{"model": {"loader": "tests.icd.models:small"}}')
    return written


def icd(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def icd_process(
    *arguments: object, folder: Path, prelude: str = ""
) -> "subprocess.CompletedProcess[str]":
    """`icd` in a process of its own, after `prelude` ran there."""
    code = f"{prelude}\nfrom tvm_practice.icd.__main__ import main; main(prog_name='icd')"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        ["icd.__main__"],
        ["icd.__main__", "run"],
        ["icd.__main__", "schemas"],
        ["compare_tvm_results"],
    ],
)
def test_help_fits_a_terminal(command: list[str], tmp_path: Path) -> None:
    module, *arguments = command
    shown = quick_help(f"tvm_practice.{module}", *arguments, folder=tmp_path)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.real_processes
def test_a_run_writes_metrics_and_prints_a_table(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = icd_process("run", "-c", file, *QUICK, "--out", out, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((out / "metrics.json").read_text())
    assert f"{metrics['latency']['mean']:.3f}" in done.stdout and "PyTorch, eager" in done.stdout
    assert str(out / "metrics.json") in done.stdout and done.stderr == ""
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80


def test_the_out_folder_is_named_after_the_configuration(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert icd("run", "-c", file, *QUICK).exit_code == 0
    assert (tmp_path / "runs" / "small" / "metrics.json").exists()


def test_json_on_stdout_is_metrics_json(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "EXPORT", "tests.icd.functions:prints")
    out = tmp_path / "out"
    enabled = ["--override", "measure.tvm_enable=true"]
    done = icd("run", "-c", file, *QUICK, *enabled, "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (out / "metrics.json").read_text()
    assert Metrics.model_validate_json(done.stdout).tvm_baseline is not None
    assert "measuring" in done.stderr


def test_quiet_prints_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "EXPORT", "tests.icd.functions:prints")
    enabled = ["--override", "measure.tvm_enable=true"]
    done = icd("run", "-c", file, *QUICK, *enabled, "--out", tmp_path / "out", "--quiet")
    assert done.exit_code == 0 and done.output == ""
    assert capfd.readouterr() == ("", "")  # what the child process prints does not come by click


def test_the_exports_own_output_is_shown(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "EXPORT", "tests.icd.functions:prints")
    enabled = ["--override", "measure.tvm_enable=true"]
    done = icd("run", "-c", file, *QUICK, *enabled, "--out", tmp_path / "out")
    assert "the export's own output" in capfd.readouterr().out
    assert "TVM current, untuned" in done.stdout and "2.000" in done.stdout


def test_verbose_shows_the_configuration(file: Path, tmp_path: Path) -> None:
    done = icd("run", "-c", file, *QUICK, "--out", tmp_path / "out", "--verbose")
    assert '"repeats": 5' in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-c", "missing.json"], "cannot read missing.json: No such file or directory"),
        (["-c", "broken.json"], "broken.json is neither JSON nor YAML"),
        (["-c", "small.json", "--override", "measure.tvm_trails=3"], "mean measure.tvm_trials?"),
        (["-c", "small.json", "--override", "pipeline.mode=itertive"], "did you mean iterative?"),
        (["-c", "small.json", "--override", "model.loader=nowhere:x"], "no module nowhere"),
        (
            ["-c", "small.json", "--override", "model.loader=tests.icd.models:raises"],
            "tests.icd.models:raises raised RuntimeError: no checkpoint.pth here",
        ),
        (
            ["-c", "small.json", "--override", "model.loader=tests.icd.models:returns_none"],
            "returned None",
        ),
        (
            ["-c", "small.json", "--override", "model.example=[{shape: [3, 7]}]"],
            "refuses its inputs: RuntimeError",
        ),
        (["-c", "small.json", "--out", "broken.json"], "cannot write to broken.json"),
        (["-c", "small.json", "--out", "/proc/nowhere"], "cannot write to /proc/nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str],
    said: str,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "broken.json").write_text("{[")
    monkeypatch.chdir(tmp_path)
    done = icd("run", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ") and said in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "broken.json").read_text() == "{["
    assert not list(tmp_path.rglob("metrics.json"))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["run"], "--config"),
        (["run", "-c", "x.json", "--quiet", "--verbose"], "--quiet"),
        (["run", "-c", "x.json", "--overide", "a=b"], "--override"),
        (["rum"], "rum"),
    ],
)
def test_a_bad_argument_is_named(arguments: list[str], word: str) -> None:
    done = icd(*arguments)
    assert done.exit_code == 2 and word in done.stderr


def test_without_pytorch_it_says_so(file: Path, tmp_path: Path) -> None:
    done = icd_process(
        "run", "-c", file, "--out", tmp_path, folder=tmp_path,
        prelude="import sys; sys.modules['torch'] = None",
    )  # fmt: skip
    assert done.returncode == 1 and "torch" in done.stderr and done.stderr.count("\n") == 1


def test_a_disk_that_is_full_is_one_line_and_exit_code_1(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "metrics.json").write_text("old")
    done = icd_process(
        "run", "-c", file, *QUICK, "--out", out, "--quiet", folder=tmp_path,
        prelude="import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))",
    )  # fmt: skip
    assert done.returncode == 1 and "File too large" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert (out / "metrics.json").read_text() == "old"
    assert [each.name for each in out.iterdir()] == ["metrics.json"]


def test_what_is_not_foreseen_is_one_line_and_its_traceback_is_for_verbose(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object, **__: object) -> None:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(runner, "run", explode)
    done = icd("run", "-c", file, "--out", tmp_path)
    assert done.exit_code == 1 and done.stderr == "error: ZeroDivisionError: unforeseen\n"
    told = icd("run", "-c", file, "--out", tmp_path, "--verbose")
    assert told.exit_code == 1 and "in explode" in told.stderr


def test_ctrl_c_ends_with_130(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", stop)
    done = icd("run", "-c", file, "--out", tmp_path)
    assert done.exit_code == 130 and done.stderr == "stopped\n"


def test_a_reader_that_goes_away_does_not_end_the_run(file: Path, tmp_path: Path) -> None:
    """`icd run … | head -1`"""
    command = [sys.executable, "-m", "tvm_practice.icd", "run", "-c", str(file), *QUICK]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("loading")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0
    Metrics.model_validate_json((tmp_path / "out" / "metrics.json").read_text())


def test_a_bad_input_may_span_lines_and_is_printed_as_one(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BadInput("two\n  lines")

    monkeypatch.setattr(runner, "run", refuse)
    assert icd("run", "-c", file, "--out", tmp_path).stderr == "error: two lines\n"


def test_schemas_are_written(tmp_path: Path) -> None:
    done = icd("schemas", tmp_path / "schemas")
    assert done.exit_code == 0
    for name in ("icd_config.json", "icd_metrics.json", "tvm_comparison.json"):
        assert json.loads((tmp_path / "schemas" / name).read_text())["$schema"]
    (tmp_path / "file").touch()
    assert icd("schemas", tmp_path / "file").exit_code == 2


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "iterative"])
def test_the_other_modes_run_for_real(mode: str, file: Path, tmp_path: Path) -> None:
    """With torch.compile as it is: where there is no C++ compiler, it says so."""
    out = tmp_path / "out"
    settings = [f"pipeline.mode={mode}", "pipeline.rounds=6", "model.loader=tests.icd.models:conv"]
    overrides = [part for each in settings for part in ("--override", each)]
    done = icd_process("run", "-c", file, *QUICK, *overrides, "--out", out, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    pipeline = json.loads((out / "metrics.json").read_text())["pipeline"]
    assert pipeline["mode"] == mode
    if mode == "compiled":
        assert pipeline["choices"] == ["compile"] or "C++ compiler" in pipeline["reason"]
        return
    statuses = {step["choice"]: step["status"] for step in pipeline["search"]}
    assert set(statuses) >= {"fuse_conv_bn", "channels_last", "compile", "bfloat16"}
    for name in ("fuse_conv_bn", "channels_last"):
        assert statuses[name] in ("kept", "not_faster")
    assert pipeline["choices"] == [name for name, found in statuses.items() if found == "kept"]


@pytest.mark.pages
@pytest.mark.slow
def test_without_a_compiler_a_compiled_run_measures_eager(file: Path, tmp_path: Path) -> None:
    prelude = (
        f"import os; os.environ |= {{'PATH': '/nowhere', 'TORCHINDUCTOR_CACHE_DIR': "
        f"{str(tmp_path / 'inductor')!r}}}"
    )
    out = tmp_path / "out"
    # A linear layer alone calls a library; the fused rest of this model is C++ to compile.
    mode = ["--override", "pipeline.mode=compiled", "--override"]
    mode.append("model.loader=tests.icd.models:conv")
    done = icd_process(
        "run", "-c", file, *QUICK, *mode, "--out", out, folder=tmp_path, prelude=prelude
    )
    assert done.returncode == 0, done.stderr
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["pipeline"]["reason"].startswith("torch.compile needs a C++ compiler")
    assert metrics["latency"]["count"] == 5


def test_icd_is_a_console_script() -> None:
    scripts = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[2]
    assert 'icd = "tvm_practice.icd.__main__:main"' in scripts.partition("\n[")[0]
