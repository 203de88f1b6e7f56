"""What recorded searches are worth to functions that none has seen; docs/transfer.md made of it.

    python benchmarks/transfer.py --collect      # search the known models' functions: half an hour
    python benchmarks/transfer.py                # judge it on other models' functions: ten minutes
    python benchmarks/transfer.py --table        # only write the page again

`--collect` adds to the searches that the package ships for this machine's processor, a search per
function; one that is interrupted goes on where it was. The judged functions are of models that no
recorded search has seen, and none has the shape of a function that one has. Each is searched three
times: with as many trials as the recorded ones, with few trials, and with few trials and what the
recorded searches foretell. What an export would take of each search is then timed in turns, the
untuned function among them.
"""

import json
import math
import random
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice import engines

if TYPE_CHECKING:
    from tvm_practice.tvm_export.tuners.tile_transfer import Searched, Shape

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "transfer.md"
# What searches are recorded of: name in `tvm_practice.models`, batches.
RECORDED = {
    "resnet50": (1, 8),
    "mobilenet_v2": (1,),
    "bert_base": (1, 8),
    "resnet18": (1,),
    "gpt2": (1,),
    "vit": (1,),
    "mamba": (1,),
    "lstm": (1, 8),
    "mlp": (32,),
}
TRIALS, FEW = 64, 8
FUNCTIONS = 24
_KINDS = {
    "untuned": "untuned",
    "few": f"{FEW} trials",
    "foreseen": f"{FEW} trials, transfer",
    "all": f"{TRIALS} trials",
}
_HEAD = f"""# Recorded searches

Made by `python benchmarks/transfer.py`. The package ships recorded searches of the register tiles
of its own models' functions, {TRIALS} trials each. A search of another function begins with the
tiles that a cost model trained on them ranks first (`transfer` in
[`Search`](reference/tvm_export.md)). Tiles whose sums fill 1024 bytes and more are left out of the
searches of Zen 5: they were slower when these were made, before such sums were kept in registers.

Here are contractions of models that no recorded search has
seen, of other shapes than all that they have. A cell is a time over that after {TRIALS} trials
without transfer, all four timed in turns; over 1, it is slower. The schedule that an export
would take of each search is timed.
"""


def shapes_of_models() -> Iterator[tuple[str, Callable[[], tuple[Any, tuple[Any, ...]]]]]:
    """The models that are judged on: a name, and what makes the module and its inputs."""
    import torch
    import transformers

    from conformance import timm_models

    def image(name: str) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
        def make() -> tuple[Any, tuple[Any, ...]]:
            made = timm_models.made(name)
            if made is None:
                raise click.ClickException("these models need the package timm")
            return made

        return make

    def text(config: Any, tokens: int) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
        return lambda: (
            transformers.AutoModel.from_config(config),
            (torch.randint(0, 1000, (1, tokens)),),
        )

    for name in ("convnext_tiny", "densenet121", "regnety_016", "deit_small_patch16_224", "dpn68"):
        yield name, image(name)
    yield "roberta_large", text(transformers.RobertaConfig(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=1, num_attention_heads=16
    ), 100)  # fmt: skip
    yield "electra_small", text(transformers.ElectraConfig(num_hidden_layers=1), 57)
    yield "opt_2048", text(transformers.OPTConfig(
        hidden_size=2048, ffn_dim=8192, num_hidden_layers=1, num_attention_heads=32
    ), 33)  # fmt: skip


def contractions(module: Any, inputs: tuple[Any, ...]) -> "Iterator[tuple[str, Shape, Any]]":
    """The functions of a model that have register tiles: name, shape, the function."""
    from tvm_practice.tvm_export import ExportConfig
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import import_model
    from tvm_practice.tvm_export.tuners import metaschedule
    from tvm_practice.tvm_export.tuners.tile_transfer import Shape

    config = ExportConfig(example_input=inputs, engine=engines.CURRENT)
    export = import_model(Export.of(as_call(module.eval(), inputs), config))
    for context in metaschedule.extract_contexts(export.module, export.target)[0]:
        [function] = context.mod.functions.values()
        shape = Shape.of_function(function, export.target)
        if shape is not None:
            yield str(context.task_name), shape, function


def search(function: Any, log: Path, trials: int, *, transfer: bool) -> Any:
    """Search a function's register tiles, the records in the folder `log`; its module there."""
    from tvm_practice.tvm_export.steps.tuning import tune_metaschedule
    from tvm_practice.tvm_export.tuners.metaschedule import make_context
    from tvm_practice.tvm_export.tuners.search import Search, searching

    shutil.rmtree(log, ignore_errors=True)
    with searching(Search(transfer=transfer, seed=0), most=trials):
        context = make_context(function, engines.host_target(), space="register-tiles")
        tune_metaschedule([context], [1.0], trials=trials, work_dir=str(log))
    return context.mod


def collect(names: Sequence[str], folder: Path) -> None:
    """Add a search of each function of models of `RECORDED` to this processor's file."""
    from tvm_practice import models
    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
    from tvm_practice.tvm_export.tuners import metaschedule, tile_transfer
    from tvm_practice.tvm_export.tuners.tile_space import recorded_times

    target = engines.host_target()
    cpu = cpu_of(target)
    file = tile_transfer.SEARCHES / f"{target.attrs['mcpu']}.json"
    known: list[Searched] = tile_transfer.read_records(file)[1] if file.exists() else []
    about = {"processor": environment()["processor"], "date": environment()["date"][:10]}
    for model in names:
        for batch in RECORDED[model]:
            module, inputs = getattr(models, f"load_{model}")(batch=batch)
            for name, shape, function in contractions(module, inputs):
                if any(each.shape == shape for each in known):
                    continue
                click.echo(f"{model}, batch {batch}: {name}")
                own = search(function, folder, TRIALS, transfer=False)
                times = recorded_times(own, metaschedule.open_database(folder))
                name = f"{model}, batch {batch}: {name}"
                known.append(tile_transfer.searched(name, function, target, times))
                tile_transfer.write_records(file, cpu, known, **about)


def judge(count: int, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Search and time some of the other models' functions, drawn at random."""
    from tvm_practice.tvm_export.rules.cpu.loops import CONSTANTS, cpu_of
    from tvm_practice.tvm_export.tuners.finals import schedule_default, times_in_turns
    from tvm_practice.tvm_export.tuners.tile_transfer import Transfer

    target = engines.host_target()
    transfer = Transfer.of(cpu_of(target))
    if transfer is None:
        raise click.ClickException("no searches of such a processor are there: --collect some")
    seen = {each.shape for each in transfer.searches}
    found: dict[Shape, tuple[str, Any]] = {}
    for model, make in shapes_of_models():
        for name, shape, function in contractions(*make()):
            if shape not in seen:
                found.setdefault(shape, (f"{model} {name}", function))
    click.echo(f"{len(found)} functions of shapes that no recorded search has")
    drawn = random.Random(seed).sample(list(found), min(count, len(found)))
    for shape in drawn:
        name, function = found[shape]
        click.echo(name)
        programs = {"untuned": schedule_default(function, target)}
        for kind, trials in (("few", FEW), ("foreseen", FEW), ("all", TRIALS)):
            search(function, folder / kind, trials, transfer=kind == "foreseen")
            programs[kind] = _taken(function, folder / kind, target)
        constants = {int(each) for each in (function.attrs or {}).get(CONSTANTS, ())}
        seconds = times_in_turns(list(programs.values()), constants, target)
        yield {
            "name": name,
            "shape": str(shape),
            "seconds": dict(zip(programs, seconds, strict=True)),
        }


def _taken(function: Any, log: Path, target: Any) -> Any:
    """What an export takes of a search: the best record, or the default schedule."""
    import tvm
    from tvm.s_tir.meta_schedule.tune_context import _normalize_mod

    from tvm_practice.tvm_export.rules import cpu
    from tvm_practice.tvm_export.tuners.finals import fastest_records, schedule_default
    from tvm_practice.tvm_export.tuners.metaschedule import open_database

    module, alone = tvm.IRModule({"main": function}), _normalize_mod(function)
    chosen = fastest_records(module, open_database(log), target).chosen
    if not chosen.has_workload(alone):
        return schedule_default(function, target)
    [record] = chosen.get_top_k(chosen.commit_workload(alone), 1)
    schedule = tvm.s_tir.Schedule(alone)
    record.trace.apply_to_schedule(schedule, remove_postproc=False)
    return cpu.schedule_candidate(schedule.mod["main"], target)


def mean(ratios: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The geometric mean of functions' ratios, and its 95% interval (bootstrap over functions)."""
    import numpy as np
    from scipy.stats import bootstrap

    logarithms = np.log(ratios)
    found = bootstrap((logarithms,), np.mean, rng=0).confidence_interval
    return math.exp(statistics.fmean(logarithms)), (math.exp(found.low), math.exp(found.high))


def page(report: dict[str, Any]) -> str:
    """The page of what was judged."""
    from tvm_practice.viz.tables import with_interval

    machine = report["environment"]
    kinds = [each for each in _KINDS if each != "all"]
    lines = [
        _HEAD,
        f"Machine: {machine['processor']}, {report['threads']} threads; {machine['date'][:10]}. "
        f"{report['recorded']} recorded searches.",
        "",
        f"| function | {_KINDS['all']}, µs | {' | '.join(_KINDS[each] for each in kinds)} |",
        "|---" * (len(kinds) + 2) + "|",
    ]
    functions = report["functions"]
    for each in functions:
        seconds = each["seconds"]
        ratios = [f"{seconds[kind] / seconds['all']:.2f}" for kind in kinds]
        lines.append(f"| `{each['name']}` | {seconds['all'] * 1e6:.0f} | {' | '.join(ratios)} |")
    means = [
        with_interval(*mean([e["seconds"][kind] / e["seconds"]["all"] for e in functions]))
        for kind in kinds
    ]
    lines.append(f"| geometric mean |  | {' | '.join(means)} |")
    return "\n".join(lines) + "\n"


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/transfer.py --collect --model bert_base\n"
    "  python benchmarks/transfer.py --functions 4"
)
@click.option("--collect", "collects", is_flag=True, help="Record searches of the known models.")
@click.option(
    "--model", "models", multiple=True, type=click.Choice(list(RECORDED)), help="For --collect."
)
@click.option("--functions", default=FUNCTIONS, show_default=True, type=click.IntRange(min=3))
@click.option("--seed", default=0, show_default=True, help="Draws the functions.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("runs/transfer.json"),
    show_default=True, help="What was judged; logs are kept beside it.",
)  # fmt: skip
@click.option("--table", "only_table", is_flag=True, help="Write the page from what is there.")
def main(
    collects: bool, models: tuple[str, ...], functions: int, seed: int, out: Path, only_table: bool
) -> None:
    """Judge recorded searches on functions that none has searched; write docs/transfer.md."""
    from tvm_practice.measure import environment

    engines.activate(engines.CURRENT)
    out.parent.mkdir(parents=True, exist_ok=True)
    logs = out.with_suffix(".logs")
    if collects:
        collect(models or tuple(RECORDED), logs / "collected")
        return
    if not only_table:
        from tvm_practice.tvm_export.rules.cpu.loops import cpu_of
        from tvm_practice.tvm_export.tuners.tile_transfer import Transfer

        report: dict[str, Any] = {"environment": environment(), "functions": []}
        report["threads"] = engines.thread_count()
        for each in judge(functions, seed, logs):
            report["functions"].append(each)
            transfer = Transfer.of(cpu_of(engines.host_target()))
            report["recorded"] = 0 if transfer is None else len(transfer.searches)
            out.write_text(json.dumps(report, indent=1))
    if not out.exists():
        raise click.ClickException(f"{out} is not there: judge some functions first")
    PAGE.write_text(page(json.loads(out.read_text())))
    click.echo(PAGE)


if __name__ == "__main__":
    main()
