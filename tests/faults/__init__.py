"""Faults injected into the system calls of real runs; `make faults` injects hundreds.

A run of each scenario is recorded by strace. Then, for each system call with which it changes
something, the run is done again, and that call fails (a full disk, an I/O error) or the process is
killed at it. Afterwards what the project promises of that moment is checked.
"""
