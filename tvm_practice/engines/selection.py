"""Choosing the TVM of this process, and saying what it is."""

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

import psutil

from tvm_practice.engines.cuda_runtime import load_runtime
from tvm_practice.engines.errors import BadSetting, EngineError, EngineUnavailable

Engine: TypeAlias = Literal["classic", "current"]
CLASSIC: Engine = "classic"
CURRENT: Engine = "current"
ENGINES: tuple[Engine, Engine] = (CLASSIC, CURRENT)

_CLASSIC_SHIM = str(Path(__file__).with_name("classic_shim"))
# Newer versions are allowed by apache-tvm's metadata but crash when MetaSchedule writes a record.
_FFI_VERSIONS = ("0.1.14.post0", "0.1.14.post1")
_INSTALL = {
    CLASSIC: "pip install --no-deps -r requirements-classic.txt",
    CURRENT: "pip install -c constraints.txt apache-tvm apache-tvm-ffi",
}
_TUNERS = {CLASSIC: ("AutoTVM", "Ansor"), CURRENT: ("MetaSchedule",)}

_MOST_THREADS = 32  # per processor: far beyond what helps, below where libraries crash

# Control groups are mounted here.
_CGROUPS = Path("/sys/fs/cgroup")

_chosen: Engine | None = None
_active: Engine | None = None


def thread_count() -> int:
    """Threads that TVM and its rivals are given: TVM_NUM_THREADS, else the physical cores.

    They are no more than this process may use: by its affinity, and by the quota of its control
    group, above which the kernel stops all threads for the rest of a period. Left alone, TVM takes
    half of the processors it sees, which without hyper-threading leaves half of the machine idle.
    """
    asked = os.environ.get("TVM_NUM_THREADS", "")
    if asked:
        if not asked.isdigit() or int(asked) < 1:
            raise BadSetting(f"TVM_NUM_THREADS={asked!r} is not a positive whole number")
        most = _MOST_THREADS * (psutil.cpu_count() or 1)
        if int(asked) > most:
            raise BadSetting(f"TVM_NUM_THREADS={asked} is more than {most}, too many for here")
        return int(asked)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(psutil.cpu_count(logical=False) or 1, allowed or 1, quota() or sys.maxsize)


def quota() -> int | None:
    """Processors that the control group's quota grants, one at least; None without a quota.

    `docker run --cpus=2` sets one. A group's quota holds for the groups in it, so that the
    smallest counts: https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return None
    granted = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            granted += [_granted_v2(folder / "cpu.max") for folder in _upwards(_CGROUPS, path)]
        elif "cpu" in controllers.split(","):
            granted += [_granted_v1(folder) for folder in _upwards(_CGROUPS / controllers, path)]
    found = [processors for processors in granted if processors is not None]
    return max(1, int(min(found))) if found else None


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """The folders of a group and of those that it is in; a container sees its own as the mount."""
    folder = mount / path.lstrip("/")
    yield folder
    yield from (parent for parent in folder.parents if parent.is_relative_to(mount))


def _granted_v2(file: Path) -> float | None:
    try:
        most, period = file.read_text().split()
        return None if most == "max" else int(most) / int(period)
    except (OSError, ValueError):
        return None


def _granted_v1(folder: Path) -> float | None:
    try:
        most = int((folder / "cpu.cfs_quota_us").read_text())
        return None if most < 0 else most / int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None


def unavailable_reason(engine: Engine) -> str | None:
    """One line saying why `engine` cannot be used and how to install it; None if it can."""
    problem = _classic_problem() if engine == CLASSIC else _current_problem()
    return f"{engine} TVM is not available: {problem}" if problem else None


def _classic_problem() -> str | None:
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return f"it runs on Linux x86-64, this is {sys.platform} {platform.machine()}"
    needed = ("bitblas", "nvidia.cuda_runtime", "nvidia.cuda_nvrtc", "xgboost", "tornado")
    for package in needed:
        if not _installed(package):
            return f"no Python package {package}. To install: {_INSTALL[CLASSIC]}"
    return None


def _current_problem() -> str | None:
    for package in ("apache-tvm", "apache-tvm-ffi"):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return f"no Python package {package}. To install: {_INSTALL[CURRENT]}"
    if version not in _FFI_VERSIONS:
        return (
            f"apache-tvm-ffi {version} crashes with it, {_FFI_VERSIONS[-1]} works. "
            f"To install: {_INSTALL[CURRENT]}"
        )
    return None


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def active() -> Engine | None:
    """The engine that `import tvm` gives in this process; None while none was chosen."""
    return _active


def choose(engine: Engine) -> None:
    """Make `engine` the TVM that this process will import; `activate` then imports it.

    Raises what `activate` does.
    """
    global _chosen
    if engine not in ENGINES:
        raise EngineError(f"unknown engine {engine!r}; the engines are {', '.join(ENGINES)}")
    if _chosen == engine:
        return
    if "tvm" in sys.modules:
        holder = f"the {_chosen} one" if _chosen else "one that was imported before activate()"
        raise EngineUnavailable(
            f"this process already holds a TVM, {holder}; reach {engine} through engines.call()"
        )
    if reason := unavailable_reason(engine):
        raise EngineUnavailable(reason)

    os.environ["TVM_NUM_THREADS"] = str(thread_count())
    path = [entry for entry in sys.path if entry != _CLASSIC_SHIM]
    worker_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    worker_path = [entry for entry in worker_path if entry and entry != _CLASSIC_SHIM]
    if engine == CLASSIC:
        path.insert(0, _CLASSIC_SHIM)
        worker_path.insert(0, _CLASSIC_SHIM)
        os.environ["TOPHUB_LOCATION"] = "NONE"  # else AutoTVM tries to download schedules
    sys.path[:] = path
    os.environ["PYTHONPATH"] = os.pathsep.join(worker_path)
    _chosen = engine


def activate(engine: Engine) -> None:
    """Make `engine` the TVM of this process and of the worker processes its tuners start.

    Idempotent. Raises EngineUnavailable if the engine is not installed or if this process
    already holds the other one.
    """
    global _active
    choose(engine)
    if engine == CURRENT:
        load_runtime()
    try:
        with left_for_later("torch"):
            import tvm  # noqa: F401
    except Exception as error:  # any failure of a foreign package's import means: not usable
        raise EngineUnavailable(f"{engine} TVM does not load: {error}") from error
    _active = engine


class _Unloadable(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module `name`, and fails to load it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self) if fullname == self._name else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        raise ModuleNotFoundError(f"{spec.name} is left for later", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        raise AssertionError("no module is created")


@contextmanager
def left_for_later(package: str) -> Iterator[None]:
    """Have the import of a package fail in the block, unless it is imported already.

    Current TVM imports PyTorch where it is installed, which takes twice as long as all else that it
    imports, for a faster exchange of tensors and for PyTorch's CUDA streams, neither of which is
    used here. Imported afterwards it works with TVM as ever.

    A None in sys.modules would do it as well, but SciPy takes that for PyTorch: classic TVM imports
    XGBoost, which imports scikit-learn and with it SciPy's distributions where it is installed.
    """
    if package in sys.modules:
        yield
        return
    unloadable = _Unloadable(package)
    sys.meta_path.insert(0, unloadable)
    try:
        yield
    finally:
        sys.meta_path.remove(unloadable)


def describe() -> dict[str, Any]:
    """The active engine: version, LLVM, CUDA in the build, CUDA device, tuners, threads.

    Raises EngineError while no engine is active.
    """
    if _active is None:
        raise EngineError("no engine is active in this process; call activate() first")
    import tvm

    libinfo = tvm.support.libinfo()
    return {
        "engine": _active,
        "version": tvm.__version__,
        "llvm": str(libinfo.get("LLVM_VERSION") or tvm.target.codegen.llvm_version_major()),
        "cuda_in_build": libinfo.get("USE_CUDA", "OFF") not in ("OFF", "NOT-FOUND"),
        "cuda_device": bool(tvm.cuda().exist),
        "tuners": list(_TUNERS[_active]),
        "threads": thread_count(),
    }
