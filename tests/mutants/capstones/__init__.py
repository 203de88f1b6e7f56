"""The capstone's wrong answers and weak ones: whole files, as a learner hands them in.

Each wrong one is refused by the gate, with the message that `REFUSED` has for it.
"""

from pathlib import Path

FOLDER = Path(__file__).parent

# By file: the track, a size at which it is caught, and what the message matches.
REFUSED: dict[str, tuple[str, tuple[int, ...], str]] = {
    "reads_torch": ("product", (5, 3, 1), r"line 3 uses torch"),
    "calls_torch": ("product", (5, 3, 1), r"its function calls my\.torch\.product"),
    "calls_reference": ("product", (5, 3, 1), r"solutions\.capstone[\s\S]*another's work"),
    "calls_helpers": ("product", (5, 3, 1), r"it calls the reference answer"),
    "replaces_the_build": ("product", (5, 3, 1), r"this one left Y as it was"),
    "changes_the_gate": ("product", (5, 3, 1), r"it changes expect of .*which the grader relies"),
    "ends_the_process": ("product", (5, 3, 1), r"process ended \(exit status 0\)"),
    "filters_of_three": ("depthwise", (1, 5, 11, 19, 5, 1), r"of 1045 elements differ"),
    "whole_groups_of_keys": ("attention", (13, 17), r"of 832 elements differ"),
    "one_size": ("product", (5, 3, 1), r"X \(5, 1\)[\s\S]*\(509, 251\)"),
    "whole_tiles": ("product", (13, 3, 5), r"the edge: wrong from row 8 of 13"),
    "keeps_result": ("product", (5, 3, 2), r"this is the last call's result"),
    "overflows": ("product", (31, 7, 37), r"nan[\s\S]*exp of more than 88"),
    "no_maximum": ("attention", (7, 5), r"nan[\s\S]*exp of more than 88"),
    "reads_past_the_row": ("depthwise", (1, 2, 5, 7, 3, 1), r"Y of depthwise\(1, 2, 5, 7, 3, 1\)"),
}
