"""Lab 5's exercises and how they are graded: on a farm on loopback, and never by speed.

The farm is started for the first check that needs one and lives as long as the grading process.
"""

import atexit
import functools
import gc
import itertools
import math
import os
import shutil
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import draw_distinct, expect, expect_close, fail, fresh_rng
from tvm_practice.engines import CURRENT, host_target
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from tvm_practice.farm.local import LocalFarm

PHASE = Phase(
    number=5,
    module="labs.tuning_farm",
    title="a tuning farm",
    lanes=(CURRENT,),
    builds_on=("manual_schedule.packed_matmul",),
    question="A farm grows from 10 workers to 100, yet tunes hardly faster. What limits it, and "
    "what would you change first?",
)

Function = Callable[..., Any]

_PATIENCE_SECONDS = 10.0  # longer than anything here takes that does not wait for ever


def _farm() -> "LocalFarm":
    """A tracker and a worker on loopback, which is free."""
    gc.collect()  # a session is open until nothing refers to it, cycles of exceptions included
    return _started_farm()


@functools.cache
def _started_farm() -> "LocalFarm":
    from tvm_practice.farm.local import LocalFarm

    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(LocalFarm(1, key="Rack-7.CPU"))


class _Waits(Exception):
    """A call that has not ended."""


def _ended(function: Callable[[], Any], seconds: float = _PATIENCE_SECONDS) -> Any:
    """What `function` returns or raises; _Waits if it takes longer."""
    outcome: dict[str, Any] = {}

    def call() -> None:
        try:
            outcome["value"] = function()
        except BaseException as error:  # raised again below
            outcome["error"] = error

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _Waits
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def _expect_raises(
    kind: type[Exception], function: Callable[[], Any], *, when: str, seconds: float, look: str
) -> str:
    """`function` raises `kind` within `seconds`; returns the text."""
    expected = f"{kind.__name__} {when}, within {seconds:g} s"
    try:
        value = _ended(function, seconds)
    except kind as error:
        return str(error)
    except _Waits:
        raise fail(expected, "it still waits", look) from None
    except NotImplementedError:
        raise
    except Exception as error:
        raise fail(expected, f"{type(error).__name__}: {error}"[:200], look) from None
    raise fail(expected, f"it returned {value!r}"[:200], look)


def _demonstrate_request(request_worker: Function) -> str:
    farm = _farm()
    limits = {"wait_seconds": 5, "session_seconds": 20}
    session = request_worker(farm.host, farm.port, farm.key, **limits)
    lines = [f"cpu: a session, and 41 + 1 is {session.get_function('rpc.test.addone')(41)} there"]
    try:
        request_worker(farm.host, farm.port, "gpu", wait_seconds=0.2, session_seconds=20)
    except TimeoutError:
        lines.append("gpu: TimeoutError")
    return "\n".join(lines)


@PHASE.exercise(
    "request_worker",
    engine=CURRENT,
    title="ask a tracker for a free worker, with a time limit",
    hints=(
        "Three steps: check that somebody listens, connect to the tracker, ask for a session. "
        "Without the first, the second tries for a minute; the third waits forever unless you "
        "limit it.",
        "socket.create_connection((host, port), timeout=wait_seconds).close() fails at once where "
        "nobody listens. tracker._sock.settimeout(wait_seconds) limits the answer, and "
        "tracker.request(key, session_timeout=session_seconds, max_retry=1) asks once.",
        "request turns the time-out into a RuntimeError: catch it, raise TimeoutError(f'no worker "
        "of key {key!r} ...') from it, and close the tracker's connection in a finally.",
    ),
    looks_like="""
        cpu: a session, and 41 + 1 is 42 there
        gpu: TimeoutError
    """,
    demonstrate=_demonstrate_request,
)
def check_request_worker(request_worker: Function) -> None:
    from tvm_practice.farm.local import free_port

    farm = _farm()
    default = socket.getdefaulttimeout()
    for seconds in (int(fresh_rng().integers(20, 40)) + 0.5, 6.5):
        _expect_session(request_worker, seconds)
        gc.collect()
    left = socket.getdefaulttimeout()
    socket.setdefaulttimeout(default)
    expect(
        left == default,
        expected=f"the default time limit of sockets as it was, {default}",
        seen=f"{left}: later connections of this process would have it",
        look="socket.setdefaulttimeout: set the limit of one socket",
    )
    _expect_no_request_left(request_worker)
    _expect_waits(request_worker)
    _expect_closed_if_gone(request_worker)
    _expect_raises(
        ConnectionError,
        lambda: request_worker(
            farm.host, free_port(), farm.key, wait_seconds=1, session_seconds=30
        ),
        when="where no tracker listens",
        seconds=3.0,
        look="socket.create_connection((host, port), timeout=...), before rpc.connect_tracker, "
        "which tries for a minute",
    )


def _expect_session(request_worker: Function, seconds: float) -> None:
    """A session of a free worker, which ends it after so many seconds."""
    from tvm import rpc

    farm = _farm()
    connect = mock.Mock(wraps=rpc.client.connect)
    with (
        _expect_closed(farm.port),
        mock.patch.object(rpc.client, "connect", connect),
        mock.patch.object(rpc, "connect", connect),
    ):
        try:
            session = _ended(
                lambda: request_worker(
                    farm.host, farm.port, farm.key, wait_seconds=5, session_seconds=seconds
                )
            )
        except _Waits:
            told = f"a session of a free worker of key {farm.key!r}"
            raise fail(told, "it still waits", "tracker.request") from None
    expect(
        isinstance(session, rpc.RPCSession),
        expected="request_worker returns the session, a tvm.rpc.RPCSession",
        seen=type(session).__name__,
        look="the return statement",
    )
    calls = [[*each.args, *each.kwargs.values()] for each in connect.call_args_list]
    given = calls[-1] if calls else []
    expect(
        seconds in given,
        expected=f"a session that the worker ends after {seconds} s",
        seen=f"tvm.rpc.connect{tuple(given)!r}"[:200],
        look="tracker.request(..., session_timeout=session_seconds)",
    )


@contextmanager
def _connections() -> Iterator[list[tuple[str, Any]]]:
    """In this context, hosts and connections of the trackers asked; none is collected."""
    from tvm import rpc

    connect = rpc.connect_tracker
    made: list[tuple[str, Any]] = []

    def connecting(host: str, port: int) -> Any:
        made.append((host, connect(host, port)))
        return made[-1][1]

    with (
        mock.patch.object(rpc, "connect_tracker", connecting),
        mock.patch.object(rpc.client, "connect_tracker", connecting),
    ):
        yield made


@contextmanager
def _limits() -> Iterator[list[float | None]]:
    """In this context, the time limit of the connection in each request for a worker."""
    from tvm import rpc

    limits: list[float | None] = []
    plain = rpc.client.TrackerSession.request

    def request(self: Any, *given: Any, **named: Any) -> Any:
        limits.append(self._sock.gettimeout())
        return plain(self, *given, **named)

    with mock.patch.object(rpc.client.TrackerSession, "request", request):
        yield limits


@contextmanager
def _expect_closed(port: int, why: str = "") -> Iterator[None]:
    """After this context, no connection to the port that it made is open.

    `why`: the reason for which request_worker ends, other than a session or a TimeoutError.
    """
    import psutil

    def connected() -> int:
        opened = psutil.Process().net_connections("tcp")
        return sum(bool(each.raddr) and each.raddr.port == port for each in opened)

    before = connected()
    yield
    left = connected() - before
    expect(
        left <= 0,
        expected=f"every connection to the tracker closed when request_worker ends{why}",
        seen=f"{left} still open",
        look="close() of your own connection, and tracker.close() in a finally",
    )


_SAME_HOST = "127.1"  # the loopback address of the farm's tracker, in other words


def _expect_waits(request_worker: Function) -> None:
    """A worker that becomes free while it waits is taken, at the host that is given."""
    from tvm import rpc

    farm = _farm()
    held = [rpc.connect_tracker(farm.host, farm.port).request(farm.key, session_timeout=60)]
    released = threading.Timer(1.2, held.clear)  # the last reference: the session ends
    released.start()
    with _connections() as made:
        expected = "a session of a worker that becomes free after 1.2 s, with wait_seconds=30"
        look = "tracker._sock.settimeout(wait_seconds): the request itself waits"
        try:
            _ended(
                lambda: request_worker(
                    _SAME_HOST, farm.port, farm.key, wait_seconds=30, session_seconds=60
                ),
                40,
            )
        except _Waits:
            raise fail(expected, "it still waits", look) from None
        except TimeoutError as error:
            raise fail(expected, f"TimeoutError: {error}"[:200], look) from None
        finally:
            released.join()
    hosts = [host for host, _ in made]
    expect(
        set(hosts) <= {_SAME_HOST},
        expected=f"the tracker asked at the host given, {_SAME_HOST}",
        seen=f"at {', '.join(hosts)}",
        look="rpc.connect_tracker(host, port)",
    )
    expect(
        all(tracker._sock is None for _, tracker in made),
        expected="the connection to the tracker closed when there is a session",
        seen="left to the garbage collector",
        look="tracker.close(), in a finally",
    )


def _expect_closed_if_gone(request_worker: Function) -> None:
    """TVM's error about a worker that refuses connections ends it, and the connection as well."""
    from tvm_practice.farm.local import SilentServer

    farm = _farm()
    key = f"Gone-{uuid.uuid4()}"
    why = " by an error: the worker that the tracker names has gone, and refuses connections"
    seen, held = "", None
    with SilentServer(farm.host, farm.port, key, gone=True) as worker:
        worker.offer()
        # Held, the exception too: a connection is closed by the answer or not at all.
        with _connections(), _expect_closed(farm.port, why):
            try:
                session = _ended(
                    lambda: request_worker(
                        farm.host, farm.port, key, wait_seconds=0.5, session_seconds=30
                    )
                )
            except _Waits:
                seen = "it still waits"
            except Exception as error:
                held = error
            else:
                seen = f"it returned {session!r}"[:200]
            expect(
                not seen,
                expected="an exception where the worker that the tracker names has gone",
                seen=seen,
                look="tracker.request, which raises a RuntimeError then",
            )
    del held


def _expect_no_request_left(request_worker: Function) -> None:
    """Without a worker it gives up, and a worker that comes later is free for others."""
    from tvm import rpc

    from tvm_practice.farm.local import SilentServer

    farm = _farm()
    nobody = f"Nobody-{uuid.uuid4()}"
    look = "tracker._sock.settimeout(wait_seconds), max_retry=1, and the exception that is raised"
    began = time.monotonic()
    # Held, so that a connection is closed by the answer or not at all.
    with _connections(), _limits() as limits, _expect_closed(farm.port):
        text = _expect_raises(
            TimeoutError,
            lambda: request_worker(
                farm.host, farm.port, nobody, wait_seconds=0.2, session_seconds=30
            ),
            when="after 0.2 s when no worker of the key is there",
            seconds=2.0,
            look=look,
        )
    waited = time.monotonic() - began
    expect(
        waited >= 0.19,
        expected="a wait of wait_seconds, 0.2 s, for a worker",
        seen=f"given up after {waited:.3f} s",
        look=look,
    )
    expect(
        all(limit is None or limit <= 0.2 for limit in limits),
        expected="a wait of at most wait_seconds, 0.2 s, for an answer",
        seen=f"{', '.join(map(str, limits))} s",
        look=look,
    )
    expect(
        sum(limit or 0 for limit in limits) <= 0.4,  # which leaves room for a wait in parts
        expected="a wait of wait_seconds in all, 0.2 s",
        seen=f"{len(limits)} requests, which wait {', '.join(map(str, limits))} s",
        look="one request, with max_retry=1: each that follows waits as long again",
    )
    expect(
        nobody in text,
        expected="the TimeoutError names the key",
        seen=repr(text)[:200],
        look="the text of the exception",
    )
    with SilentServer(farm.host, farm.port, nobody) as late:
        late.offer()
        known = rpc.connect_tracker(farm.host, farm.port).summary()["queue_info"][nobody]
        expect(
            known["free"] == 1,
            expected="after the TimeoutError, a worker that comes later is free for others",
            seen="the tracker gave it to the request that was given up",
            look="tracker.close(), in a finally",
        )


@functools.cache
def _library(rows: int, columns: int, *, turned: bool = False) -> str:
    """A shared library whose main(X, Y, Z) is Z = 2 X + Y.

    `turned`: whose main(X, Y, V, Z) is Z = 2 X + Y - V, transposed, of shape
    (1, columns, 1, rows, 1).
    """
    from tvm import te

    X, Y, V = (te.placeholder((rows, columns), name=name) for name in "XYV")
    if turned:
        Z = te.compute(
            (1, columns, 1, rows, 1),
            lambda a, j, b, i, c: 2 * X[i, j] + Y[i, j] - V[i, j],
            name="Z",
        )
    else:
        Z = te.compute((rows, columns), lambda i, j: 2 * X[i, j] + Y[i, j], name="Z")
    return _exported([X, Y, V, Z] if turned else [X, Y, Z])


def _library_of(shapes: tuple[tuple[int, ...], ...]) -> str:
    """A shared library whose main takes rows of 3 and numbers, and writes to (3, 1).

    The result is the first, twice the second, three times the third and so on, added up. Where a
    number is among them, main does not look at shapes: NumPy's ascontiguousarray makes (1,) of ().
    """
    import tvm
    from tvm import te

    inputs = [te.placeholder(shape, name=f"X{at}") for at, shape in enumerate(shapes)]

    def added(j: Any, i: Any) -> Any:
        return sum(
            (at + 1) * (each[i, j] if each.shape else each()) for at, each in enumerate(inputs)
        )

    with tvm.transform.PassContext(config={"tirx.disable_assert": () in shapes}):
        return _exported([*inputs, te.compute((3, 1), added, name="Z")])


_IN_PLACE = """@T.prim_func(s_tir=True)
def main(X: T.Buffer((2, 3), "float32"), Y: T.Buffer((2, 3), "float32")):
    for i, j in T.grid(2, 3):
        Y[i, j] = 2 * X[i, j]
        X[i, j] = X[i, j] + 1
"""


@functools.cache
def _library_in_place() -> str:
    """A shared library whose main(X, Y) is Y = 2 X, and then X = X + 1, both of shape (2, 3)."""
    import tvm

    return _library_with(tvm.script.from_source(_IN_PLACE))


def _exported(tensors: Sequence[Any]) -> str:
    """A shared library whose main takes these tensors."""
    from tvm import te

    return _library_with(te.create_prim_func(tensors))


def _library_with(function: Any) -> str:
    """A shared library whose main is this PrimFunc."""
    import tvm

    folder = tempfile.mkdtemp()
    atexit.register(_remove, folder)
    file = f"{folder}/twice.so"
    function = function.with_attr("global_symbol", "main")
    tvm.compile(function, target=host_target()).mod.export_library(file)
    return file


def _remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _session() -> Iterator[Any]:
    """A session of the farm's worker; its last reference must be dropped by the caller."""
    from tvm import rpc

    farm = _farm()
    yield rpc.connect_tracker(farm.host, farm.port).request(farm.key, session_timeout=60)


def _demonstrate_remotely(measure_remotely: Function) -> str:
    x, y = np.arange(6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")
    with _session() as session:
        output, seconds = measure_remotely(
            session, _library(2, 3), [x, y], (2, 3), number=3, repeats=4
        )
    return f"2 X + Y: {output.tolist()}, {len(seconds)} times"


@PHASE.exercise(
    "measure_remotely",
    engine=CURRENT,
    title="run a compiled function on a worker, verify and time it there",
    hints=(
        "Use a function on the worker like a local one: load it, make tensors, call it, time it "
        "with time_evaluator. But send the file first, and use the worker's device.",
        "session.upload(library) sends it, session.load_module(Path(library).name) loads it there, "
        "session.cpu() is the device: tvm.runtime.tensor(array, device) copies to it.",
        "output = tvm.runtime.empty(shape, 'float32', device); module['main'](*tensors, output); "
        "output.numpy() copies back. module.time_evaluator('main', device, number=number, "
        "repeat=repeats)(*tensors, output).results are the seconds.",
    ),
    looks_like="""
        2 X + Y: [[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]], 4 times
    """,
    demonstrate=_demonstrate_remotely,
)
def check_measure_remotely(measure_remotely: Function) -> None:
    # Functions of their own: no reference to a session is left.
    _expect_measured(measure_remotely)
    _expect_first_output(measure_remotely)
    gc.collect()
    row, number = (1, 3), ()
    for shapes in ((row,), (row, row, number, row, row, row)):
        _expect_inputs(measure_remotely, shapes)
        gc.collect()
    with _sent() as library:
        shutil.copy(_library(1, 1), library)
        numbers = np.array([[[-3.5]], [[0.25]]], "float32")
        with _session() as session:
            output, seconds = measure_remotely(
                session, str(library), [*numbers], (1, 1), number=1, repeats=1
            )
    expect(
        isinstance(seconds, np.ndarray) and seconds.shape == (1,),
        expected="of a single sample an array of seconds of shape (1,)",
        seen=f"{type(seconds).__name__} of shape {np.shape(seconds)}",
        look="np.array of the list .results, however long it is",
    )
    look = "the arguments of main, and the output's shape"
    expect_close(output, np.array([[-6.75]]), what="the output of single numbers", look=look)


def _expect_inputs(measure_remotely: Function, shapes: tuple[tuple[int, ...], ...]) -> None:
    """The output for inputs of these shapes, which is of another shape than they."""
    rng, library, count = fresh_rng(), _library_of(shapes), len(shapes)
    given = [np.asarray(rng.standard_normal(each), "float32") for each in shapes]
    what = f"the output (3, 1) of {count} inputs (1, 3)" + ", one of them ()" * (() in shapes)
    look = "the arguments of main, and `shape`"
    with _session() as session, _calls_of_main(count + 1):
        try:
            output, _ = measure_remotely(session, library, given, (3, 1), number=1, repeats=1)
        except RuntimeError as error:
            raise fail(what, " ".join(str(error).split())[-200:], look) from None
    rows = [(at + 1) * np.broadcast_to(each, (1, 3)) for at, each in enumerate(given)]
    want = np.sum(rows, axis=0).T
    expect_close(output, want, what=what, look=look)


def _expect_first_output(measure_remotely: Function) -> None:
    """The output is that of the first call, before the calls that are timed."""
    x = fresh_rng().standard_normal((2, 3), dtype="float32")
    with _session() as session:
        output, _ = measure_remotely(session, _library_in_place(), [x], (2, 3), number=2, repeats=3)
    expect_close(
        output,
        2 * x,
        what="the output of the first call, of a main that then adds 1 to its input,",
        look='the order: module["main"], then output.numpy(), and only then the time: '
        "time_evaluator calls main as well, on the same tensors",
    )


def _expect_measured(measure_remotely: Function) -> None:
    """The output and the times of one call, after another call in an earlier session."""
    rows, columns, number = 13, 29, *draw_distinct(1, [3, 4, 5, 6])
    repeats = int(fresh_rng().integers(20, 60))
    others, (x, y, v) = fresh_rng().standard_normal((2, 3, rows, columns), dtype="float32")
    shape = 1, columns, 1, rows, 1
    with _sent() as library:
        shutil.copy(_library(rows, columns, turned=True), library)
        with _session() as session:  # other inputs, in a session before
            measure_remotely(session, str(library), [*others], shape, number=1, repeats=1)
        del session
        gc.collect()
        with (
            _session() as session,
            _evaluators() as (evaluators, measured),
            _calls_of_main() as calls,
            _sent_once(session, library) as upload,
        ):
            answer = measure_remotely(
                session,
                str(library),
                [np.asfortranarray(x), y, np.repeat(v, 2, 1)[:, ::2]],  # however they are in memory
                shape,
                number=number,
                repeats=repeats,
            )
    expect(
        isinstance(answer, tuple) and len(answer) == 2,
        expected="measure_remotely returns the output and the seconds",
        seen=type(answer).__name__,
        look="the return statement",
    )
    output, seconds = answer
    want = (2 * x + y - v).T.reshape(shape)
    look = (
        "the arguments of main: those of this call, not of an earlier one; and when the output is "
        "read: .numpy() after main has run"
    )
    expect_close(output, want, what="the output", look=look)
    dtype = str(getattr(output, "dtype", type(output).__name__))
    expect(
        dtype == "float32",
        expected="the output in float32, as the function writes it",
        seen=dtype,
        look="the return statement: output.numpy() as it is",
    )
    _expect_uploaded(upload, library)
    expect(
        len(measured) > 0,
        expected="time_evaluator times the function, with its loop on the worker",
        seen="no time_evaluator: a clock here times the network as well",
        look="module.time_evaluator",
    )
    device = evaluators[-1][0]
    expect(
        device.dlpack_device_type() >= 128,
        expected="time_evaluator is given the session's device",
        seen=f"{device}, of this process",
        look="session.cpu()",
    )
    _expect_samples(seconds, evaluators[-1][1:], (number, repeats), measured[-1].results)
    expect(
        len(calls) == 1,
        expected="main called once for the output, before time_evaluator calls it for the time",
        seen=f"{number_of(len(calls), 'call')}" if calls else "time_evaluator alone called it",
        look='module["main"](*tensors, output)',
    )


def _expect_uploaded(upload: mock.Mock, library: Path) -> None:
    """The library was sent to the worker, under its own name."""
    expect(
        upload.call_count > 0,
        expected="the library is sent to the worker, and runs on the worker",
        seen="nothing was uploaded: it ran in this process",
        look="session.upload and session.load_module",
    )
    given = [*upload.call_args.args[1:2], *upload.call_args.kwargs.values()]
    names = {Path(str(each)).name for each in given if each is not None}
    expect(
        names <= {library.name},
        expected=f"the library on the worker under its own name, {library.name}",
        seen=", ".join(sorted(names)),
        look="session.upload(library): of two libraries of one name, a worker loads the first",
    )


def _expect_samples(
    seconds: Any, seen: tuple[int, int, float], wanted: tuple[int, int], measured: Any
) -> None:
    """The seconds are those that time_evaluator measured, with (number, repeats) as `wanted`."""
    (seen_number, seen_repeats, at_least_ms), (number, repeats) = seen, wanted
    expect(
        at_least_ms == 0,
        expected=f"samples of {number} calls, however long they take",
        seen=f"min_repeat_ms={at_least_ms:g}, for which time_evaluator makes more calls",
        look="the arguments of time_evaluator",
    )
    expect(
        (seen_number, seen_repeats) == wanted
        and isinstance(seconds, np.ndarray)
        and np.shape(seconds) == (repeats,)
        and bool(np.all(np.asarray(seconds) > 0)),
        expected=f"{repeats} samples of {number} calls, an array of seconds of shape ({repeats},)",
        seen=f"number={seen_number}, repeat={seen_repeats}, {type(seconds).__name__} of shape "
        f"{np.shape(seconds)}",
        look="number and repeat of time_evaluator, and np.array of its result's .results",
    )
    expect_close(
        seconds,
        np.array(measured),
        what="the seconds",
        whose="time_evaluator",
        look=".results as they are: seconds of one call, in their order",
        atol=1e-12,
    )


@contextmanager
def _sent() -> Iterator[Path]:
    """The path of a library to be sent."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / f"Sent.{uuid.uuid4().hex}.V2.so"


@contextmanager
def _sent_once(session: Any, library: Path) -> Iterator[mock.Mock]:
    """In this context, the session's upload, after which the file is on the worker alone."""
    plain = session.upload

    def once(*given: Any, **named: Any) -> None:
        plain(*given, **named)
        library.unlink()

    with mock.patch.object(session, "upload", mock.Mock(side_effect=once)) as upload:
        try:
            yield upload
        except Exception as error:
            if str(library) not in str(error):
                raise
            raise fail(
                f"the library loaded on the worker, where it is called {library.name}",
                str(error).strip().splitlines()[-1][:200],
                "session.load_module: the worker knows the file's name, not its folders",
            ) from None


@contextmanager
def _calls_of_main(wanted: int | None = None) -> Iterator[list[Any]]:
    """In this context, the arguments of each call of a module's main; not those of an evaluator.

    `wanted`: how many these have to be.
    """
    import tvm

    calls: list[Any] = []
    plain = tvm.runtime.Module.get_function

    def get_function(self: Any, name: str, *given: Any, **named: Any) -> Any:
        function = plain(self, name, *given, **named)

        def called(*arguments: Any) -> Any:
            calls.append(arguments)
            expect(
                wanted is None or len(arguments) == wanted,
                expected=f"main called with {wanted} tensors: every input, and the output",
                seen=f"{len(arguments)}",
                look="the list of tensors: an input of shape () is one, too",
            )
            return function(*arguments)

        return called if name == "main" else function

    with mock.patch.object(tvm.runtime.Module, "get_function", get_function):
        yield calls


@contextmanager
def _evaluators() -> Iterator[tuple[list[tuple[Any, int, int, float]], list[Any]]]:
    """In this context, (device, number, repeat, min_repeat_ms) of each time_evaluator.

    And what they measured.
    """
    import tvm

    made: list[tuple[Any, int, int, float]] = []
    measured: list[Any] = []
    plain = tvm.runtime.Module.time_evaluator

    def evaluator(self: Any, func_name: str, dev: Any, number: int = 10, repeat: int = 1,
                  min_repeat_ms: float = 0, **options: Any) -> Any:  # fmt: skip
        made.append((dev, number, repeat, min_repeat_ms))
        evaluate = plain(self, func_name, dev, number, repeat, min_repeat_ms, **options)

        def evaluated(*given: Any) -> Any:
            measured.append(evaluate(*given))
            return measured[-1]

        return evaluated

    with mock.patch.object(tvm.runtime.Module, "time_evaluator", evaluator):
        yield made, measured


def _pool_here(made: list[Any]) -> Any:
    """TVM's pool, its functions called in this process: no process is started."""
    from tvm.support.popen_pool import PopenPoolExecutor

    class Here(PopenPoolExecutor):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any):
            super().__init__(*given, **named)
            made.append(self)

        def _worker_run(self, fn: Function, args: Any, kwargs: Any) -> Any:
            return fn(*args, **kwargs)

    return Here


@contextmanager
def _pools_here() -> Iterator[list[Any]]:
    """In this context, the pools that are made; what they run, they run in this process."""
    from tvm.s_tir.meta_schedule.runner import rpc_runner as module
    from tvm.support import popen_pool

    made: list[Any] = []
    here = _pool_here(made)
    with (
        mock.patch.object(module, "PopenPoolExecutor", here),
        mock.patch.object(popen_pool, "PopenPoolExecutor", here),
    ):
        yield made


def a_trial(rows: int, columns: int) -> Any:
    from tvm.s_tir.meta_schedule.arg_info import TensorInfo
    from tvm.s_tir.meta_schedule.runner import RunnerInput

    infos = [TensorInfo("float32", [rows, columns]) for _ in range(3)]
    return RunnerInput(_library(rows, columns), "cpu", infos)


def _demonstrate_runner(rpc_runner: Function) -> str:
    farm = _farm()
    with _pools_here():
        runner = rpc_runner(
            farm.host, farm.port, farm.key, workers=2, session_seconds=20, trial_seconds=30
        )
        results = [each.result() for each in runner.run([a_trial(2, 3)] * 2)]
        runner.pool.shutdown()
    times = [f"{len(each.run_secs)} times" for each in results]
    return f"2 trials: {', '.join(times)}; a trial is given up after {runner.pool._timeout} s"


@PHASE.exercise(
    "rpc_runner",
    engine=CURRENT,
    title="MetaSchedule's runner on a farm, with its time limits",
    hints=(
        "ms.runner has RPCConfig (where the tracker is), EvaluatorConfig (how to time) and "
        "RPCRunner, which takes both, max_workers and initializer.",
        "ms.runner.RPCConfig(host, port, key, session_timeout_sec=session_seconds) sets the limit "
        "that the worker enforces. Only the pool can limit the waits on the tuner's side, and "
        "runner.pool is made without a timeout.",
        "runner.pool.shutdown(); runner.pool = PopenPoolExecutor(workers, timeout=trial_seconds, "
        "initializer=end_with_parent), from tvm.support.popen_pool.",
    ),
    looks_like="""
        2 trials: 3 times, 3 times; a trial is given up after 30 s
    """,
    demonstrate=_demonstrate_runner,
)
def check_rpc_runner(rpc_runner: Function) -> None:
    from tvm.s_tir import meta_schedule as ms

    farm = _farm()
    # More than this machine has cores, and no whole number of seconds.
    workers = (os.cpu_count() or 1) + int(fresh_rng().integers(1, 5))
    session, trial = (each + 0.5 for each in draw_distinct(2, range(20, 60)))
    with _pools_here() as pools:
        runner = rpc_runner(
            *(farm.host, farm.port, farm.key),
            workers=workers, session_seconds=session, trial_seconds=trial,
        )  # fmt: skip
        expect(
            isinstance(runner, ms.runner.RPCRunner),
            expected="rpc_runner returns an RPCRunner",
            seen=type(runner).__name__,
            look="the return statement",
        )
        _expect_configured(runner, session, (farm.host, farm.port, farm.key))
        _expect_pool(runner.pool, workers, trial)
        expect(
            all(each._shutdown for each in pools if each is not runner.pool),
            expected="the pool that is replaced is shut down",
            seen="it is left to the garbage collector, in which its threads can block",
            look="runner.pool.shutdown(), before the assignment",
        )
        [result] = [each.result() for each in runner.run([a_trial(5, 7)])]
        runner.pool.shutdown()
    expect(
        result.error_msg is None and len(result.run_secs) == 3,
        expected="a trial sent to the farm is measured 3 times",
        seen=str(result.error_msg)[-300:],
        look="further arguments of RPCRunner",
    )
    others = ((1, 1, 7.25, 90.0), (2, 70, 100.0, 3.5), (1, 2, 5.0, 5.0))  # the first tracker again
    for number, workers, session, trial in others:
        tracker = f"tracker-{number}", farm.port + number, f"other_{number}"
        runner = rpc_runner(*tracker, workers=workers, session_seconds=session, trial_seconds=trial)
        _expect_configured(runner, session, tracker)
        _expect_pool(runner.pool, workers, trial)
        runner.pool.shutdown()


def _expect_configured(runner: Any, session: float, tracker: tuple[str, int, str]) -> None:
    """The runner knows its workers, when they end a session, and how to time."""
    remote, timing = runner.rpc_config, runner.evaluator_config
    host, port, key = tracker
    expect(
        (remote.tracker_host, remote.tracker_port, remote.tracker_key) == tracker,
        expected=f"workers of key {key!r} at {host}:{port}",
        seen=f"{remote.tracker_key!r} at {remote.tracker_host}:{remote.tracker_port}",
        look="the order of RPCConfig's fields: host, port, key",
    )
    expect(
        remote.session_timeout_sec == session,
        expected=f"the worker ends a session after session_seconds, {session}",
        seen=f"session_timeout_sec={remote.session_timeout_sec}",
        look="RPCConfig(..., session_timeout_sec=session_seconds)",
    )
    expect(
        (timing.number, timing.repeat, timing.min_repeat_ms) == (1, 3, 20)
        and not timing.enable_cpu_cache_flush,
        expected="number=1, repeat=3, min_repeat_ms=20, and nothing else",
        seen=f"{timing.number}, {timing.repeat}, {timing.min_repeat_ms}"
        + ", enable_cpu_cache_flush" * bool(timing.enable_cpu_cache_flush),
        look="EvaluatorConfig",
    )


def _expect_pool(pool: Any, workers: int, trial: float) -> None:
    """The runner's processes are as many as the workers, have a limit, and end with this one."""
    at_a_time = pool._threadpool._max_workers
    expect(
        at_a_time == workers,
        expected=f"{workers} trials at a time, one for each worker",
        seen=f"{at_a_time} at a time" + (": the others idle" if at_a_time < workers else ""),
        look="max_workers of RPCRunner, and of the pool that replaces its own",
    )
    expect(
        pool._timeout == trial,
        expected=f"a trial is given up after trial_seconds, {trial}, whatever it is waiting for",
        seen="no limit: one worker that falls silent, and the tuner waits for ever"
        if pool._timeout is None
        else f"{pool._timeout} s",
        look="runner.pool = PopenPoolExecutor(workers, timeout=trial_seconds, ...)",
    )
    expect(
        _ends_with_parent(pool),
        expected="the pool's processes end when this process ends",
        seen=f"initializer={pool._initializer}",
        look="initializer=end_with_parent, of the pool that runs the trials",
    )


def _ends_with_parent(pool: Any) -> bool:
    """Whether the initializer is `end_with_parent`, or calls it."""
    from tvm_practice.engines.orphans import end_with_parent

    if pool._initializer in (None, end_with_parent):
        return pool._initializer is end_with_parent
    started: list[str] = []

    def start(thread: threading.Thread) -> None:
        started.append(thread.name)

    with mock.patch.object(threading.Thread, "start", start):
        pool._initializer(*pool._initargs)
    return "end-with-parent" in started


class _Trial(int):
    """A number with the attributes of a RunnerInput."""

    artifact_path, device_type, args_info = "trial.tar", "cpu", ()


def _trials(numbers: Iterable[int]) -> list[_Trial]:
    return [_Trial(each) for each in numbers]


class _Scripted:
    """A runner whose trials are numbers; `losing` says how often the worker of each is lost.

    Attributes:
        runs: how often each trial was sent out.
        rounds: the trials of each call of `run`.
    """

    LOST = (
        "Connection reset by peer", "Broken pipe", "Timeout, killed after 30 seconds",
        "Cannot request cpu after 1 retry", "Connection refused",
    )  # fmt: skip
    WRONG = "RPCRunner: An exception occurred\nRPCSessionTimeoutError: Your 20s session has expired"

    def __init__(self, losing: Sequence[int], *, wrong: Sequence[int] = ()):
        self._losing = list(losing)
        self._wrong = set(wrong)
        self.runs = [0] * len(losing)
        self.rounds: list[list[int]] = []

    def run(self, inputs: Sequence[int]) -> list[Any]:
        self.rounds.append(list(inputs))
        return [_Future(functools.partial(self._measure, each)) for each in inputs]

    def _measure(self, trial: int) -> Any:
        from tvm.s_tir.meta_schedule.runner import RunnerResult

        self.runs[trial] += 1
        if trial in self._wrong:
            return RunnerResult(None, self.WRONG)
        if self.runs[trial] <= self._losing[trial]:
            how = self.LOST[(trial + self.runs[trial]) % len(self.LOST)]
            text = f"RPCRunner: An exception occurred\n{how} (run {self.runs[trial]})"
            return RunnerResult(None, text)
        return RunnerResult([float(trial + 1)], None)


class _Future:
    def __init__(self, measure: Callable[[], Any]):
        self._measure = measure
        self._result: Any = None

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        if self._result is None:
            self._result = self._measure()
        return self._result


def _show_results(results: Sequence[Any]) -> str:
    return " ".join(
        "failed" if each is None or each.error_msg else f"{float(each.run_secs[0]):g}"
        for each in results
    )


def _demonstrate_survive(survive_lost_worker: Function) -> str:
    runner = _Scripted([0, 1, 0, 5], wrong=[2])
    results = survive_lost_worker(runner, _trials([0, 1, 2, 3]), attempts=3)
    sent = "\n".join(f"sent: {each}" for each in runner.rounds)
    return f"{sent}\nresults: {_show_results(results)}"


@PHASE.exercise(
    "survive_lost_worker",
    engine=CURRENT,
    title="run trials again after they lost their worker",
    hints=(
        "Keep a list of results and a list of the trials that are left, all of them at first. "
        "Each attempt runs the trials that are left and keeps the results.",
        "futures = runner.run([...]) sends all; then result() of each. Those with "
        "is_lost(result.error_msg) are left for the next attempt.",
        "Keep indexes, not trials: results[index] = future.result() puts each where it belongs. "
        "Stop when nothing is left, or after `attempts`.",
    ),
    looks_like="""
        sent: [0, 1, 2, 3]
        sent: [1, 3]
        sent: [3]
        results: 1 2 failed failed
    """,
    demonstrate=_demonstrate_survive,
)
def check_survive_lost_worker(survive_lost_worker: Function) -> None:
    rng = fresh_rng()
    count = int(rng.integers(7, 12))
    # Not the last: what is put at the end, being run again, would be where it belongs.
    lost, twice, wrong, hopeless = (int(each) for each in rng.choice(count - 1, 4, replace=False))
    losing = [0] * count
    losing[lost], losing[twice], losing[hopeless] = 1, 2, 99
    runner = _Scripted(losing, wrong=[wrong])
    order = [int(each) for each in rng.permutation(count)]  # a trial is not its place
    given = _trials(order)
    results = survive_lost_worker(runner, given, attempts=3)
    expect(
        given == order,
        expected="the list of trials as it was",
        seen=f"of {count} trials {len(given)}, {'fewer' if len(given) < count else 'reordered'}",
        look="statements that remove from `inputs` or sort it: change a copy",
    )
    expect(
        isinstance(results, Sequence) and len(results) == count,
        expected=f"a list of {count} results, one per trial",
        seen=f"{type(results).__name__} of {len(results)}"
        if isinstance(results, Sequence)
        else type(results).__name__,
        look="the return statement",
    )
    expect(
        len(runner.rounds[0]) == count,
        expected=f"all {count} trials are sent out before a result is waited for",
        seen=f"{len(runner.rounds[0])} were: the other workers idle",
        look="runner.run with all trials that are left, then result() of each future",
    )
    expect(
        runner.runs[wrong] == 1,
        expected="a trial that failed by its own fault is run once",
        seen=f"run {number_of(runner.runs[wrong], 'time')}; its error: "
        f"{_Scripted.WRONG.splitlines()[-1]}",
        look="is_lost(result.error_msg)",
    )
    expect(
        runner.runs[hopeless] <= 3,
        expected="a trial that loses every worker is given up after 3 attempts",
        seen=f"it was run {number_of(runner.runs[hopeless], 'time')}"
        + (": it crashes what it is sent to" if runner.runs[hopeless] > 4 else ""),
        look="the number of attempts in the loop",
    )
    expect(
        (runner.runs[lost], runner.runs[twice], runner.runs[hopeless]) == (2, 3, 3),
        expected="a trial whose worker was lost is run again, up to 3 times in all",
        seen=f"lost once: run {number_of(runner.runs[lost], 'time')}; lost twice: "
        f"{runner.runs[twice]}; lost each time: {runner.runs[hopeless]}",
        look="the trials that are left for the next attempt",
    )
    _expect_no_more_than_needed(runner, [each for each in range(count) if losing[each] == 0])
    _expect_results_in_order(results, order, wrong, hopeless)
    _expect_attempts_counted(survive_lost_worker)
    _expect_a_result_each(survive_lost_worker)
    many = int(rng.integers(60, 90))
    runner = _Scripted([int(each) for each in rng.integers(0, 2, many)])
    survive_lost_worker(runner, _trials(range(many)), attempts=2)
    expect(
        runner.runs == [1 + each for each in runner._losing],
        expected=f"of {many} trials the lost ones run twice, all others once",
        seen=f"{sum(runner.runs)} runs, where {many + sum(runner._losing)} are needed",
        look="the trials that are given to runner.run, in its first call and in the next",
    )


def _expect_results_in_order(
    results: Sequence[Any], order: Sequence[int], wrong: int, hopeless: int
) -> None:
    wanted = " ".join("failed" if index in (wrong, hopeless) else str(index + 1) for index in order)
    expect(
        _show_results(results) == wanted,
        expected=f"each trial's last result, in the order of the inputs: {wanted}",
        seen=_show_results(results),
        look="the place of a result: the trial's index, not its place among those left",
    )
    last = str(results[order.index(hopeless)].error_msg)
    expect(
        last.endswith("(run 3)"),
        expected="of a trial that loses every worker, the result of its last run",
        seen=last.splitlines()[-1],
        look="the result kept when a trial fails again",
    )


def _expect_no_more_than_needed(runner: _Scripted, never_lost: Sequence[int]) -> None:
    rounds = [each for each in runner.rounds if each]
    expect(
        len(rounds) <= 3,
        expected="the lost trials run again together, in 2 more calls of runner.run",
        seen=f"{len(rounds) - 1} more calls: the other workers idle",
        look="one call of runner.run with all trials that are left",
    )
    sent = [sum(each.count(index) for each in rounds) for index in range(len(runner.runs))]
    again = [index for index, times in enumerate(sent) if times > runner.runs[index]]
    expect(
        not again,
        expected="only the trials that lost their workers sent out again",
        seen=f"{len(again)} others as well, whose results were not looked at",
        look="the list given to runner.run: the trials that are left",
    )
    expect(
        all(runner.runs[index] == 1 for index in never_lost),
        expected="a trial that was measured is not run again",
        seen=f"{sum(runner.runs[index] for index in never_lost)} runs of {len(never_lost)} such "
        "trials",
        look="the trials that are left for the next attempt",
    )


def _expect_a_result_each(survive_lost_worker: Function) -> None:
    """A trial that is given twice is run twice, and each has its result."""
    first, second = _trials([0, 1])
    runner = _Scripted([0, 0])
    one, other, again = survive_lost_worker(runner, [first, second, first], attempts=2)
    expect(
        runner.runs == [2, 1] and one is not again and float(other.run_secs[0]) == 2,
        expected="of a trial that is given twice the results of two runs",
        seen=f"{runner.runs[0]} runs, and {'one result' if one is again else 'two results'}",
        look="results by the trial's place in the list, not by the trial",
    )
    runner = _Scripted([2, 0])
    results = survive_lost_worker(runner, [first, second, first], attempts=2)
    lost = sum(each.run_secs is None for each in results)
    expect(
        runner.runs == [4, 1] and not lost,
        expected="a trial that is given twice, and lost twice, is run again for both places",
        seen=f"{runner.runs[0]} runs; {lost} of 3 results are those of a lost worker",
        look="the places in the list that are left, not the trials",
    )


def _expect_attempts_counted(survive_lost_worker: Function) -> None:
    for attempts in (1, 5, int(fresh_rng().integers(12, 60))):
        runner = _Scripted([0, 999])
        survive_lost_worker(runner, _trials([1, 0]), attempts=attempts)
        expect(
            runner.runs == [1, attempts],
            expected=f"with attempts={attempts} a trial whose worker is always lost is run "
            f"{attempts} times, the other one once",
            seen=f"{runner.runs[1]} and {number_of(runner.runs[0], 'time')}",
            look="`attempts`: the most runs of a trial, including the first",
        )
    for count in (1, 3, int(fresh_rng().integers(8, 16))):
        runner = _Scripted([2] * count)
        order = [int(each) for each in fresh_rng().permutation(count)]
        results = survive_lost_worker(runner, _trials(order), attempts=4)
        wanted = " ".join(str(each + 1) for each in order)
        expect(
            runner.runs == [3] * count and _show_results(results) == wanted,
            expected=f"trials that all lose their workers twice, {count} of them, run a third "
            "time, which succeeds",
            seen=f"{', '.join(map(str, runner.runs))} runs, results {_show_results(results)}",
            look="when to stop: when no trial is left, or after `attempts`. A round that measured "
            "nothing says nothing about the next",
        )
    expect(
        list(survive_lost_worker(_Scripted([]), [], attempts=3)) == [],
        expected="an empty list of results for no trials",
        seen="something else",
        look="the case in which there is nothing to run",
    )


_QUIET = {"search": 1e-9, "build": 1e-9, "request": 1e-9, "upload": 1e-9, "run": 1e-9}


def _stages(**given: float) -> Any:
    """Stages that take no time, but for those given."""
    from tvm_practice.farm.stages import Stages

    return Stages(**{**_QUIET, "batch": 16, "builders": 2, **given})  # type: ignore[arg-type]


def _drawn_stages() -> Iterator[tuple[dict[str, float], int]]:
    """Stages of all sizes, one of which may be free, and workers about as many as the trials."""
    rng = fresh_rng()
    for at in range(120):
        batch = int(10 ** rng.uniform(0, 4))
        seconds = {
            name: float(10 ** rng.uniform(-3, 2))
            for name in ("search", "build", "request", "upload", "run")
        }
        if at % 3 == 0:
            seconds[str(rng.choice(list(seconds)))] = 0.01
        elif at % 3 == 1:  # a farm that is fast at everything
            seconds = {name: each * 1e-4 for name, each in seconds.items()}
        near = (1, 2, batch, max(1, batch - 1), batch + 1, -(-batch // 2), 3 * batch)
        workers = int(rng.choice(near)) if at % 2 else int(10 ** rng.uniform(0, 4))
        yield {**seconds, "batch": batch, "builders": int(10 ** rng.uniform(0, 2.5))}, workers


def _round_rate(stages: Any, workers: int) -> float:
    waves = math.ceil(stages.batch / workers)
    running = max(waves * stages.run, stages.batch * max(stages.request, stages.upload))
    building = stages.batch * stages.build / stages.builders
    return float(stages.batch / (stages.search + building + running))


_TEXT = {"search": 1.0, "build": 0.5, "request": 0.001, "upload": 0.002, "run": 0.25}


@PHASE.exercise(
    "throughput",
    engine=CURRENT,
    title="trials per second of a search that goes round by round",
    hints=(
        "A round is search, building and running, one after the other. Work out the seconds that "
        "each takes for the whole round.",
        "Building: batch · build / builders. Running: the waves are batch / workers, rounded up, "
        "each of `run` seconds.",
        "Running is the largest of waves · run, batch · request and batch · upload, since those "
        "happen during the waves; return batch / (search + building + running).",
    ),
    looks_like="""
        1 worker: 1.78; 10: 2.91; 16: 3.05; 100: 3.05
    """,
    demonstrate=lambda throughput: "1 worker: {:.2f}; 10: {:.2f}; 16: {:.2f}; 100: {:.2f}".format(
        *(throughput(_stages(**_TEXT), workers) for workers in (1, 10, 16, 100))
    ),
)
def check_throughput(throughput: Function) -> None:
    seconds = float(fresh_rng().uniform(0.2, 0.9))
    cases: tuple[tuple[dict[str, float], int, str], ...] = (
        ({"search": seconds}, 3, "trials of a round over its seconds: search takes its own once "
         "per round"),
        ({"build": seconds}, 3, "batch · build / builders: they compile at the same time"),
        ({"run": seconds}, 16, "with as many workers as trials there is one wave"),
        ({"run": seconds}, 7, "waves are rounded up: 16 trials on 7 workers take three"),
        ({"batch": 4001, "run": seconds}, 4000, "waves are rounded up: a last trial is one more"),
        ({"run": seconds}, 40, "workers without a trial do not help: there is at least one wave"),
        ({"upload": seconds}, 40, "uploads come one after the other, batch · upload"),
        ({"request": seconds}, 40, "the tracker serves one trial after the other"),
        ({"request": seconds, "upload": seconds / 2}, 40, "the tracker and the network each serve "
         "one trial at a time, side by side: the longer of the two counts, not the sum"),
        ({"run": seconds, "upload": seconds / 4}, 4, "uploads go on during the waves: the longer "
         "of the two counts, not the sum"),
        ({"run": seconds, "request": seconds / 8}, 4, "the tracker serves during the waves: the "
         "longer of the two counts, not the sum"),
        ({"search": 1.0, "build": 0.5, "run": seconds}, 5, "search, building and running follow "
         "each other: add their seconds"),
        ({"batch": 21, "builders": 5, "build": seconds, "run": 1.0}, 6, "batch and builders are "
         "those of `stages`: 21 trials on 6 workers take four waves"),
        ({"batch": 200, "builders": 64, "build": seconds, "run": 0.1}, 128, "as many builders and "
         "workers as there are"),
        ({"batch": 7, "builders": 3, "search": seconds, "upload": 0.01}, 9, "batch is that of "
         "`stages`: trials of a round over its seconds"),
    )  # fmt: skip
    drawn = (
        (given, workers, "the same formula for all numbers") for given, workers in _drawn_stages()
    )
    for given, workers, look in itertools.chain(cases, drawn):
        stages = _stages(**given)
        got, want = throughput(stages, workers), _round_rate(stages, workers)
        shown = ", ".join(f"{name} {value:.3g} s" for name, value in given.items())
        expect(
            isinstance(got, (int, float)) and math.isclose(got, want, rel_tol=1e-4),
            expected=f"{want:.4g} trials/s: {shown}, all else 0 s, rounds of {stages.batch}, "
            f"{stages.builders} builders, {workers} workers",
            seen=f"{got:.4g}" if isinstance(got, (int, float)) else repr(got),
            look=look,
        )


def _show_prediction(rows: Sequence[Any]) -> str:
    return "\n".join(f"{count} workers: {rate:.2f}, {name}" for count, rate, name in rows)


@PHASE.exercise(
    "predict",
    engine=CURRENT,
    title="what bounds a farm of 1, 10 and 100 workers",
    hints=(
        "Make a dictionary from each resource's name to the trials per second that it alone "
        "would allow; the smallest entry is the bound.",
        "builders / build, batch / search, 1 / request and 1 / upload do not depend on the "
        "workers. Of the workers, those beyond `batch` have no trial.",
        'min(count, stages.batch) / stages.run is "workers"; name = min(rates, key=rates.get); '
        "append (count, rates[name], name).",
    ),
    looks_like="""
        1 workers: 1.00, workers
        10 workers: 10.00, workers
        100 workers: 12.50, build
    """,
    demonstrate=lambda predict: _show_prediction(
        predict(_stages(search=1, build=0.16, request=0.001, upload=0.01, run=1), [1, 10, 100])
    ),
)
def check_predict(predict: Function) -> None:
    seconds = float(fresh_rng().uniform(0.2, 0.9))
    expect(
        _rows(predict(_stages(run=seconds), []), 0) == [],
        expected="an empty list for no counts",
        seen="something else",
        look="a row for each count",
    )
    _expect_each_bound(predict, seconds)
    _expect_smallest_rate(predict)
    _expect_a_row_per_count(predict, seconds)


def _expect_each_bound(predict: Function, seconds: float) -> None:
    """Each resource is named, with its rate, where it alone is slow; a run takes `seconds`."""
    cases: tuple[tuple[str, dict[str, float], int, float, str], ...] = (
        ("workers", {"run": seconds, "build": seconds / 10}, 5, 5 / seconds, "workers / run"),
        ("workers", {"run": seconds}, 100, 16 / seconds, "a round of 16 has no trial for a 17th "
         "worker: min(workers, batch) / run"),
        ("build", {"run": seconds, "build": seconds}, 10, 2 / seconds, "builders / build"),
        ("search", {"run": seconds, "search": 32 * seconds}, 10, 0.5 / seconds, "batch / search"),
        ("upload", {"run": seconds, "upload": seconds / 4}, 10, 4 / seconds, "1 / upload"),
        ("tracker", {"run": seconds, "request": seconds / 4}, 10, 4 / seconds, "1 / request"),
        ("build", {"build": seconds, "builders": 5}, 10, 5 / seconds, "builders of `stages`"),
        ("build", {"build": seconds, "builders": 30}, 40, 30 / seconds, "builders / build: rounds "
         "overlap"),
        ("build", {"build": seconds, "builders": 7}, 3, 7 / seconds, "builders / build, whatever "
         "the number of workers"),
        ("search", {"search": seconds, "batch": 9}, 10, 9 / seconds, "batch of `stages`"),
        ("workers", {"run": seconds, "batch": 9}, 30, 9 / seconds, "batch of `stages`"),
    )  # fmt: skip
    for name, given, workers, want, look in cases:
        stages = _stages(**given)
        shown = ", ".join(f"{each} {value:.3g} s" for each, value in given.items())
        count, rate, bound = _rows(predict(stages, [1, workers]), 2)[1]
        expect(
            count == workers and bound == name and math.isclose(rate, want, rel_tol=1e-4),
            expected=f"({workers}, {want:.7g}, {name!r}): {shown}, all else 0 s, rounds of "
            f"{stages.batch}, {stages.builders} builders",
            seen=f"({count}, {rate:.7g}, {bound!r})",
            look=look if count != workers or bound != name else f"{look}, not rounded",
        )


def _rows(found: Any, count: int) -> list[Any]:
    """What `predict` returned for `count` counts, of the types that its docstring names."""
    expect(
        isinstance(found, Sequence)
        and len(found) == count
        and all(isinstance(row, Sequence) and len(row) == 3 for row in found)
        and all(isinstance(rate, Real) and isinstance(name, str) for _, rate, name in found),
        expected="a list of (workers, trials per second, name), one for each count",
        seen=repr(found)[:200],
        look="the return statement",
    )
    return list(found)


def _expect_smallest_rate(predict: Function) -> None:
    """Where all stages take time, the smallest rate bounds the farm."""
    for given, workers in _drawn_stages():
        stages = _stages(**given)
        rates = {
            "search": stages.batch / stages.search,
            "build": stages.builders / stages.build,
            "tracker": 1 / stages.request,
            "upload": 1 / stages.upload,
            "workers": min(workers, stages.batch) / stages.run,
        }
        name = min(rates, key=lambda each: rates[each])
        [(_, rate, bound)] = predict(stages, [workers])
        expect(
            bound == name and math.isclose(rate, rates[name], rel_tol=1e-6),
            expected=f"{rates[name]:.4g} trials/s, {name!r}, for {workers} workers of {stages}",
            seen=f"{rate:.4g}, {bound!r}",
            look="the same formula for all numbers: the smallest rate bounds the farm",
        )


def _expect_a_row_per_count(predict: Function, seconds: float) -> None:
    """Counts keep their order, and each has its own bound."""
    counts = [9, 2, 9, *range(int(fresh_rng().integers(60, 90)), 0, -1)]
    seen = [row[0] for row in predict(_stages(run=seconds), counts)]
    expect(
        seen == counts,
        expected=f"a row for each of the {len(counts)} counts {counts[:6]} and so on, in their "
        "order",
        seen=f"{number_of(len(seen), 'row')}, of {seen[:6]} and so on",
        look="the loop over counts: neither sorted nor made unique",
    )
    first = predict(_stages(run=seconds), counts)
    kept = list(first)
    predict(_stages(run=2 * seconds), [3])
    expect(
        list(first) == kept,
        expected="a list of its own for each call",
        seen="a later call changed the list that an earlier one returned",
        look="where the list is made: inside the function",
    )
    many = [1, 100, 2, *range(9, 40), 3]  # two builders build for 8 workers
    names = [row[2] for row in predict(_stages(run=seconds, build=seconds / 4), many)]
    expect(
        names == ["workers" if each < 8 else "build" for each in many],
        expected="the slowest resource for 1, 100, 2, 9 to 39 and 3 workers: build from 9 workers "
        "on, else workers",
        seen=", ".join(map(str, names)),
        look="the name, which belongs to each count",
    )
