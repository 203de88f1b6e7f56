"""What `torch.compile(…, options={…})` may say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.loading import did_you_mean


class Options(BaseModel):
    """The options of the backend.

    Attributes:
        trials: schedules that MetaSchedule may measure for each part; 0 for the default schedules.
        records: folder of its records, which are gone on from; None: not kept.
        target: "llvm" for this machine's processor, or another that it can run.
        cache: keep builds on disk and take them from there; a folder in place of the user's own.
        verify: run each part by PyTorch too when it is built, and leave it there if they differ.
        freeze: make the weights constants, which lays them out for the processor. A part is
            built anew when they change. False: they are inputs of every call.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    trials: int = Field(default=0, ge=0)
    records: Path | None = None
    target: str = "llvm"
    cache: bool | Path = True
    verify: bool = True
    freeze: bool = True

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> "Options":
        """The options as a person gave them. Raises BadInput, one line, for a bad one."""
        for name in given or {}:
            if name not in cls.model_fields:
                known = list(cls.model_fields)
                raise BadInput(
                    f"no option {name!r}{did_you_mean(str(name), known)} The options are "
                    f"{', '.join(known)}"
                )
        try:
            return cls.model_validate(dict(given or {}))
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"][:1]))
            raise BadInput(f"option {name}={first['input']!r}: {first['msg']}") from None
