"""The search over PyTorch's own choices: what is applied, verified, kept."""

import time
from dataclasses import replace
from typing import Any

import pytest
import torch

from tvm_practice import measure
from tvm_practice.icd import search
from tvm_practice.measure import Comparison, Latency, Ratio
from tvm_practice.tvm_export.loading import Loaded, load

MODELS = "tests.icd.models"
TOLERANCE = {"atol": 1e-3, "rtol": 1e-3}
FASTER, SLOWER, SAME = Ratio(0.5, 0.4, 0.6), Ratio(1.5, 1.2, 1.8), Ratio(0.9, 0.8, 1.1)


def a_choice(name: str, threads: int = 2) -> search.Choice:
    return next(each for each in search.choices(threads) if each.name == name)


def eager(loaded: Loaded) -> search.Variant:
    return search.Variant(loaded.module, torch.get_num_threads())


@pytest.fixture
def conv() -> Loaded:
    return load(f"{MODELS}:conv", example=None, seed=0)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Comparisons give the ratio that the test says; the runs are still called."""

    def script(ratio: Ratio) -> None:
        def compared(runs: Any, *, baseline: str, rounds: int) -> Comparison:
            for run in runs.values():
                run()
            latency = {name: Latency((1.0, 2.0)) for name in runs}
            return Comparison(baseline, latency, dict.fromkeys(runs, ratio))

        monkeypatch.setattr(measure, "compare_interleaved", compared)

    return script


def step(choice: search.Choice, loaded: Loaded) -> tuple[search.Variant, Any]:
    return search.try_choice(choice, eager(loaded), loaded, rounds=6, **TOLERANCE)


def test_fewer_threads_are_tried_down_to_one() -> None:
    names = [each.name for each in search.choices(6)]
    assert names[:2] == ["threads=3", "threads=1"]
    assert names[2:] == ["fuse_conv_bn", "channels_last", "compile", "bfloat16"]
    assert "threads=1" not in [each.name for each in search.choices(1)]


@pytest.mark.parametrize(
    ("ratio", "status", "reason"),
    [
        (FASTER, "kept", None),
        (SLOWER, "not_faster", "slower"),
        (SAME, "not_faster", "no significant difference"),
    ],
)
def test_the_interval_decides(
    ratio: Ratio, status: str, reason: str | None, conv: Loaded, scripted: Any
) -> None:
    scripted(ratio)
    best, seen = step(a_choice("channels_last"), conv)
    assert (seen.status, seen.reason) == (status, reason)
    assert seen.ratio.ci95 == (ratio.low, ratio.high) and seen.verification.verified
    assert best.choices == (("channels_last",) if status == "kept" else ())


def test_what_does_not_verify_is_not_measured(conv: Loaded, monkeypatch: Any) -> None:
    monkeypatch.setattr(measure, "compare_interleaved", lambda *_, **__: pytest.fail("measured"))
    wrong = search.Choice(
        "wrong", lambda best: replace(best, module=lambda *given: 1.01 * best.module(*given))
    )
    best, seen = step(wrong, conv)
    assert best.choices == () and seen.status == "not_verified"
    assert "elements are wrong" in seen.reason and not seen.verification.verified


def test_what_raises_is_a_failed_step(conv: Loaded) -> None:
    def explode(best: search.Variant) -> search.Variant:
        raise RuntimeError("no such kernel")

    best, seen = step(search.Choice("bad", explode), conv)
    assert best.choices == () and seen.status == "failed"
    assert seen.reason == "RuntimeError: no such kernel"


def test_a_clear_difference_is_seen() -> None:
    """Unscripted: a model that waits, beside one that does not."""
    loaded = load(f"{MODELS}:small", example=None, seed=0)

    def waiting(*given: torch.Tensor) -> Any:
        time.sleep(0.05)
        return loaded.module(*given)

    slow = replace(eager(loaded), module=waiting)
    choice = search.Choice("no waiting", lambda best: replace(best, module=loaded.module))
    best, seen = search.try_choice(choice, slow, loaded, rounds=6, **TOLERANCE)
    assert seen.status == "kept" and best.module is loaded.module
    choice = search.Choice("waiting", lambda best: replace(best, module=waiting))
    _, seen = search.try_choice(choice, eager(loaded), loaded, rounds=6, **TOLERANCE)
    assert (seen.status, seen.reason) == ("not_faster", "slower")


def test_fusing_removes_the_batch_normalization(conv: Loaded, scripted: Any) -> None:
    scripted(FASTER)
    best, seen = step(a_choice("fuse_conv_bn"), conv)
    assert seen.status == "kept" and seen.verification.max_error < 1e-5
    used = {str(node.target) for node in best.module.graph.nodes}  # type: ignore[attr-defined]
    assert "conv" in used and "norm" not in used
    assert torch.equal(conv.module(*conv.args), conv.outputs[0])  # the model itself is as it was


def test_channels_last_leaves_the_model_as_it_was(conv: Loaded, scripted: Any) -> None:
    scripted(FASTER)
    best, _ = step(a_choice("channels_last"), conv)
    weight = best.module.conv.weight  # type: ignore[attr-defined]
    assert weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()
    original: Any = conv.module
    assert original.conv.weight.is_contiguous()


def test_threads_are_set_for_each_run(conv: Loaded, scripted: Any) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        scripted(FASTER)
        best, seen = step(a_choice("threads=1"), conv)
        assert seen.status == "kept" and best.threads == 1
        search.runnable(best, conv)()
        assert torch.get_num_threads() == 1
        search.runnable(replace(best, threads=2), conv)()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_choices_add_up(conv: Loaded, scripted: Any) -> None:
    scripted(FASTER)
    best = eager(conv)
    for name in ("fuse_conv_bn", "channels_last"):
        best, seen = search.try_choice(a_choice(name), best, conv, rounds=6, **TOLERANCE)
    assert best.choices == ("fuse_conv_bn", "channels_last") and seen.on == ["fuse_conv_bn"]


@pytest.mark.parametrize(("tolerance", "status"), [(1e-6, "not_verified"), (1.0, "kept")])
def test_bfloat16_runs_under_autocast_and_is_held_to_the_tolerance(
    tolerance: float, status: str, conv: Loaded, scripted: Any
) -> None:
    scripted(FASTER)
    best, seen = search.try_choice(
        a_choice("bfloat16"), eager(conv), conv, rounds=6, atol=tolerance, rtol=0.0
    )
    assert seen.status == status
    if status == "kept":
        assert search.runnable(best, conv)().dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("choice", "model", "said"),
    [
        ("fuse_conv_bn", "small", "no batch normalization"),
        ("fuse_conv_bn", "branching", "torch.fx cannot trace the model: TraceError"),
        ("channels_last", "small", "no two-dimensional convolution"),
    ],
)
def test_what_is_not_applicable_says_why(choice: str, model: str, said: str) -> None:
    best, seen = step(a_choice(choice), load(f"{MODELS}:{model}", example=None, seed=0))
    assert best.choices == () and seen.status == "not_applicable" and said in seen.reason


def test_outputs_that_are_not_finite_never_verify() -> None:
    loaded = load(f"{MODELS}:not_finite", example=None, seed=0)
    assert not search.verify(search.runnable(eager(loaded), loaded), loaded, **TOLERANCE).verified


def test_a_model_that_changes_its_inputs_is_given_copies() -> None:
    loaded = load(f"{MODELS}:in_place", example=None, seed=0)
    run = search.runnable(eager(loaded), loaded)
    assert run().tolist() == run().tolist() == [1, 1, 1, 1]
