"""A file is a plugin: ``method: gcon`` loads ``fedgraph/methods/gcon``, a file or a package. Nothing is listed anywhere.

What the plugins of a room share stands in its ``base``, which is no plugin.
"""

import difflib
import importlib
import pkgutil
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from fedgraph.errors import ScenarioError

PLUGIN_HOME = Path(__file__).parent
PLUGIN_CONTRACTS = {  # what a file of each room holds; what it means stands in the room's ``base``
    "attacks": ("REFERENCE", "NEEDS", "VIEWER", "GAME", "Params", "refuses", "attack"),
    "data": ("DATASETS", "load"),
    "methods": ("REFERENCE", "OFFERS", "Params", "plan", "start", "prepare", "client", "server"),
    "partition": ("PARTITION", "Params"),
    "report.sections": ("KINDS", "build"),
    "tasks": ("TASK", "Params", "plugins_of", "cells", "plan", "run"),
}


@lru_cache
def names(package: str) -> list[str]:
    """Plugins of ``fedgraph.<package>``, sorted, also from folders that were added to its ``__path__``.

    Folders are read once per process, and nothing of them is imported.
    """
    found = (m.name for m in pkgutil.iter_modules(plugin_folders(package)))
    return sorted(n for n in found if n not in ("base", "__main__"))


def plugin_folders(package: str) -> list[str]:
    """Where plugins of ``fedgraph.<package>`` lie: its folder, and what was added to its ``__path__``."""
    loaded = sys.modules.get(f"fedgraph.{package}")
    return list(loaded.__path__) if loaded else [str(PLUGIN_HOME.joinpath(*package.split(".")))]


@lru_cache
def load(package: str, name: str) -> ModuleType:
    """The module ``fedgraph.<package>.<name>``, imported once per process.

    Args:
        package: a room, or a folder of one, such as ``report.sections``.
        name: of the file or package, as a scenario writes it.

    Raises:
        ScenarioError: there is none, with the allowed names; or the file lacks a part of its room's contract.
    """
    allowed = names(package)
    if name not in allowed:
        raise ScenarioError(
            f"unknown {package.split('.')[-1].rstrip('s')} {name!r}{suggest_plugin_name(name, allowed)}; allowed: "
            f"{', '.join(allowed)}"
        )
    module = importlib.import_module(f"fedgraph.{package}.{name}")
    if missing := [part for part in PLUGIN_CONTRACTS.get(package, ()) if part not in vars(module)]:
        raise ScenarioError(f"fedgraph/{package.replace('.', '/')}/{name} lacks {', '.join(missing)}; see CONTRIBUTING.md")
    return module


def suggest_plugin_name(found: str, allowed: list[str]) -> str:
    """``; did you mean 'x'?`` when something allowed looks like ``found``, else nothing.

    Args:
        found: what was written.
        allowed: what could have been meant; the closest one is named where ``difflib`` finds it similar (ratio 0.6 or more).
    """
    close = difflib.get_close_matches(found, allowed, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
