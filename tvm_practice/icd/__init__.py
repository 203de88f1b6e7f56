"""A run: a PyTorch model measured as its configuration says, beside TVM's build of it.

    python -m tvm_practice.icd run -c configs/mlp.json --out runs/mlp

config    what a run is asked to do: files, overrides, validation
loading   `module:factory` to a model and its example inputs
search    PyTorch's own ways to be faster, tried one at a time
runner    the run itself
metrics   what a run writes
schemas   JSON Schemas of the above
"""
