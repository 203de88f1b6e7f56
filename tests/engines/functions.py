"""Functions that the tests call in a child process."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def echo(**arguments: Any) -> dict[str, Any]:
    return arguments


def version() -> str:
    import tvm

    return str(tvm.__version__)


def torch_beside_tvm() -> dict[str, Any]:
    """Whether TVM's import brought PyTorch along, and what both make of each other afterwards."""
    brought = "torch" in sys.modules
    import torch
    import torch.utils.dlpack
    import tvm

    ours = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    there = tvm.runtime.from_dlpack(ours)
    return {
        "brought": brought,
        "to TVM": there.numpy().tolist(),
        "and back": torch.utils.dlpack.from_dlpack(there).tolist(),
    }


def threads_in_pool() -> int:
    import tvm

    return int(tvm.get_global_func("runtime.NumThreads")())


def worker_version() -> str:
    """What `import tvm` gives in a worker process, started as the tuners start theirs."""
    code = "import tvm; print(tvm.__version__)"
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()


def fail_with_cause() -> None:
    try:
        raise KeyError("the cause")
    except KeyError as cause:
        raise ValueError("the effect") from cause


def not_json() -> object:
    return object()


def say(text: str) -> None:
    print(text)


def die(status: int) -> None:
    os._exit(status)


def sleep_until_interrupted(started: str, interrupted: str) -> None:
    try:
        Path(started).touch()
        time.sleep(60)
    except KeyboardInterrupt:
        Path(interrupted).touch()
        raise


def activate_other() -> str:
    from tvm_practice import engines

    other = engines.CURRENT if engines.active() == engines.CLASSIC else engines.CLASSIC
    try:
        engines.activate(other)
    except engines.EngineUnavailable as error:
        return str(error)
    return "no error"


def small_sum() -> float:
    """Build and run a function for host_target()."""
    import numpy as np

    from solutions.te_basics import matmul
    from tvm_practice.course.lowering import build_expression

    a = np.ones((3, 3), "float32")
    return float(build_expression(matmul(3, 3, 3))(a, a).sum())


def target() -> str:
    from tvm_practice import engines

    return str(engines.host_target())
