"""Models that ask something unusual of an exporter, and what came of exporting each."""

from collections.abc import Callable
from typing import Any

import torch


class Model(torch.nn.Module):
    """A linear layer of four, and whatever `body` does with it."""

    def __init__(self, body: Callable[..., Any]):
        super().__init__()
        self.body = body
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.body(self.layer, *args, **kwargs)


Made = tuple[torch.nn.Module, Any]
_FOUR = torch.linspace(-2, 2, 8).reshape(2, 4)


def _model(body: Callable[..., Any], *args: Any, **kwargs: Any) -> Made:
    return Model(body).eval(), kwargs or args


def _of_type(dtype: torch.dtype) -> Made:
    model, _ = _model(lambda layer, x: layer(x).relu())
    return model.to(dtype), torch.randn(2, 4).to(dtype)


def half() -> Made:
    return _of_type(torch.float16)


def bfloat16() -> Made:
    return _of_type(torch.bfloat16)


def double() -> Made:
    return _of_type(torch.float64)


def integers() -> Made:
    return _model(lambda layer, x: x * 2 + 1, torch.ones(2, 4, dtype=torch.int32))


def booleans() -> Made:
    return _model(lambda layer, x: layer(x) > 0, torch.randn(2, 4))


def scalar_output() -> Made:
    return _model(lambda layer, x: layer(x).sum(), torch.randn(2, 4))


def identity() -> Made:
    return _model(lambda layer, x: x, torch.randn(2, 4))


def writes_its_input() -> Made:
    return _model(lambda layer, x: layer(x.add_(1)), torch.ones(2, 4))


def named_inputs_and_a_dictionary() -> Made:
    def body(layer: Any, first: torch.Tensor, second: torch.Tensor) -> Any:
        return {"sum": layer(first + second), "pair": (first, [second * 2])}

    return _model(body, first=torch.ones(2, 4), second=torch.randn(2, 4))


def nested_inputs() -> Made:
    def body(layer: Any, x: torch.Tensor, more: Any) -> Any:
        return layer(x) + more[0] * more[1]["scale"]

    return _model(body, torch.randn(2, 4), (torch.randn(4), {"scale": torch.randn(4)}))


def dropout_in_training_mode() -> Made:
    layers = torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)
    return torch.nn.Sequential(*layers).train(), torch.randn(2, 4)


def no_inputs() -> Made:
    return _model(lambda layer: layer(torch.ones(1, 4)))


def decides_by_a_value() -> Made:
    return _model(lambda layer, x: layer(x) if x.sum() > 0 else x, torch.ones(2, 4))


def shape_by_a_value() -> Made:
    return _model(lambda layer, x: x.nonzero(), torch.ones(2, 4))


def unknown_operator() -> Made:
    return _model(
        lambda layer, x: torch.special.hermite_polynomial_h(layer(x), 3), torch.randn(2, 4)
    )


def random_numbers() -> Made:
    return _model(lambda layer, x: layer(x) + torch.rand_like(x), torch.randn(2, 4))


def recurrent() -> Made:
    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.GRU(8, 8, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.layer(x)[0]
            return states.relu()

    return Recurrent().eval(), torch.randn(2, 5, 8)


def added_to_itself() -> Made:
    def body(layer: Any, x: torch.Tensor) -> Any:
        y = layer(x)
        return (y + y).relu()

    return _model(body, torch.randn(2, 4))


def asks_whether_it_is_compiled() -> Made:
    """As some of transformers': what is missing stays so where it is compiled."""

    def body(layer: Any, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        if scale is None and not torch.compiler.is_compiling():
            scale = torch.full((4,), 2.0)
        return layer(x) * scale[None]  # type: ignore[index,no-any-return]

    return _model(body, torch.randn(2, 4))


def moves_its_layer() -> Made:
    """To its input's device and type, as a model does that may run on several."""

    def body(layer: Any, x: torch.Tensor) -> torch.Tensor:
        y = layer.cpu()(layer.to(x)(x))
        return layer.to(x.device).float()(y)  # type: ignore[no-any-return]

    return _model(body, torch.randn(2, 4))


def reads_data() -> Made:
    """As older code does where it would say `detach` today."""

    def body(layer: Any, x: torch.Tensor) -> torch.Tensor:
        y = layer(x)
        y.data.clamp_(min=-0.1)
        return torch.cat([y.data, x * layer.weight.data[0]], 1)

    return _model(body, torch.randn(2, 4))


def masks_its_weights() -> Made:
    """As in PixelCNN, at each call."""

    def body(layer: Any, x: torch.Tensor) -> Any:
        layer.weight.data *= torch.ones(4, 4).tril()
        layer.bias.data = layer.bias.data.abs()
        return layer(x)

    return _model(body, torch.randn(2, 4))


def replaces_data() -> Made:
    def body(layer: Any, x: torch.Tensor) -> torch.Tensor:
        y = layer(x)
        z = y.view(-1)
        y.data = 2 * y.relu()
        return y + z.view(2, 4)  # type: ignore[no-any-return]

    return _model(body, torch.randn(2, 4))


def decides_by_its_own_mask() -> Made:
    """As in Longformer: a mask that it makes itself has no value that depends on the input."""

    def body(layer: Any, x: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(2, 4)
        mask[:, 2:] = 0
        if (mask[:, 3] > 0).any().item():
            return x
        made: torch.Tensor = layer(x * mask)
        return made

    return _model(body, torch.randn(2, 4))


def decides_by_a_mask_with_a_value() -> Made:
    """The mask again, but the model writes of its input into it."""

    def body(layer: Any, x: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(2, 4)
        mask[0] = x[0]
        made: torch.Tensor = layer(x) if (mask > 0).any().item() else x
        return made

    return _model(body, torch.ones(2, 4))


class Flagged(torch.nn.Module):
    """As a codebook or an activation normalization: flags say whether it has begun.

    Args:
        counts: whether a call adds what depends on its input to the flag before it asks.
    """

    begun: torch.Tensor
    scale: torch.Tensor
    order: torch.Tensor

    def __init__(self, counts: bool):
        super().__init__()
        self.counts = counts
        self.layer = torch.nn.Linear(4, 4)
        self.register_buffer("begun", torch.tensor([1]))
        self.register_buffer("scale", torch.tensor(3.0))
        self.register_buffer("order", torch.tensor([2, 0, 3, 1]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.counts:
            self.begun += (x.sum() > 0).long()
        if self.begun > 1 or self.scale.item() == 0:
            return x
        made: torch.Tensor = self.layer(x)[:, self.order] * self.scale * int(self.order.max())
        return made


def decides_by_its_buffers() -> Made:
    return Flagged(counts=False).eval(), torch.randn(2, 4)


def decides_by_a_buffer_that_it_writes() -> Made:
    return Flagged(counts=True).eval(), -torch.ones(2, 4)


def in_two_lists() -> Made:
    def body(layer: Any, x: torch.Tensor, i: torch.Tensor) -> Any:
        return layer(x)[i], torch.cat((i, i + 1))

    return _model(body, torch.randn(3, 4), torch.tensor([2, 0]))


def attention_then_a_view() -> Made:
    """As in GPT-2: the strides of a fused kernel's output, of a batch, and a view of it."""

    def body(layer: Any, x: torch.Tensor) -> torch.Tensor:
        heads = layer(x).view(8, 6, 2, 2).transpose(1, 2)
        mixed = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
        product: torch.Tensor = layer(mixed.transpose(1, 2).reshape(8, 6, -1).view(-1, 4))
        return product

    return _model(body, torch.randn(8, 6, 4))


def a_spectrum_as_a_matrix() -> Made:
    """PyTorch lays a spectrum out in another order than what becomes of it here."""

    def body(layer: Any, x: torch.Tensor) -> torch.Tensor:
        waves = torch.stft(x, 6, 2, window=torch.ones(6), return_complex=True)
        return torch.einsum("bft,fm->bmt", waves.abs().square(), layer.weight)

    return _model(body, torch.randn(2, 30))


def its_own_gradient() -> Made:
    """An energy and its forces."""

    def body(layer: Any, x: torch.Tensor) -> Any:
        with torch.enable_grad():
            place = x.detach().requires_grad_()
            energy = torch.nn.functional.silu(layer(place)).square().sum()
            (slope,) = torch.autograd.grad(energy, place)
        return energy, -slope

    return _model(body, torch.randn(3, 4))


def gradient_of_a_function() -> Made:
    return _model(lambda layer, x: torch.func.grad(lambda y: y.sin().square().sum())(x), _FOUR)


def rows_of_a_jacobian() -> Made:
    return _model(lambda layer, x: torch.func.jacrev(lambda y: layer(y).tanh())(x[0]), _FOUR)


def text_output() -> Made:
    return _model(lambda layer, x: "hello", torch.randn(2, 4))


def on_the_meta_device() -> Made:
    return Model(lambda layer, x: layer(x)).to("meta").eval(), torch.randn(2, 4)


def not_a_number() -> Made:
    return _model(lambda layer, x: torch.log(layer(x).abs() * -1 - 1), torch.randn(2, 4))


def raises() -> Made:
    def body(layer: Any, x: torch.Tensor) -> Any:
        raise RuntimeError("the model's own\nmistake")

    return _model(body, torch.randn(2, 4))


def wrong_extent() -> Made:
    return _model(lambda layer, x: layer(x), torch.randn(2, 5))


def export(names: list[str]) -> dict[str, str]:
    """Of each model above: "ok" and its notes, or the class and the message of what was raised."""
    from tvm_practice import engines
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.loading import load
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule
    from tvm_practice.tvm_export.steps.comparing import verify
    from tvm_practice.tvm_export.verification import verify_against_pytorch

    engine = engines.active()
    assert engine is not None
    said = {}
    for name in names:
        try:
            loaded = load(f"{__name__}:{name}", example=None, seed=0)
            call = as_call(loaded.module, loaded.args, loaded.kwargs, copies=loaded.changes_inputs)
            settings = ExportSettings(engine=engine)
            export = build(schedule(import_model(Export.of(call, settings, loaded=loaded))))
            outputs = export.result(*map(as_array, call.tensors))
            reference = [as_array(each) for each in loaded.outputs]
            verify_against_pytorch(outputs, reference, call, verify, atol=1e-3, rtol=1e-3)
            said[name] = "; ".join(["ok", *export.notes])
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


def encoded_padded_batch() -> bool:
    """Whether an encoder's export verifies, and padded places hold more than zeros.

    In inference mode PyTorch makes nested tensors of the batch, and zeros of padded places.
    """
    from tvm_practice import engines
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Padded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.encoder = torch.nn.TransformerEncoder(layer, 1)

        def forward(self, x: torch.Tensor, padded: torch.Tensor) -> Any:
            return self.encoder(x, src_key_padding_mask=padded)

    engine = engines.active()
    assert engine is not None
    given = torch.randn(2, 5, 8), torch.tensor([[False] * 3 + [True] * 2, [False] * 5])
    config = ExportConfig(example_input=given, engine=engine)
    compiled = compile_pytorch_module(Padded().eval(), config)
    return bool((compiled(*given)[0][0, 3:] != 0).all())


def encoded_with_masks() -> list[float]:
    """The largest error of an encoder and a decoder exported with a causal mask, for three masks.

    Of the input's mask PyTorch asks whether it is causal; the other one is a buffer.
    """
    from tvm_practice import engines
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.calling import without_fast_path

    causal = torch.nn.Transformer.generate_square_subsequent_mask(5)

    class Masked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.encoder = torch.nn.TransformerEncoder(layer, 1)
            after = torch.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
            self.decoder = torch.nn.TransformerDecoder(after, 1)
            self.register_buffer("mask", causal)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> Any:
            return self.decoder(x, self.encoder(x, mask), self.mask)

    engine = engines.active()
    assert engine is not None
    model, x = Masked().eval(), torch.randn(2, 5, 8)
    compiled = compile_pytorch_module(model, ExportConfig(example_input=(x, causal), engine=engine))
    errors = []
    for mask in (causal, torch.zeros(5, 5), torch.randn(5, 5)):
        with torch.inference_mode(), without_fast_path():
            expected = model(x, mask).numpy()
        errors.append(float(abs(compiled(x, mask)[0] - expected).max()))
    return errors


def left_as_it_was() -> dict[str, bool]:
    """What of a model in training mode, with a hook, is the same after an export."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).train()
    model[0].eval()
    calls: list[int] = []
    model[0].register_forward_hook(lambda *_: calls.append(1))
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [each.training for each in model.modules()]
    x = torch.randn(2, 4)
    graph_module = compile_pytorch_module(model, ExportConfig(example_input=x))
    graph_module.run()
    calls.clear()
    model(x)
    return {
        "modes": modes == [each.training for each in model.modules()],
        "weights": all(torch.equal(model.state_dict()[name], old) for name, old in weights.items()),
        "hooks": calls == [1],
        "device and type": {(str(p.device), p.dtype) for p in model.parameters()}
        == {("cpu", torch.float32)},
    }


def open_extent(shapes: dict[str, list[Any]], batch: int = 4) -> dict[str, float]:
    """The error of one artifact at several batch sizes, or what it is refused with."""
    from tvm_practice.models import load_mlp
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model, (x,) = load_mlp(batch=batch)
    config = ExportConfig(
        example_input=x, input_shapes={name: tuple(shape) for name, shape in shapes.items()}
    )
    graph_module = compile_pytorch_module(model, config)
    errors = {}
    for rows in (1, 2, 7, 33):
        _, (x,) = load_mlp(batch=rows)
        difference = torch.from_numpy(graph_module(x.numpy())[0]) - model(x)
        errors[str(rows)] = float(difference.detach().abs().max())
    return errors
