"""Messages between client and server: frozen, picklable, and made only of values that passed the desk.

**Blocks.** Sums over clients are taken in one fixed order, however many workers there are. Clients 0 … n − 1 are cut into
blocks whose borders follow from n alone. A worker holds whole blocks, adds up what the clients of each block released, and adds
block sums along one binary tree as far as it holds whole branches; the server adds the rest. A sum of floats depends on its
order, and this order is always the same: serial, or Ray with any number of workers.

A federation of at most ``FEW_SEEN_CLIENTS`` clients has one client per block, which draws its own noise. With more clients
there are at least ``FEW_SEEN_CLIENTS`` blocks.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError, RuntimeFailure
from fedgraph.methods import FEW_SEEN_CLIENTS, Plan, seen
from fedgraph.privacy import DeskSum, LedgerLine, LedgerRelease, Released, Viewer, desk, ledger
from fedgraph.types import Partition, Subgraph


@dataclass(frozen=True, eq=False)
class ClientJob:
    """One training, as workers see it."""

    key: str  # names the workspace that a worker keeps
    root: int  # root of all random streams
    stream: tuple[str | int | float, ...]  # names its random streams
    plan: Plan
    fingerprint: str = ""  # of the plan; part of the names of secret streams
    answered: np.ndarray | None = None  # who answers in which round, bool [rounds, clients]; None: all clients
    starts: tuple[str | int | float, ...] | None = None  # names the stream of the first parameters; None: ``stream`` does
    # ledger lines of releases that chose one of several alternatives: by them a client whose worker was restarted still refuses
    # the other alternatives
    taken: tuple[LedgerLine, ...] = ()

    @cached_property
    def account(self) -> str:
        """The account that its ledger lines name."""
        return ledger.account_name(self.stream)


@dataclass(frozen=True, eq=False)
class ClientMessage:
    """One client's message of one round. ``PrivacyError`` if a value did not pass the desk."""

    client: int  # its number
    round: int  # from 0
    released: Mapping[str, Released]  # name → value, as the desk released it
    # the ledger lines of all that passed the desk this round, sent or kept at the client
    entries: tuple[LedgerRelease | LedgerLine, ...] = ()

    @property
    def lines(self) -> tuple[LedgerRelease | LedgerLine, ...]:
        """The lines that this message adds to the ledger."""
        return self.entries or tuple(r.entry for r in self.released.values())

    @property
    def first(self) -> int:
        """Its place among the messages of a round, as the first block of a ``BlockMessage``."""
        return self.client

    @property
    def num_clients(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return 1

    def __post_init__(self) -> None:
        if not isinstance(self.released, Mapping):
            given = f"client {self.client} gave a {type(self.released).__name__}"
            raise RuntimeFailure(f"{given}; allowed: a dict of names and values that desk.release returned")
        for name, value in self.released.items():
            if not isinstance(value, Released):
                raise PrivacyError(
                    f"client {self.client} tried to send {name!r} as a bare {type(value).__name__}; "
                    "only values returned by desk.release may leave a client"
                )


@dataclass(frozen=True, eq=False)
class BlockMessage:
    """The sum of what the clients of some blocks released in one round. ``PrivacyError`` if a value is no such sum."""

    first: int  # number of the first block
    width: int  # number of blocks, which follow one another
    round: int  # from 0
    released: Mapping[str, Released | DeskSum]  # name → sum
    num_clients: int  # number of their clients that finished
    lines: tuple[LedgerRelease | LedgerLine, ...]  # what they add to the ledger

    def __post_init__(self) -> None:
        for name, value in self.released.items():
            if not isinstance(value, (Released, DeskSum)):
                raise PrivacyError(
                    f"blocks {self.first} … {self.first + self.width - 1} tried to send {name!r} as a bare "
                    f"{type(value).__name__}; only sums of released values may leave a block"
                )


Sent: TypeAlias = ClientMessage | BlockMessage  # one client's message is the sum of a block in which it is alone


@dataclass(frozen=True, eq=False)
class MessageReceipt:
    """What the driver learns of a round."""

    round: int  # from 0
    releases: tuple[LedgerLine, ...]  # its ledger lines; equal releases of many clients are one line
    down: int = 0  # bytes to one client
    up: int = 0  # bytes of the largest message
    messages: int = 0  # number of clients that sent one


_MOST_BLOCKS, _CLIENTS_PER_BLOCK = 256, 256


def cut_blocks(num_clients: int) -> tuple[range, ...]:
    """The clients of each block. Beyond ``FEW_SEEN_CLIENTS`` clients the number of blocks is a power of two.

    >>> cut_blocks(3), len(cut_blocks(17)), len(cut_blocks(10_000))
    ((range(0, 1), range(1, 2), range(2, 3)), 16, 32)
    """
    count = num_clients
    if num_clients > FEW_SEEN_CLIENTS:
        count = FEW_SEEN_CLIENTS
        while count < _MOST_BLOCKS and 2 * count * _CLIENTS_PER_BLOCK <= num_clients:
            count *= 2
    edges = [num_clients * i // count for i in range(count + 1)]
    return tuple(range(a, b) for a, b in itertools.pairwise(edges))


def subgraphs_of_blocks(partition: Partition, blocks: Sequence[int]) -> dict[int, Subgraph]:
    """The subgraphs of the clients of these blocks, by client: what their actor holds."""
    cut = cut_blocks(partition.num_clients)
    return {client: partition.subgraphs[client] for block in blocks for client in cut[block]}


def are_summed(plan: Plan) -> bool:
    """Whether sums over blocks travel instead of single messages: if nobody reads single ones."""
    if plan.guarantee.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION:
        return not (plan.watch.keeps_rounds and seen.colluders_of(plan))
    return (plan.sums.suffice or plan.sums.additive) and not plan.watch.keeps_rounds


def sum_block(block: int, messages: Iterable[ClientMessage], round_: int) -> Sent:
    """The sum of what the clients of ``block`` released, in their order. ``RuntimeFailure`` if their messages do not match."""
    released: dict[str, Released | DeskSum] | None = None
    lines: list[LedgerRelease | LedgerLine] = []
    count = 0
    for message in messages:
        lines += message.lines
        count += 1
        if released is None:
            released = dict(message.released)
            continue
        _require_alike(message, released)
        for name, value in message.released.items():
            released[name] = desk.add_values(released[name], value)
    if count == 1 and message.client == block:  # as wherever every block has one client
        return message
    return BlockMessage(block, 1, round_, released or {}, count, tuple(lines) if count == 1 else ledger.merged(lines))


def merge_branches(parts: Sequence[Sent]) -> list[Sent]:
    """``parts`` (ascending) with every two halves of a branch added; if all blocks are there, one part is left."""
    done: list[Sent] = []
    for part in parts:
        done.append(part)
        while len(done) > 1 and _siblings(done[-2], done[-1]):
            right, left = done.pop(), done.pop()
            done.append(_together(left, right))
    return done


def sum_tree(parts: Sequence[Sent]) -> Sent:
    """The sum of all ``parts``: along the tree, then from left to right if a branch is missing."""
    first, *rest = merge_branches(parts)
    for part in rest:
        first = _together(first, part)
    return first


def _siblings(left: Sent, right: Sent) -> bool:
    return left.width == right.width and left.first % (2 * left.width) == 0 and left.first + left.width == right.first


def _together(left: Sent, right: Sent) -> BlockMessage:
    if left.num_clients and right.num_clients and set(left.released) != set(right.released):
        raise RuntimeFailure(
            f"round {left.round}: blocks of clients sent {sorted(left.released)} and {sorted(right.released)}; round aborted"
        )
    names = left.released or right.released
    one, two = left.released, right.released
    for name in one.keys() & two.keys():
        if one[name].value.shape != two[name].value.shape:  # numpy would repeat the smaller one
            shapes = f"{one[name].value.shape} and {two[name].value.shape}"
            raise RuntimeFailure(f"round {left.round}: only arrays of one shape can be added; {name!r} has shapes {shapes}")
    both = {n: desk.add_values(one[n], two[n]) if n in one and n in two else names[n] for n in names}
    width = right.first + right.width - left.first
    clients = left.num_clients + right.num_clients
    return BlockMessage(left.first, width, left.round, both, clients, (*left.lines, *right.lines))


def _require_alike(message: ClientMessage, known: Mapping[str, Released | DeskSum]) -> None:
    """``RuntimeFailure`` if a client sent other parts or shapes than those before it: its share of noise would be missing."""
    if set(message.released) != set(known):
        raise RuntimeFailure(
            f"round {message.round}: client {message.client} sent {sorted(message.released)}, others {sorted(known)}; "
            "round aborted"
        )
    for name, value in message.released.items():
        if value.value.shape != known[name].value.shape:
            raise RuntimeFailure(
                f"round {message.round}: only arrays of one shape can be added; {name!r} of client {message.client} has shape "
                f"{value.value.shape}, others {known[name].value.shape}"
            )


def unite(subgraphs: Sequence[Subgraph]) -> Subgraph:
    """The disjoint union of many clients' subgraphs, for methods that compute the clients of a block as one.

    Rows stand in the order of ``subgraphs``; a node that two clients hold is there twice. ``client`` is the number of the first
    client; there is no centre.
    """
    first = subgraphs[0]
    if len(subgraphs) == 1:
        return first
    graphs = [s.graph for s in subgraphs]
    starts = np.concatenate([[0], np.cumsum([g.labels.size for g in graphs])]).astype(np.int64)
    validation = None
    if any(g.validation is not None for g in graphs):
        parts = [np.full_like(g.labels, -1) if g.validation is None else g.validation for g in graphs]
        validation = np.concatenate(parts)
    cuts = [s.cut + np.array([at, 0]) for s, at in zip(subgraphs, starts, strict=False) if s.cut is not None]
    graph = replace(
        first.graph,
        adjacency=_stacked([g.adjacency for g in graphs], starts[:-1], int(starts[-1])),
        features=_stacked([g.features for g in graphs], np.zeros(len(graphs), np.int64), first.graph.num_features),
        labels=np.concatenate([g.labels for g in graphs]),
        owner=None,
        masks=(),
        validation=validation,
    )
    nodes = np.concatenate([s.nodes for s in subgraphs])
    return Subgraph(first.client, graph, nodes, None, np.concatenate(cuts) if cuts else None)


def _stacked(matrices: Sequence[sp.csr_array], shifts: np.ndarray, columns: int) -> sp.csr_array:
    """Rows of all, one matrix under the other, the columns of each moved by its shift."""
    counts = np.array([m.indptr[-1] for m in matrices], dtype=np.int64)
    rows = np.concatenate([np.diff(m.indptr) for m in matrices])
    indptr = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
    indices = np.concatenate([m.indices[: m.indptr[-1]] for m in matrices]).astype(np.int64) + np.repeat(shifts, counts)
    data = np.concatenate([m.data[: m.indptr[-1]] for m in matrices])
    width = np.int32 if max(columns, indptr[-1]) < 2**31 else np.int64
    return sp.csr_array((data, indices.astype(width), indptr.astype(width)), shape=(rows.size, columns))
