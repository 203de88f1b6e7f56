"""`python -m tvm_practice.engines`: what each engine is on this machine."""

import json
import sys

import click

from tvm_practice.engines.command_line import Command


def describe_all() -> dict[str, dict[str, object]]:
    from tvm_practice import engines

    report: dict[str, dict[str, object]] = {}
    for engine in engines.ENGINES:
        try:
            report[engine] = engines.call(engine, "tvm_practice.engines:describe")
        except engines.EngineError as error:
            report[engine] = {"unavailable": str(error)}
    return report


def _cuda(facts: dict[str, object]) -> str:
    if not facts["cuda_in_build"]:
        return "not in build"
    return "device found" if facts["cuda_device"] else "in build, no device"


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n  python -m tvm_practice.engines\n"
    "  python -m tvm_practice.engines --json",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def main(as_json: bool) -> None:
    """Say for each TVM: version, LLVM, CUDA, tuners and threads, or why it is missing.

    Exit code 0 if at least one engine works, 1 if none does.
    """
    report = describe_all()
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table("engine", "TVM", "LLVM", "CUDA", "tuners", "threads")
        missing = []
        for engine, facts in report.items():
            if "unavailable" in facts:
                missing.append(str(facts["unavailable"]))
                continue
            table.add_row(
                engine,
                str(facts["version"]),
                str(facts["llvm"]),
                _cuda(facts),
                ", ".join(facts["tuners"]),  # type: ignore[arg-type]
                str(facts["threads"]),
            )
        console = Console()
        if table.row_count:
            console.print(table)
        for line in missing:
            console.print(line, markup=False, soft_wrap=True)
    sys.exit(0 if any("unavailable" not in facts for facts in report.values()) else 1)


if __name__ == "__main__":
    main()
