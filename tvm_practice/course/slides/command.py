"""What `tvm-practice slides` does, and what it prints."""

from collections.abc import Sequence
from pathlib import Path

from tvm_practice.course.catalog import Phase, phases
from tvm_practice.course.screen import Screen, near
from tvm_practice.course.slides.making import to_html
from tvm_practice.tvm_export.writing import write_whole


def write_slides(screen: Screen, chosen: Sequence[Phase], out: Path) -> int:
    """Write the decks of these phases, without any of the five; the exit code."""
    out.mkdir(parents=True, exist_ok=True)
    for phase in chosen or phases():
        file = out / f"{Path(phase.page).stem}.html"
        try:
            text = to_html(phase)
            write_whole(file, text)
        except OSError as error:
            screen.note(f"{near(file)} is not written: {error}")
            return 1
        screen.say(f"{near(file)}: {text.count('<section')} slides")
    return 0
