"""Wrong answers made by machine: each differs from the reference in one thing."""

import ast

import pytest

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.machine import variants
from tvm_practice.course.catalog import find
from tvm_practice.course.telling import reference

MANY = 10**6


@pytest.mark.parametrize(
    "name", ["te_basics.matmul", "relay_import.verify", "labs.deploy_cpp.wrap_buffer"]
)
def test_variants_differ_from_the_reference_and_from_each_other(name: str) -> None:
    exercise = find(name)
    made = variants(exercise, MANY)
    bodies = {ast.unparse(ast.parse(each.source)) for each in made}
    assert len(bodies) == len(made) > 1
    assert ast.unparse(ast.parse(reference(exercise))) not in bodies
    docstrings = {ast.get_docstring(ast.parse(each).body[0]) for each in bodies}  # type: ignore[arg-type]
    assert len(docstrings) == 1  # what is promised is left as it is


def test_the_same_variants_are_taken_for_the_same_seed() -> None:
    exercise = find("manual_schedule.tile")
    assert variants(exercise, 5) == variants(exercise, 5)
    assert variants(exercise, 5, seed=1) != variants(exercise, 5)
    assert set(variants(exercise, 5)) < set(variants(exercise, MANY))


def test_what_is_changed_is_told_as_a_person_writes_it() -> None:
    told = {each.change for each in variants(find("manual_schedule.vectorize"), MANY)}
    assert "schedule.vectorize(schedule.get_loops(block)[-1]) -> pass" in told
    assert any("schedule.unroll(" in each for each in told)


@pytest.mark.parametrize("name", EQUIVALENT)
def test_each_reason_is_of_a_variant(name: str) -> None:
    told = [each.change for each in variants(find(name), MANY)]
    for words in EQUIVALENT[name]:
        assert any(words in change for change in told), words
