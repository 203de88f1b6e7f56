"""The models of `tvm_practice.models` that the benchmarks measure, and their names in tables."""

MODELS = {
    "mlp": "MLP 784-512-256-10",
    "resnet18": "ResNet-18",
    "bert_base": "BERT-base",
    "mobilenet_v2": "MobileNetV2",
    "gpt2": "GPT-2 small",
    "vit": "ViT-B/16",
    "lstm": "LSTM, 2×650",
    "resnet50": "ResNet-50",
    "mamba": "Mamba-130M",
    "bert_large": "BERT-large",
}
