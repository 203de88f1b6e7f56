"""The exporter on cases that others wrote: operators, ONNX's backend tests, models.

    python -m conformance operators --samples 2
    make conformance KIND=operators

Each case is compiled untuned, run, and compared with the reference it comes with. Its verdict is

    right       the same values, types and shapes
    wrong       other values, without a word: always a defect
    refused     one line that says why, before anything ran
    raw         an error that nobody wrote for a person: a traceback, a crash, a hang
    left out    no case for the exporter: it draws random numbers, takes no tensor …
"""
