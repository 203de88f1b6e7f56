"""The cells of the comparison as text: for the terminal and, as Markdown, for a page."""

from typing import Any

from tvm_practice.labs.workloads.frameworks import FRAMEWORKS
from tvm_practice.labs.workloads.portability import family
from tvm_practice.measure import NO_RATIO

HEADS = ("", "lines", "first, s", "load, s", "ms", "/ eager", "pays")
_NONE = "–"


def row(cell: dict[str, Any]) -> list[str]:
    """The cells after a framework's name, in the order of HEADS; a dash where there is nothing."""
    return [
        _text(cell.get("lines"), "{}"),
        _text(cell.get("first_seconds"), "{:.1f}"),
        _text(cell.get("load_seconds"), "{:.2f}"),
        _text(cell.get("latency", {}).get("p50"), "{:.3g}"),
        _ratio(cell.get("ratio")),
        _calls(cell),
    ]


def _text(value: Any, form: str) -> str:
    return _NONE if value is None else form.format(value)


def _ratio(ratio: dict[str, Any] | None) -> str:
    if ratio is None:
        return _NONE
    if ratio["value"] is None:
        return NO_RATIO
    low, high = ratio["ci95"]
    if low == high == 1:  # the baseline
        return "1"
    return f"{_short(ratio['value'])} ({_short(low)}–{_short(high)})"


def _short(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else "<.01"


def _calls(cell: dict[str, Any]) -> str:
    if "pays_after" not in cell:
        return _NONE
    return "never" if cell["pays_after"] is None else str(cell["pays_after"])


def why_not(cell: dict[str, Any]) -> str | None:
    """Why a framework has dashes; None if it has none."""
    if "missing" in cell:
        return str(cell["missing"])
    if "failed" in cell:
        return f"failed: {cell['failed']}"
    if cell.get("interpreted"):
        return "interpreted, because there is no GPU: correct, but its speed is not measured"
    if (cell.get("ratio") or {}).get("value", 1) is None:
        return str(cell["ratio"]["verdict"])
    return None


def page(figures: dict[str, Any]) -> str:
    """The tables as Markdown, with the machine and the commands."""
    machine = figures["environment"]
    packages = ", ".join(
        f"{name} {version}" for name, version in figures["packages"].items() if version
    )
    lines = [
        "Made by `python -m tvm_practice.labs.compilers_compared --solutions`. Machine: "
        f"{machine['processor']}, {figures['threads']} threads; {packages}; "
        f"{machine['date'][:10]}.",
        "",
        "`first` is a new process's time from its start to its first verified result, with empty "
        "caches on disk: `python -m tvm_practice.labs.workloads.first_result FRAMEWORK WORKLOAD`, "
        "the median of several runs, or one run where it tunes or is interpreted. `load` is the "
        f"time for compiling, and tuning ({figures['trials']} trials), in the process that is "
        "timed, which has already run the workloads above.",
        "",
        "`/ eager` is time over PyTorch eager's, each in its own process, in turns: the median of "
        "the rounds' ratios with its 95% interval. It is not the quotient of the medians in `ms` "
        "where the machine's speed changed between rounds. `pays` is the number of calls after "
        "which `load` has paid for itself.",
    ]
    for workload, measured in figures["workloads"].items():
        lines += ["", f"### {workload}, {measured['text']}", "", f"| {' | '.join(HEADS)} |"]
        lines.append("|---|" + "---:|" * (len(HEADS) - 1))
        notes = []
        for name, cell in measured["frameworks"].items():
            lines.append(f"| {FRAMEWORKS[name].label} | {' | '.join(row(cell))} |")
            if reason := why_not(cell):
                notes.append(f"{FRAMEWORKS[name].label}: {reason}.")
        lines += ["", *notes] if notes else []
    lines += ["", "### Targets", "", "| | target | code made here | output | |"]
    lines.append("|---|---|---|---|---|")
    for name, found in figures["portability"].items():
        command, label = " ".join(found["command"]), family(name)
        if "missing" in found:
            lines.append(f"| {label} | {_NONE} | {_NONE} | {found['missing']} | `{command}` |")
            continue
        for fact in found["facts"]:
            target, made, detail = fact
            answer = "yes" if made else "no"
            lines.append(f"| {label} | {target} | {answer} | {detail} | `{command}` |")
    return "\n".join([*lines, ""])
