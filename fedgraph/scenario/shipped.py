"""The scenarios that come with fedgraph, found by name: ``fedgraph run citeseer`` works in any folder."""

import os
from pathlib import Path

from fedgraph import plugins
from fedgraph.errors import ScenarioError

_HERE = Path(__file__).parents[1]
_FOLDERS = (_HERE / "scenarios", _HERE.parent / "scenarios")  # in an installed package; in a checkout


def _shipped_folder() -> Path:
    """Where the shipped scenarios lie."""
    for place in _FOLDERS:
        if place.is_dir() and any(place.glob("*.yaml")):
            return place
    raise ScenarioError("this installation holds no scenarios; install fedgraph-privacy again")


def names() -> list[str]:
    """Every shipped scenario, sorted."""
    return sorted(path.stem for path in _shipped_folder().glob("*.yaml"))


def find(given: str | Path) -> Path:
    """The file that a user names.

    Args:
        given: A path, or the name of a shipped scenario.

    Returns:
        The path. A text with a suffix of YAML or with a folder in it is a path, whether there is such a file or not.

    Raises:
        ScenarioError: It is neither a file nor a name; the message says what is near.
    """
    if not isinstance(given, (str, os.PathLike)):
        raise ScenarioError(f"scenario: found {given!r}; allowed: a file, the name of a shipped scenario, or a mapping")
    path = Path(given)
    if path.exists() or path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return path
    known = names()
    if str(given) in known:
        return _shipped_folder() / f"{given}.yaml"
    hint = plugins.suggest_plugin_name(str(given), known)
    raise ScenarioError(f"{given}: neither a file nor a shipped scenario{hint}; shipped: {', '.join(known)}")


def title(name: str) -> str:
    """The title of a shipped scenario.

    Args:
        name: One of ``names()``.

    Returns:
        One line; empty where the scenario has no title.
    """
    lines = (_shipped_folder() / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("title:").strip(" '\"") for line in lines if line.startswith("title:")), "")
