"""The child's side of `engines.Session`: a request comes through the pipe, an answer goes back."""

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from tvm_practice.engines.errors import PlainError, RemoteError
from tvm_practice.engines.selection import ENGINES, activate, choose
from tvm_practice.engines.stopping import raise_at_ctrl_c

_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Have the kernel end this process when its parent dies, kill -9 included (Linux)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(os.environ["TVM_PRACTICE_PARENT"]):
            sys.exit(1)  # it died before the call above


def _answer(request: dict[str, Any], engine: str) -> str:
    """The answer in JSON: the request's `id`, and the function's `result` or the `error` raised."""
    try:
        chosen = activate if request.get("activate", True) else choose
        chosen(engine)  # type: ignore[arg-type]  # here, so that a failure travels back
        module, _, name = request["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        result = function(**request["arguments"])
        # Here: a result that is not JSON is an error of the function called.
        return json.dumps({"id": request["id"], "result": result})
    except BaseException as error:  # SystemExit and KeyboardInterrupt are answers too
        kind = type(error)
        said = {
            "kind": f"{kind.__module__}.{kind.__qualname__}",
            "plain": isinstance(error, PlainError) and not isinstance(error, RemoteError),
            "message": str(error),
            "traceback": traceback.format_exc(),
        }
        return json.dumps({"id": request["id"], "error": said})


def main() -> None:
    engine = sys.argv[1]
    assert engine in ENGINES
    raise_at_ctrl_c()
    _end_with_parent()
    pipe: Connection[str, str] = Connection(int(sys.argv[2]))
    os.set_inheritable(pipe.fileno(), False)  # workers must not hold it open
    while True:
        try:
            request = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        answer = _answer(request, engine)
        sys.stdout.flush()
        sys.stderr.flush()
        pipe.send_bytes(answer.encode())


if __name__ == "__main__":
    main()
