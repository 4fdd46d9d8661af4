"""Names of Python that the documents use exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_imports_calls_or_documents_exists(page: Path) -> None:
    text = TEXTS[page]
    named = [
        f"{module}.{name.strip()}"
        for module, names in re.findall(r"\bfrom (fedgraph[\w.]*) import ([\w, ]+)", text)
        for name in names.split(",")
    ]
    named += re.findall(r"^::: (fedgraph[\w.]+)", text, re.M)
    named += re.findall(r"(?<![\w/.-])(fedgraph\.\w+)\(", text)
    missing = [name for name in named if not exists(name)]
    assert not missing, f"{page.relative_to(ROOT)} names what does not exist: {missing}"


def test_the_documents_are_looked_through() -> None:
    assert exists("fedgraph.compare")
    assert exists("fedgraph.privacy.accounting.calibrate.noise_multiplier_of")
    assert not exists("fedgraph.privacy.accounting.calibrate.noise_multiplier")
    assert sum("fedgraph.compare(" in text for text in TEXTS.values()) >= 2
    assert fedgraph.compare
