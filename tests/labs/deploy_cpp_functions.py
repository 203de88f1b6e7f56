"""Called in a child process, with the current engine active."""

from typing import Any

import numpy as np


def run_library(folder: str, files: list[str]) -> list[Any]:
    """What Python gets of a folder's model.so: outputs as lists.

    Args:
        folder: with model.so and model.json.
        files: an input's elements each, as numpy's tofile writes them.
    """
    import json
    from pathlib import Path

    from tvm_practice.tvm_export.running import RelaxRunner

    described = json.loads((Path(folder) / "model.json").read_text())["inputs"]
    runner = RelaxRunner.from_file(str(Path(folder) / "model.so"))
    inputs = [
        np.fromfile(file, each["dtype"]).reshape(each["shape"])
        for file, each in zip(files, described, strict=True)
    ]
    runner.set_inputs(inputs)
    runner.run()
    return [each.tolist() for each in runner.outputs()]


def export_labels(folder: str) -> dict[str, Any]:
    """The small ResNet with `image_to_label` around it, by the reference answers, to a folder."""
    import json
    from pathlib import Path

    from solutions.labs.deploy_cpp import export_model, image_to_label
    from tvm_practice.labs.deploy_cpp import MEAN, STD
    from tvm_practice.models import load_small_resnet
    from tvm_practice.tvm_export.cpp import describe_main

    model, example = load_small_resnet()
    ends = lambda mod: image_to_label(mod, MEAN, STD)
    described = describe_main(export_model(model, example, Path(folder), ends=ends))
    (Path(folder) / "model.json").write_text(json.dumps(described))
    return described
