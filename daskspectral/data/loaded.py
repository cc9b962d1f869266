"""Classes of libraries that are slow to import, without importing them."""

from __future__ import annotations

import sys
from typing import Any


def loaded(*names: str) -> tuple[type[Any], ...]:
    """The classes of these names, such as "xarray.DataArray", whose modules are imported: others have no instances.

    Examples
    --------
    >>> import numpy as np
    >>> isinstance(np.zeros(2), loaded("numpy.ndarray", "a_package.that_is_not_imported.Array"))
    True
    """
    found = (getattr(sys.modules.get(home), name, None) for home, _, name in (n.rpartition(".") for n in names))
    return tuple(cls for cls in found if isinstance(cls, type))
