"""Some cases of each kind, drawn anew at each run: none of them is wrong or a raw error."""

import random
from collections.abc import Iterator

import pytest
import torch

from conformance import memory, operators
from conformance.cases import Case, drawn, try_all
from conformance.kinds import KINDS

# Cases per run. A model costs what some twenty operators do. Some of the kind "rare" are known to
# be wrong: docs/conformance.md names them.
_DRAWN = {
    "operators": 16,
    "modules": 12,
    "onnx": 30,
    "transformers": 2,
    "timm": 1,
    "memory": 16,
    "compile": 1,
}
_CHANCE = random.SystemRandom()


def _of_operators(dtype: str, count: int) -> Iterator[Case]:
    """Operators, and a sample of each: to make all samples of all takes half a minute."""
    known = [
        name for name, each in operators.database().items() if getattr(torch, dtype) in each.dtypes
    ]
    for name in _CHANCE.sample(known, count):
        if samples := operators.samples_of(name, dtype):
            index = _CHANCE.randrange(len(samples))
            arguments = {"name": name, "index": index, "dtype": dtype}
            yield Case(name, f"{name} {dtype} {index}", arguments)


@pytest.mark.pages
@pytest.mark.parametrize("name", list(_DRAWN))
def test_a_drawn_sample(name: str) -> None:
    kind, count = KINDS[name], _DRAWN[name]
    dtype = kind.DTYPES[0]  # a draw of a type that was never tried in full would fail by chance
    if kind in (operators, memory):
        cases = list(_of_operators(dtype, count))
    else:
        cases = drawn(kind.cases(dtype, None), count, None)
    outcomes = try_all(kind.JUDGE, cases, jobs=1)
    assert len(outcomes) == len(cases) > 0
    defects = [each for each in outcomes if each.verdict in ("wrong", "raw")]
    again = f"python -m conformance {name} --dtype {dtype} --only"
    assert not defects, "\n".join(
        f"{each.verdict} {each.reason}: {again} '{each.name}'" for each in defects
    )
