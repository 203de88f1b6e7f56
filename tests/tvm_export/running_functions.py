"""Functions that the tests of the runners call in a child process, on either engine."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_practice import engines
from tvm_practice.tvm_export.running import RelaxRunner, RelayRunner, run_relax, run_relay


def _compiled() -> tuple[Any, Any]:
    """A model with inputs of two types and three outputs, and what its engine compiled."""
    import torch

    from solutions import relay_import as steps
    from tvm_practice.tvm_export.quiet import quiet_frontends

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(5, 3)

        def forward(self, x: torch.Tensor, factor: torch.Tensor) -> Any:
            y = self.linear(x)
            return y * factor.to(torch.float32), (y, factor + 1)

    model = Model().eval()
    example = torch.randn(7, 5), torch.tensor([2])
    target = _target()
    with quiet_frontends():
        if engines.active() == engines.CLASSIC:
            mod, params = steps.import_relay(model, example)
            return model, steps.build_relay(mod, params, target)
        return model, steps.build_relax(steps.import_relax(model, example), target)


def _target() -> Any:
    import tvm

    classic = engines.active() == engines.CLASSIC
    return tvm.target.Target("llvm" if classic else {"kind": "llvm"})


def _runner(compiled: Any) -> RelayRunner | RelaxRunner:
    return (RelayRunner if engines.active() == engines.CLASSIC else RelaxRunner)(compiled)


def _draw() -> list[np.ndarray]:
    rng = np.random.default_rng()
    return [rng.standard_normal((7, 5), dtype="float32"), rng.integers(1, 9, (1,))]


def _expected(model: Any, inputs: list[np.ndarray]) -> list[Any]:
    import torch

    with torch.inference_mode():
        scaled, (plain, more) = model(*(torch.from_numpy(each) for each in inputs))
    return [scaled.tolist(), plain.tolist(), more.tolist()]


def _lists(outputs: list[np.ndarray]) -> list[Any]:
    return [each.tolist() for each in outputs]


def runs() -> list[tuple[list[Any], list[Any]]]:
    """Pairs (outputs, expected): run once, a runner on two inputs in turn, called twice."""
    model, compiled = _compiled()
    once = run_relay if engines.active() == engines.CLASSIC else run_relax
    inputs = _draw()
    pairs = [(_lists(once(compiled, inputs)), _expected(model, inputs))]
    runner = _runner(compiled)
    for _ in range(2):
        inputs = _draw()
        runner.set_inputs(inputs)
        runner.run()
        runner.run()
        pairs.append((_lists(runner.outputs()), _expected(model, inputs)))
    return pairs


def kept_outputs() -> tuple[list[Any], list[Any]]:
    """Outputs of a first run as they were then and as they are after a second run."""
    _, compiled = _compiled()
    runner = _runner(compiled)
    runner.set_inputs(_draw())
    runner.run()
    outputs = runner.outputs()
    before = _lists(outputs)
    runner.set_inputs(_draw())
    runner.run()
    return before, _lists(outputs)


def saved_and_loaded(folder: str) -> tuple[list[Any], list[Any]]:
    """(outputs, expected) of a runner made from files."""
    model, compiled = _compiled()
    runner: RelayRunner | RelaxRunner
    if engines.active() == engines.CLASSIC:
        from tvm import relay

        library = f"{folder}/library.so"
        compiled.get_lib().export_library(library)
        parameters = bytes(relay.save_param_dict(compiled.get_params()))
        runner = RelayRunner.from_files(library, compiled.get_graph_json(), parameters)
    else:
        library = f"{folder}/library.so"
        compiled.export_library(library)
        runner = RelaxRunner.from_file(library)
    inputs = _draw()
    runner.set_inputs(inputs)
    runner.run()
    return _lists(runner.outputs()), _expected(model, inputs)


def refusals() -> dict[str, str | None]:
    """The message with which wrong inputs are refused; None for one that was accepted."""
    _, compiled = _compiled()
    image, factor = _draw()
    return {
        "too few": _refusal(compiled, [image]),
        "shape": _refusal(compiled, [image[:3], factor]),
        "type": _refusal(compiled, [image.astype("float64"), factor]),
    }


def _refusal(compiled: Any, inputs: list[np.ndarray]) -> str | None:
    runner = _runner(compiled)
    try:
        runner.set_inputs(inputs)
        runner.run()
    except (ValueError, RuntimeError) as error:
        return str(error)
    return None


def unused_input() -> tuple[list[Any], list[Any]]:
    """(outputs, expected) of a model whose second of three inputs no operator reads."""
    import torch

    from solutions import relay_import as steps
    from tvm_practice.tvm_export.quiet import quiet_frontends

    class Model(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
            return a - c

    example = torch.randn(4), torch.randn(2), torch.randn(4)
    inputs = [each.numpy() for each in example]
    run: Callable[..., list[np.ndarray]]
    with quiet_frontends():
        if engines.active() == engines.CLASSIC:
            mod, params = steps.import_relay(Model().eval(), example)
            run, compiled = run_relay, steps.build_relay(mod, params, _target())
        else:
            mod = steps.import_relax(Model().eval(), example)
            run, compiled = run_relax, steps.build_relax(mod, _target())
    return _lists(run(compiled, inputs)), [(inputs[0] - inputs[2]).tolist()]


def profile() -> dict[str, Any]:
    """What a profile says of three dense layers of different sizes, two of them equal."""
    import torch

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.profiling import plain_name, profile_operators, time_alone

    layers = (torch.nn.Linear(256, 256), torch.nn.Linear(256, 256), torch.nn.Linear(256, 8))
    x = torch.randn(128, 256)
    config = ExportConfig(example_input=x)
    built = compile_pytorch_module(torch.nn.Sequential(*layers).eval(), config)
    before = built(x)[0]
    operators = profile_operators(built.runner, runs=5)
    alone = time_alone(built.runner, repeats=3)
    after = built(x)[0]
    return {
        "alone": alone,
        "operators": [each.to_dict() for each in operators],
        "known": [plain_name(each.name) in built.rules for each in operators],
        "same": bool((before == after).all()),
    }
