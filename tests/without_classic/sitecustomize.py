"""Put first on PYTHONPATH, this makes Python behave as if the bitblas wheel were not installed."""

import sys
from collections.abc import Sequence
from types import ModuleType


class _Hide:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "bitblas":
            raise ModuleNotFoundError("hidden by the test", name=name)


sys.meta_path.insert(0, _Hide)
