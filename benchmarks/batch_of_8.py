"""The project's models with eight examples a call, as factories for `tvm_practice.bench`."""

from tvm_practice import models
from tvm_practice.models import Loaded


def load_resnet18() -> Loaded:
    return models.load_resnet18(batch=8)


def load_resnet50() -> Loaded:
    return models.load_resnet50(batch=8)


def load_mobilenet_v2() -> Loaded:
    return models.load_mobilenet_v2(batch=8)


def load_bert_base() -> Loaded:
    return models.load_bert_base(batch=8)


def load_gpt2() -> Loaded:
    return models.load_gpt2(batch=8)


def load_vit() -> Loaded:
    return models.load_vit(batch=8)


def load_lstm() -> Loaded:
    return models.load_lstm(batch=8)


def load_mamba() -> Loaded:
    return models.load_mamba(batch=8)
