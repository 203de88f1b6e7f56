"""Converters of ONNX operators to Relax that TVM lacks, or that are wrong in it."""

from typing import Any

CONVERTERS: dict[str, Any] = {}
