"""Puts the tables that lab 6 measured into its page.

python -m tvm_practice.labs.compilers_compared --solutions    # measures
python benchmarks/compilers.py                                # writes the page
"""

import json
from pathlib import Path

import click

PAGE = Path(__file__).resolve().parent.parent / "docs" / "labs" / "6-compilers_compared.md"
BEGIN = "<!-- figures: python benchmarks/compilers.py -->"
END = "<!-- end of figures -->"


def with_figures(text: str, tables: str) -> str:
    """A page's text with `tables` between the two marks; ValueError where they are not."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the page needs {BEGIN!r} and {END!r}, once each")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables.strip()}\n\n{END}{after}"


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/compilers.py\n"
    "  python benchmarks/compilers.py --results runs/compilers_compared/results.json"
)
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("runs/compilers_compared/results.json"),
    show_default=True,
)
def main(results: Path) -> None:
    """Write the lab's figures into docs/labs/6-compilers_compared.md."""
    if not results.exists():
        raise click.UsageError(
            f"there is no {results}; python -m tvm_practice.labs.compilers_compared --solutions "
            "writes it"
        )
    figures = json.loads(results.read_text())
    if figures["size"] != "full":
        raise click.UsageError(f"{results} is of a quick run; run the lab without --quick")
    from tvm_practice.labs.workloads.tables import page

    PAGE.write_text(with_figures(PAGE.read_text(), page(figures)))
    click.echo(f"written: {PAGE}")


if __name__ == "__main__":
    main()
