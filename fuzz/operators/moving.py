"""What only moves elements: the epilogues that change a shape."""

import math
from typing import Any

from fuzz.drawing import Drawn, Unsuitable, Value

_MOST_PARTS = 100  # of a split


def _take(drawn: Drawn, name: str, given: Value, code: str) -> None:
    drawn.take(name, code.format(given.name), of=[given], exact=True)


def _any(drawn: Drawn, rank: int = 1) -> Value:
    return drawn.value(lambda it: it.rank >= rank)


def _pad(drawn: Drawn, name: str) -> None:
    """Constant, asymmetrical, at times cropping; or of the other modes."""
    given = _any(drawn)
    axes = drawn.integer(1, min(given.rank, 3))
    mode = drawn.among(("constant", "constant", "reflect", "replicate", "circular"))
    if mode == "constant" or not given.is_real or given.rank not in (3, 4):
        ends = [drawn.among((0, 1, 2, 3, -1)) for _ in range(2 * axes)]
        value = "" if given.is_bool or drawn.chance() else f", value={drawn.among((1, -2))}"
        _take(drawn, name, given, f"F.pad({{}}, {tuple(ends)}{value})")
    else:
        ends = [drawn.among((0, 1, 2)) for _ in range(2 * (given.rank - 2))]
        _take(drawn, name, given, f'F.pad({{}}, {tuple(ends)}, mode="{mode}")')


def _slice(drawn: Drawn, name: str) -> None:
    given = _any(drawn)
    axis = drawn.integer(0, given.rank - 1)
    begin = drawn.among(("", "1", "-3", "2"))
    end, step = drawn.among(("", "-1", "5")), drawn.among(("", "", ":2", ":3"))
    places = [":"] * axis + [f"{begin}:{end}{step}"]
    _take(drawn, name, given, f"{{}}[{', '.join(places)}]")


def _select(drawn: Drawn, name: str) -> None:
    given = _any(drawn)
    axis = drawn.axis(given)
    index = drawn.integer(0, given.shape[axis] - 1)
    _take(drawn, name, given, f"{{}}.select({axis}, {index})")


def _joined(drawn: Drawn, name: str) -> None:
    """cat and stack, of two or three, a constant among them at times."""
    given = _any(drawn)
    axis = drawn.integer(0, given.rank - (name == "cat"))
    others: list[Value] = []
    codes = [given.name]
    for _ in range(drawn.among((1, 2))):
        if drawn.chance():
            other = drawn.value(
                lambda it: (
                    it.dtype == given.dtype
                    and it.rank == given.rank
                    and all(
                        a == b or (i == axis and name == "cat")
                        for i, (a, b) in enumerate(zip(it.shape, given.shape, strict=True))
                    )
                )
            )
            others.append(other)
            codes.append(other.name)
        else:
            codes.append(drawn.weight(given.shape, given.dtype))
    if drawn.chance():
        codes.reverse()
    code = f"torch.{name}(({', '.join(codes)}), {axis})"
    drawn.take(name, code, of=[given, *others], exact=True)


def _permute(drawn: Drawn, name: str) -> None:
    given = _any(drawn, 2)
    axes = drawn.among([tuple(range(given.rank))[::-1], *_turns(given.rank)])
    _take(drawn, name, given, f"{{}}.permute{axes}")


def _turns(rank: int) -> list[tuple[int, ...]]:
    axes = tuple(range(rank))
    return [axes[:at] + (axes[at + 1], axes[at]) + axes[at + 2 :] for at in range(rank - 1)] + [
        (*axes[1:], 0),
        (axes[-1], *axes[:-1]),
    ]


def _reshape(drawn: Drawn, name: str) -> None:
    """Axes joined, or one taken apart."""
    given = _any(drawn)
    shape = list(given.shape)
    at = drawn.integer(0, given.rank - 1)
    if drawn.chance() and given.rank > 1:
        at = min(at, given.rank - 2)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    else:
        divisors = [each for each in range(1, shape[at] + 1) if not shape[at] % each]
        part = drawn.among(divisors or [1])
        shape[at : at + 1] = [part, shape[at] // part]
    _take(drawn, name, given, f"{{}}.reshape({tuple(shape)})")


def _flat(drawn: Drawn, name: str) -> None:
    given = _any(drawn, 2)
    _take(drawn, name, given, f"torch.flatten({{}}, {drawn.integer(0, given.rank - 1)})")


def _refit(drawn: Drawn, name: str) -> None:
    """Any shape of as many elements."""
    given = drawn.value(lambda it: it.filled and it.rank > 0)
    count = math.prod(given.shape)
    first = drawn.among([each for each in (1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16) if not count % each])
    rest = [each for each in (1, 2, 3, 4, 7, 8, 13) if not count // first % each]
    second = drawn.among(rest)
    shape = (first, second, count // first // second)
    _take(drawn, name, given, f"{{}}.reshape({shape})")


def _unsqueeze(drawn: Drawn, name: str) -> None:
    given = _any(drawn, 0)
    _take(drawn, name, given, f"{{}}.unsqueeze({drawn.integer(0, given.rank)})")


def _squeeze(drawn: Drawn, name: str) -> None:
    given = drawn.value(lambda it: 1 in it.shape)
    _take(drawn, name, given, f"{{}}.squeeze({given.shape.index(1)})")


def _expand(drawn: Drawn, name: str) -> None:
    given = _any(drawn, 0)
    front = (drawn.among((2, 3, 1)),) if drawn.chance() else ()
    shape = (*front, *(drawn.among((2, 3, 5)) if each == 1 else each for each in given.shape))
    _take(drawn, name, given, f"{{}}.expand({shape})")


def _repeat(drawn: Drawn, name: str) -> None:
    given = _any(drawn)
    times = tuple(drawn.among((1, 1, 2, 3)) for _ in given.shape)
    _take(drawn, name, given, f"{{}}.repeat({times})")


def _repeat_interleave(drawn: Drawn, name: str) -> None:
    given = _any(drawn)
    times, axis = drawn.among((2, 3)), drawn.axis(given)
    _take(drawn, name, given, f"{{}}.repeat_interleave({times}, dim={axis})")


def _flip(drawn: Drawn, name: str) -> None:
    given = _any(drawn)
    axes = sorted({drawn.integer(0, given.rank - 1) for _ in range(drawn.among((1, 2)))})
    _take(drawn, name, given, f"{{}}.flip({tuple(axes)})")


def _roll(drawn: Drawn, name: str) -> None:
    given = _any(drawn)
    shift, axis = drawn.among((1, -1, 2, 5)), drawn.axis(given)
    _take(drawn, name, given, f"{{}}.roll({shift}, {axis})")


def _part(drawn: Drawn, name: str) -> None:
    """One part of a split, the last perhaps a smaller one."""
    given = _any(drawn)
    axis = drawn.integer(0, given.rank - 1)
    # Of an operator with thousands of results TVM makes thousands of variables, for minutes.
    size = max(drawn.among((1, 2, 3, 5)), -(-given.shape[axis] // _MOST_PARTS))
    parts = -(-given.shape[axis] // size)
    part = drawn.integer(0, parts - 1)
    _take(drawn, name, given, f"{{}}.split({size}, {axis})[{part}]")


def _triangle(drawn: Drawn, name: str) -> None:
    given = _any(drawn, 2)
    _take(drawn, name, given, f"{{}}.{name}({drawn.among((0, 1, -1, 2))})")


def _shuffle(drawn: Drawn, name: str) -> None:
    given = drawn.value(lambda it: it.rank == 4 and it.is_real and it.filled)
    if name == "channel_shuffle":
        groups = [each for each in (2, 3, 4) if not given.shape[1] % each]
        if not groups:
            raise Unsuitable
        _take(drawn, name, given, f"F.channel_shuffle({{}}, {drawn.among(groups)})")
        return
    factors = (2, 3)
    if name == "pixel_shuffle":
        fit = [each for each in factors if not given.shape[1] % (each * each)]
    else:
        fit = [each for each in factors if not given.shape[2] % each and not given.shape[3] % each]
    if not fit:
        raise Unsuitable
    _take(drawn, name, given, f"F.{name}({{}}, {drawn.among(fit)})")


def _diagonal(drawn: Drawn, name: str) -> None:
    given = _any(drawn, 2)
    offset = drawn.among((0, 1, -1))
    _take(drawn, name, given, f"torch.diagonal({{}}, {offset}, -2, -1)")


def _rot90(drawn: Drawn, name: str) -> None:
    given = _any(drawn, 2)
    _take(drawn, name, given, f"torch.rot90({{}}, {drawn.among((1, 2, 3))}, (-2, -1))")


def _unfold(drawn: Drawn, name: str) -> None:
    given = _any(drawn)
    axis = drawn.integer(0, given.rank - 1)
    size, step = drawn.among((2, 3)), drawn.among((1, 2))
    if given.shape[axis] < size:
        raise Unsuitable
    _take(drawn, name, given, f"{{}}.unfold({axis}, {size}, {step})")


def _contiguous(drawn: Drawn, name: str) -> None:
    _take(drawn, name, _any(drawn), "{}.contiguous()")


MAKERS: dict[str, Any] = {
    "pad": _pad,
    "slice": _slice,
    "select": _select,
    "cat": _joined,
    "stack": _joined,
    "permute": _permute,
    "reshape": _reshape,
    "reshape to three axes": _refit,
    "flatten": _flat,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "repeat": _repeat,
    "repeat_interleave": _repeat_interleave,
    "flip": _flip,
    "roll": _roll,
    "split": _part,
    "tril": _triangle,
    "triu": _triangle,
    "pixel_shuffle": _shuffle,
    "pixel_unshuffle": _shuffle,
    "channel_shuffle": _shuffle,
    "diagonal": _diagonal,
    "rot90": _rot90,
    "unfold": _unfold,
    "contiguous": _contiguous,
}
