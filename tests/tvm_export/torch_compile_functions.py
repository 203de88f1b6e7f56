"""Functions that the tests of the backend for torch.compile call in a child process."""

import copy
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

OFF = {"cache": False}


def compiled(model: Any, **options: Any) -> Any:
    """`model` under torch.compile by this tree's backend, with nothing of an earlier test."""
    from torch._dynamo.utils import counters

    from tvm_practice.tvm_export.torch_compile import backend

    torch._dynamo.reset()
    counters.clear()
    dynamic = options.pop("dynamic", None)
    return torch.compile(model, backend=backend, options=OFF | options, dynamic=dynamic)


def counted() -> dict[str, int]:
    from torch._dynamo.utils import counters

    return dict(counters["tvm_practice"])


def said(work: Callable[[], Any]) -> list[str]:
    """The backend's lines in the log while `work` runs."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("tvm_practice.tvm_export.torch_compile")
    logger.addHandler(handler)
    try:
        work()
    finally:
        logger.removeHandler(handler)
    return lines


def differences(got: Any, want: Any) -> float:
    """The largest difference of two results; their types, shapes and strides must be the same."""
    from torch.utils import _pytree as pytree

    pairs = list(zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True))
    largest = 0.0
    for one, other in pairs:
        if isinstance(other, torch.Tensor):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert one.stride() == other.stride(), (one.stride(), other.stride())
            if other.numel():
                largest = max(largest, float((one.double() - other.double()).abs().max()))
        else:
            assert one == other, (one, other)
    return largest


class Everything(nn.Module):
    """Writes into its input and a buffer, returns views, copies, a constant and a number."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 4)
        self.norm = nn.BatchNorm1d(4)
        self.calls = nn.Buffer(torch.zeros(2))
        self.constant = nn.Buffer(torch.arange(3.0))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        self.calls.add_(1)
        y.mul_(2)
        z = torch.relu(self.norm(self.linear(x)))
        return {
            "view": x.view(-1),
            "part": z[:, :2],
            "turned": (z * 2).t().sigmoid(),
            "copy": x.clone(),
            "constant": self.constant.clone(),
            "reshaped": (z.reshape(-1), z),
            "number": x.shape[0],
            "y": y,
        }


def everything() -> dict[str, Any]:
    """A model of every kind of effect, called twice as PyTorch's copy of it is."""
    torch.manual_seed(0)
    model = Everything().eval()
    twin = copy.deepcopy(model)
    run = compiled(model)
    largest, aliases = 0.0, []
    with torch.no_grad():
        for _ in range(2):
            x, y = torch.randn(3, 6), torch.randn(5)
            x2, y2 = x.clone(), y.clone()
            got, want = run(x, y), twin(x2, y2)
            largest = max(largest, differences([got, y], [want, y2]))
            aliases.append(
                [
                    [a.data_ptr() == b.data_ptr() for a in flat for b in flat]
                    for flat in (_tensors(got) + [x, y], _tensors(want) + [x2, y2])
                ]
            )
            for each in _tensors(got):  # the next call must not notice
                each.fill_(7)
    return {
        "error": largest,
        "aliases": all(ours == theirs for ours, theirs in aliases),
        "calls": [model.calls.tolist(), twin.calls.tolist()],
        "counted": counted(),
    }


def _tensors(result: Any) -> list[torch.Tensor]:
    from torch.utils import _pytree as pytree

    return [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]


class Mixed(nn.Module):
    """An operator that no TVM has between two parts that it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.Linear(8, 8), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(torch.tanh(self.before(x)))
        return torch.softmax(self.after(spectrum.abs()), dim=-1)


def _branching(x: torch.Tensor) -> torch.Tensor:
    x = x * 2
    if x.sum() > 0:
        return torch.relu(x) + 1
    return torch.tanh(x) - 1


def mixed() -> dict[str, Any]:
    """Parts beside operators of PyTorch's, and both ways of a model that looks at its values."""
    torch.manual_seed(0)
    model, x = Mixed().eval(), torch.randn(2, 8)
    found: dict[str, Any] = {}
    with torch.no_grad():
        found["spectrum"] = [differences(compiled(model)(x), model(x)), counted()]
        run, x = compiled(_branching), torch.rand(4, 3)
        errors = [differences(run(each), _branching(each)) for each in (x, -x)]
        found["branches"] = [max(errors), counted()]
        with torch._dynamo.config.patch(allow_rnn=True):
            lstm, x = nn.LSTM(3, 4).eval(), torch.randn(2, 1, 3)
            found["recurrent"] = [differences(compiled(lstm)(x)[0], lstm(x)[0]), counted()]
    return found


class _Given(nn.Module):
    """Returns its input beside two masks that depend on its shape alone."""

    def forward(self, x: torch.Tensor) -> Any:
        ones = torch.ones(x.shape[0], 3)
        torch._dynamo.graph_break()
        return x * 2, ones, torch.zeros(x.shape[0], dtype=torch.int64)


def without_inputs() -> dict[str, Any]:
    """A part that takes no tensor, called twice; what it returned is overwritten in between."""
    model, x = _Given(), torch.randn(2, 4)
    run = compiled(model)
    with torch.no_grad():
        errors = []
        for _ in range(2):
            got = run(x)
            errors.append(differences(got, model(x)))
            for each in got:
                each.fill_(7)
    return {"error": max(errors), "counted": counted()}


def _order(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    _, upwards = torch.sort(x * 2)
    _, downwards = torch.sort(x + 1, 0, descending=True)
    first = torch.topk(x * 2, 3, largest=False).indices.view(-1)  # contiguous, PyTorch says
    return upwards, downwards, first


def ties() -> dict[str, Any]:
    """The order of numbers most of which are equal: of equal ones the first comes first."""
    x = torch.randint(0, 4, (64, 64), generator=torch.Generator().manual_seed(0))
    got = compiled(_order)(x)
    wanted = (
        torch.argsort(x, stable=True),
        torch.argsort(x, dim=0, descending=True, stable=True),
        torch.argsort(x, stable=True)[:, :3].reshape(-1),
    )
    return {"error": differences(got, wanted), "counted": counted()}


class Gates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.second(torch.sigmoid(torch.relu(self.first(x)))))


def not_taken(how: str) -> dict[str, Any]:
    """A model of whose operators the exporter refuses, or gets wrong, the one in the middle."""
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.torch_compile import building

    torch.manual_seed(0)
    model, x = Gates().eval(), torch.randn(2, 4)
    original = building.compiled

    class Wrong(nn.Module):
        def __init__(self, module: nn.Module):
            super().__init__()
            self.module = module

        def forward(self, *tensors: torch.Tensor) -> Any:
            return tuple(each + 0.25 for each in self.module(*tensors))

    def bad(call: Any, options: Any, *, name: str) -> Any:
        exported = torch.export.export(call.module, call.tensors)
        if "sigmoid" in str(exported.graph):
            if how == "refused":
                raise BadInput("no sigmoid today")
            call = type(call)(Wrong(call.module), call.tensors, call.names, call.dynamic)
        return original(call, options, name=name)

    found: dict[str, Any] = {}
    with torch.no_grad(), mock.patch.object(building, "compiled", bad):
        run = compiled(model)

        def call() -> None:
            found["error"] = differences(run(x), model(x))

        found["said"] = said(call)
        found["counted"] = counted()
    return found


def gradients() -> dict[str, Any]:
    """With gradients PyTorch's own are given; without, TVM runs what would require them."""
    torch.manual_seed(0)
    model, x = Gates(), torch.randn(2, 4, requires_grad=True)
    run = compiled(model)
    found: dict[str, Any] = {}
    run(x).sum().backward()
    ours, x.grad = x.grad, None
    model(x).sum().backward()
    found["gradient"] = differences(ours, x.grad)
    found["with"] = counted()
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            found[context.__name__] = differences(run(x), model(x))
    found["without"] = counted()
    return found


def extents() -> dict[str, Any]:
    """One build for all extents, and one for each where they cannot be left open."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    found: dict[str, Any] = {}
    with torch.no_grad():
        run = compiled(model, dynamic=True)
        sizes = [torch.randn(count, 6) for count in (3, 5, 2)]
        found["open"] = [max(differences(run(each), model(each)) for each in sizes), counted()]
        from tvm_practice.tvm_export.errors import NotApplicable
        from tvm_practice.tvm_export.torch_compile.closed import closed as original

        def fixed(*given: Any, opened: bool) -> Any:
            if opened:
                raise NotApplicable("not today")
            return original(*given, opened=opened)

        window = nn.Conv1d(3, 4, 5).eval()  # for a range of extents alone
        run = compiled(window, dynamic=True)
        sizes = [torch.randn(1, 3, length) for length in (20, 9, 5, 6)]
        found["of a range"] = max(differences(run(each), window(each)) for each in sizes)
        with mock.patch("tvm_practice.tvm_export.torch_compile.parts.closed", fixed):
            run = compiled(model, dynamic=True)
            sizes = [torch.randn(count, 6) for count in (3, 5, 3)]
            found["each"] = [max(differences(run(each), model(each)) for each in sizes), counted()]
    return found


def weights() -> dict[str, Any]:
    """Weights that change, that are others, and that are no constants."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4).eval(), torch.randn(2, 4)
    other = nn.Linear(4, 4)
    found: dict[str, Any] = {"errors": [], "built": []}
    with torch.no_grad():
        run = compiled(lambda module, value: module(value))
        for _ in range(6):
            found["errors"].append(differences(run(model, x), model(x)))
            found["built"].append(counted()["built"])
            model.weight.mul_(1.5)
        found["errors"].append(differences(run(other, x), other(x)))
        model.load_state_dict(other.state_dict())
        found["errors"].append(differences(run(model, x), model(x)))
        run = compiled(model, freeze=False)
        for _ in range(2):
            found["errors"].append(differences(run(x), model(x)))
            model.weight.add_(1)
        found["inputs"] = counted()
    return found


def odd_inputs() -> dict[str, Any]:
    """Inputs that lie in memory as TVM's code does not expect them."""
    torch.manual_seed(0)

    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2 + 1, x.sum(dim=0)

    def strided(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(torch.relu(x)[:, 1:], (2, 2), (1, 2), 1) + 1

    base = torch.randn(200)
    given = {
        "unaligned": base[1:97].view(6, 16),
        "transposed": base[:96].view(16, 6).t(),
        "expanded": base[:6].view(6, 1).expand(6, 16),
        "negative": torch.randn(6, 16, dtype=torch.complex64).conj().imag,
    }
    found: dict[str, Any] = {}
    with torch.no_grad():
        for name, value in given.items():
            run = compiled(both, dynamic=False)
            found[name] = [differences(run(value), both(value)), counted().get("built", 0)]
        x = torch.randn(3, 4)
        found["strided"] = [differences(compiled(strided)(x), strided(x)), 1]
    return found


def threads() -> dict[str, Any]:
    """Calls of one model from several threads at a time."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).eval()
    inputs = [torch.randn(8, 64) for _ in range(4)]
    with torch.no_grad():
        wanted = [model(each) for each in inputs]
        run = compiled(model)
        run(inputs[0])
    errors: list[float] = []

    def call(index: int) -> None:
        with torch.no_grad():
            errors.extend(differences(run(inputs[index]), wanted[index]) for _ in range(50))

    workers = [threading.Thread(target=call, args=(index,)) for index in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return {"calls": len(errors), "error": max(errors), "counted": counted()}


def kept(folder: str, refuse: bool = False) -> dict[str, Any]:
    """A model built, or taken from `folder`."""
    from tvm_practice.tvm_export.torch_compile import building

    torch.manual_seed(0)
    model, x = Gates().eval(), torch.randn(2, 4)
    original = building.compiled

    def bad(call: Any, options: Any, *, name: str) -> Any:
        if "sigmoid" in str(torch.export.export(call.module, call.tensors).graph):
            raise RuntimeError("no sigmoid today")
        return original(call, options, name=name)

    with torch.no_grad(), mock.patch.object(building, "compiled", bad if refuse else original):
        error = differences(compiled(model, cache=Path(folder))(x), model(x))
    return {"error": error, "counted": counted()}


def options(given: list[dict[str, Any]]) -> list[str]:
    """The last line of what torch.compile says of each of the options."""
    lines = []
    for each in given:
        with torch.no_grad():
            try:
                compiled(torch.relu, **each)(torch.randn(3))
                lines.append("none")
            except Exception as error:
                text = [
                    line for line in str(error).splitlines() if "Error" in line or "Bad" in line
                ]
                lines.append(text[0])
    return lines


def tuned(folder: str) -> dict[str, Any]:
    """A model that MetaSchedule measures two schedules for, and where their records are."""
    torch.manual_seed(0)
    model, x = nn.Linear(32, 32).eval(), torch.randn(16, 32)
    with torch.no_grad():
        run = compiled(model, trials=2, records=Path(folder))
        error = differences(run(x), model(x))
    records = list(Path(folder).glob("*/database_tuning_record.json"))
    trials = sum(len(each.read_text().splitlines()) for each in records)
    return {"error": error, "counted": counted(), "trials": trials}


def indices() -> list[str]:
    """What an embedding says of indices: at its first call, right ones, and wrong ones later."""
    torch.manual_seed(0)
    model = nn.Embedding(10, 4)
    heard = []
    with torch.no_grad():
        run = compiled(model)
        for index in (10, 9, -1, 10**6, 0):
            given = torch.tensor([0, index])
            try:
                heard.append("right" if differences(run(given), model(given)) == 0 else "wrong")
            except IndexError:
                heard.append("IndexError")
    return heard
