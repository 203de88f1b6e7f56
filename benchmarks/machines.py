"""Pages with a part for each kind of machine.

benchmarks/measured/NAME.json keeps the parts of docs/NAME.md. A measurement replaces the part of
the machine that it ran on, and leaves the others.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import click

_ROOT = Path(__file__).resolve().parent.parent
DOCS, KEPT = _ROOT / "docs", _ROOT / "benchmarks" / "measured"


def processor() -> str:
    """LLVM's name of this machine's processor; for a process of the current engine."""
    from tvm_practice import engines

    return str(engines.host_target().attrs["mcpu"])


def kind_of(name: str) -> str:
    """This kind of processor: its name, and LLVM's, as several kinds share the first."""
    from tvm_practice import engines

    return f"{name} ({engines.call(engines.CURRENT, 'benchmarks.machines:processor', {})})"


def write_part(name: str, head: str, kind: str, lines: Sequence[str]) -> None:
    """Write docs/NAME.md with a new part for a kind of machine.

    Args:
        name: of the page.
        head: what comes before all parts.
        kind: of machine, the part's heading.
        lines: of the part. Their headings are of the third level or below.
    """
    kept = KEPT / f"{name}.json"
    parts: dict[str, list[str]] = json.loads(kept.read_text()) if kept.exists() else {}
    parts[kind] = list(lines)
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(parts, indent=1, ensure_ascii=False) + "\n")
    written = [line for each in sorted(parts) for line in ("", f"## {each}", "", *parts[each])]
    page = DOCS / f"{name}.md"
    page.write_text("\n".join([head.rstrip("\n"), *written]) + "\n")
    click.echo(f"written: {page}")
