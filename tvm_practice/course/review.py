"""`tvm-practice review`: questions from phases that were worked on before."""

import random
from collections.abc import Collection, Mapping, Sequence

import click

from tvm_practice.course.catalog import phase
from tvm_practice.course.questions import QUESTIONS, Question
from tvm_practice.course.screen import Screen


def chosen(
    phases: Collection[str], answers: Mapping[str, bool], count: int, chance: random.Random
) -> Sequence[Question]:
    """Up to `count` questions of these phases: wrongly answered ones first, then new ones.

    Args:
        phases: modules.
        answers: whether the last answer was right, by question.
        count: how many at most.
        chance: decides among equals, and their order.
    """
    of_phases = [each for each in QUESTIONS if each.phase in phases]
    chance.shuffle(of_phases)
    before = {False: 0, None: 1, True: 2}
    found = sorted(of_phases, key=lambda each: before[answers.get(each.id)])[:count]
    chance.shuffle(found)
    return found


def ask(screen: Screen, question: Question, chance: random.Random) -> bool:
    """Ask, tell whether the answer was right and why; raises click.Abort at the input's end."""
    answers = [question.right, *question.wrong]
    chance.shuffle(answers)
    found = phase(question.phase)
    screen.say(f"\n{found.heading}. {question.text}", "bold")
    for number, text in enumerate(answers, 1):
        screen.say(f"  {number}  {text}")
    numbers = click.Choice([str(number) for number in range(1, len(answers) + 1)])
    said = int(click.prompt("  your answer", type=numbers))
    right = answers.index(question.right) + 1
    if said == right:
        screen.say("  Right.", "green")
    else:
        screen.say(f"  No, it is {right}: {question.right}.", "red")
    screen.say(f"  {question.because}")
    return bool(said == right)
