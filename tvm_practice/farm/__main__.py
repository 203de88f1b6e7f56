"""The farm's command line."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tvm_practice import engines
from tvm_practice.engines.command_line import Folder, Group
from tvm_practice.farm.keeping import keep_servers, keep_trackers, reachable, wait_for_servers
from tvm_practice.farm.servers import TRACKER_PORTS


def _not_empty(_: click.Context, option: click.Parameter, value: str) -> str:
    if not value:
        raise click.BadParameter("it is empty", param=option)
    return value


_engine_option = click.option(
    "--engine",
    type=click.Choice(["classic", "current"]),
    help="One TVM only (default: both).",
)
_tracker_option = click.option(
    "--tracker",
    default="127.0.0.1",
    show_default=True,
    envvar="TVM_PRACTICE_TRACKER",
    show_envvar=True,
    help="Host of the tracker.",
)
_key_option = click.option(
    "--key",
    default="cpu",
    show_default=True,
    callback=_not_empty,
    help="Device key of the server; give different kinds of machine different keys.",
)


_host_option = click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on, 0.0.0.0 for all. Whoever reaches it can run code here: name one "
    "only on a network that you trust.",
)


@contextmanager
def _in_a_line() -> Iterator[None]:
    """End the command with the message of a `PlainError` on standard error."""
    try:
        yield
    except engines.PlainError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)


def _chosen(engine: str | None) -> list[engines.Engine]:
    """The engines asked for that are here; a line for each that is not."""
    chosen = []
    for each in engines.ENGINES:
        if engine in (None, each):
            if reason := engines.unavailable_reason(each):
                click.echo(reason, err=True)
            else:
                chosen.append(each)
    if not chosen:
        sys.exit(1)
    return chosen


@click.group(
    cls=Group,
    epilog="\b\nExamples:\n  python -m tvm_practice.farm tracker\n"
    "  python -m tvm_practice.farm server --tracker 10.0.0.1 --host 10.0.0.2\n"
    "  python -m tvm_practice.farm tune --tracker 10.0.0.1 --trials 64",
)
def main() -> None:
    """TVM's RPC tracker and servers, for tuning across machines with either engine."""


@main.command()
@_engine_option
@_host_option
def tracker(engine: str | None, host: str) -> None:
    """Run a tracker per engine until stopped: current on port 9190, classic on 9191."""
    with _in_a_line():
        keep_trackers(_chosen(engine), host)


@main.command()
@_engine_option
@_tracker_option
@_key_option
@_host_option
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port to listen on; needs --engine.  [default: the first free one]",
)
def server(engine: str | None, tracker: str, key: str, host: str, port: int | None) -> None:
    """Run a server per engine until stopped; it waits for the tracker, and reconnects if lost."""
    if port is not None and engine is None:
        raise click.UsageError("--port is of one server: give --engine")
    with _in_a_line():
        keep_servers(_chosen(engine), tracker, key, host, port)


@main.command()
@_engine_option
@_tracker_option
def status(engine: str | None, tracker: str) -> None:
    """List the servers that each engine's tracker knows.

    Exit code 0 if each tracker answers and knows a server, else 1.
    """
    good = True
    for each in _chosen(engine):
        port = TRACKER_PORTS[each]
        if not reachable(tracker, port):
            click.echo(f"{each}: no tracker at {tracker}:{port}")
            good = False
            continue
        where = {"tracker": tracker, "port": port}
        known = engines.call(each, "tvm_practice.farm.servers:summary", where)
        for key, servers in sorted(known["servers"].items()):
            waiting = known["waiting"].get(key, 0)
            click.echo(f"{each}: {key}: {', '.join(sorted(servers))}; {waiting} trials waiting")
        if not known["servers"]:
            click.echo(f"{each}: the tracker at {tracker}:{port} knows no server")
            good = False
    sys.exit(0 if good else 1)


@main.command()
@_engine_option
@_tracker_option
@_key_option
@click.option("--trials", type=click.IntRange(1), default=32, show_default=True)
@click.option(
    "--size",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Rows and columns of the matmul.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=60,
    show_default=True,
    help="Seconds to wait for the tracker and a server.",
)
@click.option(
    "--out",
    type=Folder(),
    default=lambda: Path(os.environ.get("TVM_PRACTICE_RECORDS", "runs")) / "farm",
    show_default="farm in $TVM_PRACTICE_RECORDS, else in runs",
    help="Folder for the tuning records; records already there are reused.",
)
def tune(
    engine: str | None, tracker: str, key: str, trials: int, size: int, wait: float, out: Path
) -> None:
    """Tune a square float32 matmul on the farm, with Ansor (classic) and MetaSchedule (current).

    Exit code 0 if the tuner went through and measured at least one trial, else 1.
    """
    settings = {"tracker": tracker, "key": key, "trials": trials, "size": size}
    for each in _chosen(engine):
        folder = out / each
        folder.mkdir(parents=True, exist_ok=True)
        with _in_a_line(), engines.Session(each) as session:
            _tune(session, settings, wait, folder)


def _tune(session: engines.Session, settings: dict[str, Any], wait: float, folder: Path) -> None:
    """Tune by one engine into `folder`, and say what came of the trials.

    Args:
        session: of the engine.
        settings: "tracker", "key", "trials" and "size".
        wait: seconds that a server may take to come.
        folder: of the records; it exists.
    """
    from tvm_practice.farm.tuning import recorded
    from tvm_practice.tvm_export.tuners import count_errors

    engine = session.engine
    known = wait_for_servers(session, settings["tracker"], settings["key"], wait)
    trials, size = settings["trials"], settings["size"]
    click.echo(f"{engine}: {trials} trials of a {size}³ matmul on {', '.join(known)}")
    before = len(recorded(engine, folder))
    where = {"port": TRACKER_PORTS[engine], "servers": len(known), "folder": str(folder)}
    try:
        session.call(f"tvm_practice.farm.tuning:tune_{engine}", settings | where)
    except engines.PlainError as error:
        click.echo(f"{engine}: {error}", err=True)
        sys.exit(1)
    added = recorded(engine, folder)[before:]
    failed = count_errors(added)
    click.echo(
        f"{engine}: {len(added) - failed.total()} trials measured, {failed.total()} failed"
        + "".join(f"; {count} times: {reason}" for reason, count in failed.items())
        + f"; records in {folder}"
    )


if __name__ == "__main__":
    main()
