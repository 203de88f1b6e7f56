"""What an export is compared with, and what PyTorch's own compiler leaves out."""

import shutil
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from tvm_practice import engines
from tvm_practice.tvm_export import baselines
from tvm_practice.tvm_export.errors import Missing

MEASURE = "tvm_practice.tvm_export.baselines:measure_baselines"


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_what_torch_compile_leaves_to_eager_is_a_note() -> None:
    given = {"model": "tests.tvm_export.odd_models:recurrent", "names": ["compile"]}
    with engines.Session(engines.CURRENT) as session:
        measured = session.call(MEASURE, given, activate=False)
        whole = session.call(MEASURE, given | {"model": "tests.icd.models:small"})
    assert measured["variants"]["compile"]["verified"], measured["variants"]
    [note] = measured["notes"]
    assert note.startswith("torch.compile left a part of the model to eager PyTorch: ")
    assert "GRU" in note
    assert whole["variants"]["compile"]["verified"] and not whole["notes"]


def test_onnx_runtime_is_timed_with_its_places_bound(tmp_path: Path) -> None:
    """As TVM's call is: neither feeds inputs nor allocates outputs."""
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, save

    shape = ["n", 3]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "y"], ["sum"]), helper.make_node("Neg", ["x"], ["minus"])],
        "two",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name in ("sum", "minus")
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    save(model, tmp_path / "two.onnx")
    session = baselines.open_onnx_session(tmp_path / "two.onnx")
    feed = {name: np.ones((2, 3), "float32") for name in "xy"}
    places = [onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), "f4")) for _ in range(2)]
    made = {"ortvalue_from_shape_and_type": mock.Mock(side_effect=places)}
    with mock.patch.multiple(onnxruntime.OrtValue, **made):
        call = baselines.bound_call(session, feed, session.run(None, feed))
    call()
    assert np.array_equal(places[0].numpy(), feed["x"] + feed["y"])
    assert np.array_equal(places[1].numpy(), -feed["x"])


def test_openvino_that_is_not_installed_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxscript")
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(Missing, match=r"no Python package openvino.*tvm-practice\[rivals\]"):
        baselines.openvino(mock.Mock(), tmp_path, mock.Mock())
    assert not list(tmp_path.iterdir())


def test_openvino_is_timed_with_its_places_bound(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    import torch

    from tvm_practice.measure import Stopwatch
    from tvm_practice.tvm_export.calling import as_call

    call = as_call(torch.nn.Linear(16, 8).eval(), (torch.randn(4, 16),))
    run, outputs = baselines.openvino(call, tmp_path, Stopwatch())
    with torch.inference_mode():
        expected = call.module(*call.tensors)[0].numpy()
    np.testing.assert_allclose(outputs[0], expected, atol=1e-5)
    run()
