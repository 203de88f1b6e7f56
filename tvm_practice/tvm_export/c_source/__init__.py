"""A model as a C function: a straight line of calls, without TVM's runtime and virtual machine.

    write(export, "runs/net")       net.h, net.c, net_kernels.o, net.weights, …

`program` reads the calls, their arguments' places and the weights from the model's IR. `kernels`
compiles its functions to take plain pointers. `writing` renders the C around them from the
templates here; `checking` compiles that, runs it, and compares what it computes.
"""
