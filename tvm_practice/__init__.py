"""A hands-on course on Apache TVM scheduling and auto-tuning, and the exporter it builds."""

import os
import signal
import sys

__version__ = "0.1.0"


def _stop(_number: int, _frame: object) -> None:
    os.write(2, b"stopped\n")
    os._exit(128 + signal.SIGINT)


# `python -m tvm_practice.NAME`: Ctrl-C would end the imports to come with a traceback. There is
# nothing to clean up until the command begins, which takes Ctrl-C over (engines/command_line.py).
if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    try:
        signal.signal(signal.SIGINT, _stop)
    except ValueError:  # not the main thread
        pass
