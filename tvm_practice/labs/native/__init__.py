"""Lab 2's exercises in C++: each is compiled with the program that tries it."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tvm_practice.engines.temporary import TemporaryFolder
from tvm_practice.tvm_export.cpp import compiler, missing_compiler, run_tool
from tvm_practice.tvm_export.errors import DoesNotCompile, Missing

_EXERCISES = Path(__file__).with_name("exercises")


def run_exercise(
    name: str, answer: str, *runs: Sequence[int], races: bool = False
) -> list[dict[str, str]]:
    """Compile a C++ function together with the program that tries it, and run that.

    Args:
        name: of the program in exercises/; it includes the function as answer.h.
        answer: the function's text.
        runs: the program's arguments, run by run.
        races: look for data races as well, with ThreadSanitizer.

    Returns:
        For each run what it printed, by the first word of each line; "exit" is its exit code, or
        minus the signal that ended it, or "timeout"; "race", with `races`, is the line of the
        function where two threads touch the same memory. Without a compiler that has
        ThreadSanitizer, the list is empty where races are looked for.

    Raises:
        Missing: no compiler.
        DoesNotCompile: the text is refused.
    """
    with TemporaryFolder() as folder:
        try:
            program = compile_exercise(name, answer, folder, races=races)
        except DoesNotCompile:
            if races:
                return []
            raise
        return [_run_once([str(program), *map(str, arguments)]) for arguments in runs]


def _run_once(command: list[str]) -> dict[str, str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return {"exit": "timeout"}
    said = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    race = {"race": found} if (found := _race(done.stderr)) else {}
    return said | race | {"exit": str(done.returncode)}


def _race(report: str) -> str:
    """Where in the answer ThreadSanitizer reports a data race; empty if nowhere.

    An access from inside the C++ library says nothing: ThreadSanitizer does not see the library's
    own synchronization.
    """
    for each in report.split("WARNING: ThreadSanitizer: data race")[1:]:
        found = re.search(r"answer\.h:\d+", each)
        if found and "libstdc++" not in each[: found.start()]:
            return found[0]
    return ""


def compile_exercise(name: str, answer: str, folder: Path, *, races: bool = False) -> Path:
    """Compile the program of an exercise with a function of C++ text; see `run_exercise`."""
    if reason := missing_compiler():
        raise Missing(reason)
    from tvm_ffi import libinfo

    (folder / "answer.h").write_text(answer)
    program = folder / name
    command = [str(compiler()), "-std=c++17", "-O0", "-Wall", "-pthread", f"-I{folder}"]
    command += ["-g", "-fsanitize=thread"] if races else []
    command += [f"-I{libinfo.find_dlpack_include_path()}", str(_EXERCISES / f"{name}.cpp")]
    run_tool([*command, "-o", str(program)])
    return program
