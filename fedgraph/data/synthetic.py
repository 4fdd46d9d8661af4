"""Graphs by parameters, for trying out what a method does on a graph whose nature one chooses.

- ``synthetic/block_model``: one attributed graph of the degree-corrected contextual block model (``base.block_model``).
- ``synthetic/reddit_sized``: the same with the defaults of a graph of 46 million directed edges.
- ``synthetic/accounts``: a graph with kinds of nodes and edges, whose owners have several accounts at several banks.
- ``synthetic/molecules``: a collection of small graphs of two classes.

Parameters stand in the scenario and are validated here.

**Accounts.** Private people, shops and firms own accounts: a person one to three, a shop or firm one, each at a bank drawn at
random. Records are of three kinds: *card* payments go to shops of the payer's region that sell what the payer's segment buys,
*salaries* come from a firm of the region, *transfers* join private accounts of one region, or of one person. A record has two
owners, who pays and who is paid. What is known of an account: region (one in ten is written down wrong), age band, a few words
that follow the segment weakly, and its kind where kinds are columns. The label is the segment of private people; shops and
firms have none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph import seeds
from fedgraph.data import base
from fedgraph.data.base import block_model, drawn_graphs
from fedgraph.data.base.adjacencies import adjacency_of_owners, undirected_adjacency
from fedgraph.data.base.block_model import BlockModel
from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.types import Graph, GraphCollection, GraphProvenance, plain_graph

_REGIONS, _AGES, _SEGMENTS, WORDS = 6, 5, 4, 24
_WRONG = 0.1  # of the regions
_TYPICAL = 0.7  # of card payments go to shops that sell what the payer's segment buys


def _generate_accounts(model: _AccountsParams, name: str, seed: int) -> Graph:
    """The accounts, as the module says.

    Args:
        model: how many of what; shops and firms are a fifth and a fifteenth of the people (at least 24 and 6).

    Returns:
        A graph whose ``owner`` is the bank of each account; ``edge_owners`` name who pays and who is paid.
    """
    rng = seeds.seeded_generator(seed, "accounts", model.people)
    shops, firms = max(_SEGMENTS * _REGIONS, model.people // 5), max(_REGIONS, model.people // 15)
    several = np.concatenate([1 + rng.binomial(2, 0.4, size=model.people), np.ones(shops + firms, dtype=int)])
    person = np.repeat(np.arange(several.size), several)
    kind = np.repeat(np.repeat([0, 1, 2], [model.people, shops, firms]), several)  # private, shop, firm
    places = np.arange(shops)
    region = np.concatenate([rng.integers(_REGIONS, size=model.people), places % _REGIONS, np.arange(firms) % _REGIONS])
    people, sells = rng.integers(_SEGMENTS, size=model.people), places // _REGIONS % _SEGMENTS
    segment = np.concatenate([people, sells, rng.integers(_SEGMENTS, size=firms)])
    ends = np.concatenate([_records(what, model.records, person, kind, region, segment, rng) for what in model.edges])
    found = undirected_adjacency(ends[:, 0], ends[:, 1], person.size).adjacency
    columns = [_one_hot(np.where(rng.random(person.size) < _WRONG, rng.integers(_REGIONS, size=person.size), region[person]))]
    columns += [_one_hot(rng.integers(_AGES, size=several.size)[person])]
    fits = np.arange(WORDS)[None, :] % _SEGMENTS == segment[person][:, None]
    words = rng.random((person.size, WORDS)) < np.where(fits, 0.2, 0.1)
    columns += [words.astype(np.float32)] + ([_one_hot(kind)] if model.kinds == "columns" else [])
    labels = np.where(kind == 0, segment[person], -1)
    held = f"{person.size} generated accounts of {several.size} owners at {model.banks} banks"
    said = GraphProvenance("synthetic", f"SYNTHETIC: {held}, {', '.join(model.edges)}")
    graph = plain_graph(name, found, sp.csr_array(np.concatenate(columns, axis=1)), labels, _SEGMENTS, said)
    apart = ends[ends[:, 0] != ends[:, 1]]
    return replace(
        graph,
        owner=rng.integers(model.banks, size=person.size),
        owner_names=tuple(f"bank {place + 1}" for place in range(model.banks)),
        edge_owners=adjacency_of_owners(np.concatenate([apart, apart]), person[apart.T.ravel()], person.size),
    )


def _records(
    what: str, each: int, person: np.ndarray, kind: np.ndarray, region: np.ndarray, segment: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    ones = np.repeat(np.flatnonzero(kind == 0), each)
    here, of = region[person], segment[person]
    others = np.empty_like(ones)
    for place in range(_REGIONS):
        own = np.flatnonzero(here[ones] == place)
        near = np.flatnonzero((here == place) & (kind == {"card": 1, "salary": 2, "transfer": 0}[what]))
        others[own] = near[rng.integers(near.size, size=own.size)]
        if what == "card":
            for segment_ in range(_SEGMENTS):
                fitting = near[of[near] == segment_]
                buys = own[(of[ones[own]] == segment_) & (rng.random(own.size) < _TYPICAL)]
                others[buys] = fitting[rng.integers(fitting.size, size=buys.size)]
    if what == "transfer":  # a third of them between accounts of one person
        first, counts = np.searchsorted(person, person[ones]), np.bincount(person)[person[ones]]
        same = (rng.random(ones.size) < 1 / 3) & (counts > 1)
        others[same] = (first + rng.integers(counts))[same]
    if what == "salary":  # one firm for each person
        others = others[np.searchsorted(person[ones], person[ones])]
    return np.column_stack([ones, others]).astype(np.int64)


def _one_hot(values: np.ndarray) -> np.ndarray:
    return np.eye(int(values.max()) + 1, dtype=np.float32)[values]


class _BlockModelParams(Settings):
    """One graph; classes are of equal size up to one node."""

    nodes: int = Field(500, ge=1, description="nodes (count)")
    edges: int = Field(1500, ge=0, description="undirected edges (count)")
    classes: int = Field(4, ge=1, description="classes (count), at most one per node")
    features: int = Field(300, ge=1, description="vocabulary (number of words, binary features)")
    homophily: float = Field(0.8, ge=0, le=1, description="share of edges within a class (0 … 1)")
    words: float = Field(20.0, ge=1, description="mean number of distinct words per node")
    words_spread: float = Field(5.0, ge=0, description="standard deviation of words per node")
    degree_spread: float = Field(4.0, ge=0, description="standard deviation of degrees (edges)")
    closure: float = Field(0.2, ge=0, le=1, description="share of edges that close triangles (0 … 1)")
    topic_share: float = Field(0.4, ge=0, le=1, description="mean share of a node's words that come from its class (0 … 1)")

    @model_validator(mode="after")
    def _fits(self) -> _BlockModelParams:
        if self.classes > self.nodes:
            raise ValueError(f"{self.classes} classes but only {self.nodes} nodes; allowed: at most one class per node")
        if self.edges > self.nodes * (self.nodes - 1) // 4:
            raise ValueError(f"{self.edges} edges on {self.nodes} nodes; allowed: at most half of all pairs")
        if self.words > self.features:
            raise ValueError(f"{self.words:g} words per node; allowed: at most the vocabulary, {self.features}")
        return self


class _RedditSizedParams(_BlockModelParams):
    """The size of the Reddit graph of GAP and DPAR (116,713 nodes, 46,233,380 directed edges, 602 features, 8 classes).

    Reddit's features are dense embeddings and are not published with the papers; here they are binary words.
    """

    nodes: int = Field(116_713, ge=1, description="nodes (count)")
    edges: int = Field(23_116_690, ge=0, description="undirected edges (count)")
    classes: int = Field(8, ge=1, description="classes (count), at most one per node")
    features: int = Field(602, ge=1, description="vocabulary (number of words, binary features)")
    homophily: float = Field(0.9, ge=0, le=1, description="share of edges within a class (0 … 1)")
    words: float = Field(40.0, ge=1, description="mean number of distinct words per node")
    words_spread: float = Field(10.0, ge=0, description="standard deviation of words per node")
    degree_spread: float = Field(400.0, ge=0, description="standard deviation of degrees (edges)")
    closure: float = Field(0.0, ge=0, le=1, description="share of edges that close triangles (0 … 1)")
    topic_share: float = Field(0.3, ge=0, le=1, description="mean share of a node's words that come from its class (0 … 1)")


class _AccountsParams(Settings):
    """Accounts of people, shops and firms at several banks."""

    people: int = Field(600, ge=30, description="private people (count); shops and firms come beside them")
    banks: int = Field(4, ge=1, description="banks, at which accounts are drawn at random (count)")
    records: int = Field(4, ge=1, description="records of each kind for every private account (count)")
    edges: list[Literal["card", "salary", "transfer"]] = Field(
        ["card", "salary", "transfer"], min_length=1, description="kinds of edges that are kept; which kind one is, is dropped"
    )
    kinds: Literal["dropped", "columns"] = Field(
        "dropped", description="kinds of nodes: dropped, or public columns of features"
    )


class _MoleculesParams(Settings):
    """A collection of molecule-like graphs."""

    graphs: int = Field(60, ge=2, description="graphs (count), half of each class")


DATASETS: dict[str, type[_BlockModelParams] | type[_AccountsParams] | type[_MoleculesParams]] = {
    "block_model": _BlockModelParams,
    "reddit_sized": _RedditSizedParams,
    "accounts": _AccountsParams,
    "molecules": _MoleculesParams,
}


def load(dataset: str, request: base.PublishedRequest) -> Graph | GraphCollection:
    """A generated graph, or collection of graphs, drawn with ``request.seed``.

    Args:
        dataset: ``block_model``, ``reddit_sized`` and ``accounts`` are graphs, ``molecules`` is a collection.
        request: its parameters are those of the model in ``DATASETS``.

    Raises:
        ScenarioError: a parameter is wrong, or there is a path.
        DataError: so many edges cannot be placed.
    """
    key = f"synthetic/{dataset}"
    if request.path is not None:
        raise ScenarioError(f"data set {key!r} takes no path; use own/npz or own/csv for a file")
    params = base.validate_data_parameters(DATASETS[dataset], request.parameters, key)
    if isinstance(params, _AccountsParams):
        return _generate_accounts(params, key, request.seed)
    if isinstance(params, _MoleculesParams):
        detail = f"SYNTHETIC: {params.graphs} generated molecule-like graphs (seed {request.seed})"
        sizes = (params.graphs - params.graphs // 2, params.graphs // 2)
        said = GraphProvenance("synthetic", detail)
        return drawn_graphs.draw_collection(drawn_graphs.draw_molecule, sizes, key, request.seed, said)
    chosen = params.model_dump()
    nodes, classes = chosen.pop("nodes"), chosen.pop("classes")
    sizes = tuple(nodes // classes + (c < nodes % classes) for c in range(classes))
    model = BlockModel(sizes, chosen.pop("edges"), chosen.pop("features"), **chosen)
    detail = f"SYNTHETIC: a generated block model of {nodes} nodes and {model.num_edges} edges (seed {request.seed})"
    return block_model.draw(model, key, request.seed, GraphProvenance("synthetic", detail))
