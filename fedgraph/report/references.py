"""The methods and data sets of a run, each with its papers.

A method's papers are read from its bibtex; papers.yaml has those of data sets, of comparison and of accounting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from fedgraph import plugins
from fedgraph.errors import ScenarioError
from fedgraph.report.phrases import read_phrase_asset

_FIELD = re.compile(r"(\w+)\s*=\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")  # name = {value}; braces inside may nest twice


@dataclass(frozen=True)
class Reference:
    """One paper."""

    text: str  # authors, title, where and when
    doi: str | None = None  # without ``https://doi.org/``; None where it has none


@dataclass(frozen=True)
class ReferencedEntry:
    """A method or a data set that a run used."""

    name: str
    idea: str
    papers: tuple[Reference, ...]


@cache
def _known() -> dict[str, Any]:
    return dict(yaml.safe_load(read_phrase_asset("papers.yaml")))


def _find(keys: Iterable[str]) -> tuple[Reference, ...]:
    return tuple(Reference(**_known()["papers"][key]) for key in keys)


def describe_referenced_method(name: str) -> ReferencedEntry:
    """The first sentence of a method's file, and the papers that it names; none for a row that is no method."""
    try:
        method = plugins.load("methods", name)
    except ScenarioError:
        return ReferencedEntry(name, "A row to compare with, not a method.", ())
    found = []
    for entry in re.split(r"(?m)^(?=@)", method.REFERENCE):
        fields = {name.lower(): value for name, value in _FIELD.findall(entry)}
        if fields:
            authors = [a.split(",")[0].strip() for a in re.split(r"\s+and\s+", fields.get("author", ""))]
            where = fields.get("booktitle") or fields.get("journal") or ""
            names = authors[0] + " et al" if len(authors) > 3 else " & ".join(authors)
            text = f"{names}. {fields.get('title', '')}. {where}, {fields.get('year', '')}."
            found.append(Reference(" ".join(re.sub(r"[{}]|\\[\"'`^~vc]", "", text).split()), fields.get("doi")))
    return ReferencedEntry(name, " ".join((method.__doc__ or "").strip().split("\n\n")[0].split()), tuple(found))


def describe_referenced_data(name: str) -> ReferencedEntry:
    """A data set with the paper that published it, by its family; none for generated and own graphs."""
    family = name.split("/", 1)[0]
    return ReferencedEntry(name, "", _find([_known()["data"][family]] if family in _known()["data"] else ()))


def describe_comparison(geometry: bool) -> tuple[Reference, ...]:
    """What no method names: the papers of comparing (where ``geometry`` was) and of counting."""
    return _find([*(_known()["geometry"] if geometry else ()), *_known()["accounting"]])
