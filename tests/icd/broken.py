"""A module that cannot be imported, for the tests."""

import a_package_that_nobody_has  # type: ignore[import-not-found]  # noqa: F401
