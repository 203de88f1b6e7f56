"""`farm.local`, under the name by which lab files begun in an earlier edition import it."""

from tvm_practice.farm.local import LocalFarm, SilentServer, free_port

__all__ = ["LocalFarm", "SilentServer", "free_port"]
