"""Put first on PYTHONPATH, this has a process that is started for real fork what it starts."""

import os
import sys

if "TVM_PRACTICE_TEST_FORKS" in os.environ:
    from tests import forks

    forks.use()
    # What is run may have tests of its own.
    for name in [each for each in sys.modules if each.partition(".")[0] == "tests"]:
        del sys.modules[name]
