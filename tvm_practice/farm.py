"""A tuning farm: TVM's RPC tracker and servers, for both engines.

A tuner builds a trial where it runs and asks the tracker for a free server to measure it on.

    python -m tvm_practice.farm tracker                     on one machine
    python -m tvm_practice.farm server --tracker HOST       on each machine that measures
    python -m tvm_practice.farm status --tracker HOST
    python -m tvm_practice.farm tune --tracker HOST         a small matmul, to see it work

The two TVMs do not understand each other's servers, so each engine has its own tracker, on a
port of its own, and each machine runs a server an engine. Whoever reaches a server can run code
on it: keep the farm on a network that you trust.
"""

import atexit
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

TRACKER_PORTS = {"classic": 9191, "current": 9190}
SERVER_PORTS = {"classic": range(9300, 9400), "current": range(9200, 9300)}
_POLL_SECONDS = 5.0
_CONNECT_SECONDS = 3.0
_TRIAL_SECONDS = 30  # a trial of one busy or dead server, waiting for a free one included
# Short: a slow candidate needs no exact time, and a fast one gets many calls in 20 ms.
_TIMING = {"number": 1, "repeat": 3, "min_repeat_ms": 20}

_held: dict[str, Any] = {}  # what a child process keeps alive for its parent


# In a child process, with an engine active.


def open_tracker(host: str, port: int) -> None:
    """Start a tracker on `port` in a process of its own."""
    from tvm.rpc.tracker import Tracker

    _held["tracker"] = Tracker(host, port=port, port_end=port + 1, silent=True)
    atexit.register(_held["tracker"].terminate)


def open_server(tracker: str, port: int, key: str, first: int, last: int) -> str:
    """Start a server on the first free port, known to the tracker as `key`; returns its address.

    A server opened before ends.
    """
    from tvm import rpc

    if "server" in _held:
        _held.pop("server").terminate()
    with socket.create_connection((tracker, port), timeout=_CONNECT_SECONDS) as probe:
        address = probe.getsockname()[0]  # the one of this machine's that the tracker can reach
    server = rpc.Server(
        "0.0.0.0",
        first,
        last,
        key=key,
        tracker_addr=(tracker, port),
        custom_addr=address,
        silent=True,
    )
    _held["server"] = server
    return f"{address}:{server.port}"


def summary(tracker: str, port: int) -> dict[str, Any]:
    """What the tracker knows: {"servers": {key: [address, ...]}, "waiting": {key: count}}."""
    from tvm import rpc

    session = rpc.connect_tracker(tracker, port)
    known = session.summary()
    session.close()
    servers: dict[str, list[str]] = {}
    for info in known["server_info"]:
        address, its_port = info["addr"]
        servers.setdefault(info["key"].removeprefix("server:"), []).append(f"{address}:{its_port}")
    waiting = {key: queue["pending"] for key, queue in known["queue_info"].items()}
    return {"servers": servers, "waiting": waiting}


def tune_classic(
    tracker: str, port: int, key: str, servers: int, trials: int, size: int, folder: str
) -> None:
    """Tune a matmul by Ansor on the farm; its log is `folder`/ansor.json."""
    from tvm import auto_scheduler

    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import ansor, trials_per_round

    log = _log("classic", folder)
    task = ansor.make_task(matmul, (size, size, size), host_target())
    with ansor.measuring([task], trials, log) as measure:
        runner = auto_scheduler.RPCRunner(
            key, tracker, port, n_parallel=servers, timeout=_TRIAL_SECONDS, **_TIMING
        )
        learned = [auto_scheduler.PreloadMeasuredStates(str(log))] if log.exists() else None
        policy = auto_scheduler.SketchPolicy(
            task,
            auto_scheduler.XGBModel(),
            params=ansor.fast_search_params(),
            verbose=0,
            init_search_callbacks=learned,
        )
        options = auto_scheduler.TuningOptions(
            num_measure_trials=trials,
            num_measures_per_round=trials_per_round(trials),
            builder=measure.builder,
            runner=runner,
            measure_callbacks=[auto_scheduler.RecordToFile(str(log)), measure.callback],
            verbose=0,
        )
        task.tune(options, policy)


def tune_current(
    tracker: str, port: int, key: str, servers: int, trials: int, size: int, folder: str
) -> None:
    """Tune a matmul by MetaSchedule on the farm; its database is in `folder`."""
    tune_matmul(_rpc_runner(tracker, port, key, servers), trials, size, folder)


@contextmanager
def _rpc_runner(tracker: str, port: int, key: str, servers: int) -> Iterator[Any]:
    """MetaSchedule's runner on the farm, its worker processes ended after the block."""
    from tvm.s_tir import meta_schedule as ms

    runner = ms.runner.RPCRunner(
        ms.runner.RPCConfig(tracker, port, key, session_timeout_sec=_TRIAL_SECONDS),
        ms.runner.EvaluatorConfig(**_TIMING),
        max_workers=servers,
    )
    try:
        yield runner
    finally:
        runner.pool.shutdown(wait=False)


def tune_matmul(
    runner: AbstractContextManager[Any],
    trials: int,
    size: int,
    folder: str | Path,
    *,
    target: Any = None,
) -> float:
    """Tune a matmul by MetaSchedule on the active engine, which is the current one.

    Args:
        runner: gives a `meta_schedule` runner; opened when the worker processes that build are.
        trials: to measure.
        size: rows and columns of A, B and C.
        folder: of the database.
        target: a `tvm.target.Target`; None is this machine with all its threads.

    Returns:
        Seconds that the search took, without the start of builder and runner.
    """
    from tvm import te
    from tvm.s_tir import meta_schedule as ms

    from solutions.te_basics import matmul
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import metaschedule, trials_per_round

    function = te.create_prim_func(matmul(size, size, size))
    context = metaschedule.make_context(function, target or host_target())
    with metaschedule.measuring([context], trials, folder) as measure, runner as opened:
        started = time.perf_counter()
        ms.tune.tune_tasks(
            tasks=[context],
            task_weights=[1.0],
            work_dir=str(folder),
            max_trials_global=trials,
            num_trials_per_iter=trials_per_round(trials),
            builder=measure.builder,
            runner=opened,
            cost_model=metaschedule.cost_model(),
            measure_callbacks=[
                *ms.measure_callback.MeasureCallback.create("default"),
                measure.callback,
            ],
        )
        return time.perf_counter() - started


# What a client sees of a server that is gone, and of one that does not answer in time.
_LOST = re.compile(
    r"code=(kShutdown|1)\b|Broken pipe|Connection (reset|refused)|connection was previously closed|"
    r"Channel closes before|Timeout, killed after|Cannot request|no worker of key"
)
# A candidate that hangs is ended with its session by a server that is well.
_HANGING = "RPCSessionTimeoutError"


def is_lost(error: str | None) -> bool:
    """Whether a trial failed because its server did, so that another may do it.

    A candidate that crashes the process it runs in cannot be told from a server that is gone.

    Args:
        error: `error_msg` of MetaSchedule's RunnerResult; None is a trial that did not fail.
    """
    return error is not None and _HANGING not in error and _LOST.search(error) is not None


# In the command's own process, without a TVM.


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have a stop of the container (SIGTERM) or Ctrl-C leave through the `with` blocks."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = {each: signal.signal(each, leave) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _fail(message: str) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(1)


def _log(engine: str, folder: str | Path) -> Path:
    """Where the engine's tuner keeps its records, as `history` takes it."""
    return Path(folder) / "ansor.json" if engine == "classic" else Path(folder)


def _trials(engine: str, folder: Path) -> list[Any]:
    """The trials recorded in `folder`, those of earlier runs too."""
    from tvm_practice.tvm_export.tuners import ansor, metaschedule

    log = _log(engine, folder)
    if engine == "classic":
        return ansor.history(log) if log.exists() else []
    return metaschedule.history(log) if any(log.glob("database_*")) else []


def _reachable(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _chosen(engine: str | None) -> list[Any]:
    """The engines asked for that are here; a line for each that is not."""
    from tvm_practice import engines

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
    help="What the server is known by; give unlike machines unlike keys.",
)


@click.group(
    epilog="\b\nExamples:\n  python -m tvm_practice.farm tracker\n"
    "  python -m tvm_practice.farm server --tracker 10.0.0.1\n"
    "  python -m tvm_practice.farm tune --tracker 10.0.0.1 --trials 64"
)
def main() -> None:
    """TVM's RPC tracker and servers, for tuning across machines with either engine."""


@main.command()
@_engine_option
@click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen on.")
def tracker(engine: str | None, host: str) -> None:
    """Run a tracker an engine until stopped: current on port 9190, classic on 9191."""
    from tvm_practice import engines

    with ExitStack() as stack:
        stack.enter_context(_ended_by_signals())
        for each in _chosen(engine):
            port = TRACKER_PORTS[each]
            try:
                socket.create_server((host, port)).close()
            except OSError as error:  # TVM says it by a stack
                _fail(f"no {each} tracker on {host}:{port}: {error.strerror}")
            session = stack.enter_context(engines.Session(each))
            try:
                session.call("tvm_practice.farm:open_tracker", {"host": host, "port": port})
            except engines.EngineError as error:
                _fail(f"no {each} tracker on {host}:{port}: {error}")
            click.echo(f"{each} tracker on {host}:{port}")
        while True:
            time.sleep(_POLL_SECONDS)
            for each in _chosen(engine):
                if not _reachable("127.0.0.1", TRACKER_PORTS[each]):
                    _fail(f"the {each} tracker ended")


@main.command()
@_engine_option
@_tracker_option
@_key_option
def server(engine: str | None, tracker: str, key: str) -> None:
    """Run a server an engine until stopped; waits for the tracker, and comes back if lost."""
    from tvm_practice import engines

    with ExitStack() as stack:
        stack.enter_context(_ended_by_signals())
        keepers = []
        for each in _chosen(engine):
            session = stack.enter_context(engines.Session(each))
            keepers.append(_keep_server(each, session.call, tracker, key))
        while True:
            for keeper in keepers:
                next(keeper)
            time.sleep(_POLL_SECONDS)


def _keep_server(engine: str, call: Callable[..., Any], tracker: str, key: str) -> Iterator[None]:
    """Each step sees to it that the engine's server is known to the tracker.

    A server leaves the tracker's list when the tracker is restarted and, in current TVM, when a
    trial crashes it.
    """
    port = TRACKER_PORTS[engine]
    where = {"tracker": tracker, "port": port}
    ports = SERVER_PORTS[engine]
    opening = {**where, "key": key, "first": ports.start, "last": ports.stop}
    address, missed, waiting = None, 0, False
    while True:
        if not _reachable(tracker, port):
            if not waiting:
                click.echo(f"{engine} server waits for the tracker at {tracker}:{port}")
            waiting = True
        else:
            waiting = False
            if address is not None:
                known = call("tvm_practice.farm:summary", where)["servers"].get(key, [])
                missed = 0 if address in known else missed + 1
            if address is None or missed > 1:
                address, missed = call("tvm_practice.farm:open_server", opening), 0
                click.echo(f"{engine} server on {address}, known to {tracker}:{port} as {key}")
        yield


@main.command()
@_engine_option
@_tracker_option
def status(engine: str | None, tracker: str) -> None:
    """List the servers that each engine's tracker knows.

    Exit code 0 if each tracker answers and knows a server, else 1.
    """
    from tvm_practice import engines

    good = True
    for each in _chosen(engine):
        port = TRACKER_PORTS[each]
        if not _reachable(tracker, port):
            click.echo(f"{each}: no tracker at {tracker}:{port}")
            good = False
            continue
        known = engines.call(each, "tvm_practice.farm:summary", {"tracker": tracker, "port": port})
        for key, servers in sorted(known["servers"].items()):
            waiting = known["waiting"].get(key, 0)
            click.echo(f"{each}: {key}: {', '.join(sorted(servers))}; {waiting} trials waiting")
        if not known["servers"]:
            click.echo(f"{each}: the tracker at {tracker}:{port} knows no server")
            good = False
    sys.exit(0 if good else 1)


def _servers(
    engine: str, call: Callable[..., Any], where: dict[str, Any], key: str, wait: float
) -> list[str]:
    """The addresses of the servers of a key; waits for a farm that is starting."""
    place = f"{where['tracker']}:{where['port']}"
    until = time.monotonic() + wait
    while True:
        reachable = _reachable(where["tracker"], where["port"])
        if reachable:
            servers: list[str] = call("tvm_practice.farm:summary", where)["servers"].get(key, [])
            if servers:
                return servers
        if time.monotonic() > until:
            break
        time.sleep(1)
    if reachable:
        _fail(f"the {engine} tracker at {place} knows no server of key {key!r}")
    _fail(f"no {engine} tracker at {place}. To start one: python -m tvm_practice.farm tracker")


@main.command()
@_engine_option
@_tracker_option
@_key_option
@click.option("--trials", type=click.IntRange(1), default=32, show_default=True)
@click.option("--size", type=click.IntRange(1), default=256, show_default=True, help="Of a side.")
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=60,
    show_default=True,
    help="Seconds to wait for the tracker and a server.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: Path(os.environ.get("TVM_PRACTICE_RECORDS", "runs")) / "farm",
    show_default="farm in $TVM_PRACTICE_RECORDS, else in runs",
    help="Folder for the tuning records; those already there are used.",
)
def tune(
    engine: str | None, tracker: str, key: str, trials: int, size: int, wait: float, out: Path
) -> None:
    """Tune a square float32 matmul on the farm: by Ansor (classic), MetaSchedule (current).

    Exit code 0 if the tuner went through and measured at least one trial, else 1.
    """
    from tvm_practice import engines
    from tvm_practice.tvm_export.tuners import count_errors

    for each in _chosen(engine):
        where = {"tracker": tracker, "port": TRACKER_PORTS[each]}
        folder = out / each
        folder.mkdir(parents=True, exist_ok=True)
        with engines.Session(each) as session:
            known = _servers(each, session.call, where, key, wait)
            click.echo(f"{each}: {trials} trials of a {size}³ matmul on {', '.join(known)}")
            before = len(_trials(each, folder))
            job = {"key": key, "servers": len(known), "trials": trials, "size": size}
            try:
                session.call(
                    f"tvm_practice.farm:tune_{each}", {**where, **job, "folder": str(folder)}
                )
            except engines.EngineError as error:
                _fail(f"{each}: {error}")
        added = _trials(each, folder)[before:]
        failed = count_errors(added)
        click.echo(
            f"{each}: {len(added) - failed.total()} trials measured, {failed.total()} failed"
            + "".join(f"; {count} times: {reason}" for reason, count in failed.items())
            + f"; records in {folder}"
        )


if __name__ == "__main__":
    main()
