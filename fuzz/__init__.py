"""Random models on the exporter, held against PyTorch: faults that nobody thought of.

python -m fuzz --minutes 30 --seed 0
make fuzz MINUTES=30

graphs.py       a random model: steps of PyTorch's code, inputs, constants
drawing.py      one on its way, each step run in PyTorch before it is taken
operators/      the steps that there are
drawn_graphs.py draws one of them
judging.py      compiles a model, runs it, and says what is wrong, in a process of its own
rounding.py     how far a right result may be from PyTorch's
searching.py    draws and judges until the time is up; shrinks what fails
writing.py      a failure as the text of a test
"""
