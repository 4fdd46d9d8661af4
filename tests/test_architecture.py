"""The house rules that a machine can check: who imports whom, and what names may be."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import fedgraph

ROOT = Path(fedgraph.__file__).parent
EVERYTHING = None
WITHOUT_TORCH = ("pricing", "privacy", "comparison", "report", "audit", "partition")
ON_TORCH = (ROOT / "comparison" / "batched.py",)  # POT on a GPU

# What each room may import of ours; docs/dataflow.md says what each of them is for. `federation` and `report` read privacy's
# descriptions; `tasks` and `report` count with `audit.one_run` what attacks on whole methods prove.
ALLOWED: dict[str, set[str] | None] = {
    "errors": set(),
    "types": {"errors"},
    "seeds": set(),
    "plugins": {"errors"},
    "compiled": set(),
    "printing": set(),
    "documents": {"errors", "plugins"},
    "privacy": {"errors", "compiled", "printing"},
    "learning": {"types", "errors", "seeds", "compiled"},
    "data": {"types", "seeds", "errors", "plugins", "documents"},  # the manifest of a federation is YAML
    "partition": {"types", "seeds", "errors", "plugins", "documents"},
    "comparison": {"types", "seeds", "errors", "compiled"},
    "methods": {"privacy", "learning", "types", "errors", "seeds", "plugins", "documents"},
    "federation": {"methods", "partition", "privacy", "types", "errors", "seeds", "plugins"},
    "runtime": {"types", "errors", "plugins"},
    "audit": {"privacy", "errors", "types"},
    "cells": {"comparison", "federation", "privacy", "runtime", "types", "errors", "printing"},
    "attacks": {  # data: the other graph that a link thief learns on
        "data", "methods", "federation", "learning", "audit", "privacy", "cells", "types", "errors", "seeds", "plugins",
        "documents", "printing",
    },
    "tasks": {
        "data", "partition", "methods", "federation", "privacy", "comparison", "learning", "runtime", "types",
        "errors", "seeds", "plugins", "audit", "attacks", "documents", "cells",
    },
    "models": {
        "scenario", "tasks", "cells", "methods", "data", "privacy", "runtime", "documents", "types", "errors",
        "seeds", "plugins",
    },
    "report": {"privacy", "federation", "audit", "types", "errors", "plugins", "cells", "documents"},
    "pricing": {"privacy", "errors", "plugins", "documents"},
    "scenario": {"privacy", "errors", "plugins", "documents", "data", "types", "methods", "tasks"},
    "runs": EVERYTHING,
    "export": EVERYTHING,  # what stands in a project imports `export.site` alone
    "commands": EVERYTHING,
    "library": EVERYTHING,
    "private_model": EVERYTHING,
    "__main__": EVERYTHING,
    "run": EVERYTHING,
    "__init__": {"data", "pricing", "library", "private_model", "models", "runs", "commands", "printing"},
}  # fmt: skip


@functools.cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(ROOT.rglob("*.py")))


@functools.cache
def tree(path: Path) -> tuple[ast.AST, ...]:
    """Every node of the file's syntax tree."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").splitlines())


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@functools.cache
def imports(path: Path) -> list[tuple[str, int]]:
    """Absolute names that the file imports, with their lines."""
    found = []
    for node in tree(path):
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
            if not f"{name}.".startswith(("fedgraph.methods.base.", f"fedgraph.methods.{method}.")):
                wrong.append(f"{path}:{line}: a method knows its contract and no other method")
    return wrong


def test_every_file_imports_only_what_its_room_may() -> None:
    wrong = [why for path in modules() for why in violations(path)]
    assert not wrong, "\n".join(wrong)


def front_of(folder: Path) -> set[str]:
    """What a room offers: the names in its ``__init__.pyi``, which are imported when they are first asked for."""
    stub = folder / "__init__.pyi"
    if not stub.exists():
        return set()
    return {a.asname or a.name for n in tree(stub) if isinstance(n, ast.ImportFrom) for a in n.names}


def test_a_room_is_entered_by_its_front() -> None:
    """Other rooms import what a room offers, never a file inside it."""
    wrong = []
    for path in modules():
        for node in tree(path):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("fedgraph."):
                continue
            parts = str(node.module).split(".")
            folder = ROOT / parts[1]
            if parts[1] == room(path) or not folder.is_dir():
                continue
            names = {alias.name for alias in node.names}
            offered = front_of(folder) or names_of(folder / "__init__.py")
            if len(parts) > 2:
                wrong.append(f"{path}:{node.lineno}: {node.module} is a file inside a room; import from fedgraph.{parts[1]}")
            elif unknown := names - offered:
                wrong.append(f"{path}:{node.lineno}: fedgraph.{parts[1]} does not offer {', '.join(sorted(unknown))}")
    assert not wrong, "\n".join(wrong)


def test_a_front_offers_what_is_there() -> None:
    for stub in sorted(ROOT.rglob("__init__.pyi")):
        package = importlib.import_module(".".join(("fedgraph", *stub.parent.relative_to(ROOT).parts)))
        for name in front_of(stub.parent):
            assert getattr(package, name) is not None, (stub, name)
            assert name in package.__all__, (stub, name)


def test_every_room_has_its_line_in_the_document() -> None:
    text = (ROOT.parent / "docs" / "dataflow.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \| .+ \|$", text, re.M)
    assert sorted(named) == sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists())
    loose = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
    assert not {name for name in loose if f"`{name}`" not in text}


def test_the_guide_for_contributors_names_all_that_a_method_offers() -> None:
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    offers = next(
        n for n in tree(ROOT / "methods" / "base" / "contract.py") if isinstance(n, ast.ClassDef) and n.name == "Offers"
    )
    fields = [n.target.id for n in offers.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    assert len(fields) > 10
    assert not [name for name in fields if f"`{name}`" not in text]
    files = re.findall(r"`((?:fedgraph|tests|docs|scenarios)/[\w/.]+\w)`", text)
    assert not [name for name in files if not (ROOT.parent / name).exists()]


def test_tests_of_quality_name_rooms() -> None:
    """A room that is none would never change, and its tests would never run."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT.parent / "tests").rglob("test_*.py") if path.stem != "test_ci"]
    named = set(
        re.findall(r'"(\w+)"', " ".join(rooms for text in texts for rooms in re.findall(r"mark\.quality\((.*?)\)", text)))
    )
    assert named
    assert not [name for name in named if not (ROOT / name).is_dir()]


def test_every_setting_has_the_strict_base() -> None:
    """A model straight from pydantic would read ``true`` as 1 and accept infinity and 10¹².

    The manifest of an export is strict, and its numbers are as large as its methods make them.
    """
    others = [path for path in modules() if path not in (ROOT / "documents/settings.py", ROOT / "pricing/readers/exported.py")]
    classes = [(path, node) for path in others for node in tree(path) if isinstance(node, ast.ClassDef)]
    wrong = [f"{path}: {n.name}" for path, n in classes if "BaseModel" in [b.id for b in n.bases if isinstance(b, ast.Name)]]
    assert not wrong, f"derive these from fedgraph.documents.settings.Settings: {wrong}"


def test_no_room_without_a_name_and_no_file_behind_an_underscore() -> None:
    drawers = {"utils", "helpers", "core", "manager", "common"}
    assert not [p for p in modules() if drawers & {p.stem, p.parent.name} or (p.stem[0] == "_" and p.stem[:2] != "__")]


# What a module-level name may not be: it tells nothing where it is read.
SAYS_NOTHING = {"of", "found", "joined", "told", "shown", "number", "made"}


def module_level_names(path: Path) -> Iterator[str]:
    body = next(node for node in tree(path) if isinstance(node, ast.Module)).body
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def test_names_say_what_they_name() -> None:
    there = [f"{path}: {name}" for path in modules() for name in module_level_names(path) if name in SAYS_NOTHING]
    assert not there, f"say what these are or do: {there}"


def by_module() -> dict[str, Path]:
    """``fedgraph.methods.gcon`` → its file."""
    return {".".join(p.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in modules()}


def in_circles(reached: dict[str, set[str]]) -> set[str]:
    """What is left when all that leads nowhere, or where nothing leads, is taken out again and again."""
    while True:
        used = set().union(*reached.values())
        left = {name: others & reached.keys() for name, others in reached.items() if name in used and others}
        if left == reached:
            return set(left)
        reached = left


def test_neither_files_nor_rooms_form_a_circle() -> None:
    """Whoever reads a room can read first what it stands on. Imports inside functions count, too."""
    files, rooms = by_module(), dict[str, set[str]]()
    reached: dict[str, set[str]] = {}
    for name, path in files.items():
        for imported, _ in imports(path):
            found = imported if imported in files else imported.rpartition(".")[0]
            reached.setdefault(name, set()).update(files.keys() & {found} - {name})
            if imported.startswith("fedgraph."):
                rooms.setdefault(room(path), set()).add(imported.split(".")[1])
    rooms = {own: (others & rooms.keys()) - {own} for own, others in rooms.items()}
    assert not in_circles(reached), f"these import each other: {in_circles(reached)}"
    assert not in_circles(rooms), f"these rooms import each other: {in_circles(rooms)}"


# Lines of the package that name ``Any``, or ask an object for a name that its type may not have. Lower them as they fall.
MOST_ANY, MOST_ASKED = 252, 22


def test_types_say_what_things_are() -> None:
    # What objects of libraries hold that are not imported (``pricing.recorder``) can only be asked for by name.
    everything = [line for path in modules() if path.name != "recorder.py" for line in lines(path)]
    for most, pattern, what in ((MOST_ANY, r"\bAny\b", "Any"), (MOST_ASKED, r"\b(get|has)attr\(", "getattr or hasattr")):
        there = sum(bool(re.search(pattern, line)) for line in everything)
        assert there <= most, f"{there} lines with {what}; allowed: {most}. Say the type"


# Everything outside the package that imports from it: documents in their blocks of Python, the notebook, benchmarks, tests.
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


def texts_of_python() -> Iterator[tuple[str, str]]:
    """(where, source) of all Python outside the package."""
    top = ROOT.parent
    for path in sorted([*(top / "benchmarks").glob("*.py"), *(top / "tests").rglob("*.py")]):
        if "files" not in path.parts:  # configurations of other systems
            yield str(path.relative_to(top)), path.read_text(encoding="utf-8")
    for path in sorted([*top.glob("*.md"), *(top / "docs").rglob("*.md")]):
        for block in BLOCK.findall(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(top)), block
    for cell in json.loads((top / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "docs/notebook.ipynb", "".join(line for line in cell["source"] if not line.startswith(("%", "!")))


def names_of(path: Path) -> set[str]:
    """All that a module holds: what it defines, assigns and imports, and the modules inside its folder."""
    own = set(module_level_names(path)) | {p.stem for p in path.parent.iterdir() if path.name == "__init__.py"}
    if path.name == "__init__.py":
        own |= front_of(path.parent)
    return own | {
        a.asname or a.name.partition(".")[0] for n in tree(path) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names
    }


def test_what_is_imported_outside_the_package_is_there() -> None:
    files, wrong = by_module(), []
    for where, text in texts_of_python():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                wanted = [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                wanted = [(node.module or "", alias.name) for alias in node.names]
            else:
                continue
            for module, name in wanted:
                if module.partition(".")[0] == "fedgraph":
                    path = files.get(module)
                    if path is None or (name and f"{module}.{name}" not in files and name not in names_of(path)):
                        wrong.append(f"{where}: {module} {name}")
    for page in (ROOT.parent / "README.md", *(ROOT.parent / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for name in [*re.findall(r"^::: (fedgraph[\w.]+)", text, re.M), *re.findall(r"(?<![\w/.-])(fedgraph\.\w+)\(", text)]:
            module, _, last = name.rpartition(".")
            if name not in files and last not in names_of(files.get(module, ROOT / "__init__.py")) | {*fedgraph.__all__}:
                wrong.append(f"{page}: {name}")
    assert not wrong, "these are not there: " + "; ".join(wrong)


def test_the_checks_see_a_violation(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    text = "from fedgraph.learning.layouts import Layout\nimport torch\n\n\ndef of(x):\n    return x\n\n\nshown, other = 1, 2\n"
    bad.write_text(text, encoding="utf-8")
    assert imports(bad) == [("fedgraph.learning.layouts.Layout", 1), ("torch", 2)]
    assert list(module_level_names(bad)) == ["of", "shown", "other"]
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {"b", "c"}


def test_the_package_raises_and_asserts_nothing() -> None:
    """``python -O`` takes assertions away."""
    asserted = [f"{path}:{node.lineno}" for path in modules() for node in tree(path) if isinstance(node, ast.Assert)]
    assert not asserted
