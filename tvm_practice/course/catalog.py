"""What a phase and an exercise are, and the list of them."""

import difflib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm_practice.engines import Engine

PHASE_MODULES = ("te_basics", "manual_schedule", "schedule_analysis", "relay_import", "auto_tune")
# Beyond the five, in the form of a phase; each can be done alone.
LAB_MODULES: tuple[str, ...] = (
    "labs.gpu_schedule",
    "labs.deploy_cpp",
    "labs.cross_compile",
    "labs.dynamic_shapes",
    "labs.tuning_farm",
    "labs.compilers_compared",
    "labs.custom_operator",
    "labs.low_precision",
)
# Short exercises between the phases, after the phase that they practise.
PRACTICE_MODULES = {"te_basics": "puzzles", "manual_schedule": "bug_hunts"}
MODULES = (
    *(
        each
        for module in PHASE_MODULES
        for each in (module, PRACTICE_MODULES.get(module))
        if each is not None
    ),
    *LAB_MODULES,
)

# The packages that hold the phases' functions: the learner's own, and the reference ones.
MINE = "tvm_practice"
SOLUTIONS = "solutions"

Check = Callable[[Callable[..., Any]], None]
Demonstrate = Callable[[Callable[..., Any]], str]


@dataclass(frozen=True)
class Exercise:
    """One function that the learner writes.

    Attributes:
        phase: the module it is in, `te_basics` or `labs.deploy_cpp` say.
        name: the function's name.
        engine: the TVM it is graded on.
        title: what it does, in a few words.
        hints: three, of rising detail.
        looks_like: what a correct answer gives: a loop nest or output, in short.
        demonstrate: takes the function; returns `looks_like` if it is right (on `engine`).
        check: takes the function; raises CheckFailed with a message that teaches.
        step_of: the exercise of the same phase that this one is a step of; "" for none.
    """

    phase: str
    name: str
    engine: Engine
    title: str
    hints: tuple[str, str, str]
    looks_like: str
    demonstrate: Demonstrate
    check: Check
    step_of: str = ""

    @property
    def id(self) -> str:
        return f"{self.phase}.{self.name}"


@dataclass
class Phase:
    """A module of the course: one of the five phases, practice between them, or a lab.

    Attributes:
        number: among the phases, or among the labs; 0 for practice.
        module: its file, dotted from the package's folder: `te_basics`, `labs.deploy_cpp`.
        lanes: the engines its `lane` function runs on, in this order.
        question: the key question, asked at the end; docs/phases has the answer.
        builds_on: exercises of earlier phases whose functions the run uses, see `stack`.
    """

    number: int
    module: str
    title: str
    lanes: tuple[Engine, ...]
    question: str
    exercises: list[Exercise] = field(default_factory=list)
    builds_on: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of `module`, `te_basics` or `deploy_cpp`."""
        return self.module.rpartition(".")[2]

    @property
    def is_lab(self) -> bool:
        return self.module in LAB_MODULES

    @property
    def is_practice(self) -> bool:
        return self.module in PRACTICE_MODULES.values()

    @property
    def heading(self) -> str:
        """`Phase 2`, `Lab 1`, `Practice`."""
        if self.is_practice:
            return "Practice"
        return f"{'Lab' if self.is_lab else 'Phase'} {self.number}"

    @property
    def key(self) -> str:
        """What it is called on command lines: `2`, `lab1`, `puzzles`."""
        if self.is_practice:
            return self.name
        return f"lab{self.number}" if self.is_lab else str(self.number)

    @property
    def label(self) -> str:
        """Key and name, `2 manual_schedule`; `puzzles`, where they are the same."""
        return self.name if self.is_practice else f"{self.key} {self.name}"

    @property
    def marker(self) -> str:
        """The pytest marker of its exercises: `phase2`, `lab1`, `puzzles`."""
        if self.is_practice:
            return self.name
        return f"{'lab' if self.is_lab else 'phase'}{self.number}"

    @property
    def page(self) -> str:
        if self.is_practice:
            return f"docs/practice/{self.name}.md"
        return f"docs/{'labs' if self.is_lab else 'phases'}/{self.number}-{self.name}.md"

    def exercise(
        self,
        name: str,
        *,
        engine: Engine,
        title: str,
        hints: tuple[str, str, str],
        looks_like: str,
        demonstrate: Demonstrate,
        step_of: str = "",
    ) -> Callable[[Check], Check]:
        """Register the decorated check as that of exercise `name`."""

        def register(check: Check) -> Check:
            shape = inspect.cleandoc(looks_like)
            self.exercises.append(
                Exercise(
                    self.module, name, engine, title, hints, shape, demonstrate, check, step_of
                )
            )
            return check

        return register


def phase(module: str) -> Phase:
    """The phase, practice or lab of that module, `te_basics` or `labs.deploy_cpp` say."""
    found: Phase = importlib.import_module(f"tvm_practice.course.checks.{module}").PHASE
    return found


def phases() -> list[Phase]:
    """The five phases in order."""
    return [phase(module) for module in PHASE_MODULES]


def labs() -> list[Phase]:
    """The labs in order."""
    return [phase(module) for module in LAB_MODULES]


def modules() -> list[Phase]:
    """The five phases with the practice between them, and then the labs."""
    return [phase(module) for module in MODULES]


def exercises() -> list[Exercise]:
    """Every exercise, in the order of the course."""
    return [exercise for each in modules() for exercise in each.exercises]


def find(name: str) -> Exercise:
    """The exercise `te_basics.matmul`, or `matmul` alone. Raises KeyError with a suggestion."""
    module, _, function = name.rpartition(".")
    named = [each for each in MODULES if module in (each, each.rpartition(".")[2])]
    among = phase(named[0]).exercises if named else exercises()
    for exercise in among:
        if exercise.name == function:
            return exercise
    names = [each.name for each in exercises()] + [each.key for each in modules()]
    # A part of a name, if it is more than a letter or two, else what looks like it.
    near = [each for each in names if len(function) > 2 and function in each][:3]
    near = near or difflib.get_close_matches(function, names, n=1)
    raise KeyError(
        f"no exercise {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else "")
    )
