"""The published JSON Schemas are those of the code."""

import json
from pathlib import Path

from tvm_practice.icd.schemas import schemas

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"


def test_the_published_schemas_are_current() -> None:
    """If not: python -m tvm_practice.icd schemas docs/schemas"""
    for name, schema in schemas().items():
        assert json.loads((FOLDER / name).read_text()) == schema, name
