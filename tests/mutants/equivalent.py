"""Variants made by machine that are right by the docstring, each with the reason."""

EQUIVALENT: dict[str, dict[str, str]] = {}
