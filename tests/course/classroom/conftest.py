"""A folder for a class."""

from pathlib import Path

import pytest


@pytest.fixture
def classroom(tmp_path: Path) -> Path:
    folder = tmp_path / "class"
    folder.mkdir()
    return folder
