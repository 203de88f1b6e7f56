"""Servers that fork Python processes; see tests/forks/__init__.py.

`python -m tests.forks.server FOLDER PIPE` listens at FOLDER/plain, FOLDER/classic and
FOLDER/current until the other end of PIPE is closed. The first request at one of them has it
import its packages. No server runs anything of theirs: what they start threads for, they start in
the fork.
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import os
import random
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import types
import typing
from pathlib import Path
from typing import Any, NoReturn

from tests import forks

# What a process has on its path below its own folder and PYTHONPATH's entries. Asked of one: in
# this one, a folder that is on the path for both reasons is there once.
_INSTALLED = json.loads(
    subprocess.check_output(
        [sys.executable, "-P", "-c", "import json, sys; print(json.dumps(sys.path))"],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
)
_AT_START = set(sys.modules)

_NUMBER = struct.Struct("<q")
_PR_SET_PDEATHSIG = 1
# Above what a process has open: where received files wait until their numbers are free.
_ASIDE = 500
_SERVERS = ("classic", "current", "plain")
# What many tests' processes import. A package that is not here is imported as ever.
_PACKAGES = (
    "numpy",
    "torch",
    "torch.export",
    "torch.export._trace",
    "torch.export._unlift",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "psutil",
    "click",
    "click._textwrap",
    "rich.console",
    "rich.table",
    "rich.progress",
    "pydantic",
    "pydantic.fields",  # it imports its parts when they are first asked for
    "pydantic.functional_validators",
    "pydantic.main",
    "pydantic.plugin._schema_validator",
    "omegaconf",
    "jinja2",
    "filelock",
    "scipy.stats",
    "matplotlib.figure",
    "onnx",
    "onnxruntime",
    "xgboost",
    "cloudpickle",
)


def _parse_intrinsics() -> None:
    """Import what a tuning context for this machine needs of TVM's tensor intrinsics.

    For each it parses, TVM asks which module a line of code is in, of all modules that are there:
    before PyTorch's are, this takes a fraction of the time.
    """
    from tvm_practice import engines
    from tvm_practice.tvm_export.tuners.metaschedule import tasks

    with tasks._intrinsics_of(engines.host_target()):
        pass


def _spare_the_parsers_stacks() -> None:
    """Keep which files of a stack are of no module.

    TVM's parser asks for each frame's module twice per function. Each frame of a file that no
    module has, such as this one's, is sought in all modules, of which PyTorch brings thousands.
    """
    original = inspect.getmodule
    modules_when_sought: dict[tuple[str, str | None], int] = {}

    def getmodule(object: object, _filename: str | None = None) -> types.ModuleType | None:
        code = getattr(object, "f_code", object)
        if not isinstance(code, types.CodeType):
            return original(object, _filename)
        file = code.co_filename, _filename
        if modules_when_sought.get(file) == len(sys.modules):
            return None
        found = original(object, _filename)
        if found is None:
            modules_when_sought[file] = len(sys.modules)
        return found

    inspect.getmodule = getmodule


def _spare_relays_lowering() -> None:
    """Keep what Relay asks of the library's build options for each function that it lowers."""
    from tvm.relay.backend import te_compiler

    te_compiler.libinfo = functools.cache(te_compiler.libinfo)


def _spare_pytorchs_export() -> None:
    """Skip repeated work in PyTorch's export, which takes a third of exporting a small model."""
    import torch
    from torch._export import utils

    # It registers thousands of kernels per export and evaluates annotations for each; typing's
    # Callable keeps what it made of the same types.
    torch._ops.Callable = typing.Callable  # type: ignore[attr-defined]
    # It walks all operators, namespace by namespace, for the same set.
    original, known = utils._collect_all_valid_cia_ops, (-1, -1)
    valid: set[Any] = set()

    def collect() -> set[Any]:
        nonlocal known, valid
        found = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
        state = len(found), len(torch._C._dispatch_get_all_op_names())
        if state != known:
            known, valid = state, original()
        return set(valid)

    _put_in_place(original, collect)

    # It is called for 20 keys of each of some hundred operators per decomposition.
    decorated = torch._ops.OperatorBase.py_impl

    def py_impl(operator: Any, key: Any) -> Any:
        if type(key) is not torch._C.DispatchKey or key == torch._C.DispatchKey.Python:
            return decorated(operator, key)

        def inner(function: Any) -> Any:
            if key in operator.py_kernels:
                return decorated(operator, key)(function)  # which says so
            operator.py_kernels[key] = function
            operator._dispatch_cache.clear()
            return function

        return inner

    torch._ops.OperatorBase.py_impl = py_impl  # type: ignore[assignment, method-assign]


def _put_in_place(original: Any, other: Any) -> None:
    """Have PyTorch's modules call `other` where they have imported `original`."""
    for module in [each for name, each in sys.modules.items() if _package(name) == "torch"]:
        for name, value in list(vars(module).items()):
            if value is original:
                setattr(module, name, other)


class _ImportedBefore(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives packages that were imported before the fork, a package's modules together."""

    def __init__(self, modules: dict[str, types.ModuleType]):
        self._modules = modules
        self._names: dict[str, list[str]] = {}
        for name in modules:
            self._names.setdefault(_package(name), []).append(name)

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        there = self._modules.get(name)
        known = getattr(there, "__spec__", None)
        if there is None or known is None:
            return None
        found = importlib.machinery.PathFinder.find_spec(name) if path is None else known
        if found is None or found.origin != known.origin:  # another package of that name
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=known.origin)
        spec.submodule_search_locations = known.submodule_search_locations
        return spec

    def exec_module(self, module: types.ModuleType) -> None:
        for name in self._names.pop(_package(module.__name__), ()):
            sys.modules[name] = self._modules.pop(name)


def _package(name: str) -> str:
    return name.partition(".")[0]


class _Server:
    """Forks processes that have imported what this one has, and says how each ended."""

    def __init__(self, name: str, listening: socket.socket, life: int):
        self._listening = listening
        self._life = life
        self._environment = forks.read_at_start(os.environ)
        self._running: dict[int, tuple[int, socket.socket]] = {}  # by the process's descriptor
        self._import(name)

    def _import(self, name: str) -> None:
        path = list(sys.path)
        gc.disable()
        if name != "plain":
            _spare_the_parsers_stacks()
            from tvm_practice import engines

            engines.activate(name)  # type: ignore[arg-type]
            if name == engines.CURRENT:
                _parse_intrinsics()
        for package in _PACKAGES:
            try:
                importlib.import_module(package)
            except Exception:  # what needs it says so
                pass
        if "torch" in sys.modules:
            _spare_pytorchs_export()
        if name == "classic":
            _spare_relays_lowering()
        sys.path[:] = path
        before = {}
        for each in set(sys.modules) - _AT_START:
            if _package(each) not in sys.stdlib_module_names:
                before[each] = sys.modules.pop(each)
        # A fork has the project's modules from its own path, as it is then.
        before = {
            each: module for each, module in before.items() if _package(each) != "tvm_practice"
        }
        sys.meta_path.insert(0, _ImportedBefore(before))
        gc.freeze()
        gc.enable()

    def serve(self) -> None:
        while True:
            waiting: list[int | socket.socket] = [self._life, self._listening, *self._running]
            waiting += [connection for _, connection in self._running.values()]
            ready = select.select(waiting, [], [])[0]
            if self._life in ready:
                break
            for descriptor, (pid, connection) in list(self._running.items()):
                if descriptor in ready:
                    self._say_its_end(descriptor)
                elif connection in ready:  # nobody is left who waits for it
                    _kill(pid)
            if self._listening in ready:
                self._fork(self._listening.accept()[0])
        for pid, _ in self._running.values():
            _kill(pid)
            os.waitpid(pid, 0)

    def _say_its_end(self, descriptor: int) -> None:
        pid, connection = self._running.pop(descriptor)
        os.close(descriptor)
        status = os.waitpid(pid, 0)[1]
        try:
            connection.sendall(_NUMBER.pack(status))
        except OSError:  # nobody waits for it
            pass
        connection.close()

    def _fork(self, connection: socket.socket) -> None:
        start, files, _, _ = socket.recv_fds(connection, _NUMBER.size, 64)
        if len(start) < _NUMBER.size:
            connection.close()
            return
        (length,) = _NUMBER.unpack(start)
        message = connection.recv(length, socket.MSG_WAITALL)
        if len(message) < length:  # it was killed while it asked
            connection.close()
            for file in files:
                os.close(file)
            return
        request = json.loads(message)
        if forks.read_at_start(request["environment"]) == self._environment:
            pid = os.fork()
            if pid == 0:
                _become(request, files)
            self._running[os.pidfd_open(pid)] = (pid, connection)
            with contextlib.suppress(OSError):  # nobody is left who waits for it: it is ended next
                connection.sendall(_NUMBER.pack(pid))
        else:  # a process that is started can have it
            connection.close()
        for file in files:
            os.close(file)


def _kill(pid: int) -> None:
    """End a process and those of its group, which it leads."""
    for end in (os.killpg, os.kill):
        try:
            end(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _become(request: dict[str, Any], files: list[int]) -> NoReturn:
    """Turn this fork into the process asked for, run it, and end as Python does."""
    try:
        _take_over(request, files)
        status = _run(request["command"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = status or 120
    sys.stderr.flush()
    if status == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def _take_over(request: dict[str, Any], files: list[int]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if request["session"]:
        os.setsid()
    else:
        os.setpgid(0, 0)
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _ASIDE) for file in files]
    os.closerange(3, _ASIDE)
    for number, file in zip(request["files"], aside, strict=True):
        os.dup2(file, number)
        os.close(file)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.getppid = lambda: request["parent"]
    tempfile.tempdir = None
    random.seed()
    kind, *arguments = request["command"]
    sys.orig_argv[:] = [sys.executable, kind, *arguments]
    sys.argv[:] = [kind, *arguments[1:]]
    above = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[:] = [request["folder"] if kind == "-m" else "", *above, *_INSTALLED]
    sys.path_importer_cache.clear()
    if any((Path(each) / "sitecustomize.py").exists() for each in above):
        importlib.import_module("sitecustomize")
    if forks.ADDRESS in os.environ:
        forks.use()
    for each in [each for each in sys.modules if _package(each) == "tests"]:
        del sys.modules[each]


def _run(command: list[str]) -> int:
    """Run a module or a piece of code as the main program; its exit status."""
    kind, what = command[:2]
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            main = types.ModuleType("__main__")
            sys.modules["__main__"] = main
            exec(compile(what, "<string>", "exec"), main.__dict__)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        return -signal.SIGINT
    return 0


def main() -> None:
    folder, life = Path(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(life, False)
    listening, started = {}, []
    for name in _SERVERS:
        listening[name] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening[name].bind(f"{folder}/{name}")
        listening[name].listen(64)
    while listening:
        waiting: list[int | socket.socket] = [life, *listening.values()]
        ready = select.select(waiting, [], [])[0]
        if life in ready:
            break
        for name, each in list(listening.items()):
            if each in ready:
                started.append(os.fork())
                if started[-1] == 0:
                    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                    for other in listening.values():
                        if other is not each:
                            other.close()
                    _Server(name, each, life).serve()
                    os._exit(0)
                listening.pop(name).close()
    select.select([life], [], [])
    for pid in started:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
