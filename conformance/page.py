"""docs/conformance.md, from the outcomes that runs have left in runs/conformance/."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from conformance.cases import Outcome, Verdict, counts
from conformance.kinds import KINDS
from conformance.results import FOLDER, Results, reasons
from tvm_practice.engines import CURRENT, Engine

_COUNTED: tuple[Verdict, ...] = ("refused", "wrong", "raw", "left out")
_HEADINGS = ("kind", "type", "applicable", "right", *_COUNTED, "not tried", "date")
PAGE = Path("docs/conformance.md")
_HEAD = """# Conformance

This page counts how the exporter does on test cases from other projects. Each case is compiled
untuned, run, and compared with its reference in values, types and shapes. It is the current engine
that compiles, unless a row names the classic one. The command that runs the cases makes the page:

<!-- not run here: hours; CI runs a sample -->
```bash
make conformance                  # every kind, every type, then this page
make conformance KIND=operators ARGS="--samples 2"
python -m conformance operators --engine classic --samples 2 --page
python -m conformance --again runs/conformance/operators-float32.json --verdict refused
```

Each case has one verdict:

- *right*;
- *wrong*: values, types or shapes differ, without a message;
- *refused*: one line says why, before anything runs;
- *raw*: it crashed, or failed with an error that was not written for users;
- *left out*: it is not a case for an exporter. For example, it draws random numbers, or PyTorch
  refuses it.

`--again` judges the cases of some verdicts again, and `--more` those without an outcome. Other
outcomes stay from the previous run, perhaps of an earlier version; the date is the last run's.
Outcomes are kept in runs/conformance/. If a kind or type has none there, or fewer than its row on
this page counts while cases were left untried, the row stays, with its date; if a whole kind has
none, so do its reasons.

<!-- not run here: half an hour; CI runs a sample -->
```bash
python -m conformance operators --draw 400 --json runs/conformance/drawn.json --page
```

This tries a random sample of cases. Samples, and cases that `--only` names, have their own rows.
"""
_PARTS = "Cases drawn or chosen"
_PART_HEADINGS = ("command", *_HEADINGS[2:-2], "date")
# What differs between cases that are refused for one reason.
_PARTICULAR = (
    (re.compile(r"; (--converters|--tuner) .*"), ""),
    (re.compile(r"metadata\["), "["),
    (re.compile(r"\b(lv|v)\d+\b"), r"\1"),
    (re.compile(r"-?\b\d+(\.\d+)?(e-?\d+)?\b"), "n"),
    (re.compile(r"n(, n)+"), "n, …"),
)
_LONGEST = 160
_NOTES = {
    "torch-mlir": "Small modules of llvm/torch-mlir, from a checkout of it. One whose extents are "
    "declared unknown is a second case, with these open:\nequal ones are one extent, and the model "
    "is called at the example's extents and up to four others that PyTorch takes too.\n",
    "libraries": "Small configurations of models of torchvision, torchaudio, diffusers, monai, "
    "segmentation-models-pytorch, vit-pytorch,\nx-transformers and ultralytics: "
    "`conformance/library_models.py` says how to install them.\n"
    "Models that decide by their inputs' values, which the exporter refuses, are not among them: "
    "torchvision's detectors, torchaudio's Conformer.\n",
    "operators": "Vectors of `eigh` and `svd` are unique up to their signs and are compared as "
    "PyTorch's samples say. PyTorch rounds some sums of 16-bit numbers at each step: there,\n"
    "outputs that are as near to float64's as PyTorch's are right too.\n",
    "onnx": "Compiled as `compile_onnx` does it, but run in the process and not from a library. "
    "Inputs that choose shapes or the way of computing (axes, the shape of a Reshape, thresholds) "
    "are bound to their stored values first, as `--value` does. Float16 and bfloat16 may differ "
    "by two units in the last place, and any value by four units of the output's largest.\n",
}


def write(folder: Path = FOLDER, page: Path = PAGE) -> list[Results]:
    """Write the page from every file of outcomes in a folder, and from the page as it is.

    Returns the results that the page has more of already: they are not in it.
    """
    found = [Results.read(file) for file in sorted(folder.glob("*.json"))]
    before = page.read_text() if page.exists() else ""
    page.write_text(text(found, before))
    return [each for each in found if _has_more(before, each)]


def text(found: Sequence[Results], before: str = "") -> str:
    """The page: one table of counts, then what each kind's failures are.

    Args:
        found: the outcomes.
        before: the page as it was: what it says of types and kinds that are not in `found` stays,
            and what it counts more outcomes for.
    """
    found = [each for each in found if not _has_more(before, each)]
    chosen = [each for each in found if each.part]
    found = [each for each in found if not each.part]
    parts = [_HEAD, _overview(found, before), _drawn(chosen, before)]
    for kind in KINDS:
        outcomes = [each for each in found if each.kind == kind]
        parts.append(
            _section(kind, outcomes) if outcomes else _section_of(before, KINDS[kind].TITLE)
        )
    return "\n".join(filter(None, parts)).rstrip() + "\n"


def _has_more(page: str, found: Results) -> bool:
    """Whether a page's row counts more outcomes of the same cases, of which some are untried."""
    if found.part:
        row = _parts_of(page).get(_cell(found.command))
        return row is not None and int(row[1]) + int(row[6]) > len(found.outcomes)
    row = _rows_of(page).get((found.kind, _type_of(found)))
    if row is None or not found.untried:
        return False
    return int(row[2]) + int(row[7]) > len(found.outcomes)


def _overview(found: Iterable[Results], before: str) -> str:
    rows = _rows_of(before) | {(each.kind, _type_of(each)): _row(each) for each in found}
    known = [
        (kind, _type(dtype, engine))
        for kind in KINDS
        for engine in KINDS[kind].ENGINES
        for dtype in KINDS[kind].DTYPES
    ]
    return _table(_HEADINGS, [rows[each] for each in known if each in rows])


def _drawn(found: Sequence[Results], before: str) -> str:
    """The section on runs that tried some cases only: a row per command, and its reasons."""
    kept = _section_of(before, _PARTS)
    if not found:
        return kept
    rows, told = _parts_of(before), _reasons_of(kept)
    for each in found:
        command = _cell(each.command)
        rows[command] = [command, *_row(each)[2:-2], _row(each)[-1]]
        refused = _reasons(each.outcomes, "refused", f"Refused by {command}")
        told[command] = [refused, _named(each.outcomes, f"Wrong and raw by {command}")]
    reasons = [each for command in rows for each in told.get(command, [])]
    table = _table(_PART_HEADINGS, list(rows.values()))
    return "\n".join(filter(None, [f"## {_PARTS}\n", table, *reasons]))


def _parts_of(page: str) -> dict[str, list[str]]:
    """The rows of a page's section on runs that tried some cases only, by command."""
    lines = _section_of(page, _PARTS).partition("\n### ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `python ")]
    return {row[0]: row for row in rows if len(row) == len(_PART_HEADINGS)}


def _reasons_of(section: str) -> dict[str, list[str]]:
    """The subsections of the section on such runs, by the command in their headings."""
    found: dict[str, list[str]] = {}
    for each in section.split("\n### ")[1:]:
        heading = each.partition("\n")[0]
        command = heading[heading.find(" by ") + 4 :]
        found.setdefault(command, []).append(f"### {each.rstrip()}\n")
    return found


def _row(found: Results) -> list[str]:
    tally = counts(found.outcomes)
    applicable = len(found.outcomes) - tally["left out"]
    return [
        KINDS[found.kind].TITLE,
        _type_of(found),
        f"{applicable}",
        f"{tally['right']} ({tally['right'] / max(applicable, 1):.1%})",
        *(f"{tally[verdict]}" for verdict in _COUNTED),
        f"{found.untried}",
        str(found.environment["date"])[:10],
    ]


def _type_of(found: Results) -> str:
    return _type(found.dtype, found.engine)


def _type(dtype: str, engine: Engine) -> str:
    """The cell of the column of types."""
    return dtype if engine == CURRENT else f"{dtype}, {engine} engine"


def _rows_of(page: str) -> dict[tuple[str, str], list[str]]:
    """The rows of a page's table of counts, by kind and type."""
    kinds = {kind.TITLE: name for name, kind in KINDS.items()}
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return {
        (kinds[line[0]], line[1]): line
        for line in lines
        if line[0] in kinds and len(line) == len(_HEADINGS)
    }


def _section_of(page: str, title: str) -> str:
    """A page's section under a heading; empty where it has none."""
    _, _, found = page.partition(f"\n## {title}\n")
    return f"## {title}\n{found.partition(chr(10) + '## ')[0]}" if found else ""


def _section(kind: str, found: Sequence[Results]) -> str:
    """What was refused, wrong, raw and left out of a kind, in all its types together.

    The classic engine's reasons have their own headings.
    """
    if not found:
        return ""
    parts = [f"## {KINDS[kind].TITLE}\n", _NOTES.get(kind, "")]
    for each in found:
        packages = ", ".join(
            f"{name} {number}"
            for name, number in each.environment["packages"].items()
            if number and name in ("apache-tvm", "torch", "onnx", "transformers", "timm")
        )
        date = str(each.environment["date"])[:10]
        run = f"`{each.command}`, {date}, {each.environment['processor']}; {packages}"
        untried = f"; {each.untried} more cases were not tried" if each.untried else ""
        parts.append(f"{run}{untried}.\n")
        parts.append(_static_share(each))
    for engine in KINDS[kind].ENGINES:
        outcomes = [
            each for results in found if results.engine == engine for each in results.outcomes
        ]
        on = "" if engine == CURRENT else f" on the {engine} engine"
        parts += [
            _reasons(outcomes, "refused", f"Refused{on}, by reason"),
            _named(outcomes, f"Wrong and raw{on}"),
            _reasons(outcomes, "left out", f"Left out{on}, by reason"),
        ]
    return "\n".join(filter(None, parts))


def _static_share(found: Results) -> str:
    """How many of the cases are right that an exporter of static graphs can be asked for."""
    applicable = [each for each in found.outcomes if each.verdict != "left out"]
    asked = [each for each in applicable if each.is_static]
    if not asked:
        return ""
    right = counts(asked)["right"]
    unknown = sum(each.is_static is None for each in applicable)
    rest = f" It is not known of {unknown} more cases." if unknown else ""
    return (
        f"PyTorch's core decompositions make operators of core ATen with static shapes of "
        f"{len({each.group for each in asked})} of these operators ({_type_of(found)}). Of their "
        f"{len(asked)} cases, {right} ({right / len(asked):.1%}) are right.{rest}\n"
    )


def _reasons(outcomes: Iterable[Outcome], verdict: Verdict, heading: str) -> str:
    counted: Counter[str] = Counter()
    for reason, number in reasons(outcomes, verdict).items():
        counted[general(reason)] += number
    rows = [[f"{number}", _cell(reason)] for reason, number in counted.most_common()]
    return f"### {heading}\n\n" + _table(["cases", "reason"], rows) if rows else ""


def _named(outcomes: Iterable[Outcome], heading: str) -> str:
    """The cases that are wrong or raw: each is a defect."""
    rows = [
        [each.verdict, _cell(each.name), _cell(each.reason[:_LONGEST])]
        for each in outcomes
        if each.verdict in ("wrong", "raw")
    ]
    return f"### {heading}\n\n" + _table(["verdict", "case", "reason"], rows) if rows else ""


def general(reason: str) -> str:
    """A reason without what is its case's own: numbers, names of variables, the way out."""
    for pattern, replacement in _PARTICULAR:
        reason = pattern.sub(replacement, reason)
    return reason if len(reason) <= _LONGEST else reason[: _LONGEST - 1] + "…"


def _cell(said: str) -> str:
    """Text as code in a table's cell."""
    return "`" + said.replace("`", "'").replace("|", "\\|") + "`"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(each)} |\n" for each in lines)
