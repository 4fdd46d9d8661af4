"""A generated graph with kinds of nodes and edges, whose people own several accounts at several banks.

Private people, shops and firms own accounts: a person one to three, a shop or firm one, each at a bank drawn at random.
Records are of three kinds: *card* payments go to shops of the payer's region that sell what the payer's segment buys,
*salaries* come from a firm of the region, *transfers* join private accounts of one region, or of one person. A record has two
owners, who pays and who is paid. What is known of an account: region (one in ten is written down wrong), age band, a few words
that follow the segment weakly, and its kind where kinds are columns. The label is the segment of private people; shops and
firms have none.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.data.base.structure import edge_owners, undirected
from fedgraph.types import Graph, Provenance, plain_graph

KINDS = ("card", "salary", "transfer")  # of edges
REGIONS, AGES, SEGMENTS, WORDS = 6, 5, 4, 24
WRONG = 0.1  # of the regions
TYPICAL = 0.7  # of card payments go to shops that sell what the payer's segment buys


@dataclass(frozen=True)
class Accounts:
    """people: private ones; shops and firms are a fifth and a fifteenth of them. records: of each kind, for each person."""

    people: int
    banks: int
    records: int
    edges: tuple[str, ...]
    kinds_as_columns: bool


def generate_accounts(model: Accounts, name: str, seed: int) -> Graph:
    """The graph; ``owner`` is the bank of each account, ``edge_owners`` name who pays and who is paid."""
    rng = seeds.generator(seed, "accounts", model.people)
    shops, firms = max(SEGMENTS * REGIONS, model.people // 5), max(REGIONS, model.people // 15)
    several = np.concatenate([1 + rng.binomial(2, 0.4, size=model.people), np.ones(shops + firms, dtype=int)])
    person = np.repeat(np.arange(several.size), several)
    kind = np.repeat(np.repeat([0, 1, 2], [model.people, shops, firms]), several)  # private, shop, firm
    region = np.concatenate([rng.integers(REGIONS, size=model.people), np.arange(shops) % REGIONS, np.arange(firms) % REGIONS])
    segment = np.concatenate(
        [rng.integers(SEGMENTS, size=model.people), np.arange(shops) // REGIONS % SEGMENTS, rng.integers(SEGMENTS, size=firms)]
    )
    ends = np.concatenate([_records(what, model.records, person, kind, region, segment, rng) for what in model.edges])
    found = undirected(ends[:, 0], ends[:, 1], person.size).adjacency
    columns = [_one_hot(np.where(rng.random(person.size) < WRONG, rng.integers(REGIONS, size=person.size), region[person]))]
    columns += [_one_hot(rng.integers(AGES, size=several.size)[person])]
    words = rng.random((person.size, WORDS)) < np.where(
        np.arange(WORDS)[None, :] % SEGMENTS == segment[person][:, None], 0.2, 0.1
    )
    columns += [words.astype(np.float32)] + ([_one_hot(kind)] if model.kinds_as_columns else [])
    labels = np.where(kind == 0, segment[person], -1)
    said = (
        f"SYNTHETIC: {person.size} generated accounts of {several.size} owners at {model.banks} banks, {', '.join(model.edges)}"
    )
    graph = plain_graph(
        name, found, sp.csr_array(np.concatenate(columns, axis=1)), labels, SEGMENTS, Provenance("synthetic", said)
    )
    apart = ends[ends[:, 0] != ends[:, 1]]
    return replace(
        graph,
        owner=rng.integers(model.banks, size=person.size),
        owner_names=tuple(f"bank {place + 1}" for place in range(model.banks)),
        edge_owners=edge_owners(np.concatenate([apart, apart]), person[apart.T.ravel()], person.size),
    )


def _records(
    what: str, each: int, person: np.ndarray, kind: np.ndarray, region: np.ndarray, segment: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """int64 [m, 2], accounts of one kind of records, ``each`` for every private account."""
    ones = np.repeat(np.flatnonzero(kind == 0), each)
    here, of = region[person], segment[person]
    others = np.empty_like(ones)
    for place in range(REGIONS):
        own = np.flatnonzero(here[ones] == place)
        near = np.flatnonzero((here == place) & (kind == {"card": 1, "salary": 2, "transfer": 0}[what]))
        others[own] = near[rng.integers(near.size, size=own.size)]
        if what == "card":
            for segment_ in range(SEGMENTS):
                fitting = near[of[near] == segment_]
                buys = own[(of[ones[own]] == segment_) & (rng.random(own.size) < TYPICAL)]
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
