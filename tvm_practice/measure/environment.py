"""The machine and the software that figures were taken on."""

import importlib.metadata
import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psutil

_PACKAGES = (
    "apache-tvm",
    "apache-tvm-ffi",
    "bitblas",
    "torch",
    "transformers",
    "timm",
    "onnx",
    "onnxscript",
    "onnxruntime",
    "numpy",
    "scipy",
    "xgboost-cpu",
)


def environment() -> dict[str, Any]:
    """Processor, cores, caches, memory, load, operating system, Python and package versions."""
    versions: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "processor": _processor_name(),
        "machine": platform.machine(),
        "cores_physical": psutil.cpu_count(logical=False),
        "cores_logical": psutil.cpu_count(),
        "threads": os.environ.get("TVM_NUM_THREADS"),
        "cache_bytes": cache_bytes(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_1min": round(psutil.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": versions,
    }


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def cache_bytes() -> dict[str, int]:
    """Sizes of the data caches of one core, `{"L1": 32768, ...}`; empty where unknown."""
    sizes = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if (index / "type").read_text().strip() == "Instruction":
                continue
            text = (index / "size").read_text().strip()
            level = (index / "level").read_text().strip()
        except OSError:
            continue
        scale = {"K": 2**10, "M": 2**20}.get(text[-1], 1)
        sizes[f"L{level}"] = int(text.rstrip("KM")) * scale
    return sizes
