"""Names of Python that the documents use exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import fedgraph

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}


def exists(dotted: str) -> bool:
    """Whether a module, or a name of a module or of a class in one, has this dotted name."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def names_in(text: str) -> set[str]:
    """What a page imports, calls or documents."""
    imported = {
        f"{module}.{name.strip()}"
        for module, names in re.findall(r"\bfrom (fedgraph[\w.]*) import ([\w, ]+)", text)
        for name in names.split(",")
    }
    documented = re.findall(r"^::: (fedgraph[\w.]+)", text, re.M)
    return imported | {*documented, *re.findall(r"(?<![\w/.-])(fedgraph\.\w+)\(", text)}


def test_what_pages_import_call_or_document_exists() -> None:
    found = {page: names_in(text) for page, text in TEXTS.items()}
    there = {name for name in set().union(*found.values()) if exists(name)}
    assert {str(page.relative_to(ROOT)): names - there for page, names in found.items() if names - there} == {}


def test_the_documents_are_looked_through() -> None:
    assert exists("fedgraph.compare")
    assert exists("fedgraph.privacy.accounting.calibrate.noise_multiplier_of")
    assert not exists("fedgraph.privacy.accounting.calibrate.noise_multiplier")
    assert sum("fedgraph.compare(" in text for text in TEXTS.values()) >= 2
    assert fedgraph.compare
