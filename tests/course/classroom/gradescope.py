"""The form of Gradescope's results.json, written from its published description.

https://gradescope-autograders.readthedocs.io/en/latest/specs/

Neither gradescope-utils 0.5.0 nor otter-grader 7.0.0 has code that reads such a file: both only
write it, for Gradescope's server.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Visibility = Literal["hidden", "after_due_date", "after_published", "visible"]
Format = Literal["text", "html", "simple_format", "md", "ansi"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Test(_Part):
    """One test case."""

    score: float | None = None
    max_score: float | None = None
    status: Literal["passed", "failed"] | None = None
    name: str | None = None
    name_format: Format | None = None
    number: str | None = None
    output: str | None = None
    output_format: Format | None = None
    tags: list[str] | None = None
    visibility: Visibility | None = None
    extra_data: dict[str, Any] | None = None


class Leader(_Part):
    """One column of the leaderboard."""

    name: str
    value: float | str
    order: Literal["asc", "desc"] | None = None


class Results(_Part):
    """The file. It has a score of its own, or each of its tests has one."""

    score: float | None = None
    execution_time: float | None = Field(default=None, ge=0)
    output: str | None = None
    output_format: Format | None = None
    test_output_format: Format | None = None
    test_name_format: Format | None = None
    visibility: Visibility | None = None
    stdout_visibility: Visibility | None = None
    extra_data: dict[str, Any] | None = None
    tests: list[Test] | None = None
    leaderboard: list[Leader] | None = None

    @model_validator(mode="after")
    def _has_a_score(self) -> "Results":
        if self.score is None and not (
            self.tests and all(each.score is not None for each in self.tests)
        ):
            raise ValueError("neither the file nor each of its tests has a score")
        return self
