"""docs/faults.md, from the cases of a run."""

import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.faults.scenarios import SCENARIOS, Case

PAGE = Path("docs/faults.md")
_HEAD = """# Faults

`make faults` injects faults into real runs of a small model. strace records the system calls by
which a run changes files. Then the run is repeated, and one of these calls fails as on a full or a
broken disk, or the process is killed or stopped at the call.

*Restarted* means that the run and the
next one have process numbers as in separate containers. In rows without a call, Python's clock
jumps by a day, or the same command runs a second time in the same folder. The command makes this
page:

<!-- not run here: twenty minutes; CI runs a sample -->
```bash
make faults
python -m tests.faults export --only rename --faults 20
```

After each fault, the following must hold:

- the command ends with a documented exit code and without a traceback;
- no measured trial is lost;
- the artifact is whole, either the previous one or the new one, at the latest after the next run;
- the next run succeeds, and leaves nothing in the temporary folder or beside the results.

"""
_WHAT = {
    "export": "the engine's process of an untuned export over a former one",
    "tuning": "the engine's process of a search that goes on from two trials, and its export",
    "icd": "`icd run` over a former result",
    "command": "`run_autotvm` itself, which waits for the engine's process",
}


def write(cases: Sequence[Case], seconds: float, page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(text(cases, seconds), encoding="utf-8")


def text(cases: Sequence[Case], seconds: float) -> str:
    """The page: how many faults of each kind there were, and what did not hold.

    Args:
        cases: those whose fault did not happen are left out.
        seconds: that they took.
    """
    done = [case for case in cases if case.injected]
    failed = [case for case in done if case.violations]
    lines = [
        f"{len(done)} faults, {len(failed)} violations, in {seconds / 60:.0f} minutes on "
        f"{psutil.cpu_count(logical=False)} cores of {platform.machine()}.",
        "",
        "| run | call | how | faults | violations |",
        "|---|---|---|---|---|",
    ]
    numbers = Counter(_kind(case) for case in done)
    violations = Counter(_kind(case) for case in failed)
    order = list(SCENARIOS)
    for kind in sorted(numbers, key=lambda each: (order.index(each[0]), *each)):
        name, call, how = kind
        lines.append(f"| {name} | {call} | {how} | {numbers[kind]} | {violations[kind]} |")
    lines += ["", *(f"- *{name}*: {_WHAT[name]}" for name in order if name in _names(done))]
    if failed:
        lines += ["", "## What did not hold", ""]
        lines += [f"- {case.fault}: {case.violations[0]}" for case in failed]
    return _HEAD + "\n".join(lines) + "\n"


def _names(cases: Sequence[Case]) -> set[str]:
    return {case.scenario.name for case in cases}


def _kind(case: Case) -> tuple[str, str, str]:
    return case.scenario.name, *case.fault.kind
