"""A trained row that can be kept, read back and asked.

model = fedgraph.open_run("runs/mine").best(epsilon=4).fit("people")       # or: fedgraph fit runs/mine ROW --graph people
model.save("people.model")
fedgraph.load("people.model").predict("newcomers", people="public")        # or: fedgraph predict people.model newcomers

A model is post-processing of what was released, and costs nothing more. An *answer* also reads the asked node's row, and with
some methods its edges or its neighbours' rows (``Offers.reads``), so whoever sees it may learn of them. This has no price, so
it is refused unless the rows are public, or each answer is shown to its own person alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fedgraph import methods, privacy
from fedgraph.data import id_rows
from fedgraph.errors import DataError, FedgraphError, PrivacyError
from fedgraph.methods import MethodReads, method_kinds
from fedgraph.models import model_file
from fedgraph.privacy import settle
from fedgraph.types import Graph, GraphNames, graph_without_labels

if TYPE_CHECKING:
    import pandas

ACCEPT_ANSWERS_UNPROTECTED = "--i-know-that-nothing-is-protected"
_logger = logging.getLogger("fedgraph")


@dataclass(frozen=True, eq=False)
class AnswerRoster:
    """Who was in the training graph, which the guarantee takes as public; empty if the data have no ids.

    Each model has a key of its own, so two rosters cannot be compared without trying ids. ``DataError`` for another kind of key
    or digests, as in an edited file.
    """

    salt: str  # the key of the digests, 32 hexadecimal digits
    digests: np.ndarray  # uint64 [n], a keyed digest (BLAKE2b) of each id, in the order of the training graph

    def __post_init__(self) -> None:
        """Checks both parts, which may come from a file."""
        if not re.fullmatch("[0-9a-f]{32}", self.salt) or self.digests.dtype != np.uint64 or self.digests.ndim != 1:
            raise DataError("a roster needs a key of 128 bits and one digest of 64 bits for each person")

    @classmethod
    def of(cls, ids: Sequence[str]) -> AnswerRoster:
        """The roster of the people ``ids``, with a key from the operating system."""
        salt = secrets.token_hex(16)
        return cls(salt, _id_digests(salt, ids))

    def places(self, ids: Sequence[str]) -> np.ndarray:
        """int64 [len(ids)]: the number of each person in the training graph; −1: not in it."""
        known = {int(digest): place for place, digest in enumerate(self.digests)}
        return np.array([known.get(int(one), -1) for one in _id_digests(self.salt, ids)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Model:
    """One training of one row, and all that its answers need.

    It has no digest of the data: a digest follows from private edges and rows without noise, so whoever knows all of them but
    one could try the last.
    """

    row: str  # name of the model
    method: str  # name of the method
    plan: methods.Plan  # plan of the training
    state: methods.State  # what was released, and what follows from it
    names: GraphNames  # names of columns and classes
    people: AnswerRoster  # who trained
    unnamed: int  # number of people in the training data, if these have no ids; else 0
    epsilon: float  # ε of the training
    ranks: methods.ColumnRanks | None  # how it reads columns of numbers; None: they are on one scale
    reading: Mapping[str, object]  # how own tables are read (bounds, texts, empty cells)
    delta: float  # δ of its guarantee
    statement: tuple[str, ...]  # sentences on what the training protects
    ledger: tuple[str, ...]  # the ledger: JSON lines, the account first
    versions: Mapping[str, str]  # package → version that it was made with

    @cached_property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of ``predict_proba``; their numbers if the data have no names."""
        return np.array(self.names.classes or [str(k) for k in range(self.plan.facts.num_classes)])

    def predict(self, data: object, people: str | None = None, nothing_protected: bool = False) -> np.ndarray:
        """The class of each node of ``data``; the arguments are those of ``predict_proba``."""
        return self.classes_[self.predict_proba(data, people, nothing_protected).argmax(axis=1)]

    def predict_proba(self, data: object, people: str | None = None, nothing_protected: bool = False) -> np.ndarray:
        """float64 [n, c], each row adding up to 1.

        Args:
            data: a folder of CSV files, an ``.npz`` file, or a graph in memory as for ``fedgraph.compare``, without labels.
            people: ``public`` (the rows of these people and the edges among them are public) or ``own`` (each answer is
                shown to its own person alone).
            nothing_protected: must be True for a model whose ε is ∞.

        Raises:
            PrivacyError: an answer would release what has no price; the message says what to do.
            DataError: the columns are not those of the model, or it scores pairs.
        """
        graph = data if isinstance(data, Graph) else self.graph_of(data)
        found = _scores_of(self, graph, people, nothing_protected)
        if (found < 0).any() or not np.allclose(found.sum(axis=1), 1.0):  # scores of other methods are logits
            found = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True), dtype=np.float64)

    def answers(self, graph: Graph, people: str | None = None, nothing_protected: bool = False) -> pandas.DataFrame:
        """One line per node: its id, the most likely class, and the probability of each.

        Args:
            graph: the people who are asked about.
            people: as in ``predict_proba``.
            nothing_protected: as in ``predict_proba``.
        """
        import pandas

        shares = self.predict_proba(graph, people, nothing_protected)
        table = pandas.DataFrame({"id": list(graph.ids), "class": self.classes_[shares.argmax(axis=1)]})
        return table.join(pandas.DataFrame(shares, columns=[f"p({name})" for name in self.classes_]))

    def score_pairs(self, pairs: Iterable[Sequence[object]], nothing_protected: bool = False) -> np.ndarray:
        """float64 [m], by a model of links: a larger score means a likelier edge; only the order counts.

        Args:
            pairs: two ids each, of people who trained; a pandas table of two columns is ``table.to_numpy()``.
            nothing_protected: must be True for a model whose ε is ∞.

        Raises:
            DataError: somebody did not train, an entry is no pair of two people, or the model gives nodes a class.
            PrivacyError: an answer would release what has no price.
        """
        asked = list(pairs)
        for pair in asked:
            if isinstance(pair, str) or len(pair) != 2:
                raise DataError(f"{pair!r} is no pair; allowed: two ids of people who trained")
        return _pair_scores(self, [(str(one), str(two)) for one, two in asked], nothing_protected)

    def answer_file(self, path: str, people: str | None = None, nothing_protected: bool = False) -> pandas.DataFrame:
        """What ``fedgraph predict`` writes: the ``answers`` for a graph, or, by a model of links, pairs with their scores.

        Args:
            path: a folder or file with a graph, or a CSV table of pairs.
            people: as in ``predict_proba``.
            nothing_protected: as in ``predict_proba``.
        """
        if method_kinds.load(self.method).OFFERS.kind != "linker":
            return self.answers(self.graph_of(path), people, nothing_protected)
        import pandas

        pairs = _read_pairs(Path(path), self.people)
        return pandas.DataFrame(pairs, columns=["source", "target"]).assign(score=self.score_pairs(pairs, nothing_protected))

    def graph_of(self, data: object) -> Graph:
        """``data`` read as the training data were, without labels."""
        return read_people(data, self.reading, labelled=False)[0]

    def to_bytes(self) -> bytes:
        """The model's file."""
        return model_file.to_bytes(self)

    def save(self, path: str | Path) -> None:
        """Writes the model's file.

        Args:
            path: a file that does not exist yet.

        Raises:
            DataError: the file exists already, or cannot be written.
        """
        try:
            with Path(path).open("xb") as out:
                out.write(self.to_bytes())
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}; a model is never replaced") from error


def load(path: str | Path) -> Model:
    """Read a model that ``fedgraph fit`` or ``Model.save`` wrote.

    Args:
        path: the file.

    Returns:
        The model; ``predict`` and ``predict_proba`` ask it.

    Raises:
        DataError: the file is no model, or damaged or edited: its ledger does not have the price that it states.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise DataError(f"load: found {path!r}; allowed: a file that 'fedgraph fit' wrote")
    found = model_file.read(Path(path))
    if not isinstance(found, Model) or found.plan.method != found.method:
        raise DataError(f"{path}: holds no model; allowed: a file that 'fedgraph fit' wrote")
    try:
        said, *lines = (json.loads(line) for line in found.ledger)
        account = privacy.LedgerAccount.from_dict(said)
        cost = settle.of_account(account, [privacy.LedgerLine.from_dict(line) for line in lines]).epsilon
    except (ValueError, KeyError, TypeError, PrivacyError) as error:
        raise DataError(f"{path}: its ledger cannot be read ({' '.join(str(error).split())[:200]})") from error
    if not math.isclose(cost, found.epsilon, rel_tol=1e-6):
        raise DataError(f"{path}: states ε = {found.epsilon:.4g}, and its ledger costs ε = {cost:.4g}: it was edited")
    if found.delta != account.delta:
        raise DataError(f"{path}: states δ = {found.delta:.4g}, and its ledger is of δ = {account.delta:.4g}: it was edited")
    return found


def read_people(data: object, reading: Mapping[str, object], labelled: bool = True) -> tuple[Graph, Mapping[str, object]]:
    """(the graph of ``data``, how other people are read in the same way).

    data: a folder or file, the name of a data set, or a graph in memory. reading: how own tables are read. labelled: whether
    labels are read. ``DataError`` if there is no such graph.
    """
    from fedgraph import data as library
    from fedgraph.data import ReadRules, read

    if isinstance(data, (str, Path)) and not Path(data).expanduser().exists():
        found, same = library.load(str(data)), reading
    else:
        rules = {key: value for key, value in reading.items() if key in ReadRules.model_fields}
        told = read(data, columns=rules, labelled=labelled)
        found, same = told.graph, told.parameters
    if not isinstance(found, Graph):
        raise DataError(f"{data}: a collection of graphs; allowed: one graph of people")
    return found, same


def strip_rows(plan: methods.Plan, state: methods.State) -> tuple[methods.Plan, methods.State]:
    """Plan and state as a model keeps them: without the public graph and the rounds that are kept for attacks."""
    return replace(plan, facts=replace(plan.facts, public_graph=None)), replace(state, seen=())


def _id_digests(salt: str, ids: Sequence[str]) -> np.ndarray:
    """uint64 [len(ids)]."""
    key = bytes.fromhex(salt)
    found = b"".join(hashlib.blake2b(one.encode(), digest_size=8, key=key).digest() for one in ids)
    return np.frombuffer(found, dtype="<u8")


def _read_pairs(path: Path, people: AnswerRoster) -> list[tuple[str, str]]:
    """The pairs of a CSV table with two columns of ids, with or without a header. ``DataError`` for any other file."""
    rows = id_rows(path, 2)
    first = rows[0][:2] if rows else []
    known = {one for one, place in zip(first, people.places(first), strict=True) if place >= 0}
    return [(cells[0], cells[1]) for cells in id_rows(path, 2, known)]


def _scores_of(model: Model, graph: Graph, shown: str | None, nothing_protected: bool) -> np.ndarray:
    """[n, c], scores of the nodes of ``graph``. shown: as ``people`` in ``Model.predict_proba``, with the same errors."""
    if shown not in (None, "public", "own"):
        raise DataError(f"people is {shown!r}; allowed: public, own")
    if method_kinds.load(model.method).OFFERS.kind == "linker":
        raise DataError(f"{model.row}: scores pairs, and names no class; ask it about a table of pairs (source,target)")
    reads = _reads(model)
    places = model.people.places(graph.ids)
    facts = model.plan.facts
    graph = match_columns(unlabelled(graph, facts.num_classes), model.names.columns, facts.num_features)
    graph = graph if model.ranks is None else model.ranks.scaled(replace(graph, columns=model.ranks.columns))
    if not _unprotected(model, nothing_protected):
        _require_priced(model, reads, shown, graph, places)
    places = np.where(places < facts.num_nodes, places, -1)  # judges of a choice did not train
    asked = graph
    if reads is MethodReads.OWN_EDGES:
        _logger.warning("%s", _heard(graph, places >= 0))
    if reads in (MethodReads.NOTHING, MethodReads.OWN_EDGES):
        asked, places = _among_trained(model, reads, graph, places)
    else:
        places = np.arange(graph.num_nodes)
    return _numbers(model, lambda: method_kinds.load_classifier(model.method).predict(model.plan, model.state, asked)[places])


def _pair_scores(model: Model, pairs: Sequence[tuple[str, str]], nothing_protected: bool) -> np.ndarray:
    """float64 [m], scores of pairs of ids, as in ``Model.score_pairs``, with the same errors.

    A score is computed from releases and public features, so any pair may be asked.
    """
    if method_kinds.load(model.method).OFFERS.kind != "linker":
        raise DataError(f"{model.row}: gives nodes a class, and scores no pairs; ask it about the people of a graph")
    if _reads(model) is not MethodReads.NOTHING:
        raise PrivacyError(f"an answer of {model.method} reads {_reads(model).value}, which nobody priced")
    _unprotected(model, nothing_protected)
    ids = [one for pair in pairs for one in pair]
    places = model.people.places(ids)
    if unknown := [one for one, place in zip(ids, places, strict=True) if place < 0]:
        raise DataError(
            f"{len(set(unknown)):,} people of these pairs were not in the training graph, the first is {unknown[0]!r}; "
            "allowed: pairs of people who trained"
        )
    asked = np.sort(places.reshape(-1, 2), axis=1)
    if (same := np.flatnonzero(asked[:, 0] == asked[:, 1])).size:
        raise DataError(f"{pairs[same[0]][0]!r} is asked with itself; allowed: pairs of two people")
    return _numbers(model, lambda: method_kinds.load_linker(model.method).scores(model.plan, model.state, asked))


def _unprotected(model: Model, nothing_protected: bool) -> bool:
    """Whether the model protects nothing; ``PrivacyError`` if that is so and was not accepted."""
    if math.isinf(model.epsilon) and not nothing_protected:
        raise PrivacyError(
            f"{model.row}: its ε is ∞, it may show anything of who trained; say {ACCEPT_ANSWERS_UNPROTECTED}, or fit another"
        )
    return math.isinf(model.epsilon)


def _numbers(model: Model, answers: Callable[[], np.ndarray]) -> np.ndarray:
    """The numbers of ``answers``. ``DataError`` if it fails or gives no numbers: a stranger's model may hold anything."""
    try:
        found = np.asarray(answers(), dtype=np.float64)
    except FedgraphError:
        raise
    except Exception as error:
        raise DataError(f"{model.row}: gives no answers ({type(error).__name__}); the model was edited") from error
    if not np.isfinite(found).all():
        raise DataError(f"{model.row}: gives answers that are no numbers; the model was edited")
    return found


def _reads(model: Model) -> MethodReads:
    reads = method_kinds.load(model.method).OFFERS.reads
    found = None if reads is None else reads(model.plan)
    if found is None:
        raise PrivacyError(f"nobody has said what an answer of {model.method} reads under these settings, so it gives none")
    return found


def _require_priced(model: Model, reads: MethodReads, shown: str | None, graph: Graph, places: np.ndarray) -> None:
    """``PrivacyError`` if answers would release what has no price; it says what, and what to do."""
    alone = ", ".join(method_kinds.list_names(lambda offers: offers.private_test_nodes))
    node_level = model.plan.guarantee.protection.unit is privacy.Unit.NODE
    trained = int((places >= 0).sum()) if node_level else 0
    same = node_level and not graph.names.ids and graph.num_nodes == model.unnamed
    if reads is MethodReads.NOTHING:
        return
    if shown is None:
        raise PrivacyError(
            f"an answer of {model.method} reads {reads.value}. Say whose rows these are: --people public (everybody may "
            f"know them and their edges), or --people own (each answer is shown to its own person alone){_as_drafted(reads)}"
        )
    if reads is MethodReads.PUBLIC_GRAPH and shown == "own":
        raise PrivacyError(
            f"an answer of {model.method} reads {reads.value}: it would show a private person the rows of others, and "
            f"nobody priced that. Allowed: --people public, if it is true; or fit a row that answers from own rows ({alone})"
        )
    if shown == "public" and (trained or same):
        who = f"{trained:,} of {graph.num_nodes:,} people were in the training graph"
        if not trained:
            who = (
                f"neither graph has ids and both hold {graph.num_nodes:,} people, so these count as those of the training graph"
            )
        raise PrivacyError(
            f"{who}, which the model protects: they are not public, and nobody priced their answers. "
            f"Leave them out{'' if trained else ', or give others their ids'}; or fit a row that answers from one's own row "
            f"({alone}) and say --people own"
        )
    if shown == "public" and reads is MethodReads.OWN_EDGES and not node_level:
        raise PrivacyError(
            f"an answer of {model.method} reads {reads.value}, which the model protects: shown to others it may tell of them. "
            "Say --people own, and show each answer to its own person alone"
        )


def _as_drafted(reads: MethodReads) -> str:
    """Which word of ``--people`` fits the answer that was given to ``fedgraph new``."""
    if reads is MethodReads.PUBLIC_GRAPH:
        return "; whoever said public to fedgraph new (protocol: inductive) says --people public"
    if reads in (MethodReads.OWN_ROW, MethodReads.OWN_EDGES):
        return "; whoever said private to fedgraph new (protocol: asking) says --people own"
    return ""


def _heard(graph: Graph, trained: np.ndarray) -> str:
    """Which edges the answers read, for the holder of the data only. trained: bool [n], who trained."""
    ends = graph.adjacency @ trained.astype(np.int64)
    deaf = int((graph.degrees - ends)[~trained].sum()) // 2  # ties between two who did not train, each counted twice
    alone = int((ends == 0).sum())
    return (
        f"{graph.name}: heard are ties to people who trained, as far as they are listed here: {graph.num_edges - deaf:,} of "
        f"{graph.num_edges:,} ties; {alone:,} of {graph.num_nodes:,} people have none, and are answered by their own row. "
        f"{int(trained.sum()):,} trained themselves: ties of theirs, and partners, that are not listed are not heard"
    )


_MOST_PEOPLE = 10**8  # in a file without ids


def _among_trained(model: Model, reads: MethodReads, graph: Graph, places: np.ndarray) -> tuple[Graph, np.ndarray]:
    """(the asked graph in the training graph's numbers, newcomers after it; the place of each asked node there)."""
    n, new, named = model.plan.facts.num_nodes, np.flatnonzero(places < 0), model.people.digests.size
    if n != named and (named or not 0 < n <= _MOST_PEOPLE):
        raise DataError(f"the model's file counts {n:,} people, and names {named:,}; allowed: as many as it names")
    if reads is MethodReads.NOTHING and model.unnamed and not graph.names.ids and graph.num_nodes != model.unnamed:
        raise DataError(
            f"neither graph has ids: {graph.num_nodes:,} people are asked about, {model.unnamed:,} trained, and {model.method} "
            "answers those alone; allowed: the same people in the same order, or ids in both graphs"
        )
    if new.size and (reads is MethodReads.NOTHING or model.plan.guarantee.protection.unit is privacy.Unit.EDGE):
        raise DataError(
            f"{new.size:,} of {places.size:,} people were not in the training graph, the first is {graph.ids[new[0]]!r}; "
            f"{model.method} answers those alone. Fit a row of protocol inductive, inductive-edges or asking for newcomers"
        )
    where = places.copy()
    where[new] = n + np.arange(new.size)
    size = n + new.size
    put = sp.csr_array((np.ones(where.size, dtype=np.float32), (where, np.arange(where.size))), shape=(size, where.size))
    adjacency = sp.csr_array(put @ graph.adjacency @ put.T)
    labels = np.full(size, -1, dtype=np.int64)
    whole = replace(
        graph, adjacency=adjacency, features=sp.csr_array(put @ graph.features), labels=labels,
        names=replace(graph.names, ids=()), owner=None, masks=(), validation=None,
    )  # fmt: skip
    return whole, where


_MOST_UNKNOWN = 8  # columns that one error names


def unlabelled(graph: Graph, num_classes: int) -> Graph:
    """``graph`` without labels, with ``num_classes`` classes."""
    return replace(graph_without_labels(graph), num_classes=num_classes)


def match_columns(graph: Graph, columns: Sequence[str], num_columns: int) -> Graph:
    """``graph`` with its features in the order of ``columns``.

    A column of a text, or of empty cells, that no row has is 0. ``DataError`` names a missing or unknown column.
    """
    own = graph.names.columns
    if not columns or not own:
        if graph.num_features != num_columns:
            raise DataError(f"{graph.name}: {graph.num_features} feature columns; allowed: the model's {num_columns}")
        return graph
    more = [name for name in own if name not in columns]
    if more:
        raise DataError("\n".join(_unknown(graph, name, columns) for name in more[:_MOST_UNKNOWN]))
    place = {name: number for number, name in enumerate(own)}
    absent = [name for name in columns if name not in place and not _not_needed(name, own)]
    if absent:
        raise DataError(f"{graph.name}: the column {absent[0]!r} is missing; needed: {_listed(columns)}")
    there = [(place[name], number) for number, name in enumerate(columns) if name in place]
    rows, targets = (np.array(side, dtype=np.int64) for side in zip(*there, strict=True))
    move = sp.csr_array((np.ones(rows.size, dtype=np.float32), (rows, targets)), shape=(len(own), len(columns)))
    features = sp.csr_array(graph.features @ move).astype(np.float32)
    features.sort_indices()
    return replace(graph, features=features, names=replace(graph.names, columns=tuple(columns)))


def _unknown(graph: Graph, name: str, columns: Sequence[str]) -> str:
    """The error of a column that the model does not have; for a text, or empty cells, it names a person with it."""
    base, mark, text = name.rpartition(" is ")
    known = [column.removeprefix(f"{base} is ") for column in columns if column.startswith(f"{base} is ")]
    if not mark or not (known or base in columns):
        return f"{graph.name}: the model does not know the column {name!r}; allowed: {_listed(columns)}"
    who = graph.features[:, [graph.names.columns.index(name)]].nonzero()[0]
    further = f" (and of {who.size - 1:,} further people)" if who.size > 1 else ""
    allowed = ["an empty cell" if one == "missing" else repr(one) for one in known] or ["a number"]
    first = repr(graph.ids[who[0]]) if graph.ids else f"node {who[0]}"
    return (
        f"{graph.name}: {base} of {first}{further} is {'empty' if text == 'missing' else repr(text)}, as of nobody that the "
        f"model learned from; allowed: {_listed(allowed)}; or leave such people out"
    )


def _not_needed(name: str, own: Sequence[str]) -> bool:
    """Whether a missing column is of a text, or of empty cells, in a table column that ``own`` has: no cell has it."""
    base, mark, text = name.rpartition(" is ")
    return bool(mark) and (any(other.startswith(f"{base} is ") for other in own) or (text == "missing" and base in own))


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns[:12]) + (f" and {len(columns) - 12} more" if len(columns) > 12 else "")
