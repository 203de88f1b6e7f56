"""Whole models in 16 and 8 bits beside their own float32 and other runtimes' 16 and 8 bits.

    python benchmarks/low_precision_models.py                    # all models
    python benchmarks/low_precision_models.py --model bert_base --seconds 60
    python benchmarks/low_precision_models.py --table            # only write the page again

A model's sides are called in turns in one process, on the same threads. OpenVINO, NNCF and torchao
are asked for only where they are installed: pip install -c constraints.txt 'tvm-practice[rivals]'.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from low_precision_rivals import Side

PAGE = "low_precision_models"
# What the page calls a model, and whether convolutions take its time.
MODELS = {
    "bert_base": ("BERT-base, 1×128 tokens", False),
    "resnet18": ("ResNet-18, 1×3×224×224", True),
    "resnet50": ("ResNet-50, 1×3×224×224", True),
    "mobilenet_v2": ("MobileNetV2, 1×3×224×224", True),
}
CALIBRATING, HELD_OUT = 8, 4  # inputs
# The most that a time may be, over another side's: a row above one of them gets a profile.
AIMS = {
    ("bert_base", "bfloat16"): {"OpenVINO": 1.0},
    ("bert_base", "int8"): {"float32": 0.35, "ONNX Runtime": 1.0},
    ("resnet18", "int8"): {"float32": 0.35, "ONNX Runtime": 1.0, "OpenVINO": 1.05},
    ("resnet50", "int8"): {"float32": 0.35, "ONNX Runtime": 1.0, "OpenVINO": 1.05},
    ("mobilenet_v2", "int8"): {"float32": 0.45},
}
PROFILED = 12  # functions
_RIVALS = {
    "bfloat16": {"PyTorch": "torch_bfloat16", "OpenVINO": "openvino_bfloat16"},
    "int8": {"PyTorch": "torch_int8", "ONNX Runtime": "onnx_int8", "OpenVINO": "openvino_int8"},
}
_HEAD = """# Models in 16 and 8 bits

Made by `python benchmarks/low_precision_models.py`: untuned exports beside their own float32 and
beside other runtimes' builds in the same precision. All sides of a row use the same threads and are
called in turns in one process. A ratio is ours over theirs, the median with its 95% interval; under
1, ours is faster. A dash has its reason below the table.

int8 is dynamic per row for BERT's linear layers, and static for convolutions, with ranges from
{calibrating} drawn inputs. PyTorch's int8 is its dynamic quantization, or PT2E under Inductor;
ONNX Runtime's is its own quantizer's; OpenVINO's is NNCF's. The cosine is the least between an
output and float64's, over {held_out} other drawn inputs. The weights are drawn, not trained. A row
that misses an aim has the times of its functions at the end, each the median of ten runs.
"""


def measure(name: str, precision: str, seconds: float) -> dict[str, Any]:
    """One model in one precision on all sides.

    Returns:
        {"model", "precision", "comparison": see measure.Comparison.to_dict, times over our own
        build's in this precision, "cosine": by side, "missing": the reason by side, "profile": our
        build's, see profiling.operators_of}.
    """
    import torch

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.loading import load
    from tvm_practice.tvm_export.profiling import operators_of

    torch.set_num_threads(engines.thread_count())
    loaded = load(f"tvm_practice.models:load_{name}", example=None, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs)
    drawn = [_inputs(call, seed) for seed in range(CALIBRATING + HELD_OUT)]
    with tempfile.TemporaryDirectory() as folder:
        model = _rivals().Model(call, drawn[:CALIBRATING], MODELS[name][1], Path(folder))
        builts = {each: _own(model, each) for each in (precision, "float32")}
        sides: dict[str, Side] = {each: _side(built, model) for each, built in builts.items()}
        missing = {}
        for rival, maker in _RIVALS[precision].items():
            found = _rival(maker, model)
            if isinstance(found, str):
                missing[rival] = found
            else:
                sides[rival] = found
        cosine = {side: _cosine(each, model, drawn[CALIBRATING:]) for side, each in sides.items()}
        runs = {side: each.run for side, each in sides.items()}
        compared = compare_interleaved(runs, baseline=precision, rounds=200, time_limit=seconds)
        profile = operators_of(builts[precision])
    return {
        "model": name,
        "precision": precision,
        "comparison": compared.to_dict(),
        "cosine": cosine,
        "missing": missing,
        "profile": profile,
    }


def _rivals() -> Any:
    """The module beside this one, which is not on the path of an engine's process."""
    return import_module(f"{__package__}.low_precision_rivals")


def _inputs(call: Any, seed: int) -> tuple[Any, ...]:
    """Inputs of the example's shapes: normal numbers, and numbers below the example's largest."""
    import torch

    generator = torch.Generator().manual_seed(1000 + seed)
    return tuple(
        torch.randn(each.shape, generator=generator)
        if each.is_floating_point()
        else torch.randint(0, int(each.max()) + 1, each.shape, generator=generator).to(each.dtype)
        for each in call.tensors
    )


def _own(model: Any, precision: str) -> Any:
    """The exporter's build in a precision: a GraphModule."""
    import numpy as np

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    settings: dict[str, Any] = {}
    if precision == "int8":
        settings["quantize"] = "int8"
        if model.convolutional:
            feeds = [model.feed(each) for each in model.calibration]
            settings["calibration"] = model.folder / "calibration.npz"
            stacked: Any = {
                name: np.stack([feed[name] for feed in feeds]) for name in model.call.names
            }
            np.savez(settings["calibration"], **stacked)
    else:
        settings["precision"] = precision
    example = tuple(model.call.tensors)
    return compile_pytorch_module(
        model.call.module, ExportConfig(example_input=example, **settings), verify=False
    )


def _side(built: Any, model: Any) -> Any:
    """A build as a Side, its inputs the example's."""
    built(*model.feed(model.call.tensors).values())
    return _rivals().Side(built.run, lambda tensors: built(*model.feed(tensors).values()))


def _rival(maker: str, model: Any) -> Any:
    """A Side, or why there is none, in a line."""
    from tvm_practice.tvm_export.errors import Missing
    from tvm_practice.tvm_export.loading import describe

    make: Callable[[Any], Any] = getattr(_rivals(), maker)
    try:
        return make(model)
    except Missing as error:
        return str(error)
    except Exception as error:  # another project's; the row says so
        return describe(error)


def _cosine(side: Any, model: Any, inputs: Sequence[Any]) -> float:
    """The least cosine to float64's outputs over inputs; leaves the example set."""
    import copy

    import torch

    from tvm_practice.tvm_export.accuracy import accuracy, together
    from tvm_practice.tvm_export.calling import as_array
    from tvm_practice.tvm_export.nested import flattened

    exact = copy.deepcopy(model.call.module).double()
    found = []
    for tensors in inputs:
        wide = [each.double() if each.is_floating_point() else each for each in tensors]
        with torch.inference_mode():
            want = [as_array(each) for each in flattened(exact(*wide))]
        found.append(accuracy(side.outputs(tensors), want))
    side.outputs(model.call.tensors)
    return float(together(found)["cosine"])


def _inverted(ratio: dict[str, Any]) -> dict[str, Any]:
    """A ratio the other way round."""
    if ratio["value"] is None:
        return ratio
    low, high = ratio["ci95"]
    return ratio | {"value": 1 / ratio["value"], "ci95": [1 / high, 1 / low]}


def part(report: dict[str, Any]) -> list[str]:
    """The lines of the page's part for the machine that a report is of."""
    from beside_torch import ratio_cell

    packages = (
        "apache-tvm", "torch", "onnxruntime", "openvino", "nncf", "torchao",
    )  # fmt: skip
    versions = ", ".join(
        f"{each} {report['packages'][each]}" for each in packages if report["packages"][each]
    )
    lines = [
        f"{report['threads']} threads; {versions}; {report['environment']['date'][:10]}.",
    ]
    reasons: list[str] = []
    profiles: list[str] = []
    for precision, rivals in _RIVALS.items():
        rows = [row for row in report["rows"] if row["precision"] == precision]
        if not rows:
            continue
        heads = ["model", "ms", "/ own float32", *(f"/ {rival}" for rival in rivals)]
        heads += ["cosine", *(f"{rival}'s" for rival in rivals)]
        lines += ["", f"### {precision}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in rows:
            compared, cosine = row["comparison"], row["cosine"]
            cells = [MODELS[row["model"]][0], f"{compared['latency'][precision]['p50']:.2f}"]
            cells += [
                ratio_cell(_inverted(compared["ratio"][side])) if side in cosine else "–"
                for side in ("float32", *rivals)
            ]
            cells += [
                f"{cosine[side]:.4f}" if side in cosine else "–" for side in (precision, *rivals)
            ]
            lines.append(f"| {' | '.join(cells)} |")
            reasons += [
                f"- {MODELS[row['model']][0]}, {precision}, {rival}: {reason}"
                for rival, reason in row["missing"].items()
            ]
            profiles += _profile(row)
    return [*lines, *(["", *reasons] if reasons else []), *profiles]


def _profile(row: dict[str, Any]) -> list[str]:
    """Where the time of a row goes that misses an aim, in lines; none for any other row."""
    from beside_torch import function_table

    missed = []
    for side, most in AIMS.get((row["model"], row["precision"]), {}).items():
        ratio = row["comparison"]["ratio"].get(side)
        if ratio and ratio["value"] is not None and 1 / ratio["value"] > most:
            missed.append(f"{1 / ratio['value']:.2f} of {side}'s time, the aim is {most:.2f}")
    if not missed:
        return []
    name = MODELS[row["model"]][0].partition(",")[0]
    lines = ["", f"#### Where the time of {name} in {row['precision']} goes", ""]
    lines += [f"{'; '.join(missed)}.", "", *function_table(row["profile"][:PROFILED])]
    rest = row["profile"][PROFILED:]
    if rest:
        ms, share = (sum(each[key] for each in rest) for key in ("milliseconds", "share"))
        calls = sum(each["calls"] for each in rest)
        lines.append(f"| {len(rest)} others | {calls} | {ms:.2f} | {share:.0%} |")
    return lines


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/low_precision_models.py\n"
    "  python benchmarks/low_precision_models.py --model bert_base --precision int8\n"
    "  python benchmarks/low_precision_models.py --table"
)
@click.option("--model", "names", type=click.Choice(list(MODELS)), multiple=True, help="[all]")
@click.option(
    "--precision", "precisions", type=click.Choice(list(_RIVALS)), multiple=True, help="[both]"
)
@click.option("--seconds", type=float, default=30, show_default=True, help="Seconds per row.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("runs/low_precision_models.json"),
    show_default=True,
)
@click.option("--table", is_flag=True, help="Write the page from what is there.")
def main(
    names: tuple[str, ...], precisions: tuple[str, ...], seconds: float, out: Path, table: bool
) -> None:
    """Compare models in 16 and 8 bits; write docs/low_precision_models.md.

    A row that is not asked for stays as it was measured.
    """
    from beside_torch import ratio_cell
    from machines import kind_of, write_part

    from tvm_practice.tvm_export.writing import write_json

    report = json.loads(out.read_text()) if out.exists() else {"rows": []}
    if table and not report["rows"]:
        raise click.UsageError(f"there is no {out}; run it without --table")
    if not table:
        from tvm_practice import engines
        from tvm_practice.measure import environment

        report |= {"environment": environment(), "threads": engines.thread_count()}
        report["packages"] = _versions()
        asked = [(each, name) for each in precisions or _RIVALS for name in names or MODELS]
        out.parent.mkdir(parents=True, exist_ok=True)
        for precision, name in asked:
            arguments = {"name": name, "precision": precision, "seconds": seconds}
            row = engines.call(
                engines.CURRENT, "benchmarks.low_precision_models:measure", arguments
            )
            kept = [e for e in report["rows"] if (e["precision"], e["model"]) != (precision, name)]
            report["rows"] = sorted(
                [*kept, row],
                key=lambda e: (list(_RIVALS).index(e["precision"]), list(MODELS).index(e["model"])),
            )
            write_json(out, report)
            ratios = row["comparison"]["ratio"]
            shown = (
                f"/ {e} {ratio_cell(_inverted(ratios[e]))}" for e in row["cosine"] if e in ratios
            )
            click.echo(
                f"{name}, {precision}: {', '.join(shown)}; cosine {row['cosine'][precision]:.4f}"
            )
    head = _HEAD.format(calibrating=CALIBRATING, held_out=HELD_OUT)
    write_part(PAGE, head, kind_of(report["environment"]["processor"]), part(report))


def _versions() -> dict[str, str | None]:
    """Of the packages that take part, None for one that is not installed."""
    from importlib import metadata

    found: dict[str, str | None] = {}
    for each in ("apache-tvm", "torch", "onnxruntime", "openvino", "nncf", "torchao"):
        try:
            found[each] = metadata.version(each)
        except metadata.PackageNotFoundError:
            found[each] = None
    return found


if __name__ == "__main__":
    main()
