"""The steps that graphs are made of, by family and by name.

A maker draws a step's arguments and takes it; it raises Unsuitable where no value suits it. Some
families are there twice or more: they are drawn that much more often.
"""

from collections.abc import Callable

from fuzz.drawing import Drawn
from fuzz.operators import contracting, elementwise, indexing, moving, reducing

Maker = Callable[[Drawn, str], None]
MAKERS: dict[str, dict[str, Maker]] = {
    "contracting": contracting.MAKERS,
    "elementwise": elementwise.MAKERS,
    "elementwise 2": elementwise.MAKERS,
    "indexing": indexing.MAKERS,
    "moving": moving.MAKERS,
    "moving 2": moving.MAKERS,
    "reducing": reducing.MAKERS,
}
"""Makers of steps, by family and by the operator's name."""

NAMES = sorted({name for family in MAKERS.values() for name in family})
"""All operators."""
