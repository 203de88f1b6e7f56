"""Export a PyTorch model of your own to TVM: imported, tuned, verified, measured, written."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice.tvm_export.cli import ShapesAsWords, tolerances

if TYPE_CHECKING:
    from tvm_practice.engines import Engine, PlainError
    from tvm_practice.tvm_export.request import ExportRequest

_CHECK_TARGETS = "tvm_practice.tvm_export.targets:require_all_buildable"
_MISSING = 3  # exit code where an engine or a package is not installed
_OTHER_NAMES = {"measure_repeats": "repeats", "measure_warmup": "warmup"}

Call = Callable[[str, dict[str, Any]], Any]


@click.command(
    cls=ShapesAsWords,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.run_autotvm tvm_practice.models:load_mlp --artifacts runs/mlp\n"
    "  python -m tvm_practice.run_autotvm tvm_practice.models:load_resnet18 \\\n"
    "      --tuner metaschedule --tuning-trials 300 --artifacts runs/resnet18\n"
    "  python -m tvm_practice.run_autotvm mymodule:load_model --example-shape 1 3 224 224 \\\n"
    "      --tuning-trials 300 --use-ansor --tuning-log runs/ansor.log --early-stopping 100\n"
    "  python -m tvm_practice.run_autotvm mymodule:load_model --example-shape 4 3 224 224 \\\n"
    "      --input-shape image=batch,3,224,224 --dump-ir --verbose\n"
    '  python -m tvm_practice.run_autotvm mymodule:load_model --target "llvm -mcpu=core-avx2"\n'
    "  python -m tvm_practice.run_autotvm traced.pt --example-shape 1 3 224 224",
)
@click.argument("model", metavar="MODULE:FACTORY|FILE")
@click.option(
    "--example-shape",
    "shape",
    multiple=True,
    help="Shape of an input; repeat for each. The factory's inputs are resized to it; without "
    "any, random ones are drawn.",
)
@click.option(
    "--example-dtype",
    "dtype",
    multiple=True,
    help="Type of that input [default: the factory's, or float32].",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="TVM target; repeat for several [default: llvm, this processor].",
)
@click.option(
    "--tuning-trials",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Schedules that the tuner measures; 0: none.",
)
@click.option("--use-ansor", is_flag=True, help="Tune with Ansor rather than AutoTVM.")
@click.option(
    "--tuner",
    type=click.Choice(["auto", "autotvm", "ansor", "metaschedule"]),
    help="Tuner to use; auto is MetaSchedule, whose engine runs on every platform.",
)
@click.option(
    "--engine",
    type=click.Choice(["classic", "current"]),
    help="Which TVM [default: the tuner's; untuned, current].",
)
@click.option(
    "--tuning-log",
    type=click.Path(path_type=Path),
    help="Tuning records to continue: a file, or MetaSchedule's folder [default: in --artifacts].",
)
@click.option(
    "--early-stopping", metavar="N", help="Stop a search after N trials without improvement."
)
@click.option("--tuning-seconds", "seconds", metavar="S", help="Stop a search after S seconds.")
@click.option("--seed", help="Random seed of the search.")
@click.option(
    "--policy",
    help="AutoTVM: xgb, ga, random, grid; Ansor: sketch.xgb, sketch.random; "
    "MetaSchedule: evolutionary, replay-trace.",
)
@click.option("--cost-model", help="Cost model of Ansor and MetaSchedule: xgb, random.")
@click.option("--population", help="Candidates of each round of an evolutionary search.")
@click.option("--iterations", help="Generations of each round of an evolutionary search.")
@click.option(
    "--samples",
    help="Minimum number of new candidates at the start of each round of such a search.",
)
@click.option(
    "--space",
    help="MetaSchedule's search space: register-tiles, post-order-apply, module:function.",
)
@click.option(
    "--transfer/--no-transfer",
    default=None,
    help="Whether MetaSchedule begins with the register tiles that the package's recorded searches "
    "of other functions suggest [default: yes].",
)
@click.option(
    "--rpc-tracker", metavar="HOST:PORT", help="Measure on the servers of this RPC tracker."
)
@click.option("--rpc-key", help="Device key of those servers [default: cpu].")
@click.option(
    "--input-shape",
    "input_shapes",
    multiple=True,
    metavar="NAME=SHAPE",
    help="Name and shape of an input; repeat for each, in order. A word in place of a number, as "
    "in image=batch,3,224,224, leaves that extent open (current engine, untuned).",
)
@click.option(
    "--converters",
    metavar="MODULE:FUNCTION",
    help="Function that returns converters for operators TVM lacks, keyed by operator name.",
)
@click.option(
    "--how",
    "lacking",
    multiple=True,
    metavar="OPERATOR",
    help="Print a template of a converter for this operator, for --converters, and stop.",
)
@tolerances
@click.option(
    "--opt-level",
    type=click.IntRange(0, 3),
    default=3,
    show_default=True,
    help="Optimization level of TVM's passes.",
)
@click.option(
    "--artifacts",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the artifacts.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Overwrite other contents of the folder; write artifacts even if their outputs are wrong.",
)
@click.option("--again", is_flag=True, help="Export again even if nothing has changed.")
@click.option("--dump-ir", is_flag=True, help="Write the IR after each stage to ARTIFACTS/ir.")
@click.option(
    "--single-file", is_flag=True, help="Write ARTIFACTS/model.tvmp too: all in one file."
)
@click.option(
    "--c-source",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also write the model as C source to DIR: for CPUs, compiled without TVM's runtime.",
)
@click.option(
    "--measure-repeats",
    type=click.IntRange(1, 1_000_000),
    default=200,
    show_default=True,
    help="Timed calls, one sample each.",
)
@click.option(
    "--measure-warmup",
    type=click.IntRange(0, 1_000_000),
    default=20,
    show_default=True,
    help="Discarded calls before them.",
)
@click.option(
    "--threads", type=click.IntRange(min=1), help="Number of threads for TVM and for PyTorch."
)
@click.option("--json", "as_json", is_flag=True, help="Print only the results, as JSON.")
@click.option(
    "--verbose",
    is_flag=True,
    help="Also print which rule scheduled each function, and why the others did not.",
)
@click.option("--quiet", is_flag=True, help="Print only the result.")
def main(
    model: str,
    targets: tuple[str, ...],
    artifacts: Path | None,
    threads: int | None,
    as_json: bool,
    verbose: bool,
    quiet: bool,
    lacking: tuple[str, ...],
    **options: Any,
) -> None:
    """Export the model that FACTORY of MODULE returns.

    FACTORY takes no arguments and returns the PyTorch module, or the module and its example inputs:
    a tensor, a tuple of arguments, or a dictionary of arguments by name. In its place, FILE is a
    program of torch.export.save (.pt2), or TorchScript (.pt). With trials, the tuner is AutoTVM
    (--use-ansor: Ansor; --engine current: MetaSchedule) unless --tuner names one. Without, the
    model is built untuned on the current engine, or on that of --engine. Repeating the command
    continues from its records. If nothing has changed (the model, the options, the records, the
    software), it shows the existing result. For a target that this machine cannot run, it writes
    the artifact without measuring it.

    Exit code 0 if every target was exported, and verified if it can run here; 1 if one was not,
    2 for a mistake in the request, 3 if an engine or a package is not installed (--json:
    status missing_dependencies), 130 after Ctrl-C.
    """
    from tvm_practice.tvm_export.errors import BadInput

    if threads is not None:
        os.environ["TVM_NUM_THREADS"] = str(threads)
    folder = artifacts or Path("runs") / "tvm" / model.rpartition(":")[2]
    try:
        if lacking:
            click.echo(_template(model, lacking), nl=False)
            return
        asked = _request(model, folder, **options)
    except BadInput as error:
        raise click.UsageError(str(error)) from None
    if asked.tuner == "auto" and not as_json:
        click.echo(f"tuner     {asked.chosen_tuner}", err=quiet)

    def call(function: str, arguments: dict[str, Any]) -> Any:
        try:
            return _call(asked.chosen_engine, function, arguments, as_json=as_json, quiet=quiet)
        except KeyboardInterrupt:
            click.echo(f"\nstopped{_kept(arguments.get('request'))}", err=True)
            sys.exit(130)

    def show(result: dict[str, Any]) -> None:
        if not as_json:
            _print(result, verbose=verbose)

    results, exit_code = _export(_per_target(asked, targets), call, show)
    if as_json and any(each["status"] != "failed" for each in results):
        click.echo(json.dumps(results, indent=2))
    sys.exit(exit_code)


def _template(model: str, operators: tuple[str, ...]) -> str:
    """Converters to fill in for operators; the model's module may register them. Raises BadInput"""
    from tvm_practice.tvm_export.importers.converters.template import template
    from tvm_practice.tvm_export.loading import find_factory

    find_factory(model)
    return template(operators)


def _request(
    model: str,
    folder: Path,
    *,
    shape: tuple[str, ...],
    dtype: tuple[str, ...],
    input_shapes: tuple[str, ...],
    again: bool,
    **options: Any,
) -> "ExportRequest":
    """What is asked for, of the first target. Raises BadInput."""
    from tvm_practice.tvm_export.cli import example_of, request_of
    from tvm_practice.tvm_export.tuners.search import Search

    search = {name: options.pop(name) for name in Search.model_fields}
    options = {name: value for name, value in options.items() if value is not None}
    settings = {
        "model": model,
        "artifacts": folder,
        "input_shapes": _input_shapes(input_shapes),
        "search": {name: value for name, value in search.items() if value is not None},
        "reuse": not again,
        **{_OTHER_NAMES.get(name, name): value for name, value in options.items()},
    }
    asked = request_of({"example": example_of(shape, dtype), **settings})
    return asked.model_copy(update={"engine": asked.chosen_engine})


def _per_target(asked: "ExportRequest", targets: tuple[str, ...]) -> list["ExportRequest"]:
    """A request for each target, with a folder and, as records are of one target, a log of its own.

    Where there is one target, or none is named, they are those that were asked for.
    """
    if len(targets) < 2:
        return [asked.model_copy(update={"target": each}) for each in targets or (asked.target,)]
    requests = []
    for target in targets:
        name, log = re.sub(r"[^\w.-]+", "_", target), asked.tuning_log
        own = {"target": target, "artifacts": asked.artifacts / name}
        if log is not None:
            own["tuning_log"] = log.with_name(f"{log.stem}-{name}{log.suffix}")
        requests.append(asked.model_copy(update=own))
    return requests


def _export(
    requests: list["ExportRequest"], call: Call, show: Callable[[dict[str, Any]], None]
) -> tuple[list[dict[str, Any]], int]:
    """The result of each request, a failure too, and the command's exit code."""
    from tvm_practice.engines import PlainError
    from tvm_practice.tvm_export.request import EXPORT

    results: list[dict[str, Any]] = []
    exit_code = 0
    several = len(requests) > 1
    if several:  # a mistake in the last target is said before hours are spent on the first
        asked = requests[0]
        texts = [each.target for each in requests]
        given = {
            "texts": texts,
            "engine": asked.chosen_engine,
            "tuned": asked.tunes,
            "remote": asked.measures_elsewhere,
        }
        try:
            call(_CHECK_TARGETS, given)
        except (PlainError, OSError) as error:
            found, exit_code = _failed(error, ", ".join(texts))
            click.echo(f"run_autotvm: {found['reason']}", err=True)
            return [found], exit_code
    for request in requests:
        try:
            result = call(EXPORT, request.arguments())
        except (PlainError, OSError) as error:
            found, exit_code = _failed(error, request.target)
            which = f"{request.target}: " if several else ""
            click.echo(f"run_autotvm: {which}{found['reason']}", err=True)
            results.append(found)
            if exit_code in (2, _MISSING):  # other targets would meet it too
                break
            continue
        results.append(result)
        if not (result["not_run"] or result["verification"]["verified"]):
            exit_code = 1
        show(result)
    return results, exit_code


def _failed(error: "PlainError | OSError", target: str) -> tuple[dict[str, Any], int]:
    """The result of a request that failed, and the exit code."""
    from tvm_practice.tvm_export.cli import failure, is_missing

    line, exit_code = failure(error)
    status = "failed"
    if is_missing(error):
        status, exit_code = "missing_dependencies", _MISSING
    return {"status": status, "target": target, "reason": line}, exit_code


def _input_shapes(given: tuple[str, ...]) -> dict[str, tuple[int | str, ...]] | None:
    """{"image": ("batch", 3, 224, 224)} of "image=batch,3,224,224"; None for nothing."""
    from tvm_practice.tvm_export.errors import BadInput

    shapes: dict[str, tuple[int | str, ...]] = {}
    for text in given:
        name, _, shape = text.partition("=")
        extents = [each.strip() for each in shape.split(",")]
        if not name.isidentifier() or not all(
            each.isidentifier() or (each.isdigit() and int(each)) for each in extents
        ):
            raise BadInput(f"--input-shape {text!r} is not of the form NAME=1,3,224,224")
        shapes[name] = tuple(int(each) if each.isdigit() else each for each in extents)
    return shapes or None


def _call(
    engine: "Engine", function: str, arguments: dict[str, Any], *, as_json: bool, quiet: bool
) -> Any:
    """What `function` returns in a process for `engine`."""
    from tvm_practice import engines

    with Path(os.devnull).open("w") as nowhere:
        progress = nowhere if quiet else sys.stderr if as_json else None
        with engines.Session(engine, output=progress) as session:
            return session.call(function, arguments, activate=False)


def _kept(request: dict[str, Any] | None) -> str:
    """What a stopped export leaves, to follow "stopped"; nothing for an untuned one."""
    from tvm_practice.tvm_export.request import ExportRequest
    from tvm_practice.tvm_export.tuners.records import count

    asked = ExportRequest.model_validate(request) if request else None
    if asked is None or asked.chosen_tuner is None or not asked.tunes:
        return ""
    log = asked.tuning_log or asked.artifacts / f"records-{asked.chosen_tuner}"
    trials = count(log, asked.chosen_tuner)
    return f"; {trials} trials are kept in {log}, and the same command goes on from them"


def _print(result: dict[str, Any], *, verbose: bool) -> None:
    if result["unchanged_since"]:
        date = result["unchanged_since"].replace("T", " ").replace("+00:00", " UTC")
        click.echo(f"unchanged since {date}; --again exports anew")
    tuned = f"{result['tuner']}, {result['tuning'].get('trials')} trials"
    for note in result["notes"]:
        click.echo(f"note      {note}")
    click.echo(f"engine    {result['engine']}, {tuned if result['tuner'] else 'untuned'}")
    click.echo(f"target    {result['target']}")
    if result["tuning"].get("note"):
        click.echo(f"tuning    {result['tuning']['note']}")
    if result["not_run"]:
        click.echo(f"not run   {result['not_run']}")
    else:
        _print_run(result["latency"], result["ratio"], result["verification"])
        if own := result["tuners_own"]:
            what = "PyTorch's time with the tuner's records alone"
            _print_ratio("own", own["ratio_to_pytorch"], what)
    seconds = ", ".join(f"{name} {spent:.1f} s" for name, spent in result["seconds"].items())
    click.echo(f"took      {seconds}")
    if result["artifacts"] is None:
        click.echo("artifacts not written: the outputs are wrong; --force writes them")
    else:
        click.echo(f"artifacts {result['artifacts']}, library {result['size'] / 1e6:.1f} MB")
    if result["single_file"]:
        click.echo(f"file      {result['single_file']}")
    if result["c_source"]:
        _print_c(result["c_source"])
    if verbose:
        for function, rule in result["rules"].items():
            click.echo(f"rule      {rule:<12} {function}")
            for other, reason in result["declined"].get(function, {}).items():
                click.echo(f"          not {other}: {reason}")


def _print_c(written: dict[str, Any]) -> None:
    click.echo(f"C         {written['folder']}, {written['calls']} calls")
    program = "not linked" if written["program"] is None else f"{written['program'] / 1e3:.1f} kB"
    weights, workspace = (f"{written[each] / 1e6:.1f} MB" for each in ("weights", "workspace"))
    click.echo(f"program   {program}; weights {weights}, workspace {workspace}")
    if written["not_run"]:
        click.echo(f"not run   {written['not_run']}")
    else:
        error = written["verification"]["max_error"]
        click.echo(f"verified  the C program, largest error {error:.2g}")


def _print_run(
    latency: dict[str, Any], ratio: dict[str, Any] | None, verification: dict[str, Any]
) -> None:
    verdict = latency.get("verdict") or ("measured" if latency["stable"] else "unstable")
    click.echo(
        f"latency   median {latency['p50']:.3f} ms, mean {latency['mean']:.3f} ms of "
        f"{latency['count']}" + ("" if verdict == "measured" else f", {verdict}")
    )
    if ratio:  # a note says why there is none
        _print_ratio("PyTorch", ratio, "its time")
    if not verification["verified"]:
        click.echo(f"WRONG     {verification['reason']}")
        return
    error = f"{verification['max_error']:.2g}"
    if verification["pytorch_error"] is not None:
        error += f" from float64's, PyTorch's own {verification['pytorch_error']:.2g}"
    count = len(verification["trials"])
    click.echo(f"verified  on {count} input{'s' * (count > 1)}, largest error {error}")
    if verification.get("cosine") is not None:
        rows = verification["top1"]
        agree = "" if rows is None else f", same top-1 in {rows:.1%} of rows"
        cosine = f"cosine {verification['cosine']:.6f} to {verification['reference']}"
        click.echo(f"accuracy  {cosine}{agree}")


def _print_ratio(name: str, ratio: dict[str, Any], what: str) -> None:
    if ratio["value"] is None:
        click.echo(f"{name:<9} {ratio['verdict']}")
    else:
        low, high = ratio["ci95"]
        click.echo(f"{name:<9} {ratio['value']:.2f} of {what} ({low:.2f}–{high:.2f})")


if __name__ == "__main__":
    main()
