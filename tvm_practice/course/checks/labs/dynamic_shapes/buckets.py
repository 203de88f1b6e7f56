"""Static artifacts with padding in place of a symbol."""

import numpy as np

from tvm_practice.course.checks.labs.dynamic_shapes.common import PHASE, Function
from tvm_practice.course.expect import (
    draw_distinct,
    draw_normal,
    expect,
    expect_close,
    expect_unchanged,
    fail,
    fresh_rng,
)
from tvm_practice.engines import CURRENT


class _Attention:
    """Self-attention of fixed length in numpy: what an artifact of a bucket does."""

    def __init__(self, length: int | None, calls: list[int | None]):
        self._length, self._calls = length, calls
        self.given: np.ndarray | None = None

    def __call__(self, x: np.ndarray, keep: np.ndarray) -> np.ndarray:
        self.expect_shapes(x, keep)
        self.given = x.copy()
        scores = x @ x.transpose(0, 2, 1) + (1 - keep[:, None, :]) * -1e9
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed: np.ndarray = weights / weights.sum(-1, keepdims=True) @ (x + 1)
        return mixed.astype("float32")

    def expect_shapes(self, x: np.ndarray, keep: np.ndarray) -> None:
        """Note the call, whose arrays have the shapes and the type that an artifact takes."""
        self._calls.append(self._length)
        length = self._length or x.shape[1]
        expect(
            x.shape[1] == length and keep.shape == x.shape[:2],
            expected=f"the artifact of bucket {length} is given x (batch, {length}, width) and "
            f"keep (batch, {length})",
            seen=f"x {x.shape} and keep {keep.shape}",
            look="the padding",
        )
        expect(
            x.dtype == keep.dtype == np.float32,
            expected="x and keep as float32",
            seen=f"x {x.dtype} and keep {keep.dtype}",
            look="the dtype of np.zeros and np.ones is float64 unless it is given",
        )


class _Copy(_Attention):
    """An artifact that returns its tokens, so that they may be many."""

    kept: np.ndarray

    def __call__(self, x: np.ndarray, keep: np.ndarray) -> np.ndarray:
        self.expect_shapes(x, keep)
        self.kept = keep.copy()
        return x.copy()


@PHASE.exercise(
    "bucketed",
    engine=CURRENT,
    title="serve any length from static artifacts, by padding",
    hints=(
        "Three steps: the bucket, two arrays of zeros, filled as far as x reaches, and the part "
        "of the result that belongs to x.",
        "min(bucket for bucket in artifacts if bucket >= length) is the smallest that holds x; "
        "raise ValueError if there is none. "
        "padded = np.zeros((batch, bucket, width), 'float32'), then padded[:, :length] = x; keep "
        "likewise, (batch, bucket), with 1 in the first `length` columns.",
        "return artifacts[bucket](padded, keep)[:, :length].",
    ),
    looks_like="""
        length 3: bucket 4, output (1, 3, 2)
        length 4: bucket 4, output (1, 4, 2)
        length 5: bucket 8, output (1, 5, 2)
        length 9: ValueError
    """,
    demonstrate=lambda bucketed: _demonstrated_buckets(bucketed),
)
def check_bucketed(bucketed: Function) -> None:
    rng = fresh_rng()
    # Neither ascending nor descending: the first, or the last, that fits is not the smallest.
    orders = ([5, 31, 12], [12, 5, 31], [12, 31, 5], [31, 5, 12])
    sizes = orders[int(rng.integers(len(orders)))]
    width = int(rng.integers(3, 9))
    longest = max(sizes)
    # As many sequences each time that a bucket is used; many in one that is not the longest.
    batches = dict(zip(sizes, draw_distinct(3, (1, 2, 5)), strict=True))
    batches[int(rng.choice(sorted(sizes)[:2]))] = int(rng.integers(65, 99))
    for length in (5, 1, 4, 12, 6, 31, 13, 30):  # a shorter one after a longer one of its bucket
        calls: list[int | None] = []
        artifacts = {size: _Attention(size, calls) for size in sizes}
        fits = min(size for size in sizes if size >= length)
        batch = batches[fits]
        x = rng.standard_normal((batch, length, width), dtype="float32")
        x[:, length // 2] = 0  # a token of zeros is a token
        x[0, 0, 0] = 1e-6  # is not zero
        before = x.copy()
        got = bucketed(artifacts, x)
        expect(
            calls == [fits],
            expected=f"length {length} goes once through bucket {fits} of {sorted(sizes)}",
            seen=f"through {calls}",
            look="the smallest bucket that is at least as long as x",
        )
        padded = np.zeros((batch, fits, width), "float32")
        padded[:, :length] = x
        expect_close(
            artifacts[fits].given,
            padded,
            what=f"the tokens that the artifact is given for length {length}",
            look="x first, then zeros after its last token",
        )
        want = _Attention(None, [])(x, np.ones((batch, length), "float32"))
        expect(
            str(getattr(got, "dtype", "")) == "float32",
            expected="the output as the artifact returns it, float32",
            seen=str(getattr(got, "dtype", type(got).__name__)),
            look="the artifact's result: cut it, and change nothing else",
        )
        expect_close(
            got,
            want,
            what=f"the output for length {length}",
            look="keep: 1 for the first tokens, 0 for the padding behind them; and the cut",
        )
        expect_unchanged(before, x, "x")
    _expect_other_buckets(bucketed)
    _expect_too_long_refused(bucketed, longest, rng)


def _expect_other_buckets(bucketed: Function) -> None:
    """Buckets belong to a call, and each length up to the longest may have its own."""
    (x,) = draw_normal((2, 7, 4))
    calls: list[int | None] = []
    bucketed({size: _Attention(size, calls) for size in (40, 9)}, x)
    expect(
        calls == [9],
        expected="length 7 goes once through bucket 9 of [9, 40], after calls with other buckets",
        seen=f"through {calls}",
        look="buckets that are kept from an earlier call",
    )
    for token in (np.nan, np.inf, -np.inf, 0.0):  # whatever its numbers, a token is kept
        artifact = _Copy(9, [])
        few, want = (np.full((2, 7, 4), token, "float32") for _ in range(2))
        got = bucketed({9: artifact}, few)
        keep = np.repeat(np.arange(9)[None] < 7, 2, axis=0).astype("float32")
        look = "keep: it depends on the length of x, not on its numbers"
        expect_close(artifact.kept, keep, what=f"keep for tokens of {token}", look=look)
        expect_close(got, want, what=f"the output for tokens of {token}", look="the cut")
        expect_unchanged(want, few, "x")
    for factor in (1, 3):  # the same tokens through other artifacts
        got = bucketed({9: lambda tokens, keep, factor=factor: factor * tokens}, x)
        look = "state kept from a call with other artifacts"
        expect_close(got, factor * x, what=f"the output of tokens times {factor}", look=look)
    (turned,) = draw_normal((4, 7, 2))
    for few in (turned.T, turned.transpose(2, 1, 0)[:, ::-1], np.asfortranarray(turned)):
        artifact = _Copy(9, [])
        got = bucketed({9: artifact}, few)
        look = "what takes tokens in the order in which they are in memory"
        expect_close(got, few, what=f"the output for tokens of strides {few.strides}", look=look)
    empty = bucketed({9: _Copy(9, []), 5: _Copy(5, [])}, np.ones((2, 0, 4), "float32"))
    expect(
        np.shape(empty) == (2, 0, 4),
        expected="for a sequence of no tokens an output of shape (2, 0, 4)",
        seen=f"shape {np.shape(empty)}",
        look="a length of 0: the smallest bucket holds it",
    )
    for most in (64, 256, 1024):  # buckets that each condition on a length would meet
        sizes = [most, 8 * most, 2 * most, most // 2]
        for bucket in (most, 2 * most):
            calls = []
            few = np.ones((1, bucket - int(fresh_rng().integers(most // 2)), 2), "float32")
            bucketed({size: _Copy(size, calls) for size in sizes}, few)
            expect(
                calls == [bucket],
                expected=f"length {few.shape[1]} goes once through bucket {bucket} of "
                f"{sorted(sizes)}",
                seen=f"through {calls}",
                look="the smallest bucket that is at least as long as x, however long that is",
            )
    for length in (1, 2, 3):  # a bucket of each length
        calls = []
        bucketed({size: _Attention(size, calls) for size in (2, 1, 64, 3)}, x[:, :length])
        expect(
            calls == [length],
            expected=f"length {length} goes through bucket {length} of [1, 2, 3, 64]",
            seen=f"through {calls}",
            look="the smallest bucket that is at least as long as x",
        )


def _expect_too_long_refused(bucketed: Function, longest: int, rng: np.random.Generator) -> None:
    # Two or three of the longest bucket, too: they could be served in parts, each without the rest.
    for length in (longest + 1, 2 * longest, 3 * longest, 2 * longest - 7):
        x = rng.standard_normal((1, length, 5), dtype="float32")
        try:
            bucketed({size: _Attention(size, []) for size in (5, longest, 12)}, x)
        except ValueError as error:
            expect(
                str(longest) in str(error) and str(length) in str(error),
                expected=f"the ValueError names the length {length} and the longest bucket, "
                f"{longest}",
                seen=str(error),
                look="the text of the error",
            )
        else:
            raise fail(
                f"a ValueError for length {length} with buckets {sorted({5, longest, 12})}",
                "a result",
                "the case in which no bucket is long enough",
            )


def _demonstrated_buckets(bucketed: Function) -> str:
    lines = []
    for length in (3, 4, 5, 9):
        calls: list[int | None] = []
        try:
            out = bucketed(
                {size: _Attention(size, calls) for size in (4, 8)},
                np.ones((1, length, 2), "float32"),
            )
            lines.append(f"length {length}: bucket {calls[0]}, output {out.shape}")
        except ValueError:
            lines.append(f"length {length}: ValueError")
    return "\n".join(lines)
