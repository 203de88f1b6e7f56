"""What students hand in is found and read, whatever it is."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tvm_practice.course.catalog import phase
from tvm_practice.course.classroom.submissions import find_submissions

ONE = [phase("te_basics")]
TWO = [phase("te_basics"), phase("labs.dynamic_shapes")]


def _tar(path: Path, **members: bytes) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name.replace("__", "/") + ".py")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))


def test_chapters_are_found_wherever_they_lie(classroom: Path) -> None:
    (classroom / "ada" / "deep").mkdir(parents=True)
    (classroom / "ada" / "deep" / "te_basics.py").write_text("1")
    (classroom / "ada" / "notes.py").write_text("no chapter")
    with zipfile.ZipFile(classroom / "bob.zip", "w") as archive:
        archive.writestr("x/labs/dynamic_shapes.py", "2")
        archive.writestr("__MACOSX/x/te_basics.py", "attributes")
    _tar(classroom / "cy.tar.gz", a__te_basics=b"3", a__dynamic_shapes=b"4")
    (classroom / ".hidden").mkdir()
    (classroom / "te_basics.py").write_text("whose? there are two chapters")
    found = {each.name: each.chapters for each in find_submissions(classroom, TWO)}
    assert found == {
        "ada": {"te_basics": b"1"},
        "bob": {"labs.dynamic_shapes": b"2"},
        "cy": {"te_basics": b"3", "labs.dynamic_shapes": b"4"},
    }


def test_a_file_is_an_answer_to_the_one_chapter(classroom: Path) -> None:
    (classroom / "ada.py").write_text("1")
    (classroom / "bob").mkdir()
    (classroom / "bob" / "te_basics.py").write_text("2")
    (classroom / "bob.py").write_text("3")
    found = {each.name: each.chapters for each in find_submissions(classroom, ONE)}
    assert found == {
        "ada": {"te_basics": b"1"},
        "bob": {"te_basics": b"2"},
        "bob.py": {"te_basics": b"3"},
    }


def _empty(path: Path) -> None:
    path.mkdir()


def _corrupt_zip(path: Path) -> None:
    path.with_suffix(".zip").write_bytes(b"PK\3\4 and no more")


def _torn_tar(path: Path) -> None:
    whole = path.with_suffix(".tar.gz")
    _tar(whole, te_basics=bytes(range(256)) * 400)
    whole.write_bytes(whole.read_bytes()[:-300])


def _flipped_zip(path: Path) -> None:
    with zipfile.ZipFile(path.with_suffix(".zip"), "w") as archive:
        archive.writestr("te_basics.py", "a = 1\n" * 50)
    whole = bytearray(path.with_suffix(".zip").read_bytes())
    whole[60] ^= 0xFF
    path.with_suffix(".zip").write_bytes(whole)


def _bomb(path: Path) -> None:
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("te_basics.py", bytes(2**26))


def _twice(path: Path) -> None:
    for number in "12":
        (path / number).mkdir(parents=True)
        (path / number / "te_basics.py").write_text(number)


def _link_out(path: Path) -> None:
    path.mkdir()
    (path.parent.parent / "te_basics.py").write_text("somebody else's")
    (path / "te_basics.py").symlink_to("../../te_basics.py")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_empty, "ada has no te_basics.py"),
        (_corrupt_zip, "ada.zip cannot be read: File is not a zip file"),
        (_torn_tar, "ada.tar.gz cannot be read: "),
        (_flipped_zip, "ada.zip cannot be read: Bad CRC-32"),
        (_bomb, "te_basics.py is longer than 1024 KiB"),
        (_twice, "ada has several different files te_basics.py"),
        (_link_out, "ada has no te_basics.py"),
    ],
)
def test_what_cannot_be_read_says_why(make: object, says: str, classroom: Path) -> None:
    assert callable(make)
    make(classroom / "ada")
    (found,) = find_submissions(classroom, ONE)
    assert found.name == "ada" and not found.chapters
    assert found.problem.startswith(says)


def test_the_digest_is_of_the_chapters(classroom: Path) -> None:
    for name, text in {"ada": "1", "bob": "1", "cy": "2"}.items():
        (classroom / f"{name}.py").write_text(text)
    ada, bob, cy = find_submissions(classroom, ONE)
    assert ada.digest == bob.digest != cy.digest
