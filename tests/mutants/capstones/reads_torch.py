"""Refused: `torch` multiplies, and TVM calls it."""

import torch  # noqa: F401


def product(m, n, k):
    raise AssertionError("the import is refused before")
