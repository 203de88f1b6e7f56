"""The fuzzer for real, on a seed whose graphs are right."""

import pytest

from fuzz.searching import judging, poisoned_memory, search


@pytest.mark.pages
@pytest.mark.real_processes
def test_some_graphs_are_right() -> None:
    with poisoned_memory(), judging() as judge:
        found = search(judge, seed=0, most=12, modes=("rules", "tiles"))
    assert not found.faults, "\n".join(
        f"{each.mode}: {each.outcome.reason}\n{each.graph.source()}" for each in found.faults
    )
    assert found.verdicts["right"] >= 9 and len(found.modes) == 2
