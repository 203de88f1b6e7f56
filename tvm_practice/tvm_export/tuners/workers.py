"""The worker processes of the tuners."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unbound_threads() -> Iterator[None]:
    """Have processes that start in the block leave TVM's threads to the operating system.

    TVM binds each thread of its pool to a core, all but the one that calls it. When that one
    lands on a bound core the two take turns, and a candidate looks half as fast as it is.
    """
    before = os.environ.get("TVM_BIND_THREADS")
    os.environ["TVM_BIND_THREADS"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TVM_BIND_THREADS"]
        else:
            os.environ["TVM_BIND_THREADS"] = before
