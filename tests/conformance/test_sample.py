"""Some cases of each kind, drawn anew at each run: none of them is wrong or a raw error."""

import random

import pytest

from conformance.cases import drawn, try_all
from conformance.kinds import KINDS

# Cases per run. A model costs what some twenty operators do. Some of the kind "rare" are known to
# be wrong: docs/conformance.md names them.
_DRAWN = {"operators": 16, "onnx": 30, "transformers": 2, "timm": 1, "memory": 16, "compile": 1}


@pytest.mark.pages
@pytest.mark.parametrize("name", list(_DRAWN))
def test_a_drawn_sample(name: str) -> None:
    kind, seed = KINDS[name], random.SystemRandom().randrange(10**6)
    dtype = kind.DTYPES[0]  # a draw of a type that was never tried in full would fail by chance
    print(f"python -m conformance {name} --dtype {dtype} --draw {_DRAWN[name]} --seed {seed}")
    outcomes = try_all(kind.JUDGE, drawn(kind.cases(dtype, None), _DRAWN[name], seed), jobs=1)
    defects = [each for each in outcomes if each.verdict in ("wrong", "raw")]
    assert not defects, "\n".join(f"{each.verdict} {each.name}: {each.reason}" for each in defects)
