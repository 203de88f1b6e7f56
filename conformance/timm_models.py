"""timm's families, one model each, full size and with random weights, on one image.

timm imports torchvision, most of all for augmentations that no model needs, and torchvision is
built for one build of PyTorch only: where it is not there, a stand-in is.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from conformance.cases import Case
from conformance.judging import Judged, judge_model, timed
from tvm_practice.engines import CLASSIC, CURRENT, Engine

TITLE = "timm's families"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = ("float32",)
ENGINES: tuple[Engine, ...] = (CURRENT, CLASSIC)

_MODELS = """
    bat_resnext26ts beit_base_patch16_224 botnet26t_256 cait_xxs24_224 coat_tiny coatnet_nano_rw_224
    convit_tiny convmixer_768_32 convnext_atto convnextv2_atto crossvit_tiny_240 cspresnet50
    darknet53 davit_tiny deit_tiny_patch16_224 densenet121 dla34 dpn48b edgenext_xx_small
    efficientformer_l1 efficientformerv2_s0 efficientnet_b0 efficientvit_b0 efficientvit_m0
    eva02_tiny_patch14_224 fasternet_t0 fastvit_t8 focalnet_tiny_srf gcvit_xxtiny gernet_s
    ghostnet_050 hardcorenas_a hgnet_tiny hiera_tiny_224 hrnet_w18_small inception_next_atto
    inception_v3 inception_v4 lcnet_050 levit_128s mambaout_femto maxvit_tiny_tf_224 mixer_s16_224
    mnasnet_small mobilenetv2_050 mobilenetv3_small_050 mobilenetv4_conv_small mobileone_s0
    mobilevit_xxs mobilevitv2_050 mvitv2_tiny nest_tiny_jx nextvit_small nf_resnet50 nfnet_l0
    pit_ti_224 poolformer_s12 pvt_v2_b0 rdnet_tiny regnetx_002 regnety_002 repghostnet_050
    repvgg_a0 repvit_m0_9 res2net50_26w_4s resmlp_12_224 resnest14d resnet18 resnetv2_50
    resnext50_32x4d rexnet_100 selecsls42b sequencer2d_s seresnet18 shvit_s1 skresnet18
    starnet_s1 swiftformer_xs swin_tiny_patch4_window7_224 swinv2_tiny_window8_256
    swinv2_cr_tiny_ns_224 tinynet_e tiny_vit_5m_224 tnt_s_legacy_patch16_224 tresnet_m
    twins_svt_small vgg11 visformer_tiny vit_tiny_patch16_224 vit_relpos_small_patch16_224
    vitamin_small_224 volo_d1_224 vovnet39a xception41 xcit_nano_12_p16_224
    """


def cases(dtype: str, samples: int | None) -> Iterator[Case]:
    """One case per model."""
    for name in _MODELS.split():
        yield Case(name, name, {"name": name})


def judge(name: str) -> dict[str, Any]:
    """Compile one model for the image that it is made for."""
    return timed(lambda: _judged(name))


def _judged(name: str) -> Judged:
    case = made(name)
    if case is None:
        return Judged("left out", "timm is not installed: pip install --no-deps timm")
    return judge_model(*case)


def made(name: str) -> tuple[Any, tuple[Any, ...]] | None:
    """A case's model, with random weights, and its image; None where timm is not installed."""
    import torch

    timm = _library()
    if timm is None:
        return None
    torch.manual_seed(0)
    model = timm.create_model(name).eval()
    shape = timm.data.resolve_data_config(model=model)["input_size"]
    return model, (torch.randn(1, *shape),)


def _library() -> Any:
    """timm, or None where it is not installed."""
    if importlib.util.find_spec("timm") is None:
        return None
    stood_in = importlib.util.find_spec("torchvision") is None
    if stood_in:
        sys.meta_path.append(finder := _StandIn())
    import timm

    if stood_in:  # transformers, in the same process, must not find it
        sys.meta_path.remove(finder)
        for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
    return timm


class _Name(type):
    """A class whose attributes are their names, as an enumeration's are."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _Empty(ModuleType):
    """A module in which any name is a class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _Name(name, (), {}))
        return getattr(self, name)


class _StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torchvision and what is in it, as modules of nothing."""

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Empty(spec.name)  # the import machinery gives it its __path__

    def exec_module(self, module: ModuleType) -> None:
        pass
