"""Gathers and scatters."""

from typing import Any

from fuzz.drawing import CHANNELS, Drawn, Unsuitable, Value


def _rows(drawn: Drawn) -> Value:
    return drawn.value(lambda it: it.rank > 0 and it.filled)


def _embedding(drawn: Drawn, name: str) -> None:
    """A constant table, indexed by a value of the graph or by an index."""
    rows, columns = drawn.among((7, 16, 33)), drawn.among(CHANNELS)
    table = drawn.weight((rows, columns), drawn.among(("float32", "float16", "float64")))
    given = drawn.value(lambda it: it.is_integer and it.exact and it.rank < 4)
    code = f"F.embedding({given.name} % {rows}, {table})"
    drawn.take(name, code, of=[given], exact=True)


def _index_select(drawn: Drawn, name: str) -> None:
    given = _rows(drawn)
    axis = drawn.axis(given)
    index = drawn.indices((drawn.extent(8),), given.shape[axis])
    _indexed(drawn, name, given, f"torch.index_select({given.name}, {axis}, {index})", index)


def _gather(drawn: Drawn, name: str) -> None:
    given = _rows(drawn)
    axis = drawn.integer(0, given.rank - 1)
    shape = tuple(drawn.extent(5) if i == axis else each for i, each in enumerate(given.shape))
    index = drawn.indices(shape, given.shape[axis])
    code = f"torch.gather({given.name}, {axis}, {index}.long())"
    _indexed(drawn, name, given, code, index)


def _index(drawn: Drawn, name: str) -> None:
    """By one index, or by two that broadcast."""
    given = _rows(drawn)
    first = drawn.indices((drawn.extent(5),), given.shape[0])
    places, used = [first], [first]
    if given.rank > 1 and drawn.chance():
        second = drawn.indices((drawn.extent(4), 1), given.shape[1])
        places.append(second)
        used.append(second)
    elif given.rank > 2 and drawn.chance():
        places = [":", drawn.indices((drawn.extent(5),), given.shape[1])]
        used = places[1:]
    _indexed(drawn, name, given, f"{given.name}[{', '.join(places)}]", *used)


def _scatter(drawn: Drawn, name: str) -> None:
    """scatter_add, or index_add: of equal indices the sum."""
    given = drawn.real(1)
    axis = drawn.integer(0, given.rank - 1)
    if given.dtype in ("float16", "bfloat16"):  # one sum in many orders, rounded each time
        raise Unsuitable
    count = drawn.extent(5)
    shape = tuple(count if i == axis else each for i, each in enumerate(given.shape))
    source = drawn.weight(shape, given.dtype)
    if name == "scatter_add":
        index = drawn.indices(shape, given.shape[axis])
        code = f"{given.name}.scatter_add({axis}, {index}.long(), {source})"
    else:
        index = drawn.indices((count,), given.shape[axis])
        code = f"{given.name}.index_add({axis}, {index}, {source})"
    _indexed(drawn, name, given, code, index, exact=False)


def _indexed(
    drawn: Drawn, name: str, given: Value, code: str, *indices: str, exact: bool = True
) -> None:
    read = [each for each in drawn.values if each.name in indices]
    drawn.take(name, code, of=[given, *read], exact=exact)


MAKERS: dict[str, Any] = {
    "embedding": _embedding,
    "index_select": _index_select,
    "gather": _gather,
    "index": _index,
    "scatter_add": _scatter,
    "index_add": _scatter,
}
