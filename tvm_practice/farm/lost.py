"""A lost server, told from a candidate that failed."""

import re

# What a client sees of a server that is gone, and of one that does not answer in time.
_LOST = re.compile(
    r"code=(kShutdown|1)\b|Broken pipe|Connection (reset|refused)|connection was previously closed|"
    r"Channel closes before|Timeout, killed after|Cannot request|no worker of key"
)
# A candidate that hangs is ended with its session by a server that is well.
_HANGING = "RPCSessionTimeoutError"


def is_lost(error: str | None) -> bool:
    """Whether a trial failed because its server did, so that another may do it.

    A candidate that crashes the process it runs in cannot be told from a server that is gone.

    Args:
        error: `error_msg` of MetaSchedule's RunnerResult; None is a trial that did not fail.
    """
    return error is not None and _HANGING not in error and _LOST.search(error) is not None
