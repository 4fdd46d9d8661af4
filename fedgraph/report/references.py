"""The methods and data sets of a run, each with its papers.

A method's papers are read from its bibtex; papers.yaml has those of data sets, of comparison and of accounting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import yaml

from fedgraph import plugins
from fedgraph.errors import ScenarioError
from fedgraph.report.phrases import read_phrase_asset

_FIELD = re.compile(r"(\w+)\s*=\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")  # name = {value}; braces inside may nest twice


class Paper(NamedTuple):
    text: str  # authors, title, where and when
    doi: str | None = None  # without ``https://doi.org/``; None where it has none


@cache
def _known() -> dict[str, Any]:
    return dict(yaml.safe_load(read_phrase_asset("papers.yaml")))


def _find(keys: Sequence[str]) -> list[Paper]:
    return [Paper(**_known()["papers"][key]) for key in keys]


@cache
def method(name: str) -> tuple[str, list[Paper]]:
    """(the first sentence of a method's file, the papers that it names); none for a row that is no method."""
    try:
        module = plugins.load("methods", name)
    except ScenarioError:
        return "A row to compare with, not a method.", []
    found = []
    for entry in re.split(r"(?m)^(?=@)", module.REFERENCE):
        fields = {name.lower(): value for name, value in _FIELD.findall(entry)}
        if fields:
            authors = [a.split(",")[0].strip() for a in re.split(r"\s+and\s+", fields.get("author", ""))]
            where = fields.get("booktitle") or fields.get("journal") or ""
            names = authors[0] + " et al" if len(authors) > 3 else " & ".join(authors)
            text = f"{names}. {fields.get('title', '')}. {where}, {fields.get('year', '')}."
            found.append(Paper(" ".join(re.sub(r"[{}]|\\[\"'`^~vc]", "", text).split()), fields.get("doi")))
    return " ".join((module.__doc__ or "").strip().split("\n\n")[0].split()), found


def data(name: str) -> list[Paper]:
    """The paper that published a data set, by its family; none for generated and own graphs."""
    return _find([key for family, key in _known()["data"].items() if family == name.split("/", 1)[0]])


def comparison(geometry: bool) -> list[Paper]:
    """What no method names: the papers of comparing (where ``geometry`` was) and of counting."""
    return _find([*(_known()["geometry"] if geometry else ()), *_known()["accounting"]])
