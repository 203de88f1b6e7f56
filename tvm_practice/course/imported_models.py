"""A model to import, and what checks promise of the graph that it becomes."""

import copy
import itertools
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tvm_practice.course.expect import expect, expect_close, fail, fresh_rng, seed_torch
from tvm_practice.engines import CLASSIC, active
from tvm_practice.viz.graph import Graph, format_graph


def _network(channels: int, filters: int, features: int, *, outputs: int) -> Any:
    """Convolution, batch normalization, ReLU, mean and a linear layer, weighted by `counts`.

    Called with an image and int64 `counts`; returns the features, and with `outputs=2` the
    convolution's activations too.
    """
    import torch

    from tvm_practice.models.seeding import randomize_batch_norms

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(channels, filters, 3, padding=1, bias=False)
            self.norm = torch.nn.BatchNorm2d(filters)
            self.fc = torch.nn.Linear(filters, features)

        def forward(self, image: torch.Tensor, counts: torch.Tensor) -> Any:
            active = torch.relu(self.norm(self.conv(image)))
            scored = self.fc(active.mean((2, 3))) * counts.to(torch.float32)
            return scored if outputs == 1 else (scored, active)

    model = Network()
    randomize_batch_norms(model)
    return model.eval()


def draw_model(*, outputs: int) -> tuple[Any, tuple[Any, ...]]:
    """A network of odd sizes with new weights, and inputs for it."""
    import torch

    rng = fresh_rng()
    seed_torch()
    channels, filters, features = (int(size) for size in rng.choice([3, 5, 7, 11], 3, False))
    batch, height, width = (int(size) for size in rng.choice([2, 7, 9, 13], 3, False))
    model = _network(channels, filters, features, outputs=outputs)
    next(model.parameters()).requires_grad_(False)  # a weight that does not learn stays so
    model.norm.num_batches_tracked.fill_(int(rng.integers(9, 99)))
    give_gradients(model)
    for part in (model, model.fc):
        part.register_forward_hook(_leaves_as_it_is)
    image = torch.randn(batch, channels, height, width)
    return model, (image, torch.randint(1, 9, (batch, 1)))


def _leaves_as_it_is(module: Any, given: Any, result: Any) -> None:
    """A hook that somebody else has registered: an import leaves hooks where they are."""


def give_gradients(model: Any) -> None:
    """As after a step of training: an import leaves gradients as they are."""
    import torch

    for weight in model.parameters():
        weight.grad = torch.ones_like(weight) if weight.requires_grad else None


def other_weights(model: Any) -> Any:
    """The same network with other weights: what was kept of `model` is wrong for it."""
    import torch

    twin = copy.deepcopy(model)
    with torch.no_grad():
        for weight in twin.parameters():
            weight.neg_().add_(0.5)
        twin.fc.bias[0] = -40  # a weight like the others, and far from them
    return twin


def draw_sum(inputs: int) -> tuple[Any, tuple[Any, ...]]:
    """A linear layer of the sum of so many inputs, each weighted by its place; inputs for it."""
    import torch

    class Summed(torch.nn.Module):
        def __init__(self, features: int) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(features, 4)

        def forward(self, *given: torch.Tensor) -> Any:
            total = given[0]
            for place, each in enumerate(given[1:], 2):
                total = total + place * each
            return self.fc(total)

    seed_torch()
    rows, features = (int(size) for size in fresh_rng().choice([3, 5, 7, 9], 2, False))
    return Summed(features).eval(), tuple(torch.randn(rows, features) for _ in range(inputs))


def draw_stack(inputs: int) -> tuple[Any, tuple[Any, ...]]:
    """One operator of so many inputs, which are a quick import; inputs for it."""
    import torch

    class Stacked(torch.nn.Module):
        def forward(self, *given: torch.Tensor) -> Any:
            return torch.stack(given)

    return Stacked().eval(), tuple(torch.full((2,), float(at)) for at in range(inputs))


def draw_repeated() -> tuple[Any, tuple[Any, ...]]:
    """Operators that a model calls several times each, and a result twice; inputs for it."""
    import torch

    times = [int(each) for each in fresh_rng().choice([2, 3, 4, 5], 4, False)]

    class Repeated(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            for _ in range(times[0]):
                x = torch.relu(x - 1)
            for _ in range(times[1]):
                x = x * y
            for _ in range(times[2]):
                x = x + (x == y)
            for at in range(times[3]):
                x = x + (x == at + 2)
            whole = torch.add(x.to(torch.int32), y.to(torch.int32), alpha=3)
            return x, whole, x, y

    return Repeated().eval(), (torch.ones(2, 5), torch.ones(2, 5))


def draw_layers() -> tuple[Any, tuple[Any, ...]]:
    """Convolutions, each with a batch normalization of its own eps, in a row; an input for it."""
    import torch

    rng = fresh_rng()
    seed_torch()
    # Of one size: what TVM computes of their constants, it compiles once.
    channels = [int(rng.integers(2, 6))] * int(rng.integers(10, 12))
    layers: list[Any] = []
    for at, (one, other) in enumerate(itertools.pairwise(channels)):
        eps = float(rng.choice([1e-5, 1e-3, 0.1]))
        stride = 1 + (at % 4 == 1)
        layers += [
            torch.nn.Conv2d(one, other, 3, stride=stride, padding=1, bias=bool(at % 2)),
            torch.nn.BatchNorm2d(other, eps=eps),
            torch.nn.ReLU(),
        ]
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Dropout(0.5)]
    return torch.nn.Sequential(*layers).eval(), (torch.randn(1, channels[0], 12, 10),)


def draw_changing(*, follows: bool = False) -> Iterator[tuple[Any, tuple[Any, ...], str]]:
    """A model and an example, several times: each time but the first, one thing of it has changed.

    The third value says what. The model is of many weights and buffers, one that `state_dict`
    leaves out and some that are not contiguous, and returns a tensor of another type than its
    input. With `follows` it decides by its input what it computes.
    """
    import torch

    rng = fresh_rng()
    seed_torch()
    rows, columns = (int(size) for size in rng.choice([3, 5, 7, 9], 2, False))
    most = int(rng.integers(3, 6))
    kinds = torch.int32, torch.float64, torch.float16
    other = kinds[int(rng.integers(len(kinds)))]

    class Changing(torch.nn.Module):
        turned: torch.nn.Parameter
        skipped: torch.Tensor
        kept_apart: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Parameter(torch.rand(columns))
            self.turned = torch.nn.Parameter(torch.rand(columns, rows).t())
            self.register_buffer("skipped", torch.rand(rows, 2 * columns)[:, ::2])
            self.register_buffer("kept_apart", torch.rand(columns), persistent=False)
            self.shifts = torch.nn.ParameterList(torch.rand(columns) for _ in range(most))
            self.last = torch.nn.Parameter(torch.rand(columns))
            self.kind = torch.int64

        def forward(self, x: torch.Tensor) -> Any:
            if follows:
                # Of equal numbers none is the largest alone, whichever they are.
                x = x * 2.0 if bool(x[-1, -1] > x[0].max()) else x - 1.0
            total = x * self.first * self.turned + self.skipped * self.kept_apart
            for each in self.shifts:
                total = total * 1.5 + each
            return (total - self.last).to(self.kind)

    model = Changing().eval()
    example = (torch.rand(rows, columns) + 1,)
    example[0][-1, -1] = 3.0
    yield model, example, ""
    middle = model.shifts[int(rng.integers(most))]
    with torch.no_grad():
        middle.data = middle[[1, 0, *range(2, columns)]]
    yield model, example, "one weight of many is another tensor, of the same numbers"
    weight = model.turned.detach().numpy()
    weight[:2, 0] = weight[1::-1, 0]
    yield model, example, "two numbers of a weight have changed places where they are"
    model.kept_apart = model.kept_apart.flip(0)
    yield model, example, "a buffer that state_dict() leaves out is another one"
    model.kind = other
    yield model, example, "an attribute has another value: the type of the result"


def expect_read_each_time(
    import_model: Callable[[Any, Any], tuple[Sequence[np.ndarray], str]],
    name: str,
    *,
    follows: bool = False,
) -> None:
    """A model is read at each call, all of it: one thing in it may be another one by then.

    Args:
        import_model: calls the answer; returns the weights in the graph, and the result's type.
        name: what the answer is called.
        follows: see `draw_changing`.
    """
    for model, example, changed in draw_changing(follows=follows):
        before = state(model, example)  # of weights that are not contiguous as well
        found, kind = import_model(model, example)
        expect_only_read(before, model, example)
        weights = dict(itertools.chain(model.named_parameters(), model.named_buffers()))
        lost = [
            each
            for each, weight in weights.items()
            if not any(identical(weight.detach().numpy(), at) for at in found)
        ]
        look = (
            f"{name} was called again with one model; since the call before {changed}"
            if changed
            else "the object that is exported: all of the model's weights and buffers, as they are"
        )
        expect(
            not lost,
            expected=f"the weights and buffers of a model as they are at the call: {len(weights)}, "
            "one that state_dict() leaves out and two that are not contiguous among them",
            seen=f"not there: {', '.join(lost)}",
            look=look,
        )
        wanted = str(model.kind).removeprefix("torch.")
        expect(
            kind == wanted,
            expected=f"a result of type {wanted}, as the model's",
            seen=f"of type {kind}",
            look=look,
        )


# Weights that a float32 can be, and that arithmetic, or a type between, would change.
_UNUSUAL = (
    *(float("nan"), float("inf"), -float("inf"), -0.0, 1e-40, -1e-30, 3.4e38, 65_519.0),
    1 + 2**-23,
)


def draw_kinds(*, holding: bool = False) -> list[tuple[Any, tuple[Any, ...]]]:
    """Models of a single weight, or of none, with inputs of other types and a constant.

    With `holding`, the one alone that has weights of several types.
    """
    import torch

    class Looked(torch.nn.Module):
        """A large table; of indices, its values as they are."""

        def __init__(self, rows: int, features: int) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(rows, features)
            with torch.no_grad():
                self.table.weight[: len(_UNUSUAL), 1] = torch.tensor(_UNUSUAL)

        def forward(self, indices: torch.Tensor) -> Any:
            return self.table(indices)

    class Listed(torch.nn.Module):
        """A table that does not learn, of float64."""

        table: torch.Tensor

        def __init__(self, rows: int, features: int) -> None:
            super().__init__()
            self.register_buffer("table", torch.rand(rows, features, dtype=torch.float64))

        def forward(self, indices: torch.Tensor) -> Any:
            return torch.nn.functional.embedding(indices, self.table)

    class Mixed(torch.nn.Module):
        """Of each type, of five dimensions, and of many rows."""

        def forward(
            self, deep: torch.Tensor, long: torch.Tensor, real: torch.Tensor, number: torch.Tensor,
            *others: torch.Tensor,
        ) -> Any:  # fmt: skip
            total = real + number
            for each in others:
                total = total * 1.5 + each.to(torch.float64)
            return total, deep * 3.0, long + 1.0

    class Held(torch.nn.Module):
        """Buffers alone: a number, whole numbers, and numbers of float64."""

        gain: torch.Tensor
        counts: torch.Tensor
        shift: torch.Tensor
        nothing: torch.Tensor

        def __init__(self, columns: int) -> None:
            super().__init__()
            self.register_buffer("nothing", torch.zeros(columns))  # a weight like the others
            self.register_buffer("gain", torch.rand(()) + 1)
            self.register_buffer("counts", torch.randint(1, 99, (columns,)))
            self.counts[0] = 1 << 33  # more than an int32 can be
            self.register_buffer("shift", torch.rand(columns, dtype=torch.float64))

        def forward(self, x: torch.Tensor) -> Any:
            return (x * self.gain + self.nothing + self.counts).to(torch.float64) + self.shift

    class Made(torch.nn.Module):
        """A constant; a list of results."""

        def forward(self, x: torch.Tensor) -> Any:
            return [x + torch.full(x.shape, 1003.3), x * 2]  # which float16 has not

    seed_torch()
    rows, columns, features = (int(size) for size in fresh_rng().choice([3, 5, 7, 9], 3, False))
    shape = rows, columns
    short = torch.uint8, torch.int8, torch.int16
    held = Held(columns).eval(), (torch.randn(shape),)
    if holding:
        return [held]
    many = int(fresh_rng().integers(60_000, 90_000))
    indices = torch.cat([torch.arange(len(_UNUSUAL) + 1), torch.randperm(many)[:800]])
    return [
        (Looked(many, features).eval(), (indices.view(-1, 2),)),
        (Listed(rows, features).eval(), (torch.randperm(rows).view(1, -1),)),
        (
            Mixed().eval(),
            (
                torch.randn(2, 1, 3, rows, columns),
                torch.randn(1009, columns),
                torch.randn(shape, dtype=torch.float64),
                torch.tensor(0.1, dtype=torch.float64),
                torch.randn(shape).half(),
                torch.randn(columns) > 0,
                *(torch.randint(0, 99, shape, dtype=each) for each in short),
                torch.randint(-9, 9, shape, dtype=torch.int32),
            ),
        ),
        held,
        (Made().eval(), (torch.randn(shape),)),
    ]


def demonstrated_model() -> tuple[Any, tuple[Any, ...]]:
    """The network that the `looks_like` texts show."""
    import torch

    return _network(3, 4, 2, outputs=1), (torch.ones(1, 3, 8, 8), torch.ones(1, 1).long())


def arrays(example: Sequence[Any]) -> list[np.ndarray]:
    return [each.detach().numpy() for each in example]


def by_pytorch(model: Any, example: Sequence[Any]) -> list[np.ndarray]:
    import torch

    with torch.inference_mode():
        outputs = model(*example)
    return arrays(outputs if isinstance(outputs, tuple | list) else (outputs,))


def expect_as_pytorch(
    got: Sequence[np.ndarray], want: Sequence[np.ndarray], *, look: str, exactly: bool = False
) -> None:
    """As many outputs as PyTorch's, equal to them; `exactly`, if nothing is computed."""
    shapes = [each.shape for each in got], [each.shape for each in want]
    expect(
        shapes[0] == shapes[1],
        expected=f"outputs of shapes {shapes[1]}, as PyTorch's",
        seen=f"outputs of shapes {shapes[0]}",
        look=look,
    )
    kinds = [str(each.dtype) for each in got], [str(each.dtype) for each in want]
    expect(
        kinds[0] == kinds[1],
        expected=f"outputs of the types {', '.join(kinds[1])}, as PyTorch's",
        seen=f"of the types {', '.join(kinds[0])}",
        look=look,
    )
    for index, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        if exactly and identical(ours, theirs):  # NaN as well, and the sign of zero
            continue
        close = 0.0 if exactly else 1e-4
        expect_close(
            ours, theirs, what=f"output {index}", look=look, whose="PyTorch", atol=close, rtol=close
        )
        expect(
            not exactly,
            expected=f"output {index}: the weights bit by bit, also NaN, -0.0 and 1e-40",
            seen="other bits: equal as numbers, or another NaN",
            look=look,
        )


def identical(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays are the same bit by bit."""
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()
    )


def expect_operators(shown: Graph, names: Sequence[str]) -> None:
    """The graph has operators of these names."""
    missing = [name for name in names if name not in shown.operators]
    expect(
        not missing,
        expected=f"a graph with the operators {', '.join(names)}",
        seen=f"the operators {', '.join(shown.operators) or 'nothing'}",
        look=f"how the model became a graph (in eval mode, whole); missing: {', '.join(missing)}",
    )


Imported = tuple[Counter[str], str, list[np.ndarray]]


def expect_same_import(got: Imported, usual: Imported, *, look: str) -> None:
    """The operators, the result's type, and the weights or constants, in any order."""
    expect(
        got[0] == usual[0],
        expected="the operators of the model, each as often as TVM converts it: "
        + ", ".join(f"{count} {name}" for name, count in usual[0].items()),
        seen=", ".join(f"{count} {name}" for name, count in got[0].items()),
        look=look,
    )
    expect(
        got[1] == usual[1],
        expected=f"a result of type {usual[1]}",
        seen=f"of type {got[1]}",
        look=look,
    )
    held = [
        Counter((str(each.dtype), each.shape, each.tobytes()) for each in weights)
        for weights in (got[2], usual[2])
    ]
    differing = (held[1] - held[0]) or (held[0] - held[1])
    expect(
        not differing,
        expected=f"the {len(usual[2])} weights and constants of the model, as they are",
        seen=f"{len(got[2])}, and not alike: "
        + ", ".join(f"{kind} of shape {shape}" for kind, shape, _ in list(differing)[:3]),
        look=look,
    )


def relax_calls(function: Any) -> Counter[str]:
    """The operators that a function of Relax calls, with their attributes."""
    calls: Counter[str] = Counter()
    for block in function.body.blocks:
        for binding in block.bindings:
            if hasattr(binding.value, "op"):
                said = str(binding.value.attrs or "")
                operator = getattr(binding.value.op, "name", "a kernel")
                calls[f"{operator} {said}".rstrip()] += 1
    return calls


def relax_constants(function: Any) -> list[np.ndarray]:
    """The constants of a Relax function."""
    import tvm
    import tvm_ffi

    found: list[np.ndarray] = []

    def hold(constant: Any) -> None:
        if hasattr(constant.value, "numpy"):
            found.append(constant.value.numpy())

    tvm_ffi.structural_walk(function.body, (tvm.ir.GenericConst, hold))
    return found


def state(model: Any, example: Sequence[Any] = ()) -> dict[str, np.ndarray]:
    """Everything in a model, its example and in PyTorch that an import must leave alone."""
    import torch

    weights = {name: each.detach().numpy() for name, each in model.state_dict().items()}
    held = {name: each.copy() for name, each in weights.items()}
    # While these are held, nothing else is put where they are.
    held |= {f"{name}, where it was": each for name, each in weights.items()}
    learns = ", ".join(name for name, each in model.named_parameters() if each.requires_grad)
    gradients = ", ".join(
        f"{name} {float(each.grad.sum())}"
        for name, each in model.named_parameters()
        if each.grad is not None
    )
    attributes = [
        f"{name}.{each}" + (f" = {value}" if isinstance(value, int | float | str) else "")
        for name, part in model.named_modules()
        for each, value in vars(part).items()
        if each != "training"
    ]
    training = [name or "it" for name, part in model.named_modules() if part.training]
    hooks = [
        len(value or ())
        for holder in (*model.modules(), *model.parameters(), *example)
        for name, value in sorted(vars(holder).items())
        if name.endswith("_hooks")
    ] + [len(each._backward_hooks or ()) for each in model.parameters()]
    inputs = ", ".join(str(at) for at, each in enumerate(example) if each.requires_grad)
    return {
        **held,
        **{f"input {at}": each.detach().numpy().copy() for at, each in enumerate(example)},
        "where its weights are": np.array([each.ctypes.data for each in weights.values()]),
        "which buffers it has": np.array(", ".join(name for name, _ in model.named_buffers())),
        "how many hooks it has": np.array(hooks),
        "which of its weights have gradients, and which ones": np.array(gradients),
        "which attributes it has": np.array(", ".join(sorted(attributes))),
        "what of it is training": np.array(", ".join(training)),
        "whether PyTorch records gradients": np.array(torch.is_grad_enabled()),
        "which of its weights require gradients": np.array(learns),
        "which inputs require gradients": np.array(inputs),
    }


def expect_only_read(
    before: dict[str, np.ndarray], model: Any, example: Sequence[Any] = ()
) -> None:
    """The model's `state` is what it was `before`."""
    import torch

    after = state(model, example)
    torch.set_grad_enabled(bool(before["whether PyTorch records gradients"]))
    changed = [
        name for name in before if name not in after or not identical(before[name], after[name])
    ]
    expect(
        not changed,
        expected="the model and the example are only read, and the model stays in eval mode",
        seen=f"changed: {', '.join(changed)}",
        look="tracing or exporting in training mode, which updates the batch-norm statistics, and "
        "whatever sets an attribute, a gradient or requires_grad",
    )


class GivenModule(NamedTuple):
    """What a module was before it was given to an answer: its text, functions and attributes."""

    text: str
    functions: dict[Any, Any]
    attributes: dict[str, list[str]]


def given_module(mod: Any) -> GivenModule:
    return GivenModule(format_graph(mod), dict(mod.functions.items()), attributes_by_name(mod))


def attributes_by_name(mod: Any) -> dict[str, list[str]]:
    """The names of each function's attributes."""
    return {
        str(var.name_hint): sorted(map(str, (function.attrs or {}).keys()))
        for var, function in mod.functions.items()
    }


def expect_left_alone(before: GivenModule, mod: Any) -> None:
    """The module still looks as it did `before`, and in current TVM holds the same functions."""
    now = dict(mod.functions.items())
    # Classic TVM's passes put functions whose types they inferred into the given module.
    same = active() == CLASSIC or (
        now.keys() == before.functions.keys()
        and all(each.same_as(before.functions[name]) for name, each in now.items())
    )
    expect(
        same and before.attributes == attributes_by_name(mod) and before.text == format_graph(mod),
        expected="the module given is left as it was; the one that is returned is another",
        seen="the module given was changed",
        look="assigning to mod['main'], and mod.update, change mod itself; make a new IRModule "
        "first, or return what the passes return",
    )


def other_target() -> tuple[Any, str] | None:
    """A target whose processor can be told from the host's, and its name; None off x86."""
    import tvm

    if platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    if active() == CLASSIC:
        return tvm.target.Target("llvm -mcpu=nehalem"), "nehalem"
    return tvm.target.Target({"kind": "llvm", "mcpu": "nehalem"}), "nehalem"


def expect_target_used(llvm_text: str, processor: str) -> None:
    """The code was compiled for that processor."""
    used = set(re.findall(r'"target-cpu"="([^"]*)"', llvm_text))
    expect(
        used == {processor},
        expected=f"code for the target's processor, {processor}",
        seen=f"code for {', '.join(sorted(used)) or 'no processor in particular'}",
        look="the target argument, which must reach the compiler",
    )


def expect_own_converters(
    run: Callable[[dict[str, Any]], Any],
    usual: Callable[[dict[str, Any]], Any],
    own: Mapping[str, Callable[..., Any]],
) -> None:
    """Check that `converters` reach the frontend, for each call of their operators.

    Args:
        run: imports the model with converters.
        usual: the same, by TVM itself.
        own: a converter of each operator.
    """
    seen: list[tuple[str, ...]] = []

    def noted(name: str, own_name: str) -> Callable[..., Any]:
        def converter(*arguments: Any) -> Any:
            sizes = (str(len(each)) for each in arguments if isinstance(each, list | tuple))
            seen.append((name, *sizes))
            return own[own_name](*arguments)

        return converter

    def expect_calls(given: dict[str, Any], look: str) -> None:
        found = []
        for each in (usual, run):
            seen.clear()
            each(dict(given) if each is usual else given)
            found.append(Counter(seen))
        wanted, got = found
        for name, *sizes in (wanted - got) or (got - wanted):
            counts = [sum(n for at, n in each.items() if at[0] == name) for each in found]
            raise fail(
                f"converters={{{name!r}: …}} used in place of TVM's own, for each of the "
                f"model's {counts[0]} calls of the operator and for no other",
                f"it was called {counts[1]} times"
                + ", with other arguments" * (counts[0] == counts[1] and bool(sizes))
                if counts[1]
                else "it was never called",
                look,
            )

    alone = str(fresh_rng().choice(list(own)))
    single = {alone: noted(alone, alone)}
    expect_calls(single, "custom_convert_map, however many there are in `converters`")
    again: list[str] = []

    def another(*arguments: Any) -> Any:
        again.append(alone)
        return own[alone](*arguments)

    single[alone] = another
    run(single)
    expect(
        bool(again),
        expected=f"another converter for {alone}, in the same dictionary, used at the next call",
        seen="it was never called",
        look="a result kept from a call with another converter of that name",
    )
    # Of operators that the model does not have as well.
    many = {f"practice.unused_{at}": noted("an unused one", next(iter(own))) for at in range(12)}
    given = many | {name: noted(name, name) for name in own}
    kept = dict(given)
    expect_calls(given, "custom_convert_map, which takes all of `converters`")
    expect(
        given == kept,
        expected="the dictionary of converters is only read",
        seen=f"{len(given)} converters in it, which had {len(kept)}",
        look="the statement that changes `converters`; a copy is dict(converters)",
    )


def any_llvm() -> Any:
    """Code for any processor of this kind."""
    import tvm

    return tvm.target.Target("llvm" if active() == CLASSIC else {"kind": "llvm"})
