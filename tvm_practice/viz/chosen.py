"""Which schedules a command shows: the course's matmul, or what MODULE:FUNCTION makes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tvm_practice.viz.access import AccessProgram

Makers = Mapping[str, Callable[[], Any]]

# Given by name, as a schedule of one's own is: the course stands on these pictures.
_DEFAULT = "tvm_practice.course.tours.matmuls"
_EXPECTED = {
    "current": "it has to be a tvm.s_tir.Schedule, a PrimFunc or an IRModule with a main",
    "classic": "it has to be a pair (tvm.te.Schedule, its tensors)",
}


class Mistake(click.ClickException):
    """A mistake in the request, said in a line."""

    exit_code = 2


def activate(engine: str) -> None:
    """Activate an engine in this process. Raises click.ClickException where it cannot be."""
    from tvm_practice import engines

    try:
        engines.activate(engine)  # type: ignore[arg-type]
    except engines.EngineError as error:
        raise click.ClickException(str(error)) from None


def require_ending(out: Path | None, *endings: str) -> None:
    """Raise Mistake for a picture whose name ends in none of `endings`."""
    if out is not None and out.suffix.lower() not in endings:
        *first, last = endings
        known = f"{', '.join(first)} or {last}" if first else last
        raise Mistake(f"--out {out}: give a file that ends in {known}")


def default(function: str) -> Callable[..., Any]:
    """A function of the course's matmul, by its name."""
    return _found(f"{_DEFAULT}:{function}")


def makers(what: str | None, size: int, mine: bool, engine: str) -> Makers:
    """By name, what makes each schedule that was asked for, on the engine, which is activated.

    Args:
        what: MODULE:FUNCTION; None for the course's matmul.
        size: of that matmul.
        mine: by the learner's functions.
        engine: current or classic.

    Raises:
        Mistake: there is no such function, or no matmul on that engine.
    """
    activate(engine)
    if what is not None:
        return {what.partition(":")[2] or what: _found(what)}
    _refuse_classic(engine)
    found: Makers = default("matmul_makers")(size, mine=mine)
    return found


def small_makers(what: str | None, mine: bool, engine: str) -> Makers:
    """The same for pictures of single elements, where the course's matmul is a small one."""
    if what is not None:
        return makers(what, 0, mine, engine)
    activate(engine)
    _refuse_classic(engine)
    found: Makers = default("small_matmul_makers")(mine=mine)
    return found


def _refuse_classic(engine: str) -> None:
    if engine == "classic":
        raise Mistake("--engine classic needs MODULE:FUNCTION: the matmuls are current TVM's")


def _found(name: str) -> Callable[..., Any]:
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import find_factory

    try:
        factory: Callable[..., Any] = find_factory(name)
    except BadInput as error:
        raise Mistake(str(error)) from None
    return factory


def made(name: str, make: Callable[[], Any]) -> Any:
    """What a function makes; None for a stub, which is said.

    Raises Mistake with one line for whatever else it raises.
    """
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import describe, kept_alive

    try:
        with kept_alive(name):
            return make()
    except BadInput as error:
        raise Mistake(str(error)) from None
    except NotImplementedError as error:
        click.echo(f"{name}: to do ({error})", err=True)
        return None
    except Exception as error:
        raise Mistake(f"{name} raised {describe(error)}") from None


def programs(makers: Makers, engine: str) -> "dict[str, AccessProgram]":
    """The access programs of the functions made.

    Raises:
        Mistake: one makes something else than a schedule, or one that cannot be followed.
        click.ClickException: all are still to do.
    """
    found = {}
    for name, make in makers.items():
        schedule = made(name, make)
        if schedule is not None:
            found[name] = _program(name, schedule, engine)
    if not found:
        raise click.ClickException("nothing to show: the functions are still to do")
    return found


def _program(name: str, schedule: Any, engine: str) -> "AccessProgram":
    from tvm_practice.viz.access import CannotFollow, access_program

    is_pair = isinstance(schedule, tuple) and len(schedule) == 2
    if is_pair != (engine == "classic"):
        raise Mistake(f"{name} returned {type(schedule).__name__}: {_EXPECTED[engine]}")
    function, tensors = schedule if is_pair else (getattr(schedule, "mod", schedule), None)
    try:
        return access_program(function, tensors, name=name)
    except CannotFollow as error:
        raise Mistake(f"{name}: {error}") from None
    except (AttributeError, TypeError):
        raise Mistake(f"{name} returned {type(schedule).__name__}: {_EXPECTED[engine]}") from None
