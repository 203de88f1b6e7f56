"""`module:factory` to a model: what is taken, what is refused, and how."""

import os
import sys
from pathlib import Path

import pytest
import torch

from tvm_practice.tvm_export.errors import BadInput, DoesNotCompile
from tvm_practice.tvm_export.example_inputs import ExampleTensor
from tvm_practice.tvm_export.loading import in_a_line, kept_alive, load

MODELS = "tests.icd.models"


def test_a_factory_that_gives_inputs() -> None:
    loaded = load(f"{MODELS}:small", example=None, seed=3)
    assert [tuple(each.shape) for each in loaded.args] == [(3, 6)] and not loaded.kwargs
    assert torch.equal(loaded.outputs[0], loaded.module(*loaded.args))
    assert loaded.notes == ()


def test_the_seed_fixes_weights_and_inputs_and_leaves_the_global_state() -> None:
    state = torch.get_rng_state()
    first, again = (load(f"{MODELS}:small", example=None, seed=3) for _ in range(2))
    other = load(f"{MODELS}:small", example=None, seed=4)
    assert torch.equal(first.outputs[0], again.outputs[0])
    assert torch.equal(first.args[0], again.args[0])
    assert not torch.equal(first.outputs[0], other.outputs[0])
    assert torch.equal(state, torch.get_rng_state())


def test_inputs_that_are_described() -> None:
    loaded = load(f"{MODELS}:without_inputs", example=[ExampleTensor(shape=[5, 6])], seed=0)
    assert loaded.args[0].shape == (5, 6) and loaded.args[0].dtype == torch.float32
    given = load(f"{MODELS}:small", example=[ExampleTensor(shape=[5, 6])], seed=0)
    assert given.args[0].shape == (5, 6)


def test_inputs_by_name_and_outputs_in_any_container() -> None:
    loaded = load(f"{MODELS}:named", example=None, seed=0)
    assert set(loaded.inputs) == {"ids", "scale"}
    assert [tuple(each.shape) for each in loaded.outputs] == [(3,), (4,), (4,)]
    shapes = [ExampleTensor(shape=[7]), ExampleTensor(shape=[])]
    longer = load(f"{MODELS}:named", example=shapes, seed=0)
    assert set(longer.inputs) == {"ids", "scale"}
    assert longer.kwargs["ids"].dtype == loaded.kwargs["ids"].dtype
    assert set(longer.kwargs["ids"].tolist()) <= set(loaded.kwargs["ids"].tolist())


def test_a_factory_that_changes_the_folder_does_not_move_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "moving.py").write_text(
        "import os, torch\n"
        "def factory():\n"
        "    os.chdir('/')\n"
        "    return torch.nn.ReLU(), torch.ones(2)\n"
    )
    load("moving:factory", example=None, seed=0)
    assert Path.cwd() == tmp_path


def test_the_model_is_put_in_eval_mode() -> None:
    loaded = load(f"{MODELS}:drops_out", example=None, seed=0)
    assert not loaded.module.training
    assert torch.equal(loaded.outputs[0], loaded.module(*loaded.args))


def test_a_model_that_changes_its_inputs_is_noted_and_keeps_them() -> None:
    loaded = load(f"{MODELS}:in_place", example=None, seed=0)
    assert loaded.changes_inputs and "changes its inputs" in loaded.notes[0]
    assert loaded.args[0].tolist() == [0, 0, 0, 0]
    assert not load(f"{MODELS}:small", example=None, seed=0).changes_inputs


def test_outputs_that_are_not_finite_are_noted() -> None:
    assert "not all finite" in load(f"{MODELS}:not_finite", example=None, seed=0).notes[0]


def test_modules_of_the_working_directory_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_a_person.py").write_text(
        "import torch\ndef load_mine():\n    return torch.nn.Identity(), torch.ones(2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    loaded = load("module_of_a_person:load_mine", example=None, seed=0)
    assert loaded.outputs[0].tolist() == [1, 1]
    with pytest.raises(BadInput, match="did you mean module_of_a_person"):
        load("module_of_person:load_mine", example=None, seed=0)


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        ("no_such_module_at_all:x", "no module no_such_module_at_all"),
        ("tvm_practice.model:x", "no module tvm_practice.model; did you mean tvm_practice.models?"),
        ("tvm_practice.models.deep:x", "no module tvm_practice.models.deep"),
        (f"{MODELS}:smal", f"{MODELS} has no smal; did you mean small?"),
        (f"{MODELS}:not_a_function", "is of type int, not a function"),
        ("tests.icd.broken:x", "needs a_package_that_nobody_has, which is not installed"),
        (f"{MODELS}:raises", "raised RuntimeError: no checkpoint.pth here"),
        (f"{MODELS}:exits", "raised SystemExit: 0"),
        (f"{MODELS}:needs_an_argument", "raised TypeError"),
        (f"{MODELS}:returns_none", "returned None, not a torch module"),
        (f"{MODELS}:returns_text", "returned str, not a torch module"),
        (f"{MODELS}:returns_three", "returned (Linear, Tensor, int), not a torch module"),
        (f"{MODELS}:without_inputs", "no example inputs; have it return (module, inputs), or give"),
        ("no_such_file.pt2", "there is no file no_such_file.pt2"),
        (f"{MODELS}:sparse", "gives a sparse tensor; TVM takes dense ones"),
        (f"{MODELS}:writes_on_the_terminal", "raised ValueError: [31mred"),
        ("models/small.py:small", "is a path; name the module, started in models: small:small"),
        ("small.py:small", "small.py is a path; name the module: small:small"),
        (f"{MODELS}:", "does not name a factory: MODULE:FACTORY"),
        ("", "'' does not name a factory: MODULE:FACTORY"),
        (f"{MODELS}:wrong_shape", "refuses its inputs: RuntimeError: mat1 and mat2 shapes"),
        (f"{MODELS}:returns_none_from_forward", "returns None, no tensor to verify"),
        (f"{MODELS}:on_meta", "is on the meta device"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(loader: str, said: str) -> None:
    with pytest.raises(BadInput) as raised:
        load(loader, example=None, seed=0)
    message = str(raised.value)
    assert said in message and "\n" not in message


def test_a_module_with_a_syntax_error_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_with_an_error.py").write_text("def load(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match="importing module_with_an_error raised SyntaxError"):
        load("module_with_an_error:load", example=None, seed=0)


def test_a_call_leaves_inputs_that_the_model_changes() -> None:
    loaded = load(f"{MODELS}:in_place", example=None, seed=0)
    [before] = [each.clone() for each in loaded.args]
    first, second = loaded.call(), loaded.call()
    assert loaded.args[0].equal(before)
    assert first.equal(second)


def test_what_a_stage_meets_in_a_model_is_one_line_of_its_kind() -> None:
    def met(error: Exception) -> str:
        with (
            pytest.raises(DoesNotCompile) as told,
            in_a_line("it cannot", DoesNotCompile, "do that"),
        ):
            raise error
        return str(told.value)

    assert met(ValueError("bad type\nat some place")) == "it cannot: ValueError: bad type; do that"
    assert met(KeyError("errors:\n x")) == "it cannot: KeyError: 'errors:\\n x'; do that"
    assert met(ValueError("errors:\n x\n y")) == "it cannot: ValueError: errors: x; do that"
    for passing in (BadInput("the person's"), NotImplementedError("build_relax")):
        with pytest.raises(type(passing)), in_a_line("it cannot", DoesNotCompile):
            raise passing


def test_inputs_that_memory_does_not_hold() -> None:
    with pytest.raises(BadInput, match=r"the example inputs are 8e\+14 GB; this machine has"):
        load(f"{MODELS}:small", example=[ExampleTensor(shape=[10**22, 10])], seed=0)


def test_a_lazy_module_has_parameters_that_can_be_exported() -> None:
    loaded = load(f"{MODELS}:lazy", example=None, seed=0)
    assert not any(each.is_inference() for each in loaded.module.parameters())
    torch.export.export(loaded.module, loaded.args)


def test_code_that_would_end_the_process_is_told_and_a_fork_of_its_still_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with pytest.raises(BadInput, match=r"^a ended the process: os\._exit\(0\)$"), kept_alive("a"):
        os._exit(0)
    here = os.getpid()
    with kept_alive("a"):
        monkeypatch.setattr(os, "getpid", lambda: here + 1)
        with pytest.raises(BadInput):  # what a real fork would not live to raise
            os._exit(3)
    assert ended == [3]
