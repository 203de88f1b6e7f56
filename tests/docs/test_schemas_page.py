"""docs/reference/schemas.md lists what the schemas have."""

from tests.docs.schema_tables import FILES, PAGE, page
from tests.pages import ROOT


def test_the_page_is_as_the_schemas_say() -> None:
    hint = "write it anew: python -m tests.docs.schema_tables"
    assert PAGE.read_text() == page(), hint


def test_every_schema_is_listed() -> None:
    assert {each.name for each in (ROOT / "docs" / "schemas").glob("*.json")} == set(FILES)
