"""The two-worlds test: nothing private leaves beside the desk.

A program is run on one data set and again on a neighbour, under the relation of its own guarantee. In the first world a
``FirstWorld`` writes down each value after bounding and before noise, and what the desk released in its place. In the second a
``SecondWorld`` compares the desk's bounded value with the recorded one, in the norm in which the noise is priced, and hands out
*the first world's* release. So whatever is computed from releases is the same in both worlds by construction, and whatever
leaves must be the same, byte for byte (``first_difference``). What differs was read from private data beside the desk.
``runs.two_worlds`` runs whole cells so.

    changes                what one unit's data may become in the other world
    _stated_distance       how far neighbouring values may be apart, from noise and price alone
    FirstWorld, SecondWorld  witnesses of every desk (``privacy.desk.witness_desks``)
    first_difference       where two values are not equal to the last bit

What it cannot show: the law of the noise itself, and time at the machine. Those are the other audits'.
"""

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from fedgraph.privacy import (
    Assumption,
    DeskMoment,
    Guarantee,
    NeighbourSums,
    ObjectivePerturbation,
    PerBlock,
    PlannedRelease,
    Protection,
    Relation,
    Unit,
    Viewer,
    edge_mechanisms,
    events,
    local_bits,
    noise,
)
from fedgraph.types import Graph, GraphProvenance, Partition, Subgraph

_ROUNDING = 1e-6  # of a stated distance: sums are taken in another order
_DIGITS = 1e-6  # of the largest number: noise is added in single precision
_Kind: TypeAlias = Literal[
    "zeroed", "replaced", "relabelled", "unlinked", "edge gone", "edge new", "owner gone", "client replaced"
]


# ---------------------------------------------------------------------------------------------------------------- neighbours


@dataclass(frozen=True)
class Change:
    """What one unit's data become in the other world.

    Attributes:
        kind: ``zeroed`` (no features, no edges, no label), ``replaced`` (another node's features and label, other edges),
            ``relabelled``, ``unlinked`` (no edges), ``edge gone``, ``edge new``, ``owner gone`` (all records that an owner has
            a part in) or ``client replaced`` (all that a client holds).
        one: the node, the smaller end of the edge, the owner or the client.
        other: the larger end of the edge; of a replaced node, whose features it gets; else −1.
        edges: of a replaced node, the ends of its new edges; None: it keeps those that it has.
        rows: (first, how many): of a client that holds several graphs, the one that is replaced; None: all that it holds.
        why: why this unit: it is the hub, or the last id.
    """

    kind: _Kind
    one: int
    other: int = -1
    edges: tuple[int, ...] | None = None
    rows: tuple[int, int] | None = None
    why: str = ""

    @property
    def words(self) -> str:
        what = f"edge {self.one}–{self.other}" if self.kind.startswith("edge") else str(self.one)
        return f"{self.kind} {what}" + (f" ({self.why})" if self.why else "")

    def of(self, graph: Graph) -> Graph:
        """The neighbour of ``graph``. Digests of its files are others, too, as those of other files would be."""
        changed = _changed_graph(graph, self)
        return replace(changed, provenance=_other_files(graph.provenance))

    def of_partition(self, partition: Partition) -> Partition:
        """The same clients and nodes, with what each holds in the other world; numbers are those of the whole graph."""
        return replace(partition, subgraphs=tuple(self._of_client(share) for share in partition.subgraphs))

    def _of_client(self, share: Subgraph) -> Subgraph:
        if self.kind == "client replaced":
            rows = self.rows or (0, share.graph.num_nodes)
            return share if share.client != self.one else replace(share, graph=_replaced_graph(share.graph, *rows))
        place = {int(node): row for row, node in enumerate(share.nodes)}
        one, other = place.get(self.one), place.get(self.other)
        cut = share.cut
        if self.kind == "edge gone" and cut is not None:
            ends = {(one, self.other), (other, self.one)}
            cut = cut[[(int(row), int(away)) not in ends for row, away in cut]] if len(cut) else cut
        if self.kind in ("zeroed", "unlinked") and cut is not None and len(cut):
            cut = cut[(cut[:, 0] != (-1 if one is None else one)) & (cut[:, 1] != self.one)]
        local: Change | None = None
        if self.kind in ("edge gone", "edge new"):
            local = None if one is None or other is None else replace(self, one=min(one, other), other=max(one, other))
        elif one is not None:
            edges = None if self.edges is None else tuple(place[e] for e in self.edges if e in place)
            local = replace(self, one=one, other=-1 if other is None else other, edges=edges)
        graph = share.graph if local is None else _changed_graph(share.graph, local)
        return replace(share, graph=replace(graph, provenance=_other_files(graph.provenance)), cut=cut)


def _other_files(provenance: GraphProvenance) -> GraphProvenance:
    """Of people's own data; the files of published data are public as they are."""
    if provenance.source != "own":
        return provenance
    others = dict.fromkeys(provenance.checksums, "digest of the other world's file")
    return replace(provenance, detail=f"{provenance.detail}; in the other world other counts", checksums=others)


def _changed_graph(graph: Graph, change: Change) -> Graph:
    one, other = change.one, change.other
    if change.kind == "owner gone":
        return _without_owner(graph, one)
    if change.kind in ("edge gone", "edge new"):
        return _with_edges(graph, [(one, other)], there=change.kind == "edge new")
    ends = graph.adjacency.indices[graph.adjacency.indptr[one] : graph.adjacency.indptr[one + 1]]
    if change.kind in ("zeroed", "unlinked") or (change.kind == "replaced" and change.edges is not None):
        graph = _with_edges(graph, [(one, int(end)) for end in ends], there=False)
    if change.kind == "replaced" and change.edges is not None:
        graph = _with_edges(graph, [(one, end) for end in change.edges if end != one], there=True)
    if change.kind == "unlinked":
        return graph
    labels, features = graph.labels.copy(), graph.features
    validation = None if graph.validation is None else graph.validation.copy()
    if change.kind == "zeroed":
        labels[one] = -1
        features = _with_row(features, one, None)
        if validation is not None:
            validation[one] = -1
    elif labels[one] >= 0:
        labels[one] = (labels[one] + 1) % max(1, graph.num_classes)
    if change.kind == "replaced" and other >= 0:
        features = _with_row(features, one, features[[other]])
    return replace(graph, labels=labels, features=features, validation=validation)


def _with_row(matrix: sp.csr_array, row: int, content: sp.csr_array | None) -> sp.csr_array:
    given = sp.csr_array((1, matrix.shape[1]), dtype=matrix.dtype) if content is None else content
    found = sp.csr_array(sp.vstack([matrix[:row], given, matrix[row + 1 :]], format="csr"), dtype=matrix.dtype)
    found.sort_indices()
    found.indices, found.indptr = found.indices.astype(matrix.indices.dtype), found.indptr.astype(matrix.indptr.dtype)
    return found


def _with_edges(graph: Graph, pairs: Sequence[tuple[int, int]], *, there: bool) -> Graph:
    if not pairs:
        return graph
    ends = np.array([*pairs, *((v, u) for u, v in pairs)], dtype=np.int64)
    shape, old = graph.adjacency.shape, graph.adjacency
    mark = sp.csr_array((np.ones(len(ends), dtype=old.dtype), (ends[:, 0], ends[:, 1])), shape=shape)
    mark.data[:] = 1
    kept = sp.csr_array(old - old * mark)
    adjacency = sp.csr_array(kept + mark) if there else kept
    adjacency.eliminate_zeros()
    adjacency.sort_indices()
    owners = tuple(sp.csr_array(owned - owned * mark.astype(owned.dtype)) for owned in graph.edge_owners)
    for owned in owners:
        owned.eliminate_zeros()
        owned.sort_indices()
    for made in (adjacency, *owners):  # numbers of the same type as before
        made.indices, made.indptr = made.indices.astype(old.indices.dtype), made.indptr.astype(old.indptr.dtype)
    return replace(graph, adjacency=adjacency.astype(old.dtype), edge_owners=owners)


def _without_owner(graph: Graph, owner: int) -> Graph:
    mine = [owned.tocoo() for owned in graph.edge_owners]
    touched = {(int(u), int(v)) for m in mine for u, v, who in zip(m.row, m.col, m.data, strict=True) if who == owner + 1}
    if graph.one_owner_a_record:  # the records that others have of the same edge stay
        others = {(int(u), int(v)) for m in mine for u, v, who in zip(m.row, m.col, m.data, strict=True) if who != owner + 1}
        left = []
        for owned in graph.edge_owners:
            fewer = owned.copy()
            fewer.data[fewer.data == owner + 1] = 0
            fewer.eliminate_zeros()
            left.append(sp.csr_array(fewer))
        graph, touched = replace(graph, edge_owners=tuple(left)), touched - others
    return _with_edges(graph, sorted((u, v) for u, v in touched if u < v), there=False)


def _replaced_graph(graph: Graph, first: int, count: int) -> Graph:
    """Another graph of the same size in these rows: a star, features in another order of nodes, every label the next one."""
    mine = np.arange(first, first + count)
    keep = sp.diags_array((~np.isin(np.arange(graph.num_nodes), mine)).astype(graph.adjacency.dtype), format="csr")
    adjacency = sp.csr_array(keep @ graph.adjacency @ keep, dtype=graph.adjacency.dtype)
    adjacency.eliminate_zeros()
    star = _with_edges(replace(graph, adjacency=adjacency), [(first, int(node)) for node in mine[1:]], there=True)
    order = np.arange(graph.num_nodes)
    order[mine] = mine[::-1]
    labels = graph.labels.copy()
    labels[mine] = np.where(labels[mine] >= 0, (labels[mine] + 1) % max(1, graph.num_classes), -1)
    return replace(star, features=sp.csr_array(graph.features[order]), labels=labels)


def changes(graph: Graph, protection: Protection, nodes: np.ndarray | None = None) -> list[Change]:
    """Changes under the relation of ``protection``, those that hurt most first.

    Hubs, isolated nodes, first and last ids, rare labels and largest values are among the units. Neighbours that break what the
    protection assumes (a promised degree, public edges) are not there: they are no neighbours.

    Args:
        graph: the data.
        protection: whose relation and assumptions hold.
        nodes: int, the nodes that are private; None: all of them.
    """
    private = np.arange(graph.num_nodes) if nodes is None else np.asarray(nodes, dtype=np.int64)
    relation, found = protection.relation, list[Change]()
    if relation is Relation.ENTITY_LINKS:
        owners = Counter(int(who) - 1 for owned in graph.edge_owners for who in owned.data)
        return [Change("owner gone", owner, why=why) for owner, why in _first_last_most(owners)]
    if relation.unit is Unit.EDGE:
        found += _edge_changes(graph, private)
    elif relation.unit is Unit.NODE:
        fixed = Assumption.EDGES_PUBLIC in protection.assumptions
        for node, why in _notable_nodes(graph, private):
            other = int(private[-1] if node != private[-1] else private[0])
            if relation is Relation.NODE_LINKS:
                found.append(Change("unlinked", node, why=why))
            elif relation is Relation.NODE_ZERO_OUT:
                found.append(Change("zeroed", node, why=why))
            else:
                moved = None if fixed else tuple(int(v) for v in private[:: max(1, private.size // 3)][:3])
                found += [Change("replaced", node, other, moved, why=why), Change("relabelled", node, why=why)]
    most = protection.promised_degree or protection.degree_limit
    if most is not None and graph.degrees.max(initial=0) <= most:
        found = [change for change in found if _changed_graph(graph, change).degrees.max(initial=0) <= most]
    return found


def _first_last_most(counts: Mapping[int, int]) -> list[tuple[int, str]]:
    if not counts:
        return []
    named = {max(counts, key=lambda k: (counts[k], -k)): "has most records"}
    for unit, why in ((min(counts), "first"), (max(counts), "last")):
        named.setdefault(unit, why)
    return list(named.items())


def _notable_nodes(graph: Graph, private: np.ndarray) -> list[tuple[int, str]]:
    degrees, labels = graph.degrees[private], graph.labels[private]
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    rarest = int(np.where(sizes > 0, sizes, sizes.max() + 1).argmin())
    largest = np.asarray(abs(graph.features).sum(axis=1)).ravel()[private] if graph.num_features else degrees
    wanted: list[tuple[np.ndarray, str]] = [
        (np.array([degrees.argmax()]), "hub"),
        (np.array([private.size - 1]), "last id"),
        (np.flatnonzero((labels == rarest) & (labels >= 0)), "rare label"),
        (np.flatnonzero(degrees == 0), "no edge"),
        (np.array([0]), "first id"),
        (np.array([largest.argmax()]), "largest features"),
        (np.flatnonzero(labels < 0), "no label"),
    ]
    named: dict[int, str] = {}
    for places, why in wanted:
        if places.size:
            named.setdefault(int(private[places[0]]), why)
    return list(named.items())


def _edge_changes(graph: Graph, private: np.ndarray) -> list[Change]:
    inside = np.zeros(graph.num_nodes, dtype=bool)
    inside[private] = True
    upper = sp.triu(graph.adjacency, 1).tocoo()
    keep = inside[upper.row] & inside[upper.col]
    pairs = np.column_stack([upper.row[keep], upper.col[keep]]).astype(int)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))] if len(pairs) else pairs
    found = list[Change]()
    if len(pairs):
        weight = graph.degrees[pairs].sum(axis=1)
        hubs, leaf = int(weight.argmax()), int(weight.argmin())
        picks = [(0, "first edge"), (hubs, "between hubs"), (len(pairs) - 1, "last edge"), (leaf, "leaf")]
        named: dict[int, str] = {}
        for place, why in picks:
            named.setdefault(place, why)
        found += [Change("edge gone", int(pairs[place, 0]), int(pairs[place, 1]), why=why) for place, why in named.items()]
    if graph.edge_owners:
        return found  # a new edge would need an owner
    order = private[np.argsort(graph.degrees[private], kind="stable")]
    for one, other, why in ((order[-1], order[0], "hub and loner"), (private[0], private[-1], "first and last id")):
        u, v = sorted((int(one), int(other)))
        if u != v and not graph.adjacency[u, v]:
            found.insert(1, Change("edge new", u, v, why=why))
    return found


def client_changes(partition: Partition, graphs: Sequence[Sequence[int]] = ()) -> list[Change]:
    """Of a relation that replaces a whole graph: that of the largest and of the last client.

    Args:
        partition: who holds what.
        graphs: where a client holds several graphs, the nodes of each (``PublicFacts.graphs``): its largest is replaced.
    """
    sizes = {share.client: share.graph.num_nodes for share in partition.subgraphs}
    found = []
    for client, why in _first_last_most(sizes):
        rows = None
        if graphs:
            which = int(np.argmax(graphs[client]))
            rows = (sum(graphs[client][:which]), graphs[client][which])
        found.append(Change("client replaced", client, rows=rows, why=why))
    return found


# ----------------------------------------------------------------------------------------------------------------- distances


@dataclass(frozen=True)
class _StatedDistance:
    """How far two neighbouring bounded values may be apart.

    Attributes:
        norm: ``l2``, ``l1``, ``rows`` (so many rows, each at most ``each`` in its largest entry) or ``cells`` (rows that only
            one of the two has).
        most: the largest distance of one client's values.
        each: of ``rows``.
    """

    norm: Literal["l2", "l1", "rows", "cells"]
    most: float
    each: float = math.inf

    def of(self, one: np.ndarray, other: np.ndarray) -> float:
        """The distance of two values, as a multiple of ``most``."""
        if self.norm == "cells":
            first, second = ({tuple(row) for row in value.tolist()} for value in (one, other))
            moved = float(len(first ^ second))
        else:
            change = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
            if self.norm == "l2":
                moved = float(np.linalg.norm(change.ravel()))
            elif self.norm == "l1":
                moved = float(np.abs(change).sum())
            else:
                by_row = np.abs(change).reshape(change.shape[0], -1).max(axis=1, initial=0) if change.size else np.zeros(0)
                moved = math.inf if (by_row > self.each * (1 + _ROUNDING)).any() else float((by_row > 0).sum())
        return moved / self.most if self.most else (0.0 if moved == 0 else math.inf)


def _stated_distance(release: PlannedRelease, shares: int, hiding: int) -> _StatedDistance | None:
    """What the noise of a release is priced for, read from its mechanism and its event alone.

    A Gaussian release of standard deviation s at multiplier σ is priced for Δ₂ = s/σ (of n clients whose noise adds up in what
    is seen, √n·s/σ); Laplace noise of scale b for Δ₁ = b/σ; a pick by Gumbel noise of scale b for b·ε/2 in each entry; bits and
    responses for so many rows as their event counts. Of rows that are drawn by coins the same coins fell in both worlds, so
    each row that the unit touches may move.

    release: as planned. shares: noised values that its event prices together (the steps of a walk). hiding: clients whose noise
    is in what the viewer sees. Returns none where the price rests on a law that no distance states (a perturbed objective, how
    often somebody is mentioned): the other audits measure that.
    """
    leaves = [(leaf.event if isinstance(leaf, events.PartOf) else leaf, count) for leaf, count in events.flatten(release.event)]
    leaves = [(leaf, count) for leaf, count in leaves if not (isinstance(leaf, events.ApproxDP) and not leaf.epsilon)]
    if len(leaves) != 1:
        return None
    (leaf, count), mechanism = leaves[0], release.mechanism
    count = max(1, count // shares)
    if isinstance(leaf, events.Selected):
        leaf, count = leaf.candidates[-1], 1
        if isinstance(mechanism, noise.Disclose):
            return _StatedDistance("l2", 0.0)
    normal = events.Gaussian | events.PoissonGaussian | events.FixedSizeGaussian | events.EpochGaussian
    if isinstance(mechanism, noise.GaussianNoise) and isinstance(leaf, normal):
        rows = 1 if isinstance(leaf, events.Gaussian) else 2 * leaf.touched_rows - 1 + int(leaf.replaced)
        unit = mechanism.std * math.sqrt(hiding) / leaf.noise_multiplier
        return _StatedDistance("l2", unit * rows * math.sqrt(count))
    if isinstance(mechanism, noise.LaplaceNoise) and isinstance(leaf, events.Laplace):
        return _StatedDistance("l1", mechanism.scale / leaf.noise_multiplier * count)
    if isinstance(mechanism, noise.GumbelTopK) and isinstance(leaf, events.BoundedRange):
        return _StatedDistance("rows", max(1, count // mechanism.k), mechanism.scale * leaf.epsilon / 2)
    if isinstance(mechanism, edge_mechanisms.EdgeRand | edge_mechanisms.LapGraph):
        return _StatedDistance("cells", count)
    if isinstance(mechanism, noise.KaryResponse | local_bits.MaskedResponse):
        return _StatedDistance("rows", count)
    if isinstance(mechanism, noise.MultiBitEncoder | local_bits.SampledBits) and isinstance(leaf, events.MultiBit):
        whole = isinstance(mechanism, noise.MultiBitEncoder) and mechanism.in_total
        return _StatedDistance("rows", math.inf if whole else max(1, leaf.num_bits // mechanism.num_sampled))
    if isinstance(mechanism, ObjectivePerturbation) and isinstance(leaf, events.PureDP) and not leaf.epsilon:
        return _StatedDistance("l2", 0.0)
    if isinstance(
        mechanism, ObjectivePerturbation | PerBlock | noise.SymmetricLaplaceNoise | noise.GaussianNoise | noise.Disclose
    ):
        return None
    raise TypeError(
        f"no rule says how far values before {type(mechanism).__name__}, priced as {type(leaf).__name__}, may be apart"
    )


# ----------------------------------------------------------------------------------------------------------------- witnesses

_Place: TypeAlias = tuple[str, int, int, str]  # account, client, round, path


@dataclass(frozen=True)
class Difference:
    """Something that tells the two worlds apart."""

    where: str  # path, client and round; or what left
    what: str  # how it differs

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(eq=False)
class FirstWorld:
    """Writes down what every desk bounds and releases."""

    tape: list[DeskMoment] = field(default_factory=list)  # in order

    def __call__(self, moment: DeskMoment) -> np.ndarray:
        kept = replace(moment, bounded=np.array(moment.bounded), noised=np.array(moment.noised))
        self.tape.append(kept)
        return moment.noised


@dataclass(frozen=True, eq=False)
class PricedFor:
    """What the releases of one account are priced for."""

    guarantee: Guarantee  # of its plan
    hiding: Mapping[str, int]  # path → clients whose noise is in what the viewer sees
    summed: frozenset[str]  # paths that the viewer sees as sums over clients
    rows: Mapping[int, int] = field(default_factory=dict)  # client → the row of the unit in what it holds, where that is known


@dataclass(eq=False)
class SecondWorld:
    """Compares each bounded value with the first world's, and hands out that world's release.

    Attributes:
        first: the tape of the first world.
        same_coins: whether both worlds have one root seed. Then the noise that is added is the same, too, unless it, or
            the name of its stream, follows from the data.
    """

    first: Sequence[DeskMoment]
    same_coins: bool = False

    def __post_init__(self) -> None:
        self._known: dict[_Place, list[int]] = defaultdict(list)
        for number, moment in enumerate(self.first):
            self._known[_place(moment)].append(number)
        self._met: list[tuple[int, DeskMoment]] = []
        self._used: Counter[_Place] = Counter()
        self._last = -1
        self._found: list[Difference] = []

    def __call__(self, moment: DeskMoment) -> np.ndarray:
        place = _place(moment)
        known, used = self._known.get(place, []), self._used[place]
        self._used[place] += 1
        if used >= len(known):
            self._tell(moment, f"released {used + 1} times, {len(known)} times in the first world")
            return moment.noised
        number = known[used]
        if number < self._last:
            self._tell(moment, "released in another order than in the first world")
        self._last = number
        self._met.append((number, replace(moment, bounded=np.array(moment.bounded))))
        if self.same_coins and _noise_is_other(self.first[number], moment):
            self._tell(moment, "its noise is other than in the first world, from the same coins: it follows from the data")
        return np.array(self.first[number].noised)

    def _tell(self, moment: DeskMoment, what: str) -> None:
        self._found.append(Difference(_words(moment), what))

    def differences(
        self, prices: Mapping[str, PricedFor], other: PricedFor | None
    ) -> tuple[list[Difference], dict[str, float], set[str]]:
        """What differs at the desks.

        Args:
            prices: account → what its releases are priced for.
            other: of accounts that are not named there; None: their distances are not looked at.

        Returns:
            (differences, path → largest distance over the stated one, paths whose price no distance states).
        """
        found, largest, unmeasured = list(self._found), dict[str, float](), set[str]()
        for place, numbers in self._known.items():
            if self._used[place] < len(numbers):
                said = f"released {self._used[place]} times, {len(numbers)} times in the first world"
                found.append(Difference(_words(self.first[numbers[0]]), said))
        groups: dict[tuple[str, int, str, int], list[tuple[DeskMoment, DeskMoment]]] = defaultdict(list)
        seen: Counter[_Place] = Counter()
        for number, moment in self._met:
            place = _place(moment)
            groups[moment.account, moment.round, moment.release.path, seen[place]].append((self.first[number], moment))
            seen[place] += 1
        for (account, _, path, _), pairs in groups.items():
            priced = prices.get(account, other)
            if priced is None:
                continue
            ratio, why = _ratio(pairs, priced)
            if ratio is None:
                unmeasured.add(path)
                continue
            largest[path] = max(largest.get(path, 0.0), ratio)
            if why or ratio > 1 + _ROUNDING:
                moved = why or f"bounded values are {ratio:.4g} times as far apart as is priced"
                found.append(Difference(_words(pairs[0][1] if len(pairs) == 1 else _furthest(pairs)), moved))
        return found, largest, unmeasured - set(largest)


def _noise_is_other(one: DeskMoment, other: DeskMoment) -> bool:
    """Whether two moments added other noise, beyond rounding. False for noise that is not added, or where shapes differ."""
    if (
        not isinstance(one.release.mechanism, noise.GaussianNoise | noise.LaplaceNoise)
        or one.bounded.shape != other.bounded.shape
    ):
        return False
    wide = [(np.asarray(m.bounded, dtype=np.float64), np.asarray(m.noised, dtype=np.float64)) for m in (one, other)]
    (before, after), (before_, after_) = wide
    largest = max(float(np.abs(value).max(initial=0)) for pair in wide for value in pair)
    return bool(np.abs((after - before) - (after_ - before_)).max(initial=0) > _DIGITS * largest)


def _place(moment: DeskMoment) -> _Place:
    return (moment.account, moment.client, moment.round, moment.release.path)


def _words(moment: DeskMoment) -> str:
    return f"release {moment.release.path!r}, client {moment.client}, round {moment.round}"


def _furthest(pairs: Sequence[tuple[DeskMoment, DeskMoment]]) -> DeskMoment:
    return max(pairs, key=lambda p: 0.0 if p[0].bounded.shape != p[1].bounded.shape else _l2(p[0].bounded, p[1].bounded))[1]


def _l2(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.linalg.norm((np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)).ravel()))


def _ratio(pairs: Sequence[tuple[DeskMoment, DeskMoment]], priced: PricedFor) -> tuple[float | None, str]:
    """(largest distance of what one viewer sees of the unit, over what is priced; why the values cannot be compared)."""
    ratios, changes_, protection = list[float](), list[np.ndarray](), priced.guarantee.protection
    for one, other in pairs:
        release = one.release
        stated = _stated_distance(release, one.shares, priced.hiding.get(release.path, 1))
        if stated is None:
            return None, ""
        a, b = one.bounded, other.bounded
        if stated.norm != "cells" and (a.shape != b.shape or a.dtype != b.dtype):
            return math.inf, f"a value of shape {b.shape} ({b.dtype}), {a.shape} ({a.dtype}) in the first world"
        if Assumption.ROWS_NEVER_RELEASED in protection.assumptions and isinstance(release.bound, NeighbourSums):
            a, b = (_without_own_row(value, one.client, priced, a, b) for value in (a, b))
        ratios.append(stated.of(a, b))
        if stated.norm == "l2" and release.path in priced.summed:
            changes_.append((np.asarray(a, dtype=np.float64) - b) / (stated.most or 1.0))
    ends = math.sqrt(2.0) if priced.guarantee.per_end else 1.0
    alone = priced.guarantee.holdings is not None or protection.unit in (Unit.ENTITY, Unit.GRAPH)  # each holder pays for itself
    if len(changes_) == len(pairs) and len({c.shape for c in changes_}) == 1 and not alone:
        return float(np.linalg.norm(np.sum(changes_, axis=0).ravel())) / ends, ""
    return (max(ratios) if alone else math.sqrt(sum(r * r for r in ratios))) / ends, ""


def _without_own_row(value: np.ndarray, client: int, priced: PricedFor, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """``value`` without the unit's own row, which is shown to nobody: the one that moved most where its number is not known."""
    row = priced.rows.get(client)
    if row is None and not priced.rows:
        row = int(np.abs(np.asarray(one, dtype=np.float64) - other).sum(axis=1).argmax())
    return value if row is None else np.delete(value, row, axis=0)


def summed_paths(protection: Protection, paths: Sequence[str], summed: Sequence[tuple[str, int]]) -> frozenset[str]:
    """The paths that the viewer sees as sums over clients. summed: those that are sums whoever the viewer is."""
    if protection.viewer is Viewer.SERVER_SECURE_AGGREGATION:
        return frozenset(paths)
    return frozenset(path for path, _ in summed)


# --------------------------------------------------------------------------------------------------------------- what leaves


def first_difference(one: Any, other: Any, where: str = "") -> str:
    """Where two values are not equal to the last bit; the empty string where they are.

    Arrays, sparse matrices, dataclasses, mappings and sequences are compared part by part.

    Args:
        one: of the first world.
        other: of the second.
        where: what it is called.
    """
    if type(one) is not type(other):
        return f"{where}: {type(one).__name__} and {type(other).__name__}"
    if isinstance(one, np.ndarray):
        equal = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
        return "" if equal else f"{where}: arrays of {one.shape} and {other.shape} differ"
    if sp.issparse(one):
        one, other = ((m.shape, m.data, m.indices, m.indptr) for m in (one, other))
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        one, other = ({f.name: getattr(m, f.name) for f in dataclasses.fields(m)} for m in (one, other))
    if isinstance(one, Mapping):
        if list(one) != list(other):
            return f"{where}: {list(one)} and {list(other)}"
        return next(filter(None, (first_difference(one[k], other[k], f"{where}.{k}") for k in one)), "")
    if isinstance(one, tuple | list):
        if len(one) != len(other):
            return f"{where}: {len(one)} and {len(other)} of them"
        parts = (first_difference(a, b, f"{where}[{k}]") for k, (a, b) in enumerate(zip(one, other, strict=True)))
        return next(filter(None, parts), "")
    if one == other or (one != one and other != other):
        return ""
    return f"{where}: {_short(one)} and {_short(other)}"


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
