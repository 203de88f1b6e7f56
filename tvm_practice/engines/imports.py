"""Importing a big package without a search for garbage in its objects."""

import gc
import importlib
import sys


def import_for_good(name: str) -> None:
    """Import a package for the first time, and never search what it makes for garbage.

    PyTorch's import makes several hundred thousand objects, all of which stay. Python would look
    through those that there are so far again and again meanwhile, and once more when the process
    ends: together a quarter of the time that the import takes. What the process had before counts
    as lasting too, garbage in cycles included: this is for the beginning of a process.
    """
    if name in sys.modules:
        return
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module(name)
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
