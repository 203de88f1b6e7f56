from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tvm_practice.tvm_export import pipeline
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.request import ExportRequest


def test_a_gpu_export_beside_a_cpu_build_of_pytorch_has_no_ratio_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(pipeline, "_own_latency", lambda export, **given: {"p50": 1.0})
    monkeypatch.setattr(Export, "not_run", None)
    request = ExportRequest(model="models:mlp", artifacts=tmp_path)
    target = SimpleNamespace(kind=SimpleNamespace(name="cuda"))
    export = Export.of(SimpleNamespace(), request, engine="current")  # type: ignore[arg-type]
    measured = pipeline.measure(replace(export, target=target))
    assert measured.ratio is None and measured.latency == {"p50": 1.0}
    assert measured.notes == ("not compared with PyTorch, whose build here is not for CUDA",)
