"""The models: their shapes and names, and that their weights are the same each time."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tvm_practice import models
from tvm_practice.models import Loaded, load_mlp, load_resnet18, load_small_resnet

LOADERS = [
    pytest.param(load_mlp, (32, 784), (32, 10), id="mlp"),
    pytest.param(load_small_resnet, (1, 3, 64, 64), (1, 10), id="small-resnet"),
    pytest.param(load_resnet18, (1, 3, 224, 224), (1, 1000), id="resnet18"),
]


@pytest.mark.parametrize(("load", "takes", "gives"), LOADERS)
def test_a_loader_gives_a_model_in_eval_mode_and_its_inputs(
    load: Callable[..., Loaded], takes: tuple[int, ...], gives: tuple[int, ...]
) -> None:
    model, example = load()
    assert not any(module.training for module in model.modules())
    assert [tuple(each.shape) for each in example] == [takes]
    with torch.inference_mode():
        outputs = model(*example)
        others = model(*(each + 1 for each in example))
    assert tuple(outputs.shape) == gives
    # Values of order one: float32 loses nothing, and no error hides in them.
    assert torch.isfinite(outputs).all() and 0.01 < float(outputs.std()) < 100
    assert not torch.allclose(outputs, others, atol=1e-3)


@pytest.mark.parametrize(("load", "takes", "gives"), LOADERS)
def test_weights_follow_the_seed_and_the_global_state_is_left_alone(
    load: Callable[..., Loaded], takes: tuple[int, ...], gives: tuple[int, ...]
) -> None:
    before = torch.get_rng_state()
    model, example = load()
    torch.rand(3)
    again, same = load()
    other, different = load(seed=1)
    assert all(
        torch.equal(weight, again.state_dict()[name]) for name, weight in model.state_dict().items()
    )
    assert torch.equal(example[0], same[0]) and not torch.equal(example[0], different[0])
    first = next(iter(model.state_dict()))
    assert not torch.equal(model.state_dict()[first], other.state_dict()[first])
    torch.set_rng_state(before)
    drawn = torch.rand(3)
    torch.set_rng_state(before)
    load()
    assert torch.equal(torch.rand(3), drawn)


def _large(*case: object) -> Any:
    """A case of a model whose weights take seconds to draw."""
    return pytest.param(*case, marks=[pytest.mark.pages, pytest.mark.slow])


@pytest.mark.parametrize("load", [load_mlp, load_small_resnet, load_resnet18])
def test_batch(load: Callable[..., Loaded]) -> None:
    model, example = load(batch=2)
    with torch.inference_mode():
        assert model(*example).shape[0] == example[0].shape[0] == 2


def test_resnet18_has_torchvisions_parameters() -> None:
    model, _ = load_resnet18()
    blocks = [f"layer{stage}.{block}" for stage in (1, 2, 3, 4) for block in (0, 1)]
    convolutions = [f"{block}.conv{number}" for block in blocks for number in (1, 2)]
    norms = [f"{block}.bn{number}" for block in blocks for number in (1, 2)]
    shortcuts = [f"layer{stage}.0.downsample" for stage in (2, 3, 4)]
    names = {f"{each}.weight" for each in ("conv1", *convolutions, "fc")} | {"fc.bias"}
    names |= {f"{each}.0.weight" for each in shortcuts}
    names |= {
        f"{norm}.{held}"
        for norm in ("bn1", *norms, *(f"{each}.1" for each in shortcuts))
        for held in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    }
    assert set(model.state_dict()) == names
    assert sum(each.numel() for each in model.parameters()) == 11_689_512


def test_a_compiler_that_forgot_the_batch_norms_would_be_found_out() -> None:
    model, example = load_small_resnet()
    with torch.inference_mode():
        outputs = model(*example)
        for held, plain in (("running_mean", 0), ("running_var", 1), ("weight", 1), ("bias", 0)):
            model, _ = load_small_resnet()
            for module in model.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    getattr(module, held).fill_(plain)
            assert not torch.allclose(model(*example), outputs, atol=1e-2), held


@pytest.mark.parametrize(
    ("name", "parameters", "gives"),
    [
        ("mobilenet_v2", 3_506_153, [(1, 1001)]),
        ("lstm", 19_780_400, [(1, 35, 10_000)]),
        _large("resnet50", 25_557_032, [(1, 1000)]),
        _large("bert_base", 109_482_240, [(1, 128, 768), (1, 768)]),
        _large("gpt2", 124_439_808, [(1, 64, 50257)]),
        _large("vit", 86_567_656, [(1, 1000)]),
        _large("mamba", 129_135_360, [(1, 16, 50_280)]),
    ],
)
def test_the_published_architectures(
    name: str, parameters: int, gives: list[tuple[int, ...]]
) -> None:
    """As many parameters as the papers' models, outputs of order one, the same each time."""
    load = getattr(models, f"load_{name}")
    model, example = load()
    assert not any(module.training for module in model.modules())
    assert sum(each.numel() for each in model.parameters()) == parameters
    with torch.inference_mode():
        given = model(*example)
        outputs = given if isinstance(given, tuple) else (given,)
        again = load()[0](*example)
    assert [tuple(each.shape) for each in outputs] == gives
    for each in outputs:
        assert torch.isfinite(each).all() and 0.01 < float(each.std()) < 100
    assert torch.equal(outputs[0], again[0] if isinstance(again, tuple) else again)


def test_an_encoder_layer_has_berts_size_and_pays_padding_no_attention() -> None:
    model, (x, keep) = models.load_encoder(batch=2, length=7)
    assert sum(each.numel() for each in model.parameters()) == 7_087_872
    longer = torch.cat((x, torch.randn(2, 3, 768)), dim=1)
    padded = torch.cat((keep, torch.zeros(2, 3)), dim=1)
    with torch.inference_mode():
        want = model(x, keep)
        assert torch.allclose(model(longer, padded)[:, :7], want, atol=1e-5)
        attended = model(longer, torch.ones(2, 10))[:, :7]
    assert not torch.allclose(attended, want, atol=1e-3)
    assert 0.01 < float(want.std()) < 100


@pytest.mark.pages
@pytest.mark.slow
def test_bert_large_has_24_layers() -> None:
    model, _ = models.load_bert_large()
    assert sum(each.numel() for each in model.parameters()) == 335_141_888


def test_without_transformers_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tvm-practice\[models\]'"):
        models.load_vit()
