"""The tests; a package, so that they import what they share from here and not from another one called `tests`."""

import pytest

for name in ("", ".basis", ".cli", ".estimators", ".solve"):
    pytest.register_assert_rewrite(f"tests{name}.common")
