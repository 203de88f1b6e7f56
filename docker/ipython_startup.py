"""IPython and notebook start-up: offers both engines by name."""

from tvm_practice.engines import activate, call, describe  # noqa: F401  # names for the session

# A notebook has no terminal to print to before its first cell.
if type(get_ipython()).__name__ == "TerminalInteractiveShell":  # type: ignore[name-defined]  # noqa: F821
    print(
        'A session holds one of two TVMs: activate("classic"), with Relay, AutoTVM and Ansor,\n'
        'or activate("current"), with Relax and MetaSchedule. Then `import tvm`.\n'
    )
