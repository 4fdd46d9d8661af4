"""AMLSim: simulated payments between the accounts of several banks, some of them laundering money.

IBM/AMLSim (Apache-2.0), sample ``20K_fanin200cycle200``: 20,000 accounts and 120,558 transfers, with 200 fan-in and 200 cycle
patterns. ``nodes.csv`` marks 1,804 accounts as fraud (its description says 1,803: account 19999 is marked without a
fraudStep). ``nodes.csv``: account, isFraud, initial balance, fraudStep; ``transactions.csv``: source, target, value, time.

``amlsim/20k`` is a graph of accounts. An edge joins two accounts between which money moved at least once, in either
direction. The label is ``isFraud``. Transfers become features of both their accounts: initial balance, and for each
direction the number of transfers, of distinct partners, the sum, the mean, the largest value and its share of the sum, the
first and last time, and the mean time; then the ratio of money in to money out and the number of partners in both
directions. Amounts and counts enter as log(1 + x), times as a share of the simulated period.

**Banks.** Accounts are dealt to ``banks`` banks at random (a public fact of the simulation; the published sample has one bank).
A transfer between banks is known to both, so both accounts' features count it, and its edge leaves the bank
(``cut_edges``). ``fraudStep`` says when an account was first used for laundering and is never a feature.

**What this means for a guarantee.** A transfer stands in the features of two accounts. Taking one account away changes its
partners' features too. So ``features_from_edges`` is set, and a guarantee per node on these features speaks of the
account's own row only: methods say so, or refuse.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph import seeds
from fedgraph.data import base
from fedgraph.data.base import published
from fedgraph.data.base.adjacencies import undirected_adjacency
from fedgraph.data.base.files import RawFiles
from fedgraph.documents import Settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, plain_graph


class Params(Settings):
    """How accounts are dealt to banks."""

    banks: int = Field(10, ge=1, le=1000, description="banks that the accounts are dealt to (count)")
    sizes: float = Field(1.0, ge=0, le=3, description="how unequal banks are: bank k gets a share proportional to 1/k^sizes")


DATASETS = {name: replace(data, parameters=Params) for name, data in published.records_of("amlsim").items()}


def load(dataset: str, request: base.PublishedRequest) -> Graph:
    """``20k``; see :func:`fedgraph.data.load`. Its parameters are those of ``Params``."""
    if request.path is not None:
        raise ScenarioError(f"data set 'amlsim/{dataset}' takes no path; name a data root")
    params = base.validate_data_parameters(Params, request.parameters, f"amlsim/{dataset}")
    graph = _accounts(dataset, replace(request, parameters={}))
    return _with_banks(graph, params, request.seed)


def _with_banks(graph: Graph, params: Params, seed: int) -> Graph:
    """The graph with ``owner`` drawn at random; sizes follow 1/k^sizes and every bank gets at least one account."""
    if params.banks > graph.num_nodes:
        raise DataError(f"{params.banks} banks for {graph.num_nodes} accounts; allowed: 1 … {graph.num_nodes}")
    weights = 1.0 / np.arange(1, params.banks + 1) ** params.sizes
    counts = 1 + np.floor((graph.num_nodes - params.banks) * weights / weights.sum()).astype(np.int64)
    counts[0] += graph.num_nodes - counts.sum()
    owner = seeds.seeded_generator(seed, "data", graph.name, "banks").permutation(np.repeat(np.arange(params.banks), counts))
    return replace(graph, owner=owner, owner_names=tuple(f"bank {k + 1}" for k in range(params.banks)))


def _read(data: base.PublishedData, raw: RawFiles) -> Graph:
    accounts, transfers = (published.table(raw, name) for name in data.files)
    n = len(accounts)
    source, target = (transfers[side].to_numpy(np.int64) for side in ("sourceNodeId", "targetNodeId"))
    value, time = (transfers[name].to_numpy(np.float64) for name in ("value", "time"))
    columns = sp.csr_array(_features(accounts["init_balance"].to_numpy(), source, target, value, time).astype(np.float32))
    adjacency, labels = undirected_adjacency(source, target, n).adjacency, accounts["isFraud"].to_numpy(np.int64)
    graph = plain_graph(data.key, adjacency, columns, labels, 2, raw.provenance(data.title))
    return replace(graph, features_from_edges=True, columns_from_rows=data.columns_from_rows)


def _features(balance: np.ndarray, source: np.ndarray, target: np.ndarray, value: np.ndarray, time: np.ndarray) -> np.ndarray:
    """[n, 19] as the module says; an account without a transfer in a direction has zeros there."""
    n, period = balance.size, max(float(time.max(initial=1.0)), 1.0)
    columns = [np.log1p(np.maximum(balance, 0.0))]
    sums, partners = [], []
    for one, other in ((source, target), (target, source)):
        count = np.bincount(one, minlength=n).astype(float)
        total = np.bincount(one, value, minlength=n)
        largest, last, first = np.zeros(n), np.zeros(n), np.full(n, period)
        np.maximum.at(largest, one, value)
        np.maximum.at(last, one, time)
        np.minimum.at(first, one, time)
        pairs = np.unique(one * n + other)
        distinct = np.bincount(pairs // n, minlength=n).astype(float)
        some, few = count > 0, np.maximum(count, 1.0)
        columns += [np.log1p(count), np.log1p(distinct), np.log1p(total), np.log1p(total / few), np.log1p(largest)]
        columns += [np.where(total > 0, largest / np.maximum(total, 1e-12), 0.0)]
        columns += [np.where(some, first / period, 0.0), np.where(some, last / period, 0.0)]
        columns += [np.bincount(one, time, minlength=n) / few / period]
        sums.append(total)
        partners.append(pairs)
    both = np.intersect1d(partners[0], partners[1])
    columns += [sums[1] / np.maximum(sums[0] + sums[1], 1e-12), np.log1p(np.bincount(both // n, minlength=n))]
    return np.column_stack(columns)


_accounts = published.loader(DATASETS, _read, published.PublishedData.generated)
