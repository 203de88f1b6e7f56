"""Whether a ratio that is published on a busy machine is the quiet machine's; docs/busy_machine.md.

    python benchmarks/busy_machine.py                  # about half an hour, on a quiet machine
    python benchmarks/busy_machine.py --runs 5
    python benchmarks/busy_machine.py --table          # only write the page again

Each model is compared with eager PyTorch on the machine as it is, and then many times beside load:
processes that use a given share of a processor each. A comparison beside load either publishes a
ratio or says why it does not. After each one that does, the model is compared once more without
load: the quiet ratio is the median of those, since a single one is off by several per cent.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
import psutil
from beside_torch import options, write_page

_MODELS = ("mlp", "resnet18")
# Busy processes, each with the share of a processor that it uses.
_LOADS: tuple[tuple[float, ...], ...] = (
    (0.02,),
    (0.05,),
    (0.1,),
    (0.5,),
    (1.0,),
    (1.0, 1.0),
    (1.0, 1.0, 1.0, 1.0),
)
_HEAD = """# Ratios on a busy machine

Made by `python benchmarks/busy_machine.py`. It compares exports of the course's models with PyTorch
eager on a quiet machine, and on one where other processes each use a share of a processor. If
something else used the processors, or one side was slower in turns than alone, the command repeats
the comparison, up to three times in all. If the last one fails too, it publishes no ratio and says
why. The quiet ratio is the median of quiet comparisons, made between the loaded ones.
"""
# Four seconds of the smallest model: within a second a machine's speed drifts by a tenth.
_ROUNDS = 100
# It ends with its owner, which may be killed: it is no child of the owner's.
_BURN = """
import os, sys, time
share, owner = float(sys.argv[1]), int(sys.argv[2])
while True:
    os.kill(owner, 0)  # raises ProcessLookupError if there is no such process
    end = time.perf_counter() + 0.02 * share
    while time.perf_counter() < end:
        pass
    time.sleep(0.02 * (1 - share))
"""


@contextmanager
def load_of(shares: Sequence[float]) -> Iterator[list[int]]:
    """Processes that use these shares of a processor inside the block, if any; their ids.

    They are nobody's children. They end with this process, even if it is killed.
    """
    # A parent that ends at once: the meter counts the children of this process as its own.
    start = (
        "import subprocess, sys\n"
        "for share in sys.argv[3:]:\n"
        "    child = subprocess.Popen([sys.executable, '-c', sys.argv[1], share, sys.argv[2]],\n"
        "        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,\n"
        "        start_new_session=True)\n"
        "    print(child.pid)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", start, _BURN, str(os.getpid()), *map(str, shares)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    pids = [int(pid) for pid in shown.split()]
    try:
        yield pids
    finally:
        for pid in pids:
            with suppress(psutil.NoSuchProcess):  # it has ended already
                psutil.Process(pid).kill()


def measure(factory: str, runs: int, seconds: float) -> dict[str, Any]:
    """One model on the machine as it is, and beside load.

    Args:
        factory: "module:factory" of the model.
        runs: comparisons beside load.
        seconds: for each of them.

    Returns:
        {"quiet": [a ratio], "beside": [a ratio with its "load"]}, see measure.Ratio.to_dict.
    """
    import torch

    from tvm_practice import engines
    from tvm_practice.measure import Ratio, compare_interleaved
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.loading import load

    torch.set_num_threads(engines.thread_count())
    loaded = load(factory, example=None, seed=0)
    built = compile_pytorch_module(loaded.module, ExportConfig(example_input=loaded.args))

    sides = {"tvm": built.run, "eager": loaded.call}
    compare = partial(compare_interleaved, sides, baseline="eager", rounds=_ROUNDS)

    def ratio_beside(shares: Sequence[float]) -> Ratio:
        with load_of(shares):
            ratio = compare(time_limit=seconds).ratio["tvm"]
        print(f"{factory} beside {shares or 'nothing'}: {ratio}", file=sys.stderr)
        return ratio

    quiet = [ratio_beside(())]
    beside = []
    for number in range(runs):
        shares = _LOADS[number % len(_LOADS)]
        ratio = ratio_beside(shares)
        beside.append({"load": shares, **ratio.to_dict()})
        if ratio.measured:
            quiet.append(ratio_beside(()))
    return {"quiet": [each.to_dict() for each in quiet if each.measured], "beside": beside}


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The page's table, and the largest deviation below it."""
    lines = [
        "| model | load, processors | comparisons | with a ratio | farthest from the quiet ratio |",
        "|---|---|---:|---:|---:|",
    ]
    largest = 0.0
    for row in rows:
        alone = [each["value"] for each in row["quiet"]]
        quiet = statistics.median(alone)
        shown = f"{quiet:.2f}, from {min(alone):.2f} to {max(alone):.2f}"
        lines.append(f"| {row['model']} | none | {len(alone)} | {len(alone)} | {shown} |")
        for shares in _LOADS:
            found = [each for each in row["beside"] if tuple(each["load"]) == shares]
            off = [each["value"] / quiet - 1 for each in found if each["value"] is not None]
            farthest = max(off, key=abs, default=None)
            largest = max(largest, *map(abs, off), 0.0)
            shown = "–" if farthest is None else f"{farthest:+.0%}"
            load = " + ".join(f"{share:g}" for share in shares)
            lines.append(f"| {row['model']} | {load} | {len(found)} | {len(off)} | {shown} |")
    return [*lines, "", f"No published ratio is farther than {largest:.0%} from the quiet one."]


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/busy_machine.py\n"
    "  python benchmarks/busy_machine.py --model mlp --runs 10"
)
@click.option("--model", "names", multiple=True, default=_MODELS, show_default=True)
@click.option(
    "--runs", type=click.IntRange(min=1), default=25, show_default=True, help="Runs per model."
)
@options("busy_machine")
def main(names: tuple[str, ...], runs: int, seconds: float, out: Path, table: bool) -> None:
    """Compare models with PyTorch beside load: is what is published true?"""
    if not table:
        _measure_all(names, runs, seconds, out)
    write_page("busy_machine", out, _HEAD, table_lines)


def _measure_all(names: Sequence[str], runs: int, seconds: float, out: Path) -> None:
    from models import factory

    from tvm_practice import engines
    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.writing import write_json

    report: dict[str, Any] = {"environment": environment(), "threads": engines.thread_count()}
    # What was measured of other models before stays.
    before = json.loads(out.read_text())["rows"] if out.exists() else []
    report["rows"] = [row for row in before if row["model"] not in names]
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        found = measure(factory(name), runs, seconds)
        if not found["quiet"]:
            raise click.ClickException("start on a quiet machine: no comparison alone has a ratio")
        report["rows"].append({"model": name, **found})
        write_json(out, report)


if __name__ == "__main__":
    main()
