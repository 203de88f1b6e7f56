"""What an export does for speed alone, by the names that `--without` takes.

`relax_passes.order` has most of them, the importer "recurrence", and `lowering` "claimed-loops" and
"tiles-on-stack".
"""

from typing import Literal

SpeedPass = Literal[
    "attention",
    "batch-normalization",
    "channels-last",
    "claimed-loops",
    "one-at-a-time",
    "padding",
    "recurrence",
    "rows-together",
    "shared-operands",
    "tiles-on-stack",
]
