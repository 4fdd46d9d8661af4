"""The bibliography of a run, read from the bibtex of the pieces it used."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fedgraph import plugins
from fedgraph.errors import ScenarioError

GEOMETRY = (
    "Peyré, Cuturi & Solomon. Gromov-Wasserstein Averaging of Kernel and Distance Matrices. ICML, 2016.",
    "Flamary et al. POT: Python Optimal Transport. Journal of Machine Learning Research, 2021.",
)
ACCOUNTING = ("Dong, Roth & Su. Gaussian Differential Privacy. Journal of the Royal Statistical Society B, 2022.",)


def of(methods: Iterable[str], geometry: bool) -> list[str]:
    """One line per paper, methods first."""
    lines: list[str] = []
    for name in methods:
        try:
            lines += _lines(plugins.load("methods", name).REFERENCE)
        except ScenarioError:  # a baseline row such as "graph size" is no method
            continue
    if geometry:
        lines += [*_lines(plugins.load("methods", "local_dp").REFERENCE)[:1], *GEOMETRY]
    return list(dict.fromkeys([*lines, *ACCOUNTING]))


def _lines(bibtex: str) -> list[str]:
    found = []
    for entry in re.split(r"(?m)^(?=@)", bibtex):
        fields = dict(re.findall(r"(\w+)\s*=\s*\{((?:[^{}]|\{[^{}]*\})*)\}", entry))
        if fields:
            authors = [a.split(",")[0] for a in fields.get("author", "").split(" and ")]
            where = fields.get("booktitle") or fields.get("journal") or ""
            names = authors[0] + " et al" if len(authors) > 3 else " & ".join(authors)
            text = f"{names}. {fields.get('title', '')}. {where}, {fields.get('year', '')}."
            found.append(re.sub(r"[{}]|\\\"", "", text))
    return found
