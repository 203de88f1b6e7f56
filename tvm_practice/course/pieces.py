"""The pieces of TVM that an exercise's answer uses, and where the course shows each before.

A piece is a name of TVM or PyTorch (`te.compute`), a method of one of their objects (`.reorder`),
or an option of such a call (`factor=`). Pieces are read from the reference answers; the places,
from the chapters, their pages and the hints. `tvm-practice pieces --page` prints docs/pieces.md.
"""

import ast
import builtins
import functools
import pathlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tvm_practice.course.catalog import MINE, PHASE_MODULES, Exercise, Phase, modules, phase
from tvm_practice.course.editing import function_source, parse
from tvm_practice.course.grading import learners_folder, reference_file, source_file

_PACKAGES = ("tvm", "torch", "tvm_ffi")
_SHORT = ("te.", "relay.", "relax.", "tirx.", "autotvm.", "auto_scheduler.")
# What Python's own objects and arrays have is no piece, but for the names that schedules share.
_PYTHONS = {
    name
    for kind in (*(each for each in vars(builtins).values() if isinstance(each, type)), np.ndarray)
    for name in dir(kind)
} | set(dir(pathlib.Path))  # fmt: skip
_PYTHONS -= {"split"}

# Places that have the word of a piece and do not show it: a node of PyTorch's graph is no task of a
# tuner, a pass that is said to make calls does not show how one is written, a message of TVM's that
# names a method does not show its call, and a key of a tracker is no method.
_NOT_SHOWN = {
    ("phase 4, worked example `exported_operators`", "target"),
    ("phase 4, head of the file", "tvm.relax.call_tir"),
    ("lab 4, page", "emit_te"),
    ("lab 5, page", "cpu"),
}

Kind = Literal["name", "method", "option"]


@dataclass(frozen=True)
class Piece:
    """A name, with its packages (`tvm.te.compute`), a method or an option, each by its name."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        if self.kind == "method":
            return f".{self.text}"
        if self.kind == "option":
            return f"{self.text}="
        package, _, rest = self.text.partition(".")
        # As they are written after `from tvm import te`.
        short = package == "tvm" and rest.startswith(_SHORT)
        return rest if short else self.text

    def is_shown(self, text: str, *, is_code: bool = False) -> bool:
        """Whether `text` has it as code: a bare English word does not count.

        In prose, `split(loop)` shows a method; in a program it is a function of that name.
        """
        parent, _, last = self.text.rpartition(".")
        if self.kind == "option":
            # Given a value, named in a call's list, or a word that is no English and no path's.
            word = rf"|(?<![./])\b{last}\b(?![./])" if _is_peculiar(last) else ""
            return bool(re.search(rf"\b{last}=|\w\([^()]*, {last}\b{word}", text))
        if self.kind == "method":  # te.reduce_axis and tvm.cpu are no methods of an object
            text = re.sub(rf"\b({'|'.join(map(re.escape, ('tvm.', *_SHORT)))}){last}\b", "", text)
        if _is_peculiar(last) and re.search(rf"\b{last}\b", text):
            return True
        if self.kind == "name":
            qualified = rf"\b{parent.rpartition('.')[2]}\.{last}\b"
            # A long name is shown by a call of it, too; `max(a, b)` may be Python's.
            called = rf"|\b{last}\(" if len(last) > 6 else ""
            return bool(re.search(qualified + called, text))
        return bool(re.search(rf"\.{last}\b" + ("" if is_code else rf"|\b{last}\(|`{last}`"), text))


def _is_peculiar(word: str) -> bool:
    """Whether a word cannot be English: `IRModule`, `reduce_axis`."""
    return "_" in word or sum(letter.isupper() for letter in word) > 1


@dataclass(frozen=True)
class Place:
    """A text that shows pieces.

    Attributes:
        label: what it is, for people.
        after: the exercise whose docstring or hint it is; None for a text that is read before all.
        is_code: whether it is a program, not prose.
    """

    label: str
    text: str
    after: str | None = None
    is_code: bool = False

    def shows(self, piece: Piece) -> bool:
        """Whether a reader has seen the piece here."""
        if (self.label, piece.text) in _NOT_SHOWN:
            return False
        return piece.is_shown(self.text, is_code=self.is_code)


class _Reader(ast.NodeVisitor):
    """Collects the pieces of a function in the order of its text."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._names: dict[str, str] = {}  # imported from TVM or PyTorch: what it stands for
        # Imported from elsewhere, and what was made with it; np may be, at a chapter's head.
        self._others: set[str] = {"np"}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._bind(alias.asname or alias.name.partition(".")[0], alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._bind(alias.asname or alias.name, f"{node.module}.{alias.name}")

    def _bind(self, name: str, full: str) -> None:
        if full.partition(".")[0] in _PACKAGES:
            self._names[name] = full
        else:
            self._others.add(name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for each in (*node.args.args, *node.args.kwonlyargs):
            said = ast.unparse(each.annotation) if each.annotation else "Any"
            if "Any" not in said:
                self._others.add(each.arg)
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        for part in (*node.decorator_list, *body):
            self.visit(part)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._follow(node.targets[0], node.value)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._follow(node.target, node.iter)
        self.generic_visit(node)

    def visit_withitem(self, node: ast.withitem) -> None:
        if node.optional_vars is not None:
            self._follow(node.optional_vars, node.context_expr)
        self.generic_visit(node)

    def _follow(self, target: ast.expr, value: ast.expr) -> None:
        """What is made with Python's or numpy's own is theirs."""
        if _root(value) in self._others:
            self._others |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}

    def visit_Name(self, node: ast.Name) -> None:
        if "." in (full := self._names.get(node.id, "")):
            self._add("name", full)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            parts.insert(0, at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self._names:
            self._add("name", ".".join([self._names[at.id], *parts]))
            return
        if _root(at) in self._others:
            self.visit(at)
            return
        self.visit(at)
        for name in parts:
            if name not in _PYTHONS:
                self._add("method", name)

    def visit_Call(self, node: ast.Call) -> None:
        before = len(self.pieces)
        self.visit(node.func)
        if len(self.pieces) > before:
            for keyword in node.keywords:
                if keyword.arg is not None:
                    self._add("option", keyword.arg)
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.visit(each)

    def _add(self, kind: Kind, text: str) -> None:
        piece = Piece(kind, text)
        if piece not in self.pieces:
            self.pieces.append(piece)


def _root(node: ast.expr) -> str | None:
    """The name that an expression begins with: `np` of `np.zeros(3)[0].T`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


@functools.cache
def pieces_of(exercise: Exercise) -> tuple[Piece, ...]:
    """The pieces of the exercise's reference answer."""
    text = reference_file(exercise).read_text(encoding="utf-8")
    reader = _Reader()
    reader.visit(parse(function_source(text, exercise.name)))
    return tuple(reader.pieces)


def scope(exercise: Exercise) -> list[Phase]:
    """The phases before the exercise, and its own chapter: other chapters are optional."""
    order = modules()
    own = [each.module for each in order].index(exercise.phase)
    return [each for each in order[:own] if each.module in PHASE_MODULES] + [order[own]]


@functools.cache
def _read_first(module: str) -> tuple[Place, ...]:
    """What a chapter shows before its exercises: the file's head, worked examples, the page."""
    chapter = phase(module)
    text = source_file(module, MINE).read_text(encoding="utf-8")
    tree = parse(text)
    exercises = {each.name for each in chapter.exercises}
    of = chapter.heading[0].lower() + chapter.heading[1:]
    places = [Place(f"{of}, head of the file", ast.get_docstring(tree) or "")]
    places += [
        Place(f"{of}, worked example `{node.name}`", ast.unparse(node), is_code=True)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name not in exercises
    ]
    page = learners_folder().parent / chapter.page
    if page.exists():  # not in an installed package
        # A printed graph has an operator's name and not Python's call of it.
        said = re.sub(r"(?m)^%\d+ = .*$", "", page.read_text(encoding="utf-8"))
        places.append(Place(f"{of}, page", said))
    return tuple(places)


@functools.cache
def _with_exercises(module: str) -> tuple[Place, ...]:
    """The docstrings of a chapter's exercises, and then their hints."""
    chapter = phase(module)
    docstrings, hints = [], []
    for exercise in chapter.exercises:
        text = reference_file(exercise).read_text(encoding="utf-8")
        (function,) = parse(function_source(text, exercise.name)).body
        assert isinstance(function, ast.FunctionDef)
        said = ast.get_docstring(function) or ""
        docstrings.append(Place(f"docstring of `{exercise.name}`", said, exercise.id))
        hints += [
            Place(f"hint {level} of `{exercise.name}`", hint, exercise.id)
            for level, hint in enumerate(exercise.hints, 1)
        ]
    return (*docstrings, *hints)


def places_before(exercise: Exercise) -> Iterator[Place]:
    """What the course shows until the exercise is written; hints last."""
    chapters = scope(exercise)
    for chapter in chapters:
        yield from _read_first(chapter.module)
    own = chapters[-1].exercises
    later = {each.id for each in own[[each.id for each in own].index(exercise.id) + 1 :]}
    found = [
        place
        for chapter in chapters
        for place in _with_exercises(chapter.module)
        if place.after not in later
    ]
    yield from sorted(found, key=lambda place: place.label.startswith("hint"))


def first_place(piece: Piece, exercise: Exercise) -> str | None:
    """Where the piece is shown first; None if nothing showed it."""
    return next((place.label for place in places_before(exercise) if place.shows(piece)), None)


def new_pieces(exercise: Exercise) -> list[Piece]:
    """The pieces that no exercise before this one needs."""
    known: set[Piece] = set()
    for each in (each for chapter in scope(exercise) for each in chapter.exercises):
        if each.id == exercise.id:
            break
        known.update(pieces_of(each))
    return [piece for piece in pieces_of(exercise) if piece not in known]


def by_place(exercise: Exercise, pieces: Sequence[Piece]) -> dict[str, list[Piece]]:
    """The pieces by the place that shows them first."""
    found: dict[str, list[Piece]] = {}
    for piece in pieces:
        found.setdefault(first_place(piece, exercise) or "nowhere", []).append(piece)
    return found


_HEAD = """\
# What each exercise needs

The TVM and PyTorch names that an exercise's reference answer is the first to use, and the place
that shows each before: a chapter's file or page, a worked example, a docstring or a hint. `.split`
is a method, `factor=` an option. Puzzles, bug hunts and labs are optional: each builds only on the
phases before it. `tvm-practice pieces EXERCISE` lists all names that an exercise needs. This page
is made by `tvm-practice pieces --page`, and a test compares it with the answers.
"""


def to_markdown() -> str:
    """The page docs/pieces.md."""
    text = _HEAD
    for chapter in modules():
        text += f"\n## {chapter.heading}: {chapter.title}\n\n"
        text += "| exercise | new | shown first |\n|---|---|---|\n"
        for exercise in chapter.exercises:
            rows = by_place(exercise, new_pieces(exercise)) or {"": []}
            name = f"`{exercise.name}`"
            for place, pieces in rows.items():
                text += f"| {name} | {', '.join(f'`{each}`' for each in pieces)} | {place} |\n"
                name = ""
    return text
