"""How much of one student's answers stands in another's.

By winnowing, as MOSS does it: S. Schleimer, D. Wilkerson, A. Aiken, *Winnowing: Local Algorithms
for Document Fingerprinting*, SIGMOD 2003. Names and layout do not count.
"""

import ast
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvm_practice.course.catalog import Exercise
from tvm_practice.course.classroom.submissions import Submission
from tvm_practice.course.editing import function_source, is_stub, parse
from tvm_practice.course.grading import reference_file
from tvm_practice.engines import PlainError

REFERENCE = "(reference)"
# Tokens' characters: a copy that is shorter is not looked for, nor are answers so short compared.
_SHORTEST = 40
_WINDOW = 8


class NoLikeness(PlainError):
    """The package that compares is not here; the message says how to install it."""


@dataclass(frozen=True)
class Likeness:
    """Two students' answers beside one another.

    Attributes:
        of_first: share of the first's text that is in the second's, 0 to 1.
        of_second: the other way round.
        exercises: those whose answers are nearly the same, by name.
    """

    first: str
    second: str
    of_first: float
    of_second: float
    exercises: tuple[str, ...]


def compare(
    submissions: Sequence[Submission], exercises: Sequence[Exercise], *, at_least: float
) -> list[Likeness]:
    """The pairs of which one has at least that share of the other, the most alike first.

    The reference answers are compared as one more student's, `REFERENCE`. Answers to the same
    exercise are compared with one another; what is too short to tell is not.

    Raises NoLikeness.
    """
    marks = {each.name: dict(_fingerprints(each, exercises)) for each in submissions}
    marks[REFERENCE] = dict(_of_reference(exercises))
    found = []
    for first, second in itertools.combinations(marks, 2):
        pair = _compare(first, second, marks[first], marks[second], at_least)
        if pair is not None:
            found.append(pair)
    return sorted(found, key=lambda each: -max(each.of_first, each.of_second))


def _compare(
    first: str,
    second: str,
    one: dict[str, object],
    other: dict[str, object],
    at_least: float,
) -> Likeness | None:
    from copydetect import compare_files

    shared_first = shared_second = total_first = total_second = 0.0
    alike = []
    for name in one.keys() & other.keys():
        a, b = one[name], other[name]
        _, shares, _ = compare_files(a, b)
        total_first += a.token_coverage  # type: ignore[attr-defined]
        total_second += b.token_coverage  # type: ignore[attr-defined]
        shared_first += shares[0] * a.token_coverage  # type: ignore[attr-defined]
        shared_second += shares[1] * b.token_coverage  # type: ignore[attr-defined]
        if max(shares) >= at_least:
            alike.append(name)
    if not total_first or not total_second:
        return None
    shares = shared_first / total_first, shared_second / total_second
    if max(shares) < at_least:
        return None
    return Likeness(first, second, *shares, tuple(sorted(alike)))


def _fingerprints(
    submission: Submission, exercises: Sequence[Exercise]
) -> Iterator[tuple[str, object]]:
    for exercise in exercises:
        text = submission.chapters.get(exercise.phase, b"").decode(errors="replace")
        try:
            if not is_stub(text, exercise.name):
                yield from _fingerprint(exercise, function_source(text, exercise.name))
        except (KeyError, ValueError, SyntaxError):  # it is missing, or does not parse
            continue


def _of_reference(exercises: Sequence[Exercise]) -> Iterator[tuple[str, object]]:
    for exercise in exercises:
        text = reference_file(exercise).read_text(encoding="utf-8")
        yield from _fingerprint(exercise, function_source(text, exercise.name))


def _fingerprint(exercise: Exercise, source: str) -> Iterator[tuple[str, object]]:
    """Of a function without its docstring, which all have; none of one that is too short."""
    try:
        from copydetect import CodeFingerprint
    except ImportError:
        raise NoLikeness(
            "no Python package copydetect. To install: pip install 'tvm-practice[teach]'"
        ) from None
    (function,) = parse(source).body
    assert isinstance(function, ast.FunctionDef)
    if ast.get_docstring(function) is not None:
        function.body = function.body[1:] or [ast.Pass()]
    body = "\n".join(ast.unparse(each) for each in function.body)
    found = CodeFingerprint(
        f"{exercise.name}.py", _SHORTEST, _WINDOW, fp=io.StringIO(body), language="python"
    )
    if found.token_coverage:
        yield exercise.id, found
