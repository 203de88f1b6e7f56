"""A compiled model's outputs compared with PyTorch's."""

import itertools
import re
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_practice.course.checks.relay_import.common import PHASE
from tvm_practice.course.expect import expect, expect_unchanged, fail, fresh_rng
from tvm_practice.engines import CURRENT

_ATOL = _RTOL = 1e-4


def _raised(verify: Callable[..., Any], *arguments: Any, atol: float, rtol: float) -> str | None:
    """The message of the ValueError that verify raises; None if it raises none."""
    try:
        verify(*arguments, atol=atol, rtol=rtol)
    except ValueError as error:
        return str(error)
    except AssertionError as error:
        raise fail(
            "a ValueError where outputs and reference differ",
            "AssertionError",
            "the docstring's Raises; numpy.testing raises another exception",
        ) from error
    return None


def _expect_rejected(
    verify: Callable[..., Any],
    got: list[np.ndarray],
    want: list[np.ndarray],
    *,
    case: str,
    look: str,
    atol: float = _ATOL,
    rtol: float = _RTOL,
) -> str:
    message = _raised(verify, got, want, atol=atol, rtol=rtol)
    if message is None:
        raise fail(f"a ValueError for {case}", "it was accepted", look)
    return message


@PHASE.exercise(
    "verify",
    engine=CURRENT,
    title="compare outputs with PyTorch's, and say where they differ",
    hints=(
        "First the number of outputs, then each output's shape (numpy would broadcast), then "
        "its elements: the first difference raises ValueError. Remember the largest error over "
        "all outputs; an output without elements has none.",
        "error = |output - reference| in float64; allowed = atol + rtol * |reference|. Every "
        "comparison with NaN is false, so `error > allowed` lets NaN through and "
        "`not (error <= allowed)` does not.",
        "Make errors that are NaN infinite (np.nan_to_num(error, nan=np.inf, posinf=np.inf)), "
        "then wrong = error > allowed; np.unravel_index((error - allowed).argmax(), shape) is "
        "the worst element. Where output and reference are the same infinity, the error is 0; "
        "where the reference is infinite or NaN, nothing else is right: make allowed 0 there.",
    ),
    looks_like="""
        right: 1.0e-06
        wrong: output 0: 2 of 4 elements are wrong; largest absolute error 1,
               largest relative error 0.5; the worst, at [0, 1], is 3, the reference
               has 2
    """,
    demonstrate=lambda verify: _show_verify(verify),
)
def check_verify(verify: Callable[..., Any]) -> None:
    rng = fresh_rng()
    rows, columns = (int(size) for size in rng.choice([5, 7, 11, 13], 2, False))
    want: list[np.ndarray] = [
        rng.standard_normal((rows, columns), dtype="float32"),
        rng.standard_normal((columns,), dtype="float32") + 3,
        rng.integers(0, 9, (rows, 1)),
    ]
    kept = [each.copy() for each in want]

    def copies() -> list[np.ndarray]:
        return [each.copy() for each in want]

    # From 2 on: a message has other pairs of small numbers, as in "output 1: 1 of 35 elements".
    at = tuple(int(rng.integers(2, extent)) for extent in (rows, columns))
    got = copies()
    got[0][at] += np.float32(5e-5)
    got[0][0, 0] += np.float32(1e-5)  # smaller: neither the largest nor equal to it
    got[1] += np.float32(2e-5)
    largest = max(
        float(np.abs(g - w.astype("float64")).max()) for g, w in zip(got, want, strict=True)
    )
    _check_tolerances(verify)
    given = [each.copy() for each in got]
    returned = verify(got, want, atol=_ATOL, rtol=_RTOL)
    for before, after in zip(given, got, strict=True):
        expect_unchanged(before, after, "outputs")
    expect(
        isinstance(returned, float | np.floating)
        and abs(float(returned) - largest) <= 1e-3 * largest,
        expected=f"the largest absolute error of all outputs, {largest:.3g}, as a float",
        seen=f"{returned!r}",
        look="the maximum over every element of every output",
    )
    _check_values(verify, want, at)
    _check_counts_and_shapes(verify, want)
    got = copies()
    got[0][at] = want[0][at] - np.float32(0.75)
    milder = (0, int(np.abs(want[0][0]).argmax()))  # wrong too, and less: not the worst
    got[0][milder] *= np.float32(1.01)
    message = _expect_rejected(
        verify,
        [got[1], got[0]],
        [want[1], want[0]],
        case="two elements, one of them 0.75 too small",
        look="the absolute value of the difference",
    )
    _check_message(message, index=1, at=at, error=0.75, relative=0.75 / abs(float(want[0][at])))
    _check_further_messages(verify)
    _check_named_element(verify)
    _check_layouts(verify)
    got[0][at] = np.nan
    message = _expect_rejected(verify, got, want, case="NaN", look="comparisons with NaN are false")
    expect(
        len(re.findall(r"(?i)\binf|∞", message)) >= 2,
        expected="for NaN, a message that gives both errors as infinite, the absolute and the "
        "relative one",
        seen=message,
        look="the text of the ValueError: report an error of NaN as infinite",
    )
    _check_message(message, index=0, at=at)
    for before, after in zip(kept, want, strict=True):
        expect_unchanged(before, after, "reference")
    for number in range(40):
        _check_drawn(verify, rng, number)
    exact = rng.uniform(1, 2, 99)
    rounded = exact.astype("float32")
    returned, wanted = (
        verify([rounded], [exact], atol=1e-3, rtol=0.0),
        np.abs(rounded - exact).max(),
    )
    expect(
        abs(float(returned) - wanted) <= 1e-9 * wanted,
        expected="the largest absolute error of a float32 output and a float64 reference, "
        f"{wanted!r}",
        seen=f"{returned!r}",
        look="the difference: convert both arrays to float64 first",
    )
    many = int(rng.integers(1_100_000, 3_000_000))
    for shape in ((1201, 3), (3, 1201), (601, 1, 701), (300_007,), (many,)):
        reference = rng.standard_normal(shape)
        last = tuple(each - 1 for each in shape)
        before_it = (*last[:-1], last[-1] - 1)
        for place in (last, before_it, (0,) * len(shape)):
            output = reference.copy()
            output[place] += 0.5
            _expect_rejected(
                verify, [output], [reference], case=f"0.5 too much at {list(place)} of {shape}",
                look="every element counts, the first and the last too",
            )  # fmt: skip


def _check_counts_and_shapes(verify: Callable[..., Any], want: list[np.ndarray]) -> None:
    """Of three outputs, the last one a column: others in number or shape are rejected."""
    rows = len(want[2])
    for case, outputs, look in (
        ("2 outputs where the reference has 3", want[:2], "len of both, before zip"),
        ("4 outputs where the reference has 3", [*want, want[0]], "len of both, before zip"),
        ("no outputs where the reference has 3", [], "len of both, before zip"),
        (
            f"shape {(rows,)} where the reference has {(rows, 1)}",
            [*want[:2], want[2][:, 0]],
            "the shapes; numpy would broadcast them",
        ),
    ):
        _expect_rejected(verify, [each.copy() for each in outputs], want, case=case, look=look)
    for counts in ((61, 60), (60, 61), (1000, 999), (999, 1000)):
        _expect_rejected(
            verify, *([np.ones(3)] * count for count in counts), look="len of both, before zip",
            case=f"{counts[0]} outputs where the reference has {counts[1]}",
        )  # fmt: skip
    alike = np.full((rows, 3), 2.0)  # NumPy would find them equal
    for other in (
        *(alike[:1], alike[0], alike[:, :1], alike[None], alike[0, 0], alike.reshape(-1)),
        alike[:1, :1],
    ):
        for got, reference in ((other, alike), (alike, other)):
            _expect_rejected(
                verify, [np.array(got)], [np.array(reference)],
                case=f"equal numbers of shapes {got.shape} and {reference.shape}",
                look="the shapes; numpy would broadcast them",
            )  # fmt: skip
    shape: tuple[int, ...]
    other_shape: tuple[int, ...]
    for shape, other_shape in (((), (1,)), ((1,), ()), ((1,), (1, 1)), ((1, 1), (1,))):
        _expect_rejected(
            verify, [np.ones(shape)], [np.ones(other_shape)],
            case=f"one equal number, of shapes {shape} and {other_shape}",
            look="the shapes, also of a single number",
        )  # fmt: skip
    for one, another in (((0, 3), (0, 4)), ((0, 3), (3, 0)), ((0,), (0, 1)), ((2, 0), (0, 2))):
        _expect_rejected(
            verify, [np.ones((2, 2)), np.ones(one)], [np.ones((2, 2)), np.ones(another)],
            case=f"outputs without elements, of shapes {one} and {another}",
            look="the shapes, also of arrays without elements",
        )  # fmt: skip
    for index, count in ((5, 7), (17, 19)):
        outputs = [np.ones((2, 3))] * count
        outputs[index] = np.ones((3, 2))
        message = _expect_rejected(
            verify, outputs, [np.ones((2, 3))] * count, look="the shapes, of each output",
            case=f"an output of another shape, number {index} of {count}",
        )  # fmt: skip
        _check_message(message, index=index)
    _expect_rejected(
        verify,
        [],
        [],
        case="no outputs at all",
        look="the case of no outputs, in which nothing is compared",
    )


def _check_further_messages(verify: Callable[..., Any]) -> None:
    """The index is that of the wrong output; nothing is 0 per cent of a reference of 0."""
    right = np.ones((3, 4))
    wrong = right.copy()
    wrong[2, 3] = 7.25
    for many in (12, int(fresh_rng().integers(30, 99))):  # the largest of all is the first one's
        errors = [np.full(3, 1.0 + (many - at) / 1024) for at in range(many)]
        returned = verify(errors, [np.ones(3)] * many, atol=1.0, rtol=0.0)
        expect(
            abs(float(returned) - many / 1024) < 1e-9,
            expected=f"the largest absolute error of {many} outputs, {many / 1024:.4g}",
            seen=f"{returned!r}",
            look="the maximum over every output, however many there are",
        )
    for index, count in ((5, 7), (17, 19)):
        outputs = [right] * count
        outputs[index] = wrong
        case = f"output {index} of {count}"
        message = _expect_rejected(verify, outputs, [right] * count, case=case, look="the loop")
        _check_message(message, index=index, at=(2, 3), error=6.25, relative=6.25)
        outputs[index] = right + 0.015
        for atol, rtol, accepted in ((5e-3, 5e-3, False), (5e-3, 0.011, True)):
            refusal = _raised(verify, outputs, [right] * count, atol=atol, rtol=rtol)
            expect(
                (refusal is None) == accepted,
                expected=f"1.015 for 1 {'accepted' if accepted else 'refused'} with atol={atol} "
                f"and rtol={rtol} in output {index} of {count}",
                seen=f"it was refused: {refusal}" if refusal else "it was accepted",
                look="the same tolerances for each output",
            )
    for shape in ((3, 5, 4), (3, 3, 5, 4)):
        reference = np.full(shape, 2.0)
        output, last = reference.copy(), tuple(each - 1 for each in shape)
        output[last] = 10.25
        message = _expect_rejected(
            verify, [output], [reference], case=f"10.25 for 2 at {list(last)}", look="the loop"
        )
        _check_message(message, index=0, at=last, error=8.25, relative=4.125)
    for largest, kind, atol in ((59_904.0, "float16", 1.3e5), (3e38, "float32", 7e38)):
        one, other = np.array([largest, 1.0], kind), np.array([-largest, 1.0], kind)
        returned = _raised(verify, [one], [other], atol=atol, rtol=0.0)
        expect(
            returned is None,
            expected=f"{largest:g} for {-largest:g}, both {kind}, accepted within atol={atol:g}",
            seen=f"it was refused: {returned}",
            look="the difference in float64: float16 ends at 65504, float32 at 3.4e38",
        )
    exact = fresh_rng().standard_normal((3, 4))  # float64, negative ones too
    for wrong_by in (0.0, 1.0):
        given = [exact + wrong_by], [exact.copy()]
        kept = [each[0].copy() for each in given]
        _raised(verify, *given, atol=_ATOL, rtol=_RTOL)
        for name, before, [after] in zip(("outputs", "reference"), kept, given, strict=True):
            expect_unchanged(before, after, f"{name} in float64")
    far = np.array([3.0, 1_234_570.5])
    returned = verify([far], [np.array([3.0, 3.0])], atol=2e6, rtol=0.0)
    expect(
        float(returned) == 1_234_567.5,
        expected="the largest absolute error, 1234567.5, within atol=2e6",
        seen=f"{returned!r}",
        look="the return statement: the error itself, not rounded",
    )
    message = _expect_rejected(
        verify, [wrong], [right - (wrong > right)], case="7.25 for 0", look="the absolute error"
    )
    expect(
        re.search(r"(?i)\binf|∞", message) is not None,
        expected="an infinite relative error where the reference is 0",
        seen=message,
        look="the error over the reference's absolute value",
    )
    # The largest error, the largest relative one and the one furthest above what is allowed are of
    # three elements.
    reference, output = np.array([1e4, 50.0, 0.125]), np.array([10137.0, 119.0, 64.125])
    message = _expect_rejected(
        verify, [output], [reference], case="three wrong elements", look="the loop", rtol=0.012
    )
    _check_message(message, index=0, error=137, relative=512)
    empty = np.zeros((0, 3), "float32")
    returned = verify([empty, right], [empty, right], atol=_ATOL, rtol=_RTOL)
    expect(
        float(returned) == 0,
        expected="0 for equal outputs, of which one has no elements",
        seen=f"{returned!r}",
        look="the maximum of an empty array",
    )
    _expect_rejected(
        verify, [empty, wrong], [empty, right], case="a wrong output after one without elements",
        look="the loop at an output that has no elements: it goes on to the next one",
    )  # fmt: skip
    returned = verify([right + 3e-9], [right], atol=1e-6, rtol=0.0)
    expect(
        bool(np.isclose(float(returned), 3e-9, rtol=1e-3, atol=0)),
        expected="the largest absolute error, 3e-09, for 1.000000003 within atol=1e-6",
        seen=f"{returned!r}",
        look="the return statement: the error itself, not rounded",
    )


def _check_named_element(verify: Callable[..., Any]) -> None:
    """The message is of the wrong output alone, and names an element that is wrong."""
    reference = np.full((5, 7), 8.0)
    reference[0, 0], reference[1, 2] = 1e6, 1e-9
    near = reference.copy()
    near[0, 0] += 40  # within rtol
    near[1, 2] += 5e-5  # within atol
    wrong, at = near.copy(), (3, 4)
    wrong[at] += 0.75
    message = _expect_rejected(
        verify, [wrong], [reference], case="8.75 for 8 beside larger errors that are allowed",
        look="the loop",
    )  # fmt: skip
    relative = 5e-5 / 1e-9  # the output's largest, of an element that is right
    _check_message(message, index=0, at=at, error=40, relative=relative)
    alone, other = np.full((5, 7), 8.0), np.full((5, 7), 8.0)
    other[at] += 0.75
    message = _expect_rejected(
        verify, [near, other], [reference, alone], look="the loop",
        case="8.75 for 8 after an output with a larger error that is allowed",
    )  # fmt: skip
    _check_message(message, index=1, at=at, error=0.75, relative=0.75 / 8)
    for milder in ((0, 0), (4, 6)):  # wrong too: before the worst, and behind it
        both = other.copy()
        both[milder] += 0.25
        message = _expect_rejected(
            verify, [both], [alone], case="8.75 and 8.25 for 8",
            look="the position: of the worst element, not of the first or the last wrong one",
        )  # fmt: skip
        _check_message(message, index=0, at=at, error=0.75, relative=0.75 / 8)
    equal = [alone] * 44
    message = _expect_rejected(
        verify, [*equal, other], [*equal, alone], case="8.75 for 8 after 44 others", look="the loop"
    )
    _check_message(message, index=44, at=at, error=0.75, relative=0.75 / 8)
    none = [np.zeros((0, 3))] * 6
    message = _expect_rejected(
        verify, [*none, other], [*none, alone], case="8.75 for 8 after outputs of no elements",
        look="the index: outputs without elements count, too",
    )  # fmt: skip
    _check_message(message, index=6, at=at, error=0.75, relative=0.75 / 8)
    _expect_rejected(
        verify, [np.array([np.inf], "float16")], [np.array([1e5], "float32")],
        case="an infinity of float16 for 1e5", look="an infinity: right only for the same one",
    )  # fmt: skip
    many, position = np.full(20_011, 2.0), 20_009
    late = many.copy()
    late[position] = 3.5
    message = _expect_rejected(
        verify, [late], [many], case="an element near the end of 20011", look="all elements count"
    )
    _check_message(message, index=0, at=(position,), error=1.5, relative=0.75)
    returned = verify([late], [many], atol=2.0, rtol=0.0)
    expect(
        float(returned) == 1.5,
        expected="the largest absolute error of 20011 elements, 1.5, within atol=2",
        seen=f"{returned!r}",
        look="the maximum over every element, however many there are",
    )


def _check_layouts(verify: Callable[..., Any]) -> None:
    """Elements belong together by their position, however they are in memory."""
    rows, columns, depth = (int(size) for size in fresh_rng().choice([3, 5, 7, 9], 3, False))
    reference = fresh_rng().standard_normal((rows, columns, depth)) + 4
    at = rows - 1, 0, depth - 1  # elsewhere in another order of memory
    layouts: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
        np.ascontiguousarray,
        np.asfortranarray,
        lambda array: np.ascontiguousarray(array.transpose(1, 2, 0)).transpose(2, 0, 1),
        lambda array: np.repeat(array, 2, axis=1)[:, ::2],
        lambda array: np.ascontiguousarray(array[::-1, :, ::-1])[::-1, :, ::-1],
    )
    for place, layout in enumerate(layouts):
        others = (layout, layouts[place - 1])
        for one, another in (others, others[::-1]):
            got = one(reference + 1e-6)
            message = _raised(verify, [got], [another(reference)], atol=1e-5, rtol=0.0)
            strides = f"strides {got.strides} and {another(reference).strides}"
            expect(
                message is None,
                expected=f"equal outputs accepted, of shape {reference.shape} and {strides}",
                seen=f"refused: {message}",
                look="the call that takes elements in the order in which they are in memory",
            )
            wrong = reference.copy()
            wrong[at] += 0.75
            message = _expect_rejected(
                verify, [one(wrong)], [another(reference)], case=f"an output of {strides}",
                look="the position of the worst element",
            )  # fmt: skip
            _check_message(message, index=0, at=at, error=0.75)


def _check_tolerances(verify: Callable[..., Any]) -> None:
    """Both tolerances count, and they are added."""
    cases: tuple[tuple[Any, Any, float, float, bool, str], ...] = (
        (1e-6, 0.0, 1e-5, 1e-5, True, "1e-6 for 0 within atol=1e-5"),
        (1000.05, 1000.0, 1e-6, 1e-4, True, "1000.05 for 1000 within rtol=1e-4"),
        (1.15, 1.0, 0.1, 0.1, True, "1.15 for 1 within atol=0.1 + rtol=0.1"),
        (1.15, 1.0, 0.1, 0.0, False, "1.15 for 1 with atol=0.1 and rtol=0"),
        (0.5, 0.0, 0.1, 0.9, False, "0.5 for 0 with atol=0.1, whatever rtol is"),
        (-1.0, 1.0, 0.1, 0.1, False, "-1 for 1"),
        (-1000.05, -1000.0, 1e-6, 1e-4, True, "-1000.05 for -1000 within rtol=1e-4"),
        (1.5, 1.0, 0.5, 0.0, True, "1.5 for 1 within atol=0.5: as much as is allowed"),
        (2.1, 1.0, 0.0, 0.6, False, "2.1 for 1 with rtol=0.6, which is of the reference"),
        (1.0, 2.1, 0.0, 0.51, False, "1 for 2.1 with rtol=0.51"),
        (1.0, 2.1, 0.0, 0.53, True, "1 for 2.1 within rtol=0.53 of the reference"),
        (1.1 + 1e-7, 1.0, 0.1, 0.0, False, "1.1000001 for 1 with atol=0.1"),
        (1.1 + 1e-7, 1.0, 0.0, 0.1, False, "1.1000001 for 1 with rtol=0.1"),
        (1.1 - 1e-7, 1.0, 0.0, 0.1, True, "1.0999999 for 1 within rtol=0.1"),
        (1.1 - 1e-7, 1.0, 0.1, 0.0, True, "1.0999999 for 1 within atol=0.1"),
        (1e30, 1.0001e30, 0.0, 1e-3, True, "1e30 for 1.0001e30 within rtol=1e-3"),
        (1e-30, 0.0, 0.0, 0.5, False, "1e-30 for 0 with atol=0"),
        (2**24 + 1, 2**24, 0.5, 0.0, False, "16777217 for 16777216, both int64"),
        (1 + 1e-9, 1.0, 1e-12, 0.0, False, "1.000000001 for 1 in float64 with atol=1e-12"),
        (np.uint8(3), np.uint8(250), 10.0, 0.0, False, "3 for 250, both uint8, with atol=10"),
        (np.uint8(250), np.uint8(3), 10.0, 0.0, False, "250 for 3, both uint8, with atol=10"),
        (np.int64(-5), np.int64(-5), 0.0, 0.0, True, "-5 for -5, both int64"),
        (np.float16(6e4), np.float16(-6e4), 1.0, 0.1, False, "60000 for -60000 in float16"),
        (True, False, 0.5, 0.0, False, "True for False"),
        (True, True, 0.0, 0.0, True, "True for True"),
        (-0.0, 0.0, 0.0, 0.0, True, "-0 for 0"),
        (1e308, -1e308, 1.0, 1.0, False, "1e308 for -1e308, whose difference is infinite"),
        (np.float32(1e-40), np.float32(0), 0.0, 0.0, False, "1e-40 for 0 in float32, with atol=0"),
        (np.int32(7), np.int64(7), 0.0, 0.0, True, "7 in int32 for 7 in int64"),
        (np.uint64(2**63), np.uint64(2**63), 0.0, 0.0, True, "2**63 for 2**63, both uint64"),
        (np.int64(1), np.float32(1), 0.0, 0.0, True, "1 in int64 for 1.0 in float32"),
        (np.float64(0.5), np.float32(0.5), 0.0, 0.0, True, "0.5 in float64 for 0.5 in float32"),
    )
    _expect_rejected(
        verify,
        [np.array([1.5, 1e6])],
        [np.array([1.0, 1e6])],
        case="1.5 for 1 beside 1e6 for 1e6, with rtol=1e-3",
        look="rtol times each element's own reference",
        rtol=1e-3,
    )
    for got, want, atol, rtol, right, what in cases:
        for rank in (1, 4):
            pair = [np.array(each).reshape((1,) * rank) for each in (got, want)]
            equal = pair[1].copy()
            message = _raised(verify, [equal, pair[0]], [equal, pair[1]], atol=atol, rtol=rtol)
            wanted = "accepted" if right else "refused"
            expect(
                (message is None) == right,
                expected=f"{what}{f', of {rank} axes,' * (rank != 1)} {wanted}",
                seen="it was refused" if message else "it was accepted",
                look="|output - reference| <= atol + rtol * |reference|, with the absolute "
                "values, in float64",
            )


_KINDS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32")


def _check_drawn(verify: Callable[..., Any], rng: np.random.Generator, number: int) -> None:
    """Outputs of any number, shapes and types; some elements differ, and one too much, or none."""
    kind, turn = _KINDS[number % len(_KINDS)], number // len(_KINDS)  # of the first output
    reference = [_draw_output(rng, kind)]
    reference += [_draw_output(rng) for _ in range(int(rng.choice([0, 1, 2, 44])))]
    large = turn > 2
    if large:
        rows, columns = (int(each) for each in rng.integers(200, 900, 2))
        shapes = ((rows * columns,), (rows, columns), (columns, 1, rows))
        reference.append(rng.standard_normal(shapes[int(rng.integers(3))]))
    outputs = [reference[0].copy(), *(_near(each, rng) for each in reference[1:])]
    atol, rtol = float(10 ** rng.uniform(-3, 0)), float(rng.choice([0.0, 10 ** rng.uniform(-3, 0)]))
    for output, want in zip(outputs, reference, strict=True):
        for _ in range(int(rng.integers(0, 4)) * bool(want.size)):
            _move(output, want, atol, rtol, rng.choice([0.3, 1 - 1e-9]), rng)
    filled = [at for at, each in enumerate(outputs) if each.size]
    if turn == 1 or rng.random() < 0.5:
        at = 0 if turn == 1 else int(rng.choice(filled[-1:] if large else filled))
        # Near the limit too, where float64 still tells both sides.
        factor = 1.5 if turn == 1 else float(rng.choice([1 + 1e-9, 7.0]))
        _move(outputs[at], reference[at], atol, rtol, factor, rng)
    largest, bad = 0.0, dict[int, tuple[str, np.ndarray, np.ndarray]]()
    for at, (output, want) in enumerate(zip(outputs, reference, strict=True)):
        got, wanted = output.astype("float64"), want.astype("float64")
        error = np.abs(got - wanted)
        excess = error - (atol + rtol * np.abs(wanted))
        largest = max(largest, float(error.max(initial=0)))
        if (excess > 0).any():
            place = np.unravel_index(int(excess.argmax()), want.shape)
            at_place = [int(each) for each in place]
            what = f"{float(got[place])!r} for {float(wanted[place])!r} at {at_place}"
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = np.where(error == 0, 0.0, error / np.abs(wanted))
            bad[at] = f"{what} of output {at}", error, relative
    first = next(iter(bad.values()))[0] + ", " if bad else ""
    case = f"{first}{len(outputs)} outputs of types and shapes " + ", ".join(
        f"{output.dtype} for {want.dtype} {want.shape}"
        for output, want in list(zip(outputs, reference, strict=True))[-3:]
    )
    case += f", with atol={atol!r} and rtol={rtol!r}"
    look = "|output - reference| <= atol + rtol * |reference| in float64, for arrays of each type "
    look += "and shape, of no dimension as well"
    try:
        returned = verify(outputs, reference, atol=atol, rtol=rtol)
    except ValueError as raised:
        expect(bool(bad), expected=f"{case} accepted", seen=f"it was refused: {raised}", look=look)
        if len(bad) == 1:
            [(at, (_, error, relative))] = bad.items()
            told = float(error.max()), float(relative.max())
            # Of nothing, no difference may be counted as any part.
            finite = told[1] if np.isfinite(told[1]) and reference[at].all() else None
            _check_message(str(raised), index=at, error=told[0], relative=finite)
            _expect_not_swapped(str(raised), *told)
        return
    expect(not bad, expected=f"{case} refused", seen="it was accepted", look=look)
    expect(
        isinstance(returned, float | int | np.number)
        and abs(float(returned) - largest) <= 1e-12 * largest,
        expected=f"the largest absolute error, {largest!r}, of {case}",
        seen=f"{returned!r}",
        look="the maximum of the absolute differences in float64, over every element of every "
        "output, not rounded",
    )


def _near(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy, maybe of another type."""
    if array.dtype.kind == "f" and rng.random() < 0.3:
        return array.astype(rng.choice(["float16", "float32", "float64"]))
    if array.dtype.kind in "iu" and rng.random() < 0.3:
        return array.astype(rng.choice(["int64", "float32", "int16"]))
    return array.copy()


def _move(
    output: np.ndarray,
    reference: np.ndarray,
    atol: float,
    rtol: float,
    factor: float,
    rng: np.random.Generator,
) -> None:
    """Put an element of an output so many times as far off as is allowed, or nearly."""
    place = tuple(int(rng.integers(extent)) for extent in output.shape)
    want = float(reference[place])
    off = factor * (atol + rtol * abs(want)) * rng.choice([-1, 1])
    if output.dtype.kind == "f":
        output[place] = output.dtype.type(want + off)
    else:  # of whole numbers, those on either side
        step = int(np.copysign(np.ceil(abs(off)) if factor > 1 else np.floor(abs(off)), off))
        limits = np.iinfo(output.dtype)
        output[place] = min(max(int(want) + step, limits.min), limits.max)


def _draw_output(rng: np.random.Generator, named: str = "") -> np.ndarray:
    """Of any type and up to seven dimensions; of no elements at times, unless a type is named."""
    kind = np.dtype(named or rng.choice(_KINDS))
    shape = [int(each) for each in rng.integers(1, 5, int(rng.integers(0, 8)))]
    if shape and not named and rng.random() < 0.1:
        shape[-1] = 0
    if kind.kind in "iu":
        return np.asarray(rng.integers(0, 99, shape), kind)
    return np.asarray(rng.uniform(-3, 3, shape), kind)


def _expect_not_swapped(message: str, error: float, relative: float) -> None:
    """The number after "absolute" is not the relative error while the other one is absolute."""

    def after(word: str) -> float:
        found = re.search(rf"(?i){word}.*?(\d+(?:\.\d+)?(?:e[-+]?\d+)?|\binf)", message)
        return float(found[1]) if found else np.nan

    def near(value: float, wanted: float) -> bool:
        return value == wanted or abs(value - wanted) <= 0.02 * wanted

    expect(
        near(error, relative) or not (near(after("abs"), relative) and near(after("rel"), error)),
        expected=f"a message with an absolute error of {error:.3g} and a relative one of "
        f"{relative:.3g}",
        seen=message,
        look="which of the two errors the message calls absolute",
    )


def _check_values(verify: Callable[..., Any], want: list[np.ndarray], at: tuple[int, ...]) -> None:
    """NaN is wrong wherever it is; an infinity must be met by the same."""
    special = {"NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf, "a number": None}

    def holding(value: float | None, also: float) -> np.ndarray:
        array = want[0].copy()
        array[0, 0] = also  # another infinity, which is right
        if value is not None:
            array[at] = value
        return array

    for (got, reference), also in itertools.product(
        itertools.permutations(special, 2), (1.0, np.inf, -np.inf)
    ):
        _expect_rejected(
            verify,
            [holding(special[got], also)],
            [holding(special[reference], also)],
            case=f"{got} in the output and {reference} in the reference",
            look="comparisons with NaN are false, and rtol times infinity allows everything",
        )
    for also in (1.0, np.inf, -np.inf):
        both = holding(np.nan, also)
        look = "comparisons with NaN are false"
        _expect_rejected(verify, [both], [both.copy()], case="NaN in both", look=look)
    for value, also in itertools.product((np.inf, -np.inf), repeat=2):
        both = holding(value, also)
        message = _raised(verify, [both], [both.copy()], atol=_ATOL, rtol=_RTOL)
        expect(
            message is None,
            expected="the same infinity accepted in both (an attention mask has them)",
            seen=f"it was refused: {message}",
            look="infinity minus infinity, which is NaN",
        )


def _check_message(
    message: str,
    *,
    index: int,
    error: float | None = None,
    relative: float | None = None,
    at: tuple[int, ...] = (),
) -> None:
    """The message names all of them that are given; `at` is the worst element."""
    message = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", message)  # how numpy writes its scalars
    numbers = [float(each) for each in re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", message)]

    def names(value: float) -> bool:
        return any(abs(number - value) <= 0.02 * value for number in numbers)

    # Digits that stand together: not the end of one number and the beginning of another.
    position = r"\D{1,12}".join(str(i) for i in at)
    found: list[tuple[object, str]] = [
        (f"{index}" in re.findall(r"\d+", message), f"the output's index, {index}")
    ]
    if error is not None:
        found.append((names(error), f"the largest absolute error, {error:.3g}"))
    if relative is not None:
        told = names(relative) or names(100 * relative)
        found.append((told, f"the largest relative error, {relative:.3g}"))
    if at:
        told = re.search(rf"(?<![\d.]){position}(?![\d.])", message) is not None
        found.append((told, f"the worst element's position, {list(at)}"))
    for named, what in found:
        expect(
            bool(named),
            expected=f"a message that names {what}",
            seen=message or "an empty message",
            look="the text of the ValueError: the user sees nothing else",
        )


def _show_verify(verify: Callable[..., Any]) -> str:
    reference = np.array([[1.0, 2.0], [3.0, 4.0]])
    shown = [f"right: {verify([reference + 1e-6], [reference], atol=1e-5, rtol=1e-5):.1e}"]
    shown.append(f"wrong: {_raised(verify, [reference.T], [reference], atol=1e-5, rtol=1e-5)}")
    return "\n".join(textwrap.fill(line, 76, subsequent_indent="       ") for line in shown)
