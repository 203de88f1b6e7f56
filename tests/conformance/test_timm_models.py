"""timm's families, and the stand-in for a torchvision that is not there."""

import importlib.util

from conformance import timm_models


def test_one_case_per_family() -> None:
    names = [each.name for each in timm_models.cases("float32", None)]
    assert len(names) == len(set(names)) >= 63


def test_torchvision_alone_is_stood_in_for() -> None:
    finder = timm_models._StandIn()
    assert finder.find_spec("torch") is None
    spec = finder.find_spec("torchvision.transforms")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert module.InterpolationMode.NEAREST == "NEAREST"
    assert isinstance(module.FrozenBatchNorm2d, type)
    assert not hasattr(module, "__all__")
