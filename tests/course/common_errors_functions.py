"""Run on an engine: what the examples of the common errors raise."""

from tvm_practice.course.common_errors import COMMON, explained
from tvm_practice.engines import CLASSIC, CURRENT


def outcomes(engine: str) -> list[dict[str, str | None]]:
    """For each example of this engine: what it is recognized as, and what the right code raises."""
    assert engine in (CURRENT, CLASSIC)
    found: list[dict[str, str | None]] = []
    for common in COMMON:
        for example in common.examples:
            if example.engine == engine:
                wrong = raised(example.prelude + example.wrong)
                right = raised(example.prelude + example.right)
                seen = None if wrong is None else explained(wrong)
                found.append(
                    {
                        "title": common.title,
                        "wrong": example.wrong,
                        "seen": seen.title if seen else repr(wrong),
                        "right": None if right is None else repr(right),
                    }
                )
    return found


def raised(code: str) -> Exception | None:
    """The exception of running `code`, if there is one."""
    try:
        exec(code, {})
    except Exception as error:
        return error
    return None
