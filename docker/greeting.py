"""The three lines that a shell in the container opens with."""

import ctypes
import json
from pathlib import Path

from tvm_practice.engines import EngineError, thread_count


def cuda_devices() -> int:
    """How many GPUs the CUDA driver offers; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def main() -> None:
    # Written when the image was built: importing both engines takes seconds.
    report = json.loads(Path(__file__).with_name("engines.json").read_text())
    found = ", ".join(
        f"{engine} {facts['version']} ({', '.join(facts['tuners'])})"
        if "version" in facts
        else str(facts["unavailable"])
        for engine, facts in report.items()
    )
    try:
        threads = str(thread_count())
    except EngineError as error:
        threads = str(error)
    print(f"Engines  {found}")
    print(f"Threads  {threads} (TVM_NUM_THREADS changes it); CUDA devices: {cuda_devices()}")
    print("Start    python -m tvm_practice.te_basics, then edit tvm_practice/te_basics.py")


if __name__ == "__main__":
    main()
