"""What the puzzles show: each one's loops before and after, and whether the learner's are those."""

from typing import Any

from tvm_practice.course.steps import Steps


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Draw every puzzle, and compare what the functions that are written make of it.

    Returns:
        {"solved": names of the puzzles with the wanted loops}.
    """
    from tvm_practice.course.puzzle_loops import EXAMPLE, PUZZLES, example, first_difference

    solved = []
    for name, puzzle in PUZZLES.items():
        print(f"\n{name}\n\n{example(name)}\n")
        schedule = puzzle.start(EXAMPLE)
        steps.attempt(name, schedule, *puzzle.arguments(EXAMPLE))
        if not steps.ran(name):
            continue
        difference = first_difference(puzzle.picture(schedule), puzzle.wanted(EXAMPLE))
        if difference is None:
            solved.append(name)
            print("Your function makes these loops.")
        else:
            steps.fail(name, difference)
    return {"solved": solved}
