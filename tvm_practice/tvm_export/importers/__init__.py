"""From a model to a graph IR: by torch.export, by a trace, from an ONNX file."""
