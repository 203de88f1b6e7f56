"""The tables of docs/reference/schemas.md, from the schemas.

python -m tests.docs.schema_tables      write the page anew
"""

import json
from typing import Any

from tests.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "schemas.md"
FILES = {
    "icd_config.json": "the configuration of `icd run`",
    "icd_metrics.json": "`metrics.json`, written by `icd run`",
    "tvm_comparison.json": "what `compare_tvm_results --output` writes, or a list of it",
    "bench_report.json": "`report.json`, written by `bench`",
    "artifact_metadata.json": "`metadata.json` of an export",
    "artifact_summary.json": "`summary.json` of an export",
}
HEAD = """# Schemas

JSON Schemas (draft 2020-12) of the files that the tools read and write, made from the code by
`python -m tvm_practice.icd schemas docs/schemas`; a file of the repository is checked against the
code by a test. The tables list the fields at the top; a schema has those below too.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n{_section(name, what)}" for name, what in FILES.items())


def _section(name: str, what: str) -> str:
    schema = json.loads((ROOT / "docs" / "schemas" / name).read_text())
    top = schema if "properties" in schema else _resolve(schema, schema["anyOf"][0])
    required = set(top.get("required", ()))
    rows = [
        f"| `{field}` | {_type(schema, of)} | {'yes' if field in required else ''} "
        f"| {_description(schema, of)} |"
        for field, of in top["properties"].items()
    ]
    return "\n".join(
        [
            f"## {name}",
            "",
            f"[{name}](../schemas/{name}): {what}.",
            "",
            "| field | type | required | |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _resolve(schema: dict[str, Any], of: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in of:
        return of
    found: dict[str, Any] = schema["$defs"][of["$ref"].rpartition("/")[2]]
    return found


def _type(schema: dict[str, Any], of: dict[str, Any]) -> str:
    if "anyOf" in of:
        return " or ".join(dict.fromkeys(_type(schema, each) for each in of["anyOf"]))
    resolved = _resolve(schema, of)
    if "enum" in resolved:
        return ", ".join(f"`{each}`" for each in resolved["enum"])
    return str(resolved.get("type", f"`{resolved['const']}`" if "const" in resolved else "any"))


def _description(schema: dict[str, Any], of: dict[str, Any]) -> str:
    found = of.get("description") or _resolve(schema, of).get("description", "")
    return " ".join(str(found).split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
