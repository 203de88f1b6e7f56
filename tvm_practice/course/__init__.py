"""The course: exercises, their hints and checks, grading, and the frame that runs a phase."""

from tvm_practice.course.steps import Steps

__all__ = ["Steps"]
