"""What PyTorch's own compiler leaves out is said."""

import shutil

import pytest

from tvm_practice import engines

MEASURE = "tvm_practice.tvm_export.baselines:measure_baselines"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_what_torch_compile_leaves_to_eager_is_a_note() -> None:
    given = {"model": "tests.tvm_export.odd_models:recurrent", "names": ["compile"]}
    with engines.Session(engines.CURRENT) as session:
        measured = session.call(MEASURE, given, activate=False)
        whole = session.call(MEASURE, given | {"model": "tvm_practice.models:load_mlp"})
    assert measured["variants"]["compile"]["verified"], measured["variants"]
    [note] = measured["notes"]
    assert note.startswith("torch.compile left a part of the model to eager PyTorch: ")
    assert "GRU" in note
    assert whole["variants"]["compile"]["verified"] and not whole["notes"]
