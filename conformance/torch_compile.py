"""transformers' and timm's models under torch.compile(backend="tvm_practice").

Every model must run, with PyTorch's outputs: what the exporter refuses stays with PyTorch.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from conformance import timm_models, transformers_models
from conformance.cases import Case
from conformance.judging import Judged, compared, last_line, same, timed
from tvm_practice.engines import CURRENT, Engine

TITLE = "Models under torch.compile"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = ("float32",)
ENGINES: tuple[Engine, ...] = (CURRENT,)

_MODELS: dict[str, Any] = {"transformers": transformers_models, "timm": timm_models}


def cases(dtype: str, samples: int | None) -> Iterator[Case]:
    """The cases of both libraries."""
    for library, kind in _MODELS.items():
        for case in kind.cases(dtype, samples):
            arguments = {"library": library, "arguments": case.arguments}
            yield Case(case.group, f"{library} {case.name}", arguments)


def judge(library: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call one model twice through torch.compile: the second call's outputs are judged too."""
    return timed(lambda: _judged(library, arguments))


def _judged(library: str, arguments: Mapping[str, Any]) -> Judged:
    import torch

    from tvm_practice.tvm_export.nested import flattened
    from tvm_practice.tvm_export.torch_compile import backend

    made = _MODELS[library].made(**arguments)
    if made is None:
        return Judged("left out", f"{library} is not installed")
    model, inputs = made
    args = () if isinstance(inputs, Mapping) else inputs
    kwargs = dict(inputs) if isinstance(inputs, Mapping) else {}
    torch._dynamo.reset()
    try:
        with torch.inference_mode():
            expected = [each.clone() for each in flattened(model(*args, **kwargs))]
            again = [each.clone() for each in flattened(model(*args, **kwargs))]
    except Exception as error:
        return Judged("left out", f"PyTorch refuses it: {last_line(error)}")
    if not all(map(same, expected, again)):
        return Judged("left out", "it draws random numbers")
    run: Any = torch.compile(model, backend=backend, options={"cache": False})
    try:
        with torch.inference_mode():
            found = [flattened(run(*args, **kwargs)) for _ in range(2)]
    except Exception as error:
        if reason := _without_tvm(model, args, kwargs):
            return Judged("left out", f"torch.compile refuses it without TVM: {reason}")
        return Judged("raw", f"{type(error).__name__}: {last_line(error)}")
    verdicts = [compared([each.numpy() for each in got], expected) for got in found]
    return Judged(*next((each for each in verdicts if each[0] != "right"), verdicts[0]))


def _without_tvm(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Why torch.compile fails on a model with a backend that compiles nothing; empty if it runs."""
    import torch

    torch._dynamo.reset()
    run: Any = torch.compile(model, backend="eager")
    try:
        with torch.inference_mode():
            run(*args, **kwargs)
    except Exception as error:
        return last_line(error)
    return ""
