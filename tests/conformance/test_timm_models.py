"""timm's families, and the stand-in for a torchvision that is not there."""

import importlib.util

from conformance import timm_models
from tests.conftest import Processes
from tvm_practice import engines


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


def test_the_stand_in_is_gone_once_timm_is_imported(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{__name__}:torchvisions", {})
    assert found in ([], ["no timm"])


def torchvisions() -> list[str]:
    """What a process that has imported timm finds of a torchvision that is not installed."""
    if importlib.util.find_spec("timm") is None:
        return ["no timm"]
    installed = importlib.util.find_spec("torchvision") is not None
    for _ in range(2):
        assert timm_models._library() is not None
    found = [] if installed else [importlib.util.find_spec("torchvision")]
    return [str(each) for each in found if each is not None]
