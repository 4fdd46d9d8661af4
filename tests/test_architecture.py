"""The house rules that a machine can check: who imports whom, and how large a room may be."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fedgraph

ROOT = Path(fedgraph.__file__).parent
EVERYTHING = None
ON_TORCH = (ROOT / "comparison" / "batch_descent.py", ROOT / "comparison" / "batch_transport.py")  # the path for a GPU

# What each room may import of ours. HOUSE.md's table, with these differences: `tasks` and `store`, `console`,
# `environment` are rooms of this house; `federation` and `report` read privacy's descriptions (units, events, desk); `tasks`
# and `report` count with `audit.one_run` what attacks on whole methods prove.
# `audit` breaks and runs the caps of `learning.sampling` that are shipped (numpy only; torch stays out, see below).
ALLOWED: dict[str, set[str] | None] = {
    "errors": set(),
    "settings": set(),
    "source": {"errors"},
    "validation": {"errors", "plugins", "source"},
    "types": {"errors"},
    "chacha": set(),
    "seeds": {"chacha"},
    "plugins": {"errors"},
    "compiled": set(),
    "privacy": {"errors", "compiled"},
    "learning": {"types", "errors", "seeds", "compiled"},
    "data": {"types", "seeds", "errors", "plugins", "settings", "source", "validation"},  # the manifest of a federation is YAML
    "partition": {"types", "seeds", "errors", "plugins", "settings"},
    "comparison": {"types", "seeds", "errors", "compiled"},
    "methods": {"privacy", "learning", "types", "errors", "seeds", "plugins", "settings"},
    "federation": {"methods", "privacy", "types", "errors", "seeds", "plugins", "settings", "compiled"},  # streams of masks
    "runtime": {"types", "errors"},
    "audit": {"privacy", "learning", "types", "errors", "seeds"},
    "report": {"privacy", "audit", "types", "errors", "plugins", "store", "settings", "entries"},
    "scenario": {"errors", "plugins", "settings", "source", "validation", "data"},
    "console": set(),
    "environment": {"types"},
    "cell": {"federation", "privacy", "runtime", "types"},
    "entries": {"privacy", "cell"},  # a finished cell as text: read by the store and by the report
    "store": {"cell", "entries", "errors"},
    "attacks": {  # data: the other graph that a link thief learns on
        "data", "methods", "federation", "learning", "audit", "privacy", "cell", "types", "errors", "seeds", "plugins",
        "settings",
    },
    "tasks": {
        "data", "partition", "methods", "federation", "privacy", "comparison", "learning", "runtime", "types", "errors",
        "seeds", "plugins", "audit", "attacks", "settings", "cell",
    },
    "preview": {"cells", "cell", "methods", "report", "console", "plugins"},  # the dry run
    "cells": {"scenario", "cell", "runtime", "console", "types", "errors", "plugins"},
    "pricing": {"privacy", "errors", "plugins"},
    "cli": EVERYTHING,
    "commands": EVERYTHING,
    "library": EVERYTHING,
    "probe": EVERYTHING,
    "shipped": {"errors", "plugins"},
    "files": {"errors"},
    "schema": {"scenario", "plugins"},
    "draft": {"data", "types", "errors", "draft_federation"},
    "draft_federation": set(),
    "runs": {"report", "errors"},
    "__main__": EVERYTHING,
    "experiment": EVERYTHING,
    "run": EVERYTHING,
    "__init__": {"pricing", "library", "runs", "cli"},
}  # fmt: skip


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> list[tuple[str, int]]:
    """Absolute names that the file imports, with their lines."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_what_its_room_may(path: Path) -> None:
    own = room(path)
    assert own in ALLOWED, f"{path}: a new room needs a line in ALLOWED that says what it may import"
    allowed = ALLOWED[own]
    for name, line in imports(path):
        parts = name.split(".")
        if parts[0] == "fedgraph" and len(parts) > 1 and allowed is not None:
            assert parts[1] in allowed | {own}, f"{path}:{line}: {own} may not import fedgraph.{parts[1]}"
        if parts[0] == "ray":
            assert path.parent == ROOT / "runtime" / "ray", f"{path}:{line}: only runtime/ray imports ray"
        if parts[0] in ("torch", "torch_geometric") and path not in ON_TORCH:
            assert own not in ("pricing", "privacy", "comparison", "report", "audit", "partition"), (
                f"{path}:{line}: {own} knows no torch"
            )


def between_rooms() -> dict[str, set[str]]:
    """Which room imports which others."""
    found: dict[str, set[str]] = {}
    for path in modules():
        names = (name.split(".") for name, _ in imports(path))
        found.setdefault(room(path), set()).update(n[1] for n in names if n[0] == "fedgraph" and len(n) > 1)
    return {own: (others & found.keys()) - {own} for own, others in found.items()}


def test_rooms_form_no_circle() -> None:
    """Whoever reads a room can read first what it stands on."""
    left = {own: set(others) for own, others in between_rooms().items()}
    while free := [own for own, others in left.items() if not others & left.keys()]:
        for own in free:
            del left[own]
    assert not left, f"these rooms import each other in a circle: {sorted(left)}"


def test_the_picture_of_how_data_flow_is_the_import_graph() -> None:
    """docs/dataflow.md: an arrow from a room to another says that the first uses the second; all arrows, and no others."""
    text = (ROOT.parent / "docs" / "dataflow.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^    (\w+) --> (\w+)$", text, re.M))
    shown = {name for arrow in drawn for name in arrow}
    found = {(own, other) for own, others in between_rooms().items() for other in others if {own, other} <= shown}
    assert drawn == found, f"only drawn: {sorted(drawn - found)}; not drawn: {sorted(found - drawn)}"
    assert {"data", "partition", "methods", "privacy", "federation", "tasks", "report", "experiment"} <= shown


@pytest.mark.parametrize("path", sorted((ROOT / "methods").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_method_imports_another(path: Path) -> None:
    method = path.relative_to(ROOT / "methods").parts[0].removesuffix(".py")
    for name, line in imports(path):
        if name.startswith("fedgraph.methods"):
            own = ("fedgraph.methods.base", f"fedgraph.methods.{method}.")
            assert name.startswith(own), f"{path}:{line}: a method knows its contract and no other method"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_setting_has_the_strict_base(path: Path) -> None:
    """A model straight from pydantic would read ``true`` as 1 and accept infinity and 10¹²."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and path != ROOT / "settings.py":
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            assert "BaseModel" not in bases, f"{path}:{node.lineno}: derive {node.name} from fedgraph.settings.Settings"


@pytest.mark.parametrize("name", ["utils", "helpers", "core", "manager", "common"])
def test_no_room_without_a_name(name: str) -> None:
    assert not [p for p in modules() if name in (p.stem, p.parent.name)]


def test_files_stay_readable() -> None:
    long = {str(p.relative_to(ROOT)): n for p in modules() if (n := len(p.read_text(encoding="utf-8").splitlines())) > 320}
    assert not long, f"split these: {long}"


def test_the_check_itself_sees_a_violation(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("from fedgraph.learning.layers import models\nimport torch\n", encoding="utf-8")
    assert imports(bad) == [("fedgraph.learning.layers.models", 1), ("torch", 2)]
