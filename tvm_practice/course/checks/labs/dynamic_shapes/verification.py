"""Values verified over a range of the symbol."""

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.checks.labs.dynamic_shapes.common import PHASE, Arrays, Function
from tvm_practice.course.expect import expect, fail, fresh_rng
from tvm_practice.engines import CURRENT
from tvm_practice.wording import number_of


@PHASE.exercise(
    "verify_over_range",
    engine=CURRENT,
    title="verify one artifact over many shapes",
    hints=(
        "Make a set of shapes first, of three kinds; then one loop over them draws, runs, compares "
        "and raises.",
        "itertools.product(*((1, bound) for bound in bounds)) is the corners; add a tuple of "
        "primes, and tuples of random.randint(1, bound). "
        "For each: inputs = draw(*shape); compare run(*inputs) with reference(*inputs), first "
        ".shape, then the largest absolute difference.",
        "NaN compares false with everything: `if not error <= tolerance: raise ValueError(...)`, "
        "with the shape in the text.",
    ),
    looks_like="""
        corners: 1x1, 1x40, 29x1, 29x40
        one of primes: yes
        at least 8 others: yes
        wrong where 8 divides n: ValueError
    """,
    demonstrate=lambda verify_over_range: _demonstrated_range(verify_over_range),
)
def check_verify_over_range(verify_over_range: Function) -> None:
    rng = fresh_rng()
    bounds = int(rng.integers(30, 60)), int(rng.integers(30, 60))
    seen: list[set[tuple[int, ...]]] = []
    for by in (1e-5, -1e-5, 1e-5):
        called: list[tuple[int, ...]] = []

        def run(
            x: np.ndarray, called: list[tuple[int, ...]] = called, by: float = by
        ) -> np.ndarray:
            called.append(x.shape)
            shifted: np.ndarray = np.sqrt(x)
            shifted.flat[int(rng.integers(x.size))] += np.float32(by)  # the others are exact
            return shifted

        errors = verify_over_range(run, np.sqrt, _positive, bounds)
        _expect_range(errors, called, bounds)
        seen.append(set(called))
    _expect_each_error(verify_over_range, bounds)
    _expect_extents_kept(verify_over_range, bounds)
    expect(
        seen[0] != seen[1] != seen[2],
        expected="other random shapes at each call",
        seen="the same shapes twice",
        look="random.randint without a seed",
    )
    _expect_anew_at_once(verify_over_range, bounds)
    _expect_drawn(verify_over_range)
    _expect_primes(verify_over_range)
    # Other numbers of symbols, and the smallest bound.
    for few in ((50,), (4, 5, 6), (4, 5, 4, 4, 4, 4, 5, 4)):
        tried: list[tuple[int, ...]] = []
        errors = verify_over_range(_noting(tried), np.sqrt, _positive, few)
        expect(
            set(errors) == set(tried),
            expected=f"an error for each shape of the range {few}, by a tuple of extents",
            seen=f"{list(errors)[:3]} and so on, where {sorted(set(tried))[:3]} were tried",
            look="the keys of the dictionary: tuples, of one symbol as well",
        )
        missing = set(itertools.product(*((1, bound) for bound in few))) - set(tried)
        expect(
            not missing,
            expected=f"every corner of the range {few} is tried",
            seen=f"{sorted(missing)} are not",
            look="as many symbols as there are bounds",
        )
    _expect_handed_on(verify_over_range)
    _expect_tolerance(verify_over_range, bounds)
    _expect_no_rounding(verify_over_range, bounds)
    _expect_whole_numbers(verify_over_range, bounds)
    _expect_large_outputs(verify_over_range)
    _expect_largest_kept(verify_over_range)
    for what, corrupt in _CORRUPTIONS.items():
        _expect_refused(verify_over_range, what, corrupt, bounds)
    _expect_nan_refused(verify_over_range, bounds)
    _expect_both_shapes(verify_over_range, bounds)
    _expect_no_failure_hidden(verify_over_range, bounds)


def _expect_anew_at_once(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """Calls that follow each other in less than a millisecond draw other shapes, too."""
    drawn: list[list[tuple[int, ...]]] = []

    def draw(*shape: int) -> tuple[np.ndarray]:
        drawn[-1].append(shape)
        return (np.ones(1),)

    for _ in range(5):
        drawn.append([])
        verify_over_range(lambda x: x, lambda x: x, draw, bounds)
    corners = set(itertools.product(*((1, bound) for bound in bounds)))
    again = [set(each) & set(other) - corners for each, other in itertools.pairwise(drawn)]
    most = max(again, key=len)
    expect(
        len(most) < 5,  # of eight, one may be drawn twice by chance
        expected="other random shapes at each call, and at calls right after each other",
        seen=f"{len(most)} of the shapes twice, such as {sorted(most)[:4]}",
        look="random.randint without a seed: the clock is one, and may stand still between calls",
    )


def _expect_handed_on(verify_over_range: Function) -> None:
    """`run` and `reference` take the arrays that `draw` returned, at every shape."""
    bounds = tuple(int(each) for each in fresh_rng().integers(5, 9, 4))
    drawn: list[np.ndarray] = []

    def draw(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        drawn[:] = fresh_rng().uniform(0.5, 2, (2, *shape))
        return drawn[0].copy(), drawn[1].copy()

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        expect(
            np.array_equal(x, drawn[0]) and np.array_equal(y, drawn[1]),
            expected=f"the arrays that draw{x.shape} returned, in their order",
            seen="others",
            look="run(*inputs) and reference(*inputs), with what draw(*shape) returned just before",
        )
        return np.asarray(x - y)

    verify_over_range(run, run, draw, bounds)


def _expect_extents_kept(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """Errors are kept by what `draw` was given, which is not the shape of an array."""
    drawn: list[tuple[int, ...]] = []

    def draw(*shape: int) -> tuple[np.ndarray]:
        drawn.append(shape)
        return (np.ones((2, shape[1] + 1, shape[0])),)

    errors = verify_over_range(lambda x: x[0], lambda x: x[0], draw, bounds)
    expect(
        set(errors) == set(drawn),
        expected="a dictionary by the extents that draw was given, a tuple for each call",
        seen=f"{sorted(errors)[:3]} and so on, where draw was given {sorted(set(drawn))[:3]}",
        look="the keys of the dictionary: the extents, not the shape of an output",
    )


def _expect_each_error(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """Each shape has an error of its own, from 1e-12 to 1e-5, or none."""
    made: dict[tuple[int, ...], float] = {}

    def draw(*shape: int) -> tuple[np.ndarray]:
        exact = len(made) % 3 == 1  # of some shapes nothing is wrong at all
        error = 0.0 if exact else float(10 ** fresh_rng().uniform(-12, -5))
        made.setdefault(shape, error)
        return (np.zeros(shape),)

    def run(x: np.ndarray) -> np.ndarray:
        x.flat[-1] = made[x.shape]
        return x

    errors = verify_over_range(run, lambda x: np.zeros(x.shape), draw, bounds)
    for shape, error in made.items():
        expect(
            math.isclose(errors.get(shape, -1), error, rel_tol=1e-3),
            expected=f"the largest error at {shape}, {error:.3g}",
            seen=f"{errors.get(shape)}",
            look="the error kept for a shape: its own, not rounded and not another shape's",
        )


def _expect_both_shapes(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """Neither of the two output shapes is the inputs' shape."""

    def doubled(x: np.ndarray) -> np.ndarray:
        return np.repeat(x, 2, axis=1)

    try:
        verify_over_range(lambda x: np.repeat(x, 3, axis=1), doubled, _positive, bounds)
    except ValueError as error:
        text = str(error)
        numbers = list(map(int, re.findall(r"\d+", text)))
        expect(
            any({2 * each, 3 * each} <= set(numbers) for each in numbers),
            expected="the ValueError names the two output shapes",
            seen=text,
            look="the text of the error: the output's shape beside the reference's",
        )


def _expect_no_failure_hidden(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """What an artifact raises arrives as it was raised."""
    raised = RuntimeError("no kernel for one row")

    def run(x: np.ndarray) -> np.ndarray:
        if x.shape[0] == 1 < x.shape[1]:
            raise raised
        return np.asarray(np.sqrt(x))

    seen = "it passed"
    try:
        verify_over_range(run, np.sqrt, _positive, bounds)
    except Exception as error:
        if error is raised:
            return
        seen = f"{type(error).__name__}: {error}"[:200]
    raise fail(
        "the exception of an artifact that fails for a first extent of 1, as it was raised",
        seen,
        "the except clause: a shape that raises has not passed, and its exception says why",
    )


def _expect_tolerance(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """The absolute error decides, whatever the size of the values."""

    def large(x: np.ndarray) -> np.ndarray:
        return np.asarray(1000 * np.sqrt(x))

    for error in (0.01, 0.09):  # above the default, allowed
        try:
            verify_over_range(
                lambda x, by=error: np.sqrt(x) + by, np.sqrt, _positive, bounds, tolerance=0.1
            )
        except ValueError as refused:
            raise fail(
                f"an error of {error} passes with tolerance=0.1", str(refused), "`tolerance`"
            ) from refused
    for error, right in ((0.9e-4, True), (1.2e-4, False)):  # without a tolerance
        refusal = None
        try:
            verify_over_range(
                lambda x, by=error: np.zeros(x.shape) + by,
                lambda x: np.zeros(x.shape), _positive, bounds,
            )  # fmt: skip
        except ValueError as refused:
            refusal = refused
        expect(
            (refusal is None) == right,
            expected=f"an error of {error:g} {'accepted' if right else 'refused'} unless a "
            "tolerance is given",
            seen="it was refused" if refusal else "it was accepted",
            look="the default of `tolerance`, 1e-4",
        )
    try:
        verify_over_range(
            lambda x: np.zeros_like(x) + np.float32(0.5),
            np.zeros_like, _positive, bounds, tolerance=0.5,
        )  # fmt: skip
    except ValueError as refused:
        raise fail(
            "an error of just 0.5 passes with tolerance=0.5, the largest that does",
            str(refused),
            "the comparison with `tolerance`: <=",
        ) from refused
    try:
        verify_over_range(lambda x: large(x) + 0.02, large, _positive, bounds, tolerance=0.01)
    except ValueError:
        return
    raise fail(
        "a ValueError for values near 1000 with an error of 0.02, for tolerance=0.01",
        "it passed",
        "the error is absolute: it is not divided by the values",
    )


def _expect_large_outputs(verify_over_range: Function) -> None:
    """Of many elements the largest error is as exact as of few."""
    bounds = tuple(int(each) for each in fresh_rng().integers(200, 400, 2))

    def run(x: np.ndarray) -> np.ndarray:
        near = np.full(x.shape, 1e6)
        near.flat[-1] += 1e-5
        return near

    seen: object = None
    try:
        seen = verify_over_range(run, lambda x: np.full(x.shape, 1e6), _positive, bounds)[bounds]
    except ValueError as error:
        seen = error
    expect(
        isinstance(seen, float | np.floating) and math.isclose(seen, 1e-5, rel_tol=1e-3),
        expected=f"the error 1e-05 at {bounds}, of {math.prod(bounds)} values near a million",
        seen=f"{seen}",
        look="the difference in the arrays' own type, however many elements they have",
    )


def _expect_largest_kept(verify_over_range: Function) -> None:
    """Of a shape that is drawn again, the larger of the errors stays."""
    largest: dict[tuple[int, ...], float] = {}
    draws = itertools.count(1)

    def draw(n: int) -> tuple[np.ndarray]:
        error = 0.5 / next(draws)  # less each time
        largest.setdefault((n,), error)
        return (np.full(n, error),)

    errors = verify_over_range(lambda x: x, np.zeros_like, draw, (4,), tolerance=1.0)
    for shape, error in largest.items():
        expect(
            math.isclose(float(errors.get(shape, -1.0)), error, rel_tol=1e-6),
            expected=f"the largest error of the shape {shape}, {error:.3g}, also where it is drawn "
            "again and the error is smaller then",
            seen=f"{errors.get(shape)}",
            look="the dictionary's entry of a shape: the larger of the old and the new error",
        )


def _expect_no_rounding(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """The arrays are subtracted in their own type."""

    def million(x: np.ndarray) -> np.ndarray:
        return np.full(x.shape, 1e6)

    try:
        verify_over_range(lambda x: million(x) + 1e-3, million, _positive, bounds)
    except ValueError:
        return
    raise fail(
        "a ValueError for an error of 0.001 of float64 values near a million",
        "it passed",
        "the difference in the arrays' own type: float32 has no thousandths of a million",
    )


def _expect_whole_numbers(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """Of int64 arrays, an error counts that is a multiple of what smaller types hold."""
    for base, error in ((7, 1), (7, 256), (7, 2**16), (7, 2**32), (2**60, 1)):
        seen: object = None
        try:
            seen = verify_over_range(
                lambda x, value=base + error: np.full(x.shape, value),
                lambda x, value=base: np.full(x.shape, value),
                _positive, bounds, tolerance=float(2**33),
            )[bounds]  # fmt: skip
        except ValueError as refused:
            seen = refused
        expect(
            seen == error,
            expected=f"the error {error} of int64 arrays of {base}",
            seen=f"{seen}",
            look="the difference in the arrays' own type",
        )


def _expect_drawn(verify_over_range: Function) -> None:
    """The shape of primes is not left to chance, and no part of the range is left out."""
    for few in ((5, 5, 4, 5), (5, 4, 5, 5)):
        tried: list[tuple[int, ...]] = []
        verify_over_range(_noting(tried), np.sqrt, _positive, few)
        expect(
            (3, 3, 3, 3) in tried,
            expected=f"(3, 3, 3, 3) tried in the range {few}: the only shape of primes above 2 and "
            "below the bounds",
            seen=f"{len(tried)} other shapes",
            look="the shape of primes, in addition to the shapes drawn at random",
        )
    lengths: list[tuple[int, ...]] = []
    for _ in range(6):
        verify_over_range(_noting(lengths), np.sqrt, _positive, (600,))
    drawn = [n for (n,) in lengths if n not in (1, 600) and not _is_prime(n)]
    for part, there in (
        ("below 300", any(n < 300 for n in drawn)),
        ("above 300", any(n > 300 for n in drawn)),
    ):
        expect(
            there,
            expected="shapes drawn at random from the whole range of 1 to 600",
            seen=f"none {part} in 6 calls",
            look="random.randint(1, bound) for each symbol",
        )
    _expect_both_ends(verify_over_range)
    same: list[tuple[int, ...]] = []
    for _ in range(3):
        verify_over_range(_noting(same), np.sqrt, _positive, (9, 9))
    expect(
        any(a != b and not {a, b} <= {1, 9} and not {a, b} <= {3, 5, 7} for a, b in same),
        expected="extents drawn for each symbol separately, also of bounds that are equal, (9, 9)",
        seen="in 3 calls none but the same extent twice",
        look="random.randint(1, bound) for each symbol",
    )


def _expect_both_ends(verify_over_range: Function) -> None:
    """Random extents are 1 and the bound as well, beside others that are neither."""
    tried: list[tuple[int, ...]] = []
    for _ in range(12):  # each draws at least eight; a sixth of them has each of the ends
        verify_over_range(_noting(tried), np.sqrt, _positive, (4, 6))
    for what, some in (
        ("few of the first and many of the second", {(1, 4), (1, 5), (2, 4), (2, 5), (2, 6)}),
        ("many of the first and few of the second", {(3, 1), (3, 2), (4, 2)}),
    ):
        expect(
            bool(some & set(tried)),
            expected=f"shapes drawn at random from the whole range (4, 6), even with {what}",
            seen="none in 12 calls",
            look="random.randint(1, bound) for each symbol separately",
        )
    for end in (1, 4):
        expect(
            any(first == end and second not in (1, 6) for first, second in tried),
            expected="both ends of the range among the extents drawn at random",
            seen=f"of the range (4, 6) no shape ({end}, n) with n from 2 to 5 in 12 calls",
            look="random.randint(1, bound) for each symbol, which includes both",
        )


def _expect_primes(verify_over_range: Function) -> None:
    """Each call has a shape of primes; odd numbers are not all primes."""
    bounds = tuple(int(each) for each in fresh_rng().integers(60, 100, 6))
    for _ in range(3):
        tried: list[tuple[int, ...]] = []

        def shape_as_array(*shape: int, tried: list[tuple[int, ...]] = tried) -> tuple[np.ndarray]:
            tried.append(shape)
            return (np.array(shape, "float32"),)

        errors = verify_over_range(np.sqrt, np.sqrt, shape_as_array, bounds)
        expect(
            set(errors) == set(tried),
            expected=f"an error for each shape that was tried, of {len(bounds)} extents",
            seen=f"{number_of(len(errors), 'error')} of {number_of(len(set(tried)), 'shape')}",
            look="the keys of the dictionary: all extents, however many symbols there are",
        )
        expect(
            any(
                all(_is_prime(n) and 2 < n < b for n, b in zip(each, bounds, strict=True))
                for each in tried
            ),
            expected=f"in each call a shape of primes above 2 and below {bounds}",
            seen=f"beside {2 ** len(bounds)} corners {sorted(tried[-9:])}",
            look="the primes: 9 and 15 are odd but not prime, and tiles divide them",
        )
        corners = set(itertools.product(*((1, bound) for bound in bounds)))
        inside = len(set(tried) - corners)  # of six symbols, that two coincide is unlikely
        expect(
            inside >= 1 + 8,
            expected=f"one shape of primes and at least eight drawn at random, of {bounds}",
            seen=f"{inside} besides the corners",
            look="the number of shapes drawn",
        )


def _noting(tried: list[tuple[int, ...]]) -> Arrays:
    """The square root, noting the shapes that it is called with."""

    def run(x: np.ndarray) -> np.ndarray:
        tried.append(x.shape)
        return np.asarray(np.sqrt(x))

    return run


def _positive(*shape: int) -> tuple[np.ndarray]:
    return (fresh_rng().uniform(0.5, 2, shape).astype("float32"),)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % each for each in range(2, math.isqrt(number) + 1))


def _expect_range(errors: Any, called: Sequence[tuple[int, ...]], bounds: tuple[int, int]) -> None:
    tried = set(called)
    beyond = [
        each for each in tried if any(not 1 <= n <= b for n, b in zip(each, bounds, strict=True))
    ]
    expect(
        not beyond,
        expected=f"extents from 1 to the bounds {bounds}",
        seen=f"{beyond[0] if beyond else ''} was tried",
        look="the range of the draws, which includes both ends",
    )
    corners = {(a, b) for a in (1, bounds[0]) for b in (1, bounds[1])}
    expect(
        corners <= tried,
        expected=f"every corner of the range is tried: {sorted(corners)}",
        seen=f"{sorted(corners - tried)} are not",
        look="itertools.product of (1, bound) for each symbol",
    )
    inside = {each for each in tried if each not in corners}
    expect(
        any(
            all(_is_prime(n) and 2 < n < b for n, b in zip(each, bounds, strict=True))
            for each in inside
        ),
        expected="a shape whose extents are all primes above 2 and below the bounds",
        seen=f"the shapes {sorted(inside)}",
        look="the shape of primes, which no tile divides",
    )
    expect(
        any(a != b and not (_is_prime(a) and _is_prime(b)) for a, b in inside),
        expected="an extent of its own drawn for each symbol",
        seen=f"beside corners and primes only {sorted(inside)}",
        look="random.randint(1, bound) for each symbol",
    )
    expect(
        len(called) >= 4 + 1 + 6,  # of eight random ones some may coincide with others
        expected="at least eight shapes drawn at random, besides corners and primes",
        seen=f"{number_of(len(called), 'call')} in all",
        look="the number of shapes drawn",
    )
    expect(
        isinstance(errors, dict)
        and set(errors) == tried
        and all(abs(float(each) - 1e-5) < 5e-6 for each in errors.values()),
        expected="{shape: largest absolute error} for every shape that was tried",
        seen=f"{str(errors)[:120]}",
        look="the return statement, and the largest of |output - reference|",
    )


def _nan_somewhere(x: np.ndarray) -> np.ndarray:
    out: np.ndarray = np.sqrt(x)
    if x.shape[0] == 1 and x.shape[1] > 1:  # a number beside it
        out[0, 0] = np.nan
    return out


def _constant(*shape: int) -> tuple[np.ndarray]:
    return (np.full(shape, fresh_rng().uniform(0.5, 2), "float32"),)


def _upright(x: np.ndarray) -> np.ndarray:
    out: np.ndarray = np.sqrt(x)
    return out.T if x.shape[0] == 1 else out


_OFF = 0.37
_ONE_FOR_ALL = "one element in place of all"
_TURNED = "a column in place of a row, for a first extent of 1"
_TOO_FEW = "a row too few"
_ONE_COLUMN = "one column in place of all"
_ONE_ROW = "one row in place of all"
_DEEPER = "a dimension more"
# NumPy would broadcast these, and all elements are equal where they are tried.
_BROADCAST = (_ONE_FOR_ALL, _TURNED, _ONE_COLUMN, _ONE_ROW, _DEEPER)
_CORRUPTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "wrong for a first extent of 1": lambda x: np.sqrt(x) + _OFF * (x.shape[0] == 1),
    "wrong for large extents": lambda x: np.sqrt(x) - _OFF * (x.shape[1] >= 30),
    "NaN in one element, for a first extent of 1": _nan_somewhere,
    _ONE_FOR_ALL: lambda x: np.sqrt(x)[:1, :1],
    _TURNED: _upright,
    _ONE_COLUMN: lambda x: np.sqrt(x)[:, :1],
    _ONE_ROW: lambda x: np.sqrt(x)[:1],
    _DEEPER: lambda x: np.sqrt(x)[None],
    _TOO_FEW: lambda x: np.sqrt(x)[: max(1, x.shape[0] - 1)],
}


def _expect_nan_refused(verify_over_range: Function, bounds: tuple[int, int]) -> None:
    """NaN is never right, in the reference as little as in the output."""

    def spoiled(x: np.ndarray) -> np.ndarray:
        return _nan_somewhere(x)

    for run, reference, where in (
        (spoiled, spoiled, "in the output and in the reference"),
        (np.sqrt, spoiled, "in the reference"),
    ):
        try:
            verify_over_range(run, reference, _positive, bounds)
        except ValueError:
            continue
        raise fail(
            f"a ValueError for NaN {where}",
            "it passed",
            "the comparison with `tolerance`: NaN is neither below nor above it",
        )


def _expect_refused(
    verify_over_range: Function,
    what: str,
    corrupt: Callable[[np.ndarray], np.ndarray],
    bounds: tuple[int, int],
) -> None:
    last: list[tuple[int, ...]] = []
    given: list[tuple[int, ...]] = []

    def run(x: np.ndarray) -> np.ndarray:
        last.append(x.shape)
        out = corrupt(x)
        given.append(out.shape)
        return out

    draw = _constant if what in _BROADCAST else _positive
    try:
        verify_over_range(run, np.sqrt, draw, bounds)
    except ValueError as error:
        text = str(error)
        named = any(_names_shape(text, shape) for shape in last)
        expect(
            named and "broadcast" not in text,
            expected="the ValueError names the shape at which the output is wrong",
            seen=text,
            look="the text of the error; compare the shapes before the values",
        )
        _expect_said(what, text, given)
        return
    raise fail(
        f"a ValueError for an artifact whose output is {what}",
        f"it passed at {len(last)} shapes",
        "the comparison: shapes first, and NaN is never right (`not error <= tolerance`)",
    )


def _expect_said(what: str, text: str, given: Sequence[tuple[int, ...]]) -> None:
    """The error says both output shapes where they differ, else the error, unless it is NaN."""
    if what in (*_BROADCAST, _TOO_FEW):
        expect(
            any(_names_shape(text, shape) for shape in given),
            expected="the ValueError names the two output shapes",
            seen=text,
            look="the text of the error: the output's shape beside the reference's",
        )
    elif "NaN" not in what:
        numbers = [float(each) for each in re.findall(r"\d*\.?\d+(?:e[-+]?\d+)?", text)]
        expect(
            any(abs(each - _OFF) < 0.01 for each in numbers),
            expected=f"the ValueError names the error, {_OFF}",
            seen=text,
            look="the text of the error",
        )


def _names_shape(text: str, shape: tuple[int, ...]) -> bool:
    """Whether the whole numbers of a text are, among others, the extents in their order."""
    numbers = iter(map(int, re.findall(r"(?<![\d.])\d+(?![\d.e])", text)))
    return all(any(number == extent for number in numbers) for extent in shape)


def _demonstrated_range(verify_over_range: Function) -> str:
    bounds = (29, 40)
    errors = verify_over_range(np.sqrt, np.sqrt, _positive, bounds)
    corners = [(a, b) for a in (1, 29) for b in (1, 40)]
    inside = set(errors) - set(corners)
    primes = any(_is_prime(a) and _is_prime(b) and 2 < a < 29 and 2 < b < 40 for a, b in inside)
    said = "nothing"
    try:
        verify_over_range(lambda x: np.sqrt(x) + (x.shape[1] % 8 == 0), np.sqrt, _positive, bounds)
    except ValueError as error:
        said = type(error).__name__
    tried = ", ".join(f"{a}x{b}" for a, b in corners if (a, b) in errors)
    return (
        f"corners: {tried}\none of primes: {'yes' if primes else 'no'}\n"
        f"at least 8 others: {'yes' if len(inside) >= 6 else 'no'}\n"
        f"wrong where 8 divides n: {said}"
    )
