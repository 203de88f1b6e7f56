"""A class of made students: `python -m tests.course.classroom.made FOLDER [COUNT]`.

    python -m tests.course.classroom.made class 100

Each hands in phase 1: right answers, wrong ones, stubs; six of them mean harm, and two archives are
broken. `tvm-practice grade` then grades them, two at a time. Exit code 1: a student's points are
not what the answers are worth, a file beside the class was touched, or a process is left.
"""

import csv
import itertools
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.mutants import Mutant, mutants, pasted, right_answers
from tvm_practice.course.catalog import MINE, Exercise, find, phase
from tvm_practice.course.editing import stubbed
from tvm_practice.course.grading import source_file
from tvm_practice.course.telling import reference

# Answers to matmul(m, n, k) that mean harm.
HARM = {
    # The check refuses os.fork; the sandbox must bear what the check does not see.
    "forks": "import ctypes\n    fork = ctypes.CDLL(None).fork\n    while True:\n        fork()",
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


def make_class(folder: Path, count: int, home: Path) -> dict[str, int]:
    """Write `count` submissions; the points of each by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(0)
    points: dict[str, int] = {}
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


def _students(chance: random.Random, home: Path) -> Iterator[tuple[str, str, int]]:
    """Kind, chapter and points of one after the other."""
    others = _others()
    exercises = phase("te_basics").exercises
    for number in itertools.count():
        if number in (0, 51):
            yield "broken", chapter("te_basics"), 0
        elif number % 8 == 4 and number // 8 < len(HARM):
            kind = list(HARM)[number // 8]
            answers = {"softmax": reference(find("softmax")), "matmul": harm(kind, home)}
            yield kind, chapter("te_basics", **answers), _worth(find("softmax"))
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


def differences(marks: Path, points: dict[str, int]) -> list[str]:
    """The students whose points in `marks` are not these, and those that are missing."""
    with (marks / "marks.csv").open(encoding="utf-8") as file:
        found = {each["student"]: int(each["points"]) for each in csv.DictReader(file)}
    results = {each.stem for each in (marks / "results").glob("*.json")}
    return [
        f"{name}: {found.get(name, 'no')} points, and not {worth}"
        for name, worth in points.items()
        if found.get(name) != worth or name not in results
    ]


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    home = folder / "home"
    home.mkdir(parents=True)
    (home / "thesis").write_text("kept")
    points = make_class(folder / "class", count, home)
    handed_in = _contents(folder)
    command = [sys.executable, "-m", "tvm_practice.course", "grade", str(folder / "class")]
    started = time.monotonic()
    subprocess.run([*command, "--only", "1", "--jobs", "2", "--out", str(folder / "marks")])
    seconds = time.monotonic() - started
    wrong = differences(folder / "marks", points)
    now = _contents(folder)
    wrong += [f"{name} was touched" for name, text in handed_in.items() if now.get(name) != text]
    wrong += [f"{each} is left" for each in psutil.process_iter() if _is_left(each)]
    for each in wrong:
        print(each)
    print(f"{count} students graded in {seconds:.0f} s, {len(wrong)} not as they should be")
    sys.exit(bool(wrong))


def _contents(folder: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def _is_left(process: psutil.Process) -> bool:
    """Whether it is the process that `leaves` leaves behind, or a sandbox's."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    inside = "tvm_practice.course.classroom.inside"
    return words == ["sleep", "100000"] or (words[:1] == ["bwrap"] and inside in words)


if __name__ == "__main__":
    main()
