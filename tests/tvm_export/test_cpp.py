"""`tvm_practice.tvm_export.cpp`: the project's files, and what is said where a tool is missing."""

import importlib.util
import os
from pathlib import Path

import pytest

from tvm_practice.labs import native
from tvm_practice.tvm_export import cpp
from tvm_practice.tvm_export.errors import Missing


def test_the_project_is_written_and_what_is_added_stays(tmp_path: Path) -> None:
    folder = cpp.write_project(tmp_path / "new")
    assert folder == tmp_path / "new" / "cpp"
    files = {each.name for each in folder.iterdir()}
    assert {"tvm_model.h", "main.cpp", "patterns.cpp", "cuda.cu", "CMakeLists.txt"} <= files
    (folder / "mine.cpp").write_text("int main() {}\n")
    (folder / "tvm_model.h").write_text("of an earlier version")
    cpp.write_project(tmp_path / "new")
    assert (folder / "mine.cpp").exists()
    assert "class TVMModel" in (folder / "tvm_model.h").read_text()


def test_missing_tools_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert "'.[cpp]'" in str(cpp.missing_tool())
    with pytest.raises(Missing, match="CMake"):
        cpp.build_project(tmp_path)
    with pytest.raises(Missing, match=r"C\+\+ compiler"):
        native.run_exercise("wrap_buffer", "")


def test_the_wheel_has_no_static_runtime_and_lacks_headers_to_build_one() -> None:
    """As docs/guides/cuda-applications.md says. Once it has them, the page can say how."""
    found = importlib.util.find_spec("tvm")
    assert found is not None and found.submodule_search_locations
    wheel = Path(next(iter(found.submodule_search_locations)))
    assert (wheel / "lib" / "libtvm_runtime.so").exists() or os.name != "posix"
    assert not list(wheel.rglob("libtvm*.a"))
    assert (wheel / "src" / "runtime" / "module.cc").exists()
    assert not (wheel / "include" / "tvm" / "support" / "io.h").exists()
