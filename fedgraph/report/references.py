"""The bibliography of a run: its methods and data sets, each with its paper.

A method's papers are read from the bibtex in its file. Where that names no DOI, papers.yaml may know it by the bibtex key;
it also has the papers of data sets.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import yaml
from pydantic import TypeAdapter

from fedgraph import plugins
from fedgraph.errors import ScenarioError
from fedgraph.report.phrases import read_phrase_asset

_FIELD = re.compile(r"(\w+)\s*=\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")  # name = {value}; braces inside may nest twice


@dataclass(frozen=True)
class Reference:
    """One paper."""

    key: str  # its name in a page
    text: str  # authors, title, where and when
    doi: str | None = None  # without ``https://doi.org/``; None where it has none


@dataclass(frozen=True)
class ReferencedEntry:
    """A method or a data set that a run used."""

    name: str
    idea: str
    references: tuple[str, ...]

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True)
class _Bibliography:
    """What papers.yaml holds: papers that no method's file names."""

    dois: Mapping[str, str]  # key of a method's bibtex → DOI
    papers: Mapping[str, Mapping[str, str]]  # key → its text and, where it has one, its DOI
    data: Mapping[str, str]  # family of data sets → key
    geometry: tuple[str, ...]  # keys of the papers behind comparing graphs
    accounting: tuple[str, ...]  # keys of the papers behind counting privacy

    def find(self, *keys: str) -> tuple[Reference, ...]:
        """The papers of these keys."""
        return tuple(Reference(key, self.papers[key]["text"], self.papers[key].get("doi")) for key in keys)


@cache
def _known_papers() -> _Bibliography:
    return TypeAdapter(_Bibliography).validate_python(yaml.safe_load(read_phrase_asset("papers.yaml")))


def find_method_references(name: str) -> tuple[Reference, ...]:
    """The papers that a method's file names; none for a row that is no method, such as ``graph size``."""
    try:
        bibtex = plugins.load("methods", name).REFERENCE
        found = []
        for entry in re.split(r"(?m)^(?=@)", bibtex):
            head = re.match(r"@\w+\{([^,\s]+)", entry)
            fields = {name.lower(): value for name, value in _FIELD.findall(entry)}
            if head and fields:
                authors = [a.split(",")[0].strip() for a in re.split(r"\s+and\s+", fields.get("author", ""))]
                where = fields.get("booktitle") or fields.get("journal") or ""
                names = authors[0] + " et al" if len(authors) > 3 else " & ".join(authors)
                text = f"{names}. {fields.get('title', '')}. {where}, {fields.get('year', '')}."
                doi = fields.get("doi") or _known_papers().dois.get(head[1])
                found.append(Reference(head[1], " ".join(re.sub(r"[{}]|\\[\"'`^~vc]", "", text).split()), doi))
        return tuple(found)
    except ScenarioError:
        return ()


def find_data_references(name: str) -> tuple[Reference, ...]:
    """The paper that published a data set, by its family; none for generated and own graphs."""
    family = name.split("/", 1)[0]
    known = _known_papers()
    return known.find(known.data[family]) if family in known.data else ()


def describe_referenced_method(method: str) -> str:
    """The first sentence of the method's file."""
    try:
        words = (plugins.load("methods", method).__doc__ or "").strip().split("\n\n")[0]
    except ScenarioError:
        return "A row to compare with, not a method."
    return " ".join(words.split())


def collect_references(methods: Iterable[str], datasets: Iterable[str], geometry: bool) -> list[Reference]:
    """Every paper once: methods first, then data, then what counts and compares."""
    found = [r for name in methods for r in find_method_references(name)]
    found += [r for name in datasets for r in find_data_references(name)]
    if geometry:
        found += [*find_method_references("local_dp")[:1], *_known_papers().find(*_known_papers().geometry)]
    return list({r.key: r for r in [*found, *_known_papers().find(*_known_papers().accounting)]}.values())
