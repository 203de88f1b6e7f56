"""A model's C beside TVM's runtime: bytes, and the time from exec to the first result.

    python -m tvm_practice.run_autotvm tvm_practice.models:load_mobilenet_v2 \
        --artifacts runs/mobilenet --c-source runs/mobilenet_c
    python benchmarks/c_source.py runs/mobilenet runs/mobilenet_c

Two programs compute the same once, each in a new process: the C without a library, and a C program
that loads the artifact's library with TVM's runtime. They start in turns with a program that does
nothing, whose time is that of starting one. The files are in the page cache.
"""

import os
import platform
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

_TRIPLE = f"{platform.machine()}-linux-gnu"
_STATIC = ("-static",)


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/c_source.py runs/mobilenet runs/mobilenet_c\n"
    "  python benchmarks/c_source.py runs/mlp runs/mlp_c --rounds 100 --threads 1"
)
@click.argument("artifact", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("--rounds", type=click.IntRange(min=6), default=50, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), help="[default: this machine's]")
def main(artifact: Path, folder: Path, rounds: int, threads: int | None) -> None:
    """Compare the C in FOLDER with the ARTIFACT of the same export."""
    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved, environment

    count = str(threads or engines.thread_count())
    with tempfile.TemporaryDirectory() as made:
        here = Path(made)
        programs = _programs(artifact, folder, here)
        runs = {
            "nothing": [str(here / "nothing")],
            "C": [str(here / "c"), str(_weights(folder)), count],
            "TVM": [str(here / "tvm"), str(here / "library.so")],
        }
        inputs = {"nothing": Path("/dev/null"), "C": here / "raw", "TVM": here / "tensors"}
        _draw(artifact, inputs["C"], inputs["TVM"])
        _require_equal(runs, inputs, count)
        compared = compare_interleaved(
            {name: partial(_start, runs[name], inputs[name], count) for name in runs},
            baseline="TVM",
            rounds=rounds,
        )
    click.echo(f"{environment()['processor']}, {count} threads")
    for name, size in programs.items():
        click.echo(f"bytes     {size:>10,}  {name}")
    for name, latency in compared.latency.items():
        low, high = latency.to_dict()["ci95"]
        click.echo(f"first     {latency.median:>7.2f} ms  {name} ({low:.2f}-{high:.2f})")
    ratio = compared.ratio["C"]
    value = f"{ratio.value:.2f} of TVM's time" if ratio.measured else ratio.to_dict()["verdict"]
    click.echo(f"C         {value}")


def _weights(folder: Path) -> Path:
    [found] = folder.glob("*.weights")
    return found


def _programs(artifact: Path, folder: Path, here: Path) -> dict[str, int]:
    """Build the programs; the size of each, and of the libraries that the last needs."""
    from tvm.libinfo import find_libtvm_runtime
    from tvm_ffi.libinfo import find_libtvm_ffi

    from tvm_practice.tvm_export import cross
    from tvm_practice.tvm_export.artifacts import LIBRARY, read_metadata
    from tvm_practice.tvm_export.artifacts.packing import link

    own = [*sorted(folder.glob("*.c")), *sorted(folder.glob("*.o"))]
    options = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-lm", "-pthread", "-s"]
    cross.link(own, _TRIPLE, here / "c", options=options)
    cross.link(own, _TRIPLE, here / "c_static", options=[*options, *_STATIC])
    (here / "nothing.c").write_text("int main(void) { return 0; }\n")
    cross.link([here / "nothing.c"], _TRIPLE, here / "nothing")
    runtime = [Path(find_libtvm_runtime()), Path(find_libtvm_ffi())]
    paths = [f"-Wl,-rpath,{each.parent}" for each in runtime]
    options = ["-s", "-Wl,--no-as-needed", *map(str, runtime), *paths]
    cross.link([cross.RUN_MODEL], _TRIPLE, here / "tvm", options=options)
    link(artifact / LIBRARY, read_metadata(artifact)["target"], here / "library.so")
    sizes = {
        "the C program": here / "c",
        "the same, linked statically, the C library with it": here / "c_static",
        "its weights": _weights(folder),
        "the program that calls TVM's runtime": here / "tvm",
        "the artifact's library, weights with it": here / "library.so",
        **{each.name: each for each in runtime},
    }
    return {name: each.stat().st_size for name, each in sizes.items()}


def _draw(artifact: Path, raw: Path, tensors: Path) -> None:
    """Inputs for both programs."""
    import numpy as np

    from tvm_practice.tvm_export import cross
    from tvm_practice.tvm_export.artifacts import read_metadata

    rng = np.random.default_rng(0)
    drawn = [
        rng.standard_normal(each["shape"]).astype(each["dtype"])
        for each in read_metadata(artifact)["inputs"]
    ]
    raw.write_bytes(b"".join(each.tobytes() for each in drawn))
    tensors.write_bytes(cross.encode(drawn))


def _start(command: Sequence[str], inputs: Path, threads: str) -> bytes:
    """What a new process writes. Raises where it fails."""
    environment = {**os.environ, "TVM_NUM_THREADS": threads}
    with inputs.open("rb") as stream:
        # Not to close files: the process is then spawned, and this one's memory is not copied.
        done = subprocess.run(
            command, stdin=stream, capture_output=True, close_fds=False, env=environment, check=True
        )
    return done.stdout


def _require_equal(runs: dict[str, list[str]], inputs: dict[str, Path], threads: str) -> None:
    import numpy as np

    from tvm_practice.tvm_export import cross

    wanted = cross.decode(_start(runs["TVM"], inputs["TVM"], threads))
    got = _start(runs["C"], inputs["C"], threads)
    for each in wanted:
        one = np.frombuffer(got[: each.nbytes], each.dtype).reshape(each.shape)
        if not np.allclose(one, each, rtol=1e-4, atol=1e-5):
            raise click.ClickException("the two programs compute different results")
        got = got[each.nbytes :]


if __name__ == "__main__":
    main()
