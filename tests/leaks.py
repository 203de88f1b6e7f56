"""Environment variables that a test leaves behind: every later test and process would have them."""

import contextlib
import os
from collections.abc import Iterator

from tests import forks

# pytest names the current test there; the servers' address is hidden from some tests; PyTorch sets
# the last one once it has compiled something.
_CHANGE = ("PYTEST_CURRENT_TEST", forks.ADDRESS, "TORCHINDUCTOR_CACHE_DIR")


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _CHANGE}


@contextlib.contextmanager
def forbidden() -> Iterator[None]:
    """Put the environment back after the block; raises AssertionError naming what it changed."""
    before = _variables()
    yield
    after = _variables()
    changed = sorted(each for each in before | after if before.get(each) != after.get(each))
    for name in changed:
        os.environ.pop(name, None)
        if name in before:
            os.environ[name] = before[name]
    assert not changed, f"left changed in the environment: {', '.join(changed)}"
