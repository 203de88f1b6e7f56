"""What each pass for speed gains: models exported whole and without it; docs/passes.md.

    python benchmarks/passes.py                          # all; two minutes a model and more
    python benchmarks/passes.py --model lstm --model resnet50 --seconds 20
    python benchmarks/passes.py --table                  # only write the page again

Each model has a process of its own, in which all its exports are called in turns. What was measured
is kept beside the parts of other machines, see benchmarks/machines.py.
"""

import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import click

_MOST_APART = 1e-3  # outputs with and without a pass, over the largest
_KEPT = Path("runs") / "passes.json"
_MODELS = (
    *("mlp", "resnet18", "bert_base", "mobilenet_v2", "gpt2", "vit", "lstm", "resnet50", "mamba"),
    *("mobilenet_v2-batch-8", "lstm-batch-8"),
)
_CLAIMS, _STACK = "claimed-loops", "tiles-on-stack"
_AGAIN = "the same again"
# As docs/passes.md tells of them.
_TOLD = {
    "recurrence": "an LSTM's or GRU's steps are one function, which keeps the state and its "
    "weights in the caches, and the products of all steps with the inputs are one; without it each "
    "step has operators of its own",
    "shared-operands": "a product of a batch by one matrix reads that matrix; without it PyTorch's "
    "copies of it, one per example, are constants of the library",
    "batch-normalization": "its scale goes into the weights of the convolution before it",
    "one-at-a-time": "a convolutional network with little work per number computes a batch one "
    "example after the other, so that what passes from layer to layer stays in the caches",
    "channels-last": "convolutions read and write channels last (NHWC), with one transpose at each "
    "end of the graph",
    "attention": "scores, softmax and the sum of the values are one function, a few rows at a time",
    "rows-together": "what follows a linear layer is computed before its result is reshaped, and "
    "so fused with the product",
    _CLAIMS: "idle threads claim the next iterations of a parallel loop; without "
    "it each has a fixed share, and all wait for the slowest",
    "padding": "a convolution's padding is written by the function that makes its input",
    _STACK: "sums of a kilobyte and more are on the stack, where LLVM keeps them in registers; "
    "without it they go through memory once",
}
_HEAD = f"""# What each pass for speed gains

Made by `python benchmarks/passes.py`: untuned float32 exports of the current engine, whole and
without one of the passes that are there for speed alone (`--without PASS` of `run_autotvm`). All
exports of a model are called in turns in one process.

A cell is the time without the pass over the time with all of them, with its 95% interval: over 1,
the pass gains. An interval that holds 1 shows no difference; a dash, that nothing changes. In
the last column, another process uses one of the processors. Each row is one run.

In the column "{_AGAIN}" the whole export is built a second time. Equal code can take another
time in another build, over all of a run, which the intervals do not show: a pass
gains where its ratio is clearly further from 1 than this one.

{chr(10).join(f"- **{name}**: {told}." for name, told in _TOLD.items())}
"""


def measure(factory: str, seconds: float) -> dict[str, Any]:
    """One model, whole and without each pass that changes it.

    Args:
        factory: "module:factory" of the model.
        seconds: for measuring.

    Returns:
        {"ms": of the whole export, None where no pass changes it, "ratios": by pass, time without
        it over time with all, see measure.Comparison.to_dict, and by `_AGAIN` that of a second
        build, "beside_load": such a ratio of claimed-loops beside a process that uses one
        processor, "failed": by pass, why it cannot be left out}.
    """
    import numpy as np
    import tvm_ffi

    from tvm_practice.engines import PlainError
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.loading import load
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule

    loaded = load(factory, example=None, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs, copies=loaded.changes_inputs)
    inputs = [as_array(each) for each in call.tensors]

    def imported(without: tuple[str, ...]) -> Any:
        settings = ExportSettings.model_validate({"engine": "current", "without": without})
        return import_model(Export.of(call, settings))

    whole = imported(())
    built = {"whole": build(schedule(whole)).result}
    built[_AGAIN] = build(schedule(imported(()))).result
    failed: dict[str, str] = {}
    for name in _TOLD:
        try:
            export = imported((name,))
            same = tvm_ffi.structural_equal(export.module, whole.module)
            if same and name not in (_CLAIMS, _STACK):  # they come after all changes of the graph
                continue
            built[name] = build(schedule(export)).result
        except PlainError as error:
            failed[name] = error.line
    outputs = {name: each(*inputs) for name, each in built.items()}
    for name, given in outputs.items():
        pairs = zip(given, outputs["whole"], strict=True)
        apart = max(float(np.abs(one - all_).max() / np.abs(all_).max()) for one, all_ in pairs)
        if apart > _MOST_APART:
            failed[name] = f"an output differs by {apart:.1e} of its largest number"
    runs: dict[str, Any] = {name: each.run for name, each in built.items() if name not in failed}
    if runs.keys() <= {"whole", _AGAIN}:
        return {"ms": None, "ratios": {}, "beside_load": None, "failed": failed}
    found = compare_interleaved(
        runs, baseline="whole", rounds=100, time_limit=seconds * len(runs)
    ).to_dict()
    ratios = {name: ratio for name, ratio in found["ratio"].items() if name != "whole"}
    ms = found["latency"]["whole"]["p50"]
    made = {"ms": ms, "ratios": ratios, "beside_load": None, "failed": failed}
    if _CLAIMS in ratios:
        pair = {name: runs[name] for name in ("whole", _CLAIMS)}
        made["beside_load"] = _beside_load(pair, 2 * seconds)
    return made


def _beside_load(runs: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The ratio of `_CLAIMS`, as in `measure`, while another process uses one processor."""
    import sys

    from tvm_practice.measure import ACCEPT_LOAD, compare_interleaved

    sys.path.insert(0, str(Path(__file__).parent))
    from busy_machine import load_of

    with load_of((1.0,)), mock.patch.dict(os.environ, {ACCEPT_LOAD: "1"}):
        compared = compare_interleaved(runs, baseline="whole", rounds=100, time_limit=seconds)
    ratio: dict[str, Any] = compared.to_dict()["ratio"][_CLAIMS]
    return ratio


def table_lines(report: dict[str, Any]) -> list[str]:
    """This machine's table, and below it what could not be left out."""
    from beside_torch import ratio_cell
    from models import ALL

    known = (_AGAIN, *_TOLD)
    names = [name for name in known if any(name in row["ratios"] for row in report.values())]
    heads = ["model", "ms", *names, f"{_CLAIMS} beside load"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    reasons = []
    for model, row in report.items():
        title, ratios = ", ".join(ALL[model]), row["ratios"]
        cells = [ratio_cell(ratios[name]) if name in ratios else "–" for name in names]
        cells += [ratio_cell(row["beside_load"]) if row["beside_load"] else "–"]
        ms = "–" if row["ms"] is None else f"{row['ms']:.2f}"
        lines.append(f"| {' | '.join([title, ms, *cells])} |")
        reasons += [f"- {title} without {name}: {why}" for name, why in row["failed"].items()]
    return [*lines, *([""] if reasons else []), *reasons]


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/passes.py\n"
    "  python benchmarks/passes.py --model lstm --seconds 20\n"
    "  python benchmarks/passes.py --table"
)
@click.option("--model", "names", multiple=True, type=click.Choice(_MODELS), help="[all]")
@click.option("--seconds", type=float, default=5, show_default=True, help="Seconds per export.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=_KEPT, show_default=True
)
@click.option("--table", is_flag=True, help="Write the page from what is there.")
def main(names: tuple[str, ...], seconds: float, out: Path, table: bool) -> None:
    """Time models without each pass for speed; write docs/passes.md.

    Models that are not asked for stay as --out has them.
    """
    from machines import kind_of, write_part
    from models import factory

    from tvm_practice import engines
    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.writing import write_json

    if table and not out.exists():
        raise click.UsageError(f"there is no {out}; run it without --table")
    report = json.loads(out.read_text()) if out.exists() else {"rows": {}}
    if not table:
        out.parent.mkdir(parents=True, exist_ok=True)
        for name in names or _MODELS:
            arguments = {"factory": factory(name), "seconds": seconds}
            row = engines.call(engines.CURRENT, "benchmarks.passes:measure", arguments)
            report["rows"][name] = row
            report |= {"environment": environment(), "threads": engines.thread_count()}
            write_json(out, report)
            told = ", ".join(
                f"{each} {ratio['value'] or float('nan'):.2f}"
                for each, ratio in row["ratios"].items()
            )
            click.echo(f"{name}: {told or 'no pass changes it'}")
    machine, rows = report["environment"], report["rows"]
    packages = ", ".join(f"{each} {machine['packages'][each]}" for each in ("torch", "apache-tvm"))
    where = f"{report['threads']} threads; {packages}; {machine['date'][:10]}."
    ordered = {name: rows[name] for name in _MODELS if name in rows}
    write_part("passes", _HEAD, kind_of(machine["processor"]), [where, "", *table_lines(ordered)])


if __name__ == "__main__":
    main()
