"""Models of libraries that are neither transformers nor timm, small and with random weights.

The libraries are installed for this alone, without what they depend on for training and files:

    pip install --no-deps torchvision torchaudio diffusers monai segmentation-models-pytorch \\
        vit-pytorch x-transformers ultralytics

torchvision and torchaudio must be builds for the PyTorch that is installed. Models of a library
that does not import are left out, with the reason.
"""

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.cases import Case
from conformance.judging import Judged, judge_model, last_line, timed
from tvm_practice.engines import CURRENT, Engine

TITLE = "Models of other libraries"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = ("float32",)
ENGINES: tuple[Engine, ...] = (CURRENT,)

_CLASSIFIERS = """
    alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s maxvit_t mnasnet0_5
    mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnext50_32x4d
    shufflenet_v2_x0_5 squeezenet1_0 squeezenet1_1 swin_t swin_v2_t vgg11_bn vit_b_16
    wide_resnet50_2
    """


@dataclass(frozen=True)
class _Model:
    """How a model is made, and called.

    Attributes:
        path: "module:callable".
        inputs: of each tensor its shape, "1x3x224x224" of random numbers, and where it is of whole
            numbers below some number that too, "1x32<100".
        args, settings: of the callable.
        method: of the model, in place of calling it.
        label: tells it from others of the same path.
        of: the package, where the path does not say it.
    """

    path: str
    inputs: tuple[str, ...]
    args: tuple[Any, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""
    label: str = ""
    of: str = ""

    @property
    def package(self) -> str:
        return self.of or self.path.partition(":")[0].partition(".")[0]

    @property
    def name(self) -> str:
        return " ".join(
            filter(None, (self.package, self.path.partition(":")[2], self.label, self.method))
        )


def cases(dtype: str, samples: int | None) -> Iterator[Case]:
    """One case per model, `samples` per library at most."""
    tried: dict[str, int] = {}
    for each in _models():
        tried[each.package] = tried.get(each.package, 0) + 1
        if samples is None or tried[each.package] <= samples:
            yield Case(each.package, each.name, {"name": each.name})


def judge(name: str) -> dict[str, Any]:
    """Compile one model for its example."""
    return timed(lambda: _judged(name))


def _judged(name: str) -> Judged:
    import torch

    model = next(each for each in _models() if each.name == name)
    module, _, attribute = model.path.partition(":")
    try:
        importlib.import_module(model.package)
        make = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a build for another PyTorch raises errors of its own
        return Judged("left out", f"{model.package} does not import: {last_line(error)}")
    torch.manual_seed(0)
    made = make(*model.args, **model.settings).eval()
    if model.method:
        made = _calling(made, model.method)
    return judge_model(made, tuple(_input(each) for each in model.inputs))


def _calling(model: Any, name: str) -> Any:
    """A torch.nn.Module whose forward is a method of another's."""
    import torch

    class Calling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *args: Any) -> Any:
            return getattr(self.model, name)(*args)

    return Calling()


def _input(described: str) -> Any:
    import torch

    shape, _, below = described.partition("<")
    extents = [int(each) for each in re.findall(r"\d+", shape)]
    return torch.randint(0, int(below), extents) if below else torch.rand(extents)


def _models() -> Sequence[_Model]:
    return (
        *_torchvision(),
        *_torchaudio(),
        *_diffusers(),
        *_monai(),
        *_segmentation(),
        *_vit_pytorch(),
        *_x_transformers(),
        *_ultralytics(),
    )


def _torchvision() -> Iterator[_Model]:
    for name in _CLASSIFIERS.split():
        yield _Model(f"torchvision.models:{name}", ("1x3x224x224",))
    for name, side in (("googlenet", 224), ("inception_v3", 299)):
        settings = {"init_weights": False}
        yield _Model(f"torchvision.models:{name}", (f"1x3x{side}x{side}",), settings=settings)
    alone = {"weights_backbone": None}
    for name in ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large"):
        yield _Model(f"torchvision.models.segmentation:{name}", ("1x3x128x128",), settings=alone)
    for name, frames in (
        ("mc3_18", "1x3x8x112x112"),
        ("r2plus1d_18", "1x3x8x112x112"),
        ("s3d", "1x3x16x224x224"),
        ("mvit_v2_s", "1x3x16x224x224"),
        ("swin3d_t", "1x3x8x112x112"),
    ):
        yield _Model(f"torchvision.models.video:{name}", (frames,))
    yield _Model("torchvision.models.optical_flow:raft_small", ("1x3x128x128", "1x3x128x128"))


def _torchaudio() -> Iterator[_Model]:
    models, transforms = "torchaudio.models", "torchaudio.transforms"
    for name in ("wav2vec2_base", "hubert_base"):
        yield _Model(f"{models}:{name}", ("1x8000",), settings={"aux_num_out": 32})
    yield _Model(
        f"{models}:WaveRNN",
        ("1x1x1000", "1x1x128x9"),
        settings={"upsample_scales": [5, 5, 8], "n_classes": 512, "hop_length": 200},
    )
    yield _Model(f"{models}:ConvTasNet", ("1x1x4000",))
    yield _Model(f"{models}:DeepSpeech", ("2x1x20x40",), (40, 64, 29))
    yield _Model(f"{models}:hdemucs_low", ("1x2x22050",), (["drums", "bass"],))
    yield _Model(f"{transforms}:MelSpectrogram", ("1x8000",), (16000,), {"n_mels": 40})
    yield _Model(f"{transforms}:MFCC", ("1x8000",), (16000,))
    yield _Model(f"{transforms}:Resample", ("1x4000",), (16000, 8000))


def _diffusers() -> Iterator[_Model]:
    two: dict[str, Any] = {"block_out_channels": (32, 64)}
    yield _Model(
        "diffusers:UNet2DModel",
        ("1x3x32x32", "1<1000"),
        settings=two
        | {
            "sample_size": 32,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        },
    )
    for kind, sample in (("2D", "1x4x16x16"), ("3D", "1x4x4x16x16")):
        yield _Model(
            f"diffusers:UNet{kind}ConditionModel",
            (sample, "<1000", "1x7x32"),
            settings=two
            | {
                "down_block_types": (f"CrossAttnDownBlock{kind}", f"DownBlock{kind}"),
                "up_block_types": (f"UpBlock{kind}", f"CrossAttnUpBlock{kind}"),
                "cross_attention_dim": 32,
                "attention_head_dim": 8,
                "layers_per_block": 1,
            },
        )
    coder = two | {
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
    }
    yield _Model("diffusers:AutoencoderKL", ("1x4x8x8",), settings=coder, method="decode")
    yield _Model("diffusers:AutoencoderTiny", ("1x3x32x32",))
    yield _Model("diffusers:VQModel", ("1x3x16x16",))
    heads = {"num_attention_heads": 2, "attention_head_dim": 16}
    yield _Model(
        "diffusers:DiTTransformer2DModel",
        ("1x4x8x8", "1<1000", "1<1000"),
        settings=heads
        | {"num_layers": 2, "sample_size": 8, "in_channels": 4, "norm_num_groups": 4},
    )
    yield _Model(
        "diffusers:SD3Transformer2DModel",
        ("1x16x16x16", "1x7x32", "1x64", "1<1000"),
        settings={
            "sample_size": 16,
            "num_layers": 2,
            "attention_head_dim": 8,
            "num_attention_heads": 4,
            "joint_attention_dim": 32,
            "caption_projection_dim": 32,
            "pooled_projection_dim": 64,
            "pos_embed_max_size": 32,
        },
    )


def _monai() -> Iterator[_Model]:
    flat, solid, image = "1x1x64x64", "1x1x32x32x32", "1x3x64x64"
    channels, strides = (8, 16, 32), (2, 2)
    vit = {"hidden_size": 48, "mlp_dim": 96, "num_heads": 4}
    for name, given, args, settings in (
        ("UNet", solid, (3, 1, 2, channels, strides), {"num_res_units": 2}),
        ("BasicUNet", flat, (2, 1, 2), {}),
        ("AttentionUnet", flat, (2, 1, 2, channels, strides), {}),
        ("DynUNet", flat, (2, 1, 2, [3] * 3, [1, 2, 2], [2, 2]), {}),
        ("SegResNet", solid, (3, 8, 1, 2), {}),
        ("VNet", flat, (2, 1, 2), {}),
        ("UNETR", solid, (1, 2, (32, 32, 32)), vit | {"feature_size": 8}),
        ("SwinUNETR", flat, (1, 2), {"feature_size": 12, "spatial_dims": 2}),
        ("DenseNet121", flat, (2, 1, 3), {}),
        ("HighResNet", flat, (2, 1, 2), {}),
        ("SEResNet50", image, (), {"spatial_dims": 2, "in_channels": 3, "num_classes": 4}),
        ("resnet18", solid, (), {"spatial_dims": 3, "n_input_channels": 1, "num_classes": 2}),
        ("AutoEncoder", flat, (2, 1, 1, (4, 8), strides), {}),
        ("PatchDiscriminator", image, (2, 8, 3), {}),
    ):
        yield _Model(f"monai.networks.nets:{name}", (given,), args, settings)


def _segmentation() -> Iterator[_Model]:
    path = "segmentation_models_pytorch"
    decoders = "Unet UnetPlusPlus MAnet Linknet FPN PSPNet DeepLabV3 DeepLabV3Plus PAN UPerNet"
    others = ("mit_b0", "inceptionv4", "xception", "dpn68", "se_resnet50", "mobileone_s0")
    for name, encoder in (
        *((each, "resnet18") for each in decoders.split()),
        *(("Unet", each) for each in others),
        ("Segformer", "mit_b0"),
    ):
        settings = {"encoder_name": encoder, "encoder_weights": None, "classes": 2}
        yield _Model(f"{path}:{name}", ("1x3x128x128",), settings=settings, label=encoder)


def _vit_pytorch() -> Iterator[_Model]:
    image = "1x3x64x64"
    small: dict[str, Any] = {"image_size": 64, "patch_size": 16, "num_classes": 10, "dim": 64}
    deep = small | {"depth": 2, "heads": 2, "mlp_dim": 64}
    for module, name, more in (
        ("vit", "ViT", {}),
        ("simple_vit", "SimpleViT", {}),
        ("deepvit", "DeepViT", {}),
        ("cait", "CaiT", {"cls_depth": 1}),
        ("xcit", "XCiT", {"cls_depth": 1, "local_patch_kernel_size": 3}),
        ("vit_for_small_dataset", "ViT", {}),
        ("parallel_vit", "ViT", {"num_parallel_branches": 2}),
        ("learnable_memory_vit", "ViT", {}),
        ("simple_vit_with_qk_norm", "SimpleViT", {}),
        ("simple_vit_with_register_tokens", "SimpleViT", {}),
        ("simple_vit_with_fft", "SimpleViT", {"freq_patch_size": 16}),
        ("simple_vit_with_value_residual", "SimpleViT", {}),
        ("rvt", "RvT", {}),
        ("normalized_vit", "nViT", {}),
        ("vit_with_patch_merger", "ViT", {"patch_merge_layer": 1, "patch_merge_num_tokens": 4}),
    ):
        path = f"vit_pytorch.{module}:{name}"
        yield _Model(path, (image,), settings=deep | more, label=module)
    yield _Model(
        "vit_pytorch.vit_3d:ViT",
        ("1x3x8x64x64",),
        settings={each: deep[each] for each in deep if each != "patch_size"}
        | {"frames": 8, "image_patch_size": 16, "frame_patch_size": 2},
        label="vit_3d",
    )


def _x_transformers() -> Iterator[_Model]:
    forms: dict[str, dict[str, Any]] = {
        "plain": {},
        "rotary": {"rotary_pos_emb": True},
        "alibi": {"alibi_pos_bias": True},
        "bias": {"rel_pos_bias": True},
        "gated": {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True},
        "talking": {"attn_pre_talking_heads": True},
        "sparse": {"attn_sparse_topk": 8},
        "normed": {"attn_qk_norm": True},
        "shifted": {"shift_tokens": 1},
        "macaron": {"macaron": True},
        "memory": {"attn_num_mem_kv": 4},
        "grouped": {"attn_kv_heads": 2},
        "residual": {"residual_attn": True},
        "sandwich": {"sandwich_norm": True},
        "values": {"add_value_residual": True},
        "forgetting": {"attn_data_dependent_alibi": True},
        "streams": {"num_residual_streams": 2},
    }
    sizes = {"dim": 64, "depth": 2, "heads": 4}
    for label, settings in forms.items():
        yield _Model(
            f"{__name__}:decoder",
            ("1x32<100",),
            settings=sizes | settings,
            label=label,
            of="x_transformers",
        )


def decoder(**settings: Any) -> Any:
    """A language model of x_transformers."""
    library = importlib.import_module("x_transformers")
    layers = library.Decoder(**settings)
    return library.TransformerWrapper(num_tokens=100, max_seq_len=64, attn_layers=layers)


def _ultralytics() -> Iterator[_Model]:
    tasks = "ultralytics.nn.tasks"
    for kind, names in (
        ("DetectionModel", "yolov3-tiny yolov5n yolov8n yolov9t yolov10n yolo11n yolo12n yolo26n"),
        ("SegmentationModel", "yolov8n-seg"),
        ("PoseModel", "yolov8n-pose"),
        ("OBBModel", "yolov8n-obb"),
        ("ClassificationModel", "yolov8n-cls"),
    ):
        for name in names.split():
            settings = {"cfg": f"{name}.yaml", "verbose": False}
            yield _Model(f"{tasks}:{kind}", ("1x3x160x160",), settings=settings, label=name)
