"""What the backend says in the log, a line once."""

import logging

_log = logging.getLogger(__name__)
_said: set[str] = set()


def say_once(line: str) -> None:
    """Log a warning, unless this process has said the same before."""
    if line not in _said:
        _said.add(line)
        _log.warning("%s", line)
