"""Worker processes end when the process that started them does, however it ended."""

import os
import threading
import time

_LOOK_SECONDS = 1.0


def end_with_parent() -> None:
    """From a thread of this process, end it once its parent is gone.

    TVM's workers end by themselves when they next ask for work. Killed while a candidate runs past
    its time limit, their parent leaves them waiting for a lock forever: the thread that reports
    the time-out fails to write to it, and holds the lock.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
