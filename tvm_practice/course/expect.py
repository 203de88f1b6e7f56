"""What checks are written with: expectations whose failure says what, where and why."""

import random
import secrets
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from tvm_practice.viz.loop_nest import Loop, Node, Statement, format_nest, paths, without_types

_T = TypeVar("_T")


class CheckFailed(AssertionError):
    """A wrong answer; the message says what was expected, what was seen, where to look."""


def fail(expected: str, seen: str, look: str) -> CheckFailed:
    return CheckFailed(f"expected: {expected}\nseen:     {without_types(seen)}\nlook at:  {look}")


def expect(condition: bool, *, expected: str, seen: str, look: str) -> None:
    if not condition:
        raise fail(expected, seen, look)


def expect_type(
    value: Any, kind: type, expected: str, *, look: str = "the return statement"
) -> None:
    """`value` is of the type `kind`, which `expected` says in words."""
    seen = type(value)
    module = "" if seen.__module__ == "builtins" else f"{seen.__module__}."
    expect(
        isinstance(value, kind),
        expected=expected,
        seen=f"a {module}{seen.__qualname__}",
        look=look,
    )


def expect_close(
    got: Any,
    want: np.ndarray,
    *,
    what: str,
    look: str,
    atol: float = 1e-4,
    rtol: float = 1e-4,
    whose: str = "numpy",
) -> None:
    """`got` has the shape and values of `want`, `whose` result; names the worst element.

    An infinity must be the same one; NaN is right where `want` is NaN, and nowhere else.
    """
    got = np.asarray(got)
    expect(
        got.shape == want.shape,
        expected=f"{what} of shape {want.shape}",
        seen=f"shape {got.shape}",
        look=look,
    )
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype("float64") - want.astype("float64"))
        error = np.where(np.isfinite(error), error, np.inf)
        error[(got == want) | (np.isnan(got) & np.isnan(want))] = 0
        excess = error - np.nan_to_num(atol + rtol * np.abs(want), posinf=0)
    if error.size and excess.max() > 0:
        at = tuple(int(i) for i in np.unravel_index(int(excess.argmax()), want.shape))
        wrong = int((excess > 0).sum())
        raise fail(
            f"{what} equal to {whose}'s within {atol:g} + {rtol:g}·|value|",
            f"{wrong} of {want.size} elements differ; at {list(at)} it is {got[at]:.6g}, "
            f"{whose} says {want[at]:.6g}",
            look,
        )


def expect_unchanged(before: np.ndarray, after: np.ndarray, name: str) -> None:
    expect(
        np.array_equal(before, after, equal_nan=True),
        expected=f"the input {name} is only read",
        seen=f"{name} was changed in place",
        look=f"the statement that writes to {name}",
    )


def path_to(nest: list[Node], name: str, *, look: str) -> tuple[Loop, ...]:
    """The loops around the statement called `name`, outermost first."""
    for loops, statement in paths(nest):
        if statement.name == name:
            return loops
    names = ", ".join(statement.name for _, statement in paths(nest)) or "nothing"
    raise fail(f"a statement named {name}", f"only {names}", look)


def statements(nest: list[Node]) -> list[Statement]:
    return [statement for _, statement in paths(nest)]


def show(loops: Sequence[Loop]) -> str:
    """Loops on one line: `i_0 parallel(4) > j_0 serial(4)`."""
    return " > ".join(f"{loop.name} {loop.kind}({loop.extent})" for loop in loops) or "no loops"


def show_nest(nest: list[Node]) -> str:
    return "\n" + format_nest(nest, "    ")


_SEEDS = 1_000_000  # few enough digits to type
_drawn_from = np.random.SeedSequence()


def new_seed() -> int:
    """A seed that nobody chose, for one grading."""
    return secrets.randbelow(_SEEDS)


def draw_from(seed: int) -> None:
    """Let `seed` decide all that this process draws from now on: one check, and only that, is next.

    It holds for `fresh_rng`, `seed_torch`, and the generators that Python and numpy share.
    """
    global _drawn_from
    _drawn_from = np.random.SeedSequence(seed)
    random.seed(seed)
    np.random.seed(seed)


def fresh_rng() -> np.random.Generator:
    """Inputs are drawn anew each time, so that a hard-coded result cannot pass twice.

    The check's seed decides them; each call gives another generator.
    """
    return np.random.default_rng(_drawn_from.spawn(1)[0])


def draw_distinct(count: int, among: Sequence[_T]) -> list[_T]:
    """Different elements of `among`."""
    return [among[int(index)] for index in fresh_rng().choice(len(among), count, replace=False)]


def varied(
    *base: int,
    alone: bool = False,
    large: bool = False,
    far: bool = False,
    small: bool = False,
) -> list[tuple[int, ...]]:
    """`base` with its numbers changed, so that a condition on them is met by one of the results.

    Every second is 1, all are large powers of two, and neighbours, every second, halves and all of
    them are equal. With `alone`, one number after the other is one more: a result may be kept from
    an earlier call. With `large`, one number after the other is several hundred, and with `far`
    more than 65,536, where nothing is run. With `small`, one after the other is 1, every number is
    each of 1 to 9 once, and all are 1.
    """
    count = len(base)
    found = [base]
    if small:
        found += [(*base[:at], 1, *base[at + 1 :]) for at in range(count)]
        found += [tuple(1 + (at + first) % 9 for at in range(count)) for first in range(9)]
        found.append((1,) * count)
    for wanted, span in ((large, (257, 700)), (far, (66_000, 199_000))):
        if wanted:
            many = (int(each) for each in fresh_rng().integers(*span, count))
            found += [(*base[:at], each, *base[at + 1 :]) for at, each in enumerate(many)]
    if alone:
        found += [(*base[:at], base[at] + 1, *base[at + 1 :]) for at in range(count)]
    found += [tuple(1 if at % 2 == odd else each for at, each in enumerate(base)) for odd in (0, 1)]
    power, even = int(fresh_rng().choice([128, 256])), int(fresh_rng().choice([2, 4, 6]))
    found += [(power,) * ((count + 1) // 2) + (power // 4,) * (count // 2), (even,) * count]
    for same in (
        [at // 2 * 2 for at in range(count)],
        [(at + 1) // 2 * 2 - (at > 0) for at in range(count)],
        [at % 2 for at in range(count)],
        [0 if at < (count + 1) // 2 else (count + 1) // 2 for at in range(count)],
    ):
        found.append(tuple(base[at] for at in same))
    return list(dict.fromkeys(found))


def draw_normal(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """A float32 array of each shape, normally distributed."""
    rng = fresh_rng()
    return [rng.standard_normal(shape, dtype="float32") for shape in shapes]


def seed_torch() -> None:
    """Have the check's seed decide the weights and inputs that PyTorch draws next."""
    import torch

    torch.manual_seed(int(fresh_rng().integers(2**31)))
