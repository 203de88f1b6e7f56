"""`tvm-practice`, the course's command line; `python -m tvm_practice.course` is the same."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tvm_practice.course.capstone import TRACKS
from tvm_practice.engines.command_line import Folder, Group

if TYPE_CHECKING:
    from tvm_practice.course.catalog import Exercise, Phase
    from tvm_practice.course.progress import Standing
    from tvm_practice.course.screen import Screen

_ONE = click.argument("exercise", metavar="[EXERCISE]", required=False)
_SPOIL = click.option("--spoil", is_flag=True, help="Show the solution before you have passed.")


class _Group(Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nstopped; what was graded is kept", err=True)
            sys.exit(130)
        except Exception as error:
            from tvm_practice.engines import EngineError

            if not isinstance(error, EngineError):
                raise
            click.echo(f"failed: {error}", err=True)
            sys.exit(1)


def _remember_plain(ctx: click.Context, _: click.Parameter, plain: bool) -> None:
    root = ctx.find_root()
    root.obj = bool(root.obj) or plain


_PLAIN = click.option(
    "--plain",
    is_flag=True,
    expose_value=False,
    callback=_remember_plain,
    envvar="TVM_PRACTICE_PLAIN",
    help="No boxes, bars or colours, one fact per line. TVM_PRACTICE_PLAIN=1 does the same.",
)


@click.group(
    cls=_Group,
    invoke_without_command=True,
    epilog="\b\nExamples:\n  tvm-practice\n  tvm-practice list\n  tvm-practice check matmul\n"
    "  tvm-practice watch\n  tvm-practice --plain hint matmul",
)
@_PLAIN
@click.pass_context
def main(ctx: click.Context) -> None:
    """Work through the course: see your progress, check exercises, get hints, compare.

    EXERCISE is a name from `tvm-practice list`, such as matmul or te_basics.matmul; without it, the
    command takes the next exercise that does not pass. Exit code 0: it passes; 1: it does not; 2: a
    mistake in the command.
    """
    if ctx.invoked_subcommand is None:
        from tvm_practice.course.overview import welcome

        screen = _screen()
        welcome(screen, _standing(screen))


def _command(name: str, *examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """Register the decorated function as a command with these examples and --plain."""
    lines = "".join(f"\n  tvm-practice {example}" for example in examples)

    def register(function: Callable[..., None]) -> click.Command:
        return main.command(name, epilog=f"\b\nExamples:{lines}")(_PLAIN(function))

    return register


def _screen() -> "Screen":
    from tvm_practice.course.screen import Screen

    return Screen(plain=bool(click.get_current_context().find_root().obj))


def _standing(screen: "Screen", seed: int | None = None) -> "Standing":
    """Closed, with the engines' processes, when the command ends; checks draw from `seed`."""
    from tvm_practice.course.grading import Grader
    from tvm_practice.course.progress import Progress, Standing

    grader = click.get_current_context().with_resource(Grader(seed))
    return Standing(Progress(screen.note), grader)


def _find(name: str) -> "Exercise":
    from tvm_practice.course.catalog import find

    try:
        return find(name)
    except KeyError as error:
        if (whole := _phase_named(name)) is not None:
            each = ", ".join(exercise.name for exercise in whole.exercises)
            raise click.UsageError(f"name one exercise of {whole.label}: {each}") from None
        raise click.UsageError(str(error.args[0])) from None


def _find_each(name: str) -> "list[Exercise]":
    """The exercise of that name, or all of the phase or lab of that number or name."""
    whole = _phase_named(name)
    return [_find(name)] if whole is None else whole.exercises


def _phase_named(name: str) -> "Phase | None":
    """The phase or lab of that number or name."""
    from tvm_practice.course.catalog import modules

    keyed = (each for each in modules() if name in (each.key, each.name, each.module))
    return next(keyed, None)


def _find_phase(name: str) -> "Phase":
    """The phase of that number or name, or the lab of that key or name."""
    import difflib

    from tvm_practice.course.catalog import modules

    if (found := _phase_named(name)) is not None:
        return found
    near = difflib.get_close_matches(name, [phase.name for phase in modules()], n=1)
    known = ", ".join(phase.label for phase in modules())
    suggestion = f"did you mean {near[0]}?" if near else f"there are {known}"
    raise click.UsageError(f"no phase {name!r}; {suggestion}")


def _named_or_next(name: str | None, standing: "Standing") -> "Exercise":
    """The exercise of that name; without one the next that does not pass, else the last."""
    from tvm_practice.course.catalog import exercises

    return _find(name) if name else standing.next(surely=True) or exercises()[-1]


@_command("list", "list", "list --all", "list --json", "list --solutions")
@click.option("--all", "anew", is_flag=True, help="Grade every exercise again.")
@click.option("--solutions", is_flag=True, help="Grade the reference solutions instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_exercises(anew: bool, solutions: bool, as_json: bool) -> None:
    """Show every exercise: done, wrong, or to do.

    Grades only the exercises that changed since they were graded.
    """
    from tvm_practice.course.overview import grade_each, show, to_json
    from tvm_practice.course.telling import tell_following

    screen = _screen()
    standing = _standing(screen)
    verdicts, graded = grade_each(screen, standing, anew=anew, solutions=solutions, quiet=as_json)
    following = None if solutions else standing.next()
    if as_json:
        click.echo(to_json(verdicts, graded, following))
        return
    show(screen, verdicts)
    if not solutions:
        tell_following(screen, following)


def _run_command() -> click.Command:
    """`run PHASE`, with the options of the phases' own commands."""
    from tvm_practice.course.phase import phase_command

    def run(phase: str, **options: Any) -> None:
        """Run a phase with your functions.

        PHASE is a phase's number or name; for a lab, lab1 or the lab's name.
        """
        from tvm_practice.course.catalog import MINE
        from tvm_practice.course.grading import file_problem, source_file

        found = _find_phase(phase)
        if problem := file_problem(source_file(found.module, MINE)):
            raise click.UsageError(problem)
        command = phase_command(found.module, "").callback
        assert command is not None
        command(**options)

    command = _command(
        "run", "run 1", "run te_basics --solutions --quick", "run 2 --engine current"
    )(run)
    command.params[:0] = [click.Argument(["phase"]), *phase_command("", "").params]
    return command


_run_command()


@_command(
    "check",
    "check",
    "check matmul",
    "check tile vectorize",
    "check lab4",
    "check softmax --solutions",
    "check matmul --seed 1234",
)
@click.argument("exercise", metavar="[EXERCISE]...", nargs=-1)
@click.option("--solutions", is_flag=True, help="Check the reference solution instead.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    help="Draw the same inputs as the check whose failure named this seed.",
)
def check(exercise: tuple[str, ...], solutions: bool, seed: int | None) -> None:
    """Grade exercises; without a name, the next one that does not pass.

    EXERCISE may also name a phase or a lab, as for `run`: all its exercises are graded.

    Exit code 0 if all pass, 1 if one is wrong or to do.
    """
    from tvm_practice.course.catalog import SOLUTIONS
    from tvm_practice.course.telling import tell_following, tell_next, tell_verdict

    screen = _screen()
    standing = _standing(screen, seed)
    named = [each for name in exercise for each in _find_each(name)]
    chosen = named or [each for each in [standing.next()] if each]
    if not chosen:
        tell_following(screen, None)
        return
    verdicts = []
    for each in chosen:
        with screen.busy(f"checking {each.id}"):
            verdict = standing.grader.grade(each, SOLUTIONS) if solutions else standing.grade(each)
        tell_verdict(screen, verdict)
        verdicts.append(verdict)
    if any(verdict.status != "passed" for verdict in verdicts):
        if verdicts[-1].status in ("failed", "todo"):
            screen.say(f"A hint: tvm-practice hint {chosen[-1].name}")
        sys.exit(1)
    if not solutions and tell_next(screen, standing, chosen[-1]):
        screen.say("  then: tvm-practice check")


@_command("hint", "hint", "hint matmul", "hint matmul --level 3")
@_ONE
@click.option("--level", type=click.IntRange(1, 3), help="Show this level instead of the next one.")
def hint(exercise: str | None, level: int | None) -> None:
    """Show the next of an exercise's three hints.

    Hint 1 is a nudge, 2 the idea, 3 the shape of the answer.
    """
    from tvm_practice.course.telling import tell_hint

    screen = _screen()
    standing = _standing(screen)
    tell_hint(screen, standing, _named_or_next(exercise, standing), level)


@_command("watch", "watch", "watch tile", "watch --page", "watch --poll")
@_ONE
@click.option(
    "--poll",
    is_flag=True,
    help="Look at the file every 0.3 s, for file systems that report no changes "
    "(WATCHFILES_FORCE_POLLING=1 does the same).",
)
@click.option(
    "--page",
    is_flag=True,
    help="Show each outcome with pictures on a page on localhost as well, which reloads itself.",
)
def watch(exercise: str | None, poll: bool, page: bool) -> None:
    """Check an exercise at every save of its file.

    Show the order in which its loops access memory, and simulated cache misses. When it passes,
    move on to the next one.

    Keys: n next, h hint, l list, r check again, q quit.
    """
    from contextlib import nullcontext

    from tvm_practice.course.watch import Watch
    from tvm_practice.course.watch_page import WatchPage

    screen = _screen()
    standing = _standing(screen)
    found = _named_or_next(exercise, standing)
    with WatchPage() if page else nullcontext() as shown:
        Watch(screen, standing, found, poll=poll, page=shown).run()


@_command("reset", "reset", "reset matmul")
@_ONE
def reset(exercise: str | None) -> None:
    """Restore an exercise's stub. Your code is kept in a backup file."""
    from tvm_practice.course.resetting import reset_exercise
    from tvm_practice.course.screen import near

    screen = _screen()
    standing = _standing(screen)
    found = _named_or_next(exercise, standing)
    try:
        backup = reset_exercise(standing.progress, found)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from None
    except OSError as error:
        screen.note(f"{found.id} was not reset: {error}")
        sys.exit(1)
    if backup is None:
        screen.say(f"{found.id} is still to do; there is nothing to reset")
    else:
        screen.say(f"{found.id} is to do again. Your code is in {near(backup)}")


@_command("solution", "solution", "solution matmul", "solution matmul --spoil")
@_ONE
@_SPOIL
def solution(exercise: str | None, spoil: bool) -> None:
    """Show the reference solution of an exercise that passes.

    Without a name: the exercise that passed last.
    """
    from tvm_practice.course.telling import reference

    screen = _screen()
    found = _passed_or_spoilt(screen, _standing(screen), exercise, spoil)
    screen.code(reference(found), "python")


@_command("diff", "diff", "diff matmul", "diff matmul --spoil")
@_ONE
@_SPOIL
def diff(exercise: str | None, spoil: bool) -> None:
    """Compare your answer, once it passes, with the reference: first the results, then the code.

    Without a name: the exercise that passed last.
    """
    from tvm_practice.course.telling import difference

    screen = _screen()
    standing = _standing(screen)
    found = _passed_or_spoilt(screen, standing, exercise, spoil)
    try:
        text = difference(found)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if text and (gives := standing.grader.compare_results(found)):
        screen.say("Your answer's result (-) and the reference's (+):")
        screen.draw_difference(gives)
        screen.say()
    if text:
        screen.code(text, "diff")
    else:
        screen.say("Your answer is the reference, word for word.")


def _passed_or_spoilt(
    screen: "Screen", standing: "Standing", name: str | None, spoil: bool
) -> "Exercise":
    """The exercise, if it may be given away; otherwise a line and exit code 1.

    Without a name it is the one that passed last, with `spoil` the next.
    """
    last = None if name or spoil else standing.last_passed()
    found = last or _named_or_next(name, standing)
    if not spoil and not standing.passed(found):
        screen.note(f"{found.id} does not pass yet; --spoil shows the answer anyway")
        sys.exit(1)
    return found


@_command("verify", "verify", "verify && echo all done")
def verify() -> None:
    """Grade everything again. Exit code 0 only if every exercise passes."""
    from tvm_practice.course.board import totals
    from tvm_practice.course.overview import grade_each
    from tvm_practice.course.telling import tell_verdict

    screen = _screen()
    verdicts, _ = grade_each(screen, _standing(screen), anew=True)
    for verdict in verdicts:
        if verdict.status == "failed":
            tell_verdict(screen, verdict)
    passed = sum(verdict.status == "passed" for verdict in verdicts)
    screen.say(f"{passed} of {len(verdicts)} exercises pass ({totals(verdicts)})")
    if passed < len(verdicts):
        sys.exit(1)


@_command("explain", "explain 1", "explain matmul", "explain te_basics --spoil")
@click.argument("what", metavar="[PHASE or EXERCISE]", required=False)
@_SPOIL
def explain(what: str | None, spoil: bool) -> None:
    """Show the answer to a phase's key question, once the phase's exercises pass.

    Without a name: the last finished phase.
    """
    from tvm_practice.course.explaining import finished, key_question, missing

    screen = _screen()
    standing = _standing(screen)
    phase = _phase_of(what) if what else finished(standing)
    if not spoil and (left := missing(standing, phase)):
        screen.note(
            f"{phase.heading.lower()} is not finished: {', '.join(each.name for each in left)} "
            "must pass first; --spoil shows the answer anyway"
        )
        sys.exit(1)
    try:
        screen.page(key_question(phase))
    except OSError as error:
        screen.note(f"the answer's page cannot be read: {error}")
        sys.exit(1)


@_command("puzzle", "puzzle", "puzzle split_loop")
@click.argument("name", metavar="[PUZZLE]", required=False)
@click.option("--page", is_flag=True, help="Print the pictures of docs/practice/puzzles.md.")
def puzzle(name: str | None, page: bool) -> None:
    """Show a puzzle's loops before and after.

    Without a name: the next puzzle that does not pass.
    """
    from tvm_practice import engines
    from tvm_practice.course.telling import where

    made = "tvm_practice.course.puzzle_loops"
    if page:
        click.echo(engines.call(engines.CURRENT, f"{made}:to_markdown"), nl=False)
        return
    screen = _screen()
    found = _practice("puzzles", name, screen)
    with screen.busy(found.id):
        picture = engines.call(engines.CURRENT, f"{made}:example", {"name": found.name})
    screen.say(f"{found.id}: {found.title}", "bold")
    screen.say()
    click.echo(picture)
    screen.say()
    screen.say(f"Write it in {where(found)}; then: tvm-practice check {found.name}")


@_command("hunt", "hunt", "hunt lost_bound")
@click.argument("name", metavar="[HUNT]", required=False)
@click.option("--page", is_flag=True, help="Print the hunts of docs/practice/bug_hunts.md.")
def hunt(name: str | None, page: bool) -> None:
    """Show a schedule with a bug, its symptom, and four possible causes.

    Without a name: the next hunt that does not pass.
    """
    from tvm_practice import engines
    from tvm_practice.course.suspects import page as page_of_hunts
    from tvm_practice.course.telling import where

    if page:
        click.echo(page_of_hunts(), nl=False)
        return
    screen = _screen()
    found = _practice("bug_hunts", name, screen)
    with screen.busy(found.id):
        report = engines.call(
            found.engine, "tvm_practice.course.suspects:report", {"name": found.name}
        )
    screen.say(f"{found.id}: {found.title}", "bold")
    screen.say()
    click.echo(report)
    screen.say()
    screen.say(f"Write it in {where(found)}; then: tvm-practice check {found.name}")


def _practice(module: str, name: str | None, screen: "Screen") -> "Exercise":
    """The exercise of that name and module; without one, the next of the module to do."""
    from tvm_practice.course.catalog import phase

    among = phase(module).exercises
    if name is None:
        standing = _standing(screen)
        return next((each for each in among if not standing.is_done(each)), among[-1])
    found = _find(name)
    if found not in among:
        names = ", ".join(each.name for each in among)
        raise click.UsageError(f"{found.id} is not one of the {module}: {names}")
    return found


@_command("errors", "errors", "errors loop", 'errors "The loop no longer exists"')
@click.argument("words", metavar="[WORDS]", nargs=-1)
@click.option("--page", is_flag=True, help="Print the glossary of docs/errors.md, with examples.")
def errors(words: tuple[str, ...], page: bool) -> None:
    """Explain the errors of TVM that beginners meet most.

    WORDS come from an error's message or its heading; without any, all errors are shown.
    """
    from tvm_practice.course.glossary import chosen, to_markdown

    if page:
        click.echo(to_markdown(), nl=False)
        return
    found = chosen(" ".join(words))
    screen = _screen()
    if not found:
        screen.note(f"no common error matches {' '.join(words)!r}; tvm-practice errors lists all")
        sys.exit(1)
    for common in found:
        screen.say(common.title, "bold")
        screen.say(f"  because  {common.cause}")
        screen.say(f"  instead  {common.instead}")


@_command("pieces", "pieces", "pieces matmul", "pieces --page")
@_ONE
@click.option("--page", is_flag=True, help="Print the tables of docs/pieces.md.")
def pieces(exercise: str | None, page: bool) -> None:
    """Show the TVM names that an exercise needs, and where the course shows each."""
    from tvm_practice.course.pieces import by_place, pieces_of, to_markdown

    if page:
        click.echo(to_markdown(), nl=False)
        return
    screen = _screen()
    found = _named_or_next(exercise, _standing(screen))
    screen.say(f"{found.id}: {found.title}")
    for place, needed in by_place(found, pieces_of(found)).items():
        screen.say(f"  {place}: {', '.join(map(str, needed))}")


@_command(
    "grade",
    "grade submissions",
    "grade submissions --only 1 --only puzzles --out marks",
    "grade submissions --only tile --seed 7 --jobs 4",
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--only", multiple=True, help="An exercise, phase or lab that counts; without it, phases 1-5."
)
@click.option(
    "--out", type=Folder(), default="marks", show_default=True, help="Where the marks are written."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), help="Draw the checks' inputs from this seed."
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Submissions at once."
)
@click.option(
    "--seconds", type=click.IntRange(1), default=60, show_default=True, help="Limit per exercise."
)
@click.option(
    "--minutes", type=click.IntRange(1), default=20, show_default=True, help="Limit per submission."
)
@click.option(
    "--memory",
    type=click.IntRange(1),
    default=6,
    show_default=True,
    help="Limit per submission, in GiB.",
)
@click.option(
    "--alike",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="List pairs of answers that share this fraction of their text or more.",
)
@click.option("--anew", is_flag=True, help="Grade all submissions, also those graded before.")
@click.option("--no-sandbox", is_flag=True, help="Run answers unprotected; only if you trust them.")
def grade(folder: Path, out: Path, **options: Any) -> None:
    """Grade a class: each folder, archive or file in FOLDER belongs to one student.

    A student's chapters are found by their names, such as te_basics.py. Each runs in a sandbox: no
    network, no files but its own, limits on time, memory and processes.

    Writes to --out: marks.csv, results/NAME.json in Gradescope's form, and likeness.csv, pairs of
    students whose answers are alike.

    Exit code 0 if all submissions could be read, 1 if not.
    """
    from tvm_practice.course.classroom.command import grade_folder

    chosen = [each for name in options.pop("only") for each in _find_each(name)]
    sys.exit(grade_folder(_screen(), folder, out, chosen, **options))


@_command("notebooks", "notebooks", "notebooks 1 2 --out class", "notebooks 1 --solutions")
@click.argument("phase", metavar="[PHASE]...", nargs=-1)
@click.option(
    "--out", type=Folder(), default="notebooks", show_default=True, help="Where they are written."
)
@click.option("--solutions", is_flag=True, help="Fill in the reference answers, for the teacher.")
@click.option(
    "--install",
    metavar="REQUIREMENT",
    default="tvm-practice",
    show_default=True,
    help="Package that the first cell installs if the course is missing: a name or an address.",
)
@click.option("--force", is_flag=True, help="Overwrite existing notebooks.")
def notebooks(phase: tuple[str, ...], out: Path, **options: Any) -> None:
    """Make a Jupyter notebook of each phase, 1 to 5: its exercises in cells, with checks.

    Existing notebooks are not overwritten without --force.
    """
    from tvm_practice.course.notebooks.command import write_notebooks

    sys.exit(write_notebooks(_screen(), [_find_phase(each) for each in phase], out, **options))


_TRACKS = click.argument("track", nargs=-1, type=click.Choice(TRACKS), metavar="[TRACK]...")
_SEED = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), help="Draw sizes and inputs from this seed."
)
_SAMPLES = click.option(
    "--rounds", type=click.IntRange(1), default=9, show_default=True, help="Samples of each size."
)
_REFERENCE = click.option("--solutions", is_flag=True, help="Score the reference answers instead.")


@_command(
    "capstone",
    "capstone",
    "capstone product",
    "capstone product --gate",
    "capstone --solutions --report report",
)
@_TRACKS
@_REFERENCE
@_SEED
@_SAMPLES
@click.option("--gate", is_flag=True, help="Only check whether the answer is correct.")
@click.option("--report", type=Folder(), help="Folder for report.md, with tables and a plot.")
def capstone(
    track: tuple[str, ...],
    solutions: bool,
    seed: int | None,
    rounds: int,
    gate: bool,
    report: Path | None,
) -> None:
    """Score the capstone, three open problems: product, depthwise, attention.

    A wrong answer has no score. Exit code 1: a track is wrong or to do.
    """
    from tvm_practice.course.capstone.command import answers_file, run_capstone

    file = answers_file(solutions=solutions)
    code = run_capstone(
        _screen(), track, file, seed=seed, gate_only=gate, report=report, rounds=rounds
    )
    sys.exit(code)


@_command("submit", "submit", "submit product attention --out ada.json")
@_TRACKS
@_REFERENCE
@_SEED
@_SAMPLES
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="capstone.json",
    show_default=True,
    help="The file to hand in.",
)
def submit(track: tuple[str, ...], solutions: bool, out: Path, **options: Any) -> None:
    """Score the capstone and write one file to hand in: code, score, machine, digest.

    Exit code 1: no track has a score.
    """
    from tvm_practice.course.capstone.command import answers_file, submit

    sys.exit(submit(_screen(), track, answers_file(solutions=solutions), out, **options))


@_command("classroom", "classroom template", "classroom template --only 1 --only tile")
@click.argument("folder", type=Folder())
@click.option("--only", multiple=True, help="An exercise, phase or lab; without it, phase 1.")
@click.option(
    "--install",
    metavar="REQUIREMENT",
    default="tvm-practice",
    show_default=True,
    help="Package that the workflow installs as the course: a name or an address.",
)
def classroom(folder: Path, only: tuple[str, ...], install: str) -> None:
    """Write a template repository for GitHub Classroom: chapters, and a workflow that grades."""
    from tvm_practice.course.classroom.template_repository import write_template

    chosen = [each for name in only for each in _find_each(name)]
    sys.exit(write_template(_screen(), folder, chosen, install=install))


@_command("slides", "slides", "slides 1 lab1 --out lecture")
@click.argument("phase", metavar="[PHASE]...", nargs=-1)
@click.option(
    "--out", type=Folder(), default="slides", show_default=True, help="Where they are written."
)
def slides(phase: tuple[str, ...], out: Path) -> None:
    """Make slides of the pages of phases and labs: one HTML file each, which needs no network.

    Without a name: phases 1 to 5. Arrow keys change slides; a printout has one slide per page.
    """
    from tvm_practice.course.slides.command import write_slides

    sys.exit(write_slides(_screen(), [_find_phase(each) for each in phase], out))


@_command("leaderboard", "leaderboard submissions", "leaderboard marks/capstone --out page.html")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="leaderboard.html",
    show_default=True,
    help="The page.",
)
@click.option("--title", default="Capstone", show_default=True, help="Its heading.")
def leaderboard(folder: Path, out: Path, title: str) -> None:
    """Make a page of the capstones in FOLDER: the files that `submit` or `grade` wrote.

    Files whose digest does not match are left out. The page needs no network.
    """
    from tvm_practice.course.capstone.leaderboard import write_leaderboard

    if not any(folder.glob("*.json")):
        raise click.UsageError(f"{folder} has no .json file of `tvm-practice submit`")
    placed, refused = write_leaderboard(folder, out, title=title)
    click.echo(f"{placed} placed, {refused} left out: written to {out}")


@_command("review", "review", "review --all", "review --count 10 --seed 3")
@click.option("--count", type=click.IntRange(1), default=5, show_default=True, help="Questions.")
@click.option("--all", "every", is_flag=True, help="Also ask about phases that you have not begun.")
@click.option("--seed", type=int, help="Ask the same questions in the same order again.")
def review(count: int, every: bool, seed: int | None) -> None:
    """Answer a few questions about the phases that you have worked on.

    Questions answered wrongly come first the next time. Exit code 1: stopped before the last
    question.
    """
    import random

    from tvm_practice.course.catalog import PHASE_MODULES, phases
    from tvm_practice.course.progress import Progress
    from tvm_practice.course.review import ask, chosen

    screen = _screen()
    progress = Progress(screen.note)
    begun = [
        each.module
        for each in phases()
        if any(progress.record(exercise).passed for exercise in each.exercises)
    ]
    chance = random.Random(seed)
    asked = chosen(PHASE_MODULES if every else begun, progress.answers, count, chance)
    if not asked:
        screen.note("nothing to review before an exercise passes; --all asks about every phase")
        sys.exit(1)
    right = done = 0
    try:
        for question in asked:
            is_right = ask(screen, question, chance)
            progress.answer(question.id, is_right)
            right, done = right + is_right, done + 1
    except click.Abort:
        click.echo()
    screen.say(f"\n{right} of {done} right.")
    if done < len(asked):
        screen.note(f"stopped; {len(asked) - done} questions were left")
        sys.exit(1)


def _phase_of(name: str) -> "Phase":
    """The phase of that number or name, or that an exercise of that name is in."""
    from tvm_practice.course.catalog import modules, phase

    known = {key for each in modules() for key in (each.key, each.name, each.module)}
    return _find_phase(name) if name in known else phase(_find(name).phase)


if __name__ == "__main__":
    main()
