"""Functions that the tests call in a child process."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def run_source(source: str, folder: str) -> Any:
    """Run `source` with `folder` as working directory; the `result` that it leaves, as JSON.

    It is run as a file, since TVMScript reads the source of the functions that it parses.
    """
    os.chdir(folder)
    with tempfile.NamedTemporaryFile("w", suffix=".py", dir=folder, delete=False) as file:
        file.write(source)
    names: dict[str, Any] = {"__name__": Path(file.name).stem}
    exec(compile(source, file.name, "exec"), names)
    return _plain(names["result"])


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
