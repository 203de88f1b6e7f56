"""The stages of an export: the product's own, and a package's in their place."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Processes, needs_classic
from tvm_practice import measure
from tvm_practice.engines import CLASSIC
from tvm_practice.tvm_export.steps import Steps, comparing, relax, tuning


def test_the_default_is_the_products_own() -> None:
    steps = Steps()
    assert steps.import_relax is relax.import_relax
    assert steps.verify is comparing.verify and steps.is_own("tune_ansor")
    with pytest.raises(AttributeError, match="no step improt_relax"):
        _ = steps.improt_relax


def test_the_answer_key_shows_the_products_own() -> None:
    assert Steps("solutions").tune_metaschedule is tuning.tune_metaschedule
    assert Steps("solutions").is_own("tune_autotvm")


def test_the_learners_replace_it() -> None:
    steps = Steps("tvm_practice")
    assert steps.verify.__module__ == "tvm_practice.relay_import"
    assert steps.tune_ansor.__module__ == "tvm_practice.auto_tune"
    assert not steps.is_own("tune_ansor")


def test_what_a_package_does_not_define_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_steps"
    package.mkdir()
    for phase in ("relay_import", "auto_tune", "schedule_analysis"):
        (package / f"{phase}.py").write_text("")
    (package / "relay_import.py").write_text("def verify():\n    return 'mine'\n")
    monkeypatch.syspath_prepend(tmp_path)
    steps = Steps("some_steps")
    assert steps.verify() == "mine" and steps.import_relax is relax.import_relax


def test_the_sampler_is_that_of_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    samples = Steps().sample_latency(lambda: calls.append(1), warmup=2, repeats=3)
    assert samples.shape == (3,) and len(calls) == 5
    monkeypatch.setattr(
        measure, "sample_latency", lambda run, **_: measure.Latency((7.0,), warmup=0)
    )
    assert Steps().sample_latency(print, warmup=0, repeats=1).tolist() == [7.0]


def test_no_step_needs_an_engine_or_the_course_to_be_looked_at() -> None:
    program = (
        "import sys, tvm_practice.tvm_export.pipeline, tvm_practice.tvm_export.steps\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'tvm', 'torch', 'solutions'}, loaded\n"
        "assert 'tvm_practice.course' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_some_of_a_packages_functions_replace_it() -> None:
    steps = Steps("tvm_practice:verify,tune_ansor")
    assert steps.package == "tvm_practice"
    assert steps.verify.__module__ == "tvm_practice.relay_import" and not steps.is_own("tune_ansor")
    assert steps.is_own("import_relax") and Steps("tvm_practice:").is_own("verify")


@needs_classic
def test_relay_keeps_no_call_that_depends_on_constants_alone(process_of: Processes) -> None:
    assert process_of(CLASSIC).call("tests.tvm_export.functions:relay_calls_on_constants") == []
