"""transformers' architectures, tiny and with random weights, called as a person would call them.

A decoder also generates: the compiled model is called anew for each token, its input padded on the
right to the length that it was compiled for, which a causal model does not look at.
"""

import inspect
import logging
from collections.abc import Iterator
from typing import Any

from conformance.cases import Case
from conformance.judging import Judged, judge_model, timed
from tvm_practice.engines import CLASSIC, CURRENT, Engine

TITLE = "transformers' architectures"
JUDGE = f"{__name__}:judge"
DTYPES: tuple[str, ...] = ("float32",)
ENGINES: tuple[Engine, ...] = (CURRENT, CLASSIC)

# What each architecture of a family is called with, one case each.
_INPUTS = {
    "decoder": ("ids", "mask"),
    "encoder": ("ids", "mask"),
    "translator": ("ids", "mask"),
    "image": ("pixels",),
    "audio": ("audio",),
    "speech": ("audio",),
    "both": ("pair",),
}
_FAMILIES = {
    "decoder": """
        afmoe apertus arcee aria_text bamba biogpt bitnet bloom codegen cohere cohere2 ctrl cwm
        deepseek_v2 deepseek_v3 diffllama doge ernie4_5 ernie4_5_moe exaone4 falcon falcon_h1
        falcon_mamba flex_olmo gemma gemma2 gemma3_text glm glm4 glm4_moe gpt2 gpt_bigcode gpt_neo
        gpt_neox gpt_neox_japanese gpt_oss gptj granite granitemoe granitemoeshared helium
        hunyuan_v1_dense jamba jetmoe lfm2 llama llama4_text mamba mamba2 minimax mistral mixtral
        modernbert-decoder mpt nanochat nemotron olmo olmo2 olmo3 olmoe openai-gpt opt persimmon phi
        phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next recurrent_gemma rwkv seed_oss smollm3
        stablelm starcoder2 vaultgemma xglm""",
    "encoder": """
        albert bert big_bird camembert canine convbert data2vec-text deberta deberta-v2 distilbert
        electra ernie esm eurobert fnet funnel ibert layoutlm longformer luke markuplm megatron-bert
        mobilebert modernbert mpnet mra nomic_bert nystromformer rembert roberta
        roberta-prelayernorm roc_bert roformer splinter squeezebert tapas xlm xlm-roberta
        xlm-roberta-xl xlnet yoso""",
    "translator": """
        bart bigbird_pegasus blenderbot blenderbot-small fsmt led longt5 m2m_100 marian mbart mt5
        mvp nllb-moe pegasus pegasus_x plbart prophetnet switch_transformers t5 t5gemma umt5""",
    "image": """
        beit bit clip_vision_model convnext convnextv2 cvt data2vec-vision deit dinov2
        dinov2_with_registers dinov3_convnext dinov3_vit dpt efficientnet focalnet glpn hgnet_v2
        hiera ijepa levit mgp-str mobilenet_v1 mobilenet_v2 mobilevit poolformer pvt pvt_v2 regnet
        resnet segformer siglip_vision_model swiftformer swin swinv2 textnet vit vit_msn vitdet
        yolos""",
    "audio": """
        data2vec-audio hubert sew sew-d unispeech unispeech-sat wav2vec2 wav2vec2-conformer wavlm
        """,
    "speech": "audio-spectrogram-transformer speech_to_text wav2vec2-bert whisper",
    "both": "align blip chinese_clip clip siglip vilt",
}
# Sizes by the names that configurations give them, at most.
_SIZES = {
    32: """hidden_size d_model n_embd dim embed_dim n_embed hidden_dim attention_hidden_size
        embedding_size projection_dim emb_dim output_hidden_size image_size entity_emb_size
        decoder_hidden_size conv_dim""",
    2: """num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers depth
        num_decoder_layers num_encoder_layers num_key_value_heads num_kv_heads num_experts_per_tok
        moe_k num_attn_heads first_k_dense_replace n_group topk_group""",
    4: """num_attention_heads num_heads n_head n_heads encoder_attention_heads num_experts
        decoder_attention_heads num_encoder_attention_heads num_decoder_attention_heads
        num_local_experts n_routed_experts moe_num_experts rotary_dim mamba_n_heads""",
    64: """intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff n_inner
        moe_intermediate_size feedforward_dim ffn_hidden_size max_position_embeddings n_positions
        max_seq_len max_source_positions max_target_positions n_ctx max_seq_length mlp_dim
        num_mel_bins""",
    8: """head_dim d_kv attention_head_size qk_nope_head_dim qk_rope_head_dim v_head_dim
        kv_channels mamba_head_dim mamba_d_head mamba_d_state state_size ssm_state_size
        patch_size""",
    16: "kv_lora_rank q_lora_rank lru_width hidden_sizes conv_channels",
    100: """vocab_size src_vocab_size tgt_vocab_size entity_vocab_size n_langs
        pronunciation_vocab_size shape_vocab_size""",
}
_AT_MOST = {name: most for most, names in _SIZES.items() for name in names.split()}
# Where the rule above makes a configuration that its architecture refuses.
_OWN: dict[str, dict[str, Any]] = {
    "align": {"projection_dim": 640},
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 8, "attn_layer_indices": [1]},
    "codegen": {"rotary_dim": 4, "n_embd": 64, "n_head": 4},
    "deepseek_v2": {
        "num_experts_per_tok": 2,
        "qk_rope_head_dim": 8,
        "num_key_value_heads": 4,
        "head_dim": 8,
    },
    "deepseek_v3": {"qk_rope_head_dim": 8, "num_key_value_heads": 4, "head_dim": 8},
    "efficientnet": {"hidden_dim": 2560},
    "esm": {"vocab_size": 100, "pad_token_id": 1, "mask_token_id": 2},
    "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]]},
    "hunyuan_v1_dense": {"head_dim": 8},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "levit": {"image_size": 224, "patch_size": 16},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "nemotron": {"head_dim": 8, "num_key_value_heads": 2},
    "qwen3_next": {"layer_types": ["linear_attention", "full_attention"]},
    "recurrent_gemma": {"num_hidden_layers": 3},
    "swin": {
        "patch_size": 4,
        "embed_dim": 24,
        "image_size": 56,
        "depths": [2, 2],
        "num_heads": [3, 6],
    },
    "swinv2": {
        "patch_size": 4,
        "embed_dim": 24,
        "image_size": 56,
        "depths": [2, 2],
        "num_heads": [3, 6],
    },
}
_PROMPT, _NEW, _LENGTH = 8, 8, 16


def cases(dtype: str, samples: int | None) -> Iterator[Case]:
    """Each architecture with each of its family's inputs, or the first `samples` of them."""
    for family, names in _FAMILIES.items():
        for name in names.split():
            for given in _INPUTS[family][:samples]:
                arguments = {"name": name, "family": family, "given": given}
                yield Case(name, f"{name} {given}", arguments)


def judge(name: str, family: str, given: str) -> dict[str, Any]:
    """Compile one architecture on one kind of inputs; a decoder also generates 8 tokens."""
    return timed(lambda: _judged(name, family, given))


def _judged(name: str, family: str, given: str) -> Judged:
    model, inputs = made(name, family, given)
    judged = judge_model(model, inputs)
    if judged.verdict != "right" or family != "decoder" or given != "ids":
        return judged
    return _generated(model, judged.compiled, inputs["input_ids"])


def made(name: str, family: str, given: str) -> tuple[Any, dict[str, Any]]:
    """A case's model, tiny and with random weights, and its inputs by name."""
    import torch

    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    torch.manual_seed(0)
    model = _model(family, configuration(name))
    for weight in model.parameters():
        # A router of zeros chooses among equals, and PyTorch's topk does not say which of them.
        if weight.ndim == 2 and not weight.any():
            torch.nn.init.normal_(weight, std=0.02)
    return model, _inputs(model, family, given)


def configuration(name: str) -> Any:
    """An architecture's configuration, as small as its parts allow."""
    from transformers import AutoConfig

    default = AutoConfig.for_model(name)
    made = type(default)(**{**_smaller(default), **_OWN.get(name, {})})
    made.architectures = []  # of a checkpoint; the automatic classes look into it
    return made


def _smaller(config: Any) -> dict[str, Any]:
    """What differs from a configuration in a tiny one, its parts' configurations included."""
    from transformers import PretrainedConfig

    changes: dict[str, Any] = {}
    for name, value in vars(config).items():
        if isinstance(value, PretrainedConfig):
            changes[name] = {**_smaller(value), "model_type": value.model_type}
        elif type(value) is int and value > _AT_MOST.get(name, value):
            changes[name] = _AT_MOST[name]
        elif name.endswith("token_id") and type(value) is int and value >= _AT_MOST["vocab_size"]:
            changes[name] = 1
    return changes


def _model(family: str, config: Any) -> Any:
    import transformers

    automatic = {
        "decoder": "AutoModelForCausalLM",
        "translator": "AutoModelForSeq2SeqLM",
        "image": "AutoModelForImageClassification",
    }
    for name in (automatic.get(family, "AutoModel"), "AutoModel"):
        try:
            return getattr(transformers, name).from_config(config).eval()
        except ValueError:  # it has no head of that kind
            if name == "AutoModel":
                raise
    raise AssertionError("unreachable")


def _inputs(model: Any, family: str, given: str) -> dict[str, Any]:
    """The inputs of a kind, by name."""
    import torch

    made = torch.Generator().manual_seed(0)
    accepted = inspect.signature(model.forward).parameters
    examples = 2 if given == "mask" else 1

    def tokens(length: int, rows: int = 1) -> Any:
        return torch.randint(3, 100, (rows, length), generator=made)

    if given in ("ids", "pair"):
        inputs = {"input_ids": tokens(_LENGTH)}
    elif given == "mask":
        mask = torch.ones(examples, _LENGTH, dtype=torch.int64)
        mask[1, _PROMPT:] = 0
        inputs = {"input_ids": tokens(_LENGTH, examples), "attention_mask": mask}
    elif family == "audio":
        return {"input_values": torch.randn(1, 4000, generator=made)}
    elif family == "speech":
        inputs = {model.main_input_name: torch.randn(1, *_spectrum(model.config), generator=made)}
    else:
        inputs = {}
    if given in ("pixels", "pair"):
        inputs["pixel_values"] = torch.randn(1, 3, *_extents(model.config), generator=made)
    if "decoder_input_ids" in accepted:
        inputs["decoder_input_ids"] = tokens(_PROMPT, examples)
    return inputs


def _spectrum(config: Any) -> tuple[int, int]:
    """The shape of a spectrum: Whisper takes its bins first, the others time."""
    if config.model_type == "whisper":
        return int(config.num_mel_bins), 2 * int(config.max_source_positions)
    if config.model_type == "audio-spectrogram-transformer":
        return int(config.max_length), int(config.num_mel_bins)
    bins = ("input_feat_per_channel", "feature_projection_input_dim")
    return 128, next(int(getattr(config, each)) for each in bins if hasattr(config, each))


def _extents(config: Any) -> tuple[int, int]:
    """Height and width of the images that a model takes."""
    size = getattr(getattr(config, "vision_config", config), "image_size", None) or 64
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    return max(32, int(height)), max(32, int(width))


def _generated(model: Any, compiled: Any, ids: Any) -> Judged:
    """The verdict on tokens that are generated greedily, each by a call of the compiled model."""
    import torch

    from conformance.judging import as_tensor
    from tvm_practice.tvm_export.nested import flattened

    with torch.inference_mode():
        outputs = model(ids)
        position = [each is outputs.logits for each in flattened(outputs)].index(True)
        expected = ids[:, :_PROMPT]
        for _ in range(_NEW):
            best = model(expected).logits[:, -1].argmax(-1)
            expected = torch.cat([expected, best[:, None]], 1)
    own = ids.clone()
    for length in range(_PROMPT, _PROMPT + _NEW):
        logits = as_tensor(compiled(own.numpy())[position])
        best = logits[:, length - 1].argmax(-1)
        if length < _LENGTH:
            own[:, length] = best
    if torch.equal(own, expected):
        return Judged("right", "", compiled)
    tokens = f"{own[0, _PROMPT:].tolist()}, PyTorch {expected[0, _PROMPT:].tolist()}"
    return Judged("wrong", f"it generates {tokens}")
