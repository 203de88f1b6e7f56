"""Imports that Python does not search for garbage."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tvm_practice.engines.imports import import_for_good

NAME = "imported_for_good"


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector of this process, put back as it was."""
    yield
    sys.modules.pop(NAME, None)
    gc.unfreeze()
    gc.enable()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module that notes whether garbage is collected while it is imported."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / f"{NAME}.py"
    file.write_text("import gc\ncollecting = gc.isenabled()\nmade = [[]]\n")
    return file


@pytest.mark.parametrize("enabled", [True, False])
def test_what_is_imported_is_no_longer_looked_at(enabled: bool, module: Path) -> None:
    if not enabled:
        gc.disable()
    import_for_good(NAME)
    imported = sys.modules[NAME]
    assert imported.collecting is False and gc.isenabled() is enabled
    assert all(each is not imported.made for each in gc.get_objects())


def test_what_is_there_already_keeps_nothing_more(module: Path) -> None:
    """A process that exports again and again must not keep the garbage of each export."""
    import_for_good(NAME)
    gc.unfreeze()
    import_for_good(NAME)
    assert gc.get_freeze_count() == 0


def test_a_failed_import_leaves_the_collector_on(module: Path) -> None:
    module.write_text("import no_such_module_of_anybody")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_anybody"):
        import_for_good(NAME)
    assert gc.isenabled() and gc.get_freeze_count() == 0
