"""Models of other libraries, which need not be installed."""

import pytest

from conformance import library_models


def test_each_model_has_a_name_of_its_own() -> None:
    names = [each.name for each in library_models.cases("float32", None)]
    assert len(names) == len(set(names)) > 100


def test_samples_are_per_library() -> None:
    cases = list(library_models.cases("float32", 2))
    assert [each.group for each in cases].count("torchvision") == 2
    assert len({each.group for each in cases}) == len(cases) / 2


def test_inputs_are_as_described() -> None:
    assert library_models._input("2x3").shape == (2, 3)
    assert library_models._input("<7").ndim == 0
    ids = library_models._input("1x500<7")
    assert ids.dtype.is_signed and set(ids.flatten().tolist()) == set(range(7))


def test_a_library_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        library_models, "_models", lambda: [library_models._Model("not_there.at_all:Net", ("1",))]
    )
    found = library_models.judge("not_there Net")
    assert found["verdict"] == "left out" and "No module named 'not_there'" in found["reason"]


def test_settings_that_a_library_does_not_take_are_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = library_models._Model("torch.nn:Linear", ("1x2",), (2,))
    monkeypatch.setattr(library_models, "_models", lambda: [wrong])
    with pytest.raises(TypeError, match="out_features"):
        library_models.judge("torch Linear")
