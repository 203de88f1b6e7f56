"""Shared by all tests."""

from collections.abc import Iterator

import pytest

from tvm_practice.course.grading import Grader


@pytest.fixture(scope="session")
def grader() -> Iterator[Grader]:
    """Grades exercises; keeps one process an engine for the whole run."""
    with Grader() as open_grader:
        yield open_grader
