"""What an answer may not do: call the answer key, change the grader, look into its frames.

A check and the answer share a process, since schedules cannot be passed between two. So the
reference answer of the exercise is disarmed there, whoever holds it; the functions and constants
that a check relies on are compared, and put back, after each call; and Python's audit events tell
which files and frames the answer opens.
"""

import _thread
import builtins
import functools
import importlib
import importlib.util
import inspect
import json
import operator
import os
import random
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tvm_practice.course.expect import fail

# Where a name has its value: a module's names, a class, a function with its parts, a record.
_Home = Any

_LOOK = "the exercise asks for a function of your own, which stands on TVM, numpy and Python alone"
# A hunt's causes, with the right one among them, are looked at: an audit event of `suspects`.
CAUSES_READ = "tvm_practice.causes_read"
_SUSPECTS = Path(__file__).resolve().with_name("suspects.py")
_LOOK_AT_HUNT = (
    "the loops and the symptom that tvm-practice hunt shows: the letter follows from them"
)
# Beside the grader's own modules: what they compare and measure with, and what the verdict is sent
# with. PyTorch replaces functions of its own when parts of it are imported late.
_RELIED_ON = (
    "__main__", "builtins", "json", "json.encoder", "math", "multiprocessing.connection", "numpy",
    "numpy.linalg", "numpy.random", "numpy.testing", "random", "re", "threading", "time", "timeit",
    "tvm", "tvm.runtime", "tvm.s_tir", "tvm.te", "tvm.testing",
)  # fmt: skip
_CLASSES = {
    "json.encoder": ("JSONEncoder",),
    "multiprocessing.connection": ("Connection", "_ConnectionBase"),
    "tvm": ("IRModule",), "tvm.runtime": ("Module", "Tensor"), "tvm.s_tir": ("Schedule",),
}  # fmt: skip
_OWN = "tvm_practice."
# Functions of the exporter and of the checks that do all the work of an exercise.
_DOES_THE_SAME = {
    "te_basics.matmul": ("tvm_practice.course.products:matmul_tensors",),
    "schedule_analysis.sample_latency": (
        "tvm_practice.measure.latency:sample_latency",
        "tvm_practice.tvm_export.steps.timing:sample_latency",
    ),
    "schedule_analysis.compare_interleaved": (
        "tvm_practice.measure.comparison:compare_interleaved",
        "tvm_practice.measure.comparison:ratio_interval",
    ),
    "auto_tune.tune_autotvm": ("tvm_practice.tvm_export.tuners.autotvm:tune",),
    "auto_tune.tune_ansor": ("tvm_practice.tvm_export.tuners.ansor:tune",),
}
_CONSTANTS = (float, int, str, tuple, types.CodeType, types.ModuleType, json.JSONEncoder)
_FUNCTION_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
# How one finds the frames, the objects or the calls of others.
_PEEKS = {
    "sys._getframe", "sys._current_frames", "sys.settrace", "sys.setprofile",
    "gc.get_objects", "gc.get_referrers", "gc.get_referents",
}  # fmt: skip
_OPENS = {"open", "os.link", "os.rename"}
_STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"}
_FORKS = {"os.fork", "os.forkpty"}
# Code begins to run, or a function is made of it.
_RUNS_CODE = {"exec": 0, "function.__new__": 0, "object.__setattr__": 2}
_CALLS_C = {"ctypes.dlopen", "ctypes.dlsym"}
_BY_CTYPES = ("ctypes/__init__.py",)
# What starts a thread: Python tells of it by an audit event from 3.12 on only.
_THREADS = (
    (_thread, "start_new_thread"), (_thread, "start_new"), (_thread, "start_joinable_thread"),
    (threading, "_start_new_thread"), (threading, "_start_joinable_thread"),
)  # fmt: skip
# What gives a shared generator another state than the next one.
_SEEDS = (
    (random, "seed"), (random, "setstate"), (np.random, "seed"), (np.random, "set_state"),
)  # fmt: skip
_POOLS = (
    "/threading.py", "/concurrent/futures/thread.py", "/concurrent/futures/_base.py",
    "/multiprocessing/pool.py", "/multiprocessing/context.py", "/multiprocessing/dummy/__init__.py",
)  # fmt: skip
# Events that change a file, and those of their arguments that are its path.
_WRITES = {
    "open": (0,), "os.rename": (0, 1), "os.link": (1,), "os.symlink": (1,), "os.remove": (0,)
}  # fmt: skip
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# A generator that is that many states further, 624 draws each, was seeded.
_MOST_STATES = 100_000
_ABSENT = object()  # the value of a name that was not there
# What Python itself gives a class after it was made.
_MADE_LATE = {"__abstractmethods__", "__doc__", "__annotations__"}
# How a value is compared with another.
_COMPARED = {
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__sub__", "__rsub__", "__abs__",
    "__bool__", "__float__", "__int__", "__contains__", "__array_ufunc__", "__array_function__",
}  # fmt: skip
# A handler of these runs in the middle of a check.
_FOLDER = "the working directory"
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]


class Guard:
    """Watches over one answer while it is graded; `verdict` raises what it saw.

    Attributes:
        path: the answer's file.
        seen: what the answer did that it may not, the first of it.
        look: where to look for it.
        listening: whether an audit event is being looked at.
    """

    def __init__(self, module: str, name: str, path: str) -> None:
        self.path = path
        self.name = name
        self.seen: str | None = None
        self.look = _LOOK
        self.listening = False
        self._over = False
        self._records: list[Any] = []
        self._seeded_by_others = False
        self._in_lab = module.startswith("labs.")  # compilers and emulators are part of these
        self._answer_key = _reference(module, name)
        self._disarmed = [self._answer_key] if self._answer_key else []
        for each in _DOES_THE_SAME.get(f"{module}.{name}", ()):
            of, _, function = each.partition(":")
            self._disarmed.append(inspect.unwrap(getattr(importlib.import_module(of), function)))
        if module == "capstone":  # whose grading calls nothing of the answer key, unlike checks
            self._disarmed = _functions_of(sys.modules["solutions.capstone"])
        self._key_parts = {_essence(each.__code__) for each in self._disarmed}
        home = inspect.getsourcefile(self._answer_key) if self._answer_key else None
        self._home = Path(home).resolve() if home else None
        self._folder = source_of("solutions").parent

    def note(self, what: str, look: str = _LOOK) -> None:
        if not self.seen:
            self.seen, self.look = what, look

    def verdict(self) -> None:
        """Raise CheckFailed if the answer did what it may not."""
        if self.seen:
            raise fail(f"{self.name} to do its work itself", f"it {self.seen}", self.look)

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, after each call of which the grader is as it was before it.

        It has the globals of `function`: a check may replace a clock there.
        """

        def call(*arguments: Any, **options: Any) -> Any:
            with self.unchanged(), self.settings_kept():
                result = function(*arguments, **options)
            self._look_at(result)
            return result

        home = inspect.unwrap(function).__globals__
        same = types.FunctionType(call.__code__, home, function.__name__, None, call.__closure__)
        return functools.wraps(function)(same)

    def _look_at(self, result: Any, depth: int = 2) -> None:
        """Note a value of a class of the answer's own, which decides what it is equal to."""
        if isinstance(result, list | tuple | dict) and depth:
            for each in result.values() if isinstance(result, dict) else result:
                self._look_at(each, depth - 1)
        for kind in type(result).__mro__:
            for name in _COMPARED & vars(kind).keys():
                code = getattr(vars(kind)[name], "__code__", None)
                if code is not None and code.co_filename == self.path:
                    self.note(f"returns a {type(result).__name__} with {name} of its own")

    @contextmanager
    def settings_kept(self) -> Iterator[None]:
        """Note the settings of the process that are left changed; labs may change some."""
        settings = _always_kept if self._in_lab else _surroundings
        before = settings()
        drawn = {} if self._in_lab else _generators()
        try:
            yield
        finally:
            now = _generators()
            for whose, state in drawn.items():
                if not (self.seen or self._seeded_by_others or _only_drawn(state, now[whose])):
                    look = (
                        "the seed: a generator of your own, such as np.random.default_rng(seed), "
                    )
                    self.note(
                        f"seeds {whose} shared generator", f"{look}changes nobody else's draws"
                    )
            after = settings()
            for what, value in before.items():
                if after[what] != value:
                    if what == _FOLDER:
                        os.chdir(value)
                    look = "a setting made, or entered without `with`: it stays for the next code"
                    self.note(f"leaves {what} at {after[what]}, which was {value}", look)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Put back what changes of the grader within it, and note it."""
        before = _Snapshot(self._records)
        printed_to = sys.stdout, sys.stderr
        handlers = [signal.getsignal(each) for each in _SIGNALS]
        trace, profile = sys.gettrace(), sys.getprofile()
        try:
            yield
        finally:
            # A call that ends late, in a thread, knows nothing of the grading that came after.
            if not self._over:
                sys.settrace(trace)
                sys.setprofile(profile)
                if (sys.stdout, sys.stderr) != printed_to:
                    sys.stdout, sys.stderr = printed_to
                    self.note("leaves another object in sys.stdout or sys.stderr")
                self._put_back(before, handlers)

    def _put_back(self, before: "_Snapshot", handlers: Sequence[Any]) -> None:
        for number, handler in zip(_SIGNALS, handlers, strict=True):
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
                self.note("handles a signal, which may come while it is graded")
        changed = before.changes()
        codes = [_code_of(home, name) for home, name, _ in changed]
        for home, name, value in changed:  # all of them first: `note` may be among them
            if value is _ABSENT:
                home.pop(name) if isinstance(home, dict) else delattr(home, name)
            elif isinstance(home, dict):
                home[name] = value
            elif isinstance(home, type | types.FunctionType):
                setattr(home, name, value)
            else:  # a record, which is frozen
                object.__setattr__(home, name, value)
        for (home, name, _), code in zip(changed, codes, strict=True):
            of = _told_home(home)
            into = f" into that of {code}" if code else ""
            self.note(f"changes {name} of {of}{into}, which the grader relies on")
        if _guard is not self:
            self.note("changes the grader's guard")

    @contextmanager
    def active(self) -> Iterator[None]:
        """The answer key is disarmed, and the answer's doings are seen, within it."""
        global _guard
        _install()
        self._records = list(_records())
        kept = [(each, each.__code__) for each in self._disarmed]
        for each in self._disarmed:
            each.__code__ = _disarmed.__code__
        _guard = self
        try:
            yield
        finally:
            _guard = None
            self._over = True
            for each, code in kept:
                each.__code__ = code

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit event while this guard is active."""
        if event in _PEEKS or (event == "object.__getattr__" and arguments[1:] == ("tb_frame",)):
            if self._is_mine(skipping=("inspect.py",)) and not _telling_an_error():
                self.note(f"looks into the frames or objects of its caller ({event})")
        elif (
            event in _WRITES
            and self._changes_a_file(event, arguments)
            and self._has_called()
            and not _importing()  # Python keeps what it compiled
        ):
            self.note("changes a file of the grader")
            self.verdict()  # and the file stays as it is
        elif event in _OPENS and isinstance(arguments[0], str | bytes) and self._has_called():
            path = _text_of(Path(os.fsdecode(arguments[0])))
            if path == self._home or (self._folder in path.parents and not _importing()):
                self.note(f"reads the reference answer, {path.name}")
            elif path == _SUSPECTS and not _importing():
                self.note("reads the file with the letters of the hunts", _LOOK_AT_HUNT)
        elif event == CAUSES_READ and self._has_called():
            self.note("reads the cause in the course's table", _LOOK_AT_HUNT)
        elif event in _FORKS:
            if self._is_mine(skipping=()):
                self.note("forks the grader's process, of which each copy would grade")
                self.verdict()  # and it is not forked
        elif event in _STARTS and self._has_called():
            said = " ".join(map(str, arguments[:2]))
            if "solutions" in said or "tvm_practice.engines.child" in said:
                self.note("starts a process with the reference answers")
            elif not self._in_lab and self._is_mine(skipping=("subprocess.py",)):
                self.note("starts a process, which could read the reference answers")
        elif event in _RUNS_CODE and isinstance(arguments[_RUNS_CODE[event]], types.CodeType):
            parts = set(map(_essence, _codes_in(arguments[_RUNS_CODE[event]])))
            if self._key_parts & parts and not _importing() and self._has_called():
                self.note("runs a copy of the reference answer")
        elif (
            event in _CALLS_C and not self._in_lab and self._is_mine(skipping=_BY_CTYPES)
        ):  # in a lab, a compiler's library may be called
            self.note("calls C by ctypes, which nothing here watches")

    def thread_starts(self) -> None:
        """Raise CheckFailed if the answer itself starts it; what it calls may have threads."""
        if not self._in_lab and self._is_mine(skipping=_POOLS):
            self.note("starts a thread, which could change the grader while it checks")
            self.verdict()

    def is_seeded(self) -> None:
        """A shared generator is seeded: by the answer, or by a library, as its cost model does."""
        self._seeded_by_others |= not self._is_mine(skipping=())

    def _changes_a_file(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Whether it is a file of the grader or the answer key, and not the answer's own."""
        if event == "open" and not (int(arguments[2] or 0) & _TO_WRITE):
            return False
        paths = [arguments[each] for each in _WRITES[event]]
        for path in paths:
            if not isinstance(path, str | bytes | os.PathLike):  # a file's number
                continue
            each = Path(os.fsdecode(path)).resolve()
            folders = (*_FOLDERS, self._folder)
            if str(each) != self.path and any(folder in each.parents for folder in folders):
                return True
        return False

    def _is_mine(self, *, skipping: tuple[str, ...]) -> bool:
        """Whether the answer's file made the call, itself or by a module of `skipping`."""
        frame: types.FrameType | None = _frames(3)
        while frame is not None and frame.f_code.co_filename.endswith(skipping):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename == self.path

    def _has_called(self) -> bool:
        """Whether the answer's file is among the callers, nearer than the grader's."""
        frame: types.FrameType | None = _frames(3)
        while frame is not None:
            if frame.f_code.co_filename == self.path:
                return True
            if "/course/checks/" in frame.f_code.co_filename:
                return False
            frame = frame.f_back
        return False


# Of the grader, and of what it compares with.
_FOLDERS = (Path(__file__).resolve().parents[1], Path(np.__file__).resolve().parent)
_guard: Guard | None = None
_installed = False
_frames = sys._getframe


def _install() -> None:
    """An audit hook stays for as long as the process does, so there is one."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_heard)
        for module, name in _THREADS:
            if hasattr(module, name):
                setattr(module, name, _told(getattr(module, name), Guard.thread_starts))
        for module, name in _SEEDS:
            setattr(module, name, _told(getattr(module, name), Guard.is_seeded))


def _told(function: Callable[..., Any], tell: Callable[[Guard], None]) -> Callable[..., Any]:
    """`function`, after the guard was told."""

    def telling(*arguments: Any, **options: Any) -> Any:
        if _guard is not None:
            tell(_guard)
        return function(*arguments, **options)

    return telling


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    guard = _guard
    if guard is None or (guard.seen is not None and event not in _STOPPED):
        return
    if event in _HEARD and not guard.listening:
        guard.listening = True  # to look at frames is an event, too
        try:
            guard.heard(event, arguments)
        finally:
            guard.listening = False


_STOPPED = {*_WRITES, *_FORKS}
_HEARD = {
    CAUSES_READ, *_OPENS, "object.__getattr__", *_PEEKS, *_STARTS, *_FORKS, *_WRITES, *_RUNS_CODE,
    *_CALLS_C
}  # fmt: skip


def _disarmed(*arguments: Any, **options: Any) -> Any:
    """Stands in the place of the reference answer's code."""
    from tvm_practice.course import guarding

    guarding.answer_key_called()


def answer_key_called() -> None:
    """The reference answer of the exercise that is being graded was called."""
    guard = _guard
    if guard is not None:
        guard.note("calls the reference answer")
        guard.verdict()


def _importing() -> bool:
    """Whether Python's import system opens the file."""
    frame: types.FrameType | None = _frames(3)
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def _telling_an_error() -> bool:
    """Whether TVM adds the frames of a callback to an error: by code that bears its file's name."""
    frame: types.FrameType | None = _frames(3)
    for name in ("_create_frame", "append_traceback"):
        frame = frame.f_back if frame is not None else None
        if frame is None or frame.f_code.co_name != name:
            return False
        if not frame.f_code.co_filename.endswith(f"tvm_ffi{os.sep}error.py"):
            return False
    return True


def _essence(code: types.CodeType) -> tuple[Any, ...]:
    """What two compilations of a function have in common, whatever it and its file are called."""
    return code.co_code, code.co_names, code.co_varnames


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """It, and that of each function within."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes_in(each)


def source_of(module: str) -> Path:
    """The file that `module` is imported from."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).resolve()


def _always_kept() -> dict[str, Any]:
    """Settings that an answer to a lab leaves as they are, too."""
    found: dict[str, Any] = {"NumPy's errstate": np.geterr(), _FOLDER: str(Path.cwd())}
    tvm = sys.modules.get("tvm")
    if tvm is not None and hasattr(tvm, "transform"):
        context = tvm.transform.PassContext.current()
        current = tvm.target.target.Target.current(allow_none=True)  # Target itself may be watched
        found["TVM's current target"] = str(current)
        found["TVM's pass context"] = f"level {context.opt_level}, {dict(context.config.items())}"
    return found


def _surroundings() -> dict[str, Any]:
    """Settings of the process that an answer may use, and must leave as they are."""
    found = _always_kept()
    torch = sys.modules.get("torch")
    tuner = sys.modules.get("tvm.s_tir.meta_schedule")
    if tuner is not None and hasattr(tuner, "Database"):
        found["MetaSchedule's current database"] = str(type(tuner.Database.current()).__name__)
    if torch is not None and hasattr(torch, "get_num_threads"):
        found["PyTorch's number of threads"] = torch.get_num_threads()
        found["PyTorch's default type"] = str(torch.get_default_dtype())
        found["PyTorch's seed"] = torch.initial_seed()
    return found


def _generators() -> dict[str, random.Random]:
    """Copies of the generators that all of the process draws from, by their owners."""
    python, numpys = random.Random(), random.Random()
    python.setstate(random.getstate())
    state = np.random.get_state(legacy=False)["state"]
    if "key" in state:  # it is Python's generator, MT19937, unless another one was put in its place
        numpys.setstate((3, (*map(int, state["key"]), int(state["pos"])), None))
    return {"Python's": python, "NumPy's": numpys}


def _only_drawn(before: random.Random, after: random.Random) -> bool:
    """Whether the state `after` is one that draws from `before` lead to; `before` is moved.

    A generator draws all words of its state, and then makes the next state of them.
    """
    words = after.getstate()[1][:-1]
    for _ in range(_MOST_STATES):
        if before.getstate()[1][:-1] == words:
            return True
        before.getrandbits(32 * len(words))
    return False


def _text_of(file: Path) -> Path:
    """The Python text of `file`, which may be what Python compiled of it."""
    file = file.resolve()
    if file.parent.name == "__pycache__":
        return file.parent.parent / f"{file.name.partition('.')[0]}.py"
    return file


def _reference(module: str, name: str) -> types.FunctionType | None:
    found = getattr(importlib.import_module(f"solutions.{module}"), name, None)
    return inspect.unwrap(found) if inspect.isfunction(found) else None


def _functions_of(module: types.ModuleType) -> list[types.FunctionType]:
    """The functions that a module defines."""
    found = [each for each in vars(module).values() if isinstance(each, types.FunctionType)]
    return [each for each in found if each.__module__ == module.__name__]


class _Snapshot:
    """What a check relies on: modules, and of those of the grader the classes and functions.

    It is taken for each call of an answer. So what it does for each of a thousand functions is
    left to loops in C.
    """

    def __init__(self, records: Sequence[Any] = ()) -> None:
        self._names: list[tuple[_Home, dict[str, Any]]] = []
        self._own: list[tuple[_Home, dict[str, Any]]] = []
        self._functions: list[types.FunctionType] = []
        self._names += [(each, dict(_held_by(each))) for each in records]
        own_names = [name for name in sys.modules if name.startswith(_OWN)]
        for name in (*own_names, *_RELIED_ON):
            module = sys.modules.get(name)
            if module is None:
                continue
            held = dict(vars(module))
            self._names.append((vars(module), held))
            if name.startswith(_OWN):
                self._own.append((vars(module), held))
                self._hold(name, held)
            for of in _CLASSES.get(name, ()):
                if (relied_on := held.get(of)) is not None:
                    self._names.append((relied_on, dict(vars(relied_on))))
        self._parts = _parts_of(self._functions)

    def _hold(self, module: str, held: Mapping[str, Any]) -> None:
        """Hold the functions that a module of the grader has, and its own classes."""
        for value in held.values():
            if isinstance(value, types.FunctionType):
                self._functions.append(value)
                if value.__kwdefaults__:
                    self._names.append((value.__kwdefaults__, dict(value.__kwdefaults__)))
            elif isinstance(value, type) and value.__module__ == module:
                self._names.append((value, dict(vars(value))))
                self._own.append(self._names[-1])

    def changes(self) -> list[tuple[_Home, str, Any]]:
        """What counts and is no longer as it was: where, its name, its value before."""
        found = [each for home, held in self._names for each in _changes(home, held)]
        for home, held in self._own:
            found += _added(home, held)
        now = _parts_of(self._functions)
        if not all(map(operator.is_, chain(*self._parts), chain(*now))):
            for function, *parts in zip(self._functions, *self._parts, strict=True):
                found += _changes(function, dict(zip(_FUNCTION_PARTS, parts, strict=True)))
        return found


def _parts_of(functions: Sequence[types.FunctionType]) -> list[list[Any]]:
    """A list for each of `_FUNCTION_PARTS`, of all functions."""
    return [list(map(operator.attrgetter(part), functions)) for part in _FUNCTION_PARTS]


def _changes(home: _Home, held: dict[str, Any]) -> list[tuple[_Home, str, Any]]:
    """What counts and is no longer as it was held."""
    now = _held_by(home)
    if isinstance(home, types.FunctionType):
        now = {part: getattr(home, part) for part in held}
    if all(map(operator.is_, held.values(), map(now.get, held))):
        return []
    return [
        (home, name, value)
        for name, value in held.items()
        if now.get(name) is not value and _counts(value)
    ]


def _added(home: _Home, held: dict[str, Any]) -> list[tuple[_Home, str, Any]]:
    """Names that come before others since: in a module before Python's own, in a class any."""
    now = _held_by(home)
    if len(now) == len(held):
        return []
    new = now.keys() - held.keys()
    hides = new & vars(builtins).keys() if isinstance(home, dict) else new - _MADE_LATE
    return [(home, name, _ABSENT) for name in sorted(hides)]


def _held_by(home: _Home) -> Mapping[str, Any]:
    return home if isinstance(home, dict) else vars(home)


def _told_home(home: _Home) -> str:
    if isinstance(home, dict):
        return str(home.get("__name__", "a table"))
    return getattr(home, "__qualname__", type(home).__qualname__)


def _records() -> Iterator[Any]:
    """The records of the grader's tables, the puzzles say, and these tables."""
    for name in [each for each in sys.modules if each.startswith(_OWN)]:
        for value in list(vars(sys.modules[name]).values()):
            if _is_record(value):
                yield value
            elif isinstance(value, dict) and value and all(map(_is_record, value.values())):
                yield value
                yield from value.values()


def _is_record(value: Any) -> bool:
    """Whether it is a frozen dataclass's instance, which nothing of the grader changes."""
    parameters = getattr(value, "__dataclass_params__", None)
    return (
        parameters is not None
        and parameters.frozen
        and not isinstance(value, type)
        and hasattr(value, "__dict__")
    )


def _code_of(home: _Home, name: str) -> str | None:
    """Whose code a function has now, where it is the code that changed."""
    if isinstance(home, types.FunctionType) and name == "__code__":
        return home.__code__.co_name
    return None


def _counts(value: Any) -> bool:
    """Whether it is a function, a class, a constant or a record; a module keeps others as well."""
    return callable(value) or isinstance(value, _CONSTANTS) or _is_record(value)
