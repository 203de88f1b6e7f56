"""Use an exported model: run it on your arrays, time it, profile it, inspect it.

    python -m tvm_practice.artifact run runs/mlp --inputs image.npz --outputs logits.npz

None of it needs PyTorch or the model's source. `tvm_export.artifacts.use` does the work, in a
process of the artifact's engine.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from tvm_practice.engines.command_line import Group
from tvm_practice.tvm_export.cli import child_output, one_line
from tvm_practice.tvm_export.errors import BadInput

_USE = "tvm_practice.tvm_export.artifacts.use"
_MOST_CALLS = 1_000_000
_RUN = (
    "\b\nExamples:\n"
    "  python -m tvm_practice.artifact run runs/mlp --inputs in.npz --outputs out.npz"
)
_PROFILE = (
    "\b\nExamples:\n  python -m tvm_practice.artifact profile runs/resnet18\n"
    "  python -m tvm_practice.artifact profile runs/mine --extent batch=8 --json"
)
_BENCH = "\b\nExamples:\n  python -m tvm_practice.artifact bench runs/mlp --repeats 200 --threads 2"
_PACK = (
    "\b\nExamples:\n  python -m tvm_practice.artifact pack runs/mlp\n"
    "  python -m tvm_practice.artifact pack runs/mlp mlp.tvmp --json"
)
_INSPECT = (
    "\b\nExamples:\n  python -m tvm_practice.artifact inspect runs/mlp\n"
    "  python -m tvm_practice.artifact inspect runs/mlp --sha256 "
    '"$(cut -d" " -f1 digest.txt)"'
)


@click.group(
    cls=Group,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.artifact inspect runs/mlp\n"
    "  python -m tvm_practice.artifact run runs/mlp --inputs in.npz --outputs out.npz\n"
    "  python -m tvm_practice.artifact bench runs/mlp --repeats 200\n"
    "  python -m tvm_practice.artifact profile runs/mlp\n"
    "  python -m tvm_practice.artifact pack runs/mlp mlp.tvmp",
)
def main() -> None:
    """Run, time, profile and inspect an exported model, without PyTorch.

    ARTIFACT is the folder, or the single file that pack makes of it. run, bench and profile execute
    its native code with your rights. Exit code 0 if all went well, 2 for an artifact, a digest or
    inputs that are wrong, 1 for anything else.
    """


def _artifact(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the argument and the options that all have."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print only JSON."),
        click.option(
            "--sha256",
            metavar="DIGEST",
            help="Expected SHA-256 of the folder's metadata.json, or of the single file: anything "
            "else is refused before code is loaded.",
        ),
        click.argument("artifact", metavar="ARTIFACT", type=click.Path(path_type=Path)),
    ):
        command = option(command)
    return command


def _called(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of those that call the model many times."""
    for option in (
        click.option("--threads", type=click.IntRange(min=1), help="Number of threads."),
        click.option(
            "--extent",
            "extents",
            multiple=True,
            metavar="NAME=N",
            help="Size of an open axis of the drawn inputs; repeat for others [default: 1].",
        ),
        click.option(
            "--inputs",
            type=click.Path(path_type=Path),
            metavar="X.NPZ",
            help="Inputs, arrays by name [default: drawn].",
        ),
    ):
        command = option(command)
    return _artifact(command)


@main.command("run", short_help="Call the model once on arrays from a file.", epilog=_RUN)
@_artifact
@click.option(
    "--inputs",
    required=True,
    type=click.Path(path_type=Path),
    metavar="X.NPZ",
    help="The model's inputs, arrays by name; `inspect` lists the names.",
)
@click.option(
    "--outputs",
    required=True,
    type=click.Path(path_type=Path),
    metavar="Y.NPZ",
    help="File to write: output_0, output_1, … in the model's order.",
)
def run_command(
    artifact: Path, inputs: Path, outputs: Path, sha256: str | None, as_json: bool
) -> None:
    """Call the model of ARTIFACT once and write its outputs."""
    with one_line("artifact"):
        result = _call(
            "run", artifact, sha256, as_json=as_json, inputs=str(inputs), outputs=str(outputs)
        )
        if as_json:
            click.echo(json.dumps(result, indent=2))
            return
        for each in result["outputs"]:
            click.echo(f"{each['name']}  {_spelled(each)}")
        click.echo(f"written   {outputs}")


@main.command("bench", short_help="Measure the latency.", epilog=_BENCH)
@_called
@click.option(
    "--warmup", type=click.IntRange(0, _MOST_CALLS), default=20, show_default=True,
    help="Discarded calls.",
)  # fmt: skip
@click.option(
    "--repeats", type=click.IntRange(1, _MOST_CALLS), default=200, show_default=True,
    help="Timed calls, one sample each.",
)  # fmt: skip
def bench_command(
    artifact: Path,
    sha256: str | None,
    as_json: bool,
    inputs: Path | None,
    extents: tuple[str, ...],
    threads: int | None,
    warmup: int,
    repeats: int,
) -> None:
    """Measure the latency of the model of ARTIFACT, its inputs already set."""
    with one_line("artifact"):
        found = _call(
            "bench", artifact, sha256, as_json=as_json, threads=threads,
            **_given(inputs, extents), warmup=warmup, repeats=repeats,
        )  # fmt: skip
        if as_json:
            click.echo(json.dumps(found, indent=2))
            return
        low, high = found["ci95"]
        click.echo(f"latency   median {found['p50']:.3f} ms of {found['count']}")
        click.echo(f"mean      {found['mean']:.3f} ms (95%: {low:.3f}–{high:.3f})")
        click.echo(f"p90, p99  {found['p90']:.3f}, {found['p99']:.3f} ms")
        if found["verdict"] != "measured":
            click.echo(f"note      {found['verdict']}")


@main.command("profile", short_help="Show time and memory per function.", epilog=_PROFILE)
@_called
@click.option(
    "--runs", type=click.IntRange(1, _MOST_CALLS), default=10, show_default=True,
    help="Timed calls.",
)  # fmt: skip
def profile_command(
    artifact: Path,
    sha256: str | None,
    as_json: bool,
    inputs: Path | None,
    extents: tuple[str, ...],
    threads: int | None,
    runs: int,
) -> None:
    """Show the time and memory of each function, and the source of its schedule.

    A profiled call is slower than a plain one: compare the shares, and take the total from bench.
    """
    with one_line("artifact"):
        found = _call(
            "profile", artifact, sha256, as_json=as_json, threads=threads,
            **_given(inputs, extents), runs=runs,
        )  # fmt: skip
        if as_json:
            click.echo(json.dumps(found, indent=2))
        else:
            _print_profile(found)


@main.command("inspect", short_help="Show the artifact's contents; runs nothing.", epilog=_INSPECT)
@_artifact
def inspect_command(artifact: Path, sha256: str | None, as_json: bool) -> None:
    """Show ARTIFACT's engine, target, inputs, results, and the source of each schedule.

    Checks that all files are whole. Loads no native code and needs no TVM.
    """
    with one_line("artifact"):
        from tvm_practice.tvm_export.artifacts.use import described

        metadata = described(artifact, sha256=sha256)
        if as_json:
            click.echo(json.dumps(metadata, indent=2))
        else:
            _print_metadata(metadata)


@main.command("pack", short_help="Put the folder into a single file.", epilog=_PACK)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("file", metavar="[FILE.tvmp]", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print only JSON.")
def pack_command(folder: Path, file: Path | None, as_json: bool) -> None:
    """Write the artifact in DIR to FILE.tvmp [default: DIR/model.tvmp].

    The library in it is linked, so that loading the file needs no C compiler. Prints its SHA-256,
    for --sha256.
    """
    with one_line("artifact"):
        from tvm_practice.tvm_export.artifacts.use import packed

        found = packed(folder, file)
        if as_json:
            click.echo(json.dumps(found, indent=2))
        else:
            click.echo(f"written   {found['file']}, {_size(found['bytes'])}")
            click.echo(f"sha256    {found['sha256']}")


def _call(
    function: str,
    artifact: Path,
    sha256: str | None,
    *,
    as_json: bool,
    threads: int | None = None,
    **arguments: Any,
) -> Any:
    """What a function of `artifacts.use` returns in a process of the artifact's engine."""
    from tvm_practice import engines
    from tvm_practice.tvm_export.artifacts.use import engine_of

    engine = engine_of(artifact, sha256=sha256)
    if threads is not None:
        os.environ["TVM_NUM_THREADS"] = str(threads)
    with child_output(as_json=as_json) as output, engines.Session(engine, output=output) as session:
        given = {"artifact": str(artifact), "sha256": sha256, **arguments}
        return session.call(f"{_USE}:{function}", given, activate=False)


def _given(inputs: Path | None, extents: tuple[str, ...]) -> dict[str, Any]:
    """The arguments that say what the model is called with. Raises BadInput."""
    if inputs is not None and extents:
        raise BadInput("--extent is for drawn inputs; --inputs gives them")
    sizes = {}
    for text in extents:
        name, _, size = text.partition("=")
        if not (name and size.isdigit() and int(size)):
            raise BadInput(f"--extent {text!r} is not of the form NAME=N")
        sizes[name] = int(size)
    return {"inputs": None if inputs is None else str(inputs), "extents": sizes}


def _spelled(described: Mapping[str, Any]) -> str:
    """Type and shape of an input or output."""
    shape = described["shape"]
    if shape is None:
        return "of unknown shape"
    return f"{described['dtype']} [{', '.join(map(str, shape))}]"


def _print_metadata(metadata: dict[str, Any]) -> None:
    facts, latency = metadata["engine_facts"], metadata["latency"]
    click.echo(f"model     {metadata['model'] or 'without a name'}")
    click.echo(f"engine    {metadata['engine']}, TVM {facts['version']}, LLVM {facts['llvm']}")
    click.echo(f"target    {metadata['target']}")
    for each in metadata["inputs"]:
        click.echo(f"input     {each['name']}  {_spelled(each)}")
    click.echo(f"tuner     {metadata['tuner'] or 'none'}")
    if verification := metadata["verification"]:
        error = verification["max_error"]
        right = verification["verified"]
        said = f"largest error {error:.2g}" if right else f"NO: {verification['reason']}"
        click.echo(f"verified  {said}")
    if latency:
        on = metadata["environment"].get("processor")
        click.echo(f"latency   median {latency['p50']:.3f} ms when exported, on {on}")
    if metadata["not_run"]:
        click.echo(f"not run   {metadata['not_run']}")
    for name, made_by in metadata["functions"].items():
        how = _how({"made_by": made_by, "rule": metadata["rules"].get(name)})
        click.echo(f"function  {how:<24} {name}")
    for name, file in metadata["files"].items():
        click.echo(f"file      {_size(file['bytes']):>9}  {name}, whole")


def _print_profile(found: dict[str, Any]) -> None:
    from rich.console import Console

    from tvm_practice.viz.tables import results_table

    rows = [
        [
            each["name"],
            str(each["calls"]),
            f"{each['milliseconds']:.3f}",
            f"{each['share']:.0%}",
            _how(each),
        ]
        for each in found["operators"]
    ]
    headings = ("function", "calls", "ms", "share", "schedule")
    Console().print(results_table("one call of the model", headings, [rows]))
    memory = found["memory"]
    storages = memory["storages"]
    total = sum(each["bytes"] for each in storages)
    click.echo(
        f"memory    {len(storages)} allocations, {_size(total)}; inputs {_size(memory['inputs'])}, "
        f"outputs {_size(memory['outputs'])}"
    )
    for each in storages:
        click.echo(f"          {_size(each['bytes']):>9}  for {each['function'] or 'the outputs'}")


def _how(function: Mapping[str, Any]) -> str:
    """What made a function: `record`, or the default rule by its name."""
    made_by, rule = function["made_by"], function["rule"]
    if made_by is None:
        return rule or "not scheduled"
    return f"{made_by}, {rule}" if rule and rule != made_by else made_by


def _size(count: int) -> str:
    """Bytes in words."""
    for unit, size in (("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


if __name__ == "__main__":
    main()
