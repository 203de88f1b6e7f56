"""A model imported with a symbolic extent."""

import copy
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tvm_practice.course.checks.labs.dynamic_shapes.common import (
    PHASE,
    Function,
    as_tuple,
    compiled,
    expect_module,
    extents_of,
)
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    fail,
    fresh_rng,
    seed_torch,
)
from tvm_practice.course.imported_models import (
    expect_only_read,
    give_gradients,
    identical,
    relax_calls,
    relax_constants,
    state,
)
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.quiet import quiet_frontends
from tvm_practice.tvm_export.rules.cpu.loops import constant


def _network(width: int, features: int) -> Any:
    """A linear layer over tokens scaled by a weight for each sequence."""
    import torch

    seed_torch()

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(width, features)

        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            scaled: torch.Tensor = torch.relu(self.fc(x)) * scale[:, None, :]
            return scaled

    return Network().eval()


@PHASE.exercise(
    "import_dynamic",
    engine=CURRENT,
    title="import a PyTorch model with named extents",
    hints=(
        "torch.export has an object for a named extent, and takes one for each axis that may "
        "vary. How do you declare that two axes have the same extent?",
        "torch.export.Dim(name, min=1, max=bound), one object for each name; dynamic_shapes has a "
        "{axis: Dim} for each tensor. An extent of 1 would become a constant: where "
        "tensor.shape[axis] == 1 for an axis that may vary, tensor.repeat_interleave(2, dim=axis) "
        "goes in the tensor's place.",
        "shapes = tuple({axis: dims[name] for axis, name in named.items()} for named in axes); "
        "exported = torch.export.export(model, tuple(tensors), dynamic_shapes=shapes); return "
        "from_exported_program(exported, unwrap_unit_return_tuple=True).",
    ),
    looks_like="""
        x (batch, length, 4), scale (batch, 3) -> (batch, length, 3)
        at most: batch 6, length 10
    """,
    demonstrate=lambda import_dynamic: _demonstrated_import(import_dynamic),
)
def check_import_dynamic(import_dynamic: Function) -> None:
    import torch

    rng = fresh_rng()
    width, features = (int(each) for each in rng.choice([3, 5, 7, 9], 2, replace=False))
    first, second = draw_distinct(2, ["batch", "length", "rows", "tokens", "sequences"])
    bounds = {first: int(rng.integers(5, 9)), second: int(rng.integers(5000, 20_000))}
    axes = ({0: first, 1: second}, {0: first})
    model: Any = None
    for batch, length, same in ((3, 4, False), (1, 1, False), (1, 1, True)):
        if same:  # the model of the call before, but for two numbers, which are exchanged
            model = copy.deepcopy(model)
            bias = model.fc.bias.detach().numpy()
            bias[:2] = bias[1::-1]
        else:
            model = _network(width, features)  # each with weights of its own
        give_gradients(model)
        before = state(model)
        example = (torch.randn(batch, length, width), torch.randn(batch, features))
        copies = [each.clone() for each in example]
        try:
            with quiet_frontends():  # bounds are by name, in any order
                limits = dict(reversed(bounds.items())) if batch == 1 else bounds
                mod = import_dynamic(model, example, axes, limits)
        except NotImplementedError:
            raise
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise fail(
                f"an import from an example of batch {batch} and length {length}",
                reason,
                "an extent of 1 is a constant to PyTorch: repeat_interleave(2, dim=axis) first"
                if batch == 1
                else "dynamic_shapes: a {axis: Dim} for each argument; and repeat_interleave only "
                "where the extent is 1",
            ) from error
        expect_only_read(before, model)
        for given, copied in zip(example, copies, strict=True):
            expect(
                given.shape == copied.shape and bool((given == copied).all()),
                expected="the example's tensors stay as they were",
                seen=f"one of shape {tuple(copied.shape)} was changed",
                look="repeat_interleave returns another tensor",
            )
        _expect_symbols(mod, axes, bounds, [(width,), (features,)])
        _expect_weights(mod, model)
    _expect_one_symbol(import_dynamic, str(rng.choice(list("bnt"))), 3)
    _expect_integers(import_dynamic, first)
    _expect_many_tensors(import_dynamic, first)
    _expect_three_symbols(import_dynamic)
    _expect_as_exported(mod, model, axes, bounds, [(width,), (features,)])
    run = compiled(mod)
    for batch, length in ((1, 1), (2, 1), (5, 7), tuple(bounds.values())):
        x, scale = torch.randn(batch, length, width), torch.randn(batch, features)
        with torch.inference_mode():
            want = model(x, scale).numpy()
        got = run(x.numpy(), scale.numpy())
        expect_close(
            got, want, what=f"the output for batch {batch}, length {length}", look="the export"
        )


def _expect_weights(mod: Any, model: Any) -> None:
    """The constants are the weights that the model has at this call, as they are."""
    weights = {name: each.detach().numpy() for name, each in model.named_parameters()}
    constants = relax_constants(mod["main"])
    other = [
        name for name, each in weights.items() if not any(identical(each, at) for at in constants)
    ]
    expect(
        not other and len(constants) == len(weights),
        expected=f"the weights of the model of this call, {', '.join(weights)}, as constants",
        seen=f"{len(constants)} constants of shapes "
        f"{', '.join(str(each.shape) for each in constants)}, without {' and '.join(other)}",
        look="what is done after from_exported_program, and state kept from a call with other "
        "weights",
    )


def _expect_as_exported(
    mod: Any, model: Any, axes: Sequence[Mapping[int, str]], bounds: Mapping[str, int],
    constants: Sequence[tuple[int, ...]],
) -> None:  # fmt: skip
    """The operators are those that TVM makes of the exported program."""
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    named = {name: torch.export.Dim(name, min=1, max=most) for name, most in bounds.items()}
    example = tuple(
        torch.ones(*(3,) * len(each), *rest) for each, rest in zip(axes, constants, strict=True)
    )
    shapes = tuple({axis: named[name] for axis, name in each.items()} for each in axes)
    with quiet_frontends():
        exported = torch.export.export(model, example, dynamic_shapes=shapes)
        wanted = relax_calls(from_exported_program(exported)["main"])
    seen = relax_calls(mod["main"])
    expect(
        seen == wanted,
        expected="the operators as imported: "
        + ", ".join(f"{count} {name}" for name, count in wanted.items()),
        seen=", ".join(f"{count} {name}" for name, count in seen.items()),
        look="passes that run after from_exported_program: optimize_relax comes later",
    )


def _expect_integers(import_dynamic: Function, name: str) -> None:
    """Tensors of whole numbers stay what they are."""
    import torch

    table = torch.nn.Embedding(10, 4).eval()
    for ids, axis in ((torch.arange(6).reshape(2, 3), 1), (torch.arange(3).reshape(1, 3), 0)):
        try:
            with quiet_frontends():
                mod = import_dynamic(table, (ids,), ({axis: name},), {name: 9})
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise fail(
                f"an import of an embedding from int64 ids of shape {tuple(ids.shape)}",
                reason,
                "the example's tensors: repeat_interleave keeps their type",
            ) from error
        (given,) = mod["main"].params
        expect(
            str(given.ty.dtype) == "int64",
            expected="main of an embedding, which is called with int64, takes int64",
            seen=str(given.ty.dtype),
            look="the example's tensors: repeat them, and change nothing else",
        )


def _expect_many_tensors(import_dynamic: Function, name: str) -> None:
    """Each of six tensors has an extent of 1 that may vary; the model holds a buffer alone."""
    import torch

    class Summed(torch.nn.Module):
        shift: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("shift", torch.rand(4))

        def forward(self, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
            return a + b + c + d + e + f + self.shift

    example = tuple(torch.ones(1, 4) for _ in range(6))
    look = "the loop that repeats tensors: each one, along each axis that may vary"
    try:
        with quiet_frontends():
            mod = import_dynamic(Summed().eval(), example, ({0: name},) * 6, {name: 9})
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise fail("an import from six tensors of one row each", reason, look) from error
    rows = [extents_of(each.ty)[0] for each in mod["main"].params]
    expect(
        len(rows) == 6 and all(constant(each) is None and each.same_as(rows[0]) for each in rows),
        expected=f"main takes six tensors of shape ({name}, 4), each of one row in the example",
        seen=f"rows {as_tuple(rows)}",
        look=f"{look}; keep_params_as_input=False, for buffers as well",
    )
    given = (mod["main"].attrs or {}).get("tir_var_upper_bound") or {}
    limits = {str(each): int(value) for each, value in given.items()}
    expect(
        limits.get(str(rows[0])) == 9,
        expected=f"the attribute tir_var_upper_bound with 9 for {name}, which six tensors share",
        seen=str(limits or "none"),
        look="torch.export.Dim(name, min=1, max=bound), for each name",
    )


def _expect_one_symbol(import_dynamic: Function, name: str, most: int) -> None:
    """Axes of one name share a symbol, also a first axis and a second one."""
    import torch

    class Turned(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x + y.transpose(0, 1)

    example = (torch.ones(3, 4), torch.ones(4, 3))
    try:
        with quiet_frontends():
            mod = import_dynamic(Turned().eval(), example, ({0: name}, {1: name}), {name: most})
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise fail(
            f"an import of x ({name}, 4) + the transposed y (4, {name})",
            reason,
            "one torch.export.Dim for each name, on each of its axes",
        ) from error
    x, y = (extents_of(each.ty) for each in mod["main"].params)
    expect(
        x[0].same_as(y[1]) and [constant(each) for each in (*x, *y)] == [None, 4, 4, None],
        expected=f"main takes tensors of shapes ({name}, 4), (4, {name}), one symbol",
        seen=f"{as_tuple(x)}, {as_tuple(y)}",
        look="one torch.export.Dim for each name, on each of its axes",
    )
    _expect_from_one(mod["main"], x[:1])
    given = (mod["main"].attrs or {}).get("tir_var_upper_bound") or {}
    limits = {str(each): int(value) for each, value in given.items()}
    expect(
        limits.get(str(x[0])) == most,
        expected=f"the attribute tir_var_upper_bound with {most} for {name}",
        seen=str(limits or "none"),
        look="torch.export.Dim(name, min=1, max=bound), whatever the name is",
    )


def _expect_three_symbols(import_dynamic: Function) -> None:
    """Three names of one tensor's axes; the weights are constants."""
    import torch

    (width,) = draw_distinct(1, range(3, 9))
    # Alike but for a part in the middle.
    drawn = draw_distinct(3, ["batch", "rows", "columns", "heads", "tokens"])
    names = [f"number_of_{each}_in_a_request" for each in drawn]
    bounds = {name: 3 + at for at, name in enumerate(names)}
    alike = bounds | {names[1]: bounds[names[0]]}
    for extents_given, most in (
        ((3, 1, 2), bounds), ((1, 1, 1), bounds), ((2, 1, 3), bounds), ((3, 3, 1), alike),
    ):  # fmt: skip
        example = (torch.ones(*extents_given, width),)
        with quiet_frontends():
            mod = import_dynamic(
                torch.nn.Linear(width, 2).eval(), example, (dict(enumerate(names)),), most
            )
        extents = [extents_of(each.ty) for each in mod["main"].params]
        expect(
            [[constant(each) for each in of] for of in extents] == [[None, None, None, width]],
            expected=f"main takes one tensor of three symbols and {width} columns, from an example "
            f"of shape {tuple(example[0].shape)}",
            seen=", ".join(str(as_tuple(of)) for of in extents),
            look="a Dim for each name; every axis of extent 1 repeated; "
            "keep_params_as_input=False, however many there are",
        )
        symbols = extents[0][:3]
        expect(
            not any(one.same_as(other) for one, other in itertools.combinations(symbols, 2)),
            expected=f"main takes a tensor of three symbols, with the bounds {most}",
            seen=as_tuple(extents[0]),
            look="one torch.export.Dim per name: two names may have the same bound",
        )
    # The last axes of five.
    last = {3: names[0], 4: names[1]}
    with quiet_frontends():
        mod = import_dynamic(
            _added(), (torch.ones(2, 1, 1, 3, 1), torch.ones(3)), (last, {0: names[2]}), bounds
        )
    found = [[constant(each) for each in extents_of(of.ty)] for of in mod["main"].params]
    expect(
        found == [[2, 1, 1, None, None], [None]],
        expected="main takes a tensor (2, 1, 1, n, m), whose fourth and fifth axes may vary",
        seen=", ".join(as_tuple(extents_of(of.ty)) for of in mod["main"].params),
        look="dynamic_shapes: all of the axes that are named, of a tensor of any rank; the loop "
        "that repeats tensors: along those axes alone, since an extent of 1 may be meant",
    )
    # Two tensors whose axes have the same three names, in another order.
    turned = [*names[1:], names[0]]
    with quiet_frontends():
        mod = import_dynamic(
            _added(),
            (torch.ones(3, 4, 2), torch.ones(4, 2, 3)),
            (dict(enumerate(names)), dict(enumerate(turned))),
            bounds,
        )
    first, second = (extents_of(each.ty) for each in mod["main"].params)
    expect(
        all(one.same_as(other) for one, other in zip([*first[1:], first[0]], second, strict=True)),
        expected=f"two tensors of the same three symbols, for axes {names} and {turned}",
        seen=f"{as_tuple(first)} and {as_tuple(second)}",
        look="one torch.export.Dim per name, for all tensors",
    )


def _added() -> Any:
    """A model that adds its second tensor's sum to the first, whatever their extents are."""
    import torch

    class Added(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x + y.sum()

    return Added().eval()


def _expect_from_one(main: Any, symbols: Iterable[Any]) -> None:
    """None of these symbols of main is said to be larger than 1: passes rely on it."""
    given = (main.attrs or {}).get("tir_var_lower_bound") or {}
    least = {str(name): int(value) for name, value in given.items()}
    expect(
        all(least.get(str(each), 0) <= 1 for each in symbols),
        expected="extents from 1 to the bounds",
        seen=f"the attribute tir_var_lower_bound with {least}",
        look="torch.export.Dim(name, min=1, max=bound)",
    )


def _expect_symbols(
    mod: Any,
    axes: Sequence[Mapping[int, str]],
    bounds: Mapping[str, int],
    constants: Sequence[tuple[int, ...]],
) -> None:
    """main has a symbol for each name, constants elsewhere, the bounds, and returns a tensor."""
    main = expect_module(mod, "import_dynamic")
    shapes = [extents_of(each.ty) for each in main.params]
    wanted = [
        "({})".format(", ".join([*named.values(), *map(str, rest)]))
        for named, rest in zip(axes, constants, strict=True)
    ]
    symbols: dict[str, Any] = {}
    right = len(shapes) == len(axes)
    for shape, named, rest in zip(shapes, axes, constants, strict=False):
        right = right and len(shape) == len(named) + len(rest)
        for axis, extent in enumerate(shape if right else ()):
            if axis in named:
                known = symbols.setdefault(named[axis], extent)
                right = right and constant(extent) is None and known.same_as(extent)
            else:
                right = right and constant(extent) == rest[axis - len(named)]
    right = right and len({str(each) for each in symbols.values()}) == len(bounds)
    expect(
        right,
        expected=f"main takes tensors of shapes {', '.join(wanted)}, a symbol for each name",
        seen=", ".join(map(as_tuple, shapes)),
        look="dynamic_shapes, one torch.export.Dim for each name, and keep_params_as_input=False",
    )
    given = (main.attrs or {}).get("tir_var_upper_bound") or {}
    limits = {str(name): int(value) for name, value in given.items()}
    expect(
        all(limits.get(str(symbols[name])) == most for name, most in bounds.items()),
        expected=f"the attribute tir_var_upper_bound with {dict(bounds)}",
        seen=f"{limits or 'none'}, where {', '.join(f'{v} is {k}' for k, v in symbols.items())}",
        look="torch.export.Dim(name, min=1, max=bound)",
    )
    _expect_from_one(main, symbols.values())
    expect(
        bool(extents_of(main.ret_ty)),
        expected="main returns a tensor",
        seen=f"a {type(main.ret_ty).__name__}",
        look="unwrap_unit_return_tuple=True",
    )


def _demonstrated_import(import_dynamic: Function) -> str:
    import torch

    bounds = {"batch": 6, "length": 10}
    axes = ({0: "batch", 1: "length"}, {0: "batch"})
    with quiet_frontends():
        mod = import_dynamic(_network(4, 3), (torch.ones(2, 5, 4), torch.ones(2, 3)), axes, bounds)
    main = mod["main"]
    names = {
        str(extents_of(each.ty)[axis]): name
        for each, named in zip(main.params, axes, strict=True)
        for axis, name in named.items()
    }

    def text(type_: Any) -> str:
        return as_tuple([names.get(str(each), each) for each in extents_of(type_)])

    inputs = ", ".join(f"{each.name} {text(each.ty)}" for each in main.params)
    most = {names[str(name)]: int(n) for name, n in main.attrs["tir_var_upper_bound"].items()}
    limits = ", ".join(f"{name} {most[name]}" for name in bounds)
    return f"{inputs} -> {text(main.ret_ty)}\nat most: {limits}"
