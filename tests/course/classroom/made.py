"""A class of made students: `python -m tests.course.classroom.made FOLDER [COUNT]`.

    python -m tests.course.classroom.made class 100
    tvm-practice grade class --only 1

Each hands in phase 1: right answers, wrong ones, stubs; six of them mean harm, and two archives are
broken. What `tvm-practice grade` says of them has to be as their names say.
"""

import itertools
import random
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.mutants import Mutant, mutants, pasted, right_answers
from tvm_practice.course.catalog import MINE, Exercise, find, phase
from tvm_practice.course.editing import stubbed
from tvm_practice.course.grading import source_file
from tvm_practice.course.telling import reference

# Answers to matmul(m, n, k) that mean harm.
HARM = {
    "forks": "import os\n    while True:\n        os.fork()",
    "hangs": "while True:\n        pass",
    "hoards": "return [bytearray(b'x') * 2**30 for _ in range(20)]",
    "deletes": (
        "import os, shutil\n    shutil.rmtree(os.environ['HOME'], ignore_errors=True)\n"
        "    shutil.rmtree({home!r}, ignore_errors=True)"
    ),
    "prints": "for _ in range(1000):\n        print('x' * 10**6)",
    "leaves": (
        "import subprocess\n"
        "    subprocess.Popen(['sleep', '100000'], start_new_session=True)"
    ),
}  # fmt: skip


def harm(kind: str, home: Path) -> str:
    """An answer that means harm; `home` is what `deletes` deletes."""
    return f"def matmul(m, n, k):\n    {HARM[kind].replace('{home!r}', repr(str(home)))}\n"


def chapter(module: str, **answers: str) -> str:
    """A chapter with these answers, and the stubs of the others."""
    text = source_file(module, MINE).read_text(encoding="utf-8")
    for exercise in phase(module).exercises:
        text = stubbed(text, exercise.name)
    for name, source in answers.items():
        text = pasted(text, find(f"{module}.{name}"), source)
    return text


def make_class(folder: Path, count: int, home: Path) -> dict[str, int | None]:
    """Write `count` submissions; the points of each by its name, None where it cannot be told."""
    chance = random.Random(0)
    points: dict[str, int | None] = {}
    for number, (kind, text, worth) in enumerate(itertools.islice(_students(chance, home), count)):
        name = f"{number:03}-{kind}"
        points[name] = worth
        if number % 3:
            (folder / name).mkdir(parents=True)
            (folder / name / "te_basics.py").write_text(text)
        else:
            with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
                archive.writestr("work/te_basics.py", text)
            if kind == "broken":
                whole = (folder / f"{name}.zip").read_bytes()
                (folder / f"{name}.zip").write_bytes(whole[:-40])
    return points


def _students(chance: random.Random, home: Path) -> Iterator[tuple[str, str, int | None]]:
    """Kind, chapter and points of one after the other."""
    others = _others()
    exercises = phase("te_basics").exercises
    for number in itertools.count():
        if number in (0, 51):
            yield "broken", chapter("te_basics"), 0
        elif number % 8 == 4 and number // 8 < len(HARM):
            kind = list(HARM)[number // 8]
            answers = {"softmax": reference(find("softmax")), "matmul": harm(kind, home)}
            yield kind, chapter("te_basics", **answers), None
        else:
            answers, worth = {}, 0
            for exercise in exercises:
                answer, is_right = chance.choice(others[exercise.name])
                if answer:
                    answers[exercise.name] = answer
                worth += is_right * _worth(exercise)
            yield "student", chapter("te_basics", **answers), worth


def _worth(exercise: Exercise) -> int:
    from tvm_practice.course.classroom.marking import worth

    return worth(exercise)


def _others() -> dict[str, list[tuple[str, bool]]]:
    """Answers to each exercise of phase 1, and whether they are right; "" is the stub."""
    found = {
        each.name: [("", False), *[(reference(each), True)] * 3]
        for each in phase("te_basics").exercises
    }

    def of_phase(answers: list[Mutant]) -> list[Mutant]:
        return [each for each in answers if each.phase == "te_basics" and _stands_alone(each)]

    for answer in of_phase(mutants()):
        found[answer.exercise].append((answer.source, False))
    for answer in of_phase(right_answers()):
        found[answer.exercise] += [(answer.source, True)] * 5
    return found


def _stands_alone(answer: Mutant) -> bool:
    """Whether its text is a student's: some are told by the reference answer, beside it."""
    return "from solutions" not in answer.source


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    made = make_class(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 100, Path.home() / "made")
    for name, points in made.items():
        print(f"{name:<24} {'?' if points is None else points}")


if __name__ == "__main__":
    main()
