"""A PyTorch model exported and converted to Relax."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.checks.relay_import.common import (
    PHASE,
    expect_as_given,
    looks_up,
    run_imported_relax,
)
from tvm_practice.course.expect import expect, expect_type
from tvm_practice.course.imported_models import (
    Imported,
    by_pytorch,
    demonstrated_model,
    draw_kinds,
    draw_layers,
    draw_model,
    draw_repeated,
    draw_sum,
    expect_as_pytorch,
    expect_only_read,
    expect_operators,
    expect_own_converters,
    expect_read_each_time,
    expect_same_import,
    other_weights,
    relax_calls,
    relax_constants,
    state,
)
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.viz.graph import format_graph, graph


@PHASE.exercise(
    "import_relax",
    engine=CURRENT,
    title="PyTorch model to Relax, through torch.export",
    hints=(
        "Two steps, export and convert. The worked example exported_operators has the first; the "
        "second has options for the weights, for what is returned, and for converters.",
        "from_exported_program (of tvm.relax.frontend.torch) takes the result of "
        "torch.export.export. It can keep the weights as inputs or make them constants "
        "(keep_params_as_input), and can return the one tensor of a program that returns a "
        "tuple of one (unwrap_unit_return_tuple).",
        "from_exported_program(torch.export.export(model, example), keep_params_as_input=False, "
        "unwrap_unit_return_tuple=True, custom_convert_map=converters)",
    ),
    looks_like="""
        fn(image, counts)
        %0 = conv2d(image, constant)
        %1 = batch_norm(%0, constant, constant, constant, constant)
        %2 = relu(%1.0)
        %3 = mean(%2)
        %4 = permute_dims(constant)
        %5 = matmul(%3, %4)
        %6 = add(constant, %5)
        %7 = astype(counts)
        %8 = multiply(%6, %7)
        return %8
    """,
    demonstrate=lambda import_relax: format_graph(import_relax(*demonstrated_model())),
)
def check_import_relax(import_relax: Callable[..., Any]) -> None:
    import tvm
    from tvm import relax

    model, example = draw_model(outputs=1)
    before = state(model, example)
    with quiet_frontends():
        mod = import_relax(model, example)
    expect_type(mod, tvm.IRModule, "the result as a tvm.IRModule")
    expect_only_read(before, model, example)
    shown = graph(mod)
    expect(
        len(shown.inputs) == len(example),
        expected=f"a main function that takes only the model's {len(example)} inputs",
        seen=f"it takes {', '.join(shown.inputs)}",
        look="keep_params_as_input",
    )
    _expect_inputs_as_given(mod, example)
    expect_operators(shown, ("conv2d", "batch_norm", "relu", "matmul"))
    _expect_graph(mod, one_tensor=True)
    expect_as_pytorch(
        run_imported_relax(mod, example),
        by_pytorch(model, example),
        look="the object that is exported",
    )
    with quiet_frontends():
        _expect_as_exported(mod, model, example)
    twin = other_weights(model)
    with quiet_frontends():
        mod = import_relax(twin, example)
    expect_as_pytorch(
        run_imported_relax(mod, example),
        by_pytorch(twin, example),
        look="import_relax was called with a second model of the same class and other weights",
    )
    several, arguments = draw_model(outputs=2)
    with quiet_frontends():
        both = import_relax(several, arguments)
    expect_as_pytorch(
        run_imported_relax(both, arguments),
        by_pytorch(several, arguments),
        look="how a model with two outputs is imported",
    )

    def calling(operator: Callable[..., Any]) -> Callable[..., Any]:
        return lambda node, importer: importer.block_builder.emit(
            operator(
                *(
                    importer.env[each] if each in importer.env else relax.const(each, "float32")
                    for each in node.args
                )
            )
        )

    repeated, given = draw_repeated()
    with quiet_frontends():
        expect_own_converters(
            lambda converters: import_relax(repeated, given, converters=converters),
            lambda converters: _exported(repeated, given, converters),
            {
                "relu.default": calling(relax.op.nn.relu),
                "mul.Tensor": calling(relax.op.multiply),
                "eq.Tensor": calling(relax.op.equal),
                "eq.Scalar": calling(relax.op.equal),
            },
        )
        of_others = {"relu.default": calling(relax.op.nn.silu)}
        _expect_as_exported(
            import_relax(repeated, given, converters=of_others), repeated, given, of_others
        )
        _expect_many_constants(import_relax)
        _expect_idle_input(import_relax)
        _expect_not_run(import_relax)
        _expect_kinds(import_relax)

        def held(model: Any, example: Any) -> tuple[list[np.ndarray], str]:
            main = import_relax(model, example)["main"]
            return relax_constants(main), str(main.ret_ty.dtype)

        expect_read_each_time(held, "import_relax")
        for count in (20, 3):
            summed, given = draw_sum(count)
            mod = import_relax(summed, given, converters={})
            _expect_graph(mod, one_tensor=True)
            expect_as_pytorch(
                run_imported_relax(mod, given),
                by_pytorch(summed, given),
                look=f"how {count} inputs are exported",
            )
        several, arguments = draw_layers()  # a long graph
        mod = import_relax(several, arguments)
        _expect_graph(mod, one_tensor=True)
        _expect_as_exported(mod, several, arguments)


def _exported(model: Any, example: Any, converters: Any = None) -> Any:
    """A model exported and converted by TVM."""
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    return from_exported_program(
        torch.export.export(model, example),
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )


def _expect_as_exported(mod: Any, model: Any, example: Any, converters: Any = None) -> None:
    """The operators, types and constants are those that TVM makes of the exported program."""

    def parts(each: Any) -> Imported:
        main = each["main"]
        return relax_calls(main), str(main.ret_ty), relax_constants(main)

    expect_same_import(
        parts(mod),
        parts(_exported(model, example, converters)),
        look="the arguments of from_exported_program, and what is done before and after it",
    )


def _expect_graph(mod: Any, *, one_tensor: bool) -> None:
    """Operators are called, and not kernels; a model's one tensor is not in a tuple."""
    shown = graph(mod)
    lowered = sum(bool(call.kernel) for call in shown.calls)
    expect(
        not lowered,
        expected="calls of Relax's operators, as the program has them",
        seen=f"{lowered} of {len(shown.calls)} calls are of PrimFuncs",
        look="the steps after from_exported_program: optimize_relax lowers the operators",
    )
    main = mod["main"]
    told = int((main.attrs or {}).get("num_input", len(main.params)))
    expect(
        told == len(main.params),
        expected=f"main's attribute num_input, if it has one, of {len(main.params)}: all that it "
        "takes are inputs",
        seen=str(told),
        look="with_attr: an attribute that TVM does not set itself",
    )
    expect(
        shown.result.startswith("(") != one_tensor,
        expected="one tensor returned, as the model does" if one_tensor else "a tuple returned",
        seen=f"{'a tuple: ' * one_tensor}{shown.result}",
        look="unwrap_unit_return_tuple",
    )


def _expect_many_constants(import_relax: Callable[..., Any]) -> None:
    """Weights are constants, however many weights and buffers a model has."""
    import torch

    class Shifted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for at in range(70):
                self.register_buffer(f"shift_{at}", torch.full((1,), float(at)))
                self.register_parameter(f"scale_{at}", torch.nn.Parameter(torch.ones(1)))

        def forward(self, x: Any) -> Any:
            return x * self.scale_0 * self.scale_69 + self.shift_0 + self.shift_69

    inputs = graph(import_relax(Shifted().eval(), (torch.ones(2, 3),))).inputs
    expect(
        len(inputs) == 1,
        expected="a main function that takes only the input of a model with 70 weights",
        seen=f"it takes {len(inputs)}",
        look="keep_params_as_input=False, however many there are",
    )


def _expect_idle_input(import_relax: Callable[..., Any]) -> None:
    """An input that the model does not use is one that it is called with."""
    import torch

    class Idle(torch.nn.Module):
        def forward(self, first: Any, idle: Any, last: Any) -> Any:
            return first - last

    inputs = graph(import_relax(Idle().eval(), (torch.ones(2, 3),) * 3)).inputs
    expect(
        len(inputs) == 3,
        expected="a main function that takes all 3 inputs of a model that does not use the second",
        seen=f"it takes {', '.join(inputs)}",
        look="the step that removes inputs: a caller of main passes each tensor of the example",
    )


def _expect_not_run(import_relax: Callable[..., Any]) -> None:
    """A model that counts its calls in a buffer has the same count after its import."""
    import torch

    class Counting(torch.nn.Module):
        count: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: Any) -> Any:
            self.count.add_(1.0)
            return x + self.count

    counting, example = Counting().eval(), (torch.ones(2, 3),)
    before = state(counting, example)
    import_relax(counting, example)
    expect_only_read(before, counting, example)


def _expect_inputs_as_given(mod: Any, example: Sequence[Any]) -> None:
    import tvm

    named = zip(graph(mod).inputs, mod["main"].params, example, strict=True)
    for name, parameter, tensor in named:
        shape = tuple(
            int(each) if isinstance(each, tvm.tirx.IntImm) else str(each)
            for each in parameter.ty.shape.values
        )
        expect_as_given(
            name,
            (shape, str(parameter.ty.dtype)),
            tensor,
            look="the example that is exported, as it is given",
        )


def _expect_kinds(import_relax: Callable[..., Any]) -> None:
    """Inputs of each type, their extents as in the example; constants as exact as PyTorch's."""
    import torch

    for model, example in [*draw_kinds(), draw_sum(1)]:
        before = state(model, example)
        mod = import_relax(model, example)
        expect_only_read(before, model, example)
        expect(
            len(graph(mod).inputs) == len(example),
            expected=f"a main function that takes {len(example)} inputs: the model's, and no "
            "weights, however large they are",
            seen=f"it takes {', '.join(graph(mod).inputs)}",
            look="keep_params_as_input=False, whatever the model is",
        )
        _expect_graph(mod, one_tensor=torch.is_tensor(model(*example)))
        _expect_inputs_as_given(mod, example)
        expect_as_pytorch(
            run_imported_relax(mod, example),
            by_pytorch(model, example),
            look="the object exported: its weights and constants as they are",
            exactly=looks_up(example),
        )
        _expect_as_exported(mod, model, example)
