"""The whole course in one run: what its exports are made of."""

import io

from rich.console import Console

from tvm_practice.course.catalog import MINE, SOLUTIONS
from tvm_practice.main import export_steps
from tvm_practice.tvm_export.steps import REPLACEABLE, Steps


def test_an_export_is_made_of_the_functions_that_pass() -> None:
    graded = dict.fromkeys(REPLACEABLE, "passed") | {
        "relay_import.verify": "todo",
        "auto_tune.tune_ansor": "failed",
    }
    screen = io.StringIO()
    console = Console(file=screen, width=500)
    steps = Steps(export_steps({"source": MINE, "exercises": graded}, console))
    assert steps.import_relax.__module__ == "tvm_practice.relay_import"
    assert steps.verify is Steps().verify and steps.is_own("tune_ansor")
    said = screen.getvalue()
    assert "your import_relay, " in said
    assert said.endswith("the reference verify (to do), tune_ansor (wrong).\n")
    assert export_steps({"source": SOLUTIONS, "exercises": graded}, console) == SOLUTIONS
    assert screen.getvalue() == said
