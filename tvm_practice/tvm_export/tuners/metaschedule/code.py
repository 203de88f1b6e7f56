"""A record as code that a person can read."""

import re
from typing import Any

# In the Python text of a trace: arguments that repeat the default, names of the positional ones.
_DEFAULTS = re.compile(
    r", (?:preserve_unit_iters=True|disable_predication=False|index=-1|func_name=\"main\")(?=[,)])"
)
_POSITIONAL = re.compile(
    r"(?<=[(, ])(?:name|block|loop|block_or_loop|write_buffer_index|storage_scope|factors|"
    r"ann_key|ann_val|candidates|probs)=(?!=)"
)


def best_code(database: Any, module: Any, target: Any) -> str | None:
    """The best schedule of a workload as Python calls on `sch`; None if it has no record.

    Args:
        database: of the tuner.
        module: an IRModule with the workload as its "main".
        target: what it was tuned for.
    """
    record = database.query_tuning_record(module, target, "main")
    if record is None:
        return None
    code = str(record.trace.simplified(remove_postproc=True)).partition("\n")[2]  # no import
    for noise in (_DEFAULTS, _POSITIONAL):
        code = noise.sub("", code)
    return code.strip()
