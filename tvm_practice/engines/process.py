"""A child process that holds one engine and answers calls in JSON."""

import importlib
import json
import math
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from multiprocessing import Pipe
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
from tvm_practice.engines.temporary import TemporaryFolder, temporary_parent

# An answer or the pipe's end is noticed at once. A worker forked by the child may hold the pipe
# open beyond the child's end: this is how often that is looked for.
_LOOK_SECONDS = 0.5
_GRACE_SECONDS = 10.0
# After SIGTERM, which is often followed by SIGKILL.
_SHORT_GRACE_SECONDS = 2.0


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
        self._asked = ""
        self._folder = TemporaryFolder()
        self._pipe, theirs = Pipe()
        try:
            with theirs:
                self._child = self._start(theirs.fileno(), output)
        except BaseException:
            self._pipe.close()
            self._folder.cleanup()
            raise

    def _start(self, pipe: int, output: IO[Any] | None) -> "subprocess.Popen[bytes]":
        environment = dict(os.environ)
        environment["TVM_PRACTICE_PARENT"] = str(os.getpid())
        # A tuner's workers are ended in the middle of things; what they leave goes with the folder.
        environment["TMPDIR"] = str(self._folder.path)
        # TorchInductor would keep what it has compiled there.
        environment.setdefault(
            "TORCHINDUCTOR_CACHE_DIR", f"{temporary_parent()}/torchinductor_{os.getuid()}"
        )
        # numpy's BLAS reads it when it loads; torch is told by whoever uses it.
        environment.setdefault("OPENBLAS_NUM_THREADS", str(thread_count()))
        return subprocess.Popen(
            [sys.executable, "-m", "tvm_practice.engines.child", self.engine, str(pipe)],
            pass_fds=[pipe],
            stdin=subprocess.DEVNULL,
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
        self._asked = secrets.token_hex(8)
        request = {
            "id": self._asked,
            "function": function,
            "arguments": dict(arguments or {}),
            "activate": activate,
        }
        sys.stdout.flush()  # what was printed here comes before what the child prints
        try:
            self._pipe.send_bytes(json.dumps(request).encode())
        except OSError:
            pass  # the wait below finds the child dead and says how it ended
        try:
            answer = self._wait(timeout)
        except KeyboardInterrupt:
            self._interrupt(_GRACE_SECONDS)
            raise
        except SystemExit:  # of a signal's handler
            self._interrupt(_SHORT_GRACE_SECONDS)
            raise
        if "error" in answer:
            error = answer["error"]
            if error["kind"] == "builtins.KeyboardInterrupt":
                raise KeyboardInterrupt
            if error["plain"]:
                raise _plain(error["kind"], error["message"])
            raise RemoteError(error["kind"], error["message"], error["traceback"])
        return answer["result"]

    def _wait(self, timeout: float | None) -> dict[str, Any]:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            ended = self._child.poll() is not None  # before the look: it may answer, then end
            try:
                if self._pipe.poll(0 if ended else min(left, _LOOK_SECONDS)):
                    answer: dict[str, Any] = json.loads(self._pipe.recv_bytes())
                    if answer.get("id") == self._asked:
                        return answer
                    continue  # the function called wrote to the pipe: no answer is its own
            except (EOFError, OSError):  # it has ended, or another thread closed this
                ended = True
            if ended:
                status = self._child.wait()
                how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
                raise EngineDied(f"the {self.engine} engine's process ended ({how})")
        self.close(grace=0)
        raise EngineTimeout(f"no answer from the {self.engine} engine in {timeout:.0f} s")

    def _interrupt(self, grace: float) -> None:
        """Pass Ctrl-C on, and give the function called time to save what it has, in seconds."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)
        try:
            self._wait(grace)
        except EngineError:
            pass
        self.close(grace=0)

    def close(self, *, grace: float = _GRACE_SECONDS) -> None:
        """End the child: at the end of the pipe, else after `grace` seconds by force."""
        self._pipe.close()
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
