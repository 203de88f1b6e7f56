"""The child's side of `engines.Session`: requests come in on standard input, a line each."""

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from tvm_practice.engines.errors import PlainError, RemoteError
from tvm_practice.engines.selection import ENGINES, activate, choose

_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Have the kernel end this process when its parent dies, kill -9 included (Linux)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(os.environ["TVM_PRACTICE_PARENT"]):
            sys.exit(1)  # it died before the call above


def _answer(request: dict[str, Any], engine: str) -> dict[str, Any]:
    try:
        chosen = activate if request.get("activate", True) else choose
        chosen(engine)  # type: ignore[arg-type]  # here, so that a failure travels back
        module, _, name = request["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        result = function(**request["arguments"])
        json.dumps(result)  # a result that is not JSON is an error of the function called
        return {"result": result}
    except BaseException as error:  # SystemExit and KeyboardInterrupt are answers too
        kind = type(error)
        return {
            "error": {
                "kind": f"{kind.__module__}.{kind.__qualname__}",
                "plain": isinstance(error, PlainError) and not isinstance(error, RemoteError),
                "message": str(error),
                "traceback": traceback.format_exc(),
            }
        }


def main() -> None:
    engine = sys.argv[1]
    assert engine in ENGINES
    _end_with_parent()
    requests = os.fdopen(os.dup(0), "r")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # workers must not read our requests
    for line in requests:
        request = json.loads(line)
        answer = _answer(request, engine)
        sys.stdout.flush()
        sys.stderr.flush()
        writing = Path(f"{request['reply']}.writing")
        writing.write_text(json.dumps(answer))
        writing.replace(request["reply"])  # whole or not at all: the parent waits for the name


if __name__ == "__main__":
    main()
