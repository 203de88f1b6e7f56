"""A child process that holds one engine and answers calls in JSON."""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tvm_practice.engines.errors import (
    EngineDied,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    PlainError,
    RemoteError,
)
from tvm_practice.engines.selection import Engine, thread_count, unavailable_reason

_POLL_SECONDS = 0.01
_GRACE_SECONDS = 10.0


def _plain(kind: str, message: str) -> PlainError:
    """The exception that a child raised, as its own type."""
    module, _, name = kind.rpartition(".")
    found: type[PlainError] = getattr(importlib.import_module(module), name)
    return found(message)


class Session:
    """A child process with one engine active, which answers calls until it is closed.

    `output` is where the child's standard output and error go: None shares this process's
    (progress bars work), a file object receives both.

    The child leads its own process group, so that Ctrl-C reaches it once, through here: it
    raises KeyboardInterrupt in the function called, which may save what it has. On Linux the
    child is ended with this process, even by kill -9; it must be created from a thread that
    lives as long.
    """

    def __init__(self, engine: Engine, *, output: IO[Any] | None = None):
        if reason := unavailable_reason(engine):
            raise EngineUnavailable(reason)
        self.engine = engine
        self._folder = tempfile.TemporaryDirectory(
            prefix="tvm-practice-", ignore_cleanup_errors=True
        )
        self._calls = 0
        environment = dict(os.environ)
        environment["TVM_PRACTICE_PARENT"] = str(os.getpid())
        # A tuner's workers are ended in the middle of things; what they leave goes with the folder.
        environment["TMPDIR"] = self._folder.name
        # TorchInductor would keep what it has compiled there.
        environment.setdefault(
            "TORCHINDUCTOR_CACHE_DIR", f"{tempfile.gettempdir()}/torchinductor_{os.getuid()}"
        )
        # numpy's BLAS reads it when it loads; torch is told by whoever uses it.
        environment.setdefault("OPENBLAS_NUM_THREADS", str(thread_count()))
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tvm_practice.engines.child", engine],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT if output is not None else None,
            env=environment,
            start_new_session=True,
        )

    def call(
        self,
        function: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        activate: bool = True,
    ) -> Any:
        """Call `function` ("module:name") in the child with keyword `arguments`.

        Arguments and result are JSON values. The child imports TVM first; with `activate=False`
        that is left to the function, which may find that it needs none. A `PlainError` that the
        function raised is raised here. Raises RemoteError if it raised anything else, EngineDied
        if the child ended, EngineTimeout after `timeout` seconds (both end the session).
        """
        self._calls += 1
        reply = Path(self._folder.name) / f"{self._calls}.json"
        request = {
            "function": function,
            "arguments": dict(arguments or {}),
            "reply": str(reply),
            "activate": activate,
        }
        assert self._child.stdin is not None
        sys.stdout.flush()  # what was printed here comes before what the child prints
        try:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # the wait below finds the child dead and says how it ended
        try:
            answer = self._wait(reply, timeout)
        except KeyboardInterrupt:
            self._interrupt(reply)
            raise
        if "error" in answer:
            error = answer["error"]
            if error["kind"] == "builtins.KeyboardInterrupt":
                raise KeyboardInterrupt
            if error["plain"]:
                raise _plain(error["kind"], error["message"])
            raise RemoteError(error["kind"], error["message"], error["traceback"])
        return answer["result"]

    def _wait(self, reply: Path, timeout: float | None) -> dict[str, Any]:
        started = time.monotonic()
        while True:
            ended = self._child.poll()  # before the look at the file: it may answer, then end
            try:
                text = reply.read_text()
            except FileNotFoundError:  # not yet, or the folder is gone: another thread closed this
                pass
            else:
                reply.unlink(missing_ok=True)
                answer: dict[str, Any] = json.loads(text)
                return answer
            if ended is not None:
                how = signal.Signals(-ended).name if ended < 0 else f"exit status {ended}"
                raise EngineDied(f"the {self.engine} engine's process ended ({how})")
            if timeout is not None and time.monotonic() - started > timeout:
                self.close(grace=0)
                raise EngineTimeout(f"no answer from the {self.engine} engine in {timeout:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _interrupt(self, reply: Path) -> None:
        """Pass Ctrl-C on, and give the function called time to save what it has."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)
        try:
            self._wait(reply, _GRACE_SECONDS)
        except EngineError:
            pass
        self.close(grace=0)

    def close(self, *, grace: float = _GRACE_SECONDS) -> None:
        """End the child: at the end of its input, else after `grace` seconds by force."""
        if self._child.stdin is not None:
            try:
                self._child.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self._child.wait(grace)
        except subprocess.TimeoutExpired:
            pass
        # The group holds the workers that a tuner started and may have left behind.
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._child.wait()
        self._folder.cleanup()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def call(
    engine: Engine,
    function: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
) -> Any:
    """Call `function` ("module:name") in a child process that holds `engine`; see Session.call."""
    with Session(engine) as session:
        return session.call(function, arguments, timeout=timeout)
