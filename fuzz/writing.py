"""A fault as the text of a test that can be copied to tests/."""

import re
from pathlib import Path

from fuzz.graphs import Graph, Step
from fuzz.searching import Fault

_TEXT = '''"""{reason}"""

from fuzz.graphs import Graph, Step
from fuzz.searching import judging

GRAPH = Graph(
    inputs={inputs},
    constants={constants},
    steps=[
{steps}
    ],
    outputs={outputs},
)


def test_it_computes_what_pytorch_computes() -> None:
    with judging() as judge:
        outcome = judge(GRAPH, "{mode}", {seed})
    assert not outcome.is_fault, outcome.reason
'''


def text_of(fault: Fault) -> str:
    """The test of a fault: it fails until the fault is mended."""
    graph: Graph = fault.graph
    return _TEXT.format(
        reason=f"{fault.outcome.verdict}: {fault.outcome.reason}"[:90].replace('"', "'"),
        inputs=_lines(graph.inputs),
        constants=_lines(graph.constants),
        steps="\n".join(map(_step, graph.steps)),
        outputs=graph.outputs,
        mode=fault.mode,
        seed=fault.seed,
    )


def _lines(codes: dict[str, str]) -> str:
    if not codes:
        return "{}"
    lines = [f"        {name!r}: {code!r}," for name, code in codes.items()]
    return "\n".join(["{", *lines, "    }"])


def _step(step: Step) -> str:
    return f"        Step({step.name!r}, {step.code!r}, {step.operator!r}, {step.exact}),"


def write(fault: Fault, folder: Path) -> Path:
    """Write a fault's test to a file of the folder that is named after its operators."""
    folder.mkdir(parents=True, exist_ok=True)
    names = "_".join(dict.fromkeys(fault.graph.operators))
    stem = re.sub(r"\W+", "_", f"test_{fault.mode}_{names}")[:80]
    file, number = folder / f"{stem}.py", 2
    while file.exists() and file.read_text() != text_of(fault):
        file, number = folder / f"{stem}_{number}.py", number + 1
    file.write_text(text_of(fault))
    return file
