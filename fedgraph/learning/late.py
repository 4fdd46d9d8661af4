"""torch, imported when something of it is first used: a driver and a server that only plan, merge and write never need it.

A file that takes ``torch`` from here postpones its annotations (``from __future__ import annotations``), and makes no class,
default or constant of torch's at its top.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch as torch
else:

    class _Torch:
        """Stands for the module; the import lock makes threads that use it at once wait for one import."""

        def __getattr__(self, name: str) -> object:
            vars(self).update(vars(importlib.import_module("torch")))
            return vars(self)[name]

    torch = _Torch()
