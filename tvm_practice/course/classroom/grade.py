"""A whole class graded: in turns or side by side, each submission's marks written as they come."""

import concurrent.futures
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tvm_practice.course.classroom.marking import Marked, Rules, mark
from tvm_practice.course.classroom.records import (
    from_gradescope,
    write_results,
    write_table,
)
from tvm_practice.course.classroom.submissions import Submission

TABLE, LIKENESS, RESULTS = "marks.csv", "likeness.csv", "results"


def grade_class(
    submissions: Sequence[Submission],
    rules: Rules,
    out: Path,
    *,
    jobs: int = 1,
    anew: bool = False,
    done: Callable[[Marked], None] = lambda _: None,
) -> list[Marked]:
    """Grade each submission, and write `marks.csv` and `results/NAME.json` into `out`.

    What was graded under the same rules, and has not changed, is read from its file, unless `anew`.
    The table is written at the end, after Ctrl-C too, of those that are graded by then.

    Args:
        submissions: of different names.
        rules: what is graded, and how.
        out: a folder; it is made.
        jobs: submissions that are graded side by side.
        anew: grade all of them.
        done: takes each as soon as its file is written.

    Returns:
        The marks in the order of `submissions`.

    Raises OSError.
    """
    (out / RESULTS).mkdir(parents=True, exist_ok=True)
    finished: dict[str, Marked] = {}
    try:
        for marked in _marked(submissions, rules, out, jobs, anew):
            finished[marked.submission.name] = marked
            write_results(marked, rules, _results(out, marked.submission))
            done(marked)
    finally:
        in_order = [finished[each.name] for each in submissions if each.name in finished]
        write_table(in_order, rules, out / TABLE)
    return in_order


def _marked(
    submissions: Sequence[Submission], rules: Rules, out: Path, jobs: int, anew: bool
) -> Iterator[Marked]:
    """Those that were graded before, then the others as they end."""
    left = []
    for each in submissions:
        kept = None if anew else from_gradescope(each, rules, _results(out, each))
        if kept is None:
            left.append(each)
        else:
            yield kept
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        futures = [pool.submit(mark, each, rules) for each in left]
        for future in concurrent.futures.as_completed(futures):
            yield future.result()
    finally:
        rules.stopped.set()
        pool.shutdown(cancel_futures=True)


def _results(out: Path, submission: Submission) -> Path:
    return out / RESULTS / f"{submission.name}.json"
