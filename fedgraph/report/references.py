"""The bibliography of a run: its methods and data sets, each with its paper.

A method's papers are read from the bibtex in its file. Where that names no DOI, ``DOIS`` may know it by the bibtex key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fedgraph import plugins
from fedgraph.errors import ScenarioError

DOIS = {
    "sajadmanesh2023gap": "10.48550/arXiv.2203.00949",
    "sajadmanesh2021locally": "10.1145/3460120.3484565",
    "abadi2016deep": "10.1145/2976749.2978318",
    "mcmahan2017communication": "10.48550/arXiv.1602.05629",
    "kipf2017semi": "10.48550/arXiv.1609.02907",
    "wei2024gcon": "10.48550/arXiv.2407.05034",
    "daigavane2021node": "10.48550/arXiv.2111.15521",
    "wu2022linkteller": "10.1109/SP46214.2022.9833806",
    "jin2022gromov": "10.48550/arXiv.2202.00808",
    "reddi2021adaptive": "10.48550/arXiv.2003.00295",
    "li2020federated": "10.48550/arXiv.1812.06127",
    "warner1965randomized": "10.1080/01621459.1965.10480775",
    "kearns2014mechanism": "10.1145/2554797.2554834",
    "fountoulakis2019variational": "10.1007/s10107-017-1214-8",
}


@dataclass(frozen=True)
class Reference:
    """One paper. key: its name in a page. doi: without ``https://doi.org/``; None where it has none."""

    key: str
    text: str
    doi: str | None = None


@dataclass
class LibraryEntry:
    """A method or a data set. idea: one sentence. references: keys of papers. rows: (anchor, name) of rows that use it."""

    name: str
    idea: str
    references: tuple[str, ...]
    rows: list[tuple[str, str]] = field(default_factory=list)
    facts: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


GEOMETRY = (
    Reference(
        "peyre2016gromov", "Peyré, Cuturi & Solomon. Gromov-Wasserstein Averaging of Kernel and Distance Matrices. ICML, 2016."
    ),
    Reference("flamary2021pot", "Flamary et al. POT: Python Optimal Transport. Journal of Machine Learning Research, 2021."),
)
ACCOUNTING = (
    Reference(
        "dong2022gaussian",
        "Dong, Roth & Su. Gaussian Differential Privacy. Journal of the Royal Statistical Society B, 2022.",
        "10.1111/rssb.12454",
    ),
    Reference(
        "near2025guidelines",
        "Near, Darais, Lefkovitz & Howarth. Guidelines for Evaluating Differential Privacy Guarantees. NIST SP 800-226, 2025.",
        "10.6028/NIST.SP.800-226",
    ),
)
DATA = {  # family of data sets → paper
    "planetoid": Reference(
        "yang2016revisiting",
        "Yang, Cohen & Salakhutdinov. Revisiting Semi-Supervised Learning with Graph Embeddings. ICML, 2016.",
        "10.48550/arXiv.1603.08861",
    ),
    "citation_full": Reference(
        "bojchevski2018deep",
        "Bojchevski & Günnemann. Deep Gaussian Embedding of Graphs: Unsupervised Inductive Learning via Ranking. ICLR, 2018.",
        "10.48550/arXiv.1707.03815",
    ),
    "coauthor": Reference(
        "shchur2018pitfalls",
        "Shchur, Mumme, Bojchevski & Günnemann. Pitfalls of Graph Neural Network Evaluation. arXiv, 2018.",
        "10.48550/arXiv.1811.05868",
    ),
    "geom_gcn": Reference(
        "pei2020geom",
        "Pei, Wei, Chang, Lei & Yang. Geom-GCN: Geometric Graph Convolutional Networks. ICLR, 2020.",
        "10.48550/arXiv.2002.05287",
    ),
    "tu": Reference(
        "morris2020tudataset",
        "Morris et al. TUDataset: A Collection of Benchmark Datasets for Learning with Graphs. arXiv, 2020.",
        "10.48550/arXiv.2007.08663",
    ),
}
DATA["amazon"] = DATA["coauthor"]
DATA["facebook100"] = Reference(
    "traud2012social",
    "Traud, Mucha & Porter. Social Structure of Facebook Networks. Physica A, 2012.",
    "10.1016/j.physa.2011.12.021",
)
DATA["twitch"] = Reference(
    "rozemberczki2021multi",
    "Rozemberczki, Allen & Sarkar. Multi-Scale Attributed Node Embedding. Journal of Complex Networks, 2021.",
    "10.1093/comnet/cnab014",
)


DATA["ogbn"] = Reference(
    "hu2020open",
    "Hu et al. Open Graph Benchmark: Datasets for Machine Learning on Graphs. NeurIPS, 2020.",
    "10.48550/arXiv.2005.00687",
)
DATA["graphsage"] = Reference(
    "hamilton2017inductive",
    "Hamilton, Ying & Leskovec. Inductive Representation Learning on Large Graphs. NeurIPS, 2017.",
    "10.48550/arXiv.1706.02216",
)
DATA["graphsaint"] = Reference(
    "zeng2020graphsaint",
    "Zeng, Zhou, Srivastava, Kannan & Prasanna. GraphSAINT: Graph Sampling Based Inductive Learning Method. ICLR, 2020.",
    "10.48550/arXiv.1907.04931",
)
DATA["elliptic"] = Reference(
    "weber2019anti",
    "Weber et al. Anti-Money Laundering in Bitcoin: Experimenting with Graph Convolutional Networks. arXiv, 2019.",
    "10.48550/arXiv.1908.02591",
)
DATA["gap"] = Reference(
    "sajadmanesh2023gap",
    "Sajadmanesh, Shamsabadi, Bellet & Gatica-Perez. GAP: Differentially Private Graph Neural Networks with Aggregation "
    "Perturbation. USENIX Security, 2023.",
)


def papers_of_method(name: str) -> tuple[Reference, ...]:
    """The papers that a method's file names; none for a row that is no method, such as ``graph size``."""
    try:
        return tuple(_parsed(plugins.load("methods", name).REFERENCE))
    except ScenarioError:
        return ()


def papers_of_data(name: str) -> tuple[Reference, ...]:
    """The paper that published a data set, by its family; none for generated and own graphs."""
    family = name.split("/", 1)[0]
    return (DATA[family],) if family in DATA else ()


def idea_of(method: str) -> str:
    """The first sentence of the method's file."""
    try:
        words = (plugins.load("methods", method).__doc__ or "").strip().split("\n\n")[0]
    except ScenarioError:
        return "A row to compare with, not a method."
    return " ".join(words.split())


def collect_papers(methods: Iterable[str], datasets: Iterable[str], geometry: bool) -> list[Reference]:
    """Every paper once: methods first, then data, then what counts and compares."""
    found = [r for name in methods for r in papers_of_method(name)]
    found += [r for name in datasets for r in papers_of_data(name)]
    if geometry:
        found += [*papers_of_method("local_dp")[:1], *GEOMETRY]
    return list({r.key: r for r in [*found, *ACCOUNTING]}.values())


def keys(references: Sequence[Reference]) -> tuple[str, ...]:
    return tuple(r.key for r in references)


def _parsed(bibtex: str) -> list[Reference]:
    found = []
    for entry in re.split(r"(?m)^(?=@)", bibtex):
        head = re.match(r"@\w+\{([^,\s]+)", entry)
        fields = _fields(entry)
        if head and fields:
            authors = [a.split(",")[0].strip() for a in re.split(r"\s+and\s+", fields.get("author", ""))]
            where = fields.get("booktitle") or fields.get("journal") or ""
            names = authors[0] + " et al" if len(authors) > 3 else " & ".join(authors)
            text = f"{names}. {fields.get('title', '')}. {where}, {fields.get('year', '')}."
            doi = fields.get("doi") or DOIS.get(head[1])
            found.append(Reference(head[1], " ".join(re.sub(r"[{}]|\\[\"'`^~vc]", "", text).split()), doi))
    return found


def _fields(entry: str) -> dict[str, str]:
    """name → value of ``name = {value}``; braces inside a value may nest."""
    found = {}
    for start in re.finditer(r"(\w+)\s*=\s*\{", entry):
        depth, end = 1, start.end()
        while depth and end < len(entry):
            depth += {"{": 1, "}": -1}.get(entry[end], 0)
            end += 1
        found[start[1].lower()] = entry[start.end() : end - 1]
    return found
