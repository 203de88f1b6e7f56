"""Export a PyTorch model of your own to TVM: imported, tuned, verified, measured, written."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import click

EXPORT = "tvm_practice.tvm_export.job:export_model"


class _ShapesAsWords(click.Command):
    """Takes `--example-shape 1 3 224 224`, which click, with a fixed number of values, does not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        joined: list[str] = []
        for word in args:
            if joined[-2:-1] == ["--example-shape"] and word.isdigit():
                joined[-1] += f" {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


@click.command(
    cls=_ShapesAsWords,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.run_autotvm tvm_practice.models:load_mlp --artifacts runs/mlp\n"
    "  python -m tvm_practice.run_autotvm tvm_practice.models:load_resnet18 \\\n"
    "      --tuner metaschedule --tuning-trials 300 --artifacts runs/resnet18\n"
    "  python -m tvm_practice.run_autotvm mymodule:load_model --example-shape 1 3 224 224 \\\n"
    "      --tuning-trials 300 --use-ansor --tuning-log runs/ansor.log\n"
    '  python -m tvm_practice.run_autotvm mymodule:load_model --target "llvm -mcpu=core-avx2"',
)
@click.argument("model", metavar="MODULE:FACTORY")
@click.option(
    "--example-shape",
    "shape",
    multiple=True,
    help="Extents of an input, for a factory that returns none; again for a further one.",
)
@click.option("--example-dtype", "dtype", multiple=True, help="Its type [default: float32].")
@click.option(
    "--target", "targets", multiple=True, help="TVM target [default: llvm, this processor]."
)
@click.option("--tuning-trials", "trials", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--use-ansor", is_flag=True, help="Tune with Ansor rather than AutoTVM.")
@click.option("--tuner", type=click.Choice(["autotvm", "ansor", "metaschedule"]))
@click.option("--tuning-log", type=click.Path(path_type=Path), help="Records to go on from.")
@click.option("--artifacts", type=click.Path(file_okay=False, path_type=Path), help="Folder.")
@click.option("--measure-repeats", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--measure-warmup", type=click.IntRange(min=0), default=20, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), help="Threads of TVM and of PyTorch.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON and no more.")
def main(
    model: str,
    shape: tuple[str, ...],
    dtype: tuple[str, ...],
    targets: tuple[str, ...],
    trials: int,
    use_ansor: bool,
    tuner: str | None,
    tuning_log: Path | None,
    artifacts: Path | None,
    measure_repeats: int,
    measure_warmup: int,
    threads: int | None,
    as_json: bool,
) -> None:
    """Export the model that FACTORY of MODULE returns.

    FACTORY takes no arguments and returns the module, or the module and its example inputs. With
    trials the tuner is AutoTVM (--use-ansor: Ansor) unless --tuner names one; without, the model
    is built untuned on the current engine. Exit code 0 if every target was exported and
    verified, 1 if one was not, 2 for a mistake in what was asked.
    """
    from pydantic import ValidationError

    from tvm_practice.tvm_export.config import ExportConfig
    from tvm_practice.tvm_export.loading import BadInput

    if threads is not None:
        os.environ["TVM_NUM_THREADS"] = str(threads)
    try:
        config = ExportConfig.model_validate(
            {
                "example_input": None,
                "tuner": tuner,
                "use_ansor": use_ansor,
                "tuning_trials": trials,
                "tuning_log": tuning_log,
            }
        )
        example = _example(shape, dtype)
    except ValidationError as error:
        raise click.UsageError(str(error.errors()[0]["msg"])) from None
    except BadInput as error:
        raise click.UsageError(str(error)) from None

    results = []
    for target in targets or ("llvm",):
        folder = artifacts or Path("runs") / "tvm" / model.rpartition(":")[2]
        if len(targets) > 1:
            folder = folder / re.sub(r"[^\w.-]+", "_", target)
        arguments = {
            "model": model,
            "example": example,
            "target": target,
            "tuner": config.chosen_tuner,
            "trials": trials,
            "log": str(tuning_log) if tuning_log else None,
            "artifacts": str(folder),
            "warmup": measure_warmup,
            "repeats": measure_repeats,
        }
        results.append(_export(config.chosen_engine, arguments, quiet=as_json))
    if as_json:
        click.echo(json.dumps(results, indent=2))
    verified = all(each["verification"]["verified"] for each in results)
    sys.exit(0 if verified else 1)


def _example(shapes: tuple[str, ...], dtypes: tuple[str, ...]) -> list[dict[str, Any]] | None:
    """[{"shape", "dtype"}] of what was given; None for nothing."""
    from tvm_practice.tvm_export.loading import BadInput

    if not shapes:
        return None
    if len(dtypes) not in (0, 1, len(shapes)):
        raise BadInput(f"{len(dtypes)} types for {len(shapes)} inputs")
    types = dtypes if len(dtypes) == len(shapes) else (dtypes or ("float32",)) * len(shapes)
    example = []
    for text, each in zip(shapes, types, strict=True):
        extents = re.split(r"[x,\s]+", text.strip())
        if not all(extent.isdigit() and int(extent) for extent in extents):
            raise BadInput(f"--example-shape {text!r} is not a list of positive whole numbers")
        example.append({"shape": [int(extent) for extent in extents], "dtype": each})
    return example


def _export(engine: Any, arguments: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Export to one target and print how it went; ends the program where it did not."""
    from tvm_practice import engines

    output = sys.stderr if quiet else None
    try:
        with engines.Session(engine, output=output) as session:
            result: dict[str, Any] = session.call(EXPORT, arguments)
    except engines.RemoteError as error:
        click.echo(f"run_autotvm: {error.message or error.kind}", err=True)
        sys.exit(2 if error.kind.endswith((".BadInput", ".ValidationError")) else 1)
    except (engines.EngineError, OSError) as error:
        click.echo(f"run_autotvm: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        click.echo("\nstopped; tuning records are kept", err=True)
        sys.exit(130)
    if not quiet:
        _print(result)
    return result


def _print(result: dict[str, Any]) -> None:
    latency, ratio, verification = result["latency"], result["ratio"], result["verification"]
    low, high = ratio["ci95"]
    tuned = f"{result['tuner']}, {result['tuning'].get('trials')} trials"
    click.echo(f"engine    {result['engine']}, {tuned if result['tuner'] else 'untuned'}")
    click.echo(f"target    {result['target']}")
    if result["tuning"].get("note"):
        click.echo(f"tuning    {result['tuning']['note']}")
    click.echo(
        f"latency   median {latency['p50']:.3f} ms, mean {latency['mean']:.3f} ms of "
        f"{latency['count']}" + ("" if latency["stable"] else ", unstable")
    )
    click.echo(f"PyTorch   {ratio['value']:.2f} of its time ({low:.2f}–{high:.2f})")
    if verification["verified"]:
        click.echo(f"verified  largest error {verification['max_error']:.2g}")
    else:
        click.echo(f"WRONG     {verification['reason']}")
    click.echo(f"artifacts {result['artifacts']}")


if __name__ == "__main__":
    main()
