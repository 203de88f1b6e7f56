"""TVM's tuned artifacts against PyTorch, torch.compile and ONNX Runtime, all in one process.

    python benchmarks/models.py --model resnet18 --model bert_base     # makes the artifacts
    python benchmarks/rivals.py

In the table of models each compiler is timed in turns with PyTorch eager, in a process of its own
engine. Here they are timed in turns with each other. Of the current engine's artifact it is kept
what each function takes in the model and alone, and what ONNX Runtime says of its own operators.
"""

import importlib
import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import click

from tvm_practice import engines

TUNERS: dict[engines.Engine, str] = {"current": "metaschedule", "classic": "autotvm"}


def measure(factory: str, artifact: str, seconds: float) -> dict[str, Any]:
    """Time an artifact of the active engine and its rivals, in turns.

    Args:
        factory: "module:factory" of the model.
        artifact: folder that the engine wrote for it.
        seconds: for measuring.

    Returns:
        `measure.Comparison.to_dict`, times over the artifact's; and "operators", [{"name", "calls",
        "milliseconds", "share", "alone"}] on the current engine, and "onnx_operators",
        milliseconds by operator.
    """
    import torch

    from tvm_practice.measure import Stopwatch, compare_interleaved
    from tvm_practice.tvm_export.artifacts import load_artifacts
    from tvm_practice.tvm_export.baselines import onnx_runtime, torch_compile
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.loading import load
    from tvm_practice.tvm_export.profiling import profile_operators, time_alone

    torch.set_num_threads(engines.thread_count())
    loaded = load(factory, example=None, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs, copies=loaded.changes_inputs)
    built = load_artifacts(artifact)
    built(*map(as_array, call.tensors))

    with tempfile.TemporaryDirectory() as folder:
        runs = {
            "tvm": built.run,
            "eager": loaded.call,
            "compile": torch_compile(loaded, Stopwatch())[0],
            "onnx": onnx_runtime(call, Path(folder), Stopwatch())[0],
        }
        compared = compare_interleaved(runs, baseline="tvm", rounds=60, time_limit=seconds)
        found = compared.to_dict()
        if engines.active() == engines.CURRENT:
            operators = [each.to_dict() for each in profile_operators(built.runner)]
            alone = time_alone(built.runner)
            found["operators"] = [each | {"alone": alone[each["name"]]} for each in operators]
            feed = dict(zip(call.names, map(as_array, call.tensors), strict=True))
            found["onnx_operators"] = onnx_operators(Path(folder) / "model.onnx", feed)
    return found


def onnx_operators(file: Path, feed: dict[str, Any], *, runs: int = 20) -> dict[str, float]:
    """ONNX Runtime's own account of a model: milliseconds a run by kind of operator.

    Its medians over the runs are added up; its profiler costs some time as well.
    """
    onnxruntime: Any = importlib.import_module("onnxruntime")  # without types
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = engines.thread_count()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_profiling = True
    options.profile_file_prefix = str(file.with_name("profile"))
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    feed = {each.name: feed[each.name] for each in session.get_inputs()}
    for _ in range(runs):
        session.run(None, feed)
    events = json.loads(Path(session.end_profiling()).read_text())
    times: dict[tuple[str, str], list[float]] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            node = event["args"]["op_name"], event["name"]
            times.setdefault(node, []).append(event["dur"] / 1e3)
    total: dict[str, float] = {}
    for (operator, _), spent in times.items():
        total[operator] = total.get(operator, 0.0) + median(spent)
    return total


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/rivals.py\n"
    "  python benchmarks/rivals.py --model vit --seconds 30"
)
@click.option("--model", "names", multiple=True, help="[resnet18, bert_base]")
@click.option("--seconds", type=float, default=20, show_default=True, help="Seconds per engine.")
@click.option(
    "--models",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs/models"),
    show_default=True,
    help="Where benchmarks/models.py left the artifacts.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/rivals.json"))
def main(names: tuple[str, ...], seconds: float, models: Path, out: Path) -> None:
    """Compare tuned artifacts with PyTorch, torch.compile and ONNX Runtime.

    Of a model each engine's artifact that is there. What was measured of other models stays in
    --out.
    """  # fmt: skip
    from models import factory

    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.writing import write_json

    report = json.loads(out.read_text()) if out.exists() else {"models": {}}
    report |= {"environment": environment(), "threads": engines.thread_count()}
    for name in names or ("resnet18", "bert_base"):
        artifacts = {engine: models / name / engine / tuner for engine, tuner in TUNERS.items()}
        there = {
            engine: folder
            for engine, folder in artifacts.items()
            if (folder / "metadata.json").exists()
        }
        if not there:
            missing = " and no ".join(map(str, artifacts.values()))
            raise click.UsageError(
                f"there is no {missing}: python benchmarks/models.py --model {name}"
            )
        report["models"][name] = {}
        for engine, artifact in there.items():
            arguments = {
                "factory": factory(name), "artifact": str(artifact.resolve()), "seconds": seconds,
            }  # fmt: skip
            found = engines.call(engine, "benchmarks.rivals:measure", arguments)
            report["models"][name][engine] = found
            out.parent.mkdir(parents=True, exist_ok=True)
            write_json(out, report)
            shown = ", ".join(
                f"/ {rival} {_inverse(each)}"
                for rival, each in found["ratio"].items()
                if rival != "tvm"
            )
            click.echo(f"{name}, {TUNERS[engine]}: {shown}")


def _inverse(ratio: dict[str, Any]) -> str:
    if ratio["value"] is None:
        return str(ratio["verdict"])
    low, high = ratio["ci95"]
    return f"{1 / ratio['value']:.2f} ({1 / high:.2f}–{1 / low:.2f})"


if __name__ == "__main__":
    main()
