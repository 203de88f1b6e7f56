"""How signals end a command: through its `with` blocks, with exit code 128 and their number."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP


def raise_at_ctrl_c() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, in place of the handler of a program that starts."""
    is_ignored = not callable(signal.getsignal(signal.SIGINT))  # as in the background
    if threading.current_thread() is threading.main_thread() and not is_ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """In the block, SIGTERM and SIGHUP raise SystemExit, with a line on standard error.

    A signal that is ignored (`nohup`) or has a handler keeps it. After the first, others are
    ignored: what is left to do is to clean up, for a few seconds.
    """

    def leave(number: int, _frame: object) -> None:
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        os.write(2, f"stopped by {signal.Signals(number).name}\n".encode())
        sys.exit(128 + number)

    taken = []
    if threading.current_thread() is threading.main_thread():
        taken = [each for each in _ENDING if signal.getsignal(each) == signal.SIG_DFL]
    for each in taken:
        signal.signal(each, leave)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
