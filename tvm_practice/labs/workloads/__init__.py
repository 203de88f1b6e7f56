"""Five workloads in nine ways: what the lab `compilers_compared` counts, runs and times.

    problems        the workloads: shapes and inputs
    verifying       the exact results, and whether another is near enough
    frameworks      the frameworks they are written in, and which are missing here
    in_numpy …      a file for each framework; in it a function for each workload, and `load`
    process         a process that holds one framework
    first_result    a program that ends with its first verified result
    counting        which functions of a file a workload needs
    portability     for which targets each compiles on this machine
    comparing       puts all of it together

Each file of a framework defines the five functions, named as the workloads are, and

    load(workload, inputs)      a `Loaded` of that workload, compiled

Such a file imports its framework at its top, so it is imported only where `frameworks` finds that
framework installed.
"""
