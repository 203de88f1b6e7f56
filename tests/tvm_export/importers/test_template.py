"""The template of a converter, filled in."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.importers.converters.template import template

FUNCTIONS = "tests.tvm_export.importers.template_functions"


def test_it_works_when_it_is_filled_in(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:filled_in", {})
    assert found["refused"].count("\n") == 0 and "--how OPERATOR" in found["refused"]
    assert found["open"].startswith("Relax cannot import the model: doubled.default")
    assert found["difference"] < 1e-5


def test_it_reads_every_kind_of_argument() -> None:
    text = template(["cat.default", "aten::_linalg_svd", "clamp.Tensor"])
    compile(text, "converters.py", "exec")
    assert "tensors = [importer.env[each] for each in given[" in text
    assert 'min = importer.env.get(given["min"])' in text
    assert 'full_matrices = given["full_matrices"]' in text
    assert '"_linalg_svd.default": _linalg_svd' in text


def test_an_unknown_operator_is_one_line() -> None:
    with pytest.raises(BadInput, match=r"no operator 'hashtensor.default'; did you mean hash_t"):
        template(["hashtensor.default"])
