"""What the checks of indices cost a compiled model, as a part of its time.

    python benchmarks/runtime_checks.py                      # BERT-base and GPT-2: some minutes
    python benchmarks/runtime_checks.py --model load_encoder --runs 50

Each function of the model is timed in the model's own runs, by TVM's virtual machine; the checks
are functions like others. A share is known on a busy machine too, where a whole run's time is not.
"""

import json
import os
from typing import Any

import click

_DEFAULT = ("load_bert_base", "load_gpt2")
_CHECK = "check_indices"


@click.command(
    epilog="\b\nExamples:\n"
    "  python benchmarks/runtime_checks.py\n"
    "  python benchmarks/runtime_checks.py --model load_encoder --runs 50"
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help=f"A factory of tvm_practice.models; again for a further one [default: "
    f"{', '.join(_DEFAULT)}].",
)
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON and no more.")
def main(models: tuple[str, ...], runs: int, as_json: bool) -> None:
    """Compile each model untuned on the current engine and time its checks of indices."""
    from tvm_practice import engines

    os.environ.setdefault("TVM_NUM_THREADS", str(engines.thread_count()))
    engines.activate("current")
    found = {name: _measured(name, runs) for name in models or _DEFAULT}
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, each in found.items():
        click.echo(
            f"{name}  {each['checks']} checks, {1e3 * each['check_ms']:.1f} µs of "
            f"{each['model_ms']:.1f} ms, {each['share']:.4%}"
        )


def _measured(name: str, runs: int) -> dict[str, Any]:
    """The checks of one model: how many, their time and the model's in ms, and their share."""
    from tvm_practice import models
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.profiling import profile_operators

    if name not in models.__all__:
        raise click.UsageError(f"tvm_practice.models has no {name}")
    module, example = getattr(models, name)()
    built = compile_pytorch_module(module, ExportConfig(example_input=example), verify=False)
    operators = profile_operators(built.runner, runs=runs)
    checks = [each for each in operators if each.name.startswith(_CHECK)]
    return {
        "checks": sum(each.calls for each in checks),
        "check_ms": sum(each.milliseconds for each in checks),
        "model_ms": sum(each.milliseconds for each in operators),
        "share": sum(each.share for each in checks),
    }


if __name__ == "__main__":
    main()
