"""An export that is there already is not made again, and one that differs is."""

import functools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import solutions
from tvm_practice import engines
from tvm_practice.tvm_export.artifacts import origin
from tvm_practice.tvm_export.loading import Loaded

EXPORT = "tests.tvm_export.origin_functions:export"
# What takes long to import, and is of use only where something is compiled, searched or drawn.
SPARED = {"tvm", "torch._dynamo", "torch._inductor", "sympy", "scipy", "transformers", "rich"}


@pytest.fixture(scope="module")
def session() -> Iterator[engines.Session]:
    """A process of the current engine."""
    with engines.Session("current") as opened:
        yield opened


@pytest.fixture(scope="module")
def made(session: engines.Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export; not to be changed."""
    folder = tmp_path_factory.mktemp("made") / "artifacts"
    session.call(EXPORT, {"folder": str(folder)})
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "artifacts"))


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When each file was written, and what it holds."""
    return {
        each.name: (each.stat().st_mtime_ns, each.read_bytes())
        for each in folder.iterdir()
        if each.is_file()
    }


def metadata(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "metadata.json").read_text())
    return content


@pytest.mark.pages
@pytest.mark.real_processes
def test_the_same_again_makes_nothing_and_imports_no_more_than_the_model_needs(
    folder: Path,
) -> None:
    """Another process: its modules, processor and threads are those of the first one."""
    before = state(folder)
    with engines.Session("current") as another:
        found = another.call(EXPORT, {"folder": str(folder)}, activate=False)
    assert state(folder) == before and SPARED.isdisjoint(found["imported"])
    written = metadata(folder)
    assert found["unchanged_since"] == written["environment"]["date"]
    assert found["latency"] == written["latency"] and found["artifacts"] == str(folder)
    assert found["ratio"] == written["ratio_to_pytorch"] and found["rules"] == written["rules"]


def test_again_if_asked_for(session: engines.Session, folder: Path) -> None:
    before, found = state(folder), session.call(EXPORT, {"folder": str(folder)})
    again = session.call(EXPORT, {"folder": str(folder), "reuse": False})
    assert found["unchanged_since"] and again["unchanged_since"] is None
    assert found.keys() == again.keys() and all(
        state(folder)[name] != before[name] for name in before
    )


def _damage(folder: Path) -> dict[str, Any]:
    library = folder / "deploy_lib.tar"
    content = library.read_bytes()
    library.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    return {}


def _forget_the_origin(folder: Path) -> dict[str, Any]:
    """As metadata.json of an earlier version is."""
    old = metadata(folder)
    for name in ("origin", "not_run", "notes"):
        del old[name]
    (folder / "metadata.json").write_text(json.dumps(old))
    return {}


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: {"weight": 2.0},
        lambda folder: {"target": "llvm -mcpu=x86-64-v2", "force": True},
        _damage,
        _forget_the_origin,
    ],
    ids=["weights", "target", "library", "earlier"],
)
def test_what_differs_is_exported_anew(
    change: Callable[[Path], dict[str, Any]], session: engines.Session, folder: Path
) -> None:
    given = {"folder": str(folder), **change(folder)}
    before = state(folder)
    assert session.call(EXPORT, given)["unchanged_since"] is None
    after = state(folder)
    assert all(after[name] != before.get(name) for name in after)
    assert session.call(EXPORT, given)["unchanged_since"] and state(folder) == after


def test_the_ir_that_is_there_is_no_reason_to_export_anew(
    session: engines.Session, folder: Path
) -> None:
    given = {"folder": str(folder)}
    session.call(EXPORT, {**given, "dump_ir": True})
    assert session.call(EXPORT, given)["unchanged_since"]
    shutil.rmtree(folder / "ir")
    assert session.call(EXPORT, given)["unchanged_since"]
    assert not session.call(EXPORT, {**given, "dump_ir": True})["unchanged_since"]
    assert (folder / "ir").is_dir()


def test_an_edited_step_is_noticed(session: engines.Session, tmp_path: Path) -> None:
    [package] = solutions.__path__
    steps = tmp_path / "own_steps"
    steps.mkdir()
    for file in Path(package).glob("*.py"):
        (steps / file.name).write_text(file.read_text().replace("solutions", "own_steps"))
    given = {"folder": str(tmp_path / "artifacts"), "steps": "own_steps", "path": str(tmp_path)}
    session.call(EXPORT, given)
    assert session.call(EXPORT, given)["unchanged_since"]
    with (steps / "relay_import.py").open("a") as edited:
        edited.write("# edited\n")
    assert not session.call(EXPORT, given)["unchanged_since"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"repeats": 2}, "something else was asked for"),
        ({"opt_level": 2}, "something else was asked for"),
        ({"tuning_trials": 8, "tuner": "metaschedule"}, "something else was asked for"),
        ({"search": {"seed": "1"}}, "something else was asked for"),
        ({"dump_ir": True}, "something else was asked for"),
        ({"software": "0"}, "the software, the processor or its threads are others"),
        ({"records": "0"}, "the tuning records are others"),
        ({"model": "0"}, "the model or its inputs are others"),
        ({}, None),
    ],
)
def test_the_difference_is_said(asked: dict[str, Any], words: str | None, made: Path) -> None:
    there = origin.former(made)
    assert there is not None
    digests = {name: asked.get(name, there["origin"][name]) for name in there["origin"]}
    wanted = there["configuration"] | {
        name: value for name, value in asked.items() if name not in digests
    }
    assert origin.difference(there, wanted, digests) == words


def test_a_missing_file_is_damage(folder: Path) -> None:
    there = metadata(folder)
    assert origin.damage(folder, there, dump_ir=False) is None
    assert "ir is missing" in str(origin.damage(folder, there, dump_ir=True))
    summary = (folder / "summary.json").read_text()
    for text in ("", "[]", summary.replace("current", "classic")):
        (folder / "summary.json").write_text(text)
        assert "summary.json is damaged" in str(origin.damage(folder, there, dump_ir=False))
    for name in ("summary.json", "deploy_graph.json"):
        (folder / name).unlink()
        assert f"{name} is missing" in str(origin.damage(folder, there, dump_ir=False))
    (folder / "metadata.json").write_text("{")
    assert origin.former(folder) is None and origin.former(folder / "nowhere") is None


def test_no_records_are_no_digest(tmp_path: Path) -> None:
    assert origin.records(tmp_path / "log") is None and origin.records(tmp_path) is None
    (tmp_path / "log").write_text("{}\n")
    one = origin.records(tmp_path / "log")
    (tmp_path / "log").write_text("{}\n{}\n")
    assert one != origin.records(tmp_path / "log")


def test_another_engine_other_threads_and_other_code_are_other_software(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_space.py").write_text("def space(sch): ...")
    plain = origin.software("current", steps="solutions", own=())
    named = origin.software("current", steps="solutions", own=("own_space:space",))
    (tmp_path / "own_space.py").write_text("def space(sch): pass")
    found = {
        plain,
        named,
        origin.software("current", steps="solutions", own=("own_space:space",)),
        origin.software("current", steps="tvm_practice", own=()),
        origin.software("classic", steps="solutions", own=()),
    }
    monkeypatch.setenv("TVM_NUM_THREADS", str(engines.thread_count() + 1))
    found.add(origin.software("current", steps="solutions", own=()))
    assert len(found) == 6
    monkeypatch.undo()
    # A name of a built-in space is no module, and what is no module is whoever imports it's error.
    for space in ("register-tiles", "nowhere:space", "nowhere.at_all:space"):
        assert origin.software("current", steps="solutions", own=(space,)) == plain


class Scaled(torch.nn.Module):
    """A layer with an attribute that is no weight."""

    def __init__(self, scale: Any):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 2)
        self.register_buffer("shift", torch.zeros(2))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        return y


def digest(module: torch.nn.Module, x: float = 1.0, output: float = 1.0) -> str | None:
    given, result = torch.full((3, 4), x), torch.full((3, 2), output)
    return origin.model(Loaded(module, (given,), {}, (result,)), steps="solutions")


def test_equal_models_have_one_digest_and_others_have_others() -> None:
    def changed(change: Callable[[Any], Any]) -> torch.nn.Module:
        module = Scaled(1.0)
        with torch.no_grad():
            change(module)
        return module

    def closure(power: int) -> Callable[[float], float]:
        return lambda x: x**power

    assert digest(Scaled(1.0)) == digest(Scaled(1.0))
    assert digest(Scaled({"b", "a"})) == digest(Scaled({"a", "b"}))
    others = [
        changed(lambda module: module.layer.weight[0, 0].add_(1)),
        changed(lambda module: module.shift.add_(1)),
        changed(lambda module: module.layer.double()),
        changed(lambda module: module.eval()),
        changed(lambda module: module.add_module("more", torch.nn.Identity())),
        changed(lambda module: module.layer.requires_grad_(False)),
        *map(Scaled, (2.0, 2, "2", None, [1.0], (1.0,), {"a": 1}, {"b": 1}, torch.ones(2))),
        *map(Scaled, (torch.ones(1, 2), torch.ones(2).bfloat16(), torch.float16, torch.relu)),
        *map(
            Scaled, (closure(2), closure(3), functools.partial(max, 1), functools.partial(max, 2))
        ),
        *map(Scaled, ({"a", "b"}, {"a", "c"}, torch.ones(2).numpy(), torch.zeros(2).numpy())),
    ]
    found = [digest(Scaled(1.0)), digest(Scaled(1.0), x=2), digest(Scaled(1.0), output=2)]
    found += map(digest, others)
    assert len(set(found)) == len(found) and None not in found


def test_an_objects_own_affairs_are_passed_over() -> None:
    def settings(**values: Any) -> torch.nn.Module:
        return Scaled(SimpleNamespace(**values))

    assert digest(settings(rate=1, _hash=1)) == digest(settings(rate=1, _hash=2))
    assert digest(settings(rate=1)) != digest(settings(rate=2))


def test_a_model_that_holds_itself() -> None:
    module = Scaled(1.0)
    module.scale = [module]
    assert digest(module) is not None


def test_what_cannot_be_looked_at_has_no_digest() -> None:
    assert digest(Scaled(torch.eye(2).to_sparse())) is None


def test_the_persons_own_modules_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that the model calls is in no class of it."""
    monkeypatch.syspath_prepend(tmp_path)
    before = digest(Scaled(1.0))
    (tmp_path / "own_helper.py").write_text("def f(x): return x")
    __import__("own_helper")
    with_helper = digest(Scaled(1.0))
    (tmp_path / "own_helper.py").write_text("def f(x): return x + 1")
    assert len({before, with_helper, digest(Scaled(1.0))}) == 3
