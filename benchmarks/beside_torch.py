"""What the benchmarks of hand-written schedules share: equal sides, a JSON file, a page."""

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from machines import kind_of, write_part

Command = TypeVar("Command", bound=Callable[..., Any])


def options(name: str) -> Callable[[Command], Command]:
    """The options --seconds, --out (runs/NAME.json) and --table."""
    added = (
        click.option("--table", is_flag=True, help="Write the page from what is there."),
        click.option(
            "--out",
            type=click.Path(dir_okay=False, path_type=Path),
            default=Path("runs") / f"{name}.json",
            show_default=True,
        ),
        click.option(
            "--seconds", type=float, default=10, show_default=True, help="Seconds per shape."
        ),
    )

    def add(command: Command) -> Command:
        for option in added:
            command = option(command)
        return command

    return add


def measure_all(
    cases: Mapping[str, Callable[[], dict[str, Any]]], out: Path, *, side: str = "packed"
) -> None:
    """Measure cases on the same threads for TVM, torch and numpy, and write them as JSON.

    Args:
        cases: by what to print, a function that measures it. Its result must hold "comparison",
            as measure.Comparison.to_dict gives it, and "max_error" of `side`.
        out: the file, written anew after each case.
        side: whose ratio to the baseline is printed.
    """
    from tvm_practice import engines
    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.writing import write_json

    threads = engines.thread_count()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # numpy's
        os.environ[name] = str(threads)
    engines.activate("current")

    import torch

    torch.set_num_threads(threads)
    report: dict[str, Any] = {"environment": environment(), "threads": threads, "rows": []}
    out.parent.mkdir(parents=True, exist_ok=True)
    for name, measure in cases.items():
        row = measure()
        report["rows"].append(row)
        write_json(out, report)
        comparison = row["comparison"]
        click.echo(
            f"{name:>24}  {side} / {comparison['baseline']} "
            f"{ratio_cell(comparison['ratio'][side])}, error {row['max_error']:.1e}"
        )


def write_page(
    name: str, out: Path, head: str, table: Callable[[list[dict[str, Any]]], list[str]]
) -> None:
    """Write this machine's part of docs/NAME.md.

    Args:
        name: of the page.
        out: what `measure_all` wrote.
        head: the page down to where a machine is named.
        table: from the measured cases to the lines after that.
    """
    if not out.exists():
        raise click.UsageError(f"there is no {out}; run it without --table")
    report = json.loads(out.read_text())
    machine = report["environment"]
    packages = ", ".join(
        f"{each} {machine['packages'][each]}" for each in ("torch", "numpy", "apache-tvm")
    )
    where = f"{report['threads']} threads; {packages}; {machine['date'][:10]}."
    lines = [where, "", *table(report["rows"])]
    write_part(name, head, kind_of(machine["processor"]), lines)


def rates(comparison: dict[str, Any], multiply_adds: int) -> dict[str, float]:
    """GFLOP/s of each side, of its median."""
    return {
        name: 2 * multiply_adds / each["p50"] / 1e6 for name, each in comparison["latency"].items()
    }


def function_table(operators: Iterable[dict[str, Any]]) -> list[str]:
    """The lines of a table of a build's functions; see profiling.operators_of."""
    lines = ["| function | calls | ms | share |", "|---|---|---|---|"]
    for each in operators:
        name = each["name"].removesuffix("_prepacked")
        time = f"{each['milliseconds']:.2f} | {each['share']:.0%}"
        lines.append(f"| `{name}` | {each['calls']} | {time} |")
    return lines


def ratio_cell(ratio: dict[str, Any]) -> str:
    """A ratio with its interval: 0.95 (0.93–0.97)."""
    from tvm_practice.viz.tables import with_interval

    if ratio["value"] is None:
        return str(ratio["verdict"])
    return with_interval(ratio["value"], ratio["ci95"])


def geometric_mean(values: Iterable[float | None]) -> float:
    """Of ratios that were all measured; ends the command where the machine was too busy for one."""
    logarithms = []
    for value in values:
        if value is None:
            raise click.ClickException("a ratio was not measured: run again on a quiet machine")
        logarithms.append(math.log(value))
    return math.exp(sum(logarithms) / len(logarithms))
