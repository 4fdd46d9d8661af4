"""The house rules that a machine can check: who imports whom, and how large a room may be."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import fedgraph

ROOT = Path(fedgraph.__file__).parent
EVERYTHING = None
WITHOUT_TORCH = ("pricing", "privacy", "comparison", "report", "audit", "partition")
ON_TORCH = (ROOT / "comparison" / "batch_descent.py", ROOT / "comparison" / "batch_transport.py")  # the path for a GPU

# What each room may import of ours: HOUSE.md's table. `cells` (what a cell is and leaves behind) and `documents` (texts that
# users write, read with their lines) are rooms of this house. `federation` and `report` read privacy's descriptions; `tasks`
# and `report` count with `audit.one_run` what attacks on whole methods prove. `audit` breaks and runs the caps of
# `learning.sampling` that are shipped (numpy only; torch stays out, see below).
ALLOWED: dict[str, set[str] | None] = {
    "errors": set(),
    "types": {"errors"},
    "seeds": set(),
    "plugins": {"errors"},
    "compiled": set(),
    "documents": {"errors", "plugins"},
    "privacy": {"errors", "compiled"},
    "learning": {"types", "errors", "seeds", "compiled"},
    "data": {"types", "seeds", "errors", "plugins", "documents"},  # the manifest of a federation is YAML
    "partition": {"types", "seeds", "errors", "plugins", "documents"},
    "comparison": {"types", "seeds", "errors", "compiled"},
    "methods": {"privacy", "learning", "types", "errors", "seeds", "plugins", "documents"},
    "federation": {"methods", "privacy", "types", "errors", "seeds", "plugins", "documents", "compiled"},  # streams of masks
    "runtime": {"types", "errors"},
    "audit": {"privacy", "learning", "types", "errors", "seeds"},
    "cells": {"federation", "privacy", "runtime", "types", "errors"},
    "worlds": {"data", "partition", "methods", "learning", "privacy", "types", "errors", "documents", "seeds", "plugins"},
    "attacks": {  # data: the other graph that a link thief learns on
        "data", "methods", "federation", "learning", "audit", "privacy", "cells", "types", "errors", "seeds", "plugins",
        "documents",
    },
    "tasks": {
        "data", "partition", "worlds", "methods", "federation", "privacy", "comparison", "learning", "runtime", "types",
        "errors", "seeds", "plugins", "audit", "attacks", "documents", "cells",
    },
    "report": {"privacy", "audit", "types", "errors", "plugins", "cells", "documents"},
    "pricing": {"privacy", "errors", "plugins"},
    "scenario": {"errors", "plugins", "documents", "data", "types", "methods"},
    "runs": EVERYTHING,
    "commands": EVERYTHING,
    "library": EVERYTHING,
    "__main__": EVERYTHING,
    "run": EVERYTHING,
    "__init__": {"pricing", "library", "runs", "commands"},
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


def violations(path: Path) -> list[str]:
    """One sentence for each import of the file that its room may not make."""
    own = room(path)
    if own not in ALLOWED:
        return [f"{path}: a new room needs a line in ALLOWED that says what it may import"]
    allowed, wrong = ALLOWED[own], []
    for name, line in imports(path):
        parts = name.split(".")
        if parts[0] == "fedgraph" and len(parts) > 1 and allowed is not None and parts[1] not in allowed | {own}:
            wrong.append(f"{path}:{line}: {own} may not import fedgraph.{parts[1]}")
        if parts[0] == "ray" and path.parent != ROOT / "runtime" / "ray":
            wrong.append(f"{path}:{line}: only runtime/ray imports ray")
        if parts[0] in ("torch", "torch_geometric") and path not in ON_TORCH and own in WITHOUT_TORCH:
            wrong.append(f"{path}:{line}: {own} knows no torch")
        if own == "methods" and name.startswith("fedgraph.methods"):
            method = path.relative_to(ROOT / "methods").parts[0].removesuffix(".py")
            if not name.startswith(("fedgraph.methods.base", f"fedgraph.methods.{method}.")):
                wrong.append(f"{path}:{line}: a method knows its contract and no other method")
    return wrong


def test_every_file_imports_only_what_its_room_may() -> None:
    wrong = [why for path in modules() for why in violations(path)]
    assert not wrong, "\n".join(wrong)


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
    assert {"data", "partition", "methods", "privacy", "federation", "tasks", "report", "runs"} <= shown


def test_every_setting_has_the_strict_base() -> None:
    """A model straight from pydantic would read ``true`` as 1 and accept infinity and 10¹²."""
    wrong = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and path != ROOT / "documents" / "settings.py":
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                if "BaseModel" in bases:
                    wrong.append(f"{path}:{node.lineno}: derive {node.name} from fedgraph.documents.settings.Settings")
    assert not wrong, "\n".join(wrong)


def test_no_room_without_a_name() -> None:
    drawers = {"utils", "helpers", "core", "manager", "common"}
    assert not [p for p in modules() if drawers & {p.stem, p.parent.name}]


def test_no_file_hides_behind_an_underscore() -> None:
    assert not [p for p in modules() if p.stem.startswith("_") and not p.stem.startswith("__")]


def test_files_stay_readable() -> None:
    long = {str(p.relative_to(ROOT)): n for p in modules() if (n := len(p.read_text(encoding="utf-8").splitlines())) > 320}
    assert not long, f"split these: {long}"


def test_the_check_itself_sees_a_violation(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("from fedgraph.learning.layers import models\nimport torch\n", encoding="utf-8")
    assert imports(bad) == [("fedgraph.learning.layers.models", 1), ("torch", 2)]
